r"""Facts in context that must be chained: $K$ chains $a \to b \to c$ lie mixed up, and for one $a$ its $c$ is asked.

A sequence names $(h+1)K$ different names out of $V$ and makes $K$ chains of $h$ steps of them. The $hK$ steps stand in
random order, each as two tokens, its beginning and its end. The last token is the beginning of one of the chains, and
the answer is that chain's end. The other chains are the distractors: whoever knows which tokens end a chain but not how
to follow one has the loss $\log K$. Source: Guo et al. 2025, arXiv 2502.13913 (two steps, without the words between);
there each chain is told in order, its first step somewhere before its second, so that an end that was told before the
first step of the asked chain is not the answer. Sequences in `rounds` keep the order without telling anything by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from vitrify.sandboxes.catalogue import Array, Count, Entry, Exact, Example, LogProbs, later
from vitrify.sandboxes.kit.draws import below, logarithm


@dataclass(frozen=True)
class MultiHop(Exact):
    """Sequences of `chains` chains of `hops` steps, with names out of `names`.

    In `rounds` the first steps of all chains come before all second ones, and so on, each round in random order.
    """

    kind = "lm"
    SIZE = "names"
    PREDICTORS = ("named", "ends")

    chains: Count = 5
    hops: Count = 2
    names: int = 40
    rounds: bool = later(False)

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.names < self.chains * (self.hops + 1):
            yield "names", f"must be at least chains * (hops + 1) = {self.chains * (self.hops + 1)}, not {self.names}"

    @property
    def tokens(self) -> int:
        return 2 * self.hops * self.chains + 1

    def draw(self, key: Array) -> Example:
        steps = self.hops * self.chains
        word = jax.random.bits(key, (self.names + steps + 1,))
        named = shuffled(word[: self.names], self.chains * (self.hops + 1)).reshape(self.hops + 1, self.chains)
        pairs = jnp.stack([named[:-1].reshape(-1), named[1:].reshape(-1)], axis=1)
        query = below(word[-1], self.chains)
        order = shuffled(word[self.names : -1], steps)
        if self.rounds:
            order = order[jnp.argsort(order // self.chains)]  # sorting is stable: each round stays in random order
        tokens = jnp.append(pairs[order].reshape(-1), named[0, query]).astype(jnp.int32)
        weight = jnp.zeros(self.tokens + 1).at[-1].set(1.0)
        place = jnp.argsort(order).reshape(self.hops, self.chains)[:, query]
        latent = {"chain": query, "path": named[:, query], "steps": place}
        return Example(tokens, self.right(tokens), weight, latent)

    def right(self, tokens: Array) -> Array:
        """The end of the chain that begins with the last token."""
        begins, ends, name = tokens[:-1:2], tokens[1::2], tokens[-1]
        for _ in range(self.hops):
            name = ends[jnp.argmax(begins == name)]
        return jnp.zeros(self.tokens + 1, jnp.int32).at[-1].set(name)

    def named(self, example: Example) -> LogProbs:
        """Any name of the sequence."""
        seen = jax.nn.one_hot(example.tokens, self.names).max(axis=0)
        return self.uniform(example).at[-1].set(logarithm(seen / seen.sum()))

    def ends(self, example: Example) -> LogProbs:
        """Any name that ends a chain: that stands at the end of a step, and at the beginning of none."""
        one = jax.nn.one_hot(example.tokens, self.names)
        last = one[1::2].max(axis=0) * (1 - one[:-1:2].max(axis=0))
        return self.uniform(example).at[-1].set(logarithm(last / last.sum()))


def shuffled(word: Array, first: int) -> Array:
    """The first numbers of a random order: the ranks of random words, equal ones by their place."""
    own, place = word[:first, None], jnp.arange(len(word))
    less = (word < own) | ((word == own) & (place < place[:first, None]))
    return less.sum(axis=1).astype(jnp.int32)


SANDBOX = Entry(MultiHop, small={"chains": 2, "hops": 2, "names": 6})
