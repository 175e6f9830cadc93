r"""Positions by formula: dimensions of the residual stream that are polynomials of the position, computed in each run.

The token $t = 1, 2, \dots$ has $\sum_k c_k t^k$ in the dimension of a formula; pads have $t = 0$. No array depends on
the length of a sequence. Coefficients are whole numbers, and so are all results, which a format of $p$ significant bits
holds exactly while $\sum_k |c_k| t^k \le 2^p$ (`exact_to`): to that length the same weights read every sequence. A
longer one is refused, and one on which the format rounds too much (`Transformer.rounding`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np

from vitrify.arrays import Array, Float, Int, namespace
from vitrify.errors import InputError
from vitrify.parameters import Within

if TYPE_CHECKING:
    from vitrify.net.transformer import Transformer
    from vitrify.net.weights import Weights

FLOAT64_BITS = 53
MAX_DEGREE = 8
W = TypeVar("W", bound="Weights[Any]")
Coefficient = Annotated[int, Within(-(1 << FLOAT64_BITS), 1 << FLOAT64_BITS)]


@dataclass(frozen=True)
class PositionFormula:
    """A dimension and its coefficients, that of $t^0$ first.

    >>> PositionFormula(3, (0, 0, 1)).exact_to(53)
    94906265
    """

    dim: Annotated[int, Within(0, 1 << 40)]
    coefficients: Annotated[tuple[Coefficient, ...], Within(1, MAX_DEGREE + 1)]

    def exact_to(self, bits: int) -> int:
        """Return the last token whose value, and every step on the way to it, is exact with so many bits."""
        low, high = 0, 1 << bits
        while low < high:
            middle = (low + high + 1) // 2
            most = sum(abs(c) * middle**power for power, c in enumerate(self.coefficients))
            low, high = (middle, high) if most <= 1 << bits else (low, middle - 1)
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
    rows = xp.zeros((*t.shape[:-1], net.d_model), dtype=kind)
    for power in _powers(net)[::-1]:  # Horner's rule: every step is a whole number
        rows = rows * t + xp.asarray(power, dtype=kind)
    return rows


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
    stored = replace(net, formulas=(), rounding=0)
    return replace(weights, architecture=stored, arrays={**weights.arrays, "pos_embed.W_pos": table})
