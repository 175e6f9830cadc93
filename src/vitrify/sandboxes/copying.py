r"""Copying: a random text, a separator, and the text again, as it was, backwards or sorted.

A row is $x_1 \dots x_L$ `|` $y_1 \dots y_L$ and blanks up to a fixed length, with $L$ uniform between `shortest` and
`longest`. From the separator on the next symbol is asked for, and at the end `|`; for $y = x$ that is what
`vitrify.spec.tasks.copying` says. Texts of different symbols can be copied by looking a symbol up, others can't.
Sources: Zhou et al. 2023, arXiv 2310.16028; Jelassi et al. 2024, arXiv 2402.01032.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._draws import below
from vitrify.sandboxes._exact import MOST, Exact, logs
from vitrify.sandboxes._exact import distinct as different
from vitrify.sandboxes.catalogue import Entry, Predictor, Row
from vitrify.spec.tasks.catalogue import letters
from vitrify.spec.tasks.copying import SEPARATOR

LONGEST = 1 << 15  # so many different symbols can be drawn


@dataclass(frozen=True)
class Copying(Exact):
    """Texts of `shortest` to `longest` symbols out of `states`, each of them once where the text is `distinct`."""

    states: int = 26
    shortest: int = 1
    longest: int = 20
    mode: Literal["copy", "reverse", "sort"] = "copy"
    distinct: bool = False

    def problems(self) -> Iterator[str]:
        if not 1 <= self.states < MOST:
            yield f"states must be from 1 to {MOST - 1}, not {self.states}"
        if not 1 <= self.shortest <= self.longest <= LONGEST:
            yield f"1 ≤ shortest ≤ longest ≤ {LONGEST} must hold, not {self.shortest} and {self.longest}"
        if self.distinct and self.longest > self.states:
            yield f"longest must be at most states = {self.states} where all symbols differ, not {self.longest}"

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*self.answers, "_")

    @property
    def answers(self) -> tuple[str, ...]:
        return (SEPARATOR, *letters(self.states))

    @property
    def tokens(self) -> int:
        return 2 * self.longest + 1

    def draw(self, key: Array) -> Row:
        bits = jax.random.bits(key, (1 + self.longest,))
        length = self.shortest + below(bits[0], self.longest - self.shortest + 1)
        text = 1 + (different(bits[1:], self.states) if self.distinct else below(bits[1:], self.states))
        written = self.written(text, length)
        place = jnp.arange(self.tokens, dtype=jnp.int32) - length  # 0 is the separator
        second = written[jnp.clip(place - 1, 0, self.longest)]
        tokens = jnp.where(place < 0, jnp.pad(text, (0, self.longest + 1)), jnp.where(place > 0, second, 0))
        tokens = jnp.where(place > length, self.states + 1, tokens)
        targets, weight = self._asked(written, length)
        return Row(tokens, targets, weight, {"length": length})

    def written(self, text: Array, length: Array) -> Array:
        """What stands behind the separator: the text in its new order, then the separator again."""
        place = jnp.arange(self.longest + 1, dtype=jnp.int32)
        if self.mode == "reverse":
            text = text[jnp.maximum(length - 1 - place[:-1], 0)]
        if self.mode == "sort":
            text = jnp.sort(jnp.where(place[:-1] < length, text, self.states + 1))
        return jnp.where(place < length, jnp.pad(text, (0, 1)), 0)

    def _asked(self, written: Array, length: Array) -> tuple[Array, Array]:
        """Targets and their weights: from the separator on, what comes next."""
        place = jnp.arange(self.tokens + 1, dtype=jnp.int32) - length - 1
        asked = (place >= 0) & (place <= length)
        return jnp.where(asked, written[jnp.clip(place, 0, self.longest)], 0), asked.astype(jnp.float32)

    def right(self, tokens: Array) -> Array:
        """The text up to the first separator, in its new order."""
        length = jnp.argmax(tokens == 0).astype(jnp.int32)
        return self._asked(self.written(tokens[: self.longest], length), length)[0]

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform, "multiset": self.multiset}

    def multiset(self, row: Row) -> Array:
        """The symbols of the text and one separator, each as often as it must be written, in no order."""
        length = jnp.argmax(row.tokens == 0)
        text = (jnp.arange(self.longest) < length)[:, None] & (
            row.tokens[: self.longest, None] == jnp.arange(self.states + 1)
        )
        known = jnp.arange(self.tokens + 1) > length
        return jnp.where(known[:, None], logs(text.sum(axis=0).at[0].set(1) / (length + 1)), self.uniform(row))

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        tokens = np.full((count, self.tokens), self.states + 1)
        targets = np.zeros((count, self.tokens + 1), dtype=np.int64)
        for row in range(count):
            length = int(rng.integers(self.shortest, self.longest + 1))
            text = 1 + rng.choice(self.states, size=length, replace=not self.distinct)
            again = {"copy": text, "reverse": text[::-1], "sort": np.sort(text)}[self.mode]
            tokens[row, : 2 * length + 1] = [*text, 0, *again]
            targets[row, length + 1 : 2 * length + 1] = again
        return tokens, targets


SANDBOX = Entry(Copying, small={"states": 2, "longest": 4})
