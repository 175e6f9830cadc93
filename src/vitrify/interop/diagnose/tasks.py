"""The battery: tasks with exact optimal answers, each with the tests that a model is asked after it was trained.

A model reads one vocabulary: `<s>`, which begins every row, the symbols of the task, and those answers that are no
symbols. After each token of a row it is asked for one token; weights say which of these questions count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, Ints
from vitrify.claims import each_architecture_learns_what_its_theorems_allow as table
from vitrify.claims.trials.benchmark import Column
from vitrify.claims.trials.flip_flop import P_IGNORE
from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.learn.agreement import SOLVED
from vitrify.learn.measure import TEST_SEED, losses
from vitrify.sandboxes.catalogue import Example, Sandbox, examples
from vitrify.sandboxes.composition import CompositionSandbox
from vitrify.sandboxes.flip_flop import DENSE, SPARSE, FlipFlop
from vitrify.sandboxes.induction import Induction
from vitrify.sandboxes.majority import Majority

BEGIN = "<s>"
TRAINED, TWICE = "as trained", "twice as long"
GLITCH = 0.01  # the least rate of wrong reads on the dense tail that counts as glitching, as in the claim G3
FLIP_FLOP = 64  # symbols of a row, as in the recorded evidence at quick scale
LENGTH = 32  # tokens of the rows of other tasks, as in the recorded evidence at large scale


class TokenBatch(NamedTuple):
    """Rows as a model gets them, all [batch, length]: tokens, the right answers, and how much each counts."""

    tokens: Array
    targets: Array
    weights: Array


@dataclass(frozen=True)
class Variant:
    """Rows that a model is asked about."""

    name: str
    sandbox: Sandbox

    @property
    def length(self) -> int:
        """Tokens of a row, with the one that begins it."""
        return self.sandbox.tokens + 1


@dataclass(frozen=True)
class DiagnosisTask:
    """A task: its tests, the first of which is what models are trained on, and the one that theorems speak about.

    Its answers must be right as often as `solved` says there to count as learnt; with a `premise`, nothing is said of
    a model that has not learnt the rows of training.
    `in_context`: whether answers follow from the text alone, so that a model not trained on the task can know them.
    """

    name: str
    title: str
    tests: tuple[Variant, ...]
    judged: str
    in_context: bool = False
    solved: float = SOLVED
    premise: bool = False

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox that models are trained on."""
        return self.tests[0].sandbox

    @property
    def length(self) -> int:
        """The longest row that a model is ever given."""
        return max(test.length for test in self.tests)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The symbols of the token ids."""
        symbols = self.sandbox.symbols
        return (BEGIN, *symbols, *(answer for answer in self.sandbox.answers if answer not in symbols))

    @property
    def answers(self) -> Ints:
        """The tokens that answers are [answer]."""
        return np.array([self.vocabulary.index(answer) for answer in self.sandbox.answers])


def battery() -> dict[str, DiagnosisTask]:
    """All tasks, by name."""
    (subject,) = table.large()
    columns: dict[str, Column] = subject.data["columns"]

    def column(name: str, title: str, in_context: bool = False) -> DiagnosisTask:
        source = columns[name]
        tests = (Variant(TRAINED, source.sandbox), Variant(TWICE, source.longer))
        return DiagnosisTask(name, title, tests, TWICE if source.beyond else TRAINED, in_context)

    usual = FlipFlop.ffl(P_IGNORE, FLIP_FLOP)
    tails = {
        "dense tail": FlipFlop.ffl(DENSE, FLIP_FLOP),
        "sparse tail": FlipFlop.ffl(SPARSE, FLIP_FLOP),
        TWICE: FlipFlop.ffl(P_IGNORE, 2 * FLIP_FLOP),
    }
    tasks = [
        column("recall", "the value of a key that was given among others", in_context=True),
        column("copying", "a text again, symbol by symbol", in_context=True),
        DiagnosisTask(
            "induction",
            "what followed the last time that this symbol was read",
            (
                Variant(TRAINED, Induction(states=8, length=LENGTH)),
                Variant(TWICE, Induction(states=8, length=2 * LENGTH)),
            ),
            TRAINED,
            in_context=True,
        ),
        DiagnosisTask(
            "composition", "f(g(x)) from the tables of both", (Variant(TRAINED, CompositionSandbox(size=4)),), TRAINED
        ),
        column("parity", "whether the ones so far are even or odd"),
        column("permutations", "where the first of five points is after swaps: words of S5"),
        column("brackets", "which bracket must close, of two kinds, four deep"),
        DiagnosisTask(
            "flip-flop",
            "the bit that was written last, among bits to ignore",
            (Variant(TRAINED, usual), *(Variant(name, sandbox) for name, sandbox in tails.items())),
            "dense tail",
            solved=1 - GLITCH,
            premise=True,
        ),
        DiagnosisTask(
            "majority",
            "whether more than half of the bits are ones",
            (Variant(TRAINED, Majority(1, LENGTH)), Variant(TWICE, Majority(LENGTH + 1, 2 * LENGTH))),
            TWICE,
        ),
    ]
    return {task.name: task for task in tasks}


def chosen(names: Sequence[str] | None) -> list[DiagnosisTask]:
    """The tasks of these names, or all."""
    every = battery()
    unknown = [name for name in names or () if name not in every]
    if unknown:
        raise InputError(f"there is no task {', '.join(map(repr, unknown))}; there are {', '.join(every)}")
    return [every[name] for name in dict.fromkeys(names or every)]


class KnownScores(NamedTuple):
    """Return baselines of a test without any model, on the very sequences that models are evaluated on."""

    optimum: float  # the accuracy of the exact optimal predictor
    floor: float  # its loss, in nats
    chance: float  # the accuracy of the best simple predictor of the sandbox


def training_rows(task: DiagnosisTask, seed: int, start: int, count: int) -> TokenBatch:
    """Rows to train on by their numbers: the same for every model."""
    return _worded(task, _drawn(task.sandbox, count)(np.uint32(seed), np.uint32(start)))


def asked_rows(task: DiagnosisTask, test: Variant, count: int) -> tuple[TokenBatch, KnownScores]:
    """Rows to ask about, which no model is trained on; the best that can be done on them, and what guesses get."""
    row, (optimum, floor, *simple) = _measured(test.sandbox, count)
    return _worded(task, row), KnownScores(float(optimum), abs(float(floor)), float(max(simple)))


def any_rows(task: DiagnosisTask, test: Variant, count: int) -> TokenBatch:
    """Rows without sense, of the right shape."""
    rng = np.random.default_rng(0)
    tokens, targets = rng.integers(1, len(task.vocabulary), size=(2, count, test.length), dtype=np.int32)
    tokens[:, 0] = 0
    return TokenBatch(tokens, targets, np.ones(tokens.shape, np.float32))


def _worded(task: DiagnosisTask, row: Example) -> TokenBatch:
    tokens = np.pad(np.asarray(row.tokens, np.int32) + 1, ((0, 0), (1, 0)))
    return TokenBatch(tokens, task.answers.astype(np.int32)[np.asarray(row.targets)], np.array(row.weight, np.float32))


@lru_cache(maxsize=64)
def _drawn(sandbox: Sandbox, count: int) -> Callable[[np.uint32, np.uint32], Example]:
    return jax.jit(lambda seed, start: examples(sandbox, seed, "train", start, count)._replace(latent={}))


@lru_cache(maxsize=64)
def _measured(sandbox: Sandbox, count: int) -> tuple[Example, list[Array]]:
    """Test rows; on them the accuracy and the loss of the optimal predictor, and the accuracies of simple ones."""

    def measured() -> tuple[Example, list[Array]]:
        row = examples(sandbox, TEST_SEED, "test", 0, count)
        best = jax.vmap(sandbox.optimal)(row)
        floor = (losses(best, row) * row.weight).sum() / row.weight.sum()
        guesses = [jax.vmap(guess)(row) for guess in sandbox.predictors().values()]
        guesses = jax.lax.optimization_barrier(guesses)  # type: ignore[no-untyped-call]  # folding constants is slow
        simple = [_right(guess, row) for guess in guesses]
        return row._replace(latent={}), [_right(best, row), floor, *simple]

    return jax.device_get(jax.jit(measured)())  # type: ignore[no-any-return]


def _right(logp: Array, row: Example) -> Array:
    """Return the accuracy of the most probable answer; ties are shared equally."""
    top = logp >= logp.max(axis=-1, keepdims=True) - 1e-6
    hit = jnp.take_along_axis(top, row.targets[..., None], axis=-1)[..., 0] / top.sum(axis=-1)
    return (hit * row.weight).sum() / row.weight.sum()


def listing(tasks: Iterable[DiagnosisTask]) -> list[JsonObject]:
    """The battery as plain data: what is asked, and which number each token has."""
    return [
        {
            "task": task.name,
            "asks for": task.title,
            "tests": {test.name: test.length for test in task.tests},
            "judged": task.judged,
            "vocabulary": list(task.vocabulary),
            "answers": task.answers.tolist(),
        }
        for task in tasks
    ]
