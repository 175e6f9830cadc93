"""Tasks (columns) and architectures (rows) of the benchmark that compares what each architecture learns.

    columns, architectures    tasks with a longer version of each, and families of about the same width
    measure                   accuracies of every architecture on every task
    generalizing              criteria of fitting a task and of being right on longer words
    by_frequency, exchanged   null hypotheses, as measurements

Accuracies are arrays [task, seed, size], where the sizes are the trained one and about twice it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.trial import Criterion, Trained, trained
from vitrify.learn.cost import parameters
from vitrify.learn.evaluation import evaluate, stretched
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.hybrid import HybridFamily
from vitrify.learn.models.recurrent import RecurrentFamily
from vitrify.learn.models.ssm import StateSpaceFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.sandboxes.catalogue import Sandbox
from vitrify.sandboxes.copying import CopyingSandbox
from vitrify.sandboxes.dyck import DyckSandbox
from vitrify.sandboxes.medley import Medley
from vitrify.sandboxes.recall import RecallSandbox
from vitrify.sandboxes.regular import Regular
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, swaps

MIN_FIT, MIN_FITTED = 0.99, 1 / 2  # accuracy at the trained length; share of the seeds that must have it
MIN_LONGER, MIN_GENERALIZING = 0.95, 3 / 4  # accuracy at about twice the length; share of these seeds
RIGHT = {"parity": ("LSTM", "signed", "reflections"), "permutations": ("reflections",)}
LONGER = (
    f"premise: accuracy ≥ {MIN_FIT} at the trained length in {MIN_FITTED:.0%} of the seeds of each; of these seeds "
    f"{MIN_GENERALIZING:.0%} have ≥ {MIN_LONGER} at twice the length"
)


class Column(NamedTuple):
    """A task: the training sandbox, one about twice as large, and whether the larger one is judged too (`beyond`)."""

    sandbox: Sandbox
    longer: Sandbox
    beyond: bool


def columns(length: int, pairs: int, vocabulary: int) -> dict[str, Column]:
    """Return the tasks by name; sequences have `length` symbols (to copy or sort: half of it), recall has `pairs`."""

    def regular(automaton: Automaton) -> Column:
        return Column(Regular(automaton, length, "states"), Regular(automaton, 2 * length, "states"), beyond=True)

    def copying(mode: Literal["copy", "sort"]) -> Column:
        short, long = (CopyingSandbox(8, size // 2, size, mode) for size in (length // 2, length))
        return Column(short, long, beyond=False)

    few, many = (RecallSandbox(vocabulary, times * pairs, times * length, filler="blank") for times in (1, 2))
    short, long = (DyckSandbox(kinds=2, depth=4, length=times * length + 1, scored="closing") for times in (1, 2))
    return {
        "parity": regular(cyclic(2)),
        "modular": regular(cyclic(5, letters=5)),
        "permutations": regular(swaps(5)),
        "brackets": Column(short, long, beyond=True),
        "recall": Column(few, many, beyond=False),
        "copying": copying("copy"),
        "sorting": copying("sort"),
    }


def architectures(width: int, factors: int, loops: int) -> dict[str, Family]:
    """Return the architectures by name; `factors` are Householder factors, `loops` rounds of the looped transformer.

    "positive" and "signed" are linear RNNs with eigenvalues in [0, 1] and in [−1, 1].
    """
    transformer = TransformerFamily(layers=2, heads=2, d_model=width, units=2 * width, positions="rotary")
    recurrence = StateSpaceFamily(kind="positive", layers=2, state=width, d_model=width, units=2 * width)
    return {
        "transformer": transformer,
        "looped": replace(transformer, layers=1, loops=loops),
        "LSTM": RecurrentFamily(kind="lstm", state=width, d_embed=width),
        "positive": recurrence,
        "signed": replace(recurrence, kind="signed"),
        "reflections": replace(recurrence, kind="householder", factors=factors),
        "hybrid": HybridFamily(kind="positive", layers=2, heads=2, state=width, d_model=width, units=2 * width),
    }


def accuracies(nets: Trained, longer: Medley, test_examples: int) -> tuple[Array, Array]:
    """Return accuracies [task, seed, trained size or about twice it] at the best learning rate, and that rate [task].

    The best rate has the least median training loss, so the test sequences play no part in the choice.
    """
    tasks, rates = nets.trial.axes["task"], np.array(nets.trial.axes["lr"])
    loss = np.where(nets.final("broken") >= 0, np.inf, nets.final("train"))  # [task, rate, seed]; broken: diverged
    members = stretched(nets.trial.family, nets.runs, longer)
    measured = evaluate(nets.trial.family, members, [replace(longer, task=task) for task in tasks], test_examples)
    each = np.array([[member["accuracy"] for member in task] for task in measured]).reshape(-1, *loss.shape)
    index = np.arange(len(tasks))
    both = np.stack([nets.final("accuracy"), each[index, index]], axis=-1)  # each member on its own task
    best = np.median(loss, axis=-1).argmin(axis=-1)
    return both[index, best], rates[best]


def measure(subject: Subject) -> Measured:
    """Return for each architecture accuracies [task, seed, size], the chosen rates [task], and its parameters."""
    longer = Medley(tuple(column.longer for column in subject.data["columns"].values()))
    arrays: dict[str, Array] = {}
    for name, nets in trained(subject).items():
        accuracy, rates = accuracies(nets, longer, subject.data["test_examples"])
        count = parameters(nets.trial.family, nets.trial.sandbox)
        arrays |= {f"{name}/accuracy": accuracy, f"{name}/rates": rates, f"{name}/parameters": np.array(count)}
    return arrays


def generalizing(task: str, cells: Mapping[tuple[str, str], Array]) -> list[Criterion]:
    """Return the criteria that nets which should learn a task fit it, and are then right on longer words."""
    criteria = []
    for name in (each for each in RIGHT[task] if (each, task) in cells):
        short, long = cells[name, task].T
        fitted = short >= MIN_FIT if (short >= MIN_FIT).any() else np.full(len(short), fill_value=True)
        judged, label = partial(Criterion.judged, statement=task), f"{task}: {name}"
        criteria += [
            judged(f"{label}, trained length", short, at_least=MIN_FIT, share=MIN_FITTED, premise=True),
            judged(f"{label}, twice the length", long[fitted], at_least=MIN_LONGER, share=MIN_GENERALIZING),
        ]
    return criteria


def by_frequency(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements of drawn seeds in which all nets guess beyond the trained length, where that is judged."""
    null = dict(measured)
    for name in subject.trials:
        accuracy = measured[f"{name}/accuracy"].copy()
        for task, column in enumerate(subject.data["columns"].values()):
            if column.beyond:
                short = rng.choice(accuracy[task, :, 0], size=accuracy.shape[1])
                part = column.sandbox.tokens / column.longer.tokens
                accuracy[task] = np.stack([short, part * short + (1 - part) / len(column.sandbox.answers)], axis=-1)
        null[f"{name}/accuracy"] = accuracy
    return null


def exchanged(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which architectures exchange their accuracies at random, in each task and seed."""
    table = np.array([measured[f"{name}/accuracy"] for name in subject.trials])  # [architecture, task, seed, size]
    drawn = rng.permuted(np.broadcast_to(np.arange(len(table))[:, None, None], table.shape[:3]), axis=0)
    table = np.take_along_axis(table, drawn[..., None], axis=0)
    return {**measured, **{f"{name}/accuracy": own for name, own in zip(subject.trials, table, strict=True)}}


NULLS = {"parity": by_frequency, "permutations": by_frequency, "separations": exchanged, "lookup": exchanged}
