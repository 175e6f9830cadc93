"""The atlas: evidence of every claim, and a site about it that is there from the start and fills in.

What was checked is kept in the folder `store` of the site, so that an atlas that was interrupted goes on where it was,
and nothing is checked again that did not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from vitrify.claims.catalogue import Scale, find, listing
from vitrify.errors import InputError
from vitrify.learn._disk import Lock
from vitrify.registry import Headline
from vitrify.report.checking import Job, run
from vitrify.report.evidence import Row, Store, in_order, recorded
from vitrify.report.figures import Drawings
from vitrify.report.site import Site

Progress = Callable[[float, float, str], None]  # seconds of work done, of how many, and what was done last
GUESS = 5.0  # seconds that a check takes which was never made
BRIEF = 10.0  # seconds of training that are not too many to be spent again
DRAWING = 1.0  # seconds that a figure takes


def build(
    out: Path,
    scale: Scale = "quick",
    only: Sequence[str] = (),
    every: bool = False,
    evidence: Path | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """Write the atlas to a folder, and give what it shows.

    Claims are checked live, except those that train networks for long, whose evidence is taken from a folder; with
    `every`, those too.
    """
    named = {headline.name: headline for headline in map(find, only)}
    chosen = in_order(named.values() if only else listing())
    out.mkdir(parents=True, exist_ok=True)
    store, drawings = Store(out / "store"), Drawings(out / "store" / "figures")
    with ExitStack() as held:
        try:
            held.enter_context(Lock(out / ".lock", wait=False))
        except BlockingIOError:
            raise InputError(f"another atlas is being written to {out} ({Lock.holder(out / '.lock')})") from None
        rows = [_known(headline, store, scale, every, evidence) for headline in chosen]
        site = Site(out, rows, drawings)
        site.write()
        undone = [
            row for row in rows if row.origin == "waiting" or (row.data and not drawings.find(row.headline, row.data))
        ]
        costs = {row.name: _cost(row, store, scale) for row in undone}
        jobs = [
            Job(row.headline, "recorded" if row.origin == "recorded" else "live", scale, store.folder, evidence)
            for row in sorted(undone, key=lambda row: (-costs[row.name], -rows.index(row)))  # the long ones first
        ]
        done = 0.0
        if progress:
            progress(done, sum(costs.values()), "checking")
        for job, error in run(jobs):
            name = job.headline.name
            site.update(_after(site.rows[name], error, store, scale))
            done += costs[name]
            if progress:
                progress(done, sum(costs.values()), name)
        site.write()
    return list(site.rows.values())


def lives(headline: Headline, kept: Mapping[str, Any] | None, every: bool) -> bool:
    """Whether a claim is checked here and now: all are that train no networks, or did so in seconds when recorded."""
    brief = kept is not None and kept["scale"] == "quick" and kept["seconds"] < BRIEF
    return every or brief or not headline.fields.get("learned")


def _known(headline: Headline, store: Store, scale: Scale, every: bool, evidence: Path | None) -> Row:
    """What is known of a claim before anything is checked."""
    kept = recorded(headline, evidence)
    if lives(headline, kept, every):
        found = store.find(headline, scale)
        return Row(headline, "live", found) if found else Row(headline, "waiting", why="It is being checked.")
    if kept:
        return Row(headline, "recorded", kept)
    where = f"in {evidence}" if evidence else "here: it comes with a checkout of the code, in docs/evidence"
    why = f"This claim trains networks, and its evidence is not {where}; the command below measures it."
    return Row(headline, "absent", why=why)


def _after(row: Row, error: str | None, store: Store, scale: Scale) -> Row:
    """What is known of a claim when its job is over."""
    if row.origin != "waiting":
        return row
    found = store.find(row.headline, scale)
    if found:
        return replace(row, origin="live", data=found, why="")
    return replace(row, origin="broken", why=f"The check did not come to an end: {error}.")


def _cost(row: Row, store: Store, scale: Scale) -> float:
    """Seconds that the work on a claim will take, about."""
    if row.origin != "waiting":
        return DRAWING
    return DRAWING + (store.seconds(row.headline, scale) or GUESS)
