"""Text of `.crasp` files: a tokenizer, a parser that reports all problems with their lines, and a printer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from vitrify.spec.formats.headed import Header
from vitrify.spec.formats.infix import Infix, LineParser
from vitrify.spec.formats.text import Problem, refuse_any
from vitrify.spec.graphs import children_first
from vitrify.spec.logic.truth import leaf_text

Step: TypeAlias = tuple[str | int, ...]  # an operator, then indices of earlier steps; or a leaf with its data
Steps: TypeAlias = tuple[Step, ...]
Type: TypeAlias = Literal["truth value", "count", "unknown"]
Numbers: TypeAlias = tuple[int, ...]

LEAVES = ("letter", "true", "false", "MOD", "AT", "number", "unknown")
TOKEN = re.compile(r'\s*("[^"]*"|<->|->|:=|<=|>=|!=|[()!&|,?:=<>+*#-]|[^\s()!&|,?:=<>+*#"-]+)')
# Infix operators with their precedence: connectives take truth values, all from COMPARING on take counts.
INFIX = {"<->": Infix("iff", 1), "->": Infix("implies", 2, right=True), "|": Infix("or", 3), "&": Infix("and", 4)}
INFIX |= {sign: Infix(sign, 5) for sign in ("=", "!=", "<", "<=", ">", ">=")}
INFIX |= {"+": Infix("+", 6), "-": Infix("-", 6), "*": Infix("*", 7)}
COMPARING, TIGHTEST = 5, 8
HEADER = ("alphabet", "length")
RESERVED = ("true", "false", "min", "max", "MOD", "AT")
MAX_NESTING = 50  # of brackets and operators on one line
MAX_COUNT = 2**53  # below it float64 arithmetic is exact


def references(step: Step) -> tuple[int, ...]:
    """Return the earlier steps that a step reads."""
    return () if step[0] in LEAVES else tuple(int(part) for part in step[1:])


class Known(NamedTuple):
    """Type of a step, and the range of its values."""

    type: Type
    low: int = 0
    high: int = 1
    fixed: bool = False  # the same at every position of every word


def known_of(step: Step, inner: Sequence[Known], length: int) -> Known:
    """Return type and range of a step, from those of its operands."""
    operator = step[0]
    if operator == "unknown":
        return Known("unknown", fixed=True)
    if operator == "number":
        return Known("count", int(step[1]), int(step[1]), fixed=True)
    if operator == "#":
        return Known("count", 0, length)
    if operator not in ("+", "-", "neg", "*", "min", "max", "if"):
        return Known("truth value")
    numbers = inner[1:] if operator == "if" else inner
    lows, highs = [part.low for part in numbers], [part.high for part in numbers]
    if operator in ("-", "neg"):
        lows[-1], highs[-1] = -highs[-1], -lows[-1]
    if operator == "*":
        ends = [a * b for a in (lows[0], highs[0]) for b in (lows[1], highs[1])]
        low, high = min(ends), max(ends)
    elif operator == "if":
        low, high = min(lows), max(highs)
    else:
        combine = {"min": min, "max": max}.get(str(operator), sum)
        low, high = combine(lows), combine(highs)
    return Known(numbers[0].type, low, high, all(part.fixed for part in inner))


def ordered(steps: Sequence[Step], root: int) -> tuple[Steps, Numbers]:
    """Return the steps that a result depends on, each once, operands first, with their previous indices.

    The order depends on nothing else.
    """
    edges = {at: references(step) for at, step in enumerate(steps)}
    order, _ = children_first(edges, [root])
    number = {old: new for new, old in enumerate(order)}
    return tuple((steps[at][0], *(number[i] for i in edges[at])) if edges[at] else steps[at] for at in order), order


@dataclass
class Draft:
    """A program while it is parsed: steps, equal ones shared, the names defined so far, and the problems."""

    file: str | None = None
    alphabet: tuple[str, ...] = ()
    length: int = 1
    steps: list[Step] = field(default_factory=list)
    known: list[Known] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)  # of the first occurrence of each step
    line: int = 0
    names: dict[str, int | None] = field(default_factory=dict)  # None: its line has a problem
    defined: dict[str, int] = field(default_factory=dict)  # line of the definition of a name, also of later ones
    problems: list[Problem] = field(default_factory=list)
    _numbers: dict[Step, int] = field(default_factory=dict)

    def add(self, *step: str | int) -> int:
        """Return the index of a step, new or known."""
        if step not in self._numbers:
            self._numbers[step] = len(self.steps)
            self.steps.append(step)
            self.lines.append(self.line)
            self.known.append(known_of(step, [self.known[i] for i in references(step)], self.length))
        return self._numbers[step]

    def report(self, message: str, line: int | None = None) -> None:
        """Record a problem."""
        self.problems.append(Problem(message, self.file, line))


def parse(lines: Iterable[tuple[int, str]], file: str | None) -> tuple[Steps, Numbers, tuple[str, ...], int]:
    """Return steps, their lines, alphabet and length of numbered lines; all problems are raised together."""
    draft = Draft(file)
    header = Header(lines, HEADER, file, draft.problems)
    draft.alphabet, draft.length, body = header.alphabet(quoted=True), header.number(), header.others
    split = [(number, *_parted(line)) for number, line in body]
    for number, name, _ in split:
        if name is not None:
            _define(draft, name, number)
    result = None
    for number, name, text in split:
        step = _CountingParser(text, draft, number, name).parse()
        if name is not None:
            draft.names[name] = step
        elif number != body[-1][0]:
            draft.report("only the last line is a result; name others with 'name := …'", number)
        elif step is not None:
            result = step
            if draft.known[step].type == "count":
                draft.report("the result must be a truth value, is a count: compare it with something", number)
    if not split or split[-1][1] is not None:
        draft.report("there is no result: the last line must be an expression without a name")
    refuse_any(draft.problems)
    assert result is not None
    steps, numbers = ordered(draft.steps, result)
    return steps, tuple(draft.lines[at] for at in numbers), draft.alphabet, draft.length


def _parted(line: str) -> tuple[str | None, str]:
    """Return the name that a line defines, or None, and its expression."""
    name, sign, text = line.partition(":=")
    return (name.strip(), text) if sign and '"' not in name else (None, line)


def _define(draft: Draft, name: str, number: int) -> None:
    if re.fullmatch(r"[A-Za-z_]\w*", name) is None:
        draft.report(f"a name is made of letters, digits and _, not {name!r}", number)
    elif name in RESERVED:
        draft.report(f"{name!r} has a meaning of its own: take another name", number)
    elif name in draft.alphabet:
        draft.report(f"{name!r} is a letter of the alphabet: take another name", number)
    elif name in draft.defined:
        draft.report(f"{name!r} is defined twice, first in line {draft.defined[name]}", number)
    draft.defined.setdefault(name, number)


class _CountingParser(LineParser[int]):
    """Parser of one expression on one line."""

    TOKEN, INFIX = TOKEN, INFIX

    def __init__(self, text: str, draft: Draft, line: int, name: str | None) -> None:
        super().__init__(text, draft.problems, draft.file, line)
        self.draft, self.name, self.nested = draft, name, 0
        draft.line = line
        self.unclear = False  # True if it reads something with problems

    def parse(self) -> int | None:
        """Return the step of the line, or None if it or something it reads has problems."""
        step = super().parse()
        return None if self.unclear else step

    def expression(self, min_precedence: int) -> int:
        self.nested += 1
        if self.nested > MAX_NESTING:
            self.fail(f"more than {MAX_NESTING} expressions are nested: give some of them names")
        left = super().expression(min_precedence)
        if min_precedence == 0 and self.peek() == "?":
            self.next()
            yes = self.expression(0)
            self.next(":")
            left = self._either(left, yes, self.expression(0))
        self.nested -= 1
        return left

    def combine(self, sign: str, left: int, right: int) -> int:
        precedence = INFIX[sign].precedence
        return self._made(sign, "count" if precedence >= COMPARING else "truth value", INFIX[sign].name, left, right)

    def _made(self, sign: str, type_: Type, operator: str, *inner: int) -> int:
        """Return a step whose operands have one type."""
        known = [self.draft.known[i] for i in inner]
        wrong = next((part.type for part in known if part.type not in (type_, "unknown")), None)
        if wrong is not None:
            hint = "; truth values are compared by <->" if sign == "=" else ""
            self.fail(f"{sign} takes {type_}s, not a {wrong}{hint}")
        if operator == "*" and not any(part.fixed for part in known):
            self.fail("* multiplies by a whole number: one side must have no # in it")
        step = self.draft.add(operator, *inner)
        if max(-self.draft.known[step].low, self.draft.known[step].high) >= MAX_COUNT:
            self.fail("this count can reach 2^53, where arithmetic is no longer exact: use smaller numbers")
        return step

    def _either(self, condition: int, yes: int, no: int) -> int:
        known = self.draft.known
        if known[condition].type == "count":
            self.fail("a truth value must stand before ?, not a count")
        if {known[yes].type, known[no].type} == {"truth value", "count"}:
            self.fail(f"both sides of : must be of one type, they are a {known[yes].type} and a {known[no].type}")
        return self.draft.add("if", condition, yes, no)

    def operand(self, min_precedence: int) -> int:
        token = self.next()
        if token == "(":
            return self.bracket()
        if token == "!":
            return self._made("!", "truth value", "not", self.expression(max(min_precedence, COMPARING)))
        if token == "#":
            return self._made("#", "truth value", "#", self.expression(TIGHTEST))
        if token == "-":
            return self._made("-", "count", "neg", self.expression(max(min_precedence, INFIX["*"].precedence)))
        if token in ("true", "false"):
            return self.draft.add(token)
        if token in ("min", "max"):
            return self._extreme(token)
        if token == "MOD":
            return self.draft.add("MOD", *self.modulus())
        if token == "AT" and token not in self.draft.alphabet:
            return self.draft.add("AT", *self.positions())
        return self._named(token)

    def _named(self, token: str) -> int:
        draft, letter = self.draft, token.strip('"')
        if token.count('"') == 1:
            self.fail("a quotation mark is not closed")
        if token.startswith('"') or token in draft.alphabet:
            if letter not in draft.alphabet:
                return self._unknown(f"{letter!r} is not in the alphabet")
            return draft.add("letter", letter)
        if token.isdecimal() and token.isascii():
            if len(token) > 15:
                self.fail(f"the number {token} is too large: at most 15 digits")
            return draft.add("number", int(token))
        if token == self.name:
            return self._unknown(f"{token!r} is defined by itself")
        if token in draft.names:
            step = draft.names[token]
            if step is None:  # its own line has a problem that is already reported
                self.unclear = True
            return draft.add("unknown") if step is None else step
        if token in draft.defined:
            return self._unknown(f"{token!r} is used before line {draft.defined[token]}, which defines it")
        if not re.fullmatch(r"\w+", token):
            self.fail(f"{token!r} is not expected here")
        known = ", ".join([*draft.alphabet, *draft.names])
        return self._unknown(f"{token!r} is no letter and no name; there are {known}")

    def _unknown(self, message: str) -> int:
        """Report a problem, and continue with a placeholder of any type."""
        self.report(message)
        return self.draft.add("unknown")

    def _extreme(self, operator: str) -> int:
        self.next("(")
        inner = [self.expression(0)]
        while self.peek() == ",":
            self.next()
            inner.append(self.expression(0))
        self.next(")")
        if len(inner) < 2:
            self.fail(f"{operator} takes two counts or more")
        return self._made(operator, "count", operator, *inner)


SIGNS = {operator.name: sign for sign, operator in INFIX.items()}
MAX_HEIGHT = 20  # nested operators of an expression without names


def text_of(steps: Steps, alphabet: tuple[str, ...]) -> str:
    """Return the lines of a program: expressions used twice, or nested too deep, get a name."""
    uses = Counter(i for step in steps for i in references(step))
    texts: list[str] = []
    heights: list[int] = []
    lines: list[str] = []
    for at, step in enumerate(steps):
        inner = references(step)
        text = _text(step, [texts[i] for i in inner])
        height = 1 + max((heights[i] for i in inner), default=0)
        if inner and at < len(steps) - 1 and (uses[at] > 1 or height >= MAX_HEIGHT):
            name = f"v{len(lines) + 1}"
            while name in alphabet:
                name += "_"
            lines.append(f"{name} := {text}")
            text, height = name, 0
        texts.append(text)
        heights.append(height)
    return "".join(f"{line}\n" for line in [*lines, texts[-1]])


def _text(step: Step, inner: list[str]) -> str:
    operator = str(step[0])
    leaf = str(step[1]) if operator == "number" else leaf_text(operator, step[1:])
    if leaf is not None:
        return leaf
    if operator in ("min", "max"):
        return f"{operator}({', '.join(inner)})"
    inner = [text if re.fullmatch(r'\w+|"[^"]*"', text) else f"({text})" for text in inner]
    if operator == "if":
        return f"{inner[0]} ? {inner[1]} : {inner[2]}"
    if len(inner) == 1:
        return {"#": "#", "not": "!", "neg": "-"}[operator] + inner[0]
    return f"{inner[0]} {SIGNS[operator]} {inner[1]}"
