"""What tasks of matching share: numbers modulo M, and at each of them whether some others complete a sum to 0."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from vitrify.spec.tasks.catalogue import MANY, Answer, Task, Within, Word

MODULUS = 1 << 17


@dataclass(frozen=True)
class Matching(Task):
    """Numbers from 0 to M - 1, and a question at each; answers depend on the whole word."""

    modulus: Annotated[int, Within(2, MODULUS)]
    length: Annotated[int, Within(1, MANY)]

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.modulus)))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return ("no", "yes")

    @abstractmethod
    def sums(self, numbers: Sequence[int]) -> Sequence[Set[int]]:
        """At each position, what the numbers that it may choose can add up to, modulo M."""

    def answers(self, word: Word) -> Sequence[Answer]:
        numbers = [int(symbol) for symbol in word]
        found = [-x % self.modulus in sums for x, sums in zip(numbers, self.sums(numbers), strict=True)]
        return [self.outputs[yes] for yes in found]

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Random numbers, of which a third are made to match, or to fail by 1: these are what chance would not meet."""
        numbers = rng.integers(self.modulus, size=length).tolist()
        for number, sums in enumerate(self.sums(numbers)):
            if sums and rng.random() < 1 / 3:
                numbers[number] = (int(rng.integers(-1, 2)) - int(rng.choice([*sums]))) % self.modulus
        return tuple(map(str, numbers))
