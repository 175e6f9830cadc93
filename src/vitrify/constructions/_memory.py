r"""Memories before they are networks: codes are drawn, something is stored, and every question is asked.

Whether all is recalled depends on the codes. So a memory knows its own `leads`, and `sure` refuses one that is not
perfect. The capacities below are rules of thumb from measurements (`benchmarks/capacity.py`), not theorems; $M$ is the
number of answers.

| memory | questions that are recalled |
| --- | --- |
| Hebbian, one answer each | $d^2 / (16 \ln d)$ |
| fitted | $0.08\, d \min(d, M - 1)$, or $d$ if that is more |
| $m$ units, fitted | $0.08\, m \min(d, M - 1)$, or $m$ if that is more |
| attention only, facts | any number, if $d \ge 8 (R + A) \ln M$ for $R$ relations of at most $A$ answers |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import BuildRefused
from vitrify.kit.memory import Rule, leads, random_codes, store
from vitrify.spec.facts import Facts, answers_by_relation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HEBBIAN = 16.0  # associations are d²/(HEBBIAN ln d)
FITTED = 0.08  # associations for each number of a fitted memory
FACTS = 8.0  # the dimension is FACTS (R + A) ln(answers)
SMALLEST = 16  # dimension or units that are chosen unasked: in fewer, random codes are too much alike
CLEAR = 1e-6  # the least lead of a right answer: below it, rounding might decide
MOST_SCORES = 1 << 25  # of all questions and answers, where they are held at once


@dataclass(frozen=True, eq=False)
class Memory:
    """Keys [question, d] and their right answers, codes of the answers [answer, d], and what is stored.

    With `directions` [d, unit], a key goes through ReLU units that look in these directions, less their mean over all
    keys, `centre`. The `readout` is the memory: [d or unit, d].
    """

    keys: Floats
    right: Ints
    answers: Floats
    readout: Floats
    directions: Floats | None = None
    centre: Floats | None = None

    @cached_property
    def leads(self) -> Floats:
        """By how much each right answer scores better than any other."""
        return leads(hidden(self.keys, self.directions, self.centre) @ self.readout, self.right, self.answers)

    @property
    def accuracy(self) -> float:
        """The share of questions that are answered right."""
        return float((self.leads > CLEAR).mean())


def hidden(keys: Floats, directions: Floats | None, centre: Floats | None) -> Floats:
    """What the read-out reads: the keys, or centred ReLU units."""
    if directions is None or centre is None:
        return keys
    found: Floats = np.maximum(keys @ directions, 0.0) - centre
    return found


def linear(right: Ints, outputs: int, dimension: int, rng: np.random.Generator, rule: Rule) -> Memory:
    """A matrix that stores an answer, by its number, for each of some random keys."""
    keys, answers = random_codes(rng, len(right), dimension), random_codes(rng, outputs, dimension)
    return Memory(keys, right, answers, store(keys, right, answers, rule))


def layered(keys: Floats, right: Ints, answers: Floats, units: int, rng: np.random.Generator, rule: Rule) -> Memory:
    """Units in random directions, and a matrix that reads them out."""
    dimension = keys.shape[1]
    directions = random_codes(rng, units, dimension).T * math.sqrt(dimension / units)
    centre = np.maximum(keys @ directions, 0.0).mean(axis=0)
    readout = store(hidden(keys, directions, centre), right, answers, rule)
    return Memory(keys, right, answers, readout, directions, centre)


def mlp(right: Ints, outputs: int, dimension: int, units: int, rng: np.random.Generator, rule: Rule) -> Memory:
    """Units that store an answer, by its number, for each of some random keys."""
    keys, answers = random_codes(rng, len(right), dimension), random_codes(rng, outputs, dimension)
    return layered(keys, right, answers, units, rng, rule)


@dataclass(frozen=True, eq=False)
class FactCodes:
    """Random codes of all that facts speak about, and each fact by the numbers of its three parts."""

    subjects: Floats
    relations: Floats
    answers: Floats
    facts: Ints

    @classmethod
    def draw(cls, spec: Facts, dimension: int, rng: np.random.Generator) -> FactCodes:
        names = (spec.subjects, spec.relations, spec.answers)
        places = [{name: number for number, name in enumerate(some)} for some in names]
        facts = [[place[name] for place, name in zip(places, fact, strict=True)] for fact in spec.facts]
        subjects, relations, answers = (random_codes(rng, len(some), dimension) for some in names)
        return cls(subjects, relations, answers, np.array(facts, dtype=np.int64))


def fact_units(codes: FactCodes, units: int, rng: np.random.Generator, rule: Rule = "fitted") -> Memory:
    """Units that store the answer to every fact; its key is the mean of its subject and its relation."""
    subject, relation, right = codes.facts.T
    keys = (codes.subjects[subject] + codes.relations[relation]) / 2
    return layered(keys, right, codes.answers, units, rng, rule)


def fact_heads(codes: FactCodes) -> tuple[Memory, Floats, Floats]:
    """What is stored for each subject, all its answers, and for each relation, all its answers; and both as a memory.

    The right answer is among both and scores about 2; any other is among one at most.
    """
    subject, relation, right = codes.facts.T
    of_subject = np.zeros((len(codes.subjects), len(codes.answers)))
    of_relation = np.zeros((len(codes.relations), len(codes.answers)))
    of_subject[subject, right] = 1.0
    of_relation[relation, right] = 1.0
    by_subject, by_relation = of_subject @ codes.answers, of_relation @ codes.answers
    memory = Memory(by_subject[subject] + by_relation[relation], right, codes.answers, np.eye(codes.answers.shape[1]))
    return memory, by_subject, by_relation


# Sizes


def chosen(option: str, given: int | None, usual: int) -> int:
    """What a user has chosen, or what is likely to be enough."""
    if given is not None and given < 1:
        raise BuildRefused(f"{option} must be at least 1, got {given}")
    return usual if given is None else given


def hebbian_dimension(associations: int) -> int:
    """The least dimension in which a Hebbian memory is likely to recall so many answers."""
    dimension = SMALLEST
    while dimension**2 / (HEBBIAN * math.log(dimension)) < associations:
        dimension += 1
    return dimension


def fitted_dimension(associations: int, outputs: int) -> int:
    """The least dimension in which a fitted memory is likely to recall so many answers."""
    dimension = SMALLEST
    while max(dimension, FITTED * dimension * min(dimension, outputs - 1)) < associations:
        dimension += 1
    return dimension


def layered_sizes(questions: int, outputs: int, dimension: int | None, units: int | None) -> tuple[int, int]:
    """A dimension, and the least number of units that is likely to recall so many answers; about five to one."""
    size = chosen("--dimension", dimension, max(SMALLEST, math.isqrt(5 * questions // 2)))
    enough = max(SMALLEST, math.ceil(questions / max(1.0, FITTED * min(size, outputs - 1))))
    return size, chosen("--units", units, enough)


def heads_dimension(spec: Facts) -> int:
    """The dimension in which attention alone is likely to recall all facts."""
    most = max(map(len, answers_by_relation(spec).values()))
    return max(SMALLEST, math.ceil(FACTS * (len(spec.relations) + most) * math.log(max(2, len(spec.answers)))))


# Refusals


def affordable(questions: int, outputs: int) -> None:
    """Fitting holds the scores of all answers to all questions."""
    if questions * outputs > MOST_SCORES:
        raise BuildRefused(
            f"fitting a memory holds the scores of {outputs} answers to {questions} questions at once, more than "
            f"{MOST_SCORES} numbers: store less, or use --shape hebbian"
        )


def sure(memory: Memory, what: str, change: str) -> float:
    """The least lead of a memory that recalls everything (1 where there is but one answer); any other is refused."""
    wrong = int((memory.leads <= CLEAR).sum())
    if wrong:
        raise BuildRefused(
            f"{wrong} of {len(memory.right)} answers would be wrong with {what}; these nets are right only with high "
            f"probability over their random codes, and only if they are large enough: {change}"
        )
    return float(memory.leads.min()) if len(memory.answers) > 1 else 1.0
