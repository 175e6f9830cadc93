"""The largest distance of a hard-attention network from a CPWL function, anywhere on the box, without rounding.

Both are affine on every part that a linear region of the network and a simplex have in common, so their distance is
largest at a corner of such a part: finitely many, in fractions, from the stored weights.
"""

from __future__ import annotations

from fractions import Fraction

from vitrify.certification.reading.regions import net_regions
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.geometry.regions import Point, clip, value
from vitrify.spec.geometry.triangulation import Triangulation, affine_through


def largest_distance(weights: Weights[Transformer], spec: Triangulation) -> tuple[Fraction, Point]:
    """Return the largest distance of a network of two inputs from a function, and a point where it is reached."""
    cells = net_regions(weights, spec.radius).cells
    distances: list[tuple[Fraction, Point]] = []
    for simplex, piece in zip(spec.simplices, spec.pieces, strict=True):
        points = [tuple(map(Fraction, spec.vertices[index])) for index in simplex]
        shares = [affine_through(points, [Fraction(i == j) for j in range(3)]) for i in range(3)]  # 0 on a side
        for cell in cells:
            part: tuple[Point, ...] = cell.corners
            for share in shares:
                part = clip(part, share) if part else ()
            distances += [(abs(value(cell.forms[0], corner) - value(piece, corner)), corner) for corner in part]
    return max(distances)
