"""Reader of NLTK's notation for grammars: `.cfg` files, and `.pcfg` files with probabilities.

    # a comment
    %start S
    S  -> NP VP [0.9] | VP [0.1]
    NP -> 'the' N [1/3] | "the" N PP [2/3]

Words stand in single or double quotes, alternatives are separated by |, the arrow may be →, and a backslash at the end
of a line continues it on the next one. The start symbol is the first left side unless %start names it. Fractions,
exponents, `→` and comments after a rule are extensions of NLTK's notation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from vitrify.spec.formats.text import Problem, text_of
from vitrify.spec.grammars.checks import MAX_DIGITS, NAME, GrammarSource
from vitrify.spec.grammars.rules import Rule, Symbol

TOKEN = re.compile(
    r"(?P<blank>\s+)|(?P<comment>\#.*)|(?P<arrow>->|→)|(?P<bar>\|)|(?P<word>'[^']*'|\"[^\"]*\")"
    rf"|(?P<chance>\[[^\[\]]*\])|(?P<name>{NAME.pattern})"
)
NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?|\d+\s*/\s*\d+", re.ASCII)
SUFFIXES = (".cfg", ".pcfg")

Token = tuple[str, str]
"""The kind of a token (a group of TOKEN), and its text."""


@dataclass
class GrammarReading(GrammarSource):
    """Rules read so far, and the problems met."""

    start: str | None = None
    rules: list[Rule] = field(default_factory=list)

    def complain(self, message: str, line: int) -> None:
        self.problems.append(Problem(message, self.file, line))


def read_text(text: str, file: str | None = None) -> tuple[str, tuple[Rule, ...], GrammarSource]:
    """Return the start symbol and the rules of a text in NLTK's notation, and where each rule stands."""
    reading = GrammarReading(file)
    for number, line in _joined_lines(text):
        (_directive if line.startswith("%") else _rules)(line, number, reading)
    start = reading.start or (reading.rules[0].lhs if reading.rules else "S")
    return start, tuple(reading.rules), reading


def read_file(path: Path) -> tuple[str, tuple[Rule, ...], GrammarSource]:
    """Return the same for a `.cfg` or `.pcfg` file; the first must not have probabilities, the second must."""
    start, rules, source = read_text(text_of(path, *SUFFIXES), str(path))
    weighted = [rule.probability is not None for rule in rules]
    if path.suffix == ".cfg" and any(weighted):
        message = "a .cfg file has no probabilities; name the file .pcfg"
        source.problems.append(source.at(message, weighted.index(True)))
    if path.suffix == ".pcfg" and rules and not any(weighted):
        source.problems.append(source.at("every rule of a .pcfg file needs a probability, as in S -> 'a' [1.0]", 0))
    return start, rules, source


def _joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with content, with their numbers; a backslash at the end joins a line with the next."""
    begun, first = "", 0
    lines = text.replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        first = first or number
        if line.endswith("\\") and number < len(lines) and not line.startswith("#"):
            begun += line[:-1].rstrip() + " "
            continue
        joined = (begun + line).strip()
        if joined and not joined.startswith("#"):
            yield first, joined
        begun, first = "", 0


def _directive(line: str, number: int, reading: GrammarReading) -> None:
    words = line.partition("#")[0].split()
    if words[0] != "%start":
        reading.complain(f"the only directive is %start, got {words[0]}", number)
    elif len(words) != 2 or not NAME.fullmatch(words[1]):
        reading.complain(f"%start must name one nonterminal, as in %start S, got {line!r}", number)
    elif reading.start is not None:
        reading.complain(f"a second %start; the first is on line {reading.start_line}", number)
    else:
        reading.start, reading.start_line = words[1], number


def _rules(line: str, number: int, reading: GrammarReading) -> None:
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


def _rule(lhs: str, tokens: Sequence[Token], number: int, reading: GrammarReading) -> Rule | None:
    kinds = [kind for kind, _ in tokens]
    if "chance" in kinds[:-1]:
        reading.complain("a probability stands once, after its right side; separate alternatives by |", number)
        return None
    chance = None
    if kinds[-1:] == ["chance"]:
        chance = _number(tokens[-1][1][1:-1].strip())
        if chance is None:
            text = tokens[-1][1]
            shown = text if len(text) <= 40 else f"{text[:40]}… ({len(text)} characters)"
            message = f"a probability must be a number such as [0.25] or [1/4], got {shown}"
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
    if not NUMBER.fullmatch(text) or max(map(len, re.split(r"\D+", text))) > MAX_DIGITS:
        return None
    try:
        return Fraction(text.replace(" ", ""))
    except (ZeroDivisionError, ValueError):
        return None


def _tokens(line: str, number: int, reading: GrammarReading) -> list[Token] | None:
    tokens: list[Token] = []
    column = 0
    while column < len(line):
        match = TOKEN.match(line, column)
        if match is None:
            if tokens and tokens[0][0] == "name":
                reading.claimed.add(tokens[0][1])
            reading.complain(_strange(line, column), number)
            return None
        if match.lastgroup not in ("blank", "comment"):
            tokens.append((str(match.lastgroup), match.group()))
        column = match.end()
    return tokens


def _strange(line: str, index: int) -> str:
    character, column = line[index], index + 1
    if character in "'\"":
        return f"the quote {character} at column {column} is not closed; the rest of the line is {line[index:]!r}"
    if character in "[]":
        return f"the bracket {character} at column {column} has no partner; probabilities look like [0.5]"
    return f"{character!r} at column {column} is not part of a rule; words stand in quotes"
