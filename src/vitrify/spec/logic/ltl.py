r"""Past-time temporal logic over finite words: `.ltl` files, the meaning of formulas, and the equivalent RASP program.

    # every b comes right after an a
    alphabet: a b
    length: 64
    b -> Y a

A formula has a truth value at every position. Letters are true where they occur; `MOD(r, m)` is true where the position
mod m is r, counted from 0; `AT(p, q, …)` where it is one of these; `true` and `false` are constants. `!` (not), `&`
(and), `|` (or), `->` and `<->` are the connectives, from tight to loose; `Y` (yesterday), `O` (once), `H`
(historically) and `S` (since) refer to the past, and all but `Y` include the present. A line `name = formula` gives a
formula a name. Letters that are not words can be put in double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from operator import gt
from typing import Any, ClassVar, TypeAlias

import numpy as np

from vitrify.arrays import Bools, Ints
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.formats.headed import Headed, Header
from vitrify.spec.formats.infix import Infix, LineParser
from vitrify.spec.formats.text import Problem, lines_in, refuse_any
from vitrify.spec.kinds import Kind, Meaning, PrefixStates
from vitrify.spec.logic.truth import (
    CONNECTIVES,
    POSITIONAL,
    leaf_holds,
    leaf_text,
    logic_expression,
    next_position,
    truths,
)
from vitrify.spec.programs import expression as rasp
from vitrify.spec.programs.program import Program

Node: TypeAlias = tuple[Any, ...]  # an operator and its operands: letters and numbers as text, formulas as nodes
State: TypeAlias = tuple[int, tuple[bool, ...], bool | None]  # of the words before a position
Names: TypeAlias = dict[str, Node | None]  # None: its line has a problem

TOKEN = re.compile(r'\s*("[^"]*"|<->|->|[()!&|,=]|[^\s()!&|,="<-]+|-|<)')
PREFIX = {"!": "not", "not": "not", "Y": "Y", "yesterday": "Y", "O": "O", "once": "O", "H": "H", "historically": "H"}
FUTURE = ("X", "F", "G", "next", "eventually", "always"), ("U", "R", "W", "until", "release", "weakuntil")
INFIX = {"<->": Infix("iff", 1), "->": Infix("implies", 2, right=True)}
INFIX |= dict.fromkeys(("|", "or"), Infix("or", 3)) | dict.fromkeys(("&", "and"), Infix("and", 4))
INFIX |= dict.fromkeys(("S", "since", *FUTURE[1]), Infix("S", 5))
TEMPORAL = ("Y", "O", "H", "S")
HEADER = ("alphabet", "length")
MAX_OPERATORS, MAX_NESTING = 20_000, 200  # of a formula: names that stand in each other could make it endless
START: State = (0, (), None)


@dataclass(frozen=True)
class Formula(Headed):
    """A formula of past-time linear temporal logic, for words over an alphabet, up to a length."""

    node: Node
    alphabet: tuple[str, ...]
    length: int
    name: str = field(default="formula", compare=False)
    suffix: ClassVar[str] = ".ltl"
    SIZES: ClassVar[tuple[str, ...]] = ("alphabet", "length", "depth", "operators")

    @classmethod
    def _parsed(cls, text: str, file: str | None, name: str) -> Formula:
        problems: list[Problem] = []
        header = Header(lines_in(text), HEADER, file, problems)
        alphabet, length = header.alphabet(quoted=True), header.number()
        names: Names = {}
        sizes: dict[int, tuple[int, int]] = {}
        result: Node | None = None
        for number, line in header.others:
            target, equals, body = line.partition("=")
            named = bool(equals) and re.fullmatch(r"[A-Za-z_]\w*\s*", target) is not None
            if result is not None:
                problems.append(Problem("there is one formula, and it is the last line", file, number))
                continue
            node = _FormulaParser(body if named else line, number, header, alphabet, names).parse()
            if node is not None and any(map(gt, _sizes(node, sizes), (MAX_OPERATORS, MAX_NESTING))):
                message = f"a formula may have {MAX_OPERATORS:,} operators, nested {MAX_NESTING} deep, also by names"
                problems.append(Problem(message, file, number))
                node = None
            if named:
                names[target.strip()] = node
            else:
                result = node or ("false",)
        if result is None:
            problems.append(Problem("there is no formula", file))
        refuse_any(problems)
        assert result is not None
        return cls(result, alphabet, length, name)

    def __str__(self) -> str:
        return _text(self.node)

    def to_text(self) -> str:
        return f"alphabet: {' '.join(self.alphabet)}\nlength: {self.length}\n{self}\n"

    @classmethod
    def samples(cls) -> dict[str, Formula]:
        return {"since": cls.from_text("alphabet: a b\nlength: 12\nb -> Y (a S b)")}

    def meanings(self) -> dict[str, Meaning]:
        """Return the task: at which positions the formula is true."""
        return truths(self.alphabet, self.holds, PrefixStates(START, self._step))

    def _step(self, state: State, letter: str) -> State:
        """Return the state after one more letter: the next position, what operators remember, the result.

        `O`, `H` and `S` remember their own truth value, `Y` that of its operand.
        """
        position, remembered, _ = state
        before, now = dict(zip(self._temporal, remembered, strict=False)), dict[Node, Bools]()
        result = _holds(self.node, np.array([[self.alphabet.index(letter)]]), self.alphabet, now, position, before)
        bits = tuple(bool(now[part[1] if part[0] == "Y" else part][0, 0]) for part in self._temporal)
        return next_position(position, self._leaves), bits, bool(result[0, 0])

    @cached_property
    def _temporal(self) -> tuple[Node, ...]:
        """The different subformulas with a temporal operator on top."""
        return tuple(dict.fromkeys(part for part in _parts(self.node) if part[0] in TEMPORAL))

    @cached_property
    def _leaves(self) -> tuple[Node, ...]:
        """The different `MOD` and `AT`."""
        return tuple(dict.fromkeys(part for part in _parts(self.node) if part[0] in POSITIONAL))

    @property
    def positional(self) -> bool:
        """Return whether the formula speaks about positions."""
        return bool(self._leaves)

    @property
    def depth(self) -> int:
        """Nesting depth of temporal operators."""
        return _depth(self.node)

    @property
    def operators(self) -> int:
        """Number of different subformulas with a temporal operator on top."""
        return len(self._temporal)

    def holds(self, words: Ints) -> Bools:
        """Return where the formula is true [word, position], by definition."""
        return _holds(self.node, words, self.alphabet, {}, 0, {})

    def automaton(self, *, empty: bool = False) -> Automaton:
        """Return the minimal automaton of the words at whose end the formula is true.

        `empty` says whether it accepts the empty word, at which no formula has a value.
        """
        return Automaton.explore(
            START, self.alphabet, self._step, lambda state: empty if state[2] is None else state[2]
        ).minimized()

    @cached_property
    def program(self) -> Program:
        """Equivalent program: each temporal operator is one selection."""
        return Program(_expression(self.node), self.alphabet, self.length, causal=True, name=self.name)


class _FormulaParser(LineParser[Node]):
    """Parser of one formula on one line."""

    TOKEN, INFIX = TOKEN, INFIX

    def __init__(self, text: str, line: int, header: Header, alphabet: tuple[str, ...], names: Names) -> None:
        super().__init__(text, header.problems, header.file, line)
        self.alphabet, self.names = alphabet, names

    def check_operator(self, sign: str) -> None:
        if sign in FUTURE[1]:
            self._looks_ahead(sign)

    def combine(self, sign: str, left: Node, right: Node) -> Node:
        return (INFIX[sign].name, left, right)

    def _looks_ahead(self, operator: str) -> None:
        self.report(f"{operator} refers to the future: only past operators are supported (Y, O, H, S)")

    def operand(self, min_precedence: int) -> Node:
        token = self.next()
        if token == "(":
            return self.bracket()
        if token.startswith('"') or token in self.alphabet:
            letter = token.strip('"') if token.startswith('"') else token
            if letter not in self.alphabet:
                self.report(f"{letter!r} is not in the alphabet")
            return ("letter", letter)
        if token in PREFIX:
            return (PREFIX[token], self.operand(min_precedence))
        if token in FUTURE[0]:
            self._looks_ahead(token)
            return self.operand(min_precedence)
        if token in ("true", "false"):
            return (token,)
        if token == "MOD":
            return ("MOD", *map(str, self.modulus()))
        if token == "AT":
            return ("AT", *map(str, self.positions()))
        if token not in self.names:
            known = ", ".join([*self.alphabet, *self.names])
            self.report(f"{token!r} is no letter and no name; there are {known}")
        return self.names.get(token) or ("false",)  # its own line has a problem that is already reported


def _holds(
    node: Node, words: Ints, alphabet: tuple[str, ...], now: dict[Node, Bools], start: int, before: dict[Node, bool]
) -> Bools:
    """Return where a formula is true [word, position]; `now` collects this for all its parts.

    The first position is `start`, and `before` is what temporal operators remember of those before it (no key: none).
    """
    if node in now:
        return now[node]
    operator, *data = node
    value = leaf_holds(operator, data, words, alphabet, start)
    if value is None:
        inner = [_holds(part, words, alphabet, now, start, before) for part in data]
        past = before.get(node, operator == "H")
        if operator in CONNECTIVES:
            value = np.asarray(CONNECTIVES[operator](*inner))
        elif operator == "Y":
            value = np.pad(inner[0], ((0, 0), (1, 0)), constant_values=past)[:, :-1]
        elif operator == "O":
            value = np.logical_or.accumulate(inner[0], axis=1) | past
        elif operator == "H":
            value = np.logical_and.accumulate(inner[0], axis=1) & past
        else:
            value, state = np.zeros(words.shape, dtype=bool), np.full(len(words), past)
            for t in range(words.shape[1]):
                value[:, t] = state = inner[1][:, t] | (inner[0][:, t] & state)
    now[node] = value
    return value


def _expression(node: Node) -> rasp.Expr:
    """Translate as in B-RASP: `since` is the value at the last position where it is decided."""
    operator, *data = node
    inner = [_expression(part) for part in data if isinstance(part, tuple)]
    plain = logic_expression(operator, data, inner)
    if plain is not None:
        return plain
    if operator == "Y":
        return rasp.aggregate(rasp.select(rasp.indices, rasp.indices - 1), inner[0], default=False)
    if operator == "O":
        return rasp.last(rasp.marked(inner[0]) & rasp.upto, True, default=False)
    if operator == "H":
        return ~rasp.last(rasp.marked(~inner[0]) & rasp.upto, True, default=False)
    return rasp.last(rasp.marked(~inner[0] | inner[1]) & rasp.upto, inner[1], default=False)


def _parts(node: Node) -> Iterator[Node]:
    yield node
    for part in node[1:]:
        if isinstance(part, tuple):
            yield from _parts(part)


def _depth(node: Node) -> int:
    inner = [_depth(part) for part in node[1:] if isinstance(part, tuple)]
    return max(inner, default=0) + (node[0] in TEMPORAL)


def _sizes(node: Node, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return the number of operators of a formula, and how deep they are nested.

    `known` holds what was counted already, by the identity of parts: what has a name is looked at once.
    """
    waiting = [node]
    while waiting:
        parts = [part for part in waiting[-1][1:] if isinstance(part, tuple)]
        missing = [part for part in parts if id(part) not in known]
        if missing:
            waiting += missing
        else:
            inner = [known[id(part)] for part in parts]
            known[id(waiting.pop())] = 1 + sum(size for size, _ in inner), 1 + max((d for _, d in inner), default=0)
    return known[id(node)]


def _text(node: Node) -> str:
    operator, *data = node
    leaf = leaf_text(operator, data)
    if leaf is not None:
        return leaf
    inner = [f"({_text(part)})" for part in data]
    if len(inner) == 1:
        return f"{'!' if operator == 'not' else operator + ' '}{inner[0]}"
    sign = {"and": "&", "or": "|", "implies": "->", "iff": "<->", "S": "S"}[operator]
    return f"{inner[0]} {sign} {inner[1]}"


KIND = Kind(Formula, {".ltl": "formula of past-time temporal logic"})
