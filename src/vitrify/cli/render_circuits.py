"""What `vitrify benchmark-circuits` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from vitrify.cli.render import console, json_line

if TYPE_CHECKING:
    from vitrify.mechanisms.puzzle import Puzzle
    from vitrify.mechanisms.score import Score
    from vitrify.mechanisms.zoo import Resident


def zoo(residents: Mapping[str, Resident], as_json: bool) -> None:
    """All networks of the zoo."""
    if as_json:
        rows = [{"name": name, "family": r.family, "shape": r.shape} for name, r in residents.items()]
        json_line(rows)
        return
    from rich.table import Table

    families: dict[str, list[str]] = {}
    for name, resident in residents.items():
        families.setdefault(resident.family, []).append(name)
    table = Table(title=f"{len(residents)} networks", title_justify="left", title_style="")
    table.add_column("family")
    table.add_column("networks")
    for family, names in families.items():
        table.add_row(family, ", ".join(names))
    console().print(table)


def made(puzzles: Sequence[Puzzle], folder: Path, as_json: bool) -> None:
    """The puzzles that were written: sizes, and how much of what is answered the circuits explain."""
    rows = [
        (p.name, len(p.wired.nodes), len(p.wired.edges), len(p.wired.composed), len(p.circuit.edges), p.circuit.kept)
        for p in puzzles
    ]
    if as_json:
        keys = ("name", "nodes", "edges", "composed", "true", "kept")
        json_line({"folder": str(folder), "puzzles": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    from rich.table import Table

    table = Table(title=f"networks → {folder}, answers → {folder / 'answers'}", title_justify="left", title_style="")
    for column in ("network", "nodes", "pairs", "of which compose", "true edges", "answers kept"):
        table.add_column(column)
    for name, *numbers, kept in rows:
        table.add_row(name, *map(str, numbers), f"{kept:.4g}")
    console().print(table)


def scored(found: Score, as_json: bool) -> None:
    """Scores of one result."""
    if as_json:
        json_line(asdict(found))
        return
    from rich.table import Table

    table = Table(title=found.name, title_justify="left", title_style="")
    for column in ("", "precision", "recall", "F1"):
        table.add_column(column)
    rows = {"edges": found.edges, "edges between nodes": found.between_nodes, "nodes": found.nodes}
    for name, agreement in rows.items():
        if agreement is not None:
            table.add_row(name, *(f"{v:.4g}" for v in (agreement.precision, agreement.recall, agreement.f1)))
    console().print(table)
    if found.auc is not None:
        console().print(f"ROC AUC over edges: {found.auc:.4g}")
    if found.faithfulness is not None:
        console().print(f"answers kept by the circuit alone: {found.faithfulness:.4g}")
