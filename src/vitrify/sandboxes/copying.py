r"""Copying: a random text, a separator, and the text again, as it was, backwards or sorted.

A sequence is $x_1 \dots x_L$ `|` $y_1 \dots y_L$ and blanks up to a fixed length, with $L$ uniform between `shortest`
and `longest`. From the separator on the next symbol is asked for, and at the end `|`; for $y = x$ that is what
`vitrify.spec.tasks.copying` says. Texts of different symbols can be copied by looking a symbol up, others can't.
Sources: Zhou et al. 2023, arXiv 2310.16028; Jelassi et al. 2024, arXiv 2402.01032.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import jax
import jax.numpy as jnp

from vitrify.sandboxes.catalogue import MAX_SYMBOLS, Array, Entry, Exact, Example, LogProbs, Within
from vitrify.sandboxes.kit.draws import below, logarithm
from vitrify.sandboxes.kit.draws import distinct as different
from vitrify.spec.tasks.catalogue import letters
from vitrify.spec.tasks.copying import SEPARATOR

LONGEST = 1 << 15  # so many different symbols can be drawn


@dataclass(frozen=True)
class CopyingSandbox(Exact):
    """Texts of `shortest` to `longest` symbols out of an alphabet of `states`, without repeats where `distinct`."""

    PREDICTORS = ("multiset",)
    RECORDED = "Copying"

    states: Annotated[int, Within(1, MAX_SYMBOLS - 1)] = 26
    shortest: Annotated[int, Within(1, LONGEST)] = 1
    longest: Annotated[int, Within(1, LONGEST)] = 20
    mode: Literal["copy", "reverse", "sort"] = "copy"
    distinct: bool = False

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.longest < self.shortest:
            yield "longest", f"must be at least shortest = {self.shortest}, not {self.longest}"
        if self.distinct and self.longest > self.states:
            yield "longest", f"must be at most states = {self.states} where all symbols differ, not {self.longest}"

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*self.answers, "_")

    @property
    def answers(self) -> tuple[str, ...]:
        return (SEPARATOR, *letters(self.states))

    @property
    def tokens(self) -> int:
        return 2 * self.longest + 1

    def draw(self, key: Array) -> Example:
        bits = jax.random.bits(key, (1 + self.longest,))
        length = self.shortest + below(bits[0], self.longest - self.shortest + 1)
        text = 1 + (different(bits[1:], self.states) if self.distinct else below(bits[1:], self.states))
        written = self.written(text, length)
        place = jnp.arange(self.tokens, dtype=jnp.int32) - length  # 0 is the separator
        second = written[jnp.clip(place - 1, 0, self.longest)]
        tokens = jnp.where(place < 0, jnp.pad(text, (0, self.longest + 1)), jnp.where(place > 0, second, 0))
        tokens = jnp.where(place > length, self.states + 1, tokens)
        targets, weight = self._asked(written, length)
        return Example(tokens, targets, weight, {"length": length})

    def written(self, text: Array, length: Array) -> Array:
        """Return the text behind the separator: the symbols in their new order, then the separator again."""
        place = jnp.arange(self.longest + 1, dtype=jnp.int32)
        if self.mode == "reverse":
            text = text[jnp.maximum(length - 1 - place[:-1], 0)]
        if self.mode == "sort":
            text = jnp.sort(jnp.where(place[:-1] < length, text, self.states + 1))
        return jnp.where(place < length, jnp.pad(text, (0, 1)), 0)

    def _asked(self, written: Array, length: Array) -> tuple[Array, Array]:
        """Targets and their weights: from the separator on, what comes next."""
        place = jnp.arange(self.tokens + 1, dtype=jnp.int32) - length - 1
        scored = (place >= 0) & (place <= length)
        return jnp.where(scored, written[jnp.clip(place, 0, self.longest)], 0), scored.astype(jnp.float32)

    def right(self, tokens: Array) -> Array:
        """The text up to the first separator, in its new order."""
        length = jnp.argmax(tokens == 0).astype(jnp.int32)
        return self._asked(self.written(tokens[: self.longest], length), length)[0]

    def multiset(self, example: Example) -> LogProbs:
        """The symbols of the text and one separator, each as often as it must be written, in no order."""
        length = jnp.argmax(example.tokens == 0)
        text = (jnp.arange(self.longest) < length)[:, None] & (
            example.tokens[: self.longest, None] == jnp.arange(self.states + 1)
        )
        known = jnp.arange(self.tokens + 1) > length
        return jnp.where(known[:, None], logarithm(text.sum(axis=0).at[0].set(1) / (length + 1)), self.uniform(example))


SANDBOX = Entry(CopyingSandbox, small={"states": 2, "longest": 4})
