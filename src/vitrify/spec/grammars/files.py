"""Readers of grammars: NLTK's notation (`.cfg` files, `.pcfg` files with probabilities) and JSON (`.cfg.json`).

    # a comment
    %start S
    S  -> NP VP [0.9] | VP [0.1]
    NP -> 'the' N [1/3] | "the" N PP [2/3]

Words stand in single or double quotes, alternatives are separated by |, the arrow may be →, and a backslash at the end
of a line continues it on the next one. The start symbol is the first left side unless %start names it. Fractions,
exponents, `→` and comments after a rule are extensions of NLTK's notation.

A `.cfg.json` file is an object `{"S": [["NP", "VP"], …], …}` of right sides by left side, or has it under the key
`rules`. Symbols may be numbers; those without right sides are words. The start symbol is the one that stands on no
right side. It may also be a grammar as facebookresearch/PhysicsLM4 publishes them (Z. Allen-Zhu and Y. Li, Physics of
language models: part 1, arXiv 2305.13673): `all` lists levels of symbols, each with its `id` and, as `children`, right
sides of places in the level below. Its words are the symbols of the last level, and its start is the first symbol.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from vitrify.errors import Problem, SpecError
from vitrify.spec.formats.text import text_of
from vitrify.spec.grammars.checks import MAX_DIGITS, NAME, GrammarSource
from vitrify.spec.grammars.rules import Rule, Symbol

TOKEN = re.compile(
    r"(?P<blank>\s+)|(?P<comment>\#.*)|(?P<arrow>->|→)|(?P<bar>\|)|(?P<word>'[^']*'|\"[^\"]*\")"
    rf"|(?P<chance>\[[^\[\]]*\])|(?P<name>{NAME.pattern})"
)
NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?|\d+\s*/\s*\d+", re.ASCII)
SUFFIXES = (".cfg", ".pcfg", ".cfg.json")

Token = tuple[str, str]
"""The kind of a token (a group of TOKEN), and its text."""


@dataclass
class GrammarReading(GrammarSource):
    """Rules read so far, and the problems met."""

    start: str | None = None
    rules: list[Rule] = field(default_factory=list)

    @contextmanager
    def at_line(self, number: int) -> Iterator[None]:
        """Record the problems that are raised inside, with the number of the line."""
        try:
            yield
        except SpecError as error:
            self.problems += [Problem(problem.message, self.file, number) for problem in error.problems]


def read_text(text: str, file: str | None = None) -> tuple[str, tuple[Rule, ...], GrammarSource]:
    """Return the start symbol and the rules of a text in NLTK's notation, and where each rule stands."""
    reading = GrammarReading(file)
    for number, line in _joined_lines(text):
        with reading.at_line(number):
            (_directive if line.startswith("%") else _rules)(line, number, reading)
    start = reading.start or (reading.rules[0].lhs if reading.rules else "S")
    return start, tuple(reading.rules), reading


def read_file(path: Path) -> tuple[str, tuple[Rule, ...], GrammarSource]:
    """Return the same for a file; a `.cfg` file must not have probabilities, a `.pcfg` file must."""
    text = text_of(path, *SUFFIXES)
    start, rules, source = read_text(text, str(path)) if path.suffix != ".json" else read_rules(text, str(path))
    weighted = [rule.probability is not None for rule in rules]
    if path.suffix == ".cfg" and any(weighted):
        message = "a .cfg file has no probabilities; name the file .pcfg"
        source.problems.append(source.at(message, weighted.index(True)))
    if path.suffix == ".pcfg" and rules and not any(weighted):
        source.problems.append(source.at("every rule of a .pcfg file needs a probability, as in S -> 'a' [1.0]", 0))
    return start, rules, source


def read_rules(text: str, file: str | None = None) -> tuple[str, tuple[Rule, ...], GrammarSource]:
    """Return the same for a JSON object of right sides by left side."""
    source = GrammarSource(file)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        source.problems.append(Problem(f"this is no JSON: {error}", file, getattr(error, "lineno", None)))
        return "S", (), source
    if isinstance(data, dict) and "all" in data:
        data = _by_levels(data["all"])
        if data is None:
            message = 'all must list levels of symbols, as [[{"id": 3, "children": [[0, 0]]}], [{"id": 1}]]'
            source.problems.append(Problem(message, file))
            return "S", (), source
    table = data.get("rules", data) if isinstance(data, dict) else None
    if not isinstance(table, dict) or not table:
        source.problems.append(Problem('rules must be an object, as {"S": [["NP", "VP"]], "NP": [["dogs"]]}', file))
        return "S", (), source
    rules: list[Rule] = []
    for lhs, sides in table.items():
        lists = isinstance(sides, list) and all(isinstance(side, list) and side for side in sides)
        if not lists or not sides or not all(type(symbol) in (str, int) for side in sides for symbol in side):
            source.problems.append(Problem(f"{lhs} must have a list of lists of symbols, none of them empty", file))
            source.claimed.add(lhs)
            continue
        names = [list(map(str, side)) for side in sides]
        rules += [Rule(lhs, tuple(Symbol(name, name not in table) for name in side)) for side in names]
    used = {symbol.name for rule in rules for symbol in rule.rhs}
    starts = [lhs for lhs in table if lhs not in used]
    if len(starts) != 1 and not source.problems:
        named = ", ".join(starts[:5]) or "none does"
        source.problems.append(Problem(f"one symbol, the start, must stand on no right side, but {named}", file))
    return (starts or ["S"])[0], tuple(rules), source


def _by_levels(levels: Any) -> dict[str, list[list[str]]] | None:
    """Return the right sides, by left side, of symbols in levels; None where they are not in that form."""
    table: dict[str, list[list[str]]] = {}
    try:
        used = {str(levels[0][0]["id"])}
        for level, below in pairwise(levels):
            names = [str(symbol["id"]) for symbol in below]
            for symbol in level:
                if str(symbol["id"]) in used:
                    table[str(symbol["id"])] = [[names[child] for child in side] for side in symbol["children"]]
                    used.update(*table[str(symbol["id"])])
    except (TypeError, KeyError, IndexError):
        return None
    return table


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
        raise SpecError([f"the only directive is %start, got {words[0]}"])
    if len(words) != 2 or not NAME.fullmatch(words[1]):
        raise SpecError([f"%start must name one nonterminal, as in %start S, got {line!r}"])
    if reading.start is not None:
        raise SpecError([f"a second %start; the first is on line {reading.start_line}"])
    reading.start, reading.start_line = words[1], number


def _rules(line: str, number: int, reading: GrammarReading) -> None:
    if left := NAME.match(line):
        reading.claimed.add(left[0])
    tokens = _tokens(line)
    kinds = [kind for kind, _ in tokens]
    if "arrow" not in kinds:
        raise SpecError([f"a rule needs an arrow, as in S -> NP VP, got {line!r}"])
    if kinds[:2] != ["name", "arrow"]:
        before = " ".join(text for _, text in tokens[: kinds.index("arrow")])
        raise SpecError([f"one nonterminal must stand before the arrow, as in S -> NP VP, got {before!r}"])
    if "arrow" in kinds[2:]:
        raise SpecError(["a second arrow; write one rule to a line, or a word in quotes: '->'"])
    alternative: list[Token] = []
    for kind, text in [*tokens[2:], ("bar", "|")]:
        if kind != "bar":
            alternative.append((kind, text))
            continue
        with reading.at_line(number):
            reading.rules.append(_rule(tokens[0][1], alternative))
            reading.lines.append(number)
        alternative = []


def _rule(lhs: str, tokens: Sequence[Token]) -> Rule:
    kinds = [kind for kind, _ in tokens]
    if "chance" in kinds[:-1]:
        raise SpecError(["a probability stands once, after its right side; separate alternatives by |"])
    chance = None
    if kinds[-1:] == ["chance"]:
        *tokens, (_, text) = tokens
        chance = _number(text[1:-1].strip())
        if chance is None:
            shown = text if len(text) <= 40 else f"{text[:40]}… ({len(text)} characters)"
            raise SpecError([f"a probability must be a number such as [0.25] or [1/4], got {shown}"])
    if not tokens:
        raise SpecError([f"a right side of {lhs} is empty; every rule must give at least one symbol"])
    symbols = (Symbol(text[1:-1], True) if kind == "word" else Symbol(text) for kind, text in tokens)
    return Rule(lhs, tuple(symbols), chance)


def _number(text: str) -> Fraction | None:
    if not NUMBER.fullmatch(text) or max(map(len, re.split(r"\D+", text))) > MAX_DIGITS:
        return None
    try:
        return Fraction(text.replace(" ", ""))
    except (ZeroDivisionError, ValueError):
        return None


def _tokens(line: str) -> list[Token]:
    tokens: list[Token] = []
    column = 0
    while column < len(line):
        match = TOKEN.match(line, column)
        if match is None:
            raise SpecError([_strange(line, column)])
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
