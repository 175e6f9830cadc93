r"""Well-nested brackets of several kinds, at most so many open at once: which bracket comes next?

With no bracket open one must open, with `depth` of them open one must close, else one opens with probability `opening`;
an opening bracket is of any of the $k$ kinds, a closing one of the kind opened last. A sequence is the beginning of
this endless text. With `closed`, a sequence is instead a word drawn uniformly from those of the length that close: with
$N_r(d)$ the number of ways to go up and down from $d$ open brackets to none in $r$ steps, a bracket opens with
probability $N_{r-1}(d+1) / N_r(d)$: kinds cancel, as all these words open equally often. The language is
`spec.dyck.Dyck`. Every bracket is asked for, or only those that close, which are known to whoever keeps a stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.sandboxes.catalogue import Array, Count, Entry, Example, LogProbs, NextSymbol, Within
from vitrify.sandboxes.kit.draws import follow, integer_below, logarithm
from vitrify.spec.languages.dyck import Dyck as Spec


@dataclass(frozen=True)
class DyckSandbox(NextSymbol):
    """Sequences of `length` brackets of `kinds` kinds, at most `depth` of them open at once."""

    PREDICTORS = ("unigram", "height")
    RECORDED = "Dyck"

    TRACED = ("opening",)

    kinds: Count = 2
    depth: Count = 4
    length: Annotated[int, Within(2)] = 64
    opening: Annotated[float, Within(0, 1, "()")] = 0.5
    closed: bool = False
    scored: Literal["all", "closing"] = "all"

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.closed and self.length % 2:
            yield "length", f"must be even for words that close, not {self.length}"
        if self.scored == "closing" and self.length <= self.depth:
            yield "length", f"must be above depth = {self.depth}, so that a bracket closes, not {self.length}"

    @property
    def spec(self) -> Spec:
        """The language."""
        return Spec.of_kinds(self.kinds, self.depth, self.length)

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.spec.vocabulary

    def law(self) -> Array:
        """The probability that a bracket opens [place, brackets open]."""
        inner = self._counted() if self.closed else jnp.full((self.length, self.depth + 1), self.opening)
        return inner.at[:, 0].set(1.0).at[:, self.depth].set(0.0)

    def _counted(self) -> Array:
        ways = (np.arange(self.depth + 1) == 0).astype(np.float64)
        opening = []
        for _ in range(self.length):
            up, down = np.append(ways[1:], 0.0), np.append(0.0, ways[:-1])
            ways = (up + down) / (up + down).max()  # a factor in all of them does not matter
            opening.append(up / np.where(up + down > 0, up + down, 1))
        return jnp.asarray(np.array(opening[::-1]), jnp.float32)

    # Sequences

    def draw(self, key: Array) -> Example:
        u = jax.random.uniform(key, (2, self.length))

        def step(height: Array, step_inputs: tuple[Array, Array]) -> Array:
            return height + jnp.where(step_inputs[1] < step_inputs[0][height], 1, -1)

        height = follow(step, self.depth + 1, jnp.int32(0), (self.law(), u[0]))
        opens, kind = jnp.diff(height, prepend=0) > 0, integer_below(u[1], self.kinds)
        before = jnp.pad(tops(opens, kind, height, self.depth, self.kinds)[:-1], (1, 0))
        brackets = jnp.where(opens, 2 * kind, 2 * before + 1).astype(jnp.int32)
        weight = jnp.ones(self.length) if self.scored == "all" else (~opens).astype(jnp.float32)
        return Example(brackets[:-1], brackets, weight, {"height": height})

    # Predictors

    def optimal(self, example: Example) -> LogProbs:
        height = heights(example.tokens)
        top = tops(example.tokens % 2 == 0, example.tokens // 2, height[1:], self.depth, self.kinds)
        return self._predicted(example, jax.nn.one_hot(jnp.pad(top, (1, 0)), self.kinds))

    def _predicted(self, example: Example, closing: Array) -> LogProbs:
        """The law, given that a closing bracket is of each kind with some probability [place, kind]."""
        opens = self._expected()[jnp.arange(self.length), heights(example.tokens)][:, None]
        pairs = jnp.stack([jnp.broadcast_to(opens / self.kinds, closing.shape), (1 - opens) * closing], axis=-1)
        return logarithm(pairs.reshape(self.length, -1))

    def height(self, example: Example) -> LogProbs:
        """Knows how many brackets are open, and not of which kind."""
        return self._predicted(example, jnp.full((self.length, self.kinds), 1 / self.kinds))

    def _expected(self) -> Array:
        """The probability that a bracket opens where one is asked for."""
        return self.law() * (self.scored == "all")

    def unigram(self, example: Example) -> LogProbs:
        """Return the marginal distribution of the brackets at each position."""
        opens = (self._occupied() * self._expected()).sum(axis=-1)
        law = jnp.stack([opens, 1 - opens], axis=-1) / self.kinds
        return jnp.broadcast_to(logarithm(jnp.tile(law, self.kinds)), (*example.targets.shape, 2 * self.kinds))

    def _occupied(self) -> Array:
        """Return the distribution of the number of open brackets before each symbol: [position, height]."""

        def step(now: Array, opens: Array) -> tuple[Array, Array]:
            return jnp.pad((now * opens)[:-1], (1, 0)) + jnp.pad((now * (1 - opens))[1:], (0, 1)), now

        return jax.lax.scan(step, jnp.zeros(self.depth + 1).at[0].set(1.0), self.law())[1]

    def floor(self) -> Array:
        if self.scored == "closing":
            return jnp.zeros(self.length)
        return (self._occupied() * self._losses(self.law())).sum(axis=-1)

    def _losses(self, opens: Array) -> Array:
        entropy = jax.scipy.special.entr(opens) + jax.scipy.special.entr(1 - opens)
        return entropy + opens * np.log(self.kinds)

    def rate(self) -> float | None:
        r"""The heights are visited in the ratios $\pi_{d+1} / \pi_d = p_d / (1 - p_{d+1})$, $p_d$ that one opens."""
        if self.closed or self.scored != "all":
            return None
        opens = self.law()[0]
        visits = jnp.concatenate([jnp.ones(1), jnp.cumprod(opens[:-1] / (1 - opens[1:]))])
        return float((visits * self._losses(opens)).sum() / visits.sum())


# Brackets as numbers: opening one `k` is 2k, and its closing one 2k + 1, as in `Dyck.of_kinds(…).vocabulary`


def tops(opens: Array, kind: Array, height: Array, depth: int, kinds: int) -> Array:
    """The kind of the last bracket that is open after each symbol, 0 where none is: [time].

    `height` is how many are open after each symbol, at most `depth`. A CPU keeps a stack; on a GPU the bracket that is
    open at a height is the last one that reached it by opening, at all places at once.
    """
    return jax.lax.platform_dependent(
        opens, kind, height, default=partial(_stacked, depth), cuda=partial(_latest, depth, kinds)
    )


def _stacked(depth: int, opens: Array, kind: Array, height: Array) -> Array:
    def step(stack: Array, step_inputs: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        opens, kind, height = step_inputs
        here = jnp.arange(1, depth + 1) == height
        stack = jnp.where(here & opens, kind, stack)
        return stack, (stack * here).sum()

    step_inputs = (opens, kind.astype(jnp.int32), height)
    return jax.lax.scan(step, jnp.zeros(depth, jnp.int32), step_inputs)[1].astype(jnp.int32)


def _latest(depth: int, kinds: int, opens: Array, kind: Array, height: Array) -> Array:
    reached = opens[:, None] & (height[:, None] == jnp.arange(1, depth + 1))  # [time, height - 1]
    stamped = jnp.where(reached, (jnp.arange(len(opens)) * kinds + kind)[:, None], -1)
    latest = jax.lax.cummax(stamped, axis=0)
    last = jnp.take_along_axis(latest, jnp.clip(height - 1, 0, depth - 1)[:, None], axis=1)[:, 0]
    return jnp.where(height > 0, last % kinds, 0).astype(jnp.int32)


def heights(brackets: Array) -> Array:
    """Return the number of open brackets after 0, 1, …, n symbols: [n + 1]."""
    return jnp.pad(jnp.cumsum(1 - 2 * (brackets % 2)), (1, 0))


SANDBOX = Entry(DyckSandbox, small={"depth": 2, "length": 6, "opening": 0.6})
