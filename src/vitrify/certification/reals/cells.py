"""Recurrent cells on fractions and balls: one state after the other, by the equations of `net/cells.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add

from flint import arb, fmpq

from vitrify.certification.reals.matrices import Entry, RealMatrix, below, each, ones, relu, zeros
from vitrify.net.cells import Cell

Arrays = Callable[..., RealMatrix]  # an array by its name: times given rows (one matrix of a stack), or as it is


def states(cell: Cell, arrays: Arrays, x: RealMatrix) -> RealMatrix:
    """The states [position, state] of a cell that is driven by the rows of x."""
    h = c = zeros(1, cell.state)
    hidden = []
    for row in rows_of(x):
        driven = arrays("W_B", row)
        if cell.kind == "lstm":
            gates = arrays("W_A", h) + driven + arrays("b")
            i, f, g, o = (gates.pick(range(at * cell.state, (at + 1) * cell.state)) for at in range(4))
            c = times(_curve(f, _sigmoid), c) + times(_curve(i, _sigmoid), _curve(g, arb.tanh))
            h = times(_curve(o, _sigmoid), _curve(c, arb.tanh))
        else:
            h = _turned(cell, arrays, h, row) + driven
            h = relu(h) if cell.kind == "relu" else h
        hidden.append(h)
    return below(hidden)


def _turned(cell: Cell, arrays: Arrays, h: RealMatrix, row: RealMatrix) -> RealMatrix:
    """The part of the next state that comes from the one before."""
    if cell.kind == "diagonal":
        return times(h, arrays("W_A", row))
    if cell.kind in ("positive", "signed"):
        scale = arrays("W_A", row) + arrays("b")
        return times(h, _curve(scale, _sigmoid if cell.kind == "positive" else arb.tanh))
    if cell.kind == "householder":
        for factor in range(cell.factors):
            v = arrays("W_A", row, factor)
            h = h + times((h @ v.T @ ones(cell.state).T).times(-1.0), v)
        return h
    if cell.kind == "full":
        return reduce(add, (times(repeated(row, i, cell.state), arrays("W_A", h, i)) for i in range(row.shape[1])))
    return arrays("W_A", h)


def repeated(row: RealMatrix, place: int, wide: int) -> RealMatrix:
    """One entry of a row, repeated."""
    return row.pick([place]) @ ones(wide).T


def rows_of(x: RealMatrix) -> list[RealMatrix]:
    """The rows, one by one."""
    turned = x.T
    return [turned.pick([place]).T for place in range(x.shape[0])]


def times(x: RealMatrix, y: RealMatrix) -> RealMatrix:
    """The products of the entries at the same place."""

    def product(left: Entry, right: Entry) -> Entry:
        (a, p), (b, q) = left, right
        return a * b, arb(a) * q + arb(b) * p + p * q

    return each(product, x, y)


def _curve(x: RealMatrix, curve: Callable[[arb], arb]) -> RealMatrix:
    """A smooth function of every entry."""

    def value(entry: Entry) -> Entry:
        return fmpq(0), curve(arb(entry[0]) + entry[1])

    return each(value, x)


def _sigmoid(x: arb) -> arb:
    return 1 / (1 + (-x).exp())
