"""What the commands print that exchange networks with other libraries."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from vitrify.cli.render import console, json_line

if TYPE_CHECKING:
    from vitrify.interop.equality import Row
    from vitrify.interop.export import Exported
    from vitrify.interop.imports import Imported


def exported(found: Exported, place: Path, as_json: bool) -> None:
    """An export: where it is, in which layout, and how far its answers are from ours."""
    report = found.equality
    if as_json:
        json_line({"folder": str(place), "files": list(found.files), **report.to_json()})
        return
    out = console()
    out.print(f"{report.layout} in {report.stored} → {place}", markup=False)
    for note in report.notes:
        out.print(note, markup=False)
    _differences(report.rows, f"{report.inputs} inputs, as for a certificate")


def imported(found: Imported, place: Path, as_json: bool) -> None:
    """An import: what was read, whether it is what was exported, and how near ours is to the library's answers."""
    if as_json:
        row = None if found.row is None else asdict(found.row)
        kind = {"format": found.format, "stored": found.stored, "whole": found.whole, "note": found.note}
        json_line({"folder": str(place), **kind, "difference": row})
        return
    out = console()
    what = "the network that was exported" if found.whole else "a network of the sizes in the file"
    out.print(f"{found.format} in {found.stored}: {what} → {place}", markup=False)
    if found.note:
        out.print(found.note, markup=False)
    if found.row is not None:
        _differences((found.row,), "our answers and the library's")


def _differences(rows: tuple[Row, ...], title: str) -> None:
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="")
    for column in ("precision", "difference", "absolute", "from our float64"):
        table.add_column(column)
    for row in rows:
        numbers = (row.difference, row.absolute, row.from_float64)
        table.add_row(row.precision, *(f"{number:.2g}" for number in numbers))
    console().print(table)
