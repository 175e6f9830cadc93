r"""Facts in context that must be chained: $K$ chains $a \to b \to c$ lie mixed up, and for one $a$ its $c$ is asked.

A row names $(h+1)K$ different names out of $V$ and makes $K$ chains of $h$ steps of them. The $hK$ steps stand in
random order, each as two tokens, its beginning and its end. The last token is the beginning of one of the chains, and
the answer is that chain's end. The other chains are the distractors: whoever knows which tokens end a chain but not how
to follow one has the loss $\log K$. Source: Guo et al. 2025, arXiv 2502.13913 (two steps, without the words between);
there each chain is told in order, its first step somewhere before its second, so that an end that was told before the
first step of the asked chain is not the answer. Rows in `rounds` keep the order without telling anything by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import below
from vitrify.sandboxes._parameters import later
from vitrify.sandboxes.catalogue import LEAST_LOG, Entry, Predictor, Row, Sandbox


@dataclass(frozen=True)
class MultiHop(Sandbox):
    """Rows of `chains` chains of `hops` steps, with names out of `names`.

    In `rounds` the first steps of all chains come before all second ones, and so on, each round in random order.
    """

    chains: int = 5
    hops: int = 2
    names: int = 40
    rounds: bool = later(False)

    def problems(self) -> Iterator[str]:
        if self.chains < 1:
            yield f"chains must be at least 1, not {self.chains}"
        if self.hops < 1:
            yield f"hops must be at least 1, not {self.hops}"
        if self.names < self.chains * (self.hops + 1):
            yield f"names must be at least chains * (hops + 1) = {self.chains * (self.hops + 1)}, not {self.names}"

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(str(name) for name in range(self.names))

    @property
    def tokens(self) -> int:
        return 2 * self.hops * self.chains + 1

    def draw(self, key: Array) -> Row:
        steps = self.hops * self.chains
        word = jax.random.bits(key, (self.names + steps + 1,))
        named = shuffled(word[: self.names], self.chains * (self.hops + 1)).reshape(self.hops + 1, self.chains)
        pairs = jnp.stack([named[:-1].reshape(-1), named[1:].reshape(-1)], axis=1)
        asked = below(word[-1], self.chains)
        order = shuffled(word[self.names : -1], steps)
        if self.rounds:
            order = order[jnp.argsort(order // self.chains)]  # sorting is stable: each round stays in random order
        tokens = jnp.append(pairs[order].reshape(-1), named[0, asked]).astype(jnp.int32)
        last = jnp.arange(self.tokens + 1) == self.tokens
        place = jnp.argsort(order).reshape(self.hops, self.chains)[:, asked]
        return Row(
            tokens,
            jnp.where(last, named[-1, asked], 0).astype(jnp.int32),
            last.astype(jnp.float32),
            {"chain": asked, "path": named[:, asked], "steps": place},
        )

    def _last(self, p: Array) -> Array:
        log = jnp.where(p > 0, jnp.log(jnp.where(p > 0, p, 1.0)), LEAST_LOG)
        before = jnp.full((self.tokens, self.names), -np.log(self.names))
        return jnp.concatenate([before, log[None]])

    def optimal(self, row: Row) -> Array:
        begins, ends = row.tokens[:-1:2], row.tokens[1::2]
        name = row.tokens[-1]
        for _ in range(self.hops):
            name = ends[jnp.argmax(begins == name)]
        return self._last(jax.nn.one_hot(name, self.names))

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform, "named": self.named, "ends": self.ends}

    def named(self, row: Row) -> Array:
        """Any name of the row."""
        seen = jax.nn.one_hot(row.tokens, self.names).max(axis=0)
        return self._last(seen / seen.sum())

    def ends(self, row: Row) -> Array:
        """Any name that ends a chain: that stands at the end of a step, and at the beginning of none."""
        one = jax.nn.one_hot(row.tokens, self.names)
        last = one[1::2].max(axis=0) * (1 - one[:-1:2].max(axis=0))
        return self._last(last / last.sum())

    def floor(self) -> Array:
        return jnp.zeros(self.tokens + 1)

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        named = rng.permuted(np.tile(np.arange(self.names), (count, 1)), axis=1)
        named = named[:, : self.chains * (self.hops + 1)].reshape(count, self.chains, self.hops + 1)
        pairs = np.stack([named[..., :-1], named[..., 1:]], axis=-1).reshape(count, -1, 2)
        order = rng.permuted(np.tile(np.arange(pairs.shape[1]), (count, 1)), axis=1)
        if self.rounds:  # a step's number is that of its chain, times hops, and that of its round
            order = np.take_along_axis(order, np.argsort(order % self.hops, axis=1, kind="stable"), axis=1)
        mixed = np.take_along_axis(pairs, order[..., None], axis=1).reshape(count, -1)
        asked = rng.integers(self.chains, size=count)
        tokens = np.concatenate([mixed, named[np.arange(count), asked, :1]], axis=1).astype(np.int32)
        targets = np.zeros((count, self.tokens + 1), dtype=np.int32)
        targets[:, -1] = named[np.arange(count), asked, -1]
        return tokens, targets


def shuffled(word: Array, first: int) -> Array:
    """The first numbers of a random order: the ranks of random words, equal ones by their place."""
    own, place = word[:first, None], jnp.arange(len(word))
    less = (word < own) | ((word == own) & (place < place[:first, None]))
    return less.sum(axis=1).astype(jnp.int32)


SANDBOX = Entry(MultiHop, small={"chains": 2, "hops": 2, "names": 6})
