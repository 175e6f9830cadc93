"""Recurrent cells on fractions and balls: one state after the other, by the equations of `net/cells.py`."""

from __future__ import annotations

from collections.abc import Callable

from flint import arb, fmpq

from vitrify.certification.reals.matrices import Entry, RealMatrix, below, each, ones, relu, zeros
from vitrify.certification.reals.steps import Rounded, sizes
from vitrify.errors import InputError
from vitrify.net.cells import Cell

Arrays = Callable[
    ..., RealMatrix
]  # an array by its name: times rows that are given (one matrix of a stack), or as it is


def states(cell: Cell, arrays: Arrays, x: RealMatrix, rounded: Rounded) -> RealMatrix:
    """The states [position, state] of a cell that is driven by the rows of x."""
    if rounded.u and cell.parallel:
        raise InputError("the rounding of a parallel cell, which adds up in another order, is not bounded")
    h = c = zeros(1, cell.state)
    hidden = []
    for row in rows_of(x):
        driven = arrays("W_B", row)
        if cell.kind == "lstm":
            gates = rounded.sum([arrays("W_A", h), driven, arrays("b")])
            i, f, g, o = (gates.pick(range(at * cell.state, (at + 1) * cell.state)) for at in range(4))
            remembered = times(_curve(f, _sigmoid, rounded), c, rounded)
            c = rounded.sum([remembered, times(_curve(i, _sigmoid, rounded), _curve(g, arb.tanh, rounded), rounded)])
            h = times(_curve(o, _sigmoid, rounded), _curve(c, arb.tanh, rounded), rounded)
        else:
            h = rounded.sum([_turned(cell, arrays, h, row, rounded), driven])
            h = relu(h) if cell.kind == "relu" else h
        hidden.append(h)
    return below(hidden)


def _turned(cell: Cell, arrays: Arrays, h: RealMatrix, row: RealMatrix, rounded: Rounded) -> RealMatrix:
    """The part of the next state that comes from the one before."""
    if cell.kind == "diagonal":
        return times(h, arrays("W_A", row), rounded)
    if cell.kind in ("positive", "signed"):
        scale = rounded.sum([arrays("W_A", row), arrays("b")])
        return times(h, _curve(scale, _sigmoid if cell.kind == "positive" else arb.tanh, rounded), rounded)
    if cell.kind == "householder":
        for factor in range(cell.factors):
            v = arrays("W_A", row, factor)
            along = h @ v.T
            if rounded.u:
                along = rounded.widened(along, sizes(h.as_balls()) * sizes(v.as_balls()).transpose(), cell.state + 2)
            h = rounded.sum([h, times((along @ ones(cell.state).T).times(-1.0), v, rounded)])
        return h
    if cell.kind == "full":
        parts = [times(repeated(row, i, cell.state), arrays("W_A", h, i), rounded) for i in range(row.shape[1])]
        return rounded.sum(parts)
    return arrays("W_A", h)


def repeated(row: RealMatrix, place: int, wide: int) -> RealMatrix:
    """One entry of a row, repeated."""
    return row.pick([place]) @ ones(wide).T


def rows_of(x: RealMatrix) -> list[RealMatrix]:
    """The rows, one by one."""
    turned = x.T
    return [turned.pick([place]).T for place in range(x.shape[0])]


def times(x: RealMatrix, y: RealMatrix, rounded: Rounded) -> RealMatrix:
    """The products of the entries at the same place."""

    def product(left: Entry, right: Entry) -> Entry:
        (a, p), (b, q) = left, right
        return a * b, arb(a) * q + arb(b) * p + p * q

    products = each(product, x, y)
    return rounded.widened(products, sizes(products.as_balls()), 1)


def _curve(x: RealMatrix, curve: Callable[[arb], arb], rounded: Rounded) -> RealMatrix:
    """A smooth function, of at most 1, of every entry; a sigmoid is as good as its sum of 1 and a tanh."""

    def value(entry: Entry) -> Entry:
        return fmpq(0), curve(arb(entry[0]) + entry[1])

    return rounded.widened(each(value, x), ones(x.shape[0]).as_balls() * ones(x.shape[1]).T.as_balls(), 8)


def _sigmoid(x: arb) -> arb:
    return 1 / (1 + (-x).exp())
