"""The words of an automaton as a language that networks continue: which letters may come next, and where it may end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.kinds import Meaning, PrefixStates, prefixes_by_length
from vitrify.spec.ngrams.trie import END

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
