"""NLTK's notation for grammars: `.cfg` files, and `.pcfg` files with probabilities, read and written.

    # a comment
    %start S
    S  -> NP VP [0.9] | VP [0.1]
    NP -> 'the' N [1/3] | "the" N PP [2/3]

Words stand in single or double quotes, alternatives are divided by |, the arrow may be →, and a backslash at the end of
a line goes on with the next one. The start symbol is the first left side unless %start names it. Fractions and
comments behind a rule are ours; everything else NLTK reads too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from vitrify.errors import Problem
from vitrify.spec.files import refuse_suffix, text_of
from vitrify.spec.grammar_checks import LONGEST, NAME, Source
from vitrify.spec.grammar_rules import Rule, Symbol

TOKEN = re.compile(
    r"(?P<blank>\s+)|(?P<comment>\#.*)|(?P<arrow>->|→)|(?P<bar>\|)|(?P<word>'[^']*'|\"[^\"]*\")"
    rf"|(?P<chance>\[[^\[\]]*\])|(?P<name>{NAME.pattern})"
)
NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?|\d+\s*/\s*\d+", re.ASCII)
SUFFIXES = (".cfg", ".pcfg")

Token = tuple[str, str]
"""What it is (a group of TOKEN), and its text."""


@dataclass
class Reading:
    """What has been read so far, and what was wrong with it."""

    file: str | None
    start: str | None = None
    start_line: int | None = None
    rules: list[Rule] = field(default_factory=list)
    lines: list[int | None] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    claimed: set[str] = field(default_factory=set)

    def complain(self, message: str, line: int) -> None:
        self.problems.append(Problem(message, self.file, line))


def read_text(text: str, file: str | None = None) -> tuple[str, tuple[Rule, ...], Source]:
    """The start symbol and the rules of a text in NLTK's notation, and where each of them stands."""
    reading = Reading(file)
    for number, line in _joined_lines(text):
        if line.startswith("%"):
            _directive(line, number, reading)
        else:
            _rules(line, number, reading)
    start = reading.start or (reading.rules[0].lhs if reading.rules else "S")
    source = Source(file, tuple(reading.lines), reading.start_line, tuple(reading.problems), frozenset(reading.claimed))
    return start, tuple(reading.rules), source


def read_file(path: Path) -> tuple[str, tuple[Rule, ...], Source]:
    """The same of a `.cfg` or `.pcfg` file; the first may not have probabilities, the second must."""
    file = str(path)
    if path.suffix not in SUFFIXES:
        raise refuse_suffix(path, *SUFFIXES)
    start, rules, source = read_text(text_of(path), file)
    weighted = [rule.probability is not None for rule in rules]
    if path.suffix == ".cfg" and any(weighted):
        problem = source.at("a .cfg file has no probabilities; name the file .pcfg", weighted.index(True))
        source = Source(file, source.lines, source.start_line, (*source.problems, problem), source.claimed)
    if path.suffix == ".pcfg" and rules and not any(weighted):
        problem = source.at("every rule of a .pcfg file needs a probability, as in S -> 'a' [1.0]", 0)
        source = Source(file, source.lines, source.start_line, (*source.problems, problem), source.claimed)
    return start, rules, source


def grammar_text(start: str, rules: Sequence[Rule]) -> str:
    """A grammar in NLTK's notation: one line for neighbouring rules with the same left side."""
    lines = [f"%start {start}"] if rules and rules[0].lhs != start else []
    last = None
    for rule in rules:
        if rule.lhs == last:
            lines[-1] += f" | {str(rule).removeprefix(f'{rule.lhs} -> ')}"
        else:
            lines.append(str(rule))
        last = rule.lhs
    return "\n".join(lines) + "\n"


def _joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that say something, with their numbers; a backslash at the end joins a line with the next."""
    begun, first = "", 0
    lines = text.replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        first = first or number
        if line.endswith("\\") and number < len(lines) and not line.startswith("#"):
            begun += line[:-1].rstrip() + " "
            continue
        whole = (begun + line).strip()
        if whole and not whole.startswith("#"):
            yield first, whole
        begun, first = "", 0


def _directive(line: str, number: int, reading: Reading) -> None:
    words = line.partition("#")[0].split()
    if words[0] != "%start":
        reading.complain(f"the only directive is %start, got {words[0]}", number)
    elif len(words) != 2 or not NAME.fullmatch(words[1]):
        reading.complain(f"%start must name one nonterminal, as in %start S, got {line!r}", number)
    elif reading.start is not None:
        reading.complain(f"a second %start; the first is on line {reading.start_line}", number)
    else:
        reading.start, reading.start_line = words[1], number


def _rules(line: str, number: int, reading: Reading) -> None:
    tokens = _tokens(line, number, reading)
    if tokens and tokens[0][0] == "name":
        reading.claimed.add(tokens[0][1])
    if tokens is None or not tokens:
        return
    kinds = [kind for kind, _ in tokens]
    if kinds[:2] != ["name", "arrow"]:
        if "arrow" in kinds:
            left = " ".join(text for _, text in tokens[: kinds.index("arrow")])
            reading.complain(f"one nonterminal must stand before the arrow, as in S -> NP VP, got {left!r}", number)
        else:
            reading.complain(f"a rule needs an arrow, as in S -> NP VP, got {line!r}", number)
        return
    if "arrow" in kinds[2:]:
        reading.complain("a second arrow; write one rule to a line, or a word in quotes: '->'", number)
        return
    lhs, alternative = tokens[0][1], list[Token]()
    for kind, text in [*tokens[2:], ("bar", "|")]:
        if kind != "bar":
            alternative.append((kind, text))
            continue
        rule = _rule(lhs, alternative, number, reading)
        if rule is not None:
            reading.rules.append(rule)
            reading.lines.append(number)
        alternative = []


def _rule(lhs: str, tokens: Sequence[Token], number: int, reading: Reading) -> Rule | None:
    kinds = [kind for kind, _ in tokens]
    if "chance" in kinds[:-1]:
        reading.complain("a probability stands once, behind the right side it belongs to; divide them by |", number)
        return None
    chance = None
    if kinds[-1:] == ["chance"]:
        chance = _number(tokens[-1][1][1:-1].strip())
        if chance is None:
            text = tokens[-1][1]
            given = text if len(text) <= 40 else f"{text[:40]}… ({len(text)} characters)"
            message = f"a probability must be a number such as [0.25] or [1/4], got {given}"
            reading.complain(message, number)
            return None
        tokens = tokens[:-1]
    if not tokens:
        message = f"a right side of {lhs} is empty; every rule must give at least one symbol"
        reading.complain(message, number)
        return None
    symbols = (Symbol(text[1:-1], True) if kind == "word" else Symbol(text) for kind, text in tokens)
    return Rule(lhs, tuple(symbols), chance)


def _number(text: str) -> Fraction | None:
    if not NUMBER.fullmatch(text) or max(map(len, re.split(r"\D+", text))) > LONGEST:
        return None
    try:
        return Fraction(text.replace(" ", ""))
    except (ZeroDivisionError, ValueError):
        return None


def _tokens(line: str, number: int, reading: Reading) -> list[Token] | None:
    found: list[Token] = []
    place = 0
    while place < len(line):
        match = TOKEN.match(line, place)
        if match is None:
            if found and found[0][0] == "name":
                reading.claimed.add(found[0][1])
            reading.complain(_strange(line, place), number)
            return None
        if match.lastgroup not in ("blank", "comment"):
            found.append((str(match.lastgroup), match.group()))
        place = match.end()
    return found


def _strange(line: str, place: int) -> str:
    character, column = line[place], place + 1
    if character in "'\"":
        return f"the quote {character} at column {column} is not closed; the rest of the line is {line[place:]!r}"
    if character in "[]":
        return f"the bracket {character} at column {column} has no partner; probabilities look like [0.5]"
    return f"{character!r} at column {column} is not part of a rule; words stand in quotes"
