"""The survey as Markdown and as JSON data: its table, the map, and every derivation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from vitrify.bounds.survey.about_problems import PROBLEMS
from vitrify.bounds.survey.closure import MapCell, SurveyFacts, published_map, sentence, stated
from vitrify.bounds.survey.later import ADDED, DERIVED, ROWS
from vitrify.bounds.survey.models import MODELS, ModelVariant
from vitrify.bounds.survey.rows import SurveyRow
from vitrify.bounds.survey.statements import Below, Executed, Fact, Outside
from vitrify.bounds.survey.table import SURVEY
from vitrify.encoding import JsonObject

NAMES = {model: name for name, model in MODELS.items()}


def markdown() -> str:
    """Return the map, the table, the derivations and the facts as Markdown."""
    facts = SurveyFacts()
    cells = published_map(facts)
    sections = {
        "The map": grid(cells),
        "The rows of the map": variants(),
        "Table 1 of Strobl et al. 2024": table(SURVEY),
        "Results beside the table": table(ADDED),
        "More general variants, and what is derived here": table(DERIVED),
        "Derivations": derivations(cells, numbered(facts)),
        "Facts": listed(facts),
    }
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())


def variants() -> str:
    """Return what each row of the map stands for."""
    lines = [f"| {name} | {model} |" for name, model in MODELS.items()]
    return "\n".join(["| row | all nets of the kind |", "| --- | --- |", *lines])


def to_json() -> JsonObject:
    """Return the rows and the cells of the map as plain data."""
    return {
        "rows": [
            {
                "number": row.number,
                "statement": row.statement,
                "source": row.source,
                "models": [str(model) for model in row.models],
                "scope": row.scope,
                "status": row.status,
                "executed": [{"by": by.name, "id": by.claim_id, "what": by.what} for by in row.by],
                "fragment": row.fragment,
            }
            for row in ROWS
        ],
        "map": [
            {
                "model": NAMES[cell.model],
                "problem": cell.problem,
                "scope": cell.scope,
                "verdict": cell.verdict,
                "unless": cell.condition,
                "rules": list(cell.rules),
                "derivation": sentence(cell),
            }
            for cell in published_map()
        ],
    }


def table(rows: Sequence[SurveyRow]) -> str:
    """Return rows of the survey as a table: a result, its source, its variant, and what this project executes of it."""
    titles = ["#", "result", "source", "attention", "positions", "precision", "mask, depth, steps", "here"]
    lines = [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]
    for row in rows:
        axes = [" or ".join(dict.fromkeys(values)) for values in zip(*map(_axes, row.models), strict=True)]
        here = ", ".join(map(linked, row.by))
        part = f"**fragment**: {row.fragment}" if row.fragment else "; ".join(by.what for by in row.by)
        status = f"{row.status}, {here}; {part}" if here else row.status
        result = row.statement + (", a net for each length" if row.scope == "each length" else "")
        lines.append(f"| {' | '.join([str(row.number), result, row.source, *axes, status])} |")
    return "\n".join(lines)


def _axes(model: ModelVariant) -> tuple[str, str, str, str]:
    further = [part for part in (model.mask_shown, model.depth_shown, *model.extras) if part]
    return model.attention_shown, model.positions_shown, model.precision_shown, ", ".join(further)


def linked(by: Executed) -> str:
    """Return a link to the claim on the site of the docs, or the name of a construction."""
    return f"[{by.claim_id}](#{by.name})" if by.claim_id else f"`{by.name}`"


def grid(cells: Sequence[MapCell]) -> str:
    """Return the map: models down, problems across; two answers where one net and nets for each length differ."""
    lines = ["| | " + " | ".join(PROBLEMS) + " |", "| --- " * (len(PROBLEMS) + 1) + "|"]
    for model, row in groupby(cells, lambda cell: cell.model):
        marks = [_mark(*pair) for _, pair in groupby(row, lambda cell: cell.problem)]
        lines.append(f"| {NAMES[model]} | {' | '.join(marks)} |")
    return "\n".join(lines)


def _mark(one: MapCell, each: MapCell) -> str:
    first, second = _answer(one), _answer(each)
    return first if one.verdict == each.verdict else f"one net: {first}<br>each length: {second}"


def _answer(cell: MapCell) -> str:
    unless = f", unless {cell.condition}" if cell.condition else ""
    by = f" ({linked(cell.executed)})" if cell.executed else ""
    return f"{cell.verdict.removesuffix(', if')}{unless}{by}"


def numbered(facts: SurveyFacts) -> dict[Fact, str]:
    """Return a label for every fact: N for nets, C for classes that contain a variant, and so on."""
    kinds: dict[str, Sequence[Fact]] = {
        "N": facts.built,
        "C": facts.inside,
        "R": facts.refuted,
        "O": facts.outside,
        "P": facts.below,
    }
    return {fact: f"{letter}{at}" for letter, some in kinds.items() for at, fact in enumerate(some, 1)}


def listed(facts: SurveyFacts) -> str:
    """Return all facts with their labels, sources, and what executes them."""
    lines = ["| | fact | source | executed by |", "| --- | --- | --- | --- |"]
    for fact, label in numbered(facts).items():
        by = fact.by if not isinstance(fact, Outside | Below) else None
        lines.append(f"| {label} | {stated(fact)} | {fact.source} | {f'{linked(by)}: {by.what}' if by else ''} |")
    return "\n".join(lines)


def derivations(cells: Sequence[MapCell], labels: Mapping[Fact, str]) -> str:
    """Return for each cell of the map the labels of the facts and the rules that it follows from."""
    lines = ["| | " + " | ".join(PROBLEMS) + " |", "| --- " * (len(PROBLEMS) + 1) + "|"]
    for model, row in groupby(cells, lambda cell: cell.model):
        marks = []
        for _, pair in groupby(row, lambda cell: cell.problem):
            one, each = (_chain(cell, labels) for cell in pair)
            marks.append(one if one == each else f"{one}<br>{each}")
        lines.append(f"| {NAMES[model]} | {' | '.join(marks)} |")
    return "\n".join(lines)


def _chain(cell: MapCell, labels: Mapping[Fact, str]) -> str:
    if cell.verdict == "open":
        return "open"
    rules = f" ({', '.join(map(str, cell.rules))})" if cell.rules else ""
    return " ".join(labels[fact] for fact in cell.facts) + rules
