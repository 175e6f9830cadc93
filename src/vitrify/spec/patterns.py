r"""Word-class languages: a sentence picks any word of each class of a pattern.

A pattern is a sequence of classes; a class is a set of words, and a word may be in several. Written in quotes, a word
is a class of its own: `"awoke"` is the class of the one word *awoke*. The language is the union over its patterns.

$n^*(L)$ is the least $n$ for which the last $n-1$ words (with the beginning of the sentence, where it is that near) say
which words may come next. Words that are in the same classes are interchangeable, so it is worked out over *types*, the
sets of classes that some word is in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from vitrify.errors import SpecError
from vitrify.spec.beginnings import beginnings
from vitrify.spec.display import Displayed
from vitrify.spec.ngram import BEGIN, END
from vitrify.spec.pattern_files import pattern_problems, patterns_text, read_patterns, split_pattern

MOST_SENTENCES = 1_000_000  # longer listings are refused: classes multiply
MOST_STATES = 200_000  # sets of patterns that a prefix may leave open, in the search for the window

Context = tuple[str, ...]  # classes, oldest first; begins with <s> where the beginning of the sentence is in the window
State = tuple[int, frozenset[int]]  # how many words were read, and which patterns they fit


@dataclass(frozen=True)
class WordPatterns(Displayed):
    """Patterns over word classes, and the sentences that they allow.

    >>> spec = WordPatterns.of({"WHO": "Ann Bob", "PET": "cat dog"}, ['WHO "has a" PET', 'WHO "sleeps"'])
    >>> sorted(spec.next_words(["Ann"]))
    ['has', 'sleeps']
    >>> spec.window(), len(spec.contexts(2))
    (2, 6)
    """

    classes: tuple[tuple[str, tuple[str, ...]], ...]
    patterns: tuple[tuple[str, ...], ...]
    suffix: ClassVar[str] = ".patterns"

    def __post_init__(self) -> None:
        problems = [message for _, message in pattern_problems(self.classes, self.patterns)]
        if problems:
            raise SpecError(problems)

    @classmethod
    def of(cls, classes: Mapping[str, str | Iterable[str]], patterns: Iterable[str]) -> WordPatterns:
        """From words by class (a string is split at blanks) and patterns as a file writes them."""
        words = {name: tuple(given.split() if isinstance(given, str) else given) for name, given in classes.items()}
        return cls(tuple(words.items()), tuple(split_pattern(pattern) for pattern in patterns))

    @classmethod
    def read(cls, path: str | Path) -> WordPatterns:
        """The patterns of a `.patterns` file."""
        return cls(*read_patterns(Path(path)))

    def write(self, path: str | Path) -> None:
        """Write a `.patterns` file that reads back as this value."""
        Path(path).write_text(patterns_text(self.classes, self.patterns), encoding="utf-8", newline="\n")

    # What it is

    @cached_property
    def members(self) -> dict[str, frozenset[str]]:
        """The words of every class: those that have a name, in order, then those that stand in quotes."""
        literals = dict.fromkeys(part for pattern in self.patterns for part in pattern if part.startswith('"'))
        own = {literal: frozenset([literal[1:-1]]) for literal in literals}
        return {name: frozenset(words) for name, words in self.classes} | own

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """All words, in the order of their first mention."""
        listed = [word for _, words in self.classes for word in words]
        literals = [part[1:-1] for pattern in self.patterns for part in pattern if part.startswith('"')]
        return tuple(dict.fromkeys([*listed, *literals]))

    @cached_property
    def classes_of(self) -> dict[str, frozenset[str]]:
        """The classes of every word: its type."""
        inside: dict[str, set[str]] = {word: set() for word in self.vocabulary}
        for name, words in self.members.items():
            for word in words:
                inside[word].add(name)
        return {word: frozenset(names) for word, names in inside.items()}

    @property
    def longest(self) -> int:
        """The number of words of the longest sentences."""
        return max(map(len, self.patterns))

    # What it means

    def next_words(self, history: Sequence[str]) -> frozenset[str]:
        """The words that may come next, with `</s>` where a sentence may end; none if no sentence begins like this."""
        legal: set[str] = set()
        for pattern in self.patterns:
            begins = len(history) <= len(pattern)
            if begins and all(word in self.members[part] for word, part in zip(history, pattern, strict=False)):
                ends = len(history) == len(pattern)
                legal |= {END} if ends else self.members[pattern[len(history)]]
        return frozenset(legal)

    def next_words_along(self, sentence: Sequence[str]) -> tuple[frozenset[str], ...]:
        """The words that may come after each beginning, from the empty one to the whole."""
        return tuple(self.next_words(sentence[:place]) for place in range(len(sentence) + 1))

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]:
        """Every beginning of a sentence once, short ones first, each made when it is asked for."""
        return beginnings(lambda words: self._in_order(self.next_words(words)), longest)

    def sentences(self, most: int = MOST_SENTENCES) -> Iterator[tuple[str, ...]]:
        """Every sentence once, in the order of the vocabulary; more than `most` are refused."""
        waiting: list[tuple[str, ...]] = [()]
        found = 0
        while waiting:
            prefix = waiting.pop()
            legal = self.next_words(prefix)
            if END in legal:
                found += 1
                if found > most:
                    raise SpecError([f"the language has more than {most} sentences: draw some instead of listing all"])
                yield prefix
            waiting += [(*prefix, word) for word in reversed(self._in_order(legal))]

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        """A random sentence: a pattern, then a word of each of its classes."""
        pattern = self.patterns[int(rng.integers(len(self.patterns)))]
        lists = [self._listed[part] for part in pattern]
        return tuple(words[int(rng.integers(len(words)))] for words in lists)

    def examples(self) -> Iterator[tuple[str, ...]]:
        """Sentences in which every word stands once at every place where it may."""
        for pattern in self.patterns:
            lists = [self._listed[part] for part in pattern]
            for turn in range(max(map(len, lists))):
                yield tuple(words[turn % len(words)] for words in lists)

    @cached_property
    def _listed(self) -> dict[str, tuple[str, ...]]:
        return {name: tuple(self._in_order(words)) for name, words in self.members.items()}

    @cached_property
    def _place(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.vocabulary)}

    def _in_order(self, words: frozenset[str]) -> list[str]:
        return sorted((word for word in words if word != END), key=self._place.__getitem__)

    # Windows

    def contexts(self, n: int) -> dict[Context, frozenset[str]]:
        """$P_n$: the last $n-1$ classes before every place of every pattern, and the classes (or `</s>`) that follow.

        One `<s>` stands for the beginning of the sentence where it is among the last $n-1$ places.
        """
        found: dict[Context, set[str]] = {}
        for pattern in self.patterns:
            whole = (BEGIN, *pattern)
            for place in range(1, len(whole) + 1):
                context = whole[max(0, place - (n - 1)) : place]
                found.setdefault(context, set()).add(whole[place] if place < len(whole) else END)
        return {context: frozenset(follow) for context, follow in found.items()}

    def window(self) -> int:
        r"""$n^*$: the least $n$ for which the last $n-1$ words say which words may come next.

        A window leaves a set of states open. No word seen: all of them. One more word $a$ seen: those that $a$ leads
        to; and the first state alone, where the window shows the beginning. $n-1$ words are enough when the states
        that every window leaves open allow the same words.
        """
        steps = self._steps()
        start: State = (0, frozenset(range(len(self.patterns))))
        answers = {state: self._next_types(state) for state in steps}
        left_open, n = {frozenset(steps)}, 1
        while any(len({answers[state] for state in states}) > 1 for states in left_open):
            moved = {frozenset([start])}
            for states in left_open:
                by_type: dict[frozenset[str], set[State]] = {}
                for state in states:
                    for kind, target in steps[state].items():
                        by_type.setdefault(kind, set()).add(target)
                moved |= {frozenset(targets) for targets in by_type.values()}
            left_open, n = moved, n + 1
        return n

    def _steps(self) -> dict[State, dict[frozenset[str], State]]:
        """Where a word of each type leads from every state that some prefix leads to."""
        kinds: dict[str, list[frozenset[str]]] = {name: [] for name in self.members}
        for kind in dict.fromkeys(self.classes_of.values()):
            for name in kind:
                kinds[name].append(kind)
        waiting: list[State] = [(0, frozenset(range(len(self.patterns))))]
        steps: dict[State, dict[frozenset[str], State]] = {}
        while waiting:
            state = waiting.pop()
            if state in steps:
                continue
            read, fitting = state
            if len(steps) >= MOST_STATES:
                raise SpecError(
                    [f"the classes overlap too much: prefixes fit more than {MOST_STATES} sets of patterns"]
                )
            moves: dict[frozenset[str], set[int]] = {}
            for place in fitting:
                if read < len(self.patterns[place]):
                    for kind in kinds[self.patterns[place][read]]:
                        moves.setdefault(kind, set()).add(place)
            steps[state] = {kind: (read + 1, frozenset(places)) for kind, places in moves.items()}
            waiting += steps[state].values()
        return steps

    def _next_types(self, state: State) -> frozenset[object]:
        """What may come next, up to words of the same type."""
        read, fitting = state
        follow = {self.patterns[place][read : read + 1] for place in fitting}
        kinds: set[object] = {self.classes_of[word] for part in follow if part for word in self.members[part[0]]}
        return frozenset(kinds | {END}) if () in follow else frozenset(kinds)
