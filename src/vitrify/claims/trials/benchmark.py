"""Tasks (columns) and architectures (rows) of the benchmark that compares what each architecture learns."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.trials.trial import Trained
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
