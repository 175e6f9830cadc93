"""The command that puts other people's models to our tests; `app.py` registers it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vitrify.errors import InputError


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
    evidence: Annotated[
        Path | None, typer.Option(metavar="DIR", help="recorded evidence; by default, docs/evidence of a checkout")
    ] = None,
    device: Annotated[str, typer.Option(help="where torch modules run")] = "cpu",
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="write a report, one file")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable output")] = False,
) -> None:
    """Put a model to stress tests with exact optima: train it, or ask it, and compare with theorems and references."""
    from vitrify.cli import render, render_diagnosis
    from vitrify.interop.diagnose.battery import Budget
    from vitrify.interop.diagnose.battery import diagnose as diagnosed
    from vitrify.interop.diagnose.tasks import chosen, listing
    from vitrify.learn.program import remember_programs
    from vitrify.report.evidence import recorded_in

    names = tasks.split(",") if tasks else None
    if target is None:
        render_diagnosis.battery(listing(chosen(names)), as_json)
        return
    remember_programs()
    declared = Budget(steps, batch, tuple(range(seeds)), _rates(lr), rows, budget)
    with render.status("reading") as say:
        found = diagnosed(
            target,
            tasks=names,
            budget=declared,
            kind=kind,
            references=references.split(",") if references else (),
            evidence=evidence or recorded_in(),
            device=device,
            say=say,
        ).to_json()
    if html:
        from vitrify.interop.diagnose.page import page

        html.write_text(page(found), encoding="utf-8")
    render_diagnosis.diagnosis(found, html, as_json)


def _rates(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--lr must be numbers with commas between them, not {text!r}") from None


COMMANDS = (diagnose,)
