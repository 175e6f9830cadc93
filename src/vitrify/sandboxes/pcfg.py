r"""Sentences of a probabilistic grammar, any of them, recursive or not: what is the next word?

A sequence holds the first `length` symbols of one sentence and its end `</s>`: a sentence that is longer is cut there,
and what comes after an end is more ends, of which nobody asks. Where the grammar has no probabilities, the rules of a
symbol are equally probable. The law of the next word is exact (`Chart`), also where sentences have many derivations.

A sentence is drawn from left to right on a stack of symbols that still have to be rewritten. As each of them gives at
least one word, no sequence can show more than the first `length` of the stack. The latent `waiting` is how many symbols
of those that the rest of the sequence has room for wait behind each word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.sandboxes.catalogue import Array, Entry, Example, Float, LogProbs, NextSymbol, Within
from vitrify.sandboxes.kit.draws import invert, logarithm
from vitrify.spec.grammars.grammar import END, Grammar, Rule

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
class Pcfg(NextSymbol):
    """Sequences of the first `length` symbols of a sentence and its end."""

    PREDICTORS = ("unigram",)
    blanks = (END,)

    grammar: Grammar = field(default_factory=_phrases)
    length: Annotated[int, Within(2, LONGEST)] = 24

    @cached_property
    def proper(self) -> Grammar:
        """The grammar with probabilities that sum to one for each left side, and nothing that no sentence uses."""
        grammar = (self.grammar if self.grammar.probabilistic else self.grammar.uniform()).reachable()
        if grammar.cycle() is None:
            return grammar.proper()
        sums = {lhs: sum(_chance(rule) for rule in grammar.rules_of(lhs)) for lhs in grammar.nonterminals}
        rules = (type(rule)(rule.lhs, rule.rhs, _chance(rule) / sums[rule.lhs]) for rule in grammar.rules)
        return Grammar(grammar.start, tuple(rules))

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*self.proper.terminals, END)

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

    # Sequences

    def draw(self, key: Array) -> Example:
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
        return Example(sentence[:-1], sentence, weight, {"waiting": waiting})

    @cached_property
    def _tables(self) -> tuple[Array, Array, Array, Array]:
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

    # Predictors

    def optimal(self, example: Example) -> LogProbs:
        scale = self.chart.factor(self.tokens)[:, None]
        table = jnp.asarray(np.pad(self.chart.letters * scale, ((0, 1), (0, 0))), jnp.float32)
        return self._law(example, self.chart.laws(table[example.tokens]))

    def _law(self, example: Example, weights: Array) -> LogProbs:
        """Weights of words as log-probabilities, and ends after an end."""
        end = len(self.symbols) - 1
        ended = jnp.concatenate([jnp.zeros(1, bool), jnp.cumsum(example.tokens == end) > 0])
        weights = jnp.where(ended[:, None], jax.nn.one_hot(end, end + 1), weights)
        total = weights.sum(axis=-1, keepdims=True)
        return logarithm(weights / jnp.where(total > 0, total, 1.0))

    def unigram(self, example: Example) -> LogProbs:
        """Return the distribution of the word at this position over sentences that are this long."""
        anything = jnp.asarray(self.chart.letters.sum(axis=0), jnp.float32)
        return self._law(example, self.chart.laws(jnp.broadcast_to(anything, (self.tokens, anything.shape[0]))))


class Production(NamedTuple):
    """A rule by numbers: words come before nonterminals."""

    lhs: int
    rhs: tuple[int, ...]
    chance: float


class Chart:
    r"""Next-word laws of any context-free grammar, recursive ones too, for whole sequences at once.

    The weights are those of `spec.grammars.chart`: $\gamma(X, i, j)$, the probability that $X$ derives the words
    between $i$ and $j$, and $\alpha_t$ of a rule of which some symbols end exactly at $t$. What is shared is computed
    once: a *beginning* is a row of symbols that right sides begin with, whatever their left side. Chains of single
    symbols are summed as $(1 - U)^{-1}$, and what can begin where something begins as $(1 - B)^{-1}$, with $U_{AX}$ and
    $B_{AX}$ the probability that the right side of $A$ is $X$, and that it begins with $X$: both exist, as every symbol
    derives words.

    Weights of $t$ words shrink with $t$. Each word's are multiplied by a factor that makes the largest one $2^{\lfloor
    96/N \rfloor}$ in a sequence of $N$ words, which cancels in the end and keeps sequences of 32 words in float32 range
    down to less than 1/100 a word for all choices above the words.

    The grammar has `words` words (their end not among them) and `symbols` symbols in all.
    """

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
        completed = np.zeros((len(self.beginnings), symbols))
        for lhs, rhs, chance in rules:
            if len(rhs) > 1:
                completed[number[rhs], lhs] += chance
        self.completed = completed @ chains.T  # [beginning, spanning]
        self._dotted(rules, symbols, place, np.linalg.inv(np.eye(symbols) - corner))

    def _dotted(
        self, rules: Sequence[Production], symbols: int, place: Mapping[int, int], begun: Float[Array, "symbol symbol"]
    ) -> None:
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

    def factor(self, length: int) -> Float[Array, " word"]:
        """The factor by which the weights of each word are scaled."""
        return 2.0 ** (96 // max(length, 1)) / self.letters.max(axis=1)

    def laws(self, letters: Array) -> Array:
        """The weights of the next word, or the end, after 0, …, N words [N + 1, word], from theirs [N, spanning]."""
        spans = self._inside(letters)
        n = letters.shape[0]
        begins, parent = jnp.asarray(self.begins, jnp.float32), self.parent
        first = jnp.asarray(self.first, jnp.float32)

        def step(so_far: Array, inputs: tuple[Array, Array]) -> tuple[Array, Array]:
            t, spans = inputs
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
        completed = jnp.asarray(self.completed, jnp.float32)
        ends, widths = np.tril_indices(n)
        begins = ends - widths

        def step(known: tuple[Array, Array], place: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
            left, right = known  # [begin, middle, beginning] of all spans; [middle, beginning] of those that end here
            end, begin = place
            right = jnp.where(begin == end, 0.0, right)
            weights = (left[begin] * right).sum(axis=0)
            spans = weights @ completed + jnp.where(begin == end, letters[end], 0.0)
            left = left.at[begin, end + 1].set(jnp.concatenate([spans, weights])[self.before], mode="drop")
            return (left, right.at[begin].set(spans[self.last])), spans

        nothing = jnp.zeros((n, len(self.before)))
        known = (jnp.broadcast_to(nothing, (n, *nothing.shape)), nothing)
        weights = jax.lax.scan(step, known, (jnp.asarray(ends), jnp.asarray(begins)))[1]
        return jnp.zeros((n, n, letters.shape[1])).at[ends, begins].set(weights)


END_MARK, NO_WORD = 2**30, -1  # on the stack, below all symbols; what a rule writes that begins with no word


def _chance(rule: Rule) -> Fraction:
    assert rule.probability is not None  # `proper` has made sure
    return rule.probability


SMALL = Grammar.from_text("S -> S S [0.2] | 'a' S 'b' [0.2] | T [0.6]\nT -> 'a' [0.7] | 'b' [0.3]")
SANDBOX = Entry(Pcfg, small={"grammar": SMALL, "length": 5})
