"""Possible values of each expression of a program, over all words up to a length; functions become tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import reduce
from itertools import product
from operator import add
from typing import Any

import numpy as np

from vitrify.errors import Problem
from vitrify.spec.programs.expression import (
    Expr,
    Pairs,
    Selector,
    Table,
    Value,
    apply,
    everywhere,
    exact,
    expression,
    function_of,
    marked,
    parts,
    width,
)

MAX_VALUES = 1 << 16  # of one expression
MAX_ROWS = 1 << 18  # of the table of a function of several expressions
MAX_SPAN = 1 << 20  # from the smallest to the largest of sums that are computed without trying all pairs

Domain = tuple[Value, ...]


class Values:
    """Result of the inference: the program with its functions as tables, and the values of each part.

    A set of values is exact for expressions of the token or the position alone, and otherwise an over-approximation:
    arguments of a function are assumed to vary independently. `None` is the value of an aggregate
    without a default that selects nothing.
    """

    def __init__(
        self,
        root: Expr,
        alphabet: tuple[str, ...],
        length: int,
        causal: bool,
        lines: Mapping[Expr, int] | None = None,
        names: Mapping[Expr, str] | None = None,
    ) -> None:
        self.alphabet, self.length, self.causal = alphabet, length, causal
        self.problems: list[Problem] = []
        self.lines = dict(lines or {})  # of expressions that come from a text
        self.names = dict(names or {})  # of expressions that the program names
        self.unclear: set[int] = set()  # expressions with a problem, or that read one
        self._line: int | None = None
        self._domains: dict[int, Domain] = {}
        self._inferred: list[Expr] = []  # references, so that identities stay unique
        self.root = self.include(root)

    def include(self, root: Expr) -> Expr:
        """Infer an expression; return the same expression with its functions as tables."""
        rebuilt: dict[int, Expr] = {}
        for node in parts(root):
            args = tuple(rebuilt[id(arg)] for arg in node.args)
            before, self._line = len(self.problems), self.lines.get(node)
            unclear = any(id(arg) in self.unclear for arg in args)
            unchanged = type(node)(node.op, args, node.data)
            node_with_tables = rebuilt[id(node)] = unchanged if unclear else self._rebuilt(node, args)
            self._inferred += [node, node_with_tables]
            if not isinstance(node_with_tables, Selector) and id(node_with_tables) not in self._domains:
                self._domains[id(node_with_tables)] = (0,) if unclear else self._infer(node_with_tables)
            if unclear or len(self.problems) > before:
                self.unclear.add(id(node_with_tables))
            if self._line is not None:
                self.lines.setdefault(node_with_tables, self._line)
            if node in self.names:
                self.names.setdefault(node_with_tables, self.names[node])
        return rebuilt[id(root)]

    def _report(self, message: str) -> None:
        self.problems.append(Problem(message, line=self._line))

    def __getitem__(self, node: Expr) -> Domain:
        return self._domains[id(node)]

    def numeric(self, node: Expr) -> bool:
        """Return True if all values are numbers."""
        return all(isinstance(value, int | Fraction) for value in self[node])

    def boolean(self, node: Expr) -> bool:
        """Return True if all values are truth values."""
        return all(isinstance(value, bool) for value in self[node])

    def _rebuilt(self, node: Expr, args: tuple[Expr, ...]) -> Expr:
        data = node.data
        if node.op in ("apply", "select") and not isinstance(data, str):
            name = str(getattr(data, "name", getattr(data, "__name__", "function")))
            rows = self._tabulated(data, [self[arg] for arg in args], name)
            if node.op == "select":
                pairs = Pairs((key, query) for (key, query), holds in rows.items() if holds)
                return Selector("select", args, pairs) if pairs.pairs else ~everywhere
            if not args:
                return self.include(expression(rows.get(())))
            data = Table(rows, name)
        if node.op == "sum":
            return self.include(self._sum(args[0], args[1], self.names.get(node)))
        return apply(data, *args) if data in ("and", "or") and node.op == "apply" else type(node)(node.op, args, data)

    def _sum(self, selector: Any, values: Expr, name: str | None) -> Expr:
        """Return a sum over selected positions as a sum of widths, one for each value or one for each bit of them."""
        domain = self[values]
        numbers = [value for value in domain if isinstance(value, int | Fraction)]
        if len(numbers) < len(domain):
            self._report("sum adds numbers only: its values are " + ", ".join(map(str, domain[:5])))
            return expression(0)
        plans: list[list[tuple[int | Fraction, tuple[int | Fraction, ...]]]]
        plans = [[(value, (value,)) for value in numbers if value]]
        for low in sorted({min(numbers), min(0, *numbers)}):
            above = [number - low for number in numbers]
            if all(isinstance(value, int) for value in above):
                bits = [1 << bit for bit in range(int(max(above)).bit_length())]
                plans.append([(bit, tuple(v for v in numbers if int(v - low) & bit)) for bit in bits])
                plans[-1] += [(low, tuple(numbers))] if low else []
        terms: list[Expr] = []
        for factor, counted in min(plans, key=len):
            flag = apply(Table({(v,): v in counted for v in domain}), values)
            flag = values == counted[0] if len(counted) == 1 else flag
            size = width(selector if len(counted) == len(numbers) else selector & marked(flag))
            terms.append(size if factor == 1 else factor * size)
            if name:
                self.names.setdefault(size, f"{name}_{len(terms)}")
        return reduce(add, terms) if terms else expression(0)

    def _tabulated(
        self, function: Callable[..., Value], domains: list[Domain], name: str
    ) -> dict[tuple[Value, ...], Value]:
        if self._too_many(domains, name):
            return {}
        rows: dict[Domain, Value] = {}
        for args in product(*domains):
            try:
                rows[args] = exact(function(*args))
            except Exception as error:
                self._report(f"{name} fails on {', '.join(map(repr, args))}: {error}")
                return {}
        return rows

    def _too_many(self, domains: list[Domain], name: str) -> bool:
        count = 1
        for domain in domains:
            count *= len(domain)
        if count > MAX_ROWS:
            sizes = " × ".join(str(len(domain)) for domain in domains)
            self._report(f"{name} would be a table of {sizes} = {count:,} rows, more than {MAX_ROWS:,}")
        return count > MAX_ROWS

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
        if node.op in ("min", "max") and not self.numeric(node.args[1]):
            self._report(f"{node.op} compares numbers only: its values are " + ", ".join(map(str, values[:5])))
        if node.op != "mean":
            return self._domain([*values, node.data], node.op)
        if not self.numeric(node.args[1]):
            self._report("mean averages numbers only: its values are " + ", ".join(map(str, values[:5])))
            return (0,)
        return self._means([Fraction(v) for v in values if isinstance(v, int | Fraction)], node.data)

    def _applied(self, node: Expr) -> Domain:
        domains = [self[arg] for arg in node.args]
        alone = all(len(domain) == 1 for domain in domains)  # constants must have one value
        if isinstance(node.data, str) and node.data in ("and", "or", "not", "==", "!="):
            return (bool(function_of(node.data)(*(domain[0] for domain in domains))),) if alone else (False, True)
        if node.data == "if":
            chosen = [domains[2 * (not held)] for held in domains[1]] if len(domains[1]) == 1 else domains[::2]
            return self._domain([value for domain in chosen for value in domain], "if")
        if isinstance(node.data, Table):
            return self._domain(node.data.rows.values(), node.data.name) or (None,)
        if not all(self.numeric(arg) for arg in node.args):
            odd = next(v for d in domains for v in d if not isinstance(v, int | Fraction))
            self._report(f"{node.data!r} is for numbers, but one of its arguments can be {odd!r}")
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
            self._report(f"{node.data!r} divides by an expression that can be 0")
            return (0,)

    def _means(self, values: list[Fraction], default: Value) -> Domain:
        """Return all means of up to `length` numbers, if that set stays small; sums are computed step by step."""
        if len(values) == 1:
            return self._domain([exact(values[0]), default], "mean")
        if len(values) == 2:
            low, span = values[0], values[1] - values[0]
            shares = {Fraction(k, m) for m in range(1, self.length + 1) for k in range(m + 1)}
            return self._domain([*(exact(low + span * share) for share in shares), default], "mean")
        means: set[Fraction] = set()
        sums = {Fraction(0)}
        for m in range(1, self.length + 1):
            sums = {s + v for s in sums for v in values}
            means |= {s / m for s in sums}
            if len(means) > MAX_VALUES:
                self._report(f"a mean would have more than {MAX_VALUES:,} values: average smaller numbers")
                return (0,)
        return self._domain([*(exact(v) for v in means), default], "mean")

    def _domain(self, values: Iterable[Value], what: str) -> Domain:
        distinct = {(type(value).__name__ == "bool", value): value for value in values}
        mixed = any(isinstance(v, bool) for v in distinct.values()) and any(type(v) is int for v in distinct.values())
        domain = {int(v) if mixed and isinstance(v, bool) else v for v in distinct.values()}
        if len(domain) > MAX_VALUES:
            self._report(f"{what} has {len(domain):,} values, more than {MAX_VALUES:,}")
        return tuple(sorted(domain, key=_order))


def _order(value: Value) -> tuple[int, object]:
    """Sort key: numbers by size, then words, then None."""
    if value is None:
        return (2, 0)
    return (1, value) if isinstance(value, str) else (0, value)


def _sums(first: Domain, second: Domain, sign: int) -> list[int] | None:
    """Return all sums (or differences) of integers that lie close together, as a union of shifted sets; else None."""
    numbers = [[v for v in domain if type(v) is int] for domain in (first, second)]
    if len(numbers[0]) < len(first) or len(numbers[1]) < len(second):
        return None
    more, fewer = sorted((numbers[0], [sign * v for v in numbers[1]]), key=len, reverse=True)
    low, least = min(more), min(fewer)
    span = max(more) - low + 1
    start, size = low + least, span + max(fewer) - least
    if size > MAX_SPAN:
        return None
    held, reached = np.zeros(span, dtype=bool), np.zeros(size, dtype=bool)
    held[np.array(more) - low] = True
    for number in fewer:
        reached[number - least : number - least + span] |= held
    return [start + at for at in np.flatnonzero(reached).tolist()]


def symbols_of(domain: Domain) -> tuple[str, ...]:
    """Return the names of values as a network outputs them: `none` for None, distinct for distinct values."""
    plain = tuple("none" if value is None else str(value) for value in domain)
    return plain if len(set(plain)) == len(plain) else tuple(repr(value) for value in domain)
