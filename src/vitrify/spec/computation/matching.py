"""Base class of the Match tasks: numbers modulo M; at each of them, do some others complete a sum to 0?"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from vitrify.parameters import Within
from vitrify.spec.tasks.catalogue import MAX_SIZE, Answer, Task, Word

MAX_MODULUS = 1 << 17


@dataclass(frozen=True)
class Matching(Task):
    """Numbers from 0 to M - 1, with a query at each; answers depend on the entire word."""

    modulus: Annotated[int, Within(2, MAX_MODULUS)]
    length: Annotated[int, Within(1, MAX_SIZE)]

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.modulus)))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return ("no", "yes")

    @abstractmethod
    def sums(self, numbers: Sequence[int]) -> Sequence[Set[int]]:
        """Return, for each position, the possible sums modulo M of the other numbers."""

    def answers(self, word: Word) -> Sequence[Answer]:
        numbers = [int(symbol) for symbol in word]
        matched = [-x % self.modulus in sums for x, sums in zip(numbers, self.sums(numbers), strict=True)]
        return [self.outputs[yes] for yes in matched]

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Return random numbers, a third of which are changed to match, or to miss by 1: random numbers rarely do."""
        numbers = rng.integers(self.modulus, size=length).tolist()
        for number, sums in enumerate(self.sums(numbers)):
            if sums and rng.random() < 1 / 3:
                numbers[number] = (int(rng.integers(-1, 2)) - int(rng.choice([*sums]))) % self.modulus
        return tuple(map(str, numbers))
