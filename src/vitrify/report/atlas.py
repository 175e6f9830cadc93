"""The atlas: evidence of every claim, and a site about it that is there from the start and fills in.

What was checked is kept in the folder `store` of the site, so that an atlas that was interrupted goes on where it was,
and nothing is checked again that did not change.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from vitrify.claims import is_learned, position
from vitrify.claims.catalogue import Outcome, Scale, find, listing
from vitrify.errors import InputError
from vitrify.files import Lock
from vitrify.registry import Headline
from vitrify.report.evidence import AtlasEntry, EvidenceStore, recorded
from vitrify.report.figures import Drawings
from vitrify.report.live import LiveNets
from vitrify.report.site import Site
from vitrify.workers import Lost, WorkerProcess, ready

Progress = Callable[[float, float, str], None]  # seconds of work done, of how many, and what was done last
GUESS = 5.0  # seconds that a check takes which was never made
BRIEF = 10.0  # seconds of training that are not too many to be spent again
DRAWING = 1.0  # seconds that a figure takes
WORKERS = 2
LOST = "the process that checked it ended: there may not have been enough memory"
THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # two processes with two threads each are slower


def build(
    out: Path,
    scale: Scale = "quick",
    only: Sequence[str] = (),
    every: bool = False,
    evidence: Path | None = None,
    progress: Progress | None = None,
) -> list[AtlasEntry]:
    """Write the atlas to a folder, and give what it shows.

    Claims are checked live, except those that train networks for long, whose evidence is taken from a folder; with
    `every`, those too.
    """
    named = {headline.name: headline for headline in map(find, only)}
    files = [headline.argument for headline in named.values() if headline.path is not None]
    if files:
        raise InputError(f"the atlas shows claims of the catalogue: 'vitrify check {files[0]}' checks that of a file")
    chosen = sorted(named.values() if only else listing(), key=position)
    out.mkdir(parents=True, exist_ok=True)
    store, drawings = EvidenceStore(out / "store"), Drawings(out / "store" / "figures")
    nets = LiveNets(out / "store" / "nets")
    with ExitStack() as held:
        try:
            held.enter_context(Lock(out / ".lock", wait=False))
        except BlockingIOError:
            raise InputError(f"another atlas is being written to {out} ({Lock.holder(out / '.lock')})") from None
        rows = [_known(headline, store, scale, every, evidence) for headline in chosen]
        site = Site(out, rows, drawings, nets)
        site.write()
        undone = [row for row in rows if row.outcome is None or not _drawn(row.headline, row.outcome, drawings, nets)]
        undone = [row for row in undone if row.outcome or row.origin == "waiting"]
        checks = {row.name: store.seconds(row.headline, scale) or GUESS for row in undone if row.origin == "waiting"}
        costs = {row.name: DRAWING + checks.get(row.name, 0.0) for row in undone}  # seconds, about
        jobs = [
            ClaimCheck(row, scale, store.folder)
            for row in sorted(undone, key=lambda row: (-costs[row.name], -rows.index(row)))  # the long ones first
        ]
        done = 0.0
        if progress:
            progress(done, sum(costs.values()), "checking")
        for job, error in run_checks(jobs):
            name = job.entry.name
            site.update(_after(site.rows[name], error, store, scale))
            done += costs[name]
            if progress:
                progress(done, sum(costs.values()), name)
        site.write()
    return list(site.rows.values())


def _drawn(headline: Headline, outcome: Outcome, drawings: Drawings, nets: LiveNets) -> bool:
    """Return whether the figure and the network of a claim's page are there."""
    return drawings.drawn(headline, outcome) and nets.find(headline, outcome) is not None


def lives(headline: Headline, outcome: Outcome | None, every: bool) -> bool:
    """Return whether a claim is checked now: it trains no networks, or its recorded run took seconds."""
    brief = outcome is not None and outcome.scale == "quick" and outcome.evidence.seconds < BRIEF
    return every or brief or not is_learned(headline)


def _known(headline: Headline, store: EvidenceStore, scale: Scale, every: bool, evidence: Path | None) -> AtlasEntry:
    """Return the stored or recorded result of a claim, before anything is checked."""
    outcome = recorded(headline, evidence)
    if lives(headline, outcome, every):
        if stored := store.find(headline, scale):
            return AtlasEntry(headline, "live", stored)
        return AtlasEntry(headline, "waiting", why="It is being checked.")
    if outcome:
        return AtlasEntry(headline, "recorded", outcome)
    why = f"This claim trains networks, and its evidence is not in {evidence}; the command below measures it."
    return AtlasEntry(headline, "absent", why=why)


def _after(row: AtlasEntry, error: str | None, store: EvidenceStore, scale: Scale) -> AtlasEntry:
    """Return the result of a claim after its job."""
    if row.origin != "waiting":
        return row
    if stored := store.find(row.headline, scale):
        return replace(row, origin="live", outcome=stored, why="")
    return replace(row, origin="broken", why=f"The check did not come to an end: {error}.")


@dataclass(frozen=True)
class ClaimCheck:
    """A claim whose evidence is to be found by a check, unless it is recorded, and whose figure is to be drawn."""

    entry: AtlasEntry
    scale: Scale
    store: Path

    def run(self, send: Callable[[str | None], None]) -> None:
        """Find the evidence and draw it, and send the error that ended this, or None."""
        try:
            self.check()
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            send(f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})")
        else:
            send(None)

    def check(self) -> None:
        """Find the evidence and draw it; what is there already is left as it is."""
        headline, outcome, drawings = self.entry.headline, self.entry.outcome, Drawings(self.store / "figures")
        nets = LiveNets(self.store / "nets")
        if self.entry.origin == "waiting":
            outcome = EvidenceStore(self.store).check(headline, self.scale)
        if outcome and not drawings.drawn(headline, outcome):
            drawings.draw(headline, outcome)
        if outcome and nets.find(headline, outcome) is None:
            nets.make(headline, outcome)


class Done(NamedTuple):
    """A job that is over, and the error that ended it, if one did."""

    job: ClaimCheck
    error: str | None


def run_checks(jobs: Sequence[ClaimCheck], workers: int = WORKERS) -> Iterator[Done]:
    """Run jobs, the first ones first, and yield each when it is over."""
    waiting, busy, idle = list(reversed(jobs)), dict[WorkerProcess, ClaimCheck](), list[WorkerProcess]()
    threads = {name: os.environ.get(name, value) for name, value in THREADS.items()}
    over: list[Done] = []
    with ExitStack() as started:
        while waiting or busy or over:
            while waiting and len(busy) < workers:
                worker = idle.pop() if idle else WorkerProcess(environment=threads, shown=True)
                started.callback(worker.stop)
                job = busy[worker] = waiting.pop()
                with suppress(Lost):  # as its events will say
                    worker.begin(job)
            yield from over
            over = []
            for worker in ready(list(busy)) if busy else ():
                job = busy.pop(worker)
                try:
                    over += [Done(job, error) for error in worker.events()]
                    idle.append(worker)
                except Lost:
                    worker.stop()
                    over.append(Done(job, LOST))
