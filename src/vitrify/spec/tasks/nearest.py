"""Nearest neighbor: points of a circle with labels, one after the other; which label has the point nearest to this one?

A word is p1 v1 p2 v2 … and may end with a point. At every point the answer is the label of the nearest earlier point,
the latest of them where several are equally near, and `(none)` at the first. (Bhattamishra, Hahn, Blunsom and Kanade
2024, arXiv 2406.09347.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import Annotated, ClassVar

import numpy as np

from vitrify.parameters import Within
from vitrify.spec.tasks.catalogue import MAX_SIZE, NONE, Answer, Task, Word


@dataclass(frozen=True)
class Nearest(Task):
    """The label of the nearest of at most `pairs` earlier points, among `points` equally spaced ones of a circle.

    >>> Nearest(points=8, labels=2, pairs=2).answers(["p1", "v1", "p4", "v2", "p8"])
    ['(none)', None, 'v1', None, 'v1']
    """

    name: ClassVar[str] = "nearest"
    SAMPLES: ClassVar = {"nearest": {"points": 24, "labels": 3, "pairs": 10}}
    free: ClassVar[bool] = False

    points: Annotated[int, Within(3, 16_384)]
    labels: Annotated[int, Within(2, 16_384)]
    pairs: Annotated[int, Within(1, MAX_SIZE // 4)]

    @property
    def length(self) -> int:
        """Length of all pairs and one more point."""
        return 2 * self.pairs + 1

    @cached_property
    def point_names(self) -> tuple[str, ...]:
        """Points, in their order on the circle."""
        return tuple(f"p{number + 1}" for number in range(self.points))

    @cached_property
    def label_names(self) -> tuple[str, ...]:
        """Labels."""
        return tuple(f"v{number + 1}" for number in range(self.labels))

    @property
    def alphabet(self) -> tuple[str, ...]:
        return (*self.point_names, *self.label_names)

    @property
    def outputs(self) -> tuple[str, ...]:
        return (NONE, *self.label_names)

    def answers(self, word: Word) -> Sequence[Answer]:
        places = np.array([int(symbol[1:]) for symbol in word[::2]])
        labels, answers = word[1::2], list[Answer]()
        for at in range(len(word)):
            steps = np.abs(places[: at // 2] - places[at // 2])
            steps = np.minimum(steps, self.points - steps)
            nearest = [NONE, *labels][int(np.flatnonzero(steps == steps.min())[-1]) + 1] if len(steps) else NONE
            answers.append(None if at % 2 else nearest)
        return answers

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        return product(*([self.point_names, self.label_names] * (self.pairs + 1))[:length])

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Return random points, and a random label for each."""
        points = [self.point_names[i] for i in rng.integers(self.points, size=self.pairs + 1)]
        labels = [self.label_names[i] for i in rng.integers(self.labels, size=self.pairs + 1)]
        return tuple(chain.from_iterable(zip(points, labels, strict=True)))[: min(length, self.length)]


TASK = Nearest
