r"""Match2 and Match3: for each number of a sequence, whether one or two others complete it to 0 modulo $M$.

What may complete it is as in `vitrify.spec.tasks`: any number (`match2`), any two neighbours (`match3-bigram`), any two
within a few places (`match3-local`). An answer depends on the whole sequence. Among random numbers of a large $M$ there
is no match at all, so a share of the places is planted: they get what would complete numbers that stood at random
places before the planting, which fails only where one of those is planted too. Source: Sanford, Hsu and Telgarsky 2023,
arXiv 2306.02896.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.parameters import Probability, Within
from vitrify.sandboxes.catalogue import MAX_SYMBOLS, Defined, Entry, Exact, Example, LogProbs, Predictor, examples
from vitrify.sandboxes.kit.draws import below
from vitrify.spec.tasks.catalogue import Task, task_named

SAMPLE = 1 << 12  # sequences for a rate


@dataclass(frozen=True)
class Match(Defined, Exact):
    """Sequences of `length` numbers below `modulus`; `reach` counts for `match3-local` only."""

    bidirectional = True
    TRACED = ("planted",)

    task: Literal["match2", "match3-bigram", "match3-local"] = "match2"
    modulus: Annotated[int, Within(2, MAX_SYMBOLS)] = 64
    length: Annotated[int, Within(2)] = 32
    reach: Annotated[int, Within(1, 64)] = 2
    planted: Probability = 0.4

    @cached_property
    def definition(self) -> Task:
        reach = {"reach": self.reach} if self.task == "match3-local" else {}
        return task_named(self.task)(modulus=self.modulus, length=self.length, **reach)  # type: ignore[call-arg]

    def draw(self, key: Array) -> Example:
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
        chosen = below(planted, MAX_SYMBOLS) < jnp.round(self.planted * MAX_SYMBOLS)
        tokens = jnp.where(chosen, -total % self.modulus, numbers)
        weight = jnp.pad(jnp.ones(self.length), (1, 0))
        return Example(tokens, self.right(tokens), weight, {"planted": chosen})

    def right(self, tokens: Array) -> Array:
        """Return 1 where the missing summand is among the sums, else 0."""
        wanted = -tokens % self.modulus
        if self.task == "match3-local":
            places = np.arange(self.length)[:, None] + np.arange(-self.reach, self.reach + 1)
            inside = (places >= 0) & (places < self.length)
            near = tokens[np.clip(places, 0, self.length - 1)]  # [place, step]
            sums = (near[:, :, None] + near[:, None]) % self.modulus
            matches = ((sums == wanted[:, None, None]) & inside[:, :, None] & inside[:, None]).any(axis=(1, 2))
        else:
            sums = (tokens[:-1] + tokens[1:]) % self.modulus if self.task == "match3-bigram" else tokens
            ordered = jnp.sort(sums)
            matches = ordered[jnp.clip(jnp.searchsorted(ordered, wanted), 0, len(ordered) - 1)] == wanted
        return jnp.pad(matches.astype(jnp.int32), (1, 0))

    def predictors(self) -> Mapping[str, Predictor]:
        planted: object = self.planted
        return {"uniform": self.uniform} | ({"rate": self.yes} if isinstance(planted, float | int) else {})

    def yes(self, example: Example) -> LogProbs:
        """Return the frequency of the answer yes, from a sample."""
        with jax.ensure_compile_time_eval():
            yes = jnp.mean(examples(self, 0, "probe", 0, SAMPLE).targets[:, 1:])
        return jnp.log(jnp.broadcast_to(jnp.clip(jnp.stack([1 - yes, yes]), 1e-6), (*example.targets.shape, 2)))


SANDBOX = Entry(Match, small={"modulus": 4, "length": 4})
