"""The command that benchmarks other people's models on tasks with exact optima."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from vitrify.cli.options import AsJson, EvidenceFolder, arg, opt
from vitrify.cli.render import Part, TextTable, console, json_line, show, styled, tell
from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.optional import need

COLORS = {"as predicted": "green", "allowed, not found": "yellow", "found against a theorem": "red"}
RECORDED = ("transformer", "LSTM", "positive", "signed", "reflections", "hybrid", "looped")
MAX_COLUMNS = 3  # recorded references in a table; the report has all


def diagnose(
    target: Annotated[
        str | None, arg("module:factory, file.py:factory or Hugging Face folder. Default: list tasks.")
    ] = None,
    tasks: Annotated[str | None, opt("Run only these tasks. Default: all.", metavar="NAME,…")] = None,
    steps: Annotated[int, opt("Steps of each training.", min=1)] = 2000,
    batch: Annotated[int, opt("Sequences per step.", min=1)] = 32,
    seeds: Annotated[int, opt("Number of seeds: 0, 1, …", min=1)] = 3,
    lr: Annotated[str, opt("Learning rates; the first seed selects the best.", metavar="RATE,…")] = "0.002,0.01",
    budget: Annotated[float | None, opt("Time for all trainings together, in equal shares.", metavar="SECONDS")] = None,
    rows: Annotated[int, opt("Test sequences for each test of a task.", min=1)] = 256,
    kind: Annotated[str | None, opt("Kind whose theorems apply: transformer, 'one layer', looped, LSTM, …")] = None,
    references: Annotated[str | None, opt("Also train these architectures: transformer, …", metavar="NAME,…")] = None,
    evidence: EvidenceFolder = None,
    device: Annotated[str, opt("Device of torch modules.")] = "cpu",
    threads: Annotated[int, opt("CPU threads of torch.", min=1)] = 1,
    html: Annotated[Path | None, opt("Write a report in one HTML file.", metavar="FILE")] = None,
    as_json: AsJson = False,
) -> None:
    """Benchmark your model on tasks with exact optima: train or evaluate it, and compare with theorems."""
    from vitrify.claims import evidence_folder
    from vitrify.interop.diagnose.battery import Budget
    from vitrify.interop.diagnose.battery import diagnose as diagnosed
    from vitrify.interop.diagnose.tasks import chosen, listing
    from vitrify.learn.compiler import remember_programs

    names = tasks.split(",") if tasks else None
    if target is None:
        _battery(listing(chosen(names)), as_json)
        return
    if html:
        need("jinja2", "report")
    os.environ["OMP_NUM_THREADS"] = str(threads)  # torch reads it when the target imports it
    remember_programs()
    declared = Budget(steps, batch, tuple(range(seeds)), _rates(lr), rows, budget)
    with console(stderr=True).status("reading") as spinner:
        diagnosis = diagnosed(
            target,
            tasks=names,
            budget=declared,
            kind=kind,
            references=references.split(",") if references else (),
            evidence=evidence or evidence_folder(),
            device=device,
            say=spinner.update,
            announce=lambda text: spinner.console.print(text, markup=False),
        ).to_json()
    if html:
        from vitrify.files import write_text
        from vitrify.interop.diagnose.battery import page

        write_text(html, page(diagnosis))
    show(as_json, diagnosis, *_diagnosis(diagnosis), f"→ {html}" if html else None)


def _rates(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--lr must be numbers with commas between them, not {text!r}") from None


def _battery(tasks: Sequence[JsonObject], as_json: bool) -> None:
    """Print the tasks: their targets, the lengths of their sequences, and the size of their vocabulary."""
    if as_json:
        for task in tasks:
            json_line(task)
        return
    rows = []
    for task in tasks:
        lengths = ", ".join(f"{name} {length}" for name, length in task["tests"].items())
        rows.append((task["task"], task["asks for"], lengths, len(task["vocabulary"])))
    tell(
        TextTable(("task", "target", "tokens of a sequence", "vocabulary"), rows, f"{len(tasks)} tasks"),
        "--json lists the vocabularies; docs/how-to/benchmark-your-model.md describes the interface of a model",
    )


def _diagnosis(diagnosis: JsonObject) -> Iterator[Part]:
    """Return a row for every test: score, optimum, chance, references, and the prediction of the atlas."""
    kind = diagnosis["kind"]
    yield f"{diagnosis['target']}" + (f", {kind}" if kind else "") + f": {diagnosis['measured']}"
    references = diagnosis["references"]
    now = [one for one in references if one["name"] not in RECORDED]
    beside = now + [one for name in RECORDED for one in references if one["name"] == name][:MAX_COLUMNS]
    labels = [one["name"] if one["name"] not in RECORDED else f"{one['name']}*" for one in beside]  # * is recorded
    rows = []
    for cell in diagnosis["cells"]:
        low, high = cell["interval"]
        score = f"{cell['mean']:.3f} [{low:.2f}, {high:.2f}]" + (" ◂" if cell["judged"] else "")
        others = [cell["references"].get(one["name"]) for one in beside]
        numbers = [None if one is None else f"{one:.2f}" for one in (cell["optimum"], cell["chance"], *others)]
        prediction, verdict = _said(cell, kind)
        colored = styled(COLORS[verdict], verdict) if verdict in COLORS else verdict
        rows.append((cell["task"], cell["test"], score, *numbers, prediction, colored))
    columns = ("task", "test", "score", "optimum", "chance", *labels, "atlas", "verdict" if kind else "predicted for")
    yield TextTable(
        columns, rows, "accuracy [95 % interval]; ◂ where theorems apply", keys=2, unbroken=len(columns) - 2
    )
    if diagnosis["like"] and not kind:
        yield f"kinds of models whose predictions fit best: {', '.join(diagnosis['like'])}"
    measured: dict[str, list[str]] = {}
    for one, label in zip(beside, labels, strict=True):
        measured.setdefault(one["measured"], []).append(label)
    yield from (f"{', '.join(names)}: {how}" for how, names in measured.items())
    yield from (f"note: {text}" for text in diagnosis["notes"])
    yield from (f"warning: {text}" for text in diagnosis["warnings"])


def _said(cell: JsonObject, kind: str | None) -> tuple[str, str]:
    """Return the prediction of the atlas for a cell, and the verdict on it."""
    if not cell["judged"]:
        return "", ""
    if kind:
        law = cell["theorem"]
        return (f"{law['id']}: {law['words']}" if law else "–"), cell["agreement"]
    kinds: dict[str, list[str]] = {}
    for name, law in cell["kinds"].items():
        kinds.setdefault(f"{law['words']} ({law['id']})", []).append(name)
    prediction = "; ".join(f"{', '.join(names)}: {words}" for words, names in kinds.items())
    return prediction, "not learned as trained" if cell["open"] else ", ".join(cell["like"])


COMMANDS = (diagnose,)
