"""Training that nothing is lost of: finished runs are not computed again, killed ones go on from their checkpoint."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import jax
import numpy as np

from vitrify.learn import _disk
from vitrify.learn.groups import Group as Held
from vitrify.learn.plan import Group
from vitrify.learn.program import First, Probe, Program
from vitrify.learn.records import Record
from vitrify.learn.store import Store, run_id
from vitrify.learn.train import PAUSE, Journey, Progress, Watch, set_out

EVERY = 20.0  # seconds between checkpoints


def train_kept(
    groups: Sequence[Group],
    store: Store,
    *,
    probes: Mapping[str, Probe] | None = None,
    first: First | None = None,
    watch: Watch | None = None,
    every: float = EVERY,
    retry: bool = False,
) -> list[Record]:
    """Train what the store does not hold yet of some groups; the records of all their runs, in order."""
    found: list[Record] = []
    for group in groups:
        identities = group.identities()
        with store.open_many(identities, retry=retry) as opened:
            for held in opened.groups:
                part = replace(group, members=tuple(group.members[number] for number in held.numbers))
                _go(Program(part, probes or {}, first), held, watch, every)
        known = {record.id: record for record in store.runs()}
        found += [known[record.id] for record in opened.records]
    return found


def _go(program: Program, held: Held, watch: Watch | None, every: float) -> None:
    """Train the members of one program to the end, from where the store left them."""
    journey, saved = resumed(program, held), time.monotonic()
    logged = len(journey.points)
    for progress in journey.go():
        if len(journey.points) > logged:
            held.log(journey.points[-1])
            logged = len(journey.points)
        held.breathe()
        if time.monotonic() - saved > every:
            held.save(journey.step, checkpoint(journey), {})
            saved = time.monotonic()
        if watch:
            watch(progress)
    done = {}
    for row, run in enumerate(journey.runs()):
        if run.last["broken"] >= 0:
            step = int(run.last["broken"])
            held.fail(row, f"the loss was not a number at step {step} (seed {run.identity['seed']})", step)
        else:
            done[row] = (dict(run.last), dict(run.weights.arrays))
    if done:
        held.finish_all(done)


def checkpoint(journey: Journey) -> dict[str, Any]:
    """All that a step changes, as named arrays with members along the first axis."""
    whole = journey.program.joined(journey.lanes)
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(whole)}


def resumed(program: Program, held: Held) -> Journey:
    """A journey from its beginning, or from the store's latest checkpoint and the measurements before it."""
    latest = held.latest()
    if latest is None:
        return Journey(program)
    return Journey(program, latest.step, _lanes(program, latest.arrays), _points(held.lines()))


def _lanes(program: Program, arrays: Mapping[str, Any]) -> list[Any]:
    """The members of a program as a checkpoint names them."""
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(program.shapes)]
    whole = jax.tree.unflatten(jax.tree.structure(program.shapes), [arrays[name] for name in names])
    return program.apart(whole)


def _points(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Measurements as a journey holds them."""
    return [{name: value if name == "step" else np.asarray(value) for name, value in p.items()} for p in lines]


@dataclass(eq=False)
class _Saved(Journey):
    """A journey whose state is in one file after every so many seconds and at its end."""

    path: Path = Path()
    every: float = EVERY

    def go(self, pause: float = PAUSE) -> Iterator[Progress]:
        saved = time.monotonic()
        for progress in super().go(pause):
            if time.monotonic() - saved > self.every:
                self._save()
                saved = time.monotonic()
            yield progress
        self._save()

    def _save(self) -> None:
        with _disk.guarded(self.path.parent, f"saving step {self.step}"):
            about = {"step": self.step, "points": _disk.plain(self.points)}
            _disk.write_arrays(self.path, checkpoint(self), about)


@contextmanager
def resuming(folder: Path, every: float = EVERY) -> Iterator[None]:
    """Within: what `train` does is kept in a folder, and goes on from there when the same is done again.

    The trainings are told apart by their order and by what determines their members; probes and starts are taken to be
    the same ones, as they are when the same code runs again.
    """
    numbers = count()

    def begin(program: Program) -> Journey:
        digest = run_id({"members": program.group.identities(), "probes": sorted(program.probes)})
        path = folder / f"{next(numbers):03d}-{digest}.safetensors"
        with _disk.guarded(folder, "looking for an earlier training"):
            folder.mkdir(parents=True, exist_ok=True)
            found = _disk.read_arrays(path)
        if found is None:
            return _Saved(program, path=path, every=every)
        arrays, about = found
        return _Saved(program, about["step"], _lanes(program, arrays), _points(about["points"]), path, every)

    token = set_out.set(begin)
    try:
        yield
    finally:
        set_out.reset(token)
