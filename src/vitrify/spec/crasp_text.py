"""`.crasp` texts: a tokenizer, a parser that tells all problems with their lines, and the way back to text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from vitrify.errors import Problem, SpecError
from vitrify.spec.files import refuse_any
from vitrify.spec.headed import Header

Step: TypeAlias = tuple[str | int, ...]  # an operator, then numbers of earlier steps; or a leaf with its data
Steps: TypeAlias = tuple[Step, ...]
Type: TypeAlias = Literal["truth value", "count", "unknown"]
Numbers: TypeAlias = tuple[int, ...]

LEAVES = ("letter", "true", "false", "MOD", "number", "unknown")
TOKEN = re.compile(r'\s*("[^"]*"|<->|->|:=|<=|>=|!=|[()!&|,?:=<>+*#-]|[^\s()!&|,?:=<>+*#"-]+)')
# Infix operators with their strength, from loose to tight, and what they take; all but -> group to the left.
INFIX: dict[str, tuple[str, int, Type]] = {
    "<->": ("iff", 1, "truth value"),
    "->": ("implies", 2, "truth value"),
    "|": ("or", 3, "truth value"),
    "&": ("and", 4, "truth value"),
    **{sign: (sign, 5, "count") for sign in ("=", "!=", "<", "<=", ">", ">=")},
    "+": ("+", 6, "count"),
    "-": ("-", 6, "count"),
    "*": ("*", 7, "count"),
}
COMPARING, TIGHTEST = 5, 8
HEADER = ("alphabet", "length")
RESERVED = ("true", "false", "min", "max", "MOD")
NESTED = 50  # brackets and operators inside each other on one line
LARGEST = 2**53  # counts stay below, so that arithmetic is exact


def references(step: Step) -> tuple[int, ...]:
    """The earlier steps that a step reads."""
    return () if step[0] in LEAVES else tuple(int(part) for part in step[1:])


class Known(NamedTuple):
    """What is known about the values of a step: its type, and how small and large it can be."""

    type: Type
    low: int = 0
    high: int = 1
    fixed: bool = False  # the same at every position of every word


def known_of(step: Step, inner: Sequence[Known], length: int) -> Known:
    """Type and range of a step, from those of what it reads."""
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
    if operator == "+":
        low, high = sum(lows), sum(highs)
    elif operator == "-":
        low, high = lows[0] - highs[1], highs[0] - lows[1]
    elif operator == "neg":
        low, high = -highs[0], -lows[0]
    elif operator == "*":
        ends = [a * b for a in (lows[0], highs[0]) for b in (lows[1], highs[1])]
        low, high = min(ends), max(ends)
    elif operator == "if":
        low, high = min(lows), max(highs)
    else:
        pick = min if operator == "min" else max
        low, high = pick(lows), pick(highs)
    return Known(numbers[0].type, low, high, all(part.fixed for part in inner))


def ordered(steps: Sequence[Step], root: int) -> tuple[Steps, Numbers]:
    """The steps that a result depends on, each once, operands first, in an order that depends on nothing else.

    With the numbers that they had before.
    """
    number: dict[int, int] = {}
    found: list[Step] = []
    stack = [(root, False)]
    while stack:
        at, done = stack.pop()
        if at in number:
            continue
        inner = references(steps[at])
        if done:
            number[at] = len(found)
            found.append((steps[at][0], *(number[i] for i in inner)) if inner else steps[at])
        else:
            stack.append((at, True))
            stack.extend((i, False) for i in reversed(inner))
    return tuple(found), tuple(number)


@dataclass
class Draft:
    """A text on its way: steps, equal ones made once, the names that have been given, and the problems."""

    file: str | None = None
    alphabet: tuple[str, ...] = ()
    length: int = 1
    steps: list[Step] = field(default_factory=list)
    known: list[Known] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)  # on which each step was first written
    line: int = 0
    names: dict[str, int | None] = field(default_factory=dict)  # None: its line has a problem
    defined: dict[str, int] = field(default_factory=dict)  # the line that defines a name, wherever it stands
    problems: list[Problem] = field(default_factory=list)
    _numbers: dict[Step, int] = field(default_factory=dict)

    def add(self, *step: str | int) -> int:
        """The number of a step, which is new or was there."""
        if step not in self._numbers:
            self._numbers[step] = len(self.steps)
            self.steps.append(step)
            self.lines.append(self.line)
            self.known.append(known_of(step, [self.known[i] for i in references(step)], self.length))
        return self._numbers[step]

    def tell(self, message: str, line: int | None = None) -> None:
        """Note a problem."""
        self.problems.append(Problem(message, self.file, line))


def parse(lines: Iterable[tuple[int, str]], file: str | None) -> tuple[Steps, Numbers, tuple[str, ...], int]:
    """Steps and their lines, alphabet and length of a text, given as numbered lines; or all its problems."""
    draft = Draft(file)
    header = Header(lines, HEADER, file, draft.problems)
    draft.alphabet, draft.length, body = header.alphabet(quoted=True), header.number(), header.others
    split = [(number, *_parted(line)) for number, line in body]
    for number, name, _ in split:
        if name is not None:
            _define(draft, name, number)
    result = None
    for number, name, text in split:
        found = _Parser(text, draft, number, name).whole()
        if name is not None:
            draft.names[name] = found
        elif number != body[-1][0]:
            draft.tell("only the last line is a result; name others with 'name := …'", number)
        elif found is not None:
            result = found
            if draft.known[found].type == "count":
                draft.tell("the result must be a truth value, is a count: compare it with something", number)
    if not split or split[-1][1] is not None:
        draft.tell("there is no result: the last line must be an expression without a name")
    refuse_any(draft.problems)
    assert result is not None
    steps, numbers = ordered(draft.steps, result)
    return steps, tuple(draft.lines[at] for at in numbers), draft.alphabet, draft.length


def _parted(line: str) -> tuple[str | None, str]:
    """The name that a line defines, if any, and its expression."""
    name, sign, text = line.partition(":=")
    return (name.strip(), text) if sign and '"' not in name else (None, line)


def _define(draft: Draft, name: str, number: int) -> None:
    if re.fullmatch(r"[A-Za-z_]\w*", name) is None:
        draft.tell(f"a name is made of letters, digits and _, not {name!r}", number)
    elif name in RESERVED:
        draft.tell(f"{name!r} has a meaning of its own: take another name", number)
    elif name in draft.alphabet:
        draft.tell(f"{name!r} is a letter of the alphabet: take another name", number)
    elif name in draft.defined:
        draft.tell(f"{name!r} is defined twice, first in line {draft.defined[name]}", number)
    draft.defined.setdefault(name, number)


class _Parser:
    """One expression on one line."""

    def __init__(self, text: str, draft: Draft, line: int, name: str | None) -> None:
        self.draft, self.line, self.name = draft, line, name
        draft.line = line
        self.tokens, self.at, self.nested = _split(text), 0, 0
        self.unclear = False  # whether it reads something that has problems of its own

    def whole(self) -> int | None:
        """The step of the whole line, or nothing where it has problems."""
        before = len(self.draft.problems)
        try:
            found = self._loose(0)
            if self.at < len(self.tokens):
                self._stop(f"{self.tokens[self.at]!r} is not expected here")
        except SpecError:
            return None
        return found if len(self.draft.problems) == before and not self.unclear else None

    def _stop(self, message: str) -> SpecError:
        self.draft.tell(message, self.line)
        raise SpecError([message])

    def _next(self, wanted: str | None = None) -> str:
        if self.at == len(self.tokens):
            self._stop("the expression ends too early" + (f": {wanted!r} is missing" if wanted else ""))
        self.at += 1
        if wanted is not None and self.tokens[self.at - 1] != wanted:
            self._stop(f"{wanted!r} is expected where {self.tokens[self.at - 1]!r} stands")
        return self.tokens[self.at - 1]

    def _sees(self, token: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at] == token

    def _loose(self, least: int) -> int:
        """An expression whose operators bind at least so tightly."""
        self.nested += 1
        if self.nested > NESTED:
            self._stop(f"more than {NESTED} expressions stand inside each other: give some of them names")
        left = self._tight(least)
        while self.at < len(self.tokens) and INFIX.get(self.tokens[self.at], ("", -1))[1] >= max(least, 1):
            sign = self.tokens[self.at]
            operator, strength, type_ = INFIX[sign]
            self.at += 1
            right = self._loose(strength if operator == "implies" else strength + 1)
            left = self._made(sign, type_, operator, left, right)
        if least == 0 and self._sees("?"):
            self.at += 1
            yes = self._loose(0)
            self._next(":")
            left = self._either(left, yes, self._loose(0))
        self.nested -= 1
        return left

    def _made(self, sign: str, type_: Type, operator: str, *inner: int) -> int:
        """A step that takes operands of one type."""
        known = [self.draft.known[i] for i in inner]
        wrong = next((part.type for part in known if part.type not in (type_, "unknown")), None)
        if wrong is not None:
            hint = "; truth values are compared by <->" if sign == "=" else ""
            self._stop(f"{sign} takes {type_}s, not a {wrong}{hint}")
        if operator == "*" and not any(part.fixed for part in known):
            self._stop("* multiplies by a whole number: one side must have no # in it")
        made = self.draft.add(operator, *inner)
        if max(-self.draft.known[made].low, self.draft.known[made].high) >= LARGEST:
            self._stop("this count can reach 2^53, where arithmetic is no longer exact: use smaller numbers")
        return made

    def _either(self, condition: int, yes: int, no: int) -> int:
        known = self.draft.known
        if known[condition].type == "count":
            self._stop("a truth value must stand before ?, not a count")
        if {known[yes].type, known[no].type} == {"truth value", "count"}:
            self._stop(f"both sides of : must be of one type, they are a {known[yes].type} and a {known[no].type}")
        return self.draft.add("if", condition, yes, no)

    def _tight(self, least: int) -> int:
        token = self._next()
        if token == "(":
            found = self._loose(0)
            self._next(")")
            return found
        if token == "!":
            return self._made("!", "truth value", "not", self._loose(max(least, COMPARING)))
        if token == "#":
            return self._made("#", "truth value", "#", self._loose(TIGHTEST))
        if token == "-":
            return self._made("-", "count", "neg", self._loose(max(least, INFIX["*"][1])))
        if token in ("true", "false"):
            return self.draft.add(token)
        if token in ("min", "max"):
            return self._extreme(token)
        if token == "MOD":
            return self._mod()
        return self._named(token)

    def _named(self, token: str) -> int:
        draft, letter = self.draft, token.strip('"')
        if token.count('"') == 1:
            self._stop("a quotation mark is not closed")
        if token.startswith('"') or token in draft.alphabet:
            if letter not in draft.alphabet:
                return self._unknown(f"{letter!r} is not in the alphabet")
            return draft.add("letter", letter)
        if token.isdecimal() and token.isascii():
            if len(token) > 15:
                self._stop(f"the number {token} is too large: at most 15 digits")
            return draft.add("number", int(token))
        if token == self.name:
            return self._unknown(f"{token!r} is defined by itself")
        if token in draft.names:
            found = draft.names[token]
            if found is None:  # its own line has been complained about
                self.unclear = True
            return draft.add("unknown") if found is None else found
        if token in draft.defined:
            return self._unknown(f"{token!r} is used before line {draft.defined[token]}, which defines it")
        if not re.fullmatch(r"\w+", token):
            self._stop(f"{token!r} is not expected here")
        known = ", ".join([*draft.alphabet, *draft.names])
        return self._unknown(f"{token!r} is no letter and no name; there are {known}")

    def _unknown(self, message: str) -> int:
        """Tell a problem, and go on with something that may be anything."""
        self.draft.tell(message, self.line)
        return self.draft.add("unknown")

    def _extreme(self, operator: str) -> int:
        self._next("(")
        inner = [self._loose(0)]
        while self._sees(","):
            self.at += 1
            inner.append(self._loose(0))
        self._next(")")
        if len(inner) < 2:
            self._stop(f"{operator} takes two counts or more")
        return self._made(operator, "count", operator, *inner)

    def _mod(self) -> int:
        shape = [self._next() for _ in range(5)]
        numbers = [int(part) if part.isdecimal() and part.isascii() and len(part) < 9 else -1 for part in shape[1::2]]
        if shape[::2] != ["(", ",", ")"] or not 0 <= numbers[0] < numbers[1]:
            self._stop("MOD(r, m) takes whole numbers 0 ≤ r < m")
        return self.draft.add("MOD", *numbers)


def _split(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text.rstrip()):
        match = TOKEN.match(text, at)
        found.append(match[1] if match else text[at:].strip())
        at = match.end() if match else len(text)
    return found


SIGNS = {operator: sign for sign, (operator, _, _) in INFIX.items()}
HIGH = 20  # how many operators an expression without names may have inside each other


def text_of(steps: Steps, alphabet: tuple[str, ...]) -> str:
    """The lines of a program: what is used twice, or would be nested too deep, has a name."""
    uses = [0] * len(steps)
    for step in steps:
        for i in references(step):
            uses[i] += 1
    texts: list[str] = []
    heights: list[int] = []
    lines: list[str] = []
    for at, step in enumerate(steps):
        inner = references(step)
        text = _text(step, [texts[i] for i in inner])
        height = 1 + max((heights[i] for i in inner), default=0)
        if inner and at < len(steps) - 1 and (uses[at] > 1 or height >= HIGH):
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
    if operator == "letter":
        return f'"{step[1]}"'
    if operator in ("true", "false"):
        return operator
    if operator == "number":
        return str(step[1])
    if operator == "MOD":
        return f"MOD({step[1]}, {step[2]})"
    if operator in ("min", "max"):
        return f"{operator}({', '.join(inner)})"
    inner = [text if re.fullmatch(r'\w+|"[^"]*"', text) else f"({text})" for text in inner]
    if operator == "if":
        return f"{inner[0]} ? {inner[1]} : {inner[2]}"
    if len(inner) == 1:
        return {"#": "#", "not": "!", "neg": "-"}[operator] + inner[0]
    return f"{inner[0]} {SIGNS[operator]} {inner[1]}"
