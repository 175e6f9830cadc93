r"""Associative memories with random codes, as arrays: keys, right answers, and the matrices that store them.

Whether everything is recalled depends on the random codes: `Memory.margins` measures it, and `require_perfect_recall`
refuses a memory with an error. The capacities below are rules of thumb from measurements (`benchmarks/capacity.py`),
not theorems; $M$ is the number of answers.

| memory | associations that are recalled |
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
from itertools import count

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.errors import BuildRefused
from vitrify.kit.memory import Rule, random_codes, recall_margins, store
from vitrify.spec.memory.facts import Facts, answers_by_relation

HEBBIAN_LOAD = 16.0  # a Hebbian memory recalls d²/(HEBBIAN_LOAD ln d) associations
FITTED_LOAD = 0.08  # associations per parameter of a fitted memory
FACTS_FACTOR = 8.0  # the dimension is FACTS_FACTOR (R + A) ln(answers)
MIN_DIMENSION = 16  # least default dimension or number of units: in fewer, random codes are too similar
MIN_MARGIN = 1e-6  # below it, rounding might decide
MAX_SCORES = 1 << 25  # keys × answers, all held in memory at once


@dataclass(frozen=True, eq=False)
class Memory:
    """Keys [key, d], the index of the right answer of each, codes of the answers [answer, d], and the stored matrix.

    With `directions` [d, unit], a key first goes through ReLU units with these input directions, centered by their mean
    over all keys, `center`. The `readout` [d or unit, d] is the stored matrix.
    """

    keys: Floats
    right: Ints
    answers: Floats
    readout: Floats
    directions: Floats | None = None
    center: Floats | None = None

    @cached_property
    def margins(self) -> Floats:
        """Return the margin of each key: the score of its right answer less the best other score."""
        return recall_margins(hidden(self.keys, self.directions, self.center) @ self.readout, self.right, self.answers)

    @property
    def accuracy(self) -> float:
        """Return the share of keys that are answered right."""
        return float((self.margins > MIN_MARGIN).mean())


def hidden(keys: Floats, directions: Floats | None, center: Floats | None) -> Floats:
    """Return the input of the read-out: the keys, or centered ReLU units."""
    if directions is None or center is None:
        return keys
    return np.asarray(np.maximum(keys @ directions, 0.0) - center)


def linear(right: Ints, outputs: int, dimension: int, rng: np.random.Generator, rule: Rule) -> Memory:
    """Return a linear memory of random keys, whose answers `right` gives by index."""
    keys, answers = random_codes(rng, len(right), dimension), random_codes(rng, outputs, dimension)
    return Memory(keys, right, answers, store(keys, right, answers, rule))


def layered(keys: Floats, right: Ints, answers: Floats, units: int, rng: np.random.Generator, rule: Rule) -> Memory:
    """Return a memory of ReLU units with random directions, and a matrix that reads them out."""
    dimension = keys.shape[1]
    directions = random_codes(rng, units, dimension).T * math.sqrt(dimension / units)
    center = np.maximum(keys @ directions, 0.0).mean(axis=0)
    readout = store(hidden(keys, directions, center), right, answers, rule)
    return Memory(keys, right, answers, readout, directions, center)


def mlp(right: Ints, outputs: int, dimension: int, units: int, rng: np.random.Generator, rule: Rule) -> Memory:
    """Return a memory of ReLU units for random keys, whose answers `right` gives by index."""
    keys, answers = random_codes(rng, len(right), dimension), random_codes(rng, outputs, dimension)
    return layered(keys, right, answers, units, rng, rule)


@dataclass(frozen=True, eq=False)
class FactCodes:
    """Random codes of subjects, relations and answers, and each fact as three indices."""

    subjects: Floats
    relations: Floats
    answers: Floats
    facts: Ints

    @classmethod
    def draw(cls, spec: Facts, dimension: int, rng: np.random.Generator) -> FactCodes:
        names = (spec.subjects, spec.relations, spec.answers)
        indices = [{name: number for number, name in enumerate(some)} for some in names]
        facts = [[index[name] for index, name in zip(indices, fact, strict=True)] for fact in spec.facts]
        subjects, relations, answers = (random_codes(rng, len(some), dimension) for some in names)
        return cls(subjects, relations, answers, np.array(facts, dtype=np.int64))


def fact_units(codes: FactCodes, units: int, rng: np.random.Generator, rule: Rule = "fitted") -> Memory:
    """Return units that store the answer of every fact; its key is the mean of the codes of subject and relation."""
    subject, relation, right = codes.facts.T
    keys = (codes.subjects[subject] + codes.relations[relation]) / 2
    return layered(keys, right, codes.answers, units, rng, rule)


def fact_heads(codes: FactCodes) -> tuple[Memory, Floats, Floats]:
    """Return a memory, and the sums of the answers' codes for each subject and for each relation.

    The right answer is in both sums and scores about 2; any other is in one at most.
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


def hebbian_dimension(associations: int) -> int:
    """Return the default dimension of a Hebbian memory; it seldom suffices where many words share an answer."""
    return next(d for d in count(MIN_DIMENSION) if d**2 / (HEBBIAN_LOAD * math.log(d)) >= associations)


def fitted_dimension(associations: int, outputs: int) -> int:
    """Return the default dimension of a fitted memory: it has at least 12.5 parameters per association."""
    return next(d for d in count(MIN_DIMENSION) if max(d, FITTED_LOAD * d * min(d, outputs - 1)) >= associations)


def layered_sizes(questions: int, outputs: int, dimension: int | None, units: int | None) -> tuple[int, int]:
    """Return the dimension and the units of a memory, by default with 12.5 parameters per question or more."""
    size = dimension or max(MIN_DIMENSION, math.isqrt(5 * questions // 2))
    needed = max(MIN_DIMENSION, math.ceil(questions / max(1.0, FITTED_LOAD * min(size, outputs - 1))))
    return size, units or needed


def heads_dimension(spec: Facts) -> int:
    """Return the default dimension of a memory of facts in attention alone."""
    most_answers = max(map(len, answers_by_relation(spec).values()))
    return max(
        MIN_DIMENSION,
        math.ceil(FACTS_FACTOR * (len(spec.relations) + most_answers) * math.log(max(2, len(spec.answers)))),
    )


# Refusals


def check_score_count(questions: int, outputs: int) -> None:
    """Refuse to fit a memory whose scores, of all answers to all questions, do not fit into memory."""
    if questions * outputs > MAX_SCORES:
        raise BuildRefused(
            f"fitting a memory holds the scores of {outputs} answers to {questions} questions at once, more than "
            f"{MAX_SCORES} numbers: store less, or use --construction hebbian"
        )


def require_perfect_recall(memory: Memory, what: str, change: str) -> float:
    """Return the least margin of a memory that recalls everything (1 if there is one answer); refuse any other."""
    wrong = int((memory.margins <= MIN_MARGIN).sum())
    if wrong:
        raise BuildRefused(
            f"{wrong} of {len(memory.right)} answers would be wrong with {what}; these nets are right only with high "
            f"probability over their random codes, and only if they are large enough: {change}"
        )
    return float(memory.margins.min()) if len(memory.answers) > 1 else 1.0
