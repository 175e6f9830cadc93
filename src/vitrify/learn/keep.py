"""Training that nothing is lost of: finished runs are not computed again, killed ones go on from their checkpoint."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from vitrify.learn import _disk
from vitrify.learn.plan import Group
from vitrify.learn.program import First, Probe, Program
from vitrify.learn.records import Record
from vitrify.learn.shards import EVERY, checkpoint, lanes_of, points_of, told, write_down
from vitrify.learn.store import Store, run_id
from vitrify.learn.train import PAUSE, Journey, Progress, Watch, set_out


def train_kept(
    groups: Sequence[Group],
    store: Store,
    *,
    probes: Mapping[str, Probe] | None = None,
    first: First | None = None,
    watch: Watch | None = None,
    every: float = EVERY,
    retry: bool = False,
    devices: int = 1,
) -> list[Record]:
    """Train what the store does not hold yet of some groups; the records of all their runs, in order.

    On how many devices is no part of what a run is: one that was begun on one goes on on several.
    """
    found: list[Record] = []
    for group in groups:
        identities = group.identities()
        with store.open_many(identities, retry=retry) as opened:
            for held in opened.groups:
                part = replace(group, members=tuple(group.members[number] for number in held.numbers))
                program = Program(part, probes or {}, first, devices=devices)
                for news in told(program, held.latest(), held.lines(), every):
                    write_down(held, news)
                    if watch and news.worked is None:
                        watch(news.progress(part))
        known = {record.id: record for record in store.runs()}
        found += [known[record.id] for record in opened.records]
    return found


@dataclass(eq=False)
class _Saved(Journey):
    """A journey whose state is in one file after every so many seconds and at its end."""

    path: Path = Path()
    every: float = EVERY
    before: float = 0.0  # seconds, of those who were stopped
    began: float = field(default_factory=time.monotonic)

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
            spent = self.before + time.monotonic() - self.began
            about = {"step": self.step, "points": _disk.plain(self.points), "seconds": spent}
            _disk.write_arrays(self.path, checkpoint(self), about)


@dataclass
class Earlier:
    """What was done before, of trainings that go on."""

    seconds: float = 0.0


@contextmanager
def resuming(folder: Path, every: float = EVERY) -> Iterator[Earlier]:
    """Within: what `train` does is kept in a folder, and goes on from there when the same is done again.

    Who enters is told how long it was done before. The trainings are told apart by their order and by what determines
    their members; probes and starts are taken to be the same ones, as they are when the same code runs again.
    """
    numbers, earlier = count(), Earlier()

    def begin(program: Program) -> Journey:
        digest = run_id({"members": program.group.identities(), "probes": sorted(program.probes)})
        path = folder / f"{next(numbers):03d}-{digest}.safetensors"
        with _disk.guarded(folder, "looking for an earlier training"):
            folder.mkdir(parents=True, exist_ok=True)
            found = _disk.read_arrays(path)
        if found is None:
            return _Saved(program, path=path, every=every)
        arrays, about = found
        spent = about.get("seconds", 0.0)  # earlier versions did not tell
        earlier.seconds += spent
        way = program, about["step"], lanes_of(program, arrays), points_of(about["points"])
        return _Saved(*way, path, every, spent)

    token = set_out.set(begin)
    try:
        yield earlier
    finally:
        set_out.reset(token)
