"""What other tools read is what the store holds."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify.errors import InputError
from vitrify.learn import exports
from vitrify.learn.store import RunStore


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    store = RunStore(tmp_path / "runs")
    asked = [
        {"sandbox": {"name": "markov", "p": 0.2 + seed / 10}, "model": {"name": "rnn"}, "seed": seed, "mixed": mixed}
        for seed, mixed in enumerate((1, "two", [3]))
    ]
    with store.open_many(asked) as opened:
        (group,) = opened.groups
        for step in (1, 2, 4):
            loss = np.array([1.0, 2.0, math.nan]) / step
            group.log({"step": step, "floor": 0.25, "note": "x", "loss": loss, "by": np.ones((3, 2)) * step})
        group.finish(0, {"loss": 0.25, "held": True}, {"w": np.ones(2)})
        group.fail(2, "NaN!", 4)
    return store


def check_table(frame: Any) -> None:
    assert list(frame["seed"]) == [0, 1, 2]
    assert list(frame["state"]) == ["finished", "new", "failed"]
    assert list(frame["sandbox"]) == ["markov"] * 3
    assert np.allclose(frame["sandbox.p"], [0.2, 0.3, 0.4])
    assert np.allclose(frame["loss"], [0.25, 0.5, math.nan], equal_nan=True)
    assert list(frame["mixed"]) == ["1", '"two"', "[3]"]
    assert list(frame["step"]) == [4, 4, 4]
    assert list(frame["message"])[2] == "NaN!"


def test_tables_round_trip(store: RunStore, tmp_path: Path) -> None:
    import pandas

    frame = exports.table(store.runs())
    check_table(frame)
    exports.write_table(frame, tmp_path / "new" / "runs.parquet")
    check_table(pandas.read_parquet(tmp_path / "new" / "runs.parquet"))
    exports.write_table(frame, tmp_path / "runs.csv")
    check_table(pandas.read_csv(tmp_path / "runs.csv", keep_default_na=False, na_values=[""], dtype={"mixed": str}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "runs", "runs.csv"]
    with pytest.raises(InputError, match=r"\.parquet or \.csv"):
        exports.write_table(frame, tmp_path / "runs.xlsx")


def test_curves_round_trip(store: RunStore, tmp_path: Path) -> None:
    import pandas

    exports.write_table(exports.curves(store, store.runs()), tmp_path / "curves.parquet")
    frame = pandas.read_parquet(tmp_path / "curves.parquet")
    assert list(frame.columns) == ["id", "sandbox.p", "seed", "mixed", "step", "floor", "note", "loss", "by"]
    assert list(frame["step"]) == [1, 2, 4] * 3
    assert np.allclose(frame["loss"], [1, 0.5, 0.25, 2, 1, 0.5, *[math.nan] * 3], equal_nan=True)
    assert json.loads(frame["by"][2]) == [4.0, 4.0]
    assert list(exports.curves(store, store.runs("state=none-such"))) == []


def events(path: Path) -> Iterator[Any]:
    """The records of an event file, read by its published layout: length, checksum, data, checksum."""
    from tensorboardX.proto.event_pb2 import Event

    data, place = path.read_bytes(), 0
    while place < len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        yield Event.FromString(data[place + 12 : place + 12 + length])
        place += length + 16


def test_event_files_hold_every_number(store: RunStore, tmp_path: Path) -> None:
    for _ in range(2):  # again, in the same place
        count = exports.write_tensorboard(store, store.runs(), tmp_path / "events")
        assert count == 3 * 3 * 2
        for record in store.runs():
            (file,) = (tmp_path / "events" / record.id).iterdir()
            found = [
                (event.step, value.tag, value.simple_value)
                for event in events(file)
                for value in event.summary.value
                if value.HasField("simple_value")
            ]
            lines = store.curve(record)
            wanted = [(line["step"], tag, line[tag]) for line in lines for tag in ("floor", "loss")]
            assert repr(found) == repr(wanted)
            file.rename(file.with_name("events.out.tfevents.1.before"))


@pytest.mark.parametrize(("module", "extra"), [("pandas", "tables"), ("tensorboardX", "tensorboard")])
def test_what_is_not_installed_is_named(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, extra: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    asked: dict[str, Callable[[Any], Any]] = {
        "pandas": exports.table,
        "tensorboardX": lambda runs: exports.write_tensorboard(store, runs, tmp_path),
    }
    with pytest.raises(InputError, match=rf"{module}.*vitrify\[{extra}\]"):
        asked[module](store.runs())
