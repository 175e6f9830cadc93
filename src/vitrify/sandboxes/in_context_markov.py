r"""In-context Markov chains: every sequence has a chain of its own, which the reader must learn from the sequence.

The kernel $P$ has a row for each of the $k^m$ words of $m$ = `order` symbols, its *contexts*; rows are drawn from a
Dirichlet distribution with all parameters $\alpha$. The first $m$ symbols are uniform, and $x_{t+1} \sim P_w$ for the
last $m$ symbols $w$. With $c_{wb}$ the number of times that $b$ followed $w$ so far, the posterior of row $w$ is
Dirichlet with parameters $\alpha + c_{wb}$, so the best prediction after $w$ is
$(c_{wb} + \alpha) / (\sum_b c_{wb} + k\alpha)$. With the order 0 the symbols are independent of each other. Source:
Edelman et al. 2024, arXiv 2402.11004.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import jax
import jax.numpy as jnp

from vitrify.arrays import Array
from vitrify.sandboxes.catalogue import Entry, Example, LogProbs, Natural, NextSymbol, Positive, Predictor, Within
from vitrify.sandboxes.kit.contexts import order_name
from vitrify.sandboxes.kit.draws import dirichlet, follow, invert, walk

MAX_KERNEL_CONTEXTS = 1 << 12


@dataclass(frozen=True)
class InContextMarkov(NextSymbol):
    """Sequences of `length` symbols, each from a new random Markov chain of `order` over `states` symbols."""

    states: Annotated[int, Within(2)] = 3
    length: Annotated[int, Within(2)] = 100
    alpha: Positive = 1.0
    order: Natural = 1

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.contexts > MAX_KERNEL_CONTEXTS:
            made = f"{self.order} with {self.states} states makes {self.contexts} contexts"
            yield "order", f"{made}: at most {MAX_KERNEL_CONTEXTS} fit"
        if self.length <= self.order:
            yield "length", f"must be at least {1 + self.order}, not {self.length}"

    @property
    def rounded(self) -> bool:
        return self.alpha != 1  # with alpha 1 rows are drawn without rounding: see `draws.dirichlet`

    @property
    def contexts(self) -> int:
        """The number of words of `order` symbols, each with a row of the kernel."""
        return int(self.states**self.order)

    def draw(self, key: Array) -> Example:
        chain, start, steps = jax.random.split(key, 3)
        bounds, kernel = dirichlet(chain, self.alpha, (self.contexts, self.states))
        first = jax.random.randint(start, () if self.order == 1 else (self.order,), 0, self.states)
        u = jax.random.uniform(steps, (self.length - self.order,))
        later = walk(bounds, first, u) if self.order == 1 else self._walk(bounds, first, u)
        symbols = jnp.concatenate([first.reshape(-1), later]).astype(jnp.int32)
        return Example(symbols[:-1], symbols, jnp.ones(self.length), {"kernel": kernel})

    def _walk(self, bounds: Array, first: Array, u: Array) -> Array:
        """Return the symbols after the first `order`, which the chain has as state: a number with base `states`."""
        code = jnp.int32(0)
        for place in range(self.order):
            code = code * self.states + first[place]

        def step(word: Array, u: Array) -> Array:
            return (word * self.states + invert(bounds[word], u)) % self.contexts

        if not self.order:
            return invert(bounds[0], u)
        return follow(step, self.contexts, code, u) % self.states

    def optimal(self, example: Example) -> LogProbs:
        return self._counted(example, self.order, self.alpha)

    def _counted(self, example: Example, order: int, more: float) -> LogProbs:
        """Estimates from how often each symbol came up so far after the last `order` ones, with `more` of each."""
        k, n = self.states, example.tokens.shape[0]
        if n < order:
            return self.uniform(example)
        # The word before each token from the first that has one, and at the end.
        word = jnp.zeros(n - order + 1, dtype=jnp.int32)
        for place in range(order):
            word = word * k + example.tokens[place : place + len(word)]
        before = jax.nn.one_hot(word, k**order)
        after = jax.nn.one_hot(example.tokens[order:], k)
        counts = jnp.cumsum(before[:-1, :, None] * after[:, None, :], axis=0)
        counts = jnp.concatenate([jnp.zeros((1, k**order, k)), counts])
        seen = jnp.einsum("tw,twb->tb", before, counts) + more
        start = jnp.full((order, k), -jnp.log(k))
        return jnp.concatenate([start, jnp.log(seen / seen.sum(axis=-1, keepdims=True))])

    def predictors(self) -> Mapping[str, Predictor]:
        lower = {order_name(order): partial(self._counted, order=order, more=1.0) for order in range(self.order)}
        return {"uniform": self.uniform, **lower}


SANDBOX = Entry(InContextMarkov, small={"states": 2, "length": 4})
