"""What a sweep prints whose shards are trained by workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from vitrify.cli.render import console
from vitrify.cli.render_training import outcome, said

if TYPE_CHECKING:
    from vitrify.learn.experiment import Experiment
    from vitrify.learn.spread import Report


def planned(
    experiments: Sequence[Experiment], store: Path | None, retry: bool, on: str | None, workers: int | None
) -> None:
    """The shards that a sweep would have, and what each costs; nothing is trained."""
    from vitrify.interop.crews import crew
    from vitrify.learn.spread import shards_in_words, to_do
    from vitrify.learn.store import Store

    _leave_the_gpus()
    groups = [group for experiment in experiments for group in experiment.groups()]
    asked = sum(len(group.members) for group in groups)
    left = to_do(groups, Store(store), retry)
    out = console()
    out.print(f"{sum(len(group.members) for group in left)} of {asked} runs are to be trained", markup=False)
    with crew(on, workers) if on else nullcontext() as hired:
        for line in shards_in_words(left, hired):
            out.print(line, markup=False)


def spread(
    experiments: Sequence[Experiment], store: Path | None, retry: bool, as_json: bool, on: str, workers: int | None
) -> None:
    """Train by workers, with a line for each shard and one for all, and then the table of `train`."""
    from vitrify.interop.crews import crew
    from vitrify.learn.cost import estimate
    from vitrify.learn.spread import train_spread
    from vitrify.learn.store import Store

    _leave_the_gpus()
    opened = Store(store)
    groups = [group for experiment in experiments for group in experiment.groups()]
    err = console(stderr=True)
    try:
        with crew(on, workers) as hired:
            if not as_json:
                count = hired.size()
                device = f"{count} worker{'s' * (count != 1)} with {hired.device} each"
                err.print(estimate(groups, device), markup=False)
            with _lines(as_json) as watch:
                found = train_spread(groups, opened, hired, watch=watch, retry=retry)
    except KeyboardInterrupt:
        err.print(f"interrupted; what was reached is in {opened.path}, and the same command goes on from there")
        raise typer.Exit(1) from None
    outcome(found, opened, as_json)


def _leave_the_gpus() -> None:
    """This process only writes down: a GPU that it takes is missing to a worker."""
    import jax

    config: Any = jax.config
    config.update("jax_platforms", "cpu")


@contextmanager
def _lines(silent: bool) -> Iterator[Callable[[Report], None]]:
    """On a terminal a line for each shard that changes; elsewhere a new line for each measurement."""
    err = console(stderr=True)
    if silent:
        yield lambda _report: None
        return
    if not err.is_terminal:
        seen: set[tuple[int, int]] = set()

        def say(report: Report) -> None:
            if report.event:
                err.print(report.event, markup=False, soft_wrap=True)
            for task in report.tasks:
                news = task.news
                if news and news.measured and (task.piece.number, news.measured["step"]) not in seen:
                    seen.add((task.piece.number, news.measured["step"]))
                    line = said(news.progress(task.piece.group))
                    err.print(f"shard {task.piece.number}: {line}; {joint(report)}", markup=False, soft_wrap=True)

        yield say
        return
    from rich.live import Live
    from rich.text import Text

    with Live(Text("workers are starting …"), console=err, refresh_per_second=4, transient=True) as live:

        def show(report: Report) -> None:
            if report.event:
                live.console.print(report.event, markup=False)
            lines = [
                f"shard {task.piece.number} on {task.worker.name}: "
                + (said(task.news.progress(task.piece.group)) if task.news else "compiling …")
                for task in report.tasks
            ]
            live.update(Text("\n".join([*lines, joint(report)])))

        yield show


def joint(report: Report) -> str:
    """All shards in one line: how many are done, which part of all steps, member-steps per second, time left."""
    text = f"{report.done} of {report.total} shards done, {report.steps_done / max(report.steps, 1):.0%} of all steps"
    if report.rate:
        text += f", {report.rate:,.0f} member-steps/s"
        text += f", {math.ceil(report.left):,} s left" if math.isfinite(report.left) else ""
    return text
