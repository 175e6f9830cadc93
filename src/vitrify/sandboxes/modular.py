r"""Modular arithmetic: $a_1 \circ a_2 \circ \dots \circ a_k$ modulo $m$, from the left, asked for at the `=`.

With a `fraction` below 1 training sees only that part of all $m^k$ questions, chosen once by a seed, and every other
split only the rest: whoever answers those has understood the rule, and has not learnt a table by heart. Source: Power
et al. 2022, arXiv 2201.02177.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import below
from vitrify.sandboxes._exact import MOST, Exact, logs
from vitrify.sandboxes.catalogue import Entry, Predictor, Row, Split

LARGEST = 1 << 15  # a product of two numbers is still a whole number
COUNTED = 1 << 10  # up to here the answers of products are counted


@dataclass(frozen=True)
class Modular(Exact):
    """`terms` numbers below `modulus`; `part` says which of the questions are drawn where they are split by `seed`."""

    modulus: int = 97
    operation: Literal["+", "-", "*"] = "+"
    terms: int = 2
    fraction: float = 1.0
    seed: int = 0
    part: Literal["all", "train", "rest"] = "all"

    def problems(self) -> Iterator[str]:
        if not 2 <= self.modulus <= LARGEST:
            yield f"modulus must be from 2 to {LARGEST}, not {self.modulus}"
        if not 2 <= self.terms <= MOST:
            yield f"terms must be from 2 to {MOST}, not {self.terms}"
        if not 0 < self.fraction <= 1:
            yield f"fraction must lie in (0, 1], not {self.fraction:g}"
        elif self.fraction < 1 and self.modulus >= 2 and self.terms >= 2:
            if self.terms > MOST.bit_length() or self.modulus**self.terms > MOST:
                yield f"there must be at most {MOST} questions to split them: make modulus or terms smaller"
            elif not 1 <= self._training < self.modulus**self.terms:
                yield f"fraction = {self.fraction:g} leaves one of the parts empty"
        if self.fraction == 1 and self.part != "all":
            yield f"there is no part {self.part!r} of questions where fraction = 1"

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
    def questions(self) -> Any:
        """The numbers [question, term] of one part of all questions, in the order of their drawing."""
        every = np.random.default_rng(self.seed).permutation(self.modulus**self.terms)
        chosen = every[: self._training] if self.part == "train" else every[self._training :]
        return np.stack(np.unravel_index(chosen, (self.modulus,) * self.terms), axis=1).astype(np.int32)

    def draw(self, key: Array) -> Row:
        if self.part == "all":
            numbers = below(jax.random.bits(key, (self.terms,)), self.modulus)
        else:
            numbers = jnp.asarray(self.questions)[below(jax.random.bits(key), len(self.questions))]
        signs = jnp.full(self.terms, self.modulus, jnp.int32).at[-1].add(1)
        tokens = jnp.stack([numbers, signs], axis=1).reshape(-1)
        weight = jnp.zeros(self.tokens + 1).at[-1].set(1.0)
        results = self.results(numbers)
        return Row(tokens, jnp.zeros(self.tokens + 1, jnp.int32).at[-1].set(results[-1]), weight, {"results": results})

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
        counted = self.operation == "*" and self.modulus <= COUNTED
        return {"uniform": self.uniform} | ({"unigram": self.unigram} if counted else {})

    def unigram(self, row: Row) -> Array:
        """How often each number is the result of all questions: 0 comes more often than others in products."""
        numbers = np.arange(self.modulus)
        shares = np.full(self.modulus, 1 / self.modulus)
        for _ in range(self.terms - 1):
            pairs = np.repeat(shares / self.modulus, self.modulus)
            shares = np.bincount(np.outer(numbers, numbers).ravel() % self.modulus, pairs, self.modulus)
        return jnp.broadcast_to(logs(jnp.asarray(shares, jnp.float32)), (*row.targets.shape, self.modulus))

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        numbers = rng.integers(self.modulus, size=(count, self.terms))
        if self.part != "all":
            numbers = self.questions[rng.integers(len(self.questions), size=count)].astype(np.int64)
        result = numbers[:, 0]
        for term in numbers[:, 1:].T:
            result = {"+": result + term, "-": result - term, "*": result * term}[self.operation] % self.modulus
        tokens, targets = (
            np.full((count, self.tokens), self.modulus),
            np.zeros((count, self.tokens + 1), dtype=np.int64),
        )
        tokens[:, ::2], tokens[:, -1], targets[:, -1] = numbers, self.modulus + 1, result
        return tokens, targets


SANDBOX = Entry(Modular, small={"modulus": 5, "operation": "*", "terms": 3})
