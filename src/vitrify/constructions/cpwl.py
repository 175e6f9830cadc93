r"""Continuous piecewise linear functions of several variables become transformers, by way of maxout networks.

In the spirit of Gu, Yang & Zhou (2026, arXiv 2603.03084), by whom a transformer computes any maxout network
(`constructions/maxout.py`). With $d$ variables:

- An expression that is the maximum of the minima of $K$ sets of affine functions has $K$ heads for the minima and one
  for the maximum (`spec/geometry/max_min.py`), on as many positions as the largest set or $K$.
- A triangulation is brought to this form (`spec/geometry/triangulation.py`). With $n$ different affine functions on
  $N$ simplices, each is cut into at most $C = \sum_{k \le d} \binom{n-1}{k}$ cells, so $K \le NC$.
- A triangulation is also a difference of two convex functions, each a maximum of affine functions: two heads in one
  attention layer (`convex-parts`, as `convex-difference` for one variable). With $m$ inner facets at which the
  function bends downwards, they have at most $NC$ pieces each, $C = \sum_{k \le d} \binom{m}{k}$.
- A grid with values other than 0 at $V$ vertices has $2V$ heads for the maxima within hats and $V$ for the hats, on
  $d + 1$ positions (`spec/geometry/grid.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, Tolerance, construction
from vitrify.constructions.maxout import maxout, sizes_of
from vitrify.errors import InputError
from vitrify.kit.network import Network
from vitrify.spec.geometry.grid import GridFunction
from vitrify.spec.geometry.max_min import MaxMin, difference
from vitrify.spec.geometry.maxout import Maxout
from vitrify.spec.geometry.triangulation import Triangulation


def max_min_sizes(spec: MaxMin) -> DeclaredSizes:
    """Return all sizes: a unit for each set, and one for the maximum; a convex or concave function needs one unit."""
    sets = tuple(sorted(map(len, spec.form)))
    return sizes_of(spec.inputs, [(len(sets),)] if max(sets) == 1 else [sets, (len(sets),)])


def triangulation_sizes(spec: Triangulation) -> DeclaredSizes:
    """Return bounds, by the number of simplices and of different affine functions on them."""
    pieces = len(set(spec.pieces))
    sets = len(spec.simplices) * sum(comb(pieces - 1, k) for k in range(spec.inputs + 1))
    units = sets * (pieces + 2) + sets + 2
    width = spec.inputs + 2 * sets + max(sets, pieces)
    return DeclaredSizes(at_most={"layers": 3, "heads": sets + 1, "units": units, "d_model": width})


def hat_sizes(spec: GridFunction) -> DeclaredSizes:
    """Return all sizes, by the number of variables and of vertices whose value is not 0."""
    count = spec.support
    layers = [(spec.inputs + 1,) * (2 * count), (2,) * count, (1,)]
    return sizes_of(spec.inputs, layers if count else [(1,)])


def difference_sizes(spec: Triangulation) -> DeclaredSizes:
    """Return bounds, by the number of simplices and of hyperplanes on which facets lie at which the function bends."""
    pieces = len(spec.simplices) * sum(comb(len(spec.folds), k) for k in range(spec.inputs + 1))
    width = max(spec.inputs, 4) + pieces
    return DeclaredSizes(at_most={"layers": 2, "heads": 2, "units": 2 * pieces + 4, "d_model": width})


@construction(
    "max-min",
    "heads for the minima, one head for their maximum",
    max_min_sizes,
    default=True,
    certified=("sampled", "sampled"),
)
def max_min(spec: MaxMin, *, attention: Attention = "softmax", tolerance: Tolerance | None = None) -> Network:
    """Return the network of a function that is given as an expression."""
    return _through_maxout(spec.maxout, "max-min", attention, tolerance)


@construction(
    "triangulation",
    "heads for minima over cells, one head for their maximum",
    triangulation_sizes,
    default=True,
    certified=("sampled", "sampled"),
)
def triangulation(
    spec: Triangulation, *, attention: Attention = "softmax", tolerance: Tolerance | None = None
) -> Network:
    """Return the network of a function that is given by its values on a triangulation."""
    return _through_maxout(spec.maxout, "triangulation", attention, tolerance)


@construction(
    "convex-parts",
    "functions on triangulations: two heads in one attention layer",
    difference_sizes,
    certified=("sampled", "sampled"),
)
def convex_difference(
    spec: Triangulation, *, attention: Attention = "softmax", tolerance: Tolerance | None = None
) -> Network:
    """Return the network of a function on a triangulation as the difference of two convex ones."""
    return _through_maxout(
        lambda: difference(*spec.difference(spec.folds), spec.radius), "convex-parts", attention, tolerance
    )


@construction(
    "hats",
    "three heads for the hat function of each vertex of a grid",
    hat_sizes,
    default=True,
    certified=("sampled", "sampled"),
)
def hats(spec: GridFunction, *, attention: Attention = "softmax", tolerance: Tolerance | None = None) -> Network:
    """Return the network of a function that is given by its values on a grid."""
    return _through_maxout(spec.maxout, "hats", attention, tolerance)


def _through_maxout(
    network: Callable[[], Maxout], name: str, attention: Attention, tolerance: Tolerance | None
) -> Network:
    """Return the network of a function's maxout network; what is too large for one is refused."""
    try:
        return maxout(network(), name, attention=attention, tolerance=tolerance)
    except InputError as error:
        raise BuildRefused(str(error)) from None
