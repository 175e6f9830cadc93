"""Associative recall with many questions: pairs of a key and a value, then keys in any order, each asking for its own.

A pair is two symbols, `k3 v1`, or one, `k3=v1`, where the task is `fused`. Keys of pairs differ, and only keys of pairs
are asked about. (Arora et al. 2023, arXiv 2312.04927.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from typing import Annotated, Any, ClassVar

import numpy as np

from vitrify.spec.tasks.catalogue import MANY, Answer, Task, Within, Word

FUSED = 1 << 19  # different pairs that are one symbol, at most


@dataclass(frozen=True)
class Recall(Task):
    """The value of every key that is asked about, after at most `pairs` pairs and as many as `questions` questions.

    >>> Recall(keys=3, values=2, pairs=2, questions=2, fused=False).answers(["k3", "v1", "k1", "v2", "k1", "k3"])
    [None, None, None, None, 'v2', 'v1']
    """

    name: ClassVar[str] = "recall"
    free: ClassVar[bool] = False

    keys: Annotated[int, Within(1, MANY)]
    values: Annotated[int, Within(1, MANY)]
    pairs: Annotated[int, Within(1, MANY)]
    questions: Annotated[int, Within(1, MANY)]
    fused: bool

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        if given["pairs"] > given["keys"]:
            yield "pairs", f"pairs must be at most keys = {given['keys']}, as their keys differ, is {given['pairs']}"

        if given["fused"] and given["keys"] * given["values"] > FUSED:
            yield "fused", f"fused symbols are a key and a value each: keys × values must be at most {FUSED:,}"

    @property
    def length(self) -> int:
        """As long as all pairs and questions."""
        return self.pairs * (1 if self.fused else 2) + self.questions

    @cached_property
    def key_names(self) -> tuple[str, ...]:
        """The keys, as they are asked about."""
        return tuple(f"k{number + 1}" for number in range(self.keys))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return tuple(f"v{number + 1}" for number in range(self.values))

    @cached_property
    def alphabet(self) -> tuple[str, ...]:
        """Keys, then values; or, fused, keys and then pairs, by key and value."""
        if not self.fused:
            return (*self.key_names, *self.outputs)
        return (*self.key_names, *(f"{key}={value}" for key in self.key_names for value in self.outputs))

    def answers(self, word: Word) -> Sequence[Answer]:
        told: dict[str, str] = {}
        found: list[Answer] = []
        for before, symbol in zip(["", *word], word, strict=False):
            found.append(told.get(symbol))
            if "=" in symbol:
                key, value = symbol.split("=")
                told[key] = value
            elif symbol[0] == "v":
                told[before] = symbol
        return found

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        size = 1 if self.fused else 2
        for pairs in range(1, min(self.pairs, length // size) + 1):
            questions = length - size * pairs
            if questions <= self.questions:
                for keys in permutations(self.key_names, pairs):
                    for values in product(self.outputs, repeat=pairs):
                        told = self._told(keys, values)
                        yield from ((*told, *asked) for asked in product(keys, repeat=questions))

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """All pairs, then questions."""
        keys = [self.key_names[i] for i in rng.permutation(self.keys)[: self.pairs]]
        values = [self.outputs[i] for i in rng.integers(self.values, size=self.pairs)]
        asked = [keys[i] for i in rng.integers(self.pairs, size=self.questions)]
        return (*self._told(keys, values), *asked)[:length]

    def _told(self, keys: Sequence[str], values: Sequence[str]) -> list[str]:
        pairs = zip(keys, values, strict=True)
        return [f"{key}={value}" for key, value in pairs] if self.fused else [part for pair in pairs for part in pair]


TASK = Recall
