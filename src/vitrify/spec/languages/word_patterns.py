r"""Word-class languages: a sentence picks any word of each class of a pattern; `.patterns` files.

    # who wakes up when
    WHO  = Ann Bob
    HOUR = one two three

    WHO "awoke at" HOUR "o'clock"
    WHO "sleeps"

A line `NAME = word word …` defines a class; every other line is one pattern, a sequence of class names and of words in
double quotes. Several words in one pair of quotes are several words of the sentence. A line that begins with # is a
comment. Classes may be defined after their use; a word may be in several classes.

Written in quotes, a word is a class of its own: `"awoke"` is the class of the one word *awoke*. The language is the
union over its patterns.

$n^*(L)$ is the least $n$ for which the last $n-1$ words (with the beginning of the sentence, if it is among them)
determine which words may come next. Words of the same classes are interchangeable, so it is computed over *types*: the
sets of classes of words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from vitrify.spec.formats.text import Problem, SpecError, lines_of, refuse_any
from vitrify.spec.kinds import Kind, Meaning, PrefixStates, Spec, at_every_prefix, prefixes_by_length
from vitrify.spec.ngrams.model import BEGIN, END

Classes = tuple[tuple[str, tuple[str, ...]], ...]
Patterns = tuple[tuple[str, ...], ...]
Location = tuple[Literal["class", "pattern"], int] | None  # the class or pattern of a problem

NAME = re.compile(r'[^\s"=#][^\s"=]*')
DEFINITION = re.compile(rf"({NAME.pattern})\s*=(.*)")
PART = re.compile(r'"([^"]*)"|([^\s"]+)')
RESERVED = (BEGIN, END)

MAX_SENTENCES = 1_000_000  # longer listings are refused
MAX_STATES = 200_000  # in the search for the window

Context = tuple[str, ...]  # classes, oldest first; begins with <s> where the beginning of the sentence is in the window
State = tuple[int, frozenset[int]]  # number of words read, and the patterns that they fit


@dataclass(frozen=True)
class WordPatterns(Spec):
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
        refuse_any(message for _, message in _problems(self.classes, self.patterns))

    @classmethod
    def of(cls, classes: Mapping[str, str | Iterable[str]], patterns: Iterable[str]) -> WordPatterns:
        """Return the language of words by class (a string is split at blanks) and patterns in the notation of files."""
        words = {name: tuple(listed.split() if isinstance(listed, str) else listed) for name, listed in classes.items()}
        return cls(tuple(words.items()), tuple(split_pattern(pattern) for pattern in patterns))

    @classmethod
    def read(cls, path: str | Path) -> WordPatterns:
        classes: list[tuple[str, tuple[str, ...]]] = []
        patterns: list[tuple[str, ...]] = []
        lines: dict[Location, int] = {}
        for number, line in lines_of(path, cls.suffix):
            if definition := DEFINITION.fullmatch(line):
                lines["class", len(classes)] = number
                classes.append((definition[1], tuple(definition[2].split())))
            else:
                lines["pattern", len(patterns)] = number
                patterns.append(split_pattern(line))
        problems = _problems(tuple(classes), tuple(patterns))
        refuse_any(Problem(message, str(path), lines.get(location)) for location, message in problems)
        return cls(tuple(classes), tuple(patterns))

    def to_text(self) -> str:
        lines = [f"{name} = {' '.join(words)}" for name, words in self.classes]
        lines += [""] if self.classes else []
        return "\n".join([*lines, *map(side_by_side, self.patterns)]) + "\n"

    @classmethod
    def samples(cls) -> dict[str, WordPatterns]:
        return {"waking up": waking_up(2), "random": random_patterns(1), "one word": cls((), (('"a"',),))}

    # Words and classes

    @cached_property
    def members(self) -> dict[str, frozenset[str]]:
        """Words of every class: named classes in order, then words in quotes."""
        singletons = {literal: frozenset([literal[1:-1]]) for literal in self._literals}
        return {name: frozenset(words) for name, words in self.classes} | singletons

    @cached_property
    def _literals(self) -> dict[str, None]:
        return dict.fromkeys(part for pattern in self.patterns for part in pattern if part.startswith('"'))

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """All words, in the order of first mention."""
        listed = [word for _, words in self.classes for word in words]
        return tuple(dict.fromkeys([*listed, *(literal[1:-1] for literal in self._literals)]))

    @cached_property
    def classes_of(self) -> dict[str, frozenset[str]]:
        """Classes of every word: its type."""
        inside: dict[str, list[str]] = {word: [] for word in self.vocabulary}
        for name, words in self.members.items():
            for word in words:
                inside[word].append(name)
        return {word: frozenset(names) for word, names in inside.items()}

    @property
    def longest(self) -> int:
        """Number of words of the longest sentences."""
        return max(map(len, self.patterns))

    # Meaning

    def meanings(self) -> dict[str, Meaning]:
        """Return the task: the set of words that may come next."""
        after = at_every_prefix(self.next_words)
        states = PrefixStates((0, frozenset(range(len(self.patterns)))), self._state_after)
        return {"next": Meaning("set", self.vocabulary, (*self.vocabulary, END), after, self, states=states)}

    def _state_after(self, state: State, word: str) -> State | None:
        """Return the number of words and the patterns that they fit, after one more word; None if they fit none."""
        read, fitting = state
        longer = [number for number in fitting if read < len(self.patterns[number])]
        matching = frozenset(number for number in longer if word in self.members[self.patterns[number][read]])
        return (read + 1, matching) if matching else None

    def next_words(self, history: Sequence[str]) -> frozenset[str]:
        """Return the words that may come next, with `</s>` where a sentence may end; empty after an illegal prefix."""
        legal: set[str] = set()
        for pattern in self.patterns:
            begins = len(history) <= len(pattern)
            if begins and all(word in self.members[part] for word, part in zip(history, pattern, strict=False)):
                ends = len(history) == len(pattern)
                legal |= {END} if ends else self.members[pattern[len(history)]]
        return frozenset(legal)

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]:
        return prefixes_by_length(lambda words: self._in_order(self.next_words(words)), longest)

    def sentences(self, limit: int = MAX_SENTENCES) -> Iterator[tuple[str, ...]]:
        """Yield every sentence once, in the order of the vocabulary; more than `limit` are refused."""
        waiting: list[tuple[str, ...]] = [()]
        count = 0
        while waiting:
            prefix = waiting.pop()
            legal = self.next_words(prefix)
            if END in legal:
                count += 1
                if count > limit:
                    raise SpecError([f"the language has more than {limit} sentences: draw some instead of listing all"])
                yield prefix
            waiting += [(*prefix, word) for word in reversed(self._in_order(legal))]

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        """Return a random sentence: a pattern, then a word of each of its classes."""
        pattern = self.patterns[int(rng.integers(len(self.patterns)))]
        return tuple(words[int(rng.integers(len(words)))] for words in map(self._listed.__getitem__, pattern))

    def examples(self) -> Iterator[tuple[str, ...]]:
        """Yield sentences in which every word occurs at every position where it may."""
        for pattern in self.patterns:
            lists = [self._listed[part] for part in pattern]
            for turn in range(max(map(len, lists))):
                yield tuple(words[turn % len(words)] for words in lists)

    @cached_property
    def _listed(self) -> dict[str, tuple[str, ...]]:
        return {name: tuple(self._in_order(words)) for name, words in self.members.items()}

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.vocabulary)}

    def _in_order(self, words: frozenset[str]) -> list[str]:
        return sorted((word for word in words if word != END), key=self._index.__getitem__)

    # Windows

    def contexts(self, n: int) -> dict[Context, frozenset[str]]:
        """Return $P_n$: the last $n-1$ classes before every position of the patterns, with the classes that follow.

        `</s>` follows the last position. One `<s>` stands for the beginning of the sentence where it is among the last
        $n-1$ positions.
        """
        followers: dict[Context, set[str]] = {}
        for pattern in self.patterns:
            sentence = (BEGIN, *pattern)
            for position in range(1, len(sentence) + 1):
                context = sentence[max(0, position - (n - 1)) : position]
                followers.setdefault(context, set()).add(sentence[position] if position < len(sentence) else END)
        return {context: frozenset(follow) for context, follow in followers.items()}

    def window(self) -> int:
        r"""Return $n^*$: the least $n$ for which the last $n-1$ words determine which words may come next.

        A window is compatible with a set of states. Without words: all states. With one more word $a$: the states that
        $a$ leads to; and the first state alone, where the window shows the beginning. $n-1$ words are enough when, for
        every window, all compatible states allow the same words.
        """
        steps = self._steps()
        start: State = (0, frozenset(range(len(self.patterns))))
        answers = {state: self._next_types(state) for state in steps}
        compatible, n = {frozenset(steps)}, 1
        while any(len({answers[state] for state in states}) > 1 for states in compatible):
            moved = {frozenset([start])}
            for states in compatible:
                by_type: dict[frozenset[str], set[State]] = {}
                for state in states:
                    for kind, target in steps[state].items():
                        by_type.setdefault(kind, set()).add(target)
                moved |= {frozenset(targets) for targets in by_type.values()}
            compatible, n = moved, n + 1
        return n

    def _steps(self) -> dict[State, dict[frozenset[str], State]]:
        """Return the transitions of every reachable state by type of word."""
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
            if len(steps) >= MAX_STATES:
                raise SpecError([f"the classes overlap too much: prefixes fit more than {MAX_STATES} sets of patterns"])
            moves: dict[frozenset[str], set[int]] = {}
            for pattern in fitting:
                if read < len(self.patterns[pattern]):
                    for kind in kinds[self.patterns[pattern][read]]:
                        moves.setdefault(kind, set()).add(pattern)
            steps[state] = {kind: (read + 1, frozenset(matching)) for kind, matching in moves.items()}
            waiting += steps[state].values()
        return steps

    def _next_types(self, state: State) -> frozenset[object]:
        """Return the types of the words that may come next."""
        read, fitting = state
        follow = {self.patterns[pattern][read : read + 1] for pattern in fitting}
        kinds: set[object] = {self.classes_of[word] for part in follow if part for word in self.members[part[0]]}
        return frozenset(kinds | {END}) if () in follow else frozenset(kinds)


def quoted(word: str) -> str:
    """Return the class of one word, as patterns write it."""
    return f'"{word}"'


def side_by_side(parts: Sequence[str]) -> str:
    """Return classes as a file writes them: adjacent words share one pair of quotes.

    >>> side_by_side(("WHO", '"awoke"', '"at"', "HOUR"))
    'WHO "awoke at" HOUR'
    """
    return " ".join(parts).replace('" "', " ")


def split_pattern(text: str) -> tuple[str, ...]:
    """Return the parts of a pattern in the notation of files; an unclosed quote stays in the last one.

    >>> split_pattern('WHO "awoke at" HOUR')
    ('WHO', '"awoke"', '"at"', 'HOUR')
    """
    parts: list[str] = []
    remaining = text.strip()
    while remaining:
        match = PART.match(remaining)
        if match is None:  # a quote that is not closed: no class is called like that
            return (*parts, remaining)
        words, name = match.groups()
        parts += [name] if words is None else [quoted(word) for word in words.split()] or ['""']
        remaining = remaining[match.end() :].lstrip()
    return tuple(parts)


def _problems(classes: Classes, patterns: Patterns) -> Iterator[tuple[Location, str]]:
    """Yield every problem, with its class or pattern."""
    yield from _class_problems(classes)
    defined = {name for name, _ in classes}
    used = {part for pattern in patterns for part in pattern}
    for index, (name, _) in enumerate(classes):
        if name not in used and patterns:
            yield ("class", index), f"the class {name!r} is in no pattern: use it or leave it out"
    if not patterns:
        yield None, 'there must be at least one pattern: a line of class names and "words in quotes"'
    first: dict[tuple[str, ...], int] = {}
    for index, pattern in enumerate(patterns):
        if first.setdefault(pattern, index) != index:
            yield ("pattern", index), f"the pattern is the same as pattern {first[pattern] + 1}: keep one"
        if not pattern:
            yield ("pattern", index), "a pattern must have at least one word"
        for part in dict.fromkeys(pattern):
            if message := _part_problem(part, defined):
                yield ("pattern", index), message


def _class_problems(classes: Classes) -> Iterator[tuple[Location, str]]:
    names = Counter[str]()
    for index, (name, words) in enumerate(classes):
        names[name] += 1
        if names[name] == 2:
            yield ("class", index), f"the class {name!r} is defined twice: keep one definition"
        if not NAME.fullmatch(name) or not name.isprintable():
            rule = 'a class name has no blanks, quotes or "=", and does not begin with #'
            yield ("class", index), f"{rule}, got {name!r}"
        if not words:
            yield ("class", index), f"the class {name!r} must have at least one word: write them after the ="
        for word, times in Counter(words).items():
            if times > 1:
                yield ("class", index), f"the class {name!r} lists {word!r} {times} times: list it once"
            if message := _word_problem(word):
                yield ("class", index), message


def _part_problem(part: str, defined: set[str]) -> str | None:
    if not part.startswith('"'):
        if part in defined:
            return None
        return f'the class {part!r} is not defined: write {part} = word word …, or "{part}" for the word itself'
    if len(part) < 2 or not part.endswith('"'):
        return f"the quote that opens at {part} is not closed"
    return "the quotes hold no word" if part == '""' else _word_problem(part[1:-1])


def _word_problem(word: str) -> str | None:
    if word in RESERVED:
        return f"the word {word!r} is reserved for the beginning and the end of a sentence: choose another name"
    if '"' in word or not word or any(letter.isspace() for letter in word):
        return f"a word has no blanks and no quotes, got {word!r}"
    return None


def waking_up(size: int) -> WordPatterns:
    """Return sentences about who awoke when and how, with classes of `size` words; some words are in two classes.

    >>> [waking_up(size).window() for size in (2, 20)]
    [6, 6]
    """
    names = {name: [f"{name.lower()}{number}" for number in range(size)] for name in ("WHO", "HOUR", "STATE", "PLACE")}
    names["DRINK"] = [*names["STATE"][: size // 2], *(f"drink{number}" for number in range(size - size // 2))]
    patterns = [
        'WHO "awoke at" HOUR "and was too" STATE "for" PLACE',
        'WHO "was too" STATE "for" DRINK',
        'WHO "went to" PLACE "at" HOUR',
        'WHO "awoke"',
    ]
    return WordPatterns.of(names, patterns)


def random_patterns(seed: int, *, words: int = 5, classes: int = 3, patterns: int = 4, length: int = 5) -> WordPatterns:
    """Return random classes (a word is in each with probability 0.4) and random patterns, some words in quotes.

    >>> random_patterns(0) == random_patterns(0)
    True
    """
    rng = np.random.default_rng(seed)
    vocabulary = [f"w{number}" for number in range(words)]
    inside = rng.random((classes, words)) < 0.4
    inside[np.arange(classes), rng.integers(words, size=classes)] = True
    rows = [tuple(w for w, held in zip(vocabulary, row, strict=True) if held) for row in inside]
    members = {f"C{c}": row for c, row in enumerate(rows)}
    parts = [*members, *members, quoted(vocabulary[0]), quoted("x")]
    draws = (rng.integers(len(parts), size=rng.integers(1, length + 1)) for _ in range(patterns))
    distinct = dict.fromkeys(tuple(parts[index] for index in draw) for draw in draws)
    used = {part for pattern in distinct for part in pattern}
    return WordPatterns(tuple((name, held) for name, held in members.items() if name in used), tuple(distinct))


KIND = Kind(WordPatterns, {".patterns": "patterns over word classes"})
