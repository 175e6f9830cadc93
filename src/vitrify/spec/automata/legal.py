r"""The words of an automaton as a language that networks continue: which letters may come next, and where it may end.

Letters and the end have weights, by default 1. The language model gives each symbol that keeps a word completable a
probability in proportion to its weight. Under a law of lengths $p(n)$, the word $y_1 \dots y_n$ has the probability
$p(n) \prod_i w(y_i) / W_n$, where $W_n$ is the sum of such products over all words of the length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, log
from typing import TYPE_CHECKING

import numpy as np

from vitrify.arrays import Floats
from vitrify.errors import InputError
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.kinds import Meaning, PrefixStates, prefixes_by_length
from vitrify.spec.ngrams.trie import END

if TYPE_CHECKING:
    from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton
    from vitrify.spec.automata.weighted import Following

MEAN_LENGTH = 32  # letters of a random word before it goes to its end by the shortest way


@dataclass(frozen=True)
class LegalWords:
    """The language of an automaton.

    >>> words = LegalWords(Automaton.from_regex("ab*c"))
    >>> sorted(words.next_letters("ab")), list(words.prefixes(2))
    (['b', 'c'], [(), ('a',), ('a', 'b'), ('a', 'c')])
    """

    automaton: Automaton

    @cached_property
    def _to_end(self) -> list[int | None]:
        """The number of letters from each state to the nearest accepting one; None if none is reached."""
        far: list[int | None] = [0 if state in self.automaton.accepting else None for state in self._range]
        for _ in self._range:
            for state in self._range:
                ways = [far[target] for target in self.automaton.transitions[state]]
                nearest = min((way for way in ways if way is not None), default=None)
                if far[state] is None and nearest is not None:
                    far[state] = nearest + 1
        return far

    @property
    def _range(self) -> range:
        return range(len(self.automaton.states))

    def step(self, state: int, letter: str) -> int | None:
        """Return the state after one more letter; None if no word of the language begins so."""
        target = self.automaton.transitions[state][self.automaton.alphabet.index(letter)]
        return target if self._to_end[target] is not None else None

    def _after(self, word: Sequence[str]) -> int | None:
        state: int | None = self.automaton.initial if self._to_end[self.automaton.initial] is not None else None
        for letter in word:
            state = None if state is None else self.step(state, letter)
        return state

    def _following(self, state: int | None) -> list[str]:
        """Return the letters that may come in a state."""
        if state is None:
            return []
        return [letter for letter in self.automaton.alphabet if self.step(state, letter) is not None]

    def next_letters(self, word: Sequence[str]) -> frozenset[str]:
        """Return the letters that may come after a prefix, and the end where it is a word."""
        state = self._after(word)
        return frozenset([*self._following(state), *([END] if state in self.automaton.accepting else [])])

    def language_model(self, weights: Mapping[str, float] | None = None) -> ProbabilisticAutomaton:
        """Return the automaton that continues words by what keeps them completable, in proportion to the weights.

        A symbol without a weight has the weight 1; `END` is the end.

        >>> model = LegalWords(Automaton.from_regex("ab*c")).language_model({"b": 3})
        >>> model.probability("abc")
        0.1875
        """
        from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton
        from vitrify.spec.automata.weighted import WeightedAutomaton

        weight_of = self._weights(weights)
        if self._to_end[self.automaton.initial] is None:
            raise InputError("no word is accepted, so there is none to continue")

        def follow(state: int) -> Following[int]:
            parts = {letter: weight_of[letter] for letter in self._following(state)}
            end = weight_of[END] if state in self.automaton.accepting else Fraction(0)
            total = sum(parts.values(), end)
            if not total:
                raise InputError(f"all that may follow in the state {self.automaton.states[state]} has the weight 0")
            return [(y, self._target(state, y), w / total) for y, w in parts.items()], end / total

        start, names = {self.automaton.initial: Fraction(1)}, self.automaton.states
        exact = WeightedAutomaton.explore(start, follow, self.automaton.alphabet, lambda state: names[state])
        return ProbabilisticAutomaton.of_weighted(exact)

    def log_prob(
        self, word: Sequence[str], lengths: Mapping[int, float], weights: Mapping[str, float] | None = None
    ) -> float:
        """Return the log-probability of a word if lengths have some probabilities, and weights decide among words.

        >>> round(LegalWords(Automaton.from_regex("(0|1)*1")).log_prob("011", {2: 0.5, 3: 0.5}), 6)  # ln(0.5 / 4)
        -2.079442
        """
        if lengths.get(len(word), 0) <= 0 or not self.automaton.accepts(word):
            return -inf
        weight_of = self._weights(weights)
        product = Fraction(1)
        held = [Fraction(state in self.automaton.accepting) for state in self._range]
        for letter in word:
            product *= weight_of[letter]
            held = [
                sum((weight_of[y] * held[t] for y, t in zip(self.automaton.alphabet, row, strict=True)), Fraction(0))
                for row in self.automaton.transitions
            ]
        share = product / held[self.automaton.initial] if product else Fraction(0)
        return log(lengths[len(word)]) + log(share.numerator) - log(share.denominator) if share else -inf

    def _weights(self, weights: Mapping[str, float] | None) -> dict[str, Fraction]:
        symbols = (*self.automaton.alphabet, END)
        for symbol, weight in (weights or {}).items():
            if symbol not in symbols or not 0 <= weight < inf:
                raise InputError(f"weights must be numbers from 0 for {', '.join(symbols)}, got {symbol!r}: {weight}")
        return {symbol: Fraction((weights or {}).get(symbol, 1)) for symbol in symbols}

    def _target(self, state: int, letter: str) -> int:
        return self.automaton.transitions[state][self.automaton.alphabet.index(letter)]

    def edit_distance(self, word: Sequence[str]) -> int | None:
        """Return how many letters must be inserted, deleted or replaced to get a word; None if there is none.

        >>> LegalWords(Automaton.from_regex("(ab)*")).edit_distance("abba")
        2
        """
        table = self.automaton.table
        after: Floats = np.full(len(table), inf)
        after[self.automaton.initial] = 0
        for letter in (None, *self.automaton.ids(word)):
            before, after = after, after + 1  # deletion
            if letter is None:
                after = before
            else:
                np.minimum.at(after, table, (before + 1)[:, None])
                np.minimum.at(after, table[:, letter], before)
            while True:  # insertions
                longer = after.copy()
                np.minimum.at(longer, table, (after + 1)[:, None])
                if (longer == after).all():
                    break
                after = longer
        least = min((float(after[state]) for state in self.automaton.accepting), default=inf)
        return None if least == inf else int(least)

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]:
        return prefixes_by_length(lambda word: self._following(self._after(word)), longest)

    def examples(self) -> Iterator[Sequence[str]]:
        """Yield a word through each transition: the shortest way to its state, its letter, the shortest way out."""
        ways: dict[int, tuple[str, ...]] = {self.automaton.initial: ()} if self._after(()) is not None else {}
        queue = list(ways)
        for state in queue:  # grows during the loop
            for letter in self._following(state):
                target = self.step(state, letter)
                assert target is not None
                yield (*ways[state], letter, *self._out(target))
                if target not in ways:
                    ways[target] = (*ways[state], letter)
                    queue.append(target)

    def draw(self, rng: np.random.Generator) -> Sequence[str]:
        state, word = self._after(()), list[str]()
        length = int(rng.geometric(1 / MEAN_LENGTH))
        while state is not None and len(word) < length and (letters := self._following(state)):
            word.append(letters[int(rng.integers(len(letters)))])
            state = self.step(state, word[-1])
        return word if state is None else [*word, *self._out(state)]

    def _out(self, state: int) -> tuple[str, ...]:
        """Return the shortest word from a state to an accepting one."""
        word: list[str] = []
        while self._to_end[state]:
            row = self.automaton.transitions[state]
            near = [(far, place) for place, target in enumerate(row) if (far := self._to_end[target]) is not None]
            place = min(near)[1]
            word.append(self.automaton.alphabet[place])
            state = row[place]
        return tuple(word)

    def meaning(self) -> Meaning:
        """Return the sets of symbols that may come after every prefix, as a network must give them."""
        start = self._after(())
        states = None if start is None else PrefixStates(start, self.step)

        def after(word: Sequence[str]) -> list[frozenset[str]]:
            return [self.next_letters(word[:end]) for end in range(len(word) + 1)]

        outputs = (*self.automaton.alphabet, END)
        return Meaning("set", self.automaton.alphabet, outputs, after, self, states=states)
