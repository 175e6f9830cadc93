"""Which values each expression of a program can have, over all words to a length; functions become tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from vitrify.errors import Problem
from vitrify.spec.program import Expr, Pairs, Selector, Table, Value, exact, function_of, parts

MOST_VALUES = 1 << 16  # of one expression
MOST_ROWS = 1 << 18  # of a function of several expressions
MOST_SPAN = 1 << 20  # from the smallest to the largest of sums that are found without trying all pairs

Domain = tuple[Value, ...]


class Values:
    """The result of the inference: the program with its functions written out, and the values of each part.

    A set of values is exact for what depends on nothing but the token or the place, and otherwise an
    over-approximation: arguments of a function are taken to vary independently. `None` is the value of an aggregate
    without a default that selects nothing.
    """

    def __init__(
        self, root: Expr, alphabet: tuple[str, ...], length: int, causal: bool, lines: Mapping[Expr, int] | None = None
    ) -> None:
        self.alphabet, self.length, self.causal = alphabet, length, causal
        self.problems: list[Problem] = []
        self.lines = dict(lines or {})  # on which expressions stand, where they come from a text
        self.unclear: set[int] = set()  # what has a problem, or reads something that has one
        self._line: int | None = None
        self._domains: dict[int, Domain] = {}
        self._kept: list[Expr] = []  # what was inferred stays alive, so that it can be told by its identity
        self.root = self.include(root)

    def include(self, root: Expr) -> Expr:
        """Infer an expression; the result is the same expression with its functions written out."""
        rebuilt: dict[int, Expr] = {}
        for node in parts(root):
            args = tuple(rebuilt[id(arg)] for arg in node.args)
            before, self._line = len(self.problems), self.lines.get(node)
            unclear = any(id(arg) in self.unclear for arg in args)
            made = rebuilt[id(node)] = node if unclear else self._rebuilt(node, args)
            self._kept.append(made)
            if not isinstance(made, Selector) and id(made) not in self._domains:
                self._domains[id(made)] = (0,) if unclear else self._infer(made)
            if unclear or len(self.problems) > before:
                self.unclear.add(id(made))
            if self._line is not None:
                self.lines.setdefault(made, self._line)
        return rebuilt[id(root)]

    def _tell(self, message: str) -> None:
        self.problems.append(Problem(message, line=self._line))

    def __getitem__(self, node: Expr) -> Domain:
        return self._domains[id(node)]

    def numeric(self, node: Expr) -> bool:
        """Whether all values are numbers."""
        return all(isinstance(value, int | Fraction) for value in self[node])

    def boolean(self, node: Expr) -> bool:
        """Whether all values are truth values."""
        return all(isinstance(value, bool) for value in self[node])

    def _rebuilt(self, node: Expr, args: tuple[Expr, ...]) -> Expr:
        data = node.data
        if node.op in ("apply", "select") and not isinstance(data, str):
            rows = self._tabulated(data, [self[arg] for arg in args], node.op)
            if node.op == "select":
                return Selector("select", args, Pairs(pair for pair, holds in rows.items() if holds))
            data = Table(rows, getattr(data, "name", getattr(data, "__name__", "function")))
        return type(node)(node.op, args, data)

    def _tabulated(self, function: Callable[..., Any], domains: list[Domain], what: str) -> dict[Any, Value]:
        if self._too_many(domains, getattr(function, "__name__", what)):
            return {}
        rows: dict[tuple[Value, ...], Value] = {}
        for args in product(*domains):
            try:
                rows[args] = exact(function(*args))
            except Exception as error:
                self._tell(f"{_name(function)} fails on {', '.join(map(repr, args))}: {error}")
                return {}
        return rows

    def _too_many(self, domains: list[Domain], name: str) -> bool:
        count = 1
        for domain in domains:
            count *= len(domain)
        if count > MOST_ROWS:
            sizes = " × ".join(str(len(domain)) for domain in domains)
            self._tell(f"{name} would be a table of {sizes} = {count:,} rows, more than {MOST_ROWS:,}")
        return count > MOST_ROWS

    def _infer(self, node: Expr) -> Domain:
        if node.op == "tokens":
            return self.alphabet
        if node.op == "indices":
            return tuple(range(self.length))
        if node.op == "const":
            return (node.data,)
        if node.op == "width":
            return tuple(range(self.length + 1))
        if node.op == "apply":
            return self._applied(node)
        values = self[node.args[1]]
        if node.op != "mean":
            return self._domain([*values, node.data], node.op)
        if not self.numeric(node.args[1]):
            self._tell("mean averages numbers only: its values are " + ", ".join(map(str, values[:5])))
            return (0,)
        return self._means([Fraction(v) for v in values if isinstance(v, int | Fraction)], node.data)

    def _applied(self, node: Expr) -> Domain:
        domains = [self[arg] for arg in node.args]
        alone = all(len(domain) == 1 for domain in domains)  # readers rely on it: constants have one value
        if isinstance(node.data, str) and node.data in ("and", "or", "not", "==", "!="):
            return (bool(function_of(node.data)(*(domain[0] for domain in domains))),) if alone else (False, True)
        if node.data == "if":
            chosen = [domains[2 * (not held)] for held in domains[1]] if len(domains[1]) == 1 else domains[::2]
            return self._domain([value for domain in chosen for value in domain], "if")
        if isinstance(node.data, Table):
            return self._domain(node.data.rows.values(), node.data.name) or (None,)
        if not all(self.numeric(arg) for arg in node.args):
            odd = next(v for d in domains for v in d if not isinstance(v, int | Fraction))
            self._tell(f"{node.data!r} is for numbers, but one of its arguments can be {odd!r}")
            return (0,)
        if node.data in ("<", "<=", ">", ">=") and not alone:
            return (False, True)
        signs = {"+": 1, "-": -1}
        sums = _sums(domains[0], domains[1], signs[node.data]) if node.data in signs else None
        if sums is not None:
            return self._domain(sums, repr(node.data))
        if self._too_many(domains, repr(node.data)):
            return (0,)
        try:
            return self._domain((exact(function_of(node.data)(*args)) for args in product(*domains)), repr(node.data))
        except ZeroDivisionError:
            self._tell(f"{node.data!r} divides by an expression that can be 0")
            return (0,)

    def _means(self, values: list[Fraction], default: Value) -> Domain:
        """All means of up to `length` numbers, if that set stays small; sums of m numbers are found step by step."""
        if len(values) == 1:
            return self._domain([exact(values[0]), default], "mean")
        if len(values) == 2:
            low, span = values[0], values[1] - values[0]
            shares = {Fraction(k, m) for m in range(1, self.length + 1) for k in range(m + 1)}
            return self._domain([*(exact(low + span * share) for share in shares), default], "mean")
        found: set[Fraction] = set()
        sums = {Fraction(0)}
        for m in range(1, self.length + 1):
            sums = {s + v for s in sums for v in values}
            found |= {s / m for s in sums}
            if len(found) > MOST_VALUES:
                self._tell(f"a mean would have more than {MOST_VALUES:,} values: average smaller numbers")
                return (0,)
        return self._domain([*(exact(v) for v in found), default], "mean")

    def _domain(self, values: Iterable[Value], what: str) -> Domain:
        found = {(type(value).__name__ == "bool", value): value for value in values}
        mixed = any(isinstance(v, bool) for v in found.values()) and any(type(v) is int for v in found.values())
        kept = {int(v) if mixed and isinstance(v, bool) else v for v in found.values()}
        if len(kept) > MOST_VALUES:
            self._tell(f"{what} has {len(kept):,} values, more than {MOST_VALUES:,}")
        return tuple(sorted(kept, key=_order))


def _order(value: Value) -> tuple[int, Any]:
    """Numbers by size, then words, then nothing."""
    if value is None:
        return (2, 0)
    return (1, value) if isinstance(value, str) else (0, value)


def _sums(first: Domain, second: Domain, sign: int) -> list[int] | None:
    """All sums, or differences, of whole numbers that lie close together: one shifted copy of a set after the other."""
    numbers = [[v for v in domain if type(v) is int] for domain in (first, second)]
    if len(numbers[0]) < len(first) or len(numbers[1]) < len(second):
        return None
    many, few = sorted((numbers[0], [sign * v for v in numbers[1]]), key=len, reverse=True)
    low, least = min(many), min(few)
    span = max(many) - low + 1
    start, size = low + least, span + max(few) - least
    if size > MOST_SPAN:
        return None
    held, found = np.zeros(span, dtype=bool), np.zeros(size, dtype=bool)
    held[np.array(many) - low] = True
    for number in few:
        found[number - least : number - least + span] |= held
    return [start + at for at in np.flatnonzero(found).tolist()]


def _name(function: Any) -> str:
    return str(getattr(function, "name", getattr(function, "__name__", function)))
