r"""Modular arithmetic: $a_1 \circ a_2 \circ \dots \circ a_k$ modulo $m$, from the left; the answer comes after `=`.

With a `fraction` below 1 training sees only that fraction of all $m^k$ questions, chosen once by a seed, and every
other split only the rest: accuracy there measures generalization, not memory. Source: Power et al. 2022, arXiv
2201.02177.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, Int
from vitrify.sandboxes.catalogue import MAX_SYMBOLS, Entry, Exact, Example, LogProbs, Predictor, Share, Split, Within
from vitrify.sandboxes.kit.draws import below, logarithm

MAX_MODULUS = 1 << 15  # products of two numbers, and sums of MAX_SYMBOLS, fit in 32 bits
MAX_COUNTED = 1 << 10  # largest modulus for which the distribution of products is computed


@dataclass(frozen=True)
class Modular(Exact):
    """`terms` numbers below `modulus`; if `seed` splits the questions, `part` is the part that is drawn from."""

    modulus: Annotated[int, Within(2, MAX_MODULUS)] = 97
    operation: Literal["+", "-", "*"] = "+"
    terms: Annotated[int, Within(2, MAX_SYMBOLS)] = 2
    fraction: Share = 1.0
    seed: int = 0
    part: Literal["all", "train", "rest"] = "all"

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.fraction == 1:
            if self.part != "all":
                yield "part", f"must be all where fraction = 1, not {self.part}"
        elif self.terms > MAX_SYMBOLS.bit_length() or self.modulus**self.terms > MAX_SYMBOLS:
            yield "modulus", f"and terms must be smaller: at most {MAX_SYMBOLS} questions can be split"
        elif not 1 <= self._training < self.modulus**self.terms:
            yield "fraction", f"= {self.fraction:g} leaves one of the parts empty"

    def of(self, split: Split) -> Modular:
        if self.fraction == 1:
            return self
        return replace(self, part="train" if split == "train" else "rest")

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*self.answers, self.operation, "=")

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.modulus)))

    @property
    def tokens(self) -> int:
        return 2 * self.terms

    @property
    def _training(self) -> int:
        return round(self.fraction * float(self.modulus**self.terms))

    @cached_property
    def questions(self) -> Int[Array, "question term"]:
        """The numbers [question, term] of one part of all questions, in the random order that splits them."""
        every = np.random.default_rng(self.seed).permutation(self.modulus**self.terms)
        chosen = every[: self._training] if self.part == "train" else every[self._training :]
        return np.stack(np.unravel_index(chosen, (self.modulus,) * self.terms), axis=1).astype(np.int32)

    def draw(self, key: Array) -> Example:
        if self.part == "all":
            numbers = below(jax.random.bits(key, (self.terms,)), self.modulus)
        else:
            numbers = jnp.asarray(self.questions)[below(jax.random.bits(key), len(self.questions))]
        signs = jnp.full(self.terms, self.modulus, jnp.int32).at[-1].add(1)
        tokens = jnp.stack([numbers, signs], axis=1).reshape(-1)
        weight = jnp.zeros(self.tokens + 1).at[-1].set(1.0)
        results = self.results(numbers)
        return Example(
            tokens, jnp.zeros(self.tokens + 1, jnp.int32).at[-1].set(results[-1]), weight, {"results": results}
        )

    def results(self, numbers: Array) -> Array:
        """The result after each term."""
        if self.operation == "*":
            return jax.lax.associative_scan(lambda a, b: a * b % self.modulus, numbers)
        signed = numbers if self.operation == "+" else (-numbers).at[0].set(numbers[0])
        return jnp.cumsum(signed) % self.modulus

    def right(self, tokens: Array) -> Array:
        """The last result, at the end."""
        return jnp.zeros(self.tokens + 1, jnp.int32).at[-1].set(self.results(tokens[::2])[-1])

    def predictors(self) -> Mapping[str, Predictor]:
        counted = self.operation == "*" and self.modulus <= MAX_COUNTED
        return {"uniform": self.uniform} | ({"unigram": self.unigram} if counted else {})

    def unigram(self, example: Example) -> LogProbs:
        """Return the distribution of the result over all questions of both parts; 0 is the most frequent product."""
        numbers = np.arange(self.modulus)
        shares = np.full(self.modulus, 1 / self.modulus)
        for _ in range(self.terms - 1):
            pairs = np.repeat(shares / self.modulus, self.modulus)
            shares = np.bincount(np.outer(numbers, numbers).ravel() % self.modulus, pairs, self.modulus)
        return jnp.broadcast_to(logarithm(jnp.asarray(shares, jnp.float32)), (*example.targets.shape, self.modulus))


SANDBOX = Entry(Modular, small={"modulus": 5, "operation": "*", "terms": 3})
