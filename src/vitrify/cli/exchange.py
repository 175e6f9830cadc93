"""The commands that exchange networks with other libraries."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from vitrify.cli.options import AsJson, ModelOut, Net, arg, opt
from vitrify.cli.render import TextTable, show, status

if TYPE_CHECKING:
    from vitrify.interop.equality import Difference

Library = Literal["torch", "hf", "transformer-lens", "onnx"]
Precision = Literal["float32", "float64"]
Seed = Annotated[int, opt("Seed of the random inputs on which outputs are compared.")]


def export(
    net: Net,
    to: Annotated[Library, opt("Library to export to.")],
    out: Annotated[
        Path | None, opt("Folder to write. Default: NET-LIBRARY here.", "--out", "-o", metavar="DIR")
    ] = None,
    dtype: Annotated[Precision, opt("Precision of the weights.")] = "float32",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Export a network to another library, load it there, and compare its outputs; refuse if they differ."""
    from vitrify.interop.export import export as exported

    place = out or Path(f"{Path(net).resolve().name.replace(':', '-')}-{to}")
    with status(f"reading {net}") as say:
        written = exported(net, to, place, precision=dtype, seed=seed, say=say)
    report = written.equality
    show(
        as_json,
        {"folder": str(place), "files": list(written.files), **report.to_json()},
        f"{report.layout} in {report.stored} → {place}",
        *report.notes,
        _differences(report.rows, f"{report.inputs} inputs, chosen as for `vitrify certify`"),
    )


def import_entries(
    folder: Annotated[Path, arg("Folder that `vitrify export` wrote, or a GPT-2 with ReLU units.", "DIR")],
    out: ModelOut,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Import a network from another library's format into a model folder, also after further training there."""
    from vitrify.interop.imports import import_folder

    with status(f"reading {folder}"):
        net = import_folder(folder, out, seed=seed)
    what = "the network that was exported" if net.whole else "a network of the sizes in the file"
    about = {"format": net.format, "stored": net.stored, "whole": net.whole, "note": net.note}
    show(
        as_json,
        {"folder": str(out), **about, "difference": None if net.row is None else asdict(net.row)},
        f"{net.format} in {net.stored}: {what} → {out}",
        net.note or None,
        None if net.row is None else _differences((net.row,), "our outputs and the library's"),
    )


def _differences(rows: tuple[Difference, ...], title: str) -> TextTable:
    cells = [(row.precision, *(f"{x:.2g}" for x in (row.difference, row.absolute, row.from_float64))) for row in rows]
    return TextTable(
        ("precision", "relative difference", "absolute difference", "library from our float64"), cells, title
    )


COMMANDS = (export, import_entries)
