r"""Past-time temporal logic over finite words: `.ltl` files, what a formula means, and the program that says the same.

    # every b comes right after an a
    alphabet: a b
    length: 64
    b -> Y a

A formula has a truth value at every position. Letters are true where they stand; `MOD(r, m)` is true at positions whose
number, from 0, leaves r when divided by m; `true` and `false` are constants. `!` (not), `&` (and), `|` (or), `->` and
`<->` are the connectives, from tight to loose; `Y` (yesterday), `O` (once), `H` (historically) and `S` (since) look
back, and include the present except for yesterday. A line `name = formula` gives a formula a name. Letters that are not
words can be put in double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import Problem, SpecError
from vitrify.spec.files import lines_in, refuse_any
from vitrify.spec.headed import Headed, Header
from vitrify.spec.program import Expr, aggregate, apply, expression, indices, last, marked, select, tokens, upto
from vitrify.spec.program_file import Program

Node: TypeAlias = tuple[Any, ...]  # an operator and its operands: letters and numbers as text, formulas as nodes
Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]

TOKEN = re.compile(r'\s*("[^"]*"|<->|->|[()!&|,=]|[^\s()!&|,="<-]+|-|<)')
PREFIX = {"!": "not", "not": "not", "Y": "Y", "yesterday": "Y", "O": "O", "once": "O", "H": "H", "historically": "H"}
INFIX = {"<->": ("iff", 1), "->": ("implies", 2), "|": ("or", 3), "or": ("or", 3), "&": ("and", 4), "and": ("and", 4)}
INFIX |= {"S": ("S", 5), "since": ("S", 5)}
FUTURE = ("X", "F", "G", "next", "eventually", "always"), ("U", "R", "W", "until", "release", "weakuntil")
TEMPORAL = ("Y", "O", "H", "S")
HEADER = ("alphabet", "length")


@dataclass(frozen=True)
class Formula(Headed):
    """A formula of past-time linear temporal logic, for words over an alphabet, up to a length."""

    node: Node
    alphabet: tuple[str, ...]
    length: int
    name: str = field(default="formula", compare=False)
    suffix: ClassVar[str] = ".ltl"
    SIZES: ClassVar[tuple[str, ...]] = ("alphabet", "length", "depth", "looks")

    @classmethod
    def _parsed(cls, text: str, file: str | None, name: str) -> Formula:
        problems: list[Problem] = []
        header = Header(lines_in(text), HEADER, file, problems)
        alphabet, length = header.alphabet(quoted=True), header.number()
        names: dict[str, Node | None] = {}
        result: Node | None = None
        for number, line in header.others:
            target, equals, body = line.partition("=")
            named = bool(equals) and re.fullmatch(r"[A-Za-z_]\w*\s*", target) is not None
            if result is not None:
                problems.append(Problem("there is one formula, and it is the last line", file, number))
                continue
            found = _Parser(body if named else line, alphabet, names, problems, file, number).formula()
            if named:
                names[target.strip()] = found
            else:
                result = found or ("false",)
        if result is None:
            problems.append(Problem("there is no formula", file))
        refuse_any(problems)
        assert result is not None
        return cls(result, alphabet, length, name)

    def __str__(self) -> str:
        return _text(self.node)

    def to_text(self) -> str:
        """The formula as a `.ltl` text."""
        return f"alphabet: {' '.join(self.alphabet)}\nlength: {self.length}\n{self}\n"

    @property
    def depth(self) -> int:
        """How deep the operators that look back are nested."""
        return _depth(self.node)

    @property
    def looks(self) -> int:
        """How many different subformulas have an operator on top that looks back."""
        return len({part for part in _parts(self.node) if part[0] in TEMPORAL})

    def holds(self, words: Ids) -> Flags:
        """Where a formula is true [word, position], by its meaning: one step from each position to the next."""
        return _holds(self.node, words, self.alphabet)

    @cached_property
    def program(self) -> Program:
        """The program that says the same: each operator that looks back is one selection."""
        return Program(_expression(self.node), self.alphabet, self.length, causal=True, name=self.name)


class _Parser:
    """One formula on one line."""

    def __init__(
        self,
        text: str,
        alphabet: tuple[str, ...],
        names: dict[str, Node | None],
        problems: list[Problem],
        file: str | None,
        line: int,
    ) -> None:
        self.tokens, self.alphabet, self.names = list(_split(text)), alphabet, names
        self.problems, self.place = problems, (file, line)
        self.at = 0

    def formula(self) -> Node | None:
        """The formula, or nothing where it has problems."""
        before = len(self.problems)
        try:
            node = self._loose(0)
            if self.at < len(self.tokens):
                self._stop(f"{self.tokens[self.at]!r} is not expected here")
        except SpecError:
            return None
        return node if len(self.problems) == before else None

    def _tell(self, message: str) -> None:
        self.problems.append(Problem(message, *self.place))

    def _stop(self, message: str) -> None:
        """Tell a problem after which it is not clear how to go on."""
        self._tell(message)
        raise SpecError([message])

    def _next(self) -> str:
        if self.at == len(self.tokens):
            self._stop("the formula ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def _loose(self, least: int) -> Node:
        """A formula whose connectives bind at least so tightly; `->` groups to the right."""
        left = self._tight()
        while self.at < len(self.tokens):
            operator = self.tokens[self.at]
            name, strength = INFIX.get(operator, ("", -1))
            if operator in FUTURE[1]:
                self._looks_ahead(operator)
                name, strength = INFIX["S"]
            if strength < least:
                break
            self.at += 1
            left = (name, left, self._loose(strength if name == "implies" else strength + 1))
        return left

    def _looks_ahead(self, operator: str) -> None:
        self._tell(f"{operator} looks into the future: formulas here look back only (Y, O, H, S)")

    def _tight(self) -> Node:
        token = self._next()
        if token == "(":
            node = self._loose(0)
            if self._next() != ")":
                self._stop("a bracket is not closed")
            return node
        if token.startswith('"') or token in self.alphabet:
            letter = token.strip('"') if token.startswith('"') else token
            if letter not in self.alphabet:
                self._tell(f"{letter!r} is not in the alphabet")
            return ("letter", letter)
        if token in PREFIX:
            return (PREFIX[token], self._tight())
        if token in FUTURE[0]:
            self._looks_ahead(token)
            return self._tight()
        if token in ("true", "false"):
            return (token,)
        if token == "MOD":
            return self._mod()
        if token not in self.names:
            known = ", ".join([*self.alphabet, *self.names])
            self._tell(f"{token!r} is no letter and no name; there are {known}")
        return self.names.get(token) or ("false",)  # its own line has been complained about

    def _mod(self) -> Node:
        shape = [self._next() for _ in range(5)]
        good = shape[0] == "(" and shape[2] == "," and shape[4] == ")" and shape[1].isdecimal() and shape[3].isdecimal()
        if not good or int(shape[3]) == 0 or int(shape[1]) >= int(shape[3]):
            self._stop("MOD(r, m) takes whole numbers 0 ≤ r < m")
        return ("MOD", shape[1], shape[3])


def _split(text: str) -> Iterator[str]:
    at = 0
    while at < len(text.rstrip()):
        found = TOKEN.match(text, at)
        if found is None:
            yield text[at:].strip()
            return
        yield found[1]
        at = found.end()


def _holds(node: Node, words: Ids, alphabet: tuple[str, ...]) -> Flags:
    operator = node[0]
    if operator == "letter":
        return np.asarray(words == alphabet.index(str(node[1])))
    if operator in ("true", "false"):
        return np.full(words.shape, operator == "true")
    if operator == "MOD":
        places = np.arange(words.shape[1]) % int(str(node[2])) == int(str(node[1]))
        return np.broadcast_to(places, words.shape)
    inner = [_holds(part, words, alphabet) for part in node[1:]]
    if operator == "not":
        return ~inner[0]
    if operator == "and":
        return inner[0] & inner[1]
    if operator == "or":
        return inner[0] | inner[1]
    if operator == "implies":
        return ~inner[0] | inner[1]
    if operator == "iff":
        return np.asarray(inner[0] == inner[1])
    result = np.zeros(words.shape, dtype=bool)
    state = np.full(len(words), operator == "H")
    for t in range(words.shape[1]):
        if operator == "Y":
            result[:, t] = inner[0][:, t - 1] if t else False
            continue
        if operator == "O":
            state = state | inner[0][:, t]
        elif operator == "H":
            state = state & inner[0][:, t]
        else:
            state = inner[1][:, t] | (inner[0][:, t] & state)
        result[:, t] = state
    return result


def _expression(node: Node) -> Expr:
    """In the manner of B-RASP: since is the value at the last position where it is decided."""
    operator = node[0]
    if operator == "letter":
        return apply("==", tokens, node[1])
    if operator in ("true", "false"):
        return expression(operator == "true")
    if operator == "MOD":
        return apply("==", indices % int(str(node[2])), int(str(node[1])))
    inner = [_expression(part) for part in node[1:]]
    if operator in ("not", "and", "or"):
        return apply(operator, *inner)
    if operator == "implies":
        return ~inner[0] | inner[1]
    if operator == "iff":
        return apply("==", inner[0], inner[1])
    if operator == "Y":
        return aggregate(select(indices, indices - 1), inner[0], default=False)
    if operator == "O":
        return last(marked(inner[0]) & upto, True, default=False)
    if operator == "H":
        return ~last(marked(~inner[0]) & upto, True, default=False)
    return last(marked(~inner[0] | inner[1]) & upto, inner[1], default=False)


def _parts(node: Node) -> Iterator[Node]:
    yield node
    for part in node[1:]:
        if isinstance(part, tuple):
            yield from _parts(part)


def _depth(node: Node) -> int:
    inner = [_depth(part) for part in node[1:] if isinstance(part, tuple)]
    return max(inner, default=0) + (node[0] in TEMPORAL)


def _text(node: Node) -> str:
    operator = node[0]
    if operator == "letter":
        return f'"{node[1]}"'
    if operator in ("true", "false"):
        return str(operator)
    if operator == "MOD":
        return f"MOD({node[1]}, {node[2]})"
    inner = [_text(part) for part in node[1:]]
    if len(inner) == 1:
        return f"{'!' if operator == 'not' else operator + ' '}({inner[0]})"
    return f"({inner[0]}) { {'and': '&', 'or': '|', 'implies': '->', 'iff': '<->', 'S': 'S'}[operator] } ({inner[1]})"
