r"""Programs of selections and aggregations, position by position: what they say, and what they compute.

A program is an expression over the positions of a word. `tokens` and `indices` (from 0) are expressions; element-wise
functions of expressions are; and three things look at other positions through a *selector*, which says for each
position which others it sees: `aggregate` (the one value that they all have), `mean` (the average of their numbers)
and `width` (how many they are); `first` and `last` take the value of the leftmost or rightmost of them. This is one
language for what RASP (Weiss, Goldberg and Yahav 2021, arXiv 2106.06981), B-RASP (Yang, Chiang and Angluin 2024,
arXiv 2310.13897) and C-RASP (Yang and Chiang 2024, arXiv 2404.04393) can say.

Expressions are interned: equal ones are one object, so a graph with shared parts costs its size and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from vitrify.errors import SpecError

Value: TypeAlias = bool | int | Fraction | str | None
Word: TypeAlias = Sequence[str]

# What an element-wise operation computes, by its name; `if` is a, if c, else b.
OPERATIONS: dict[str, Callable[..., Any]] = {
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


def _typed(values: tuple[Any, ...]) -> Hashable:
    """Values with their types: 1 and True are different, though Python calls them equal."""
    return tuple((type(value).__name__, value) for value in values)


_interned: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()


class Table:
    """A function of finitely many tuples of values, written out; equal tables are equal."""

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
    """A relation written out: the pairs of a key and a query that stand in it; equal ones are equal."""

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


class Expr:
    """One value at every position: an operation on other expressions."""

    op: str
    args: tuple[Any, ...]
    data: Any

    def __new__(cls, op: str, args: tuple[Any, ...] = (), data: Any = None) -> Expr:
        key = (cls, op, tuple(map(id, args)), _typed((data,)) if not callable(data) else data)
        found: Expr | None = _interned.get(key)
        if found is None:
            found = super().__new__(cls)
            found.op, found.args, found.data = op, args, data
            _interned[key] = found
        return found

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.op!r}, {len(self.args)} arguments)"

    def __bool__(self) -> bool:
        raise TypeError("an expression has a value at every position: combine expressions with &, | and ~")

    def __add__(self, other: Any) -> Expr:
        return apply("+", self, other)

    def __radd__(self, other: Any) -> Expr:
        return apply("+", other, self)

    def __sub__(self, other: Any) -> Expr:
        return apply("-", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return apply("-", other, self)

    def __mul__(self, other: Any) -> Expr:
        return apply("*", self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Expr:
        return apply("//", self, other)

    def __mod__(self, other: Any) -> Expr:
        return apply("%", self, other)

    def __neg__(self) -> Expr:
        return apply("neg", self)

    def __abs__(self) -> Expr:
        return apply("abs", self)

    def __eq__(self, other: object) -> Any:
        return apply("==", self, other)

    def __ne__(self, other: object) -> Any:
        return apply("!=", self, other)

    def __lt__(self, other: Any) -> Expr:
        return apply("<", self, other)

    def __le__(self, other: Any) -> Expr:
        return apply("<=", self, other)

    def __gt__(self, other: Any) -> Expr:
        return apply(">", self, other)

    def __ge__(self, other: Any) -> Expr:
        return apply(">=", self, other)

    def __and__(self, other: Any) -> Expr:
        return apply("and", self, other)

    def __or__(self, other: Any) -> Expr:
        return apply("or", self, other)

    def __invert__(self) -> Expr:
        return apply("not", self)


class Selector(Expr):
    """Which positions each position sees: a comparison of a key there with a query here, or such ones combined."""

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Selector:
        return Selector("and", (self, other))

    def __or__(self, other: Any) -> Selector:
        return Selector("or", (self, other))

    def __invert__(self) -> Selector:
        return Selector("not", (self,))


tokens = Expr("tokens")
indices = Expr("indices")
everywhere = Selector("all")


def expression(value: Any) -> Expr:
    """An expression as it is; any other value as the constant."""
    return value if isinstance(value, Expr) else Expr("const", (), value)


def apply(function: str | Table | Callable[..., Any], *args: Any) -> Expr:
    """An element-wise function: an operation by name, a table, or any Python function, tabulated when it is used."""
    if isinstance(function, str) and function not in OPERATIONS:
        raise SpecError([f"there is no operation {function!r}; there are {', '.join(OPERATIONS)}"])
    inner = list(map(expression, args))
    if isinstance(function, str) and function in ("and", "or"):  # one conjunction of many, not a chain of two each
        inner = [part for arg in inner for part in (arg.args if _is(arg, function) else (arg,))]
        inner = list(
            {id(part): part for part in inner if not (part.op == "const" and part.data == (function == "and"))}.values()
        )
        if len(inner) < 2:
            return inner[0] if inner else expression(function == "and")
    return Expr("apply", tuple(inner), function)


def _is(node: Expr, function: str) -> bool:
    return node.op == "apply" and isinstance(node.data, str) and node.data == function


def choose(condition: Any, yes: Any, no: Any) -> Expr:
    """`yes` where the condition holds, else `no`."""
    return apply("if", yes, condition, no)


def select(keys: Any, queries: Any, predicate: str | Table | Callable[..., Any] = "==") -> Selector:
    """Each position sees those whose key stands in a relation to its own query: `predicate(key, query)`."""
    return Selector("select", (expression(keys), expression(queries)), predicate)


def marked(flag: Any) -> Selector:
    """Every position sees those where the flag is true."""
    return Selector("select", (expression(flag), expression(True)), "==")


def aggregate(selector: Selector, values: Any, default: Value = None) -> Expr:
    """The value that all selected positions have; the default where none is selected."""
    return Expr("aggregate", (selector, expression(values)), default)


def mean(selector: Selector, values: Any, default: Value = 0) -> Expr:
    """The average of the numbers at the selected positions; the default where none is selected."""
    return Expr("mean", (selector, expression(values)), default)


def width(selector: Selector) -> Expr:
    """How many positions are selected."""
    return Expr("width", (selector,))


def first(selector: Selector, values: Any, default: Value = None) -> Expr:
    """The value at the leftmost selected position."""
    return Expr("first", (selector, expression(values)), default)


def last(selector: Selector, values: Any, default: Value = None) -> Expr:
    """The value at the rightmost selected position."""
    return Expr("last", (selector, expression(values)), default)


def count(flag: Any) -> Expr:
    """How many of the visible positions have the flag: `width` of those that are marked."""
    return width(marked(flag))


before = select(indices, indices, "<")  # strictly to the left
upto = select(indices, indices, "<=")
after = select(indices, indices, ">")


def parts(root: Expr) -> Iterator[Expr]:
    """Every expression and selector that a program is made of, each once, after its own parts."""
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
    """The value at every position of a word; a causal program sees nothing to the right of a position."""
    found: dict[int, Any] = {}
    places = range(len(word))
    for node in parts(root):
        inner = [found[id(arg)] for arg in node.args]
        if isinstance(node, Selector):
            found[id(node)] = _selected(node, inner, places, causal)
        else:
            found[id(node)] = _values(node, inner, word, places)
    values: list[Value] = found[id(root)]
    return values


def _selected(node: Selector, inner: list[Any], places: range, causal: bool) -> list[list[bool]]:
    """Row i says which positions j it sees."""
    seen = [[not causal or j <= i for j in places] for i in places]
    if node.op == "all":
        return seen
    if node.op == "select":
        keys, queries = inner
        holds = function_of(node.data)
        return [[seen[i][j] and bool(holds(keys[j], queries[i])) for j in places] for i in places]
    if node.op == "not":
        return [[seen[i][j] and not inner[0][i][j] for j in places] for i in places]
    both = all if node.op == "and" else any
    return [[both(part[i][j] for part in inner) for j in places] for i in places]


def _values(node: Expr, inner: list[Any], word: Word, places: range) -> list[Value]:
    if node.op == "tokens":
        return list(word)
    if node.op == "indices":
        return list(places)
    if node.op == "const":
        return [node.data] * len(word)
    if node.op == "apply":
        function = function_of(node.data)
        return [exact(function(*args)) for args in zip(*inner, strict=True)]
    if node.op == "width":
        return [sum(row) for row in inner[0]]
    selected = [[value for value, chosen in zip(inner[1], row, strict=True) if chosen] for row in inner[0]]
    return [_joined(node, values) if values else node.data for values in selected]


def _joined(node: Expr, values: list[Any]) -> Any:
    if node.op == "mean":
        return exact(Fraction(sum(values)) / len(values))
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


def function_of(data: Any) -> Any:
    """The Python function of an operation's name, a table, or a function."""
    return OPERATIONS[data] if isinstance(data, str) else data


def exact(value: Any) -> Any:
    """A whole fraction is an integer; everything else is what it is."""
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    if isinstance(value, float):
        raise SpecError([f"programs compute exactly: {value!r} is a float, use a Fraction"])
    return value
