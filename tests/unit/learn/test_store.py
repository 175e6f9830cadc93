"""Runs are found by what they are, go on from where they were, and are computed once, however they are grouped."""

from __future__ import annotations

import errno
import json
import math
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify import files
from vitrify.errors import DamagedStore, InputError, StoreError
from vitrify.learn import disk
from vitrify.learn.groups import RunGroup
from vitrify.learn.records import Index, Record, axes, rows
from vitrify.learn.repair import damaged, repair
from vitrify.learn.runs import run_id
from vitrify.learn.store import RunStore


def identity(seed: int, **more: Any) -> dict[str, Any]:
    return {"sandbox": {"name": "markov", "p": 0.2}, "model": {"name": "transformer"}, "seed": seed, "code": "1"} | more


def identities(*seeds: int) -> list[dict[str, Any]]:
    return [identity(seed) for seed in seeds]


def ids(*seeds: int) -> tuple[str, ...]:
    return tuple(run_id(identity(seed)) for seed in seeds)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


def work(group: RunGroup, start: int, stop: int, saved: int | None = None) -> None:
    """Log the steps from `start` below `stop`, each run its own numbers; save after the step `saved`."""
    seeds = np.array([_seed(group, run) for run in group.runs], float)
    for step in range(start, stop):
        group.log({"step": step, "floor": 0.5, "loss": seeds + step / 10})
        if step == saved:
            group.save(step, {"w": seeds * step}, {"rows": step * 32})


def _seed(group: RunGroup, run: str) -> int:
    return int(json.loads((group.store / run / "run.json").read_text())["identity"]["seed"])


def curve(seed: int, stop: int) -> list[dict[str, Any]]:
    return [{"step": step, "floor": 0.5, "loss": seed + step / 10} for step in range(stop)]


def test_an_id_is_the_hash_of_canonical_json() -> None:
    import hashlib

    text = '{"a":[1,2.5],"b":{"x":null,"é":true}}'
    given = {"b": {"é": True, "x": None}, "a": (1, 2.5)}
    assert run_id(given) == hashlib.sha256(text.encode()).hexdigest()[:16]
    assert run_id(identity(0)) != run_id(identity(1))
    for wrong in ({"p": math.nan}, {"p": np.float32(1)}, {"p": {1, 2}}):
        with pytest.raises(InputError, match="JSON"):
            run_id(wrong)


def test_a_run_from_beginning_to_end(store: RunStore) -> None:
    assert not store.path.exists()
    run = store.open(identity(0))
    assert (run.id, run.state, run.latest()) == (*ids(0), "new", None)
    run.log({"step": 1, "loss": np.float32(0.5), "by position": np.array([1.0, 2.0])})
    run.save(1, {"w": np.arange(3, dtype=np.float32), "n": np.array(7)}, {"rows": np.int64(32)})
    found = run.latest()
    assert found is not None
    assert (found.step, found.meta) == (1, {"rows": 32})
    assert found.arrays["w"].dtype == np.float32
    assert (found.arrays["w"] == np.arange(3)).all()
    assert found.arrays["n"].shape == ()
    run.log({"step": 2, "loss": math.nan, "worst": -math.inf})
    run.finish({"loss": 0.25, "floor": 0.2}, {"w": np.ones(2)})
    assert run.state == "finished"
    again = store.open(identity(0))
    assert again.state == "finished"
    assert again.record.values == {"step": 2, "worst": -math.inf, "loss": 0.25, "floor": 0.2}
    first, second = store.curve(again.record)
    assert first == {"step": 1, "loss": 0.5, "by position": [1.0, 2.0]}
    assert math.isnan(second["loss"])
    assert (store.weights(again.record)["w"] == 1).all()
    with pytest.raises(StoreError, match="finished"):
        again.log({"step": 3})
    assert list((store.path / "groups").iterdir()) == []


def test_every_line_is_standard_json(store: RunStore) -> None:
    with store.open(identity(0)) as run:
        run.log({"step": 1, "loss": math.nan, "more": [math.inf, "é"]})

    def refuse(word: str) -> None:
        raise AssertionError(word)

    (log,) = store.path.glob("groups/*/log.jsonl")
    assert json.loads(log.read_text(), parse_constant=refuse)["more"] == ["Infinity", "é"]


def test_going_on_drops_what_was_logged_after_the_checkpoint(store: RunStore) -> None:
    with store.open(identity(3)) as run:
        work(run.group, 0, 7, saved=4)
    run = store.open(identity(3))
    assert run.state == "partial"
    found = run.latest()
    assert found is not None
    assert (found.step, float(found.arrays["w"]), found.meta) == (4, 12.0, {"rows": 128})
    assert store.curve(store.runs()[0]) == curve(3, 5)
    work(run.group, 5, 9)
    run.finish({})
    assert store.curve(store.runs()[0]) == curve(3, 9)


def test_without_a_checkpoint_a_run_begins_again(store: RunStore) -> None:
    with store.open(identity(3)) as run:
        work(run.group, 0, 7)
    run = store.open(identity(3))
    assert run.state == "new"
    work(run.group, 0, 2)
    run.finish({})
    assert store.curve(store.runs()[0]) == curve(3, 2)


def test_the_last_two_checkpoints_are_kept_and_a_damaged_one_is_passed_over(store: RunStore) -> None:
    with store.open(identity(2)) as run:
        for step in range(6):
            work(run.group, step, step + 1, saved=step)
        with pytest.raises(InputError, match="step 5 is saved"):
            run.save(3, {}, {})
    older, newer = sorted(store.path.glob("groups/*/step-*"))
    newer.write_bytes(newer.read_bytes()[:-1])
    (newer.parent / ".left.partial").write_text("half")
    with store.open(identity(2)) as run:
        found = run.latest()
        assert found is not None
        assert found.step == 4
        assert not newer.exists()
        assert not list(newer.parent.glob(".*"))
        assert store.curve(store.runs()[0]) == curve(2, 5)
    log = older.parent / "log.jsonl"
    log.write_bytes(log.read_bytes()[:-1])  # too short for any checkpoint: no kill leaves it so
    with pytest.raises(DamagedStore, match=r"log\.jsonl is damaged"):
        store.open(identity(2))
    assert older.exists()
    assert list(repair(store)) == [f"groups/{older.parent.name}"]
    with store.open(identity(2)) as run:
        assert run.latest() is None
        assert log.read_bytes() == b""


def test_a_group_has_one_checkpoint_and_each_run_its_own_record(store: RunStore) -> None:
    with store.open_many(identities(0, 1, 2)) as opened:
        (group,) = opened.groups
        assert (group.runs, group.numbers) == (ids(0, 1, 2), (0, 1, 2))
        work(group, 0, 4, saved=2)
        group.finish(1, {"loss": 1.3}, {"w": np.ones(1)})
        with pytest.raises(InputError, match="already on record"):
            group.finish(1, {})
        group.fail(0, "loss is NaN", 3)
        with pytest.raises(InputError, match="row for each of 3"):
            group.log({"loss": np.zeros(2)})
        with pytest.raises(InputError, match=r"row for each of 3 runs: v$"):
            group.save(5, {"w": np.zeros((3, 2)), "v": np.zeros(2)}, {})
    assert [record.state for record in store.runs()] == ["failed", "finished", "partial"]
    assert [store.curve(record) for record in store.runs()] == [curve(seed, 4) for seed in range(3)]
    failed = store.open(identity(0))
    assert (failed.state, failed.record.message, failed.record.step) == ("failed", "loss is NaN", 3)
    with store.open_many(identities(2, 1, 0)) as opened:
        assert [record.state for record in opened.records] == ["partial", "finished", "failed"]
        (group,) = opened.groups
        assert (group.runs, group.numbers) == (ids(2), (0,))
        found = group.latest()
        assert found is not None
        assert found.arrays["w"].tolist() == [4.0]
        work(group, 3, 6)
        group.finish(0, {})
    assert store.curve(store.runs("seed=2")[0]) == curve(2, 6)
    assert list((store.path / "groups").iterdir()) == []


def test_a_failed_run_is_tried_again_only_when_asked(store: RunStore) -> None:
    store.open(identity(0)).fail("no memory", 0)
    assert store.open(identity(0)).state == "failed"
    with store.open(identity(0), retry=True) as run:
        assert run.state == "new"
        run.finish({"loss": 1.0})
    assert store.open(identity(0), retry=True).state == "finished"


def test_what_failed_begins_again_and_its_group_goes_on(store: RunStore) -> None:
    """What a checkpoint holds of a run that failed may be of no use."""
    with store.open_many(identities(0, 1, 2)) as opened:
        work(opened.groups[0], 0, 4, saved=3)
        opened.groups[0].fail(1, "no memory", 4)
    with store.open_many(identities(0, 1, 2), retry=True) as opened:
        assert [record.state for record in opened.records] == ["partial", "new", "partial"]
        assert {group.runs: group.step for group in opened.groups} == {ids(0, 2): 3, ids(1): None}


def test_a_run_that_is_done_while_it_is_read_is_done(store: RunStore) -> None:
    run = store.open(identity(0))
    run.log({"step": 1})
    last = disk.last_line

    def late(path: Path) -> Any:
        found = last(path)
        if run.state != "finished":
            run.finish({"loss": 1.0})
        return found

    record = Record.read(store.path, run.id, late)
    assert record is not None
    assert (record.state, record.values["loss"]) == ("finished", 1.0)


def test_a_record_that_is_damaged_is_named(store: RunStore) -> None:
    store.open(identity(0)).finish({})
    (store.path / ids(0)[0] / "run.json").write_text("")
    with pytest.raises(StoreError, match=r"run\.json is damaged"):
        store.open(identity(0))
    assert store.runs() == []
    assert list(store.unreadable) == list(ids(0))


def test_asking_in_other_groupings_loses_and_repeats_nothing(store: RunStore) -> None:
    """Part of a group goes on by itself; the rest stays where it was; all are found in the end."""
    with store.open_many(identities(0, 1, 2, 3)) as opened:
        work(opened.groups[0], 0, 4, saved=3)
    with store.open_many(identities(3, 1)) as opened:
        (group,) = opened.groups
        assert (group.runs, group.numbers) == (ids(1, 3), (1, 0))
        found = group.latest()
        assert found is not None
        assert found.arrays["w"].tolist() == [3.0, 9.0]
        work(group, 4, 6, saved=5)
    assert [record.identity["seed"] for record in store.runs()] == [0, 1, 2, 3]  # still in the order begun
    with store.open_many(identities(4, 3, 2, 1, 0)) as opened:
        states = [record.state for record in opened.records]
        assert states == ["new", "partial", "partial", "partial", "partial"]
        steps = {group.runs: group.step for group in opened.groups}
        assert steps == {ids(1, 3): 5, ids(0, 2): 3, ids(4): None}
        for group in opened.groups:
            work(group, 0 if group.step is None else group.step + 1, 8)
            group.finish_all({row: ({}, None) for row in range(len(group))})
    assert [store.curve(record) for record in store.runs()] == [curve(seed, 8) for seed in range(5)]
    assert store.open_many(identities(*range(5))).groups == ()
    assert list((store.path / "groups").iterdir()) == []


def test_what_is_held_is_left_to_its_holder(store: RunStore) -> None:
    with store.open_many(identities(0, 1)) as first:
        with store.open_many(identities(1, 2)) as second:
            assert [record.state for record in second.records] == ["running", "new"]
            assert [group.runs for group in second.groups] == [ids(2)]
        assert store.open(identity(0)).state == "running"
        assert [record.state for record in store.runs()] == ["running", "running", "new"]
        assert f"process {os.getpid()}" in (store.runs()[0].message or "")
        with pytest.raises(StoreError, match=f"running .process {os.getpid()}"):
            store.open(identity(0)).finish({})
    (closed,) = first.groups
    with pytest.raises(StoreError, match="closed"):
        closed.log({"step": 1})
    with store.open(identity(0)) as run:
        assert run.state == "new"


def test_looking_does_not_get_in_the_way_of_opening(store: RunStore) -> None:
    """A listing asks whether a group is held; whoever opens it at that moment must still get it."""
    import fcntl
    import threading

    store.open(identity(0)).close()
    (lock,) = store.path.glob("groups/*/lock")
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        threading.Timer(files.LOCK_PAUSE_SECONDS * 1.5, fcntl.flock, (file, fcntl.LOCK_UN)).start()
        with store.open(identity(0)) as run:
            assert run.state == "new"


def test_the_same_run_twice_and_another_run_of_the_same_name_are_refused(store: RunStore) -> None:
    with pytest.raises(InputError, match="twice"):
        store.open_many(identities(1, 1))
    assert not store.path.exists()
    store.open(identity(0)).close()
    place = store.path / ids(0)[0] / "run.json"
    place.write_text(place.read_text().replace("0.2", "0.3"))
    with pytest.raises(StoreError, match="another run"):
        store.open(identity(0))


def test_a_result_that_lost_a_part_in_a_power_cut_does_not_count(store: RunStore) -> None:
    """Its group is still there, as it goes only when all is on the disk: the run resumes from its checkpoint."""
    with store.open_many(identities(0, 1)) as opened:
        (group,) = opened.groups
        work(group, 0, 4, saved=3)
        group.finish(0, {"loss": 1.0}, {"w": np.ones(3)})
    (store.path / ids(0)[0] / "weights.safetensors").write_bytes(b"")
    assert [record.state for record in store.runs()] == ["partial", "partial"]
    with store.open(identity(0)) as run:
        found = run.latest()
        assert found is not None
        assert found.step == 3
        run.finish({"loss": 1.0}, {"w": np.ones(3)})
    assert [record.state for record in store.runs()] == ["finished", "partial"]


def test_a_damaged_result_is_not_trained_again_before_it_is_moved_aside(store: RunStore) -> None:
    store.open(identity(0)).finish({"loss": 1.0}, {"w": np.ones(3)})
    store.open(identity(1)).finish({"loss": 2.0})
    (name,) = ids(0)
    (store.path / name / "weights.safetensors").write_bytes(b"")
    assert [record.identity["seed"] for record in store.runs()] == [1]
    assert "weights.safetensors of this run is not as long as it was" in store.unreadable[name]
    with pytest.raises(DamagedStore, match="vitrify runs --repair"):
        store.open(identity(0))
    assert list(repair(store)) == [name]
    assert (store.path / "damaged" / f"{name}.1" / "result.json").exists()
    assert repair(store) == {}
    with store.open(identity(0)) as run:
        assert run.state == "new"


@pytest.mark.parametrize(("file", "name"), [("log.jsonl", "loss"), ("weights.safetensors", "w")])
def test_a_flipped_bit_is_found_by_the_repair(store: RunStore, file: str, name: str) -> None:
    with store.open(identity(0)) as run:
        run.log({"step": 1, "loss": 1.5})
        run.finish({}, {"w": np.arange(4.0)})
    path = store.path / ids(0)[0] / file
    data = bytearray(path.read_bytes())
    data[data.rindex(b"5") if name == "loss" else -3] ^= 1
    path.write_bytes(data)
    assert list(damaged(store)) == list(ids(0))
    assert f"{file} of run {ids(0)[0]} changed since it was done" in repair(store)[ids(0)[0]]
    assert store.runs() == []


def test_a_flipped_bit_in_a_checkpoint_is_refused(store: RunStore) -> None:
    with store.open_many(identities(0, 1)) as opened:
        work(opened.groups[0], 0, 2, saved=1)
    (checkpoint,) = store.path.glob("groups/*/step-*")
    data = bytearray(checkpoint.read_bytes())
    data[-3] ^= 1
    checkpoint.write_bytes(data)
    with pytest.raises(DamagedStore, match="its numbers are not those written"):
        store.open_many(identities(0, 1))
    assert list(repair(store)) == [f"groups/{checkpoint.parent.name}"]
    with store.open_many(identities(0, 1)) as opened:
        assert opened.groups[0].step is None


def test_a_store_of_another_version_is_refused(store: RunStore) -> None:
    store.open(identity(0)).close()
    (store.path / "store.json").write_text('{"format": "vitrify-runs", "version": 2}')
    for asked in (store.runs, lambda: store.open(identity(0)), lambda: repair(store)):
        with pytest.raises(StoreError, match="another version"):
            asked()


def test_names_in_a_store_lead_nowhere_else(store: RunStore, tmp_path: Path) -> None:
    """A group's name is a folder that is removed when its runs are done."""
    other = tmp_path / "mine"
    other.mkdir()
    store.open(identity(0)).close()
    place = store.path / ids(0)[0] / "run.json"
    known = json.loads(place.read_text())
    place.write_text(json.dumps(known | {"group": "../../mine"}))
    with pytest.raises(DamagedStore, match="its group has another name"):
        store.open(identity(0))
    assert other.is_dir()


def settled(store: RunStore) -> None:
    """As if everything had been written long ago."""
    for place in store.path.iterdir():
        if place.is_dir():
            os.utime(place, (1e9, 1e9))


def test_the_index_is_a_cache(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(4):
        with store.open(identity(seed)) as run:
            run.log({"step": 1, "loss": float(seed), "odd": math.inf})
            if seed < 2:
                run.finish({"loss": math.nan if seed else 0.5})
    settled(store)
    plain = store.runs()
    reads: list[str] = []
    read: Callable[..., Record | None] = Record.read

    def counted(path: Path, run: str, last: Any) -> Record | None:
        reads.append(run)
        return read(path, run, last)

    monkeypatch.setattr(Record, "read", counted)
    assert repr(store.runs()) == repr(plain)
    assert sorted(reads) == sorted(ids(2, 3))  # those that are done are not read again
    with sqlite3.connect(Index(store.path).file) as index:
        assert index.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    index.close()
    Index(store.path).forget()
    assert repr(store.runs()) == repr(plain)
    store.rebuild()
    assert repr(store.runs()) == repr(plain)
    Index(store.path).file.write_bytes(b"not a database" * 100)
    assert repr(store.runs()) == repr(plain)
    assert repr(store.runs()) == repr(plain)
    shutil.rmtree(store.path / ids(0)[0])
    assert repr(store.runs()) == repr(plain[1:])
    assert repr(store.runs()) == repr(plain[1:])


def test_the_index_notices_changes_and_does_not_trust_young_folders(store: RunStore) -> None:
    store.open(identity(0)).fail("no memory", 0)
    assert [record.state for record in store.runs()] == ["failed"]
    assert not Index(store.path).file.exists()
    settled(store)
    assert [record.state for record in store.runs()] == ["failed"]
    with store.open(identity(0), retry=True) as run:
        assert [record.state for record in store.runs()] == ["running"]
        run.finish({})
    assert [record.state for record in store.runs()] == ["finished"]


def test_rebuilding_removes_groups_that_nobody_needs(store: RunStore) -> None:
    with store.open(identity(0)) as run:
        work(run.group, 0, 2, saved=1)
        (folder,) = store.path.glob("groups/*")
        shutil.copytree(folder, store.path / "groups" / ".half.partial")
        shutil.copytree(folder, store.path / "groups" / "0123")
        store.rebuild()
        assert list(store.path.glob("groups/*")) == [folder]
    store.rebuild()
    assert list(store.path.glob("groups/*")) == [folder]


def test_queries(store: RunStore) -> None:
    for seed, kind in enumerate(("markov", "dyck", "dyck")):
        made = identity(seed, sandbox={"name": kind, "p": 0.1 * seed}, model={"name": "rnn", "p": 9, "tied": seed == 1})
        with store.open(made) as run:
            run.finish({"loss": 1.0 - seed / 4}) if seed else run.fail("NaN at step 3", 3)

    def seeds(query: str) -> list[int]:
        return [record.identity["seed"] for record in store.runs(query)]

    assert seeds("") == [0, 1, 2]
    assert seeds("dyck") == seeds("sandbox=dyck") == seeds("state=finished") == seeds("sandbox!=markov") == [1, 2]
    assert seeds("loss<0.75") == seeds("dyck seed>1") == seeds("loss<=0.5") == [2]
    assert seeds("sandbox.p>=0.1 sandbox.p<0.15") == seeds("tied=true") == [1]
    assert seeds("p=9") == [0, 1, 2]  # `p` is any value whose name ends in it
    assert seeds(run_id(store.runs()[1].identity)[:8]) == [1]
    assert seeds("sandbox<zoo") == []
    with pytest.raises(InputError, match="did you mean loss"):
        store.runs("los<1")


def test_axes_are_what_differs_once(store: RunStore) -> None:
    for seed in range(3):
        made = {
            "sandbox": {"name": "markov", "p": 0.2, "q": seed % 2},
            "seed": seed,
            "data_seed": seed,
            "version": seed,
        }
        store.open(made).finish({"loss": 0.5 + seed, "floor": 0.5})
    assert axes(store.runs()) == ["sandbox.q", "seed"]
    assert axes(store.runs("seed=1")) == []
    columns, lines = rows(store.runs())
    assert columns == ["id", "sandbox", "model", "sandbox.q", "seed", "state", "step", "loss", "floor", "excess"]
    assert [line[1:] for line in lines] == [
        ["markov", None, seed % 2, seed, "finished", None, 0.5 + seed, 0.5, float(seed)] for seed in range(3)
    ]


def test_what_is_no_store_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(StoreError, match="not a run store"):
        RunStore(tmp_path).open(identity(0))
    with pytest.raises(StoreError, match="not a run store"):
        RunStore(tmp_path).runs()
    with pytest.raises(StoreError, match="there is no run store"):
        RunStore(tmp_path / "none").runs()
    assert [place.name for place in tmp_path.iterdir()] == ["mine.txt"]
    monkeypatch.setenv("VITRIFY_STORE", str(tmp_path / "other"))
    assert RunStore().path == tmp_path / "other"
    monkeypatch.delenv("VITRIFY_STORE")
    assert RunStore().path == Path("runs")


@pytest.mark.parametrize(
    ("number", "words"),
    [(errno.EACCES, "no permission"), (errno.EROFS, "read-only"), (errno.ENOSPC, "disk is full")],
)
def test_an_unwritable_store_is_refused_before_any_work(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StoreError, match=words) as caught:
        store.open(identity(0))
    assert str(store.path) in str(caught.value)


def test_a_store_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "runs", tmp_path / "file"):
        with pytest.raises(StoreError, match="file"):
            RunStore(path).open(identity(0))


def test_a_disk_that_fills_up_during_a_run(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a line is written, then nothing: when there is room again, the line goes on where it stopped."""
    run = store.open(identity(1))
    work(run.group, 0, 3, saved=2)
    write, room = os.write, [100]

    def little(file: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = write(file, bytes(data[: room[0]]))
        room[0] -= done
        return done

    monkeypatch.setattr(os, "write", little)
    work(run.group, 3, 9)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"disk is full.*kept"):
            run.save(8, {"w": np.float64(8)}, {})
    (folder,) = store.path.glob("groups/*")
    assert disk.read_lines(folder / "log.jsonl") == curve_lines(1, 5)  # the half line is not read
    monkeypatch.undo()
    run.save(8, {"w": np.float64(8)}, {})
    run.close()
    assert store.curve(store.runs()[0]) == curve(1, 9)
    run = store.open(identity(1))
    room[0] = 0
    monkeypatch.setattr(os, "write", little)
    with pytest.raises(StoreError, match="disk is full"):
        run.finish({})
    assert store.runs()[0].state == "running"
    monkeypatch.undo()
    run.finish({})
    assert store.runs()[0].state == "finished"


def curve_lines(seed: int, stop: int) -> list[dict[str, Any]]:
    return [{"step": line["step"], "floor": 0.5, "each": {"loss": [line["loss"]]}} for line in curve(seed, stop)]


LIMITED = """
import resource, sys
import numpy as np
from pathlib import Path
from vitrify.errors import StoreError
from vitrify.learn.store import RunStore
run = RunStore(Path(sys.argv[1])).open({"seed": 0})
run.log({"step": 1})
run.save(1, {"w": np.ones(10)}, {})
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    run.save(2, {"w": np.ones(1000)}, {})
except StoreError as error:
    print(error)
"""


def test_a_checkpoint_that_the_system_refuses_leaves_the_one_before(store: RunStore) -> None:
    """A real limit on the size of files, which stops safetensors' own writing."""
    assert resource.RLIMIT_FSIZE
    done = subprocess.run([sys.executable, "-c", LIMITED, store.path], capture_output=True, text=True, check=True)
    assert "ulimit" in done.stdout
    assert "kept" in done.stdout
    run = store.open({"seed": 0})
    found = run.latest()
    assert found is not None
    assert found.step == 1
    assert [path.name for path in run.group.folder.glob(".*")] == []
    run.close()


def test_a_line_is_written_out_after_a_while(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.open(identity(0)) as run:
        run.log({"step": 1})
        assert store.curve(store.runs()[0]) == []
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 60)
        run.log({"step": 2})
        assert store.curve(store.runs()[0]) == [{"step": 1}, {"step": 2}]
        assert store.runs()[0].step == 2


def test_the_last_line_of_a_log_however_long(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    assert disk.last_line(path) is None
    for long in (1, 1 << 15, 1 << 17, 5 << 20):
        path.write_text('{"first":1}\n' + json.dumps({"x": "y" * long}) + '\n{"torn":')
        assert disk.last_line(path) == {"x": "y" * long}
    path.write_text('{"only":1}\n')
    assert disk.last_line(path) == {"only": 1}
    path.write_text('{"torn":1')
    assert disk.last_line(path) is None
