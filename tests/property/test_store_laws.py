"""However writing is interrupted, what is recovered is the uninterrupted log up to the checkpoint gone on from."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from vitrify import encoding
from vitrify.learn.repair import repair
from vitrify.learn.runs import run_id
from vitrify.learn.store import RunStore

SIZE = 3
QUICK = Path("/dev/shm") if Path("/dev/shm").is_dir() else None  # a disk that need not be waited for
MEMBERS = [{"seed": number} for number in range(SIZE)]


def line(step: int, seed: int) -> dict[str, Any]:
    """What is logged about a run at a step: a function of both, as in a deterministic training."""
    return {"step": step, "shared": f"é{step}", "loss": math.nan if (step + seed) % 5 == 0 else seed + step / 7}


def uninterrupted(stop: int, seed: int) -> str:
    return repr([line(step, seed) for step in range(stop)])


moves = st.lists(
    st.one_of(
        st.tuples(st.just("log"), st.integers(1, 4)),
        st.tuples(st.just("save"), st.just(0)),
        st.tuples(st.just("flush"), st.just(0)),
        st.tuples(st.just("reopen"), st.just(0)),
        st.tuples(st.just("tear log"), st.integers(0, 1 << 16)),
        st.tuples(st.just("tear checkpoint"), st.integers(0, 1 << 16)),
        st.tuples(st.just("part"), st.integers(1, 2**SIZE - 2)),
    ),
    max_size=25,
)


class Training:
    """Members that count their steps, and a store that is treated badly; the state is in the arrays only."""

    def __init__(self, path: Path) -> None:
        self.store = RunStore(path)
        self.open(range(SIZE))

    def open(self, seeds: Any) -> None:
        self.groups = list(self.store.open_many([MEMBERS[seed] for seed in seeds]).groups)
        self.steps = []
        for group in self.groups:
            found = group.latest()
            self.steps.append(0 if found is None else int(found.arrays["step"][0]))
            assert found is None or (found.step, found.meta) == (self.steps[-1], {"rows": 2 * self.steps[-1]})
            for run in group.runs:  # the law
                seed = self.seed(run)
                (record,) = (record for record in self.store.runs() if record.id == run)
                assert repr(self.store.curve(record)) == uninterrupted(self.steps[-1], seed)
                assert found is None or found.arrays["seed"][group.runs.index(run)] == seed

    def seed(self, run: str) -> int:
        return next(seed for seed, identity in enumerate(MEMBERS) if run_id(identity) == run)

    def log(self) -> None:
        for number, group in enumerate(self.groups):
            step, seeds = self.steps[number], [self.seed(run) for run in group.runs]
            lines = [line(step, seed) for seed in seeds]
            group.log({"step": step, "shared": f"é{step}", "loss": np.array([one["loss"] for one in lines])})
            self.steps[number] += 1

    def save(self) -> None:
        for group, step in zip(self.groups, self.steps, strict=True):
            seeds = np.array([self.seed(run) for run in group.runs])
            group.save(step, {"step": np.full(len(group), step), "seed": seeds}, {"rows": 2 * step})

    def kill(self) -> None:
        """End without the log being written out, as `kill -9` does."""
        for group in self.groups:
            group._pending.clear()
            group.close()

    def tear(self, pattern: str, where: int) -> None:
        """Kill, and cut the newest file of a kind at some byte."""
        self.kill()
        for folder in sorted((self.store.path / "groups").iterdir()):
            files = sorted(folder.glob(pattern))
            if files:
                data = files[-1].read_bytes()
                files[-1].write_bytes(data[: where % (len(data) + 1)])
        repair(self.store)  # where no checkpoint is left to go on from


@settings(max_examples=examples(60), deadline=None)
@given(moves)
def test_any_interruption_recovers_the_uninterrupted_log(done: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory(dir=QUICK) as folder:
        training = Training(Path(folder) / "runs")
        for move, number in done:
            match move:
                case "log":
                    for _ in range(number):
                        training.log()
                case "save":
                    training.save()
                case "flush":
                    for group in training.groups:
                        group.flush()
                case "part":
                    training.kill()
                    training.open([seed for seed in range(SIZE) if number >> seed & 1])
                case "reopen":
                    training.kill()
                    training.open(range(SIZE))
                case _:
                    training.tear("log.jsonl" if move == "tear log" else "step-*", number)
                    training.open(range(SIZE))
        training.kill()
        training.open(range(SIZE))
        assert sorted(run for group in training.groups for run in group.runs) == sorted(map(run_id, MEMBERS))
        training.log()
        for group in training.groups:
            group.finish_all({row: ({}, None) for row in range(len(group))})
        records = training.store.runs()
        assert [record.state for record in records] == ["finished"] * SIZE
        for record in records:
            lines = training.store.curve(record)
            assert repr(lines) == uninterrupted(len(lines), record.identity["seed"])
            assert lines
        assert not list((training.store.path / "groups").iterdir())


texts = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats()
    | st.text(max_size=5).filter(lambda text: text not in encoding.NON_FINITE)
    | st.sampled_from(["'NaN", "nan", "-infinity"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(60))
@given(st.dictionaries(st.text(max_size=4), texts, max_size=4))
def test_lines_are_one_line_and_read_back(data: dict[str, Any]) -> None:
    text = encoding.line(data)
    assert "\n" not in text
    assert "\r" not in text
    assert repr(encoding.parsed(text)) == repr(data)
