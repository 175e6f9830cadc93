"""Train: members of a sandbox and a model, from the plan to curves and weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from vitrify.interrupts import Interrupted, careful
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.plan import Axes, MemberGroup, plan
from vitrify.learn.program import First, Probe, TrainingProgram
from vitrify.learn.recipe import Recipe
from vitrify.learn.records import Record
from vitrify.learn.runs import Run, RunList
from vitrify.learn.store import RunStore
from vitrify.learn.trainer import CHECKPOINT_SECONDS, Callback, Trainer
from vitrify.sandboxes.catalogue import Sandbox
from vitrify.sandboxes.catalogue import make as make_sandbox


def train(
    model: Family | str,
    sandbox: Sandbox | str,
    *,
    members: int = 1,
    axes: Axes | None = None,
    recipe: Recipe | None = None,
    probes: Mapping[str, Probe] | None = None,
    first: First | None = None,
    store: RunStore | None = None,
    callback: Callback | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    devices: int = 1,
) -> RunList:
    """Train `members` seeds of every combination of the axes, and return their runs in order.

    Members that share shapes are one compiled program. With a `store`, runs that it holds are not trained again, killed
    ones resume from their last checkpoint, and all others are saved there. `first` (initial weights) and `probes` are
    part of a run's identity by a digest of what they compute. `callback` is called with every `TrainEvent` but the
    last of a group, which holds its runs.

    Several `devices` share every batch, for models large enough to keep one device busy; the numbers are then those of
    one device but for the order of their sums.
    """
    family = make_model(model) if isinstance(model, str) else model
    source = make_sandbox(sandbox) if isinstance(sandbox, str) else sandbox
    runs = RunList()
    for group in plan(source, family, recipe or Recipe(), axes or {}, members):
        program = TrainingProgram(group, probes or {}, first, devices=devices)
        if store is None:
            runs += _fit(Trainer(program), callback)
        else:
            records = _fit_in_store(program, store, callback, checkpoint_seconds)
            runs += [store.run(record, program.net) for record in records]
    return runs


def train_groups(
    groups: Sequence[MemberGroup],
    store: RunStore,
    *,
    callback: Callback | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    retry: bool = False,
    devices: int = 1,
) -> list[Record]:
    """Train what a store does not hold yet of some groups, and return the records of all their runs, in order.

    With `retry`, runs that failed are trained again. The number of devices is no part of a run's identity: one that was
    begun on one device may resume on several.
    """
    records: list[Record] = []
    for group in groups:
        records += _fit_in_store(TrainingProgram(group, devices=devices), store, callback, checkpoint_seconds, retry)
    return records


def _fit(trainer: Trainer, callback: Callback | None) -> tuple[Run, ...]:
    """Train to the end without saving anything, and return the runs."""
    runs: tuple[Run, ...] = ()
    for event in trainer.events():
        runs = event.runs
        if callback and not runs:
            callback(event)
    return runs


def _fit_in_store(
    program: TrainingProgram, store: RunStore, callback: Callback | None, checkpoint_seconds: float, retry: bool = False
) -> list[Record]:
    """Train what a store does not hold yet of a program's members, and return the records of all."""
    with store.open_many(program.identities, retry=retry) as opened, ExitStack() as stack:
        interrupted: Callable[[], int] | None = None
        for held in opened.groups:
            trainer = Trainer.resume(program.only(held.numbers), held.latest(), held.lines())
            for event in trainer.events(checkpoint_seconds):
                interrupted = interrupted or stack.enter_context(careful())  # there is something to save now
                held.record(event)
                if callback and not event.runs:
                    callback(event)
                if (number := interrupted()) and not event.runs:
                    if event.checkpoint is None:
                        held.save(event.step, trainer.checkpoint(), {"seconds": event.seconds_before + event.seconds})
                    kept = f"step {event.step:,} of {event.steps:,} is saved in {store.path}"
                    raise Interrupted(f"{kept}; the same command resumes from there", number)
    known = {record.id: record for record in store.runs()}
    return [known[record.id] for record in opened.records]
