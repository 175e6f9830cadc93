"""The commands about learning; `app.py` registers them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StoreFolder = Annotated[
    Path | None,
    typer.Option("--store", metavar="DIR", help="the run store; by default, VITRIFY_STORE or ./runs"),
]


def runs(
    query: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUERY…", help="words, or key=value, key<value … (=, !=, <, <=, >, >=): all must hold"),
    ] = None,
    store: StoreFolder = None,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write a table, a row for every run: .parquet or .csv")
    ] = None,
    curves: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write a table, a row for every line logged: .parquet or .csv")
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="DIR", help="write the curves as event files, a folder for every run")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable output")] = False,
) -> None:
    """List the runs of a store: what differs between them, how far they are, and how near to the best possible."""
    from vitrify.cli import render_learning
    from vitrify.learn import exports
    from vitrify.learn.store import Store

    opened = Store(store)
    found = opened.runs(" ".join(query or []))
    if export:
        exports.write_table(exports.table(found), export)
    if curves:
        exports.write_table(exports.curves(opened, found), curves)
    if tensorboard:
        exports.write_tensorboard(opened, found, tensorboard)
    written = [path for path in (export, curves, tensorboard) if path]
    render_learning.runs(found, written, as_json)


COMMANDS = (runs,)
