r"""Positions by formula: dimensions of the residual stream that are functions of the position, computed in each run.

The token $t = 1, 2, \dots$ has $\sum_k c_k t^k$ in the dimension of a formula; pads have $t = 0$. No array depends on
the length of a sequence. Coefficients are whole numbers, and so are all results, which a format of $p$ significant bits
holds exactly while $\sum_k |c_k| t^k \le 2^p$ (`exact_to`): to that length the same weights read every sequence. A
longer one is refused, and one on which the format rounds too much (`Transformer.rounding`).

A formula may also be of $t \bmod 2$ instead of $t$, or the natural logarithm of its polynomial, 0 where that is below
1. A logarithm is the only one that is rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np

from vitrify.arrays import Array, Bools, Float, Int, namespace
from vitrify.encoding import added
from vitrify.errors import InputError
from vitrify.parameters import Within

if TYPE_CHECKING:
    from vitrify.net.transformer import Transformer
    from vitrify.net.weights import Weights

FLOAT64_BITS = 53
MAX_DEGREE = 8
W = TypeVar("W", bound="Weights[Any]")
Coefficient = Annotated[int, Within(-(1 << FLOAT64_BITS), 1 << FLOAT64_BITS)]
Function = Literal["polynomial", "polynomial of t mod 2", "logarithm"]


@dataclass(frozen=True)
class PositionFormula:
    """A dimension and its coefficients, that of $t^0$ first, and the function of which they are the coefficients.

    >>> PositionFormula(3, (0, 0, 1)).exact_to(53)
    94906265
    """

    dim: Annotated[int, Within(0, 1 << 40)]
    coefficients: Annotated[tuple[Coefficient, ...], Within(1, MAX_DEGREE + 1)]
    function: Function = added("polynomial")  # noqa: RUF009  # a string: ruff does not see through the alias

    def exact_to(self, bits: int) -> int:
        """Return the last token whose value, and every step on the way to it, is exact with so many bits."""
        if self.function == "polynomial of t mod 2":
            return 1 << bits
        return _largest(lambda t: sum(abs(c) * t**power for power, c in enumerate(self.coefficients)), 1 << bits)


def largest_root(number: int, power: int) -> int:
    """Return the largest whole number whose power is at most a number.

    >>> [largest_root(1000, power) for power in (1, 2, 3)]
    [1000, 31, 10]
    """
    return _largest(lambda root: root**power, number)


def _largest(growing: Callable[[int], int], most: int) -> int:
    """Return the largest whole number up to `most` at which a growing function is at most `most`."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if growing(middle) <= most else (low, middle - 1)
    return low


def rows_by_formula(
    net: Transformer, positions: Int[Array, "*lead pos"], tokens: int, kind: np.dtype
) -> Float[Array, "*lead pos dim"]:
    """Return the position embeddings of some positions, the pads included, of a sequence of so many tokens."""
    xp = namespace(positions)
    longest = net.exact_to(xp.finfo(kind).nmant + 1)
    if tokens > longest:
        wider = "" if kind == np.float64 else " or float64"
        raise InputError(
            f"the sequence has {tokens} tokens, and {kind} carries this network exactly up to {longest}: use a shorter "
            f"sequence{wider}"
        )
    t = xp.maximum(positions - net.pads + 1, 0).astype(kind)[..., None]
    parity, logarithm = (_dims(net, name) for name in ("polynomial of t mod 2", "logarithm"))
    t = xp.where(parity, t % 2, t) if parity.any() else t
    rows = xp.zeros((*positions.shape, net.d_model), dtype=kind)
    for power in _powers(net)[::-1]:  # Horner's rule: every step is a whole number
        rows = rows * t + xp.asarray(power, dtype=kind)
    return xp.where(logarithm, xp.log(xp.maximum(rows, 1)), rows) if logarithm.any() else rows


def _dims(net: Transformer, function: Function) -> Bools:
    """Return which dimensions have formulas of a function."""
    return np.isin(np.arange(net.d_model), [formula.dim for formula in net.formulas if formula.function == function])


def _powers(net: Transformer) -> Float[np.ndarray, "power dim"]:
    """Return the coefficients by power and dimension."""
    table = np.zeros((max((len(formula.coefficients) for formula in net.formulas), default=0), net.d_model))
    for formula in net.formulas:
        table[: len(formula.coefficients), formula.dim] = formula.coefficients
    return table


def tabulated(weights: W) -> W:
    """Return the network that computes the same up to its maximum length, from a table of positions."""
    net = weights.architecture
    if getattr(net, "tabled", True):
        return weights
    table = rows_by_formula(net, np.arange(net.positions), net.max_length, np.dtype(np.float64))
    stored = replace(net, formulas=(), rounding=0, rounding_power=2)
    return replace(weights, architecture=stored, arrays={**weights.arrays, "pos_embed.W_pos": table})
