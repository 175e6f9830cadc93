"""The command that puts other people's models to our tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from vitrify.cli.options import AsJson, EvidenceFolder
from vitrify.cli.render import Part, TextTable, json_line, status, tell
from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.optional import need

COLORS = {"as predicted": "green", "allowed, not found": "yellow", "found against a theorem": "red"}
RECORDED = ("transformer", "LSTM", "positive", "signed", "reflections", "hybrid", "looped")
MAX_COLUMNS = 3  # recorded references in a table; the report has all


def diagnose(
    target: Annotated[
        str | None,
        typer.Argument(help="module:factory, file.py:factory or a Hugging Face folder; none: list the battery"),
    ] = None,
    tasks: Annotated[str | None, typer.Option(metavar="NAME,…", help="only these tasks")] = None,
    steps: Annotated[int, typer.Option(min=1, help="steps of each training")] = 2000,
    batch: Annotated[int, typer.Option(min=1, help="rows of a step")] = 32,
    seeds: Annotated[int, typer.Option(min=1, help="how many seeds, from 0 on")] = 3,
    lr: Annotated[str, typer.Option(metavar="RATE,…", help="learning rates: the first seed chooses")] = "0.002,0.01",
    budget: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="end all training after so long, each after its share")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="rows of each test")] = 256,
    kind: Annotated[
        str | None, typer.Option(help="what it is: transformer, 'one layer', looped, LSTM, positive, signed, …")
    ] = None,
    references: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="train these architectures of ours beside it: transformer …")
    ] = None,
    evidence: EvidenceFolder = None,
    device: Annotated[str, typer.Option(help="where torch modules run")] = "cpu",
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="write a report, one file")] = None,
    as_json: AsJson = False,
) -> None:
    """Put a model to stress tests with exact optima: train it, or ask it, and compare with theorems and references."""
    from vitrify.claims.catalogue import evidence_folder
    from vitrify.interop.diagnose.battery import Budget
    from vitrify.interop.diagnose.battery import diagnose as diagnosed
    from vitrify.interop.diagnose.tasks import chosen, listing
    from vitrify.learn.program import remember_programs

    names = tasks.split(",") if tasks else None
    if target is None:
        _battery(listing(chosen(names)), as_json)
        return
    if html:
        need("jinja2", "report")
    remember_programs()
    declared = Budget(steps, batch, tuple(range(seeds)), _rates(lr), rows, budget)
    with status("reading") as say:
        diagnosis = diagnosed(
            target,
            tasks=names,
            budget=declared,
            kind=kind,
            references=references.split(",") if references else (),
            evidence=evidence or evidence_folder(),
            device=device,
            say=say,
        ).to_json()
    if html:
        from vitrify.files import write_text
        from vitrify.interop.diagnose.battery import page

        write_text(html, page(diagnosis))
    if as_json:
        json_line(diagnosis)
    else:
        tell(*_diagnosis(diagnosis), f"→ {html}" if html else None)


def _rates(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--lr must be numbers with commas between them, not {text!r}") from None


def _battery(tasks: Sequence[JsonObject], as_json: bool) -> None:
    """Print the tasks: what is asked, how long rows are, and which tokens there are."""
    if as_json:
        for task in tasks:
            json_line(task)
        return
    rows = []
    for task in tasks:
        lengths = ", ".join(f"{name} {length}" for name, length in task["tests"].items())
        rows.append((task["task"], task["asks for"], lengths, len(task["vocabulary"])))
    tell(
        TextTable(("task", "asks for", "tokens of a row", "vocabulary"), rows, f"{len(tasks)} tasks"),
        "--json says which number each token has; docs/how-to/benchmark-your-model.md how a model is given",
    )


def _diagnosis(diagnosis: JsonObject) -> Iterator[Part]:
    """Return a row for every test: the score, the best possible, chance, what the atlas says, references beside it."""
    kind = diagnosis["kind"]
    yield f"{diagnosis['target']}" + (f", {kind}" if kind else "") + f": {diagnosis['measured']}"
    beside = _beside(diagnosis["references"])
    labels = [one["name"] if one["name"] not in RECORDED else f"{one['name']}*" for one in beside]  # * is recorded
    rows, last = [], ""
    for cell in diagnosis["cells"]:
        low, high = cell["interval"]
        score = f"{cell['mean']:.3f} [{low:.2f}, {high:.2f}]" + (" ◂" if cell["judged"] else "")
        others = [cell["references"].get(one["name"]) for one in beside]
        numbers = [None if one is None else f"{one:.2f}" for one in (cell["optimum"], cell["chance"], *others)]
        prediction, verdict = _said(cell, kind)
        colored = f"[{COLORS[verdict]}]{verdict}[/]" if verdict in COLORS else verdict
        rows.append((cell["task"] if cell["task"] != last else "", cell["test"], score, *numbers, prediction, colored))
        last = cell["task"]
    columns = ("task", "test", "score", "best", "chance", *labels, "atlas", "verdict" if kind else "agrees with")
    yield TextTable(columns, rows, "accuracy [95 % interval]; ◂ where theorems speak", unbroken=len(columns) - 2)
    if diagnosis["like"] and not kind:
        yield f"the kinds whose theorems agree best with this: {', '.join(diagnosis['like'])}"
    measured: dict[str, list[str]] = {}
    for one, label in zip(beside, labels, strict=True):
        measured.setdefault(one["measured"], []).append(label)
    yield from (f"{', '.join(names)}: {how}" for how, names in measured.items())
    yield from (f"note: {text}" for text in diagnosis["notes"])
    yield from (f"warning: {text}" for text in diagnosis["warnings"])


def _beside(references: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the references that have a column: all that were trained now, and a few that are recorded."""
    now = [one for one in references if one["name"] not in RECORDED]
    recorded = [one for name in RECORDED for one in references if one["name"] == name]
    return now + recorded[:MAX_COLUMNS]


def _said(cell: JsonObject, kind: str | None) -> tuple[str, str]:
    """Return what the atlas says about a cell, and what follows."""
    if not cell["judged"]:
        return "", ""
    if kind:
        law = cell["theorem"]
        return (f"{law['id']}: {law['words']}" if law else "–"), cell["agreement"]
    rows: dict[str, list[str]] = {}
    for law in cell["kinds"].values():
        rows.setdefault(law["words"], []).append(law["id"])
    prediction = "; ".join(f"{', '.join(dict.fromkeys(own))} {words}" for words, own in rows.items())
    return prediction, "not learned as trained" if cell["open"] else ", ".join(cell["like"])


COMMANDS = (diagnose,)
