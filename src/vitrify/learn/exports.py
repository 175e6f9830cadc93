"""Runs for other tools: tables for pandas (Parquet, CSV) and event files for TensorBoard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from vitrify import encoding
from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.files import whole_file
from vitrify.learn.records import Record, axes
from vitrify.learn.store import RunStore
from vitrify.optional import need

DataFrame: TypeAlias = Any  # of pandas, which is imported only where it is used


def table(records: Sequence[Record]) -> DataFrame:
    """A data frame with a row for every run: what it is, and what came of it."""
    more = ("message", "started", "ended")
    return _frame([{**record.flat, **{name: getattr(record, name) for name in more}} for record in records])


def curves(store: RunStore, records: Sequence[Record]) -> DataFrame:
    """A data frame with a row for every line of every log, beside what differs between the runs."""
    varied = axes(records)
    return _frame(
        [
            {"id": record.id, **{name: record.flat.get(name) for name in varied}, **line}
            for record, lines in store.curves(records)
            for line in lines
        ]
    )


def write_table(frame: DataFrame, path: Path) -> None:
    """Write a data frame, in one step; the end of the name says how: .parquet or .csv."""
    if path.suffix not in (".parquet", ".csv"):
        raise InputError(f"{path}: a table is written to a file that ends in .parquet or .csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as partial:
        if path.suffix == ".csv":
            frame.to_csv(partial, index=False)
        else:
            need("pyarrow", "tables")
            frame.to_parquet(partial, index=False)


def write_tensorboard(store: RunStore, records: Sequence[Record], folder: Path) -> int:
    """Write a folder of event files, one for every run, with every number of its log; how many numbers there were."""
    writer = need("tensorboardX", "tensorboard").SummaryWriter
    count = 0
    for record, lines in store.curves(records):
        place = folder / record.id
        for old in place.glob("events.*"):
            old.unlink()
        with writer(str(place)) as events:
            events.add_text("identity", encoding.line(record.identity), 0)
            for line in lines:
                for name, value in line.items():
                    if name != "step" and isinstance(value, int | float):
                        events.add_scalar(name, value, line.get("step"))
                        count += 1
    return count


def _frame(rows: list[JsonObject]) -> DataFrame:
    """A data frame; columns of lists or of several types hold JSON, as files know one type a column."""
    pandas = need("pandas", "tables")
    frame = pandas.DataFrame(rows)
    for name in frame.columns:
        kinds = {type(row[name]) for row in rows if row.get(name) is not None}
        if not (kinds <= {int, float} or kinds <= {str} or kinds <= {bool}):
            frame[name] = [None if row.get(name) is None else encoding.line(row[name]) for row in rows]
    return frame
