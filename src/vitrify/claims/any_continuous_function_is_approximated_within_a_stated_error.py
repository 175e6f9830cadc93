r"""A transformer approximates any continuous function on a box, within an error that is stated before it is run.

Statement: Let $f$ be a continuous function on a box in $\mathbb{R}^d$ and $h$ the step of a grid on it. The interpolant
on Kuhn's triangulation of the grid is within $\frac34 Lh$ of $f$ if $L$ is its Lipschitz constant in the maximum norm,
and within $\frac{M}{8} d h^2$ if $M$ bounds the spectral norm of its second derivatives. A transformer with three heads
for each vertex whose value is not 0, on $d+1$ positions in three blocks, computes the interpolant: up to rounding under
hard attention, and within a stated error under softmax. More generally, every continuous piecewise linear function on a
triangulation of a box is a maximum of minima of its affine functions, and a transformer of three blocks computes it. It
is also a difference of two maxima of affine functions, and a transformer of two blocks with two heads computes it.
Why: The hat function of a vertex is made of three maxima (`spec/geometry/grid.py`), and heads take maxima. The error of
an interpolant is a mean over the vertices of a simplex (`constructions/approximation.py`). Cells inside the simplices
determine the minima (`spec/geometry/triangulation.py`). Adding $\frac12\lvert a - b\rvert$ for the pieces $a, b$ at
facets where the function bends downwards makes it convex, and what is added is convex.
Checked: Grids of 2, 4 and 8 cells along each of two variables, and of 1, 2 and 3 along three: sizes; the error at 1,000
random points and the middles of all cells is at most the stated one; that of the interpolant falls like $h$ and $h^2$,
reaches 74 % of the first bound and attains the second. Random triangulations and grids in two and three variables: at
vertices, bends and 1,000 random points, by minima and as differences of convex functions; for two variables under hard
attention the largest distance on the whole box, in fractions from the stored weights.
Not checked: All functions: the bounds are proved, not tried, and the constant of $f$ is believed unless samples
contradict it. Under softmax, points are sampled; the bound on the emulation error there is some hundred times too
large. The number of vertices grows like $\epsilon^{-d}$ or $\epsilon^{-d/2}$. Functions of whole sequences (Yun et al.
2020, arXiv 1912.10077) are not approximated.
Source: Maxout networks are universal approximators by Goodfellow et al. 2013, arXiv 1302.4389 [S]; transformers compute
maxout networks by Gu, Yang & Zhou 2026, arXiv 2603.03084 [A]; maxima of minima by Tarela & Martínez 1999 and by
Ovchinnikov 2002 [S]; differences of convex functions by way of hyperplanes [K]; the construction and the constants are
our own derivation.
Saboteur: Hat functions without the sum of two maxima, $\max(0, 1 - \max_i |z_i|)$; for triangulations one minimum per
simplex, of the functions that are larger in its middle; for differences of convex functions half of what has to be
added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.reading.distance import largest_distance
from vitrify.claims._figures import curves, sequence, show
from vitrify.claims._nets import (
    Claim,
    Domain,
    Evidence,
    Method,
    Quantity,
    Subject,
    Subjects,
    Weights,
    built,
    check_net,
    quantities,
)
from vitrify.constructions.approximation import Approximation, approximate
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.cpwl import hat_sizes
from vitrify.constructions.maxout import maxout
from vitrify.kit import assemble
from vitrify.net.transformer import Transformer
from vitrify.spec.geometry.grid import GridFunction
from vitrify.spec.geometry.max_min import difference, lattice, minimal
from vitrify.spec.geometry.maxout import Layer, Maxout
from vitrify.spec.geometry.regions import value
from vitrify.spec.geometry.triangulation import Triangulation, kuhn, random_triangulation

POINTS = 1000  # random points of an approximation
SLOPE_TOLERANCE = 0.2  # of the power of the step with which the error falls
ATTAINED = 0.999  # of the bound for second derivatives, by a quadratic function
TIP = (2 / 3, 1 / 3)
CONVEX = "convex-parts"
Function = Callable[[Floats], Floats]


def _cone(x: Floats) -> Floats:
    """Return the distance from a point, which lies alike in its cell for 2, 4 and 8 cells; the constant is 1."""
    return np.asarray(np.abs(x - TIP).max(axis=1))


def _bowl(x: Floats) -> Floats:
    """Return half the squared length: the worst case for second derivatives of norm 1."""
    return np.asarray((x**2).sum(axis=1) / 2)


def _wave(x: Floats) -> Floats:
    return np.asarray(np.sin(x[:, 0]) * np.cos(x[:, 1]))


def subjects() -> Subjects:
    square, cube = [(-1.0, 1.0)] * 2, [(0.0, 1.0)] * 3
    yield _sweep("Lipschitz, two variables", _cone, square, {"lipschitz": 1.0}, (2, 4, 8))
    yield _sweep("second derivatives, two variables", _bowl, square, {"hessian": 1.0}, (2, 4, 8))
    yield _sweep("a wave, two variables", _wave, square, {"hessian": 1.0}, (2, 4, 8))
    yield _sweep("second derivatives, three variables", _bowl, cube, {"hessian": 1.0}, (1, 2, 3))
    for dimensions, inner, seed, attention in (
        (2, 3, 1, "hard"),
        (2, 4, 1, "hard"),
        (2, 4, 3, "softmax"),
        (2, 9, 0, "softmax"),
        (3, 2, 0, "sparsemax"),
        (3, 2, 1, "hard"),
    ):
        spec = random_triangulation(inner, seed, dimensions=dimensions)
        name = f"{len(spec.simplices)} simplices in {dimensions} variables, seed {seed}, {attention}"
        yield built(name, spec, attention=attention)
    for dimensions, inner, seed, attention in (
        (2, 2, 0, "hard"),
        (2, 4, 1, "hard"),
        (2, 9, 2, "softmax"),
        (3, 2, 2, "hard"),
    ):
        spec = random_triangulation(inner, seed, dimensions=dimensions)
        name = f"{len(spec.simplices)} simplices in {dimensions} variables, seed {seed}, convex difference, {attention}"
        yield built(name, spec, CONVEX, {"convex": True}, attention=attention)
    for cells in ((3, 2), (2, 1, 2)):
        values = np.random.default_rng(0).normal(size=int(np.prod([n + 1 for n in cells]))).round(2)
        grid = GridFunction(box=((-1.0, 1.0),) * len(cells), cells=cells, values=tuple(values.tolist()))
        yield built(f"grid of {' × '.join(map(str, cells))} cells, hard", grid, attention="hard")


def _sweep(
    name: str, f: Function, box: list[tuple[float, float]], known: dict[str, float], cells: tuple[int, ...]
) -> Subject:
    """Return networks for a function; their errors are such that grids have these numbers of cells."""
    nets = []
    attentions: tuple[Attention, ...] = ("hard", "softmax", "hard")
    for number, attention in zip(cells, attentions, strict=True):
        step = (box[0][1] - box[0][0]) / number
        bound = 0.75 * step if "lipschitz" in known else len(box) * step**2 / 8
        eps = bound * (1.01 if attention == "hard" else 2.01)
        nets.append((number, eps, approximate(f, box, eps, attention=attention, **known)))
    return Subject(name, data={"f": f, "nets": nets})


def check(subject: Subject) -> Evidence:
    return _approximations(subject) if subject.spec is None else _pieces(subject)


def _approximations(subject: Subject) -> Evidence:
    f, nets = subject.data["f"], subject.data["nets"]
    shares, errors, steps, cases = [], [], [], 0
    declared: dict[str, object] = {}
    measured: dict[str, object] = {}
    for number, eps, net in nets:
        x = _points(net.grid)
        cases += len(x)
        shares.append(float(np.abs(net(x) - f(x)).max() / eps))
        errors.append(float(np.abs(net.grid(x)[:, 0] - f(x)).max()))
        steps.append(float(net.grid.steps.max()))
        sizes = hat_sizes(net.grid).exact
        declared |= {f"{key}, {number} cells": size for key, size in sizes.items()}
        measured |= {f"{key}, {number} cells": getattr(net.weights.sizes, key) for key in sizes}
        declared |= {f"cells for {number}": (number,) * net.grid.inputs}
        measured |= {f"cells for {number}": net.grid.cells}
    bounds = [net.interpolation_error for *_, net in nets]
    known = nets[0][2].known
    slope = float(np.polyfit(np.log(steps), np.log(errors), 1)[0])
    reached = max(error / bound for error, bound in zip(errors, bounds, strict=True))
    power = 1 if known == "lipschitz" else 2
    evidence = Evidence("holds", cases, (Domain("points of the box", Method.SAMPLED, cases),)).adding(
        *quantities(declared, measured),
        Quantity("largest share of the stated error", max(shares), 1.0, "<="),
        Quantity("errors of the interpolants", errors),
        Quantity("bounds on them", bounds),
        Quantity("largest share of the bound", reached, 1.0 + 1e-9, "<="),
        Quantity("slope of log error in log step", slope),
        Quantity(f"distance of that slope from {power}", abs(slope - power), SLOPE_TOLERANCE, "<="),
    )
    if f is _bowl:
        evidence = evidence.adding(Quantity("share of the bound that is attained", reached, ATTAINED, ">="))
    return evidence


def _points(grid: GridFunction) -> Floats:
    """Return random points of the box, the middles of all cells, and the tip of the cone."""
    cells = np.array(list(product(*map(range, grid.cells))))
    random = np.random.default_rng(0).uniform(grid.low, grid.high, size=(POINTS, grid.inputs))
    return np.vstack([random, grid.low + (cells + 0.5) * grid.steps, np.resize(TIP, (1, grid.inputs))])


def _pieces(subject: Subject) -> Evidence:
    spec, weights = subject.spec, subject.weights
    evidence = check_net(subject)
    triangles = kuhn(spec) if isinstance(spec, GridFunction) else spec
    if len(spec.box) == 2 and weights.about["attention"] == "hard":
        far, _ = largest_distance(weights, triangles)
        allowed = weights.about["rounding allowed"]
        evidence = evidence.adding(Quantity("largest distance on the whole box", float(far), allowed, "<="))
    return evidence


def sabotage(subject: Subject) -> Subject:
    if subject.spec is not None:
        make = _half_folded if "convex" in subject.data else _one_per_simplex
        wrong = _pyramids(subject.spec) if isinstance(subject.spec, GridFunction) else make(subject.spec)
        return replace(subject, weights=_net(wrong, subject.weights.about["attention"]))
    nets = [(number, eps, _wrong(net)) for number, eps, net in subject.data["nets"]]
    return replace(subject, data={**subject.data, "nets": nets})


def _wrong(net: Approximation) -> Approximation:
    return replace(net, weights=_net(_pyramids(net.grid), net.weights.about["attention"]))


def _net(spec: Maxout, attention: str) -> Weights[Transformer]:
    network = maxout(spec, attention="hard") if attention == "hard" else maxout(spec, tolerance=1e-3)
    return assemble(network)


def _pyramids(grid: GridFunction) -> Maxout:
    """Return the sum of pyramids: 1 at their vertex, 0 at the distance of a step in any direction."""
    maxima, hats, values = grid.maxout().layers
    count = grid.support
    pieces = [np.concatenate([array[:count], array[count:]], axis=1) for array in (maxima.weights, maxima.biases)]
    return Maxout((Layer(*pieces), Layer(hats.weights[..., :count], hats.biases), values), grid.radius)


def _one_per_simplex(spec: Triangulation) -> Maxout:
    """Return the maximum of one minimum per simplex, of the affine functions that are larger in its middle."""
    sets = []
    for simplex, own in zip(spec.simplices, spec.pieces, strict=True):
        middle = tuple(map(Fraction, np.mean([spec.vertices[index] for index in simplex], axis=0).tolist()))
        height = value(own, middle)
        sets.append(frozenset({own, *(other for other in spec.pieces if value(other, middle) >= height)}))
    return lattice(minimal(sets), spec.radius)


def _half_folded(spec: Triangulation) -> Maxout:
    """Return the difference that would be right if the functions that are added were twice as large."""
    half = [tuple(number / 2 for number in fold) for fold in spec.folds]
    return difference(*spec.difference(half), spec.radius)


def cells_of(part: Evidence) -> list[int]:
    """Return the numbers of cells whose errors were measured."""
    return [int(each.name[10:]) for each in part.quantities if each.name.startswith("cells for ")]


FIGURE = show(
    sequence("errors of the interpolants", "cells for each variable", "error of the interpolant", "2xy", at=cells_of),
    curves("heads, {} cells", None, "cells for each variable", "heads", "2xy"),
)
CLAIM = Claim(subjects, check, sabotage, id="R33", standing="theorem", certified="sampled", figure=FIGURE)
