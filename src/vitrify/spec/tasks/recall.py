"""Associative recall with many queries: pairs of a key and a value, then keys in any order; answers are their values.

A pair is two symbols, `k3 v1`, or one, `k3=v1`, where the task is `fused`. Keys of pairs differ, and only keys of pairs
are queried. (Arora et al. 2023, arXiv 2312.04927.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from typing import Annotated, ClassVar

import numpy as np

from vitrify.parameters import Within
from vitrify.spec.tasks.catalogue import MAX_SIZE, Answer, Task, Word

MAX_FUSED = 1 << 19  # different symbols for pairs


@dataclass(frozen=True)
class Recall(Task):
    """The value of every queried key, after at most `pairs` pairs and with at most `queries` queries.

    >>> Recall(keys=3, values=2, pairs=2, queries=2, fused=False).answers(["k3", "v1", "k1", "v2", "k1", "k3"])
    [None, None, None, None, 'v2', 'v1']
    """

    name: ClassVar[str] = "recall"
    SAMPLES: ClassVar = {"recall": {"keys": 8, "values": 8, "pairs": 6, "queries": 8, "fused": False}}
    free: ClassVar[bool] = False

    keys: Annotated[int, Within(1, MAX_SIZE)]
    values: Annotated[int, Within(1, MAX_SIZE)]
    pairs: Annotated[int, Within(1, MAX_SIZE)]
    queries: Annotated[int, Within(1, MAX_SIZE)]
    fused: bool

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.pairs > self.keys:
            yield "pairs", f"must be at most keys = {self.keys}, as their keys differ, not {self.pairs}"
        if self.fused and self.keys * self.values > MAX_FUSED:
            yield "fused", f"symbols are a key and a value each: keys × values must be at most {MAX_FUSED:,}"

    @property
    def length(self) -> int:
        """Length of all pairs and queries."""
        return self.pairs * (1 if self.fused else 2) + self.queries

    @cached_property
    def key_names(self) -> tuple[str, ...]:
        """Keys, as in queries."""
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
        value_of: dict[str, str] = {}
        answers: list[Answer] = []
        for before, symbol in zip(["", *word], word, strict=False):
            answers.append(value_of.get(symbol))
            if "=" in symbol:
                key, value = symbol.split("=")
                value_of[key] = value
            elif symbol[0] == "v":
                value_of[before] = symbol
        return answers

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        size = 1 if self.fused else 2
        for pairs in range(1, min(self.pairs, length // size) + 1):
            queries = length - size * pairs
            if queries <= self.queries:
                for keys in permutations(self.key_names, pairs):
                    for values in product(self.outputs, repeat=pairs):
                        listed = self._pairs(keys, values)
                        yield from ((*listed, *queried) for queried in product(keys, repeat=queries))

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        """Return all pairs, then queries."""
        keys = [self.key_names[i] for i in rng.permutation(self.keys)[: self.pairs]]
        values = [self.outputs[i] for i in rng.integers(self.values, size=self.pairs)]
        queried = [keys[i] for i in rng.integers(self.pairs, size=self.queries)]
        return (*self._pairs(keys, values), *queried)[:length]

    def _pairs(self, keys: Sequence[str], values: Sequence[str]) -> list[str]:
        pairs = zip(keys, values, strict=True)
        return [f"{key}={value}" for key, value in pairs] if self.fused else [part for pair in pairs for part in pair]


TASK = Recall
