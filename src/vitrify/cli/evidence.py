"""The commands about recorded runs of claims: plan, evidence and figure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vitrify.cli.options import AsJson, ClaimNames, EvidenceFolder, opt
from vitrify.cli.render import VERDICT_COLORS, Part, TextTable, show, styled
from vitrify.errors import InputError

if TYPE_CHECKING:
    from vitrify.claims.catalogue import ClaimPage, Outcome
    from vitrify.claims.protocol.planning import Plan


def plan(
    names: ClaimNames = None,
    check: Annotated[bool, opt("Write nothing; exit with 1 where a file is not that of the claim.", "--check")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the plans of learned claims to docs/plans, to be committed before the run that is judged."""
    from vitrify.claims.catalogue import claim_of, listing, named
    from vitrify.claims.protocol.planning import digest, read_plan, write_plan
    from vitrify.report.recorded import latest

    pages = named(names) if names else listing()
    found = [(page, claim.plan) for page in pages if (claim := claim_of(page)).plan]
    if not found:
        raise InputError("none of these claims has a plan: only claims that train networks do")
    rows, files, stale = [], [], 0
    for page, own in found:
        assert own is not None
        current, recorded = digest(page, own), latest(page)
        judged = recorded is not None and recorded.version >= own.version
        if check:
            written = read_plan(page, own.version)
            fits, same = written.get("digest") == current, written.get("plan") == own.to_json()
            stale += not (fits or (judged and same))
            state = "as committed" if fits else "changed: 'vitrify plan' writes it"
            state = "judged, its code has changed since" if judged and same and not fits else state
        else:
            files.append(str(write_plan(page, own, judged)))
            state = files[-1]
        rows.append((page.fields["id"], page.name, own.version, current, state))
    columns = ("id", "claim", "version", "digest", "file")
    data = [dict(zip(columns, row, strict=True)) for row in rows]
    details = described(found[0][1]) if len(found) == 1 and found[0][1] else ()
    show(as_json, data, *details, TextTable(columns, rows, "plans", keys=2))
    raise typer.Exit(1 if stale else 0)


def described(plan: Plan) -> Iterator[Part]:
    """Return the statements of a plan with their rules and nulls, its scale by axis, and its other fields."""
    from vitrify.report.wording import spans

    yield plan.question
    rows = [(key, each.says, each.rule, each.null) for key, each in plan.statements.items()]
    yield TextTable(("", "statement", "holds if", "nearest null"), rows, "statements", keys=1)
    axes = [(name, axis.ours, axis.theirs, axis.label) for name, axis in plan.scale.items()]
    yield TextTable(("axis", "ours", "theirs", "scale"), axes, f"scale: {plan.label}")
    named = ("units", "stopping", "chosen", "changed")
    rest = [(name, getattr(plan, name)) for name in named if getattr(plan, name)]
    numbers = [(name, spans(getattr(plan, name))) for name in ("judged", "explored")]
    yield TextTable(("", ""), [*rest, *numbers], f"plan {plan.version}")


def evidence(
    names: ClaimNames = None,
    folder: EvidenceFolder = None,
    versions: Annotated[bool, opt("Show all recorded versions of each claim.", "--versions")] = False,
    reproduce: Annotated[
        bool, opt("Compute verdicts and figure data again from stored measurements, and compare.", "--reproduce")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show recorded evidence: the verdict on each statement, plan version, scale and device of the run."""
    from vitrify.report import checks
    from vitrify.report.recorded import all_versions

    pages = _recorded_pages(names, folder)
    if reproduce:
        results = [(page, checks.reproduced(page, folder)) for page in pages]
        rows = [(page.fields["id"], page.name, r or "the same") for page, r in results]
        data = [{"name": page.name, "reproduced": not r, "why": r} for page, r in results]
        show(as_json, data, TextTable(("id", "claim", "result"), rows, "reproduced from measurements", keys=2))
        raise typer.Exit(1 if any(r for _, r in results) else 0)
    outcomes = [
        each for page in pages for each in (all_versions(page, folder) if versions else [page.recorded(folder)])
    ]
    cells = ((o.id, o.name, *summary(o), o.measured_on.get("device"), caught(o)) for o in outcomes)
    columns = ("id", "claim", "verdicts", "plan", "scale", "device", "null hypothesis")
    show(as_json, outcomes, TextTable(columns, list(cells), "evidence", keys=2))


def summary(outcome: Outcome) -> tuple[str, str, str]:
    """Return the verdicts on the statements, plan and scale of a recorded run."""
    from vitrify.report import wording

    verdicts = styled(VERDICT_COLORS[outcome.verdict], wording.statements(outcome))
    return verdicts, wording.plan(outcome), wording.scale(outcome)


def caught(outcome: Outcome) -> str:
    """Return whether the check rejected the saboteur, or the least share of the nulls' draws that it rejected."""
    shares = [share for own in outcome.rejections.values() for share in own.values()]
    text = f"{min(shares):.0%} rejected" if shares else "rejected" if outcome.saboteur_rejected else "passed"
    return text if outcome.saboteur_rejected else styled("red", text)


def _recorded_pages(names: list[str] | None, folder: Path | None) -> list[ClaimPage]:
    """Return the named claims, or all that have evidence in a folder."""
    from vitrify.claims import evidence_folder
    from vitrify.claims.catalogue import find, named
    from vitrify.report.recorded import recorded_names

    return named(names) if names else [find(name) for name in recorded_names(folder or evidence_folder())]


def figure(
    names: ClaimNames = None,
    folder: EvidenceFolder = None,
    out: Annotated[
        Path | None, opt("Folder to write. Default: --evidence DIR, or here.", "--out", "-o", metavar="DIR")
    ] = None,
    kind: Annotated[Literal["svg", "png", "pdf"], opt("Format of the figures.")] = "svg",
    as_json: AsJson = False,
) -> None:
    """Draw the figures of claims from their recorded evidence; without a name, of all claims that have a figure."""
    from vitrify.claims.catalogue import claim_of
    from vitrify.report.recorded import figure as drawn

    into = out or folder or Path()
    into.mkdir(parents=True, exist_ok=True)
    files = []
    for page in _recorded_pages(names, folder):
        outcome = page.recorded(folder)
        if names or claim_of(page).drawing(outcome.evidence):
            files.append(str(into / f"{page.name}.{kind}"))
            drawn(page, outcome, Path(files[-1]))
    show(as_json, {"files": files}, *files)


COMMANDS = (plan, evidence, figure)
