"""The plan of a claim about training, as data of a page: statements with their verdicts and nulls, scale, versions."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.claims.catalogue import Outcome
from vitrify.claims.protocol.planning import Plan
from vitrify.encoding import JsonObject
from vitrify.registry import Headline
from vitrify.report import wording

NOTES = {"units": "Units", "stopping": "Stopping rule", "chosen": "Exploration", "changed": "Changed"}


def described(plan: Plan, outcome: Outcome | None, versions: Sequence[Outcome]) -> JsonObject:
    """Return a plan with what was recorded: the verdict on each statement, and how often its null was rejected."""
    of_plan = outcome if outcome and outcome.version == plan.version else None
    verdicts = of_plan.statements if of_plan else {}
    return {
        "question": plan.question,
        "statements": [
            {"key": key, "says": each.says, "rule": each.rule, "null": each.null, "verdict": verdicts.get(key)}
            | {"rejected": _rejected(of_plan, key)}
            for key, each in plan.statements.items()
        ],
        "scale": [
            (name, axis.ours, "our own" if axis.theirs is None else axis.theirs, axis.label)
            for name, axis in plan.scale.items()
        ],
        "label": plan.label,
        "notes": [(title, getattr(plan, name)) for name, title in NOTES.items() if getattr(plan, name)],
        "judged": wording.spans(plan.judged),
        "explored": wording.spans(plan.explored),
        "version": plan.version,
        "run": of_plan is not None,
        "versions": [(each.version, each.verdict, each.criterion_older, wording.statements(each)) for each in versions],
    }


def _rejected(outcome: Outcome | None, statement: str) -> str:
    """Return the least share, over subjects, of the draws of a statement's null that its check rejects."""
    shares = [own[statement] for own in outcome.rejections.values() if statement in own] if outcome else []
    return f"{min(shares):.0%}" if shares else ""


def of_claim(page: Headline, plan: Plan | None, outcome: Outcome | None) -> JsonObject | None:
    """Return the data of a claim's plan, with every recorded version; None where it has no plan."""
    from vitrify.report.recorded import all_versions

    return described(plan, outcome, all_versions(page)) if plan else None
