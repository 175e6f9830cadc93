r"""Composition: the tables of two random functions, entry by entry in a random order, then a question for $f(g(x))$.

`g3=5` says that $g(3) = 5$; after all entries of both functions, `x=3` asks for $f(g(3))$, as
`vitrify.spec.tasks.composition` has it. Source: Peng, Narayanan and Papadimitriou 2024, arXiv 2402.08164.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import jax
import jax.numpy as jnp

from vitrify.sandboxes.catalogue import Array, Defined, Entry, Exact, Example, LogProbs, Within
from vitrify.sandboxes.kit.draws import below, logarithm, shuffled
from vitrify.spec.tasks.composition import Composition as Task


@dataclass(frozen=True)
class CompositionSandbox(Defined, Exact):
    """Functions on `size` numbers; one question at the end."""

    PREDICTORS = ("image",)
    RECORDED = "Composition"

    size: Annotated[int, Within(1, 512)] = 16

    @cached_property
    def definition(self) -> Task:
        return Task(self.size)

    def draw(self, key: Array) -> Example:
        n = self.size
        bits = jax.random.bits(key, (4 * n + 1,))
        place = shuffled(bits[: 2 * n])  # entries of g, then of f
        tokens = jnp.concatenate([place * n + below(bits[2 * n : -1], n), 2 * n * n + below(bits[-1:], n)])
        tables = self.tables(tokens)
        weight = jnp.zeros(self.tokens + 1).at[-1].set(1.0)
        return Example(tokens, self.right(tokens), weight, {"g": tables[:n], "f": tables[n:]})

    def tables(self, tokens: Array) -> Array:
        """Return the tables of g and then of f [argument], read off the tokens."""
        place, value = jnp.divmod(tokens[:-1], self.size)
        return jnp.zeros(2 * self.size, jnp.int32).at[place].set(value, unique_indices=True)

    def right(self, tokens: Array) -> Array:
        """Return f(g(x)) as the last target."""
        place, value = jnp.divmod(tokens[:-1], self.size)
        middle = jnp.sum(jnp.where(place == tokens[-1] - 2 * self.size**2, value, 0))
        answer = jnp.sum(jnp.where(place == self.size + middle, value, 0))
        return jnp.zeros(self.tokens + 1, jnp.int32).at[-1].set(answer)

    def image(self, example: Example) -> LogProbs:
        """The values of f, each as often as f takes it, whatever is asked."""
        f = self.tables(example.tokens)[self.size :]
        shares = (f[:, None] == jnp.arange(self.size)).mean(axis=0)
        return self.uniform(example).at[-1].set(logarithm(shares))


SANDBOX = Entry(CompositionSandbox, small={"size": 2})
