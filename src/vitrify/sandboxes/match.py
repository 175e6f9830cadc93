r"""Match2 and Match3: at each number of a row, whether some other number, or two of them, complete it to 0 modulo $M$.

What may complete it is as in `vitrify.spec.tasks`: any number (`match2`), any two neighbours (`match3-bigram`), any two
within a few places (`match3-local`). An answer depends on the whole row. Among random numbers of a large $M$ there is
no match at all, so a share of the places is planted: they get what would complete numbers that stood at random places
before the planting, which fails only where one of those is planted too. Source: Sanford, Hsu and Telgarsky 2023,
arXiv 2306.02896.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import below
from vitrify.sandboxes._exact import MOST, Exact
from vitrify.sandboxes.catalogue import Entry, Predictor, Row

SAMPLE = 1 << 12  # rows for a rate


@dataclass(frozen=True)
class Match(Exact):
    """Rows of `length` numbers below `modulus`; `reach` counts for `match3-local` only."""

    TRACED: ClassVar[tuple[str, ...]] = ("planted",)

    task: Literal["match2", "match3-bigram", "match3-local"] = "match2"
    modulus: int = 64
    length: int = 32
    reach: int = 2
    planted: float = 0.4

    def problems(self) -> Iterator[str]:
        if not 2 <= self.modulus <= MOST:
            yield f"modulus must be from 2 to {MOST}, not {self.modulus}"
        if self.length < 2:
            yield f"length must be at least 2, not {self.length}"
        if not 1 <= self.reach < self.length and self.task == "match3-local":
            yield f"reach must be from 1 to length - 1, not {self.reach}"
        if not 0 <= self.planted <= 1:
            yield f"planted must lie in [0, 1], not {self.planted:g}"

    @property
    def bidirectional(self) -> bool:
        return True

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.modulus)))

    @property
    def answers(self) -> tuple[str, ...]:
        return ("no", "yes")

    @property
    def tokens(self) -> int:
        return self.length

    def draw(self, key: Array) -> Row:
        first, planted, one, two = jnp.split(jax.random.bits(key, (4 * self.length,)), 4)
        numbers, place = below(first, self.modulus), jnp.arange(self.length)
        if self.task == "match3-local":
            low = jnp.maximum(place - self.reach, 0)
            width = jnp.minimum(place + self.reach, self.length - 1) - low + 1
            total = numbers[low + below(one, width)] + numbers[low + below(two, width)]
        elif self.task == "match3-bigram":
            at = below(one, self.length - 1)
            total = numbers[at] + numbers[at + 1]
        else:
            total = numbers[below(one, self.length)]
        chosen = below(planted, MOST) < jnp.round(self.planted * MOST)
        tokens = jnp.where(chosen, -total % self.modulus, numbers)
        weight = jnp.pad(jnp.ones(self.length), (1, 0))
        return Row(tokens, self.right(tokens), weight, {"planted": chosen})

    def right(self, tokens: Array) -> Array:
        """Whether what is missing to 0 is among the sums."""
        wanted = -tokens % self.modulus
        if self.task == "match3-local":
            places = np.arange(self.length)[:, None] + np.arange(-self.reach, self.reach + 1)
            inside = (places >= 0) & (places < self.length)
            near = tokens[np.clip(places, 0, self.length - 1)]  # [place, step]
            sums = (near[:, :, None] + near[:, None]) % self.modulus
            found = ((sums == wanted[:, None, None]) & inside[:, :, None] & inside[:, None]).any(axis=(1, 2))
        else:
            sums = (tokens[:-1] + tokens[1:]) % self.modulus if self.task == "match3-bigram" else tokens
            ordered = jnp.sort(sums)
            found = ordered[jnp.clip(jnp.searchsorted(ordered, wanted), 0, len(ordered) - 1)] == wanted
        return jnp.pad(found.astype(jnp.int32), (1, 0))

    def predictors(self) -> Mapping[str, Predictor]:
        planted: object = self.planted
        return {"uniform": self.uniform} | ({"rate": self.yes} if isinstance(planted, float | int) else {})

    def yes(self, row: Row) -> Array:
        """How often the answer is yes, whatever the numbers are; from a sample."""
        yes = float(self.reference(np.random.default_rng(0), SAMPLE)[1][:, 1:].mean())
        return jnp.log(jnp.broadcast_to(jnp.clip(jnp.array([1 - yes, yes]), 1e-6), (*row.targets.shape, 2)))

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        n, rows, place = self.length, np.arange(count)[:, None], np.arange(self.length)
        before = rng.integers(self.modulus, size=(count, n))
        if self.task == "match3-local":
            low, high = np.maximum(place - self.reach, 0), np.minimum(place + self.reach + 1, n)
            one, two = rng.integers(low, high, size=(2, count, n))
            total = before[rows, one] + before[rows, two]
        elif self.task == "match3-bigram":
            at = rng.integers(n - 1, size=(count, n))
            total = before[rows, at] + before[rows, at + 1]
        else:
            total = before[rows, rng.integers(n, size=(count, n))]
        tokens = np.where(rng.random((count, n)) < self.planted, -total % self.modulus, before)
        yes = np.zeros((count, n), dtype=bool)
        for j in range(n):
            others = {"match2": [j], "match3-bigram": [j + 1] if j + 1 < n else [], "match3-local": range(j, n)}
            for k in others[self.task]:
                total = tokens[:, [j]] + (tokens[:, [k]] if self.task != "match2" else 0)
                near = max(0, k - self.reach), j + self.reach + 1  # who reaches both
                here = slice(*near) if self.task == "match3-local" else slice(None)
                yes[:, here] |= (tokens[:, here] + total) % self.modulus == 0
        return tokens, np.pad(yes.astype(np.int64), ((0, 0), (1, 0)))


SANDBOX = Entry(Match, small={"modulus": 4, "length": 4})
