"""What `vitrify diagnose` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vitrify.cli.render import console, json_line

COLOURS = {"as predicted": "green", "allowed, not found": "yellow", "found against a theorem": "red"}
BESIDE = ("transformer", "LSTM", "positive", "signed", "reflections", "hybrid", "looped")
COLUMNS = 3  # recorded references in a table; the report has all


def battery(found: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """The tasks: what is asked, how long rows are, and which tokens there are."""
    if as_json:
        for task in found:
            json_line(task)
        return
    from rich.table import Table

    table = Table(title=f"{len(found)} tasks", title_justify="left")
    for column in ("task", "asks for", "tokens of a row", "vocabulary"):
        table.add_column(column, overflow="fold")
    for task in found:
        lengths = ", ".join(f"{name} {length}" for name, length in task["tests"].items())
        table.add_row(task["task"], task["asks for"], lengths, str(len(task["vocabulary"])))
    console().print(table)
    console().print(
        "--json says which number each token has; docs/howto-diagnose.md how a model is given", markup=False
    )


def diagnosis(found: Mapping[str, Any], html: Path | None, as_json: bool) -> None:
    """A row for every test: the score, the best possible, chance, what the atlas says, references beside it."""
    if as_json:
        json_line(found)
        return
    from rich.table import Table

    out, kind = console(), found["kind"]
    out.print(f"{found['target']}" + (f", {kind}" if kind else "") + f": {found['measured']}", markup=False)
    beside = _beside(found["references"])
    table = Table(title="accuracy [95 % interval]; ◂ where theorems speak", title_justify="left")
    for column in ("task", "test", "score", "best", "chance", *_short(beside)):
        table.add_column(column, no_wrap=True)
    for column in ("atlas", "so it is" if kind else "like"):
        table.add_column(column, overflow="fold")
    last = ""
    for cell in found["cells"]:
        low, high = cell["interval"]
        score = f"{cell['mean']:.3f} [{low:.2f}, {high:.2f}]" + (" ◂" if cell["judged"] else "")
        others = [cell["references"].get(one["name"]) for one in beside]
        said, verdict = _said(cell, kind)
        table.add_row(
            cell["task"] if cell["task"] != last else "",
            cell["test"],
            score,
            f"{cell['optimum']:.2f}",
            f"{cell['chance']:.2f}",
            *("–" if one is None else f"{one:.2f}" for one in others),
            said,
            f"[{COLOURS[verdict]}]{verdict}[/]" if verdict in COLOURS else verdict,
        )
        last = cell["task"]
    out.print(table)
    if found["like"] and not kind:
        out.print(f"the kinds whose theorems agree best with this: {', '.join(found['like'])}", markup=False)
    for names, measured in _measured(beside).items():
        out.print(f"{names}: {measured}", markup=False)
    for text in found["notes"]:
        out.print(f"note: {text}", markup=False)
    for text in found["warnings"]:
        out.print(f"warning: {text}", markup=False)
    if html:
        out.print(f"→ {html}", markup=False)


def _beside(references: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The references that have a column: all that were trained now, and a few that are recorded."""
    now = [one for one in references if one["name"] not in BESIDE]
    kept = sorted((one for one in references if one["name"] in BESIDE), key=lambda one: BESIDE.index(one["name"]))
    return now + kept[:COLUMNS]


def _short(beside: Sequence[Mapping[str, Any]]) -> list[str]:
    """Their names; a star says that the score is recorded."""
    return [one["name"] if one["name"] not in BESIDE else f"{one['name']}*" for one in beside]


def _measured(beside: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """How references were measured: those that share it in one line."""
    lines: dict[str, list[str]] = {}
    for one, name in zip(beside, _short(beside), strict=True):
        lines.setdefault(one["measured"], []).append(name)
    return {", ".join(names): measured for measured, names in lines.items()}


def _said(cell: Mapping[str, Any], kind: str | None) -> tuple[str, str]:
    """What the atlas says about a cell, and what follows."""
    if not cell["judged"]:
        return "", ""
    if kind:
        law = cell["theorem"]
        return (f"{law['row']}: {law['words']}" if law else "–"), cell["agreement"]
    rows: dict[str, list[str]] = {}
    for law in cell["kinds"].values():
        rows.setdefault(law["words"], []).append(law["row"])
    said = "; ".join(f"{', '.join(dict.fromkeys(own))} {words}" for words, own in rows.items())
    return said, "not learned as trained" if cell["open"] else ", ".join(cell["like"])
