r"""A grammar without recursion as phrases: each is a set of words, and of sequences of two or more phrases.

Rules with one symbol on the right are replaced by the rules of that symbol, and symbols with the same words and
sequences become one phrase. So a phrase of one word is known by that word, and all others consist of shorter ones.

The end of the sentence is a word like any other. It follows the last phrase `A` of a sentence. If `A` is a single word,
or must be recognized completely anyway because something may follow it elsewhere, the sequence becomes `A </s>`. Any
other `A` gets a second phrase for the end of a sentence: the same sequences, each with `</s>` at its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from vitrify.spec.grammars.grammar import END, Grammar, Symbol

Side = tuple[int, ...]  # indices of phrases


@dataclass(frozen=True)
class Phrase:
    """Expansions of a phrase: some words, or sequences of two or more phrases given by index."""

    name: str
    words: frozenset[str]
    sides: tuple[Side, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Phrases:
    """Phrases of a grammar, parts first; the last one is the sentence with its end.

    >>> grammar = Grammar.from_text('''
    ...     S -> NP VP
    ...     NP -> 'the' N | 'alice'
    ...     N -> 'dog' | 'cat'
    ...     VP -> 'sleeps' | 'sees' NP
    ... ''')
    >>> print(Phrases.of(grammar))
    N: 'cat' 'dog'
    NP: 'alice' | 'the' N
    VP </s>: 'sees' NP </s> | 'sleeps' </s>
    S </s>: NP VP </s>
    >>> Phrases.of(grammar).longest
    5
    """

    listed: tuple[Phrase, ...]

    @classmethod
    def of(cls, grammar: Grammar) -> Phrases:
        """Return the phrases of a grammar; a recursive grammar is refused."""
        return cls(tuple(_phrases(grammar)))

    def __str__(self) -> str:
        return "\n".join(self._drawn(phrase) for phrase in self.listed if len(phrase.words) > 1 or phrase.sides)

    def _drawn(self, phrase: Phrase) -> str:
        words = [" ".join(map(repr, sorted(phrase.words)))] if phrase.words else []
        return f"{phrase.name}: {' | '.join([*words, *map(self.text, phrase.sides)])}"

    def text(self, side: Iterable[int]) -> str:
        """Return a sequence of phrases as names."""
        return " ".join(self.listed[part].name for part in side)

    @property
    def start(self) -> int:
        """Index of the sentence."""
        return len(self.listed) - 1

    @property
    def longest(self) -> int:
        """Number of words of the longest sentence, without its end."""
        return self.widths[self.start][-1] - 1

    @cached_property
    def widths(self) -> tuple[tuple[int, ...], ...]:
        """Possible numbers of words of each phrase, ascending."""
        widths: list[tuple[int, ...]] = []
        for phrase in self.listed:
            sums = {1} if phrase.words else set[int]()
            for side in phrase.sides:
                sums |= _sums(widths, side)
            widths.append(tuple(sorted(sums)))
        return tuple(widths)

    def widths_of(self, side: Side) -> tuple[int, ...]:
        """Return the possible numbers of words of a sequence, ascending."""
        return tuple(sorted(_sums(self.widths, side)))

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """Largest tree height of each phrase; a phrase of one word has height 0."""
        heights: list[int] = []
        for phrase in self.listed:
            heights.append(max((1 + max(heights[part] for part in side) for side in phrase.sides), default=0))
        return tuple(heights)

    @cached_property
    def corners(self) -> tuple[tuple[int, ...], ...]:
        """Left corners of each phrase: itself, the first parts of its sequences, their first parts, and so on."""
        corners: list[tuple[int, ...]] = []
        for number, phrase in enumerate(self.listed):
            deeper = (corner for side in phrase.sides for corner in corners[side[0]])
            corners.append(tuple(dict.fromkeys([number, *deeper])))
        return tuple(corners)

    @cached_property
    def first_words(self) -> tuple[frozenset[str], ...]:
        """Words that each phrase may begin with."""
        return tuple(frozenset().union(*(self.listed[part].words for part in corners)) for corners in self.corners)

    @cached_property
    def complete(self) -> tuple[int, ...]:
        """Phrases that must be recognized completely: those that something may follow, and all their parts."""
        return _followed(self.listed)


def _sums(widths: list[tuple[int, ...]] | tuple[tuple[int, ...], ...], side: Side) -> set[int]:
    sums = {0}
    for part in side:
        sums = {a + b for a in sums for b in widths[part]}
    return sums


def _followed(listed: tuple[Phrase, ...] | list[Phrase]) -> tuple[int, ...]:
    wanted: set[int] = set()
    for number in reversed(range(len(listed))):
        for side in listed[number].sides:
            wanted.update(side if number in wanted else side[:-1])
    return tuple(sorted(wanted))


@dataclass(eq=False)
class _Collected:
    """Phrases collected so far; phrases with the same expansions are one."""

    listed: list[Phrase] = field(default_factory=list)
    number: dict[tuple[frozenset[str], frozenset[Side]], int] = field(default_factory=dict)

    def put(self, name: str, words: frozenset[str], sides: Iterable[Side] = ()) -> int:
        distinct = tuple(dict.fromkeys(sides))
        key = (words, frozenset(distinct))
        if key not in self.number:
            self.number[key] = len(self.listed)
            self.listed.append(Phrase(name, words, distinct))
        return self.number[key]


def _phrases(grammar: Grammar) -> Iterator[Phrase]:
    phrases = _Collected()
    words = {w: phrases.put(str(Symbol(w, terminal=True)), frozenset({w})) for w in grammar.terminals}
    of: dict[str, int] = {}
    for name in grammar.children_first():
        spelled: set[str] = set()
        sides: list[Side] = []
        for rule in grammar.rules_of(name):
            side = tuple(words[part.name] if part.terminal else of[part.name] for part in rule.rhs)
            if len(side) > 1:
                sides.append(side)
            else:
                spelled |= phrases.listed[side[0]].words
                sides += phrases.listed[side[0]].sides
        of[name] = phrases.put(name, frozenset(spelled), sides)
    return _used(_with_end(phrases, of[grammar.start]))


def _with_end(phrases: _Collected, start: int) -> list[Phrase]:
    end = phrases.put(END, frozenset({END}))
    plain = list(_reachable(phrases.listed, start))
    followed = _followed([phrases.listed[number if number in plain else end] for number in range(end)])
    ended: dict[int, int] = {}
    for number in sorted(plain):
        phrase = phrases.listed[number]
        if number in followed or not phrase.sides:
            if number == start:
                phrases.put(f"{phrase.name} {END}", frozenset(), [(number, end)])
            continue
        sides = [(*side, end) if side[-1] not in ended else (*side[:-1], ended[side[-1]]) for side in phrase.sides]
        if phrase.words:
            sides.append((phrases.put(f"{phrase.name}~1", phrase.words), end))
        ended[number] = phrases.put(f"{phrase.name} {END}", frozenset(), sides)
    return phrases.listed


def _reachable(listed: list[Phrase], start: int) -> Iterator[int]:
    wanted = {start}
    for number in range(start, -1, -1):
        if number in wanted:
            yield number
            wanted.update(part for side in listed[number].sides for part in side)


def _used(listed: list[Phrase]) -> Iterator[Phrase]:
    """Yield the phrases below the last one, with new indices."""
    number: dict[int, int] = {}
    for old in sorted(_reachable(listed, len(listed) - 1)):
        number[old] = len(number)
        sides = tuple(tuple(number[part] for part in side) for side in listed[old].sides)
        yield replace(listed[old], sides=sides)
