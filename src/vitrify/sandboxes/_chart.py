r"""Next-word laws of any context-free grammar, recursive ones too, for whole rows at once.

The weights are those of `spec.grammar_chart`: $\gamma(X, i, j)$, the probability that $X$ derives the words between
$i$ and $j$, and $\alpha_t$ of a rule of which some symbols end exactly at $t$. What is shared is computed once: a
*beginning* is a row of symbols that right sides begin with, whatever their left side. Chains of single symbols are
summed as $(1 - U)^{-1}$, and what can begin where something begins as $(1 - B)^{-1}$, with $U_{AX}$ and $B_{AX}$ the
probability that the right side of $A$ is $X$, and that it begins with $X$: both exist, as every symbol derives words.

Weights of $t$ words shrink with $t$. Each word's are multiplied by a factor that makes the largest one
$2^{\lfloor 96/N \rfloor}$ in a row of $N$ words, which cancels in the end and keeps rows of 32 words in float32 range
down to less than 1/100 a word for all choices above the words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array


class Production(NamedTuple):
    """A rule by numbers: words come before nonterminals."""

    lhs: int
    rhs: tuple[int, ...]
    chance: float


class Chart:
    """Tables of a grammar with `words` words (their end not among them) and `symbols` symbols in all, for a start."""

    def __init__(self, rules: Sequence[Production], words: int, symbols: int, start: int) -> None:
        self.words, self.start = words, start
        chain, corner = np.zeros((symbols, symbols)), np.zeros((symbols, symbols))
        for lhs, rhs, chance in rules:
            corner[lhs, rhs[0]] += chance
            if len(rhs) == 1:
                chain[lhs, rhs[0]] += chance
        spanning = {symbol for _, rhs, _ in rules if len(rhs) > 1 for symbol in rhs} | {start}
        self.spanning = np.array(sorted(spanning))  # the symbols whose spans are asked for
        place = {symbol: k for k, symbol in enumerate(self.spanning.tolist())}
        chains = np.linalg.inv(np.eye(symbols) - chain)[self.spanning]
        self.letters = chains[:, :words].T  # [word, spanning]
        self.beginnings = list(dict.fromkeys(rhs[:n] for _, rhs, _ in rules for n in range(2, len(rhs) + 1)))
        number = {rhs: k for k, rhs in enumerate(self.beginnings)}
        self.last = np.array([place[rhs[-1]] for rhs in self.beginnings], dtype=int)
        self.before = np.array(
            [len(place) + number[rhs[:-1]] if len(rhs) > 2 else place[rhs[0]] for rhs in self.beginnings], dtype=int
        )
        whole = np.zeros((len(self.beginnings), symbols))
        for lhs, rhs, chance in rules:
            if len(rhs) > 1:
                whole[number[rhs], lhs] += chance
        self.whole = whole @ chains.T  # [beginning, spanning]
        self._dotted(rules, symbols, place, np.linalg.inv(np.eye(symbols) - corner))

    def _dotted(self, rules: Sequence[Production], symbols: int, place: Mapping[int, int], begun: Any) -> None:
        """Rules with a dot, alike ones once: a left side and the symbols before the dot."""
        dotted = list(dict.fromkeys((lhs, rhs[:n]) for lhs, rhs, _ in rules for n in range(1, len(rhs))))
        number = {dot: k for k, dot in enumerate(dotted)}
        self.passed = np.array([place[done[-1]] for _, done in dotted], dtype=int)
        self.parent = np.array(
            [symbols + number[lhs, done[:-1]] if len(done) > 1 else lhs for lhs, done in dotted], dtype=int
        )
        following = np.zeros((len(dotted), symbols))
        for lhs, rhs, chance in rules:
            for n in range(1, len(rhs)):
                following[number[lhs, rhs[:n]], rhs[n]] += chance
        self.begins = following @ begun  # [dotted, symbol]: what begins behind the dot
        self.first, self.top = begun[self.start], place[self.start]

    def factor(self, length: int) -> Any:
        """What the weights of each word are multiplied by."""
        return 2.0 ** (96 // max(length, 1)) / self.letters.max(axis=1)

    def laws(self, letters: Array) -> Array:
        """The weights of the next word, or the end, after 0, …, N words [N + 1, word], from theirs [N, spanning]."""
        spans = self._inside(letters)
        n = letters.shape[0]
        begins, parent = jnp.asarray(self.begins, jnp.float32), self.parent
        first = jnp.asarray(self.first, jnp.float32)

        def step(so_far: Array, given: tuple[Array, Array]) -> tuple[Array, Array]:
            t, spans = given
            alpha = (so_far * spans[:, self.passed]).sum(axis=0)
            begun = alpha @ begins
            so_far = so_far.at[t].set(jnp.concatenate([begun, alpha])[parent], mode="drop")
            return so_far, begun[: self.words]

        start = jnp.zeros((n, len(parent))).at[0].set(jnp.pad(first, (0, len(parent)))[parent])
        later = jax.lax.scan(step, start, (jnp.arange(1, n + 1), spans))[1]
        end = jnp.pad(spans[:, 0, self.top], (1, 0))
        return jnp.concatenate([jnp.concatenate([first[None, : self.words], later]), end[:, None]], axis=1)

    def _inside(self, letters: Array) -> Array:
        """The weights of spans [end - 1, begin, spanning], by end, and for each end from short to long."""
        n = letters.shape[0]
        whole = jnp.asarray(self.whole, jnp.float32)
        ends, widths = np.tril_indices(n)
        begins = ends - widths

        def step(known: tuple[Array, Array], place: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
            left, right = known  # [begin, middle, beginning] of all spans; [middle, beginning] of those that end here
            end, begin = place
            right = jnp.where(begin == end, 0.0, right)
            found = (left[begin] * right).sum(axis=0)
            spans = found @ whole + jnp.where(begin == end, letters[end], 0.0)
            left = left.at[begin, end + 1].set(jnp.concatenate([spans, found])[self.before], mode="drop")
            return (left, right.at[begin].set(spans[self.last])), spans

        nothing = jnp.zeros((n, len(self.before)))
        known = (jnp.broadcast_to(nothing, (n, *nothing.shape)), nothing)
        found = jax.lax.scan(step, known, (jnp.asarray(ends), jnp.asarray(begins)))[1]
        return jnp.zeros((n, n, letters.shape[1])).at[ends, begins].set(found)
