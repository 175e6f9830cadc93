r"""Word patterns on disk: `.patterns` files, read and written, with all problems told at once.

    # who wakes up when
    WHO  = Ann Bob
    HOUR = one two three

    WHO "awoke at" HOUR "o'clock"
    WHO "sleeps"

A line `NAME = word word …` defines a class; every other line is one pattern, a sequence of class names and of words in
double quotes. Several words in one pair of quotes are several words of the sentence. A line that begins with # is a
comment. Classes may be defined after their use; a word may be in several classes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from vitrify.errors import Problem
from vitrify.spec.files import lines_of, refuse_any, refuse_suffix
from vitrify.spec.ngram import BEGIN, END

Classes = tuple[tuple[str, tuple[str, ...]], ...]
Patterns = tuple[tuple[str, ...], ...]
Place = tuple[Literal["class", "pattern"], int] | None  # which class or pattern a problem is about

NAME = re.compile(r'[^\s"=#][^\s"=]*')
DEFINITION = re.compile(rf"({NAME.pattern})\s*=(.*)")
PART = re.compile(r'"([^"]*)"|([^\s"]+)')
RESERVED = (BEGIN, END)


def quoted(word: str) -> str:
    """The class of one word, as patterns write it."""
    return f'"{word}"'


def side_by_side(parts: Sequence[str]) -> str:
    """Classes in a row as a file writes them: words that stand side by side share one pair of quotes.

    >>> side_by_side(("WHO", '"awoke"', '"at"', "HOUR"))
    'WHO "awoke at" HOUR'
    """
    return " ".join(parts).replace('" "', " ")


def split_pattern(text: str) -> tuple[str, ...]:
    """The parts of a pattern as a file writes it; a quote that is not closed stays in the last one.

    >>> split_pattern('WHO "awoke at" HOUR')
    ('WHO', '"awoke"', '"at"', 'HOUR')
    """
    parts: list[str] = []
    rest = text.strip()
    while rest:
        found = PART.match(rest)
        if found is None:  # a quote that is not closed: no class is called like that
            return (*parts, rest)
        words, name = found.groups()
        parts += [name] if words is None else [quoted(word) for word in words.split()] or ['""']
        rest = rest[found.end() :].lstrip()
    return tuple(parts)


def read_patterns(path: Path) -> tuple[Classes, Patterns]:
    """Classes and patterns of a `.patterns` file, checked."""
    if not path.name.endswith(".patterns"):
        raise refuse_suffix(path, ".patterns")
    classes: list[tuple[str, tuple[str, ...]]] = []
    patterns: list[tuple[str, ...]] = []
    lines: dict[Place, int] = {}
    for number, line in lines_of(path):
        if found := DEFINITION.fullmatch(line):
            lines["class", len(classes)] = number
            classes.append((found[1], tuple(found[2].split())))
        else:
            lines["pattern", len(patterns)] = number
            patterns.append(split_pattern(line))
    refuse_any(
        Problem(message, str(path), lines.get(place))
        for place, message in pattern_problems(tuple(classes), tuple(patterns))
    )
    return tuple(classes), tuple(patterns)


def patterns_text(classes: Classes, patterns: Patterns) -> str:
    """The text of a `.patterns` file."""
    lines = [f"{name} = {' '.join(words)}" for name, words in classes]
    lines += [""] if classes else []
    lines += [side_by_side(pattern) for pattern in patterns]
    return "\n".join(lines) + "\n"


def pattern_problems(classes: Classes, patterns: Patterns) -> Iterator[tuple[Place, str]]:
    """Every broken rule, and the class or pattern that breaks it."""
    yield from _class_problems(classes)
    defined = {name for name, _ in classes}
    used = {part for pattern in patterns for part in pattern}
    for place, (name, _) in enumerate(classes):
        if name not in used and patterns:
            yield ("class", place), f"the class {name!r} is in no pattern: use it or leave it out"
    if not patterns:
        yield None, 'there must be at least one pattern: a line of class names and "words in quotes"'
    first: dict[tuple[str, ...], int] = {}
    for place, pattern in enumerate(patterns):
        if first.setdefault(pattern, place) != place:
            yield ("pattern", place), f"the pattern is the same as pattern {first[pattern] + 1}: keep one"
        if not pattern:
            yield ("pattern", place), "a pattern must have at least one word"
        for part in dict.fromkeys(pattern):
            if message := _part_problem(part, defined):
                yield ("pattern", place), message


def _class_problems(classes: Classes) -> Iterator[tuple[Place, str]]:
    names = Counter[str]()
    for place, (name, words) in enumerate(classes):
        names[name] += 1
        if names[name] == 2:
            yield ("class", place), f"the class {name!r} is defined twice: keep one definition"
        if not NAME.fullmatch(name) or not name.isprintable():
            yield (
                ("class", place),
                f'a class name has no blanks, quotes or "=", and does not begin with #, got {name!r}',
            )
        if not words:
            yield ("class", place), f"the class {name!r} must have at least one word: write them after the ="
        for word, times in Counter(words).items():
            if times > 1:
                yield ("class", place), f"the class {name!r} lists {word!r} {times} times: list it once"
            if message := _word_problem(word):
                yield ("class", place), message


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
        return f"the word {word!r} is kept for the beginning and the end of a sentence: call it something else"
    if '"' in word or not word or any(letter.isspace() for letter in word):
        return f"a word has no blanks and no quotes, got {word!r}"
    return None
