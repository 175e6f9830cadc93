r"""The language of Tracr's programs, as `tracr.rasp.rasp` has it; `reader.py` puts it there while a program is read.

Values of a word at its positions are an `SOp`; a `Selector` says which positions (keys) each position (query) reads.
Element-wise functions keep None. `Aggregate` is the mean of selected numbers, or the one selected value.

| Tracr | here |
| --- | --- |
| `tokens`, `indices`, `length`, `Full(value)` | a word, its positions, its length, a constant |
| `Map(f, x)`, `SequenceMap(f, x, y)`, `LinearSequenceMap(x, y, a, b)` | `f(x)`, `f(x, y)`, `a * x + b * y` |
| operators of Python | the same, with constants or other values |
| `Select(keys, queries, predicate)` | key and query pass; a `Comparison` or a function of both |
| `selector_and`, `selector_or`, `selector_not`, or the operators of sets | combinations of selectors |
| `SelectorWidth(selector)`, `Aggregate(selector, values, default)` | number of selected positions; mean |
| `numerical(x)`, `categorical(x)`, `x.named(name)` | how Tracr stores the values; the name of a part |

An expression is called with a word to evaluate it.
"""

from __future__ import annotations

import copy
import enum
import operator
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeAlias

Value: TypeAlias = Any
Function: TypeAlias = Callable[..., Value]


class RASPExpr:
    """An expression: its arguments as attributes, and annotations."""

    name = ""
    encoding = "categorical"

    def named(self, name: str) -> Self:
        """Return the same expression with a name."""
        return self.annotated(name=name)

    def annotated(self, **annotations: Any) -> Self:
        """Return the same expression with other annotations, of which the name and the encoding have a meaning."""
        copied = copy.copy(self)
        for key, value in annotations.items():
            setattr(copied, key, value)
        return copied

    def __call__(self, word: Sequence[Value]) -> list[Any]:
        raise NotImplementedError


annotate = RASPExpr.annotated


def _operator(name: str, function: Function, *, swapped: bool = False) -> Function:
    """Return the method of an operator, with a constant or an expression as the other operand."""

    def method(self: SOp, other: Any) -> SOp:
        fst, snd = (other, self) if swapped else (self, other)
        if isinstance(other, SOp):
            return SequenceMap(function, fst, snd, sign=name)
        if swapped:
            return Map(lambda value: function(other, value), self, sign=(name, other, self))
        return Map(lambda value: function(value, other), self, sign=(name, self, other))

    return method


class SOp(RASPExpr):
    """A value at every position."""

    __hash__ = object.__hash__

    for _name, _function in (
        ("+", operator.add),
        ("-", operator.sub),
        ("*", operator.mul),
        ("/", operator.truediv),
        ("and", lambda x, y: x and y),
        ("or", lambda x, y: x or y),
    ):
        _word = {"+": "add", "-": "sub", "*": "mul", "/": "truediv"}.get(_name, _name)
        locals()[f"__{_word}__"] = _operator(_name, _function)
        locals()[f"__r{_word}__"] = _operator(_name, _function, swapped=True)
    __lt__, __le__ = _operator("<", operator.lt), _operator("<=", operator.le)
    __gt__, __ge__ = _operator(">", operator.gt), _operator(">=", operator.ge)
    __eq__, __ne__ = _operator("==", operator.eq), _operator("!=", operator.ne)

    def __invert__(self) -> SOp:
        return Map(operator.not_, self)


class TokensType(SOp):
    def __call__(self, word: Sequence[Value]) -> list[Value]:
        return list(word)


class IndicesType(SOp):
    def __call__(self, word: Sequence[Value]) -> list[Value]:
        return list(range(len(word)))


class LengthType(SOp):
    def __call__(self, word: Sequence[Value]) -> list[Value]:
        return [len(word)] * len(word)


tokens, indices, length = TokensType(), IndicesType(), LengthType()


class FullValue(SOp):
    def __init__(self, fill: Value) -> None:
        self.fill = fill

    def __call__(self, word: Sequence[Value]) -> list[Value]:
        return [self.fill] * len(word)


Full = FullValue


class SequenceMap(SOp):
    def __init__(self, f: Function, fst: SOp, snd: SOp, sign: object = None) -> None:
        self.f, self.sign = f, sign
        self.inner: tuple[SOp, ...] = (_need(SOp, fst), _need(SOp, snd))

    def __call__(self, word: Sequence[Value]) -> list[Value]:
        rows = zip(*(inner(word) for inner in self.inner), strict=True)
        return [None if any(value is None for value in row) else self.f(*row) for row in rows]


class LinearSequenceMap(SequenceMap):
    def __init__(self, fst: SOp, snd: SOp, fst_fac: float, snd_fac: float) -> None:
        super().__init__(lambda x, y: fst_fac * x + snd_fac * y, fst, snd, sign=(fst_fac, snd_fac))


class Map(SequenceMap):
    def __init__(self, f: Function, inner: SOp, simplify: bool = True, sign: object = None) -> None:
        del simplify  # functions of functions cost nothing here
        self.f, self.inner, self.sign = f, (_need(SOp, inner),), sign


def sop_not(sop: SOp) -> SOp:
    return ~sop


class KeyComparison(enum.Enum):
    EQ, LT, LEQ, GT, GEQ, NEQ, TRUE, FALSE = "==", "<", "<=", ">", ">=", "!=", "True", "False"

    def __call__(self, key: Value, query: Value) -> bool:
        if key is None or query is None:
            raise ValueError("a comparison of keys and queries needs two values, and one is None")
        return bool(COMPARED[self](key, query))


Comparison = KeyComparison
COMPARED: dict[KeyComparison, Function] = {
    Comparison.EQ: operator.eq,
    Comparison.LT: operator.lt,
    Comparison.LEQ: operator.le,
    Comparison.GT: operator.gt,
    Comparison.GEQ: operator.ge,
    Comparison.NEQ: operator.ne,
    Comparison.TRUE: lambda key, query: True,  # noqa: ARG005
    Comparison.FALSE: lambda key, query: False,  # noqa: ARG005
}


class KeySelector(RASPExpr):
    """For every query, which keys are selected; a combination has parts."""

    def __init__(self, sign: str, *parts: KeySelector) -> None:
        self.sign, self.parts = sign, tuple(_need(KeySelector, part) for part in parts)

    def __and__(self, other: KeySelector) -> KeySelector:
        return KeySelector("and", self, other)

    def __or__(self, other: KeySelector) -> KeySelector:
        return KeySelector("or", self, other)

    def __invert__(self) -> KeySelector:
        return KeySelector("not", self)

    def __call__(self, word: Sequence[Value]) -> list[list[bool]]:
        signs: dict[str, Function] = {"and": all, "or": any, "not": lambda chosen: not chosen[0]}
        both = signs[self.sign]
        rows = zip(*(part(word) for part in self.parts), strict=True)
        return [[bool(both(chosen)) for chosen in zip(*row, strict=True)] for row in rows]


Selector = KeySelector


class Select(KeySelector):
    def __init__(self, keys: SOp, queries: SOp, predicate: Function) -> None:
        super().__init__("select")
        self.keys, self.queries, self.predicate = _need(SOp, keys), _need(SOp, queries), predicate

    def __call__(self, word: Sequence[Value]) -> list[list[bool]]:
        keys = self.keys(word)
        return [[bool(self.predicate(key, query)) for key in keys] for query in self.queries(word)]


def selector_and(fst: KeySelector, snd: KeySelector, simplify: bool = True) -> KeySelector:
    del simplify
    return fst & snd


def selector_or(fst: KeySelector, snd: KeySelector, simplify: bool = True) -> KeySelector:
    del simplify
    return fst | snd


def selector_not(inner: KeySelector, simplify: bool = True) -> KeySelector:
    del simplify
    return ~inner


class SelectorWidth(SOp):
    def __init__(self, selector: KeySelector) -> None:
        self.selector = _need(KeySelector, selector)

    def __call__(self, word: Sequence[Value]) -> list[Value]:
        return [sum(row) for row in self.selector(word)]


class Aggregate(SOp):
    def __init__(self, selector: KeySelector, sop: SOp, default: Value = None) -> None:
        self.selector, self.sop, self.default = _need(KeySelector, selector), _need(SOp, sop), default

    def __call__(self, word: Sequence[Value]) -> list[Value]:
        values = self.sop(word)
        rows = [[v for v, chosen in zip(values, row, strict=True) if chosen] for row in self.selector(word)]
        return [row[0] if len(row) == 1 else sum(row) / len(row) if row else self.default for row in rows]


def numerical(sop: SOp) -> SOp:
    return sop.annotated(encoding="numerical")


def categorical(sop: SOp) -> SOp:
    return sop.annotated(encoding="categorical")


def is_numerical(sop: SOp) -> bool:
    return sop.encoding == "numerical"


def is_categorical(sop: SOp) -> bool:
    return not is_numerical(sop)


def evaluate(expr: RASPExpr, xs: Sequence[Value]) -> list[Any]:
    return expr(xs)


def _need(kind: type[Any], value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} must be {'values (an SOp)' if kind is SOp else 'a selector'}")
    return value
