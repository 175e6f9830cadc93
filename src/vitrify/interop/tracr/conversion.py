r"""Convert programs of Tracr into programs of ours.

Functions are tabulated over all combinations of values that their arguments can have, so that a function must accept
combinations that no word has; where it divides by zero, the value is None, as in Tracr. Numbers are exact: a float
becomes the closest fraction with a denominator up to `MAX_DENOMINATOR` if that is within `FLOAT_ERROR` of it (5e-10
becomes 0), and else the binary fraction that it is. Values that are neither numbers nor strings, such as tuples, are
fine inside a program, not as its result.

`Aggregate` becomes `aggregate` where the selected positions agree on all words that are tried, and else `mean`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from vitrify.errors import InputError, Problem, SpecError
from vitrify.interop.tracr import language
from vitrify.spec.formats.text import refuse_any
from vitrify.spec.programs.expression import (
    Expr,
    Selector,
    Table,
    Value,
    aggregate,
    apply,
    choose,
    everywhere,
    exact,
    indices,
    mean,
    select,
    tokens,
    width,
)
from vitrify.spec.programs.program import Program
from vitrify.spec.programs.values import MAX_ROWS, Values

FLOAT_ERROR = 1e-9  # distance of a float from the fraction that it becomes, relative to numbers above 1
MAX_DENOMINATOR = 10**6
SIGNS = ("+", "-", "*")  # of numbers: sums are free in our networks


def converted(sop: language.SOp, symbols: tuple[object, ...], length: int, causal: bool, name: str) -> Program:
    """Return a program; aggregates whose positions disagree on some word become means, one after the other."""
    means = set[int]()
    while True:
        converter = Converter(symbols, length, causal, means)
        root = converter.part(sop).expr
        refuse_any(converter.problems)
        if root is None:
            raise SpecError(["the values of a program are numbers, strings and truth values: its result has others"])
        program = Program(root, converter.alphabet, length, causal, name, names=converter.values.names)
        wrong = {key for node, key in converter.aggregates if node in program.disagreeing}
        if not wrong - means:
            refuse_any(program.ambiguities)
            return program
        means |= wrong


@dataclass(frozen=True, eq=False)
class TracrPart:
    """What an SOp became: its value is `function` of the values of `args`.

    `expr` is the same as one expression; None if some values are ones that programs of ours lack, such as tuples.
    """

    args: tuple[Expr, ...]
    function: Callable[..., Any]
    expr: Expr | None


def as_value(value: Any) -> Value:
    """Return a Python value as a value of a program of ours; raise a TypeError if programs have no such values."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise SpecError([f"a program has the value {value!r}: its numbers must be finite"])
        near = Fraction(value).limit_denominator(MAX_DENOMINATOR)
        return exact(near if abs(near - Fraction(value)) <= FLOAT_ERROR * max(1.0, abs(value)) else Fraction(value))
    if hasattr(value, "item"):  # a number of NumPy
        return as_value(value.item())
    if value is None or isinstance(value, bool | int | str | Fraction):
        return exact(value)
    raise TypeError(f"{value!r} is no number and no string")


def _selects_itself(selector: Selector) -> bool:
    """Return whether every position certainly selects itself, so that a default is never used."""
    reflexive = selector.op == "select" and selector.args[0] is selector.args[1] and selector.data in ("==", "<=", ">=")
    return selector is everywhere or reflexive


class Converter:
    """Converts expressions from the inside out; what is shared is converted once."""

    def __init__(self, symbols: tuple[object, ...], length: int, causal: bool, means: set[int]) -> None:
        named = {str(symbol): symbol for symbol in symbols}
        order = sorted(named, key=lambda text: (isinstance(named[text], str), named[text]))
        if len(named) < len(symbols):
            raise InputError("two symbols are written in the same way: give them different names")
        self.alphabet, self.means = tuple(order), means
        self.problems: list[Problem | str] = []
        self.values = Values(tokens, self.alphabet, length, causal)
        self.aggregates: list[tuple[Expr, int]] = []
        self._parts: dict[int, TracrPart] = {}
        self._kept: list[object] = []  # so that identities stay unique
        self._codes: dict[str, Any] = {}
        table: dict[tuple[Value, ...], Value] = {(text,): as_value(symbol) for text, symbol in named.items()}
        self._tokens = tokens if all(text == value for (text,), value in table.items()) else apply(Table(table), tokens)

    def part(self, sop: language.SOp) -> TracrPart:
        """Return the values of an expression."""
        if id(sop) not in self._parts:
            self._kept.append(sop)
            part = self._part(sop)
            if part.expr is not None and sop.name and part.expr.args:
                self.values.names.setdefault(part.expr, sop.name)
            self._parts[id(sop)] = part
        return self._parts[id(sop)]

    def _part(self, sop: language.SOp) -> TracrPart:
        if isinstance(sop, language.SequenceMap):
            return self._mapped(sop)
        if isinstance(sop, language.SelectorWidth):
            return self._as_part(width(self.selector(sop.selector)))
        if isinstance(sop, language.Aggregate):
            return self._aggregated(sop)
        simple = {
            language.TokensType: self._tokens,
            language.IndicesType: indices,
            language.LengthType: width(everywhere),
        }
        if isinstance(sop, language.Full):
            return self._tabulated((), lambda: sop.fill, "constant")
        return self._as_part(simple[type(sop)])

    def _as_part(self, expr: Expr) -> TracrPart:
        expr = self.values.include(expr)
        self.problems += [problem.message for problem in self.values.problems]
        refuse_any(dict.fromkeys(self.problems))
        return TracrPart((expr,), lambda value: value, expr)

    def _mapped(self, sop: language.SequenceMap) -> TracrPart:
        inner = [self.part(each) for each in sop.inner]
        exprs = [part.expr for part in inner if part.expr is not None]
        if len(exprs) == len(inner) == 2:
            numbers, flags = (all(map(test, exprs)) for test in (self.values.numeric, self.values.boolean))
            if (sop.sign in SIGNS and numbers) or (sop.sign in ("and", "or") and flags):
                return self._as_part(apply(str(sop.sign), *exprs))
            if isinstance(sop, language.LinearSequenceMap) and numbers:
                first, second = (as_value(factor) for factor in sop.sign)  # type: ignore[attr-defined]  # a pair
                return self._as_part(exprs[0] * first + exprs[1] * second)
        args = tuple({id(arg): arg for part in inner for arg in part.args}.values())

        def function(*values: Value) -> Any:
            known = {id(arg): value for arg, value in zip(args, values, strict=True)}
            row = [part.function(*(known[id(arg)] for arg in part.args)) for part in inner]
            try:
                return None if any(value is None for value in row) else sop.f(*row)
            except ArithmeticError:
                return None

        return self._tabulated(args, function, sop.name or "map")

    def _tabulated(self, args: tuple[Expr, ...], function: Callable[..., Any], name: str) -> TracrPart:
        """Return a function of some expressions as a table of all combinations of their values."""
        count = math.prod(len(self.values[arg]) for arg in args)
        if count > MAX_ROWS:
            raise SpecError([f"{name} would be a table of {count:,} rows, more than {MAX_ROWS:,}"])
        rows: dict[tuple[Value, ...], Any] = {}
        for row in product(*(self.values[arg] for arg in args)):
            try:
                rows[row] = function(*row)
            except Exception as error:
                shown = ", ".join(map(repr, row))
                why = f"{type(error).__name__}: {error}"
                note = "a function must accept every combination of values of its arguments, also one that no word has"
                raise SpecError([f"{name} fails on {shown}: {why}; {note}"]) from None
        try:
            table = Table({row: as_value(value) for row, value in rows.items()}, name)
        except TypeError:
            return TracrPart(args, lambda *row: rows[row], None)
        return self._as_part(apply(table, *args))

    def _encoded(self, part: TracrPart) -> tuple[Expr, Callable[[Value], Any]]:
        """Return an expression for a part, and the function from its values to those of the part.

        A part that is no expression has strings as codes: what `repr` writes for its values.
        """
        if part.expr is not None:
            return part.expr, lambda value: value

        coded = self._tabulated(part.args, lambda *row: self._code(part.function(*row)), "code").expr
        assert coded is not None
        return coded, lambda value: self._codes[str(value)]

    def _code(self, value: Any) -> str:
        self._codes[repr(value)] = value
        return repr(value)

    def selector(self, chosen: language.Selector) -> Selector:
        """Return a selector."""
        if not isinstance(chosen, language.Select):
            inner = [self.selector(part) for part in chosen.parts]
            return (
                ~inner[0]
                if chosen.sign == "not"
                else inner[0] & inner[1]
                if chosen.sign == "and"
                else inner[0] | inner[1]
            )
        relation = chosen.predicate
        if relation in (language.Comparison.TRUE, language.Comparison.FALSE):
            return everywhere if relation is language.Comparison.TRUE else ~everywhere
        sides = self.part(chosen.keys), self.part(chosen.queries)
        (keys, key), (queries, query) = map(self._encoded, sides)
        if isinstance(relation, language.Comparison) and self.values.numeric(keys) and self.values.numeric(queries):
            return select(keys, queries, relation.value)
        coded = any(part.expr is None for part in sides)
        if relation is language.Comparison.EQ and not coded and None not in (*self.values[keys], *self.values[queries]):
            return select(keys, queries)

        def holds(k: Value, q: Value) -> bool:
            pair = key(k), query(q)
            try:
                return bool(relation(*pair))
            except ArithmeticError:
                return False
            except (TypeError, ValueError):
                if any(value is None for value in pair):  # where a predicate does not accept None, nothing is selected
                    return False
                raise

        holds.__name__ = chosen.name or "predicate"
        return select(keys, queries, holds)

    def _aggregated(self, sop: language.Aggregate) -> TracrPart:
        selector, (inner, decode) = self.selector(sop.selector), self._encoded(self.part(sop.sop))
        coded = self.part(sop.sop).expr is None
        try:
            default = self._code(sop.default) if coded else as_value(sop.default)
        except TypeError as error:
            raise SpecError([f"a default must be a value like those that are selected: {error}"]) from None
        if sop.selector.name:
            self.values.names.setdefault(self.values.include(selector), sop.selector.name)
        if id(sop) not in self.means or not self.values.numeric(inner):
            part = self._as_part(aggregate(selector, inner, default))
            assert part.expr is not None
            self.aggregates.append((part.expr, id(sop)))
        elif isinstance(default, int | Fraction) or _selects_itself(selector):
            part = self._as_part(mean(selector, inner, default if isinstance(default, int | Fraction) else 0))
        else:
            part = self._as_part(choose(width(selector) > 0, mean(selector, inner, 0), default))
        return TracrPart(part.args, decode, None) if coded else part
