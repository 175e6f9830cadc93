r"""A maxout network becomes a transformer: attention takes the maxima, the MLPs are the affine pieces.

In the spirit of Gu, Yang & Zhou (2026, arXiv 2603.03084). The input vector stands at every position. Position $j$
stands for piece $j$ of every unit, in every layer; all positions hold all activations $z$. Before layer $l$ the MLP
writes $w_{ij} \cdot z + b_{ij}$ at position $j$ into coordinate $i$ of a space, and a number below all pieces of unit
$i$ where it has no piece $j$ (`affine_where`). Head $i$ has the constant query 1 and takes coordinate $i$ as key and as
value: hard attention finds the largest, $z_i$, and every position gets it. An affine last layer is the unembedding and
costs nothing.

For $L$ layers that take maxima, $n_l$ units with $k_{li}$ pieces that differ, $n = \max n_l$, $k = \max k_{li}$:

| part | size |
| --- | --- |
| positions | $k$ |
| blocks | $L + 1$, the first without heads, the last without MLP |
| heads | $n_l$, of dimension 1 |
| hidden units | $\sum_i k_{li}$ for layer $l$'s pieces, and one per dimension used again: $nk + 2n$ for equal layers |
| residual stream | $2n + k$ for equal layers: $z$, the pieces, and which pieces a position does not stand for |

(`sizes` has the formulas for unequal layers.) The maxout network itself has $nk(n+1)$ numbers per layer; the MLP has
them too, and no others that depend on the data.

**Soft attention** falls short of a maximum by $c_k/\beta$ at most (`kit.heads.maximum`), and later layers steepen that
by $\Lambda_l = \max_{ij} |w_{ij}|_1$ each: $\text{error} \le \frac1\beta \sum_l c_{k_l} \prod_{l' > l} \Lambda_{l'}$.
The inverse temperature $\beta$ is chosen from the tolerance by this formula; `about` has it as `inverse temperature`.

The construction `convex-difference` writes a function of one variable, whatever network it comes from, as $g - h$ with
$g$ and $h$ convex: two heads in one attention layer, whose pieces are one more than the function has itself. It has at
most $P = \prod_l (1 + \sum_i (k_{li} - 1))$, as units bend at most $k_{li} - 1$ times between two bends of the layer
below: at most $P + 5$ units in a width of at most $\max(P + 1, 4)$.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod

import numpy as np

from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, Size, Tolerance, construction
from vitrify.errors import InputError
from vitrify.kit.gadgets.affine import AffineCase, affine_where
from vitrify.kit.heads.maximum import SEPARATION, maximum, shortfall
from vitrify.kit.margins import round_up
from vitrify.kit.network import AttentionKind, Builder, MultiHot, Network, Output, Readout, Reals, Space
from vitrify.spec.geometry.maxout import Layer, Maxout
from vitrify.spec.geometry.regions import regions

TOLERANCE = 1e-6  # default error of an output by soft attention
ROUNDING = 1e-12  # error of an output by rounding, for activations up to 1
MAX_ACTIVATION = 2.0**40  # beyond it, float64 can't keep the tolerance


def sizes(spec: Maxout) -> DeclaredSizes:
    """Return all sizes, for layers of any shapes."""
    return sizes_of(spec.inputs, [layer.ranks for layer in spec.layers])


def sizes_of(inputs: int, ranks: Sequence[tuple[int, ...]]) -> DeclaredSizes:
    r"""Return all sizes, by the rank of each unit of each layer.

    Layer $l$ needs $2n_l$ dimensions for its pieces and its units, and takes them from those that are free: the
    input's $n_0$ at first, at last also the $k$ that say which pieces a position does not stand for ($k > 1$). An
    affine last layer takes none.
    """
    layers = ranks[:-1] if max(ranks[-1]) == 1 else ranks
    positions = max((rank for layer in layers for rank in layer), default=1)
    units, pool, marks = 0, inputs, positions if positions > 1 else 0
    for number, layer in enumerate(layers, start=1):
        last = marks if number == len(layers) else 0
        units += sum(layer) + min(2 * len(layer), pool + last)
        pool = max(pool, 2 * len(layer) - last)
    heads = (0, *map(len, layers)) if layers else ()
    per_layer: dict[str, Size] = {"layers": len(heads), "heads_per_layer": heads}
    return DeclaredSizes(per_layer | {"heads": sum(heads), "units": units, "d_model": pool + marks})


def two_heads_sizes(spec: Maxout) -> DeclaredSizes:
    """Return bounds, by the pieces that the function can have."""
    pieces = prod(1 + sum(layer.ranks) - layer.units for layer in spec.layers)
    return DeclaredSizes(at_most={"layers": 2, "heads": 2, "units": pieces + 5, "d_model": max(pieces + 1, 4)})


@construction(
    "maxout",
    "one attention layer for the maxima of each layer, the pieces in its MLPs",
    sizes,
    default=True,
)
def maxout(
    spec: Maxout, variant: str = "maxout", *, attention: Attention = "softmax", tolerance: Tolerance | None = None
) -> Network:
    """Return a transformer that computes a maxout network, within the tolerance under soft attention."""
    layers, last = _split(spec)
    positions = count_positions(spec)
    rounding = _rounding(spec, positions)
    if attention == "hard" and tolerance is not None:
        raise BuildRefused("hard attention takes maxima without error: leave --tolerance out")
    if tolerance is not None and not tolerance >= rounding:
        raise BuildRefused(f"--tolerance must be at least {rounding:.3g}, what rounding may do, got {tolerance:.3g}")
    beta = inverse_temperature(spec, attention, TOLERANCE if tolerance is None else tolerance)
    error = bound(spec, attention, beta)
    title = f"{variant} network of {len(spec.layers)} layers, {attention}"
    net = Builder(title, spec.input_names, positions, attention, reads="vector")
    values = [net.numbers("input", -spec.radius, spec.radius)]
    others = []  # a single piece needs no telling apart
    if positions > 1:
        others = [net.embed_position("other pieces", MultiHot(_names(positions)), 1 - np.eye(positions))]
    margins = [0.0, *(2 * e + rounding for e in _errors(layers, attention, beta, positions))]
    for number, layer in enumerate(layers, start=1):
        computed = affine_where(
            net,
            values,
            [
                AffineCase(
                    [(space, j) for space in others], weights[j], float(biases[j]), i, f"unit {i + 1}, piece {j + 1}"
                )
                for i, (weights, biases) in enumerate(layer.pieces)
                for j in range(len(biases))
            ],
            _names(layer.units),
            apart=SEPARATION[attention] / beta,
            margin=margins[number - 1],
            name=f"pieces {number}",
        )
        low, high = spec.ranges[number]
        values = []
        for i in range(layer.units):
            kind, name = Reals(("z",), float(low[i]), float(high[i])), f"unit {number}.{i + 1}"
            values.append(maximum(net, computed, i, kind, rivals=layer.ranks[i] - 1, beta=beta, name=name))
    return net.network(
        Output("values", spec.output_names, error=error + rounding),
        _readout(values, last, error + rounding),
        "maxout network",
        {
            "variant": variant,
            "inverse temperature": beta,
            "error bound": error,
            "rounding allowed": rounding,
            "maxout layers": len(spec.layers),
            "maxout parameters": spec.parameters,
        },
        source="in the spirit of Gu, Yang & Zhou 2026, arXiv 2603.03084",
    )


def _readout(values: list[Space], last: Layer | None, error: float) -> Readout:
    """Return the readout: the last layer, if it is affine; else the identity."""
    size = sum(space.size for space in values)
    matrix = np.eye(size) if last is None else last.weights[:, 0].T
    bias = np.zeros(size) if last is None else last.biases[:, 0]
    ends = list(accumulate(space.size for space in values))
    parts = [(space, matrix[end - space.size : end]) for space, end in zip(values, ends, strict=True)]
    steepness = 1.0 if last is None else last.steepness
    return Readout(tuple(parts), bias, {space: error / steepness for space, _ in parts} if steepness else {})


def _split(spec: Maxout) -> tuple[tuple[Layer, ...], Layer | None]:
    """Return the layers that take maxima, and the last one if it is affine: that one is the unembedding."""
    affine = max(spec.layers[-1].ranks) == 1
    return (spec.layers[:-1], spec.layers[-1]) if affine else (spec.layers, None)


def count_positions(spec: Maxout) -> int:
    """Return the positions of the network: one for each piece of the units that have most."""
    layers, _ = _split(spec)
    return max((rank for layer in layers for rank in layer.ranks), default=1)


def _names(count: int) -> tuple[str, ...]:
    return tuple(str(number + 1) for number in range(count))


def _rounding(spec: Maxout, positions: int) -> float:
    """Return a bound on the rounding error of an output: a share of the largest value of a piece."""
    pieces = [layer.bounds(*box) for layer, box in zip(spec.layers, spec.ranges, strict=False)]
    scale = max(1.0, spec.radius, *(float(np.abs(ends).max()) for ends in pieces))
    if not scale <= MAX_ACTIVATION:
        raise BuildRefused(
            f"activations may grow to {scale:.3g}, more than the {MAX_ACTIVATION:.3g} that double precision carries: "
            "use smaller weights or a smaller radius"
        )
    return scale * max(ROUNDING, 8 * 2.0**-53 * positions * len(spec.layers))


# The error of soft attention


def _amplified(spec: Maxout, attention: AttentionKind) -> Iterator[float]:
    r"""Yield $c_{k_l} \prod_{l' > l} \Lambda_{l'}$, layer by layer."""
    layers, last = _split(spec)
    positions = count_positions(spec)
    for index, layer in enumerate(layers):
        later = [*layers[index + 1 :], *([last] if last else [])]
        yield _short(layer, attention, positions) * float(np.prod([other.steepness for other in later]))


def _short(layer: Layer, attention: AttentionKind, positions: int) -> float:
    """Return how far a unit of a layer may fall short, times the inverse temperature."""
    return max(shortfall(attention, rank - 1, positions - rank) for rank in layer.ranks)


def bound(spec: Maxout, attention: AttentionKind, beta: float) -> float:
    """Return a bound on the error of an output by soft attention at an inverse temperature."""
    return sum(_amplified(spec, attention)) / beta


def inverse_temperature(spec: Maxout, attention: AttentionKind, tolerance: float) -> float:
    """Return the inverse temperature that keeps the error below the tolerance; 1 for hard attention."""
    return 1.0 if attention == "hard" else max(1.0, round_up(sum(_amplified(spec, attention)) / tolerance))


def _errors(layers: tuple[Layer, ...], attention: AttentionKind, beta: float, positions: int) -> list[float]:
    """Return a bound on the error of the activations of every layer, by soft attention."""
    errors, error = [], 0.0
    for layer in layers:
        error = error * layer.steepness + _short(layer, attention, positions) / beta
        errors.append(error)
    return errors


# Functions of one variable


def convex_difference(spec: Maxout) -> Maxout:
    """Return the same function of one variable as a difference of two convex ones: one layer of two units."""
    if (spec.inputs, spec.outputs) != (1, 1):
        raise BuildRefused(
            "the construction 'convex-difference' is for functions of one variable, this network has "
            f"{spec.inputs} inputs and {spec.outputs} outputs: leave --construction out"
        )
    try:
        cells = regions(spec).cells
    except InputError as error:
        raise BuildRefused(str(error)) from None
    ends = sorted({corner[0] for cell in cells for corner in cell.corners})
    return Maxout.from_points([(x, spec.exactly([x])[0]) for x in ends], spec.radius)


@construction(
    "convex-difference",
    "functions of one variable: two heads in one attention layer",
    two_heads_sizes,
)
def two_heads(spec: Maxout, *, attention: Attention = "softmax", tolerance: Tolerance | None = None) -> Network:
    """Return the network of a function of one variable as the difference of two convex ones."""
    return maxout(convex_difference(spec), "convex-difference", attention=attention, tolerance=tolerance)
