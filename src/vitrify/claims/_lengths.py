r"""Tasks at any length, each with programs that compute it, and networks that are trained on short words of it.

The length of a program is the number of different expressions that it is made of. What a program may be made of is what
C-RASP and RASP-L have in common: symbols and functions of them, the symbol so many places back, the first or last place
with a property, how often something occurred, sums and comparisons of such counts. It may not divide a count, nor look
at a place that it computes; `divides` finds both. Then a program whose text does not grow with the words is one for all
lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from vitrify.learn.elsewhere import elsewhere
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.sandboxes.copying import Copying
from vitrify.sandboxes.digit_sum import DigitSum
from vitrify.sandboxes.majority import Majority
from vitrify.sandboxes.most_frequent import MostFrequent
from vitrify.sandboxes.parity import Parity
from vitrify.spec import programs as library
from vitrify.spec.program import Expr, choose, indices, parts
from vitrify.spec.program_batch import Batch
from vitrify.spec.program_file import program
from vitrify.spec.tasks.copying import SEPARATOR

TIMES = 4  # so many times the longest word of training is the longest that is asked about
STATES = 3  # letters, where their number is not that of the longest word
PER_LENGTH = 64  # rows of each length that a net is asked about, on average
TRIED = 16  # words of a length on which a program is compared with the answers


@dataclass(frozen=True)
class Task:
    """A task: its sandbox, whose words have a shortest and a longest length, and programs for words up to a length.

    Both are told how many letters there are, where those that differ must be as many as the longest word.
    """

    box: Callable[[int, int, int], Any]
    programs: Callable[[int, int], Sequence[Expr]]


def _copying(**choice: Any) -> Callable[[int, int, int], Any]:
    return lambda shortest, longest, letters: Copying(letters, shortest, longest, **choice)


def _summed(digits: Sequence[str], answers: Sequence[str], longest: int) -> list[Expr]:
    """A sum modulo the number of digits: by the remainder of a division, or from a list of all sums."""
    found = []
    for rest in (library.sum_modulo(digits), library.sum_modulo_up_to(digits, longest)):
        named: Any = answers[0]
        for value, answer in enumerate(answers[1:], start=1):
            named = choose(rest == value, answer, named)
        found.append(named)
    return found


TASKS: Mapping[str, Task] = MappingProxyType(
    {
        "majority": Task(
            lambda shortest, longest, _: Majority(shortest, longest),
            lambda *_: [choose(library.more("1", "0"), "yes", "no")],
        ),
        "most frequent": Task(
            lambda shortest, longest, _: MostFrequent(STATES, shortest, longest),
            lambda *_: [library.most_frequent_of(MostFrequent(STATES).answers)],
        ),
        "sort": Task(
            _copying(mode="sort", distinct=True),
            lambda _, letters: [library.next_sorted(Copying(letters).answers[1:], SEPARATOR)],
        ),
        "copy different letters": Task(_copying(distinct=True), lambda *_: [library.copy_different(SEPARATOR)]),
        "copy repeated letters": Task(
            lambda shortest, longest, _: Copying(STATES, shortest, longest),
            lambda longest, _: [library.copy_after(SEPARATOR), library.copy_up_to(SEPARATOR, longest)],
        ),
        "sum modulo 3": Task(
            lambda shortest, longest, _: DigitSum(STATES, shortest, longest),
            lambda longest, _: _summed(DigitSum(STATES).answers, DigitSum(STATES).answers, longest),
        ),
        "parity": Task(
            lambda shortest, longest, _: Parity(shortest, longest),
            lambda longest, _: _summed(("0", "1"), Parity().answers, longest),
        ),
    }
)


@dataclass(frozen=True)
class Trial:
    """Networks of a family that are trained on words of a task of up to `longest` letters."""

    task: str
    longest: int
    family: Family
    recipe: Recipe

    @property
    def name(self) -> str:
        """The task, and the family where it is another than the usual one."""
        return self.task if self.usual else f"{self.task}, {self.kind}"

    @property
    def kind(self) -> str:
        """What tells the family from others: how a transformer knows places, or which cell a recurrent net has."""
        if isinstance(self.family, TransformerFamily):
            return self.family.positions
        return str(getattr(self.family, "kind", self.family.name)).upper()

    @property
    def usual(self) -> bool:
        """Whether it is a transformer with learned places that begins anywhere."""
        return isinstance(self.family, TransformerFamily) and self.family.positions == "learned"

    def box(self, shortest: int, longest: int) -> Any:
        """The task's sandbox, with as many letters as the longest word that is ever asked about."""
        return TASKS[self.task].box(shortest, longest, TIMES * self.longest)

    def text(self, longest: int, free: bool = False) -> Expr:
        """The shortest known program for words up to a length; one that is `free` may divide."""
        known = TASKS[self.task].programs(longest, TIMES * self.longest)
        return min((root for root in known if free or not divides(root)), key=length)


def length(root: Expr) -> int:
    """How many different expressions a program is made of."""
    return sum(1 for _ in parts(root))


def divides(root: Expr) -> bool:
    """Whether a program divides, or looks at a place that it computes: not just at one so many places back."""

    def computed(query: Expr) -> bool:
        back = query.op == "apply" and query.data == "-" and query.args[0] is indices and query.args[1].op == "const"
        return not (query is indices or back)

    nodes = list(parts(root))
    pointed = any(n.op == "select" and n.args[0] is indices and computed(n.args[1]) for n in nodes)
    return pointed or any(n.op == "apply" and n.data in ("%", "//") for n in nodes)


def wrong(trial: Trial, root: Expr, at: int) -> int:
    """On how many words of one length a program gives a wrong answer, of those that are tried."""
    box = trial.box(at, at)
    made = program(root, box.symbols[:-1], box.tokens, causal=True)  # without the blank: no word is filled up
    tokens, targets = box.reference(np.random.default_rng(at), TRIED)
    said = np.array(made.values[made.root], dtype=object)[Batch(made.root, made.values)(tokens)]
    right = np.array(box.answers, dtype=object)[targets[:, at + 1 :]]  # questions begin at the separator
    return int((said[:, at:] != right).any(axis=1).sum())


@lru_cache(maxsize=64)
def trained(trial: Trial, seeds: tuple[int, ...]) -> Any:
    """The share of words that networks answer without a mistake [seed, length], for lengths from 1 on."""
    most, family = TIMES * trial.longest, trial.family
    asked = trial.box(1, most)
    if isinstance(family, TransformerFamily):
        family = replace(family, room=asked.tokens)
    probe = elsewhere(family, asked, PER_LENGTH * most, by="length", bins=most + 1)
    recipe = replace(trial.recipe, marks=0, anywhere=True, test_rows=64)
    sandbox = trial.box(1, trial.longest)
    runs = train(family, sandbox, axes={"seed": seeds}, recipe=recipe, probes={"right": probe})
    return np.array([run.last["right"] for run in runs])[:, 1:]


def between(shares: Any, low: int, high: int) -> list[float]:
    """The mean over lengths from `low` to `high`, for every seed."""
    return np.nanmean(shares[:, low - 1 : high], axis=1).tolist()  # type: ignore[no-any-return]
