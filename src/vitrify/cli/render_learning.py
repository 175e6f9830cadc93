"""What the commands about learning print."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitrify.cli.render import console

if TYPE_CHECKING:
    from vitrify.learn.records import Record

COLOURS = {"finished": "green", "failed": "red", "running": "cyan"}
UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def runs(found: Sequence[Record], written: Sequence[Path], as_json: bool) -> None:
    """A table of runs, or where it was written."""
    from vitrify.learn.exports import to_json
    from vitrify.learn.records import rows

    if as_json:
        sys.stdout.write(to_json(found) + "\n")
        return
    for path in written:
        sys.stdout.write(f"{len(found)} runs → {path}\n")
    if written:
        return
    from rich.table import Table

    columns, lines = rows(found)
    table = Table(title=f"{len(found)} runs", title_justify="left")
    for column in (*columns, "age"):
        table.add_column(column, overflow="fold")
    now = time.time()
    for record, line in zip(found, lines, strict=True):
        cells = [_cell(value) for value in line]
        place = columns.index("state")
        cells[place] = f"[{COLOURS.get(record.state, 'yellow')}]{record.state}[/]"
        table.add_row(*cells, age(now - (record.ended or record.started)))
    console().print(table)
    for record in found:
        if record.message:
            console().print(f"{record.id} {record.state}: {record.message}", markup=False)


def age(seconds: float) -> str:
    """How long ago, in the largest unit that fits.

    >>> age(5), age(200), age(90_000)
    ('5 s', '3 min', '1 d')
    """
    name, length = next(((name, length) for name, length in UNITS if seconds >= length), ("s", 1))
    return f"{int(seconds // length)} {name}"


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
