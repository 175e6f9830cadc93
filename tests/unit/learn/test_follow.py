"""Looking on at a store: every line once, whatever happens to the files meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify import encoding
from vitrify.learn.follow import Follower, Tail
from vitrify.learn.store import RunStore


def identity(seed: int) -> dict[str, Any]:
    return {"sandbox": {"name": "markov", "p": 0.2}, "model": {"name": "transformer"}, "seed": seed}


def test_a_tail_gives_whole_lines_only_and_reads_none_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    tail = Tail(path)
    assert tail.look() == []
    path.write_text('{"step":1}\n{"st')
    assert tail.look() == [{"step": 1}]
    with path.open("a") as file:
        file.write('ep":2}\n')
    decoded: list[bytes] = []
    decode = encoding.parsed

    def counted(text: bytes) -> Any:
        decoded.append(text)
        return decode(text)

    monkeypatch.setattr(encoding, "parsed", counted)
    assert tail.look() == [{"step": 1}, {"step": 2}]
    assert decoded == [b'{"step":2}']


def test_a_log_that_is_cut_or_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"step":1}\n{"step":2}\n')
    tail = Tail(path)
    assert len(tail.look()) == 2
    path.write_text('{"step":1}\n')
    assert tail.look() == [{"step": 1}]
    other = tmp_path / "other"
    other.write_text('{"step":7}\n{"step":8}\n{"step":9}\n')
    other.replace(path)
    assert [line["step"] for line in tail.look()] == [7, 8, 9]
    path.unlink()
    assert tail.look() == []


def test_a_run_is_followed_from_its_first_line_to_its_end(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    follower = Follower(store)
    with store.open_many([identity(seed) for seed in range(2)]) as opened:
        (group,) = opened.groups
        assert follower.curves(follower.store.runs()) == [[], []]
        for step in (1, 2):
            group.log({"step": step, "loss": np.array([0.5, 0.7]) / step})
        group.flush()
        records = follower.store.runs()
        assert {record.state for record in records} == {"running"}
        curves = dict(zip((record.flat["seed"] for record in records), follower.curves(records), strict=True))
        assert [point["loss"] for point in curves[1]] == [0.7, 0.35]
        group.finish_all({0: ({"loss": 0.1}, None), 1: ({"loss": 0.2}, None)})
    records = follower.store.runs("seed=0")
    assert [record.state for record in records] == ["finished"]
    assert [point["loss"] for point in follower.curves(records)[0]] == [0.5, 0.25]


def test_a_log_is_written_out_soon_though_no_line_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("vitrify.learn.groups.time.monotonic", lambda: now[0])
    store = RunStore(tmp_path / "runs")
    with store.open_many([identity(0)]) as opened:
        (group,) = opened.groups
        log = group.folder / "log.jsonl"
        group.log({"step": 1})
        assert log.read_text() == ""
        now[0] += 0.6
        group.flush_if_due()
        assert log.read_text() == '{"step":1}\n'


def test_a_stamp_changes_with_every_change_and_with_nothing_else(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "runs")
    follower = Follower(store)
    stamps = [follower.stamp()]
    with store.open_many([identity(0), identity(1)]) as opened:
        (group,) = opened.groups
        stamps.append(follower.stamp())
        group.log({"step": 1, "loss": np.array([0.5, 0.7])})
        group.flush()
        stamps.append(follower.stamp())
        group.finish(0, {"loss": 0.5})
        stamps.append(follower.stamp())
        follower.curves(follower.store.runs())
        assert follower.stamp() == stamps[-1]
    stamps.append(follower.stamp())  # nobody works on it any more
    assert len(set(stamps)) == 5
