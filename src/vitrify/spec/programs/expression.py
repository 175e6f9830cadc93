r"""RASP programs of selections and aggregations, position by position: syntax and meaning.

A program is an expression over the positions of a word. `tokens` and `indices` (from 0) are expressions; element-wise
functions of expressions are; and some operations read other positions through a *selector*, which
determines the positions that each position attends to: `aggregate` (their common value), `width` (their number),
`mean`, `sum`, `min` and `max` (of their numbers), `first` and `last` (the value of the leftmost or rightmost of them).
This is one language for programs of RASP (Weiss, Goldberg and Yahav 2021, arXiv 2106.06981), B-RASP (Yang, Chiang and
Angluin 2024, arXiv 2310.13897) and C-RASP (Yang and Chiang 2024, arXiv 2404.04393).

Expressions are interned: equal ones are one object, so shared parts are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import reduce
from operator import index
from typing import Any, Self, TypeAlias
from weakref import WeakValueDictionary

from vitrify.errors import SpecError

Value: TypeAlias = bool | int | Fraction | str | None
Operand: TypeAlias = "Expr | Value"
Function: TypeAlias = "str | Table | Pairs | Callable[..., Value]"
Word: TypeAlias = Sequence[str]

# Element-wise operations by name; `if` is a, if c, else b.
OPERATIONS: dict[str, Callable[..., Value]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "neg": lambda a: -a,
    "abs": abs,
    "min": min,
    "max": max,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": lambda *a: all(a),
    "or": lambda *a: any(a),
    "not": lambda a: not a,
    "if": lambda a, c, b: a if c else b,
}
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
FETCHES = ("aggregate", "mean", "first", "last", "min", "max")  # one value of the selected positions, or a default
CROSSES = (*FETCHES, "sum", "width")  # what reads other positions; the first argument is a selector


def _typed(values: tuple[object, ...]) -> Hashable:
    """Return values with their types: 1 and True are different, though equal in Python."""
    return tuple((type(value).__name__, value) for value in values)


_interned: WeakValueDictionary[Hashable, Expr] = WeakValueDictionary()


class Table:
    """A function of finitely many tuples of values, as a table; equal tables compare equal."""

    def __init__(self, rows: dict[tuple[Value, ...], Value], name: str = "table") -> None:
        self.rows, self.name = rows, name
        self._key = tuple(sorted(((_typed(row), _typed((value,))) for row, value in rows.items()), key=repr))

    def __call__(self, *args: Value) -> Value:
        return self.rows[args]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class Pairs:
    """A relation as a list of pairs of a key and a query; equal relations compare equal."""

    name = "pairs"

    def __init__(self, pairs: Iterable[tuple[Value, Value]]) -> None:
        self.pairs = tuple(pairs)
        self._key = frozenset(_typed(pair) for pair in self.pairs)

    def __call__(self, key: Value, query: Value) -> bool:
        return _typed((key, query)) in self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pairs) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _method(name: str, *, swapped: bool = False) -> Callable[[Expr, Operand], Expr]:
    """Return the method of an operation with an expression on its left, or `swapped` on its right."""
    return lambda self, other: apply(name, other, self) if swapped else apply(name, self, other)


class Expr:
    """One value at every position: an operation on other expressions."""

    op: str
    args: tuple[Any, ...]  # expressions; for operations on other positions the first is a selector
    data: Any

    def __new__(cls, op: str, args: tuple[Expr, ...] = (), data: object = None) -> Self:
        key = (cls, op, tuple(map(id, args)), _typed((data,)) if not callable(data) else data)
        node: Self | None = _interned.get(key)  # type: ignore[assignment]  # the class is part of the key
        if node is None:
            node = super().__new__(cls)
            node.op, node.args, node.data = op, args, data
            _interned[key] = node
        return node

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.op!r}, {len(self.args)} arguments)"

    def __bool__(self) -> bool:
        raise TypeError("an expression has a value at every position: combine expressions with &, | and ~")

    __add__, __radd__ = _method("+"), _method("+", swapped=True)
    __sub__, __rsub__ = _method("-"), _method("-", swapped=True)
    __mul__, __rmul__ = _method("*"), _method("*")
    __floordiv__, __mod__ = _method("//"), _method("%")
    __lt__, __le__, __gt__, __ge__ = _method("<"), _method("<="), _method(">"), _method(">=")
    __eq__, __ne__ = _method("=="), _method("!=")  # type: ignore[assignment]
    __and__, __or__ = _method("and"), _method("or")

    def __neg__(self) -> Expr:
        return apply("neg", self)

    def __abs__(self) -> Expr:
        return apply("abs", self)

    def __invert__(self) -> Expr:
        return apply("not", self)


class Selector(Expr):
    """The positions that each position attends to: comparisons of a key there with a query here, and combinations."""

    __hash__ = object.__hash__

    def __and__(self, other: Selector) -> Selector:  # type: ignore[override]
        return Selector("and", (self, other))

    def __or__(self, other: Selector) -> Selector:  # type: ignore[override]
        return Selector("or", (self, other))

    def __invert__(self) -> Selector:
        return Selector("not", (self,))


tokens = Expr("tokens")
indices = Expr("indices")
everywhere = Selector("all")


def expression(value: Operand) -> Expr:
    """Return an expression unchanged, and any other value as a constant."""
    return value if isinstance(value, Expr) else Expr("const", (), exact(value))


def apply(function: Function, *args: Operand) -> Expr:
    """Return an element-wise function: an operation by name, a table, or any Python function (tabulated on use)."""
    if isinstance(function, str) and function not in OPERATIONS:
        raise SpecError([f"there is no operation {function!r}; there are {', '.join(OPERATIONS)}"])
    inner = list(map(expression, args))
    if function == "neg" and inner[0].op == "const" and isinstance(inner[0].data, int | Fraction):
        return expression(-inner[0].data)  # a negative constant is one value, however it is written
    if isinstance(function, str) and function in ("min", "max") and len(inner) > 2:
        return reduce(lambda a, b: apply(function, a, b), inner)
    if isinstance(function, str) and function in ("and", "or"):  # one conjunction of many, not a chain of two each
        same = [isinstance(arg.data, str) and (arg.op, arg.data) == ("apply", function) for arg in inner]
        flat = [part for arg, nested in zip(inner, same, strict=True) for part in (arg.args if nested else (arg,))]
        neutral = function == "and"
        inner = list({id(part): part for part in flat if part.op != "const" or part.data != neutral}.values())
        if len(inner) < 2:
            return inner[0] if inner else expression(neutral)
    return Expr("apply", tuple(inner), function)


def choose(condition: Operand, yes: Operand, no: Operand) -> Expr:
    """Return `yes` where the condition holds, else `no`."""
    return apply("if", yes, condition, no)


def select(keys: Operand, queries: Operand, predicate: Function = "==") -> Selector:
    """Return the selector of the positions whose key satisfies `predicate(key, query)` for the own query."""
    return Selector("select", (expression(keys), expression(queries)), predicate)


def marked(flag: Operand) -> Selector:
    """Return the selector of the positions where the flag is true."""
    return Selector("select", (expression(flag), expression(True)), "==")


def aggregate(selector: Selector, values: Operand, default: Value = None) -> Expr:
    """Return the common value of all selected positions; the default where none is selected."""
    return Expr("aggregate", (selector, expression(values)), default)


def mean(selector: Selector, values: Operand, default: Value = 0) -> Expr:
    """Return the average of the numbers at the selected positions; the default where none is selected."""
    return Expr("mean", (selector, expression(values)), default)


def width(selector: Selector) -> Expr:
    """Return the number of selected positions."""
    return Expr("width", (selector,))


def first(selector: Selector, values: Operand, default: Value = None) -> Expr:
    """Return the value at the leftmost selected position."""
    return Expr("first", (selector, expression(values)), default)


def last(selector: Selector, values: Operand, default: Value = None) -> Expr:
    """Return the value at the rightmost selected position."""
    return Expr("last", (selector, expression(values)), default)


def sum_of(selector: Selector, values: Operand) -> Expr:
    """Return the sum of the numbers at the selected positions; 0 where none is selected."""
    return Expr("sum", (selector, expression(values)))


def min_of(selector: Selector, values: Operand, default: Value = None) -> Expr:
    """Return the least of the numbers at the selected positions."""
    return Expr("min", (selector, expression(values)), default)


def max_of(selector: Selector, values: Operand, default: Value = None) -> Expr:
    """Return the largest of the numbers at the selected positions."""
    return Expr("max", (selector, expression(values)), default)


def count(flag: Operand) -> Expr:
    """Return the number of visible positions with the flag: the `width` of the marked ones."""
    return width(marked(flag))


before = select(indices, indices, "<")  # strictly to the left
upto = select(indices, indices, "<=")
after = select(indices, indices, ">")


def parts(root: Expr) -> Iterator[Expr]:
    """Yield every expression and selector of a program, each once, after its own parts."""
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((arg, False) for arg in reversed(node.args))


def evaluate(root: Expr, word: Word, *, causal: bool = False) -> list[Value]:
    """Return the value at every position of a word; a causal program reads nothing to the right of a position."""
    computed: dict[int, Any] = {}
    positions = range(len(word))
    for node in parts(root):
        inner = [computed[id(arg)] for arg in node.args]
        if isinstance(node, Selector):
            computed[id(node)] = _selected(node, inner, positions, causal)
        else:
            computed[id(node)] = _values(node, inner, word, positions)
    values: list[Value] = computed[id(root)]
    return values


def _selected(node: Selector, inner: list[Any], positions: range, causal: bool) -> list[list[bool]]:
    """Return rows: entry j of row i is True if position i attends to position j."""
    seen = [[not causal or j <= i for j in positions] for i in positions]
    if node.op == "all":
        return seen
    if node.op == "select":
        keys, queries = inner
        holds = function_of(node.data)
        return [[seen[i][j] and bool(holds(keys[j], queries[i])) for j in positions] for i in positions]
    if node.op == "not":
        return [[seen[i][j] and not inner[0][i][j] for j in positions] for i in positions]
    both = all if node.op == "and" else any
    return [[both(part[i][j] for part in inner) for j in positions] for i in positions]


def _values(node: Expr, inner: list[Any], word: Word, positions: range) -> list[Value]:
    if node.op == "tokens":
        return list(word)
    if node.op == "indices":
        return list(positions)
    if node.op == "const":
        return [node.data] * len(word)
    if node.op == "apply":
        function = function_of(node.data)
        return [exact(function(*args)) for args in zip(*inner, strict=True)]
    if node.op == "width":
        return [sum(row) for row in inner[0]]
    if node.op == "sum":
        return [exact(sum(v for v, chosen in zip(inner[1], row, strict=True) if chosen)) for row in inner[0]]
    selected = [[value for value, chosen in zip(inner[1], row, strict=True) if chosen] for row in inner[0]]
    return [_joined(node, values) if values else node.data for values in selected]


def _joined(node: Expr, values: list[Any]) -> Any:
    if node.op == "mean":
        return exact(Fraction(sum(values)) / len(values))
    if node.op in ("min", "max"):
        return OPERATIONS[node.op](values)
    if node.op == "aggregate" and any(value != values[0] for value in values):
        several = ", ".join(sorted({str(value) for value in values}))
        raise AmbiguousAggregate(
            f"an aggregate selects positions with different values ({several}): take first or last"
        )
    return values[-1 if node.op == "last" else 0]


class AmbiguousAggregate(SpecError):
    """An aggregate whose selected positions disagree."""

    def __init__(self, message: str) -> None:
        super().__init__([message])


def function_of(data: Function) -> Callable[..., Value]:
    """Return the Python function of an operation's name, a table, or a function."""
    return OPERATIONS[data] if isinstance(data, str) else data


def exact(value: Any) -> Value:
    """Return an integer for a fraction with denominator 1, and any other value unchanged; floats are refused."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    if isinstance(value, float):
        raise SpecError([f"programs compute exactly: {value!r} is a float, use a Fraction"])
    if value is None or isinstance(value, bool | int | Fraction | str):
        return value
    try:
        return index(value)  # whole numbers of NumPy
    except TypeError:
        message = f"a value is a truth value, a whole number, a Fraction, a string or None, not {value!r}"
        raise SpecError([message]) from None
