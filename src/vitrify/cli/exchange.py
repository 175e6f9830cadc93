"""The commands that exchange networks with other libraries; `app.py` registers them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="machine-readable output")]
Seed = Annotated[int, typer.Option(help="seed of the random inputs on which answers are compared")]


class TargetChoice(StrEnum):
    """Libraries, as users say them."""

    torch = "torch"
    hf = "hf"
    lens = "transformer-lens"
    onnx = "onnx"


class PrecisionChoice(StrEnum):
    """Precisions of the numbers in a file."""

    float32 = "float32"
    float64 = "float64"


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="a model folder, or the folder of a run in a store")],
    to: Annotated[TargetChoice, typer.Option(help="the library")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="the folder to write; DIR-LIBRARY here, unless said"),
    ] = None,
    dtype: Annotated[PrecisionChoice, typer.Option(help="the precision of the weights")] = PrecisionChoice.float32,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Write a network for another library, load it there, and compare its answers with ours; or refuse, and say why."""
    from vitrify.cli import render, render_exchange
    from vitrify.interop.export import export as exported

    place = out or Path(f"{folder.resolve().name}-{to.value}")
    with render.status(f"reading {folder}") as say:
        found = exported(folder, to.value, place, precision=dtype.value, seed=seed, say=say)
    render_exchange.exported(found, place, as_json)


def import_entries(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="a folder that `vitrify export` wrote, or a GPT-2")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="the model folder to write")],
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Read a network back from another library's format, trained further or not, into a model folder."""
    from vitrify.cli import render, render_exchange
    from vitrify.interop.imports import import_folder

    with render.status(f"reading {folder}"):
        found = import_folder(folder, out, seed=seed)
    render_exchange.imported(found, out, as_json)


COMMANDS = (export, import_entries)
