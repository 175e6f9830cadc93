r"""Well-nested brackets of several kinds, at most so many open at once: which bracket comes next?

With no bracket open one must open, with `depth` of them open one must close, else one opens with probability
`opening`; an opening bracket is of any of the $k$ kinds, a closing one of the kind opened last. A row is the beginning
of this endless text. With `closed`, a row is instead a word drawn uniformly from those of the length that close: with
$N_r(d)$ the number of ways to go up and down from $d$ open brackets to none in $r$ steps, a bracket opens with
probability $N_{r-1}(d+1) / N_r(d)$: kinds cancel, as all these words open equally often. The language is
`spec.dyck.Dyck`. Every bracket is asked for, or only those that close, which are known to whoever keeps a stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._brackets import heights, tops
from vitrify.sandboxes._draws import follow, logarithm, whole
from vitrify.sandboxes.catalogue import Entry, Predictor, Row, Sandbox
from vitrify.spec.dyck import Dyck as Spec


@dataclass(frozen=True)
class Dyck(Sandbox):
    """Rows of `length` brackets of `kinds` kinds, at most `depth` of them open at once."""

    TRACED: ClassVar[tuple[str, ...]] = ("opening",)

    kinds: int = 2
    depth: int = 4
    length: int = 64
    opening: float = 0.5
    closed: bool = False
    asked: Literal["all", "closing"] = "all"

    def problems(self) -> Iterator[str]:
        for name, least in (("kinds", 1), ("depth", 1), ("length", 2)):
            if getattr(self, name) < least:
                yield f"{name} must be at least {least}, not {getattr(self, name)}"
        if not 0 < self.opening < 1:
            yield f"opening must lie between 0 and 1, not {self.opening:g}"
        if self.closed and self.length % 2:
            yield f"words that close have an even length, not {self.length}"
        if self.asked == "closing" and self.length <= self.depth:
            yield f"length must be above depth = {self.depth}, not {self.length}, so that a bracket closes"

    @property
    def spec(self) -> Spec:
        """The language."""
        return Spec.of_kinds(self.kinds, self.depth, self.length)

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.spec.vocabulary

    @property
    def tokens(self) -> int:
        return self.length - 1

    def law(self) -> Array:
        """The probability that a bracket opens [place, brackets open]."""
        inner = self._counted() if self.closed else jnp.full((self.length, self.depth + 1), self.opening)
        return inner.at[:, 0].set(1.0).at[:, self.depth].set(0.0)

    def _counted(self) -> Array:
        ways = (np.arange(self.depth + 1) == 0).astype(np.float64)
        found = []
        for _ in range(self.length):
            up, down = np.append(ways[1:], 0.0), np.append(0.0, ways[:-1])
            ways = (up + down) / (up + down).max()  # a factor in all of them does not matter
            found.append(up / np.where(up + down > 0, up + down, 1))
        return jnp.asarray(np.array(found[::-1]), jnp.float32)

    # Rows

    def draw(self, key: Array) -> Row:
        u = jax.random.uniform(key, (2, self.length))

        def step(height: Array, given: tuple[Array, Array]) -> Array:
            return height + jnp.where(given[1] < given[0][height], 1, -1)

        height = follow(step, self.depth + 1, jnp.int32(0), (self.law(), u[0]))
        opens, kind = jnp.diff(height, prepend=0) > 0, whole(u[1], self.kinds)
        before = jnp.pad(tops(opens, kind, height, self.depth, self.kinds)[:-1], (1, 0))
        brackets = jnp.where(opens, 2 * kind, 2 * before + 1).astype(jnp.int32)
        weight = jnp.ones(self.length) if self.asked == "all" else (~opens).astype(jnp.float32)
        return Row(brackets[:-1], brackets, weight, {"height": height})

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        law, each = np.asarray(self.law()), np.arange(count)
        stack, height = np.zeros((count, self.depth + 1), dtype=np.int32), np.zeros(count, dtype=np.int64)
        found = np.empty((count, self.length), dtype=np.int32)
        for t in range(self.length):
            opens = rng.random(count) < law[t, height]
            kind = rng.integers(self.kinds, size=count)
            found[:, t] = np.where(opens, 2 * kind, 2 * stack[each, height] + 1)
            height += np.where(opens, 1, -1)
            stack[each[opens], height[opens]] = kind[opens]
        return found[:, :-1], found

    # Predictors

    def optimal(self, row: Row) -> Array:
        height = heights(row.tokens)
        top = tops(row.tokens % 2 == 0, row.tokens // 2, height[1:], self.depth, self.kinds)
        return self._predicted(row, jax.nn.one_hot(jnp.pad(top, (1, 0)), self.kinds))

    def _predicted(self, row: Row, closing: Array) -> Array:
        """The law, given that a closing bracket is of each kind with some probability [place, kind]."""
        opens = self._expected()[jnp.arange(self.length), heights(row.tokens)][:, None]
        pairs = jnp.stack([jnp.broadcast_to(opens / self.kinds, closing.shape), (1 - opens) * closing], axis=-1)
        return logarithm(pairs.reshape(self.length, -1))

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform, "unigram": self.unigram, "height": self.height}

    def height(self, row: Row) -> Array:
        """Knows how many brackets are open, and not of which kind."""
        return self._predicted(row, jnp.full((self.length, self.kinds), 1 / self.kinds))

    def _expected(self) -> Array:
        """The probability that a bracket opens where one is asked for."""
        return self.law() * (self.asked == "all")

    def unigram(self, row: Row) -> Array:
        """How often each bracket comes at this place."""
        opens = (self._occupied() * self._expected()).sum(axis=-1)
        law = jnp.stack([opens, 1 - opens], axis=-1) / self.kinds
        return jnp.broadcast_to(logarithm(jnp.tile(law, self.kinds)), (*row.targets.shape, 2 * self.kinds))

    def _occupied(self) -> Array:
        """How probable each number of open brackets is before each symbol: [place, height]."""

        def step(now: Array, opens: Array) -> tuple[Array, Array]:
            return jnp.pad((now * opens)[:-1], (1, 0)) + jnp.pad((now * (1 - opens))[1:], (0, 1)), now

        return jax.lax.scan(step, jnp.zeros(self.depth + 1).at[0].set(1.0), self.law())[1]

    def floor(self) -> Array:
        if self.asked == "closing":
            return jnp.zeros(self.length)
        return (self._occupied() * self._losses(self.law())).sum(axis=-1)

    def _losses(self, opens: Array) -> Array:
        entropy = jax.scipy.special.entr(opens) + jax.scipy.special.entr(1 - opens)
        return entropy + opens * np.log(self.kinds)

    def rate(self) -> float | None:
        r"""The heights are visited in the ratios $\pi_{d+1} / \pi_d = p_d / (1 - p_{d+1})$, $p_d$ that one opens."""
        if self.closed or self.asked != "all":
            return None
        opens = self.law()[0]
        visits = jnp.concatenate([jnp.ones(1), jnp.cumprod(opens[:-1] / (1 - opens[1:]))])
        return float((visits * self._losses(opens)).sum() / visits.sum())


SANDBOX = Entry(Dyck, small={"depth": 2, "length": 6, "opening": 0.6})
