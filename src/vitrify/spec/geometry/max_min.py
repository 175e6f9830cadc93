r"""CPWL functions as expressions: sums, multiples, maxima and minima of variables and numbers.

Every such expression is a maximum of minima of affine functions, $f = \max_i \min_{l \in S_i} l$ (`normal_form`), by
these rules, in which a form is a set of sets $S_i$:

| expression | form |
| --- | --- |
| $\max(F, G)$ | $F \cup G$ |
| $\min(F, G)$ | $\{S \cup T : S \in F, T \in G\}$ |
| $F + G$ | $\{\{s + t : s \in S, t \in T\} : S \in F, T \in G\}$ |
| $cF$, $c \ge 0$ | $\{\{cs : s \in S\} : S \in F\}$ |
| $-F = \min_i \max_{s \in S_i} -s$ | the minimum of the forms $\{\{-s\} : s \in S_i\}$ |

A set that contains another one is left out: its minimum is never larger.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from vitrify.arrays import Floats
from vitrify.errors import InputError
from vitrify.parameters import Help
from vitrify.spec.geometry.cpwl import MAX_NUMBER, Cpwl
from vitrify.spec.geometry.maxout import Layer, Maxout

Piece: TypeAlias = tuple[Fraction, ...]  # an affine function: its coefficients, then its constant
Form: TypeAlias = frozenset[frozenset[Piece]]  # the maximum over the sets of the minimum of the pieces in each
Node: TypeAlias = "AffineTerm | SumTerm | ScaledTerm | ExtremeTerm"
MAX_SETS = 512  # of a form, and pieces of a set
MAX_WORK = 200_000  # sets that may be made on the way
MAX_TEXT = 4000  # characters


class AffineTerm(NamedTuple):
    """An affine function, as it is."""

    piece: Piece


class SumTerm(NamedTuple):
    """The sum of two expressions."""

    left: Node
    right: Node


class ScaledTerm(NamedTuple):
    """An expression times a number."""

    factor: Fraction
    inner: Node


class ExtremeTerm(NamedTuple):
    """The largest or smallest of some expressions."""

    kind: Literal["max", "min"]
    inner: tuple[Node, ...]


@dataclass(frozen=True, kw_only=True)
class MaxMin(Cpwl):
    """A CPWL function given as an expression in x1, x2 …, with `+ - * /`, numbers, `max`, `min` and `abs`.

    >>> roof = MaxMin(box=((-1, 1), (-1, 1)), function="min(1 - abs(x1), 1 - abs(x2))")
    >>> roof(np.array([[0.5, -0.25]])).tolist(), len(roof.form), len(next(iter(roof.form)))
    ([[0.5]], 1, 4)
    """

    SAMPLES: ClassVar[dict[str, dict[str, object]]] = {
        "ridge": {"box": ((-1.0, 1.0), (-1.0, 1.0)), "function": "max(min(x1 + x2, 1 - x1), 0.5*x2 - 1)"},
        "valley": {"box": ((0.0, 2.0),), "function": "abs(x1 - 1) + 0.25"},
    }

    function: Annotated[str, Help("expression of +, -, *, /, max, min and abs")]

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        try:
            largest = max(abs(number) for each in self.form for piece in each for number in piece)
        except RecursionError:
            yield "function", "must not be nested that deeply"
        except InputError as error:
            yield "function", str(error)
        else:
            if largest > MAX_NUMBER:
                yield "function", f"must consist of affine functions with numbers up to {MAX_NUMBER:g}"

    @cached_property
    def _tree(self) -> Node:
        return parse(self.function, self.input_names)

    @cached_property
    def form(self) -> Form:
        """The function as a maximum of minima of affine functions."""
        return normal_form(self._tree)

    def __call__(self, x: Floats) -> Floats:
        return _value(self._tree, np.asarray(x, dtype=np.float64))[:, None]

    def corners(self) -> Floats:
        return self.box_corners

    def maxout(self) -> Maxout:
        return lattice(self.form, self.radius)


def lattice(form: Form, radius: float) -> Maxout:
    r"""Return the maxout network of a form: units $-\min_{S_i} l = \max_{S_i} -l$, then a unit $\max_i$.

    A single set needs no second maximum, sets of one piece need no first.
    """
    sets = sorted(sorted(each) for each in form)
    if max(map(len, sets)) == 1:
        return Maxout((Layer(*_table([[piece for (piece,) in sets]])),), radius)
    weights, biases = _table([[tuple(-a for a in piece) for piece in each] for each in sets])
    minima = Layer(weights, biases)
    return Maxout((minima, Layer(-np.eye(len(sets))[None], np.zeros((1, len(sets))))), radius)


def difference(first: Iterable[Piece], second: Iterable[Piece], radius: float) -> Maxout:
    """Return the maxout network of a maximum of affine functions minus another: one layer that takes maxima."""
    layer = Layer(*_table([sorted(first), sorted(second)]))
    return Maxout((layer, Layer.of([[1.0, -1.0]], [0.0])), radius)


def _table(units: Sequence[Sequence[Piece]]) -> tuple[Floats, Floats]:
    """Return weights [unit, piece, input] and biases of units; the last piece is repeated where there are fewer."""
    rank = max(map(len, units))
    table = np.array([[*unit, *[unit[-1]] * (rank - len(unit))] for unit in units], dtype=np.float64)
    return table[..., :-1], table[..., -1]


def minimal(sets: Iterable[frozenset[Piece]]) -> Form:
    """Return the sets that contain no other one."""
    kept: list[frozenset[Piece]] = []
    for each in sorted(set(sets), key=len):
        if not any(other <= each for other in kept):
            kept.append(each)
    return frozenset(kept)


def normal_form(node: Node) -> Form:
    """Return an expression as a maximum of minima of affine functions; refuse one that gets too large."""
    match node:
        case AffineTerm(piece):
            return frozenset({frozenset({piece})})
        case ExtremeTerm("max", inner):
            return _bounded(minimal(each for part in inner for each in normal_form(part)))
        case ExtremeTerm(_, inner):
            return reduce(_minimum, map(normal_form, inner))
        case SumTerm(left, right):
            pairs = _pairs(normal_form(left), normal_form(right))
            return _bounded(minimal(frozenset(_plus(s, t) for s, t in product(one, other)) for one, other in pairs))
        case ScaledTerm(factor, inner):
            form = frozenset(frozenset(_times(factor, s) for s in each) for each in normal_form(inner))
            if factor >= 0:
                return minimal(form)
            return reduce(_minimum, [frozenset(frozenset({s}) for s in each) for each in sorted(form, key=sorted)])


def _minimum(left: Form, right: Form) -> Form:
    return _bounded(minimal(one | other for one, other in _pairs(left, right)))


def _pairs(left: Form, right: Form) -> Iterable[tuple[frozenset[Piece], frozenset[Piece]]]:
    if len(left) * len(right) * max(map(len, left)) * max(map(len, right)) > MAX_WORK:
        raise InputError("must be smaller: as a maximum of minima it takes too many affine functions")
    return product(left, right)


def _bounded(form: Form) -> Form:
    if max(len(form), *map(len, form)) > MAX_SETS:
        raise InputError(f"must be smaller: as a maximum of minima it has more than {MAX_SETS} sets or pieces in a set")
    return form


def _plus(left: Piece, right: Piece) -> Piece:
    return tuple(a + b for a, b in zip(left, right, strict=True))


def _times(factor: Fraction, piece: Piece) -> Piece:
    return tuple(factor * a for a in piece)


def _value(node: Node, x: Floats) -> Floats:
    """Return the values of an expression at points [batch, input], by the expression itself."""
    match node:
        case AffineTerm(piece):
            return np.asarray(x @ np.array(piece[:-1], dtype=np.float64) + float(piece[-1]))
        case SumTerm(left, right):
            return _value(left, x) + _value(right, x)
        case ScaledTerm(factor, inner):
            return float(factor) * _value(inner, x)
        case ExtremeTerm(kind, inner):
            return np.asarray(reduce(np.maximum if kind == "max" else np.minimum, [_value(part, x) for part in inner]))


# Text


def parse(text: str, names: Sequence[str]) -> Node:
    """Return the tree of an expression in variables of these names."""
    try:
        return _node(ast.parse(text.strip() if len(text) <= MAX_TEXT else "(", mode="eval").body, names)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(
            f"must be one expression of at most {MAX_TEXT:,} characters, such as max(2*x1, min(1 - x2, 0))"
        ) from None


def _node(tree: ast.expr, names: Sequence[str]) -> Node:
    size = len(names) + 1
    match tree:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool) and number <= MAX_NUMBER:
            return AffineTerm((*[Fraction(0)] * (size - 1), Fraction(number)))
        case ast.Name(id=name) if name in names:
            return AffineTerm(tuple(Fraction(i == names.index(name)) for i in range(size)))
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _node(inner, names)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _multiple(Fraction(-1), _node(inner, names))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
            added = _node(right, names)
            return _sum(_node(left, names), added if isinstance(sign, ast.Add) else _multiple(Fraction(-1), added))
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as sign, right=right):
            one, other = _node(left, names), _node(right, names)
            factor = _number(other)
            if isinstance(sign, ast.Div) and factor:
                return _multiple(1 / factor, one)
            if isinstance(sign, ast.Mult) and factor is not None:
                return _multiple(factor, one)
            if isinstance(sign, ast.Mult) and (factor := _number(one)) is not None:
                return _multiple(factor, other)
            raise InputError(f"must be piecewise linear, but {ast.unparse(tree)!r} is no product with a number")
        case ast.Call(func=ast.Name(id="max" | "min" as kind), args=[_, *_] as args, keywords=[]):
            return ExtremeTerm("max" if kind == "max" else "min", tuple(_node(arg, names) for arg in args))
        case ast.Call(func=ast.Name(id="abs"), args=[arg], keywords=[]):
            inside = _node(arg, names)
            return ExtremeTerm("max", (inside, _multiple(Fraction(-1), inside)))
    known = ", ".join(names)
    raise InputError(
        f"must consist of {known}, numbers, + - * /, max, min and abs, which {ast.unparse(tree)!r} does not"
    )


def _sum(left: Node, right: Node) -> Node:
    if isinstance(left, AffineTerm) and isinstance(right, AffineTerm):
        return AffineTerm(_plus(left.piece, right.piece))
    return SumTerm(left, right)


def _multiple(factor: Fraction, inner: Node) -> Node:
    return AffineTerm(_times(factor, inner.piece)) if isinstance(inner, AffineTerm) else ScaledTerm(factor, inner)


def _number(node: Node) -> Fraction | None:
    """Return the number that an expression is, if it is one."""
    return node.piece[-1] if isinstance(node, AffineTerm) and not any(node.piece[:-1]) else None
