"""Tasks at any length, each with programs that compute it.

The length of a program is its number of distinct expressions. Programs use what C-RASP and RASP-L have in common:
symbols and functions of them, the symbol at a fixed distance back, the first or last position with a property, counts,
and sums and comparisons of counts. They may neither divide a count nor attend to a computed position; `divides` detects
both. A program that does not grow with the word length then works at all lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

import jax
import numpy as np

from vitrify.sandboxes.catalogue import Example, Sandbox, examples
from vitrify.sandboxes.copying import CopyingSandbox
from vitrify.sandboxes.digit_sum import DigitSum
from vitrify.sandboxes.majority import Majority
from vitrify.sandboxes.most_frequent import MostFrequent
from vitrify.sandboxes.parity import Parity
from vitrify.spec.programs import families as library
from vitrify.spec.programs.batch import Batch
from vitrify.spec.programs.expression import Expr, choose, indices, parts
from vitrify.spec.programs.program import program
from vitrify.spec.tasks.copying import SEPARATOR

TIMES = 4  # longest test word over longest training word
STATES = 3  # alphabet size, unless it must equal the longest word
PROGRAM_WORDS = 16  # words of a length on which a program is run


@dataclass(frozen=True)
class WordTask:
    """A task on words: its sandbox from a shortest to a longest length, and programs for words up to a length.

    Both take the alphabet size, which tasks with distinct letters need to be at least the longest length.
    """

    box: Callable[[int, int, int], Sandbox]
    programs: Callable[[int, int], Sequence[Expr]]


def _copying(mode: Literal["copy", "sort"] = "copy") -> Callable[[int, int, int], Sandbox]:
    return lambda shortest, longest, letters: CopyingSandbox(letters, shortest, longest, mode, distinct=True)


def _summed(digits: Sequence[str], answers: Sequence[str], longest: int) -> list[Expr]:
    """Return two programs for a sum modulo the number of digits: by division, and from a list of all sums."""
    programs = []
    for remainder in (library.sum_modulo(digits), library.sum_modulo_up_to(digits, longest)):
        named = choose(remainder == 1, answers[1], answers[0])
        for value, answer in enumerate(answers[2:], start=2):
            named = choose(remainder == value, answer, named)
        programs.append(named)
    return programs


TASKS: Mapping[str, WordTask] = MappingProxyType(
    {
        "majority": WordTask(
            lambda shortest, longest, _: Majority(shortest, longest),
            lambda *_: [choose(library.more("1", "0"), "yes", "no")],
        ),
        "most frequent": WordTask(
            lambda shortest, longest, _: MostFrequent(STATES, shortest, longest),
            lambda *_: [library.most_frequent_of(MostFrequent(STATES).answers)],
        ),
        "sort": WordTask(
            _copying("sort"), lambda _, letters: [library.next_sorted(CopyingSandbox(letters).answers[1:], SEPARATOR)]
        ),
        "copy different letters": WordTask(_copying(), lambda *_: [library.copy_different(SEPARATOR)]),
        "copy repeated letters": WordTask(
            lambda shortest, longest, _: CopyingSandbox(STATES, shortest, longest),
            lambda longest, _: [library.copy_after(SEPARATOR), library.copy_up_to(SEPARATOR, longest)],
        ),
        "sum modulo 3": WordTask(
            lambda shortest, longest, _: DigitSum(STATES, shortest, longest),
            lambda longest, _: _summed(DigitSum(STATES).answers, DigitSum(STATES).answers, longest),
        ),
        "parity": WordTask(
            lambda shortest, longest, _: Parity(shortest, longest),
            lambda longest, _: _summed(("0", "1"), Parity().answers, longest),
        ),
    }
)


def sandbox(task: str, longest: int, shortest: int, most: int) -> Sandbox:
    """Return a task's sandbox with words of `shortest` to `most` letters; training words have up to `longest`."""
    return TASKS[task].box(shortest, most, TIMES * longest)


def shortest_program(task: str, longest: int, most: int) -> Expr:
    """Return the shortest known program for words up to `most` letters that does not divide."""
    known = TASKS[task].programs(most, TIMES * longest)
    return min((root for root in known if not divides(root)), key=length)


def length(root: Expr) -> int:
    """Return the number of distinct expressions in a program."""
    return sum(1 for _ in parts(root))


def divides(root: Expr) -> bool:
    """Return True if a program divides, or attends to a computed position other than one at a fixed distance."""

    def computed(query: Expr) -> bool:
        back = query.op == "apply" and query.data == "-" and query.args[0] is indices and query.args[1].op == "const"
        return not (query is indices or back)

    nodes = list(parts(root))
    pointed = any(n.op == "select" and n.args[0] is indices and computed(n.args[1]) for n in nodes)
    return pointed or any(n.op == "apply" and n.data in ("%", "//") for n in nodes)


@lru_cache(maxsize=64)
def words_of(task: str, longest: int) -> Example:
    """Return words of all lengths of a task, about `4 * PROGRAM_WORDS` of each, as one batch."""
    most = TIMES * longest
    box, count = sandbox(task, longest, 1, most), 4 * PROGRAM_WORDS * most
    words: Example = jax.device_get(jax.jit(lambda: examples(box, 0, "probe", 0, count))())
    return words


def wrong(task: str, longest: int, root: Expr, at: int) -> int:
    """Return the number of words of length `at`, of up to `PROGRAM_WORDS`, on which a program is wrong."""
    box = sandbox(task, longest, at, at)
    compiled = program(root, box.symbols[:-1], box.tokens, causal=True)  # without the blank: no word is filled up
    drawn = words_of(task, longest)
    chosen = np.flatnonzero(drawn.latent["length"] == at)[:PROGRAM_WORDS]
    batch = Batch(compiled.root, compiled.values)(drawn.tokens[chosen, : box.tokens])
    answers = np.array(compiled.values[compiled.root], dtype=object)[batch]
    right = np.array(box.answers, dtype=object)[drawn.targets[chosen, at + 1 : box.tokens + 1]]  # from the separator on
    return int((answers[:, at:] != right).any(axis=1).sum())


def frequent(task: str, longest: int) -> list[float]:
    """Return the share of the most frequent answer to words of each length from 1 on."""
    drawn = words_of(task, longest)
    shares = []
    for at in range(1, TIMES * longest + 1):
        answers = drawn.targets[drawn.latent["length"] == at]
        shares.append(float(np.unique(answers, axis=0, return_counts=True)[1].max() / len(answers)))
    return shares
