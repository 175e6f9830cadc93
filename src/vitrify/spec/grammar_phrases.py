r"""A grammar without recursion as phrases: each is a set of words, and of sequences of two phrases or more.

Rules with one symbol on the right are folded into what they lead to, and symbols that then say the same become one
phrase. So a phrase of one word is known by that word, and every other one is made of shorter ones.

The end of the sentence is a word like any other. It stands behind the last phrase: where that one is recognised as a
whole anyway, because something may follow it elsewhere too, or is a single word, `A` becomes `A </s>`; any other `A` at
the end of a sentence becomes a phrase of its own, made of the same sequences with the end of the sentence behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from vitrify.spec.grammar import END, Grammar, Symbol

Side = tuple[int, ...]  # phrases by number


@dataclass(frozen=True)
class Phrase:
    """What a phrase may be: one of some words, or one of some sequences of two phrases or more, by number."""

    name: str
    words: frozenset[str]
    sides: tuple[Side, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Phrases:
    """The phrases of a grammar, parts before wholes; sentences, with their end, are the last one.

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
        """The phrases of a grammar; refused with the cycle if it is recursive."""
        return cls(tuple(_phrases(grammar)))

    def __str__(self) -> str:
        return "\n".join(self._drawn(phrase) for phrase in self.listed if len(phrase.words) > 1 or phrase.sides)

    def _drawn(self, phrase: Phrase) -> str:
        words = [" ".join(map(repr, sorted(phrase.words)))] if phrase.words else []
        return f"{phrase.name}: {' | '.join([*words, *map(self.text, phrase.sides)])}"

    def text(self, side: Iterable[int]) -> str:
        """A sequence of phrases by their names."""
        return " ".join(self.listed[part].name for part in side)

    @property
    def start(self) -> int:
        """The number of the sentences."""
        return len(self.listed) - 1

    @property
    def longest(self) -> int:
        """How many words the longest sentence has, its end not counted."""
        return self.widths[self.start][-1] - 1

    @cached_property
    def widths(self) -> tuple[tuple[int, ...], ...]:
        """How many words each phrase may have, upwards."""
        found: list[tuple[int, ...]] = []
        for phrase in self.listed:
            sums = {1} if phrase.words else set[int]()
            for side in phrase.sides:
                sums |= _sums(found, side)
            found.append(tuple(sorted(sums)))
        return tuple(found)

    def widths_of(self, side: Side) -> tuple[int, ...]:
        """How many words a sequence may have, upwards."""
        return tuple(sorted(_sums(self.widths, side)))

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """How deep the tree of each phrase may be, a phrase of one word having height 0."""
        found: list[int] = []
        for phrase in self.listed:
            found.append(max((1 + max(found[part] for part in side) for side in phrase.sides), default=0))
        return tuple(found)

    @cached_property
    def corners(self) -> tuple[tuple[int, ...], ...]:
        """What each phrase may begin with: itself, the first parts of its sequences, theirs, and so on."""
        found: list[tuple[int, ...]] = []
        for number, phrase in enumerate(self.listed):
            deeper = (corner for side in phrase.sides for corner in found[side[0]])
            found.append(tuple(dict.fromkeys([number, *deeper])))
        return tuple(found)

    @cached_property
    def first_words(self) -> tuple[frozenset[str], ...]:
        """The words that each phrase may begin with."""
        return tuple(frozenset().union(*(self.listed[part].words for part in corners)) for corners in self.corners)

    @cached_property
    def complete(self) -> tuple[int, ...]:
        """The phrases that must be recognised as wholes: those that something may follow, and all they are made of."""
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
    """Phrases while they are being collected: what says the same is one."""

    listed: list[Phrase] = field(default_factory=list)
    number: dict[tuple[frozenset[str], frozenset[Side]], int] = field(default_factory=dict)

    def put(self, name: str, words: frozenset[str], sides: Iterable[Side] = ()) -> int:
        kept = tuple(dict.fromkeys(sides))
        key = (words, frozenset(kept))
        if key not in self.number:
            self.number[key] = len(self.listed)
            self.listed.append(Phrase(name, words, kept))
        return self.number[key]


def _phrases(grammar: Grammar) -> Iterator[Phrase]:
    found = _Collected()
    words = {w: found.put(str(Symbol(w, terminal=True)), frozenset({w})) for w in grammar.terminals}
    of: dict[str, int] = {}
    for name in grammar.children_first():
        meant: set[str] = set()
        sides: list[Side] = []
        for rule in grammar.rules_of(name):
            side = tuple(words[part.name] if part.terminal else of[part.name] for part in rule.rhs)
            if len(side) > 1:
                sides.append(side)
            else:
                meant |= found.listed[side[0]].words
                sides += found.listed[side[0]].sides
        of[name] = found.put(name, frozenset(meant), sides)
    return _used(_with_end(found, of[grammar.start]))


def _with_end(found: _Collected, start: int) -> list[Phrase]:
    end = found.put(END, frozenset({END}))
    plain = list(_reachable(found.listed, start))
    whole = set(_followed([found.listed[number] if number in plain else found.listed[end] for number in range(end)]))
    ended: dict[int, int] = {}
    for number in sorted(plain):
        phrase = found.listed[number]
        if number in whole or not phrase.sides:
            if number == start:
                found.put(f"{phrase.name} {END}", frozenset(), [(number, end)])
            continue
        sides = [(*side, end) if side[-1] not in ended else (*side[:-1], ended[side[-1]]) for side in phrase.sides]
        if phrase.words:
            sides.append((found.put(f"{phrase.name}~1", phrase.words), end))
        ended[number] = found.put(f"{phrase.name} {END}", frozenset(), sides)
    return found.listed


def _reachable(listed: list[Phrase], start: int) -> Iterator[int]:
    wanted = {start}
    for number in range(start, -1, -1):
        if number in wanted:
            yield number
            wanted.update(part for side in listed[number].sides for part in side)


def _used(listed: list[Phrase]) -> Iterator[Phrase]:
    """The phrases below the last one, numbered anew."""
    kept = sorted(_reachable(listed, len(listed) - 1))
    number = {old: new for new, old in enumerate(kept)}
    for old in kept:
        phrase = listed[old]
        yield Phrase(phrase.name, phrase.words, tuple(tuple(number[part] for part in side) for side in phrase.sides))
