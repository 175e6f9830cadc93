"""The commands that draw data and train; `app.py` registers them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from vitrify.cli.learning import StoreFolder
from vitrify.errors import InputError

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE…", help="parameters; several values (lr=1e-3,3e-3 or seed=0..7) make an axis"),
]
AsJson = Annotated[bool, typer.Option("--json", help="machine-readable output")]
SHOWN = 1000  # rows, at most
Retry = Annotated[bool, typer.Option("--retry", help="train again what has failed")]


class LayoutChoice(StrEnum):
    """How rows are laid out on disk."""

    parquet = "parquet"
    datasets = "datasets"


def train(
    sandbox: Annotated[str, typer.Argument(help="a sandbox: `vitrify data` lists them")],
    model: Annotated[str, typer.Argument(help="a model family, for example transformer")],
    words: Words = None,
    members: Annotated[int, typer.Option(min=1, help="seeds of every combination")] = 1,
    devices: Annotated[int, typer.Option(min=1, help="devices that share every batch, for one large model")] = 1,
    store: StoreFolder = None,
    retry: Retry = False,
    as_json: AsJson = False,
) -> None:
    """Train many members at once on a sandbox, against its exact optimum; what a store holds is not trained again."""
    from vitrify.cli import render_training
    from vitrify.learn.experiment import in_words

    render_training.trained([in_words(sandbox, model, words or [], members)], store, retry, as_json, devices)


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a TOML file: sandbox, model, members, set, axes, runs")],
    store: StoreFolder = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE", help="who trains: processes, local-ray, ray or ray://HOST:PORT; without it, this process"
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="with --on: at most so many at a time")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only print shards, operations and memory")] = False,
    retry: Retry = False,
    as_json: AsJson = False,
) -> None:
    """Train what a file describes, here or elsewhere; a sweep that was interrupted goes on where it was."""
    from vitrify.cli import render_sweep, render_training
    from vitrify.learn.experiment import read_sweep

    if workers is not None and on is None:
        raise InputError("--workers is for --on: say who they are, for example --on processes")
    experiments = read_sweep(file)
    if dry_run:
        render_sweep.planned(experiments, store, retry, on, workers)
    elif on is None:
        render_training.trained(experiments, store, retry, as_json)
    else:
        render_sweep.spread(experiments, store, retry, as_json, on, workers)


def data(
    sandbox: Annotated[str | None, typer.Argument(help="a sandbox; without one, all are listed")] = None,
    words: Words = None,
    rows: Annotated[int, typer.Option(min=1, help="rows to show, or to write of each split")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="data seed")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="write rows to this folder instead")
    ] = None,
    layout: Annotated[
        LayoutChoice, typer.Option("--format", help="parquet: files; datasets: a folder that `load_dataset` takes")
    ] = LayoutChoice.parquet,
    split: Annotated[
        list[str] | None, typer.Option(metavar="NAME[=ROWS]", help="with --out: train (by default), test, probe")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show rows of a sandbox with their states, the optimal answers and the entropy rate; write them; or list all."""
    from vitrify.cli import render_training

    if sandbox is None:
        render_training.sandboxes(as_json)
    elif out is not None:
        render_training.written(sandbox, words or [], split or ["train"], rows, seed, out, layout.value, as_json)
    elif split or rows > SHOWN:
        raise InputError(f"at most {SHOWN:,} rows of the training split are shown: --out DIR writes any number")
    else:
        render_training.rows_of(sandbox, words or [], rows, seed, as_json)


def plot(
    query: Annotated[
        list[str] | None, typer.Argument(metavar="QUERY…", help="which runs, as in `vitrify runs`")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="the figure: .svg, .png or .pdf")] = Path(
        "curves.svg"
    ),
    quantity: Annotated[str, typer.Option(help="what is drawn: loss, excess, kl, accuracy …")] = "loss",
    store: StoreFolder = None,
) -> None:
    """Draw curves of runs against steps, with the floor and the known predictors as lines, seeds as a band."""
    from vitrify.cli import render_training
    from vitrify.learn.figures import curves
    from vitrify.learn.store import Store

    opened = Store(store)
    found = opened.runs(" ".join(query or []))
    curves(opened, found, quantity, out)
    render_training.drawn(found, out)


COMMANDS = (train, sweep, data, plot)
