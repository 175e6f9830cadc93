"""The commands that train, and what they print: progress while they run, then a table."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from vitrify.cli.options import (
    SANDBOX_NAMES,
    AsJson,
    AskParameters,
    KeyValues,
    StoreFolder,
    arg,
    complete,
    entries,
    opt,
)
from vitrify.cli.render import TextTable, console, json_line, parameters, show, tell
from vitrify.errors import InputError
from vitrify.interrupts import Interrupted

if TYPE_CHECKING:
    from vitrify.learn.plan import MemberGroup
    from vitrify.learn.records import Record
    from vitrify.learn.store import RunStore
    from vitrify.learn.sweep import Report
    from vitrify.learn.trainer import TrainEvent

Show: TypeAlias = Callable[[str], None]
Retry = Annotated[bool, opt("Train failed runs again.", "--retry")]
FAMILY_NAMES = complete(lambda: entries("vitrify.learn.models"))
MAX_COMBINATIONS = 24  # of a table


def train(
    sandbox: Annotated[str, arg("Sandbox to draw data from; `vitrify data` lists all.", autocompletion=SANDBOX_NAMES)],
    model: Annotated[str, arg("Model family, for example transformer.", autocompletion=FAMILY_NAMES)],
    words: KeyValues = None,
    members: Annotated[int, opt("Seeds of every combination of values.", min=1)] = 1,
    devices: Annotated[int, opt("Devices that share every batch of one large model.", min=1)] = 1,
    checkpoints: Annotated[int | None, opt("Keep the weights at N log-spaced steps.", metavar="N", min=1)] = None,
    probe: Annotated[
        list[str] | None, opt("Log a probe: previous, matches, induction, sink, entropy, latent:NAME … (repeatable).")
    ] = None,
    store: StoreFolder = None,
    retry: Retry = False,
    ask_parameters: AskParameters = False,
    as_json: AsJson = False,
) -> None:
    """Train an ensemble on a sandbox, against its exact optimum. Runs that the store has are not trained again."""
    from vitrify.learn.experiment import in_words, kinds_of
    from vitrify.learn.store import RunStore

    if ask_parameters:
        parameters(kinds_of(sandbox, model), as_json)
        return
    more = [f"probes={','.join(probe)}"] if probe else []
    more += [] if checkpoints is None else [f"checkpoints={checkpoints}"]
    groups = in_words(sandbox, model, [*(words or []), *more], members).groups()
    _train_here(groups, RunStore(store), retry, as_json, devices)


def sweep(
    file: Annotated[Path, arg("TOML file with sandbox, model, members, set, axes, runs.", "FILE")],
    store: StoreFolder = None,
    on: Annotated[str | None, opt("Workers: processes, local-ray, ray or ray://HOST:PORT.", metavar="WHERE")] = None,
    workers: Annotated[int | None, opt("With --on: largest number of workers at a time.", min=1)] = None,
    dry_run: Annotated[bool, opt("Print shards, operations and memory; train nothing.", "--dry-run")] = False,
    retry: Retry = False,
    as_json: AsJson = False,
) -> None:
    """Train the runs that a file describes, here or on workers; the same command resumes after an interruption."""
    from vitrify.learn.experiment import read_sweep
    from vitrify.learn.store import RunStore

    if workers is not None and on is None:
        raise InputError("--workers is for --on: choose the workers, for example --on processes")
    groups = [group for experiment in read_sweep(file) for group in experiment.groups()]
    if dry_run:
        _plan(groups, RunStore(store), retry, on, workers, as_json)
    elif on is None:
        _train_here(groups, RunStore(store), retry, as_json)
    else:
        _train_on_workers(groups, RunStore(store), retry, as_json, on, workers)


def _train_here(groups: Sequence[MemberGroup], store: RunStore, retry: bool, as_json: bool, devices: int = 1) -> None:
    """Train in this process, with a line of progress and then a table."""
    import jax

    from vitrify.learn.compiler import remember_programs
    from vitrify.learn.train import train_groups

    remember_programs()
    precisions = {group.recipe.precision for group in groups}
    limited = len(precisions) == 1 and jax.default_backend() != "cpu"  # a CPU's caches are faster than its memory
    precision = precisions.pop() if limited else None
    with _progress(groups, as_json) as (replace, add):

        def show(event: TrainEvent) -> None:
            if replace or event.point is not None:
                (replace or add)(_event_line(event, precision))

        records = train_groups(groups, store, callback=show, retry=retry, devices=devices)
    _show_records(records, store, as_json)


def _train_on_workers(
    groups: Sequence[MemberGroup], store: RunStore, retry: bool, as_json: bool, on: str, workers: int | None
) -> None:
    """Train by workers, with a line for each shard and one for all, and then the table of `train`."""
    from vitrify.interop.pools import stay_off_gpus, worker_pool
    from vitrify.learn.sweep import train_on_workers

    stay_off_gpus()  # this process only writes to the store
    try:
        with worker_pool(on, workers) as pool:
            count = pool.size()
            each = f"{count} worker{'s' * (count != 1)} with {pool.device} each"
            with _progress(groups, as_json, each) as (replace, add):
                records = train_on_workers(groups, store, pool, callback=_sweep_lines(replace, add), retry=retry)
    except KeyboardInterrupt as stop:
        number = getattr(stop, "number", signal.SIGINT)
        raise Interrupted(f"the same command resumes from the last checkpoints in {store.path}", number) from None
    _show_records(records, store, as_json)


def _plan(
    groups: Sequence[MemberGroup], store: RunStore, retry: bool, on: str | None, workers: int | None, as_json: bool
) -> None:
    """Print the shards of a sweep and the cost of each; nothing is trained."""
    from vitrify.interop.pools import stay_off_gpus, worker_pool
    from vitrify.learn.sweep import shards_in_words, to_do

    stay_off_gpus()  # this process only writes to the store
    with worker_pool(on, workers) if on else nullcontext() as pool:
        left = to_do(groups, store, retry)
        counts = [sum(len(group.members) for group in some) for some in (left, groups)]
        plan = list(shards_in_words(left, pool))
        data = {"untrained": counts[0], "runs": counts[1], "plan": plan}
        show(as_json, data, f"{counts[0]} of {counts[1]} runs are to be trained", *plan)


@contextmanager
def _progress(
    groups: Sequence[MemberGroup], silent: bool, workers: str | None = None
) -> Iterator[tuple[Show | None, Show]]:
    """Print the cost of training; yield how to replace the last lines of a terminal (else None), and to add a line."""
    from rich.text import Text

    from vitrify.learn.cost import estimate

    err = console(stderr=True)
    if silent:
        yield None, lambda _line: None
        return
    err.print(estimate(groups, workers), markup=False)
    if not err.is_terminal:
        yield None, lambda line: err.print(line, markup=False, soft_wrap=True)
        return
    with err.status("workers are starting …" if workers else "compiling …") as spinner:
        yield lambda lines: spinner.update(Text(lines)), lambda line: spinner.console.print(line, markup=False)


def _sweep_lines(replace: Show | None, add: Show) -> Callable[[Report], None]:
    """Return a callback that shows reports: on a terminal a line for each shard, elsewhere one for each measurement."""
    seen: set[tuple[int, int]] = set()

    def show(report: Report) -> None:
        if report.event:
            add(report.event)
        if replace:
            lines = [
                f"shard {task.piece.number} on {task.worker.name}: "
                + (_event_line(task.event) if task.event else "compiling …")
                for task in report.tasks
            ]
            replace("\n".join([*lines, _all_shards(report)]))
            return
        for number, event in ((task.piece.number, task.event) for task in report.tasks):
            if event and event.measured and (number, event.measured["step"]) not in seen:
                seen.add((number, event.measured["step"]))
                add(f"shard {number}: {_event_line(event)}; {_all_shards(report)}")

    return show


def _event_line(event: TrainEvent, precision: str | None = None) -> str:
    """Return the line of progress: the members' mean loss *and* the floor, member-steps per second, time left.

    With the `precision` of training on a GPU here also the share of the rate that its arithmetic and memory allow.
    """
    import numpy as np

    from vitrify.learn.cost import ceilings

    text = f"step {event.step:,}/{event.steps:,}"
    if event.measured:
        loss, floor = (float(np.nanmean(event.measured[name])) for name in ("loss", "floor"))
        text += f"  loss {loss:.4f}  floor {floor:.4f}  excess {loss - floor:.2g}"
        broken = int((np.asarray(event.measured["broken"]) >= 0).sum())
        text += f"  {broken} broken" if broken else ""
    if event.rate:
        text += f"  {event.rate:,.0f} member-steps/s"
        if precision and event.work:
            text += f" ({event.rate / event.work.limit(ceilings(precision)):.0%} of the limit)"
        text += f"  {event.stepping:.0%} of the time in steps" if math.isfinite(event.stepping) else ""
        text += f"  {math.ceil(event.seconds_left):,} s left" if math.isfinite(event.seconds_left) else ""
    return text + f"  (compiled in {event.compile_seconds:.1f} s)"


def _all_shards(report: Report) -> str:
    """Return all shards in one line: how many are done, the share of all steps, member-steps per second, time left."""
    text = f"{report.done} of {report.total} shards done, {report.steps_done / max(report.steps, 1):.0%} of all steps"
    if report.rate:
        text += f", {report.rate:,.0f} member-steps/s"
        text += f", {math.ceil(report.left):,} s left" if math.isfinite(report.left) else ""
    return text


def _show_records(records: Sequence[Record], store: RunStore, as_json: bool) -> None:
    """Print what has been trained, as a table or as lines of JSON; exit code 1 if some of it failed."""
    if as_json:
        for record in records:
            json_line(record.to_json())
    else:
        _results(records)
        console(stderr=True).print(f"{len(records)} runs in {store.path}: `vitrify runs`, `vitrify plot`", markup=False)
    if any(record.state == "failed" for record in records):
        raise typer.Exit(1)


def _results(records: Sequence[Record]) -> None:
    from vitrify.learn.records import combinations

    axes, groups = combinations(records)
    rows = []
    for combination, own in list(groups.items())[:MAX_COMBINATIONS]:
        done = [record for record in own if record.state == "finished"]
        failed = f" ({len(own) - len(done)} failed)" if len(done) < len(own) else ""
        steps = sorted({record.step for record in done if record.step is not None})
        ends = "–".join(map(str, dict.fromkeys([*steps[:1], *steps[-1:]])))
        spread = [_spread([record.values[name] for record in done]) for name in ("loss", "floor", "excess", "accuracy")]
        rows.append((*combination, f"{len(own)}{failed}", ends, *spread, _nearest(done)))
    columns = (*axes, "runs", "step", "loss", "floor", "excess", "accuracy", "nearest known predictor")
    more = len(groups) - MAX_COMBINATIONS
    tell(
        TextTable(columns, rows, "mean ± deviation over seeds, in nats"),
        f"… and {more} more: `vitrify runs` has them all" if more > 0 else None,
        *(f"{record.id} {record.state}: {record.message}" for record in records if record.message),
    )


def _spread(values: Sequence[float]) -> str:
    import numpy as np

    if not values:
        return "–"
    return f"{np.mean(values):.4f}" + (f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else "")


def _nearest(records: Sequence[Record]) -> str:
    """Return the known predictor that most members end nearest to, by the divergence from it."""
    names = []
    for record in records:
        far = {name: value for name, value in record.values.items() if name == "kl" or name.startswith("kl.")}
        best = min(far, key=far.__getitem__)
        names.append(("optimal" if best == "kl" else best.removeprefix("kl."), far[best]))
    if not names:
        return "–"
    common = max({name for name, _ in names}, key=[name for name, _ in names].count)
    own = [value for name, value in names if name == common]
    return f"{common} in {len(own)} of {len(names)} (KL {sum(own) / len(own):.2g})"


COMMANDS = (train, sweep)
