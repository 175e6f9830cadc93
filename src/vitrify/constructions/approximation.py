r"""Universal approximation as a builder: a network within `eps` of any continuous function on a box.

Let $I f$ be the interpolant of $f$ on a grid of steps $h_1, \dots, h_d$ with Kuhn's triangulation
(`spec/geometry/grid.py`). At every point it is a mean of values of $f$ at vertices of one cell, so with $h = \max h_i$

| known of $f$ | error of the interpolant | steps |
| --- | --- | --- |
| modulus of continuity $\omega$, in the maximum norm | $\omega(h)$ | |
| Lipschitz constant $L$ in that norm, $\sup \lvert\nabla f\rvert_1$ | $\frac34 Lh$ | $h_i \le 4\epsilon'/(3L)$ |
| spectral norm of the second derivatives, at most $M$ | $\frac{M}{8} \sum h_i^2$ | $h_i \le \sqrt{8\epsilon'/(Md)}$ |
| nothing | sampled | halved until no sample errs by more |

**Second line.** In units of the steps let $1 = t_0 \ge t_1 \ge \dots \ge t_d \ge t_{d+1} = 0$ be the coordinates of
$x$ in its cell. Vertex $k$ of the simplex has ones for the $k$ largest, the weight $t_k - t_{k+1}$ and the distance
$\max(1 - t_k, t_{k+1})$, at most $\max(1 - s, s)$ for all $s$ between $t_{k+1}$ and $t_k$. So the mean distance is at
most $\int_0^1 \max(1 - s, s)\,ds = \frac34$.

**Third line.** $\lvert f - I f\rvert \le \frac M2 \sum_k \lambda_k \lvert v_k - x\rvert^2$ by Taylor's theorem, with
the barycentric coordinates $\lambda$ of $x$. This mean is $r^2 - \lvert x - c\rvert^2$ if all vertices $v_k$ of the
simplex have the same distance $r$ from $c$. All vertices of a cell have the distance $r = \frac12 \sqrt{\sum h_i^2}$
from its middle. $f = \frac M2 \lvert x\rvert^2$ attains the bound there.

A network computes $I f$ up to the error of soft attention and of rounding, which are bounded as well (in the spirit of
Gu, Yang & Zhou 2026, arXiv 2603.03084). The three bounds add up to at most `eps`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite, prod
from typing import Any, Literal, TypeAlias

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.catalogue import Attention, BuildRefused, build
from vitrify.errors import InputError
from vitrify.net.inference import outputs
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.geometry.grid import MAX_VERTICES, GridFunction, vertices_of

Function: TypeAlias = Callable[[Floats], object]  # points [point, input] → values [point]
Known: TypeAlias = Literal["lipschitz", "hessian", "sampled"]
SOFT_SHARE, HARD_SHARE = 0.5, 0.999  # of eps for the interpolant; the rest is for attention and rounding
EMULATION_SHARE = 0.9  # of that rest for soft attention
SAMPLES = 4000  # points at which f is compared with its interpolant
ROUNDING = 1e-9  # of values of f, relative to the largest


@dataclass(frozen=True)
class Approximation:
    """A network that computes a function up to an error, and where the error comes from.

    `known` is what bounds the error of the interpolant; if that is "sampled", it is no bound but the largest error at
    some points.
    """

    grid: GridFunction
    weights: Weights[Transformer]
    known: Known
    interpolation_error: float

    @property
    def emulation_error(self) -> float:
        """A bound on the error by soft attention, 0 under hard attention."""
        return float(self.weights.about["error bound"])

    @property
    def rounding_error(self) -> float:
        return float(self.weights.about["rounding allowed"])

    @property
    def error(self) -> float:
        """The sum of the three errors."""
        return self.interpolation_error + self.emulation_error + self.rounding_error

    @property
    def proved(self) -> bool:
        """Return whether the error is a bound for all points of the box, given the constant."""
        return self.known != "sampled"

    def __call__(self, x: Floats) -> Floats:
        """Return the network's values [point] at points [point, input]."""
        return outputs(self.weights, np.asarray(x, dtype=np.float64))[:, 0]

    def __str__(self) -> str:
        source = {"lipschitz": "by the Lipschitz constant", "hessian": "by the second derivatives"}
        return (
            f"within {self.error:.4g}{'' if self.proved else ' at all sampled points'}: "
            f"{self.interpolation_error:.4g} by interpolation ({source.get(self.known, 'sampled')}), "
            f"{self.emulation_error:.2g} by attention, {self.rounding_error:.2g} by rounding; "
            f"{' × '.join(map(str, self.grid.cells))} cells, {self.weights.sizes.heads} heads"
        )


def approximate(
    f: Function,
    box: Sequence[tuple[float, float]],
    eps: float,
    *,
    lipschitz: float | None = None,
    hessian: float | None = None,
    attention: Attention = "softmax",
) -> Approximation:
    """Return a network within `eps` of a function on a box, on the coarsest grid that the error bound allows.

    `f` maps points [point, input] to values [point]. `lipschitz` bounds the sum of the sizes of its partial
    derivatives, `hessian` the spectral norm of its second derivatives. Without either, the error is sampled.

    >>> net = approximate(lambda x: abs(x[:, 0] - x[:, 1]), [(0, 1), (0, 1)], 0.8, lipschitz=2, attention="hard")
    >>> str(net).split('; ')[1], round(net.error, 6)
    ('2 × 2 cells, 18 heads', 0.75)
    >>> bool(abs(net(np.array([[0.25, 0.75]])) - 0.5) < 1e-12)
    True
    """
    sides = _sides(box, eps, lipschitz, hessian)
    target = eps * (HARD_SHARE if attention == "hard" else SOFT_SHARE)
    grid, known, error = (
        _refined(f, box, target)
        if lipschitz is None and hessian is None
        else _stepped(f, box, sides, target, lipschitz, hessian)
    )
    choices: dict[str, Any] = {} if attention == "hard" else {"tolerance": EMULATION_SHARE * (eps - error)}
    refusal = f"double precision does not keep an error of {eps:g} for values of this size: use a larger eps"
    try:
        weights = build(grid, attention=attention, **choices)
    except BuildRefused as why:
        raise BuildRefused(f"{refusal} ({why})") from None
    made = Approximation(grid, weights, known, error)
    if not made.error <= eps:
        raise BuildRefused(refusal)
    about = {**weights.about, "interpolation error": error, "interpolation": known, "error": made.error}
    return replace(made, weights=replace(weights, about=about))


def _sides(
    box: Sequence[tuple[float, float]], eps: float, lipschitz: float | None, hessian: float | None
) -> list[float]:
    """Return the sides of the box; refuse numbers that make no sense."""
    if not (isfinite(eps) and eps > 0):
        raise InputError(f"eps must be a positive number, got {eps}")
    if lipschitz is not None and hessian is not None:
        raise InputError("give lipschitz or hessian, not both: the grid follows from one of them")
    for name, constant in (("lipschitz", lipschitz), ("hessian", hessian)):
        if constant is not None and not (isfinite(constant) and constant >= 0):
            raise InputError(f"{name} must be a number of at least 0, got {constant}")
    if not box or not all(isfinite(high - low) and low < high for low, high in box):
        raise InputError(f"the box must have an interval (low, high) with low < high for each variable, got {box}")
    return [high - low for low, high in box]


def _stepped(
    f: Function,
    box: Sequence[tuple[float, float]],
    sides: Sequence[float],
    target: float,
    lipschitz: float | None,
    hessian: float | None,
) -> tuple[GridFunction, Known, float]:
    """Return the coarsest grid whose error bound is at most the target; refuse a constant that samples contradict."""
    known: Known = "hessian" if lipschitz is None else "lipschitz"
    constant = lipschitz if lipschitz is not None else hessian or 0.0
    ratio = constant / target
    step = inf if not ratio else 4 / (3 * ratio) if known == "lipschitz" else (8 / (ratio * len(sides))) ** 0.5
    cells = tuple(max(1, ceil(min(side / step * (1 - 1e-12), 1e9))) for side in sides)
    grid = _interpolant(f, box, cells)
    error = interpolation_bound(grid, **{known: constant})
    off, point = _off(f, grid)
    if off > error + ROUNDING * float(np.abs(grid.values).max()):
        raise InputError(
            f"{known}={constant:g} is too small: it allows an error of {error:.4g} between vertices, but at "
            f"({', '.join(f'{x:.4g}' for x in point)}) f is {off:.4g} off"
        )
    return grid, known, error


def interpolation_bound(grid: GridFunction, *, lipschitz: float | None = None, hessian: float | None = None) -> float:
    """Return the bound on the distance of a function from its interpolant on a grid."""
    steps = grid.steps
    return float(0.75 * steps.max() * lipschitz if lipschitz is not None else (hessian or 0.0) * (steps**2).sum() / 8)


def _refined(f: Function, box: Sequence[tuple[float, float]], target: float) -> tuple[GridFunction, Known, float]:
    """Return the first grid of 1, 2, 4 … cells along each variable from which f is nowhere sampled far."""
    cells = 1
    while True:
        grid = _interpolant(f, box, (cells,) * len(box))
        off, _ = _off(f, grid)
        if off <= target:
            return grid, "sampled", off
        cells *= 2


def _interpolant(f: Function, box: Sequence[tuple[float, float]], cells: tuple[int, ...]) -> GridFunction:
    """Return the interpolant of a function; refuse a grid that is too large for a network."""
    count = prod(number + 1 for number in cells)
    if count > MAX_VERTICES:
        raise BuildRefused(
            f"the bound needs a grid of {' × '.join(map(str, cells))} cells with {count:,} vertices, more than "
            f"{MAX_VERTICES:,}: use a larger eps, a smaller box or, for a smooth function, hessian=…"
        )
    bounds = tuple((float(low), float(high)) for low, high in box)
    low, high = np.array(bounds).T
    values = _values(f, vertices_of(low, high, cells))
    return GridFunction(box=bounds, cells=cells, values=tuple(values.tolist()))


def _off(f: Function, grid: GridFunction) -> tuple[float, Floats]:
    """Return the largest distance of a function from its interpolant at random points of the box, and the point."""
    x = np.random.default_rng(0).uniform(grid.low, grid.high, size=(SAMPLES, grid.inputs))
    distances = np.abs(_values(f, x) - grid(x)[:, 0])
    return float(distances.max()), x[distances.argmax()]


def _values(f: Function, x: Floats) -> Floats:
    values = np.asarray(f(x), dtype=np.float64)
    if values.shape != (len(x),) or not np.isfinite(values).all():
        raise InputError(
            f"f must map points of shape {x.shape} to {len(x)} finite numbers, got an array of shape {values.shape}"
        )
    return values
