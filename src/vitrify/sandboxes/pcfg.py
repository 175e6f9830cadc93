r"""Sentences of a probabilistic grammar, any of them, recursive or not: what is the next word?

A row holds the first `length` symbols of one sentence and its end `</s>`: a sentence that is longer is cut there, and
what comes after an end is more ends, of which nobody asks. Where the grammar has no probabilities, the rules of a
symbol are equally probable. The law of the next word is exact (`_chart`), also where sentences have many derivations.

A sentence is drawn from left to right on a stack of symbols that still have to be rewritten. As each of them gives at
least one word, no row can show more than the first `length` of the stack. The latent `waiting` is how many symbols of
those that the rest of the row has room for wait behind each word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.sandboxes._chart import Chart, Production
from vitrify.sandboxes._draws import invert, logarithm
from vitrify.sandboxes.catalogue import Entry, Predictor, Row, Sandbox
from vitrify.spec.grammar import END, Grammar

LONGEST = 64  # beyond, weights leave the range of float32

PHRASES = """
S -> NP VP [0.8] | S 'and' S [0.1] | 'today' S [0.1]
NP -> D N [0.5] | D A N [0.2] | NP PP [0.15] | NP 'that' VP [0.15]
VP -> V [0.4] | V NP [0.5] | VP PP [0.1]
PP -> P NP [1.0]
D -> 'the' [0.6] | 'a' [0.4]
N -> 'dog' [0.3] | 'cat' [0.3] | 'bird' [0.2] | 'fish' [0.2]
A -> 'old' [0.5] | 'small' [0.5]
V -> 'sees' [0.4] | 'sings' [0.3] | 'swims' [0.3]
P -> 'with' [0.5] | 'near' [0.5]
"""


@cache
def _phrases() -> Grammar:
    return Grammar.from_text(PHRASES)


@dataclass(frozen=True)
class Pcfg(Sandbox):
    """Rows of the first `length` symbols of a sentence and its end."""

    grammar: Grammar = field(default_factory=_phrases)
    length: int = 24

    def problems(self) -> Iterator[str]:
        if not 2 <= self.length <= LONGEST:
            yield f"length must be from 2 to {LONGEST}, not {self.length}"

    @cached_property
    def proper(self) -> Grammar:
        """The grammar with probabilities that sum to one for each left side, and nothing that no sentence uses."""
        given = (self.grammar if self.grammar.probabilistic else self.grammar.uniform()).reachable()
        if given.cycle() is None:
            return given.proper()
        sums = {lhs: sum(_chance(rule) for rule in given.rules_of(lhs)) for lhs in given.nonterminals}
        rules = (type(rule)(rule.lhs, rule.rhs, _chance(rule) / sums[rule.lhs]) for rule in given.rules)
        return Grammar(given.start, tuple(rules))

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*self.proper.terminals, END)

    @property
    def blanks(self) -> tuple[str, ...]:
        return (END,)

    @property
    def tokens(self) -> int:
        return self.length - 1

    @cached_property
    def productions(self) -> list[Production]:
        """The rules by numbers: words first, then nonterminals, the start symbol among them."""
        words = {word: k for k, word in enumerate(self.proper.terminals)}
        lhs = {name: len(words) + k for k, name in enumerate(self.proper.nonterminals)}
        return [
            Production(
                lhs[rule.lhs], tuple((words if s.terminal else lhs)[s.name] for s in rule.rhs), float(_chance(rule))
            )
            for rule in self.proper.rules
        ]

    @cached_property
    def chart(self) -> Chart:
        """The tables of the oracle."""
        words, names = self.proper.terminals, self.proper.nonterminals
        start = len(words) + names.index(self.proper.start)
        return Chart(self.productions, len(words), len(words) + len(names), start)

    # Rows

    def draw(self, key: Array) -> Row:
        words, places = len(self.proper.terminals), jnp.arange(self.length)
        bounds, heads, rests, sizes = (jnp.asarray(table) for table in self._tables)

        def write(state: tuple[Array, ...]) -> tuple[Array, ...]:
            stack, written, waiting, count, step = state
            top = stack[0]
            ready = (top < words) | (top == END_MARK)
            nonterminal = jnp.where(ready, 0, top - words)
            rule = invert(bounds[nonterminal], jax.random.uniform(jax.random.fold_in(key, step)))
            size = jnp.where(ready, 0, sizes[nonterminal, rule])
            head = jnp.where(ready, top, heads[nonterminal, rule])  # the word that this writes, if any
            behind = stack[jnp.clip(places - size + 1, 0, self.length - 1)]
            rest = rests[nonterminal, rule]
            stack = jnp.where(places < size, rest[jnp.minimum(places, rest.shape[0] - 1)], behind)
            here = (places == count) & (head != NO_WORD)
            left = ((stack != END_MARK) & (places < self.length - 1 - count)).sum()
            written, waiting = jnp.where(here, head, written), jnp.where(here, left.astype(jnp.int32), waiting)
            return stack, written, waiting, count + (head != NO_WORD), step + 1

        stack = jnp.full(self.length, END_MARK).at[0].set(self.chart.start)
        nothing = jnp.zeros(self.length, jnp.int32)
        begun = (stack, nothing, nothing, jnp.int32(0), jnp.int32(0))
        _, written, waiting, _, _ = jax.lax.while_loop(lambda state: state[3] < self.length, write, begun)
        ended = written == END_MARK
        sentence = jnp.where(ended, words, written)
        weight = (jnp.cumsum(ended) <= ended).astype(jnp.float32)
        return Row(sentence[:-1], sentence, weight, {"waiting": waiting})

    @cached_property
    def _tables(self) -> tuple[Any, Any, Any, Any]:
        """By nonterminal and rule: bounds, the word that the right side begins with, the rest of it and its length."""
        words, names = len(self.proper.terminals), len(self.proper.nonterminals)
        groups = [[rule for rule in self.productions if rule.lhs == words + k] for k in range(names)]
        many, long = max(map(len, groups)), max(len(rule.rhs) for rule in self.productions)
        bounds = np.ones((names, many - 1), np.float32)
        heads, sizes = np.full((names, many), NO_WORD, np.int32), np.zeros((names, many), np.int32)
        rests = np.zeros((names, many, long), np.int32)
        for k, group in enumerate(groups):
            sums = np.cumsum([rule.chance for rule in group])
            bounds[k, : len(group) - 1] = (sums / sums[-1])[:-1]
            for place, rule in enumerate(group):
                heads[k, place] = rule.rhs[0] if rule.rhs[0] < words else NO_WORD
                rest = rule.rhs[1:] if rule.rhs[0] < words else rule.rhs
                rests[k, place, : len(rest)], sizes[k, place] = rest, len(rest)
        return bounds, heads, rests, sizes

    def reference(self, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
        number = {word: k for k, word in enumerate(self.symbols)}
        found = np.full((count, self.length), number[END], dtype=np.int32)
        for row, words in zip(found, self.proper.sample(count, int(rng.integers(2**31))), strict=True):
            row[: len(words)] = [number[word] for word in words[: self.length]]
        return found[:, :-1], found

    # Predictors

    def optimal(self, row: Row) -> Array:
        scale = self.chart.factor(self.tokens)[:, None]
        table = jnp.asarray(np.pad(self.chart.letters * scale, ((0, 1), (0, 0))), jnp.float32)
        return self._law(row, self.chart.laws(table[row.tokens]))

    def _law(self, row: Row, weights: Array) -> Array:
        """Weights of words as log-probabilities, and ends after an end."""
        end = len(self.symbols) - 1
        ended = jnp.concatenate([jnp.zeros(1, bool), jnp.cumsum(row.tokens == end) > 0])
        weights = jnp.where(ended[:, None], jax.nn.one_hot(end, end + 1), weights)
        total = weights.sum(axis=-1, keepdims=True)
        return logarithm(weights / jnp.where(total > 0, total, 1.0))

    def predictors(self) -> Mapping[str, Predictor]:
        return {"uniform": self.uniform, "unigram": self.unigram}

    def unigram(self, row: Row) -> Array:
        """How often each word comes at this place in sentences that have come so far."""
        anything = jnp.asarray(self.chart.letters.sum(axis=0), jnp.float32)
        return self._law(row, self.chart.laws(jnp.broadcast_to(anything, (self.tokens, anything.shape[0]))))


END_MARK, NO_WORD = 2**30, -1  # on the stack, below all symbols; what a rule writes that begins with no word


def _chance(rule: Any) -> Fraction:
    chance: Fraction = rule.probability
    return chance


SMALL = Grammar.from_text("S -> S S [0.2] | 'a' S 'b' [0.2] | T [0.6]\nT -> 'a' [0.7] | 'b' [0.3]")
SANDBOX = Entry(Pcfg, small={"grammar": SMALL, "length": 5})
