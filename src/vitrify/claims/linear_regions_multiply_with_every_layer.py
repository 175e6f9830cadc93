r"""The linear regions of maxout networks, and of the transformers that compute them, can multiply with every layer.

Statement: zigzags of $k$ pieces composed $L$ times have $k^L$ linear regions, $(k^L)^n$ in $n$ coordinates, with at
most two units of rank $\lfloor k/2 \rfloor + 1$ per layer and coordinate; the built transformer has exactly as many, on
$L$ attention layers; as a difference of two convex functions, in one attention layer, the same function takes $k^L + 1$
pieces. The transformer of any network has the regions of that network.
Why: every zigzag runs $k$ times through the whole interval on which the next one does.
Checked: exact counts in fractions, of the network and of the weights of the transformer; the transformer's own outputs
at the places where it must turn, which go up and down $k^L$ times; random networks against their transformers, with
equal counts of linear and of activation regions, and the same functions on them.
Source: Gu, Yang & Zhou 2026, arXiv 2603.03084 (regions exponential in depth) [A]; Montúfar et al. 2014, arXiv 1402.1869
(regions multiply with every layer) [S].
Saboteur: a piece of the transformer's last MLP is lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.certify.regions import net_regions
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.maxout import convex_difference, maxout
from vitrify.kit import assemble
from vitrify.net.run import outputs
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.maxout import Maxout
from vitrify.spec.maxout_nets import random_maxout, random_relu, zigzag
from vitrify.spec.regions import Regions, regions, value

FAMILY = ((2, 1), (2, 3), (2, 5), (3, 2), (3, 3), (4, 3), (5, 2), (2, 10))
PLANE = ((2, 1), (2, 2), (3, 1), (3, 2))
SEEDS = 2
CLOSE = 1e-12  # biases of the transformer are rounded, so its function may be that much off


def subjects() -> Iterator[Subject]:
    """Zigzags on the line and in the plane, and random networks of one and two inputs."""
    for k, depth in FAMILY:
        spec = zigzag(k, depth)
        yield Subject(f"{k} pieces, {depth} layers", spec, _built(spec), {"k": k, "depth": depth, "wanted": k**depth})
    for k, depth in PLANE:
        spec = zigzag(k, depth, 2)
        data = {"k": k, "depth": depth, "wanted": k ** (2 * depth)}
        yield Subject(f"{k} pieces, {depth} layers, plane", spec, _built(spec), data)
    for seed in range(SEEDS):
        for name, spec in {
            "one input, rank 3": random_maxout((1, 5, 4, 1), 3, seed),
            "two inputs, rank 3": random_maxout((2, 3, 3, 1), 3, seed),
            "two inputs, ReLU": random_relu((2, 4, 3, 1), seed),
        }.items():
            yield Subject(f"random {seed}, {name}", spec, _built(spec))


def _built(spec: Maxout) -> Weights[Transformer]:
    return assemble(maxout(spec, attention="hard"))


def check(subject: Subject) -> Evidence:
    """Regions of the network and of the transformer, counted without rounding, and by the turns of its outputs."""
    start = time.perf_counter()
    spec, weights = subject.spec, subject.weights
    own, built = regions(spec), net_regions(weights, spec.radius)
    measured: dict[str, Any] = {
        "linear regions": own.linear,
        "linear regions of the transformer": built.linear,
        "activation regions of the transformer": built.activation,
        "attention layers": Ledger.of(weights).attention_layers,
        "regions on which the transformer is another function": _different(built, spec),
    }
    wanted = subject.data.get("wanted", own.linear)
    declared = {
        "linear regions": wanted,
        "linear regions of the transformer": wanted,
        "activation regions of the transformer": subject.data.get("wanted", own.activation),
        "attention layers": subject.data.get("depth", len(spec.layers) - (max(spec.layers[-1].ranks) == 1)),
        "regions on which the transformer is another function": 0,
    }
    if "k" in subject.data:
        k, depth = subject.data["k"], subject.data["depth"]
        measured["turns of the outputs"] = _turns(weights, k**depth)
        declared["turns of the outputs"] = spec.inputs * (k**depth - 1)
        measured["largest rank"] = max(max(layer.ranks) for layer in spec.layers)
        declared["largest rank"] = k // 2 + 1
        if spec.inputs == 1 and k > 2:  # two pieces make one concave unit
            measured["pieces in one layer"] = sum(convex_difference(spec).layers[0].ranks)
            declared["pieces in one layer"] = k**depth + 1
    wrong = {name: measured[name] for name in declared if measured[name] != declared[name]}
    return Evidence(
        verdict="fails" if wrong else "holds",
        method="exhaustive",
        domain="the whole box, in fractions",
        cases=built.activation,
        witness={"wrong": wrong} if wrong else None,
        declared=declared,
        measured=measured,
        seconds=time.perf_counter() - start,
    )


def _different(built: Regions, spec: Maxout) -> int:
    """On how many regions the transformer's function and the network differ, in their middle."""
    wrong = 0
    for cell in built.cells:
        size = len(cell.corners)
        middle = tuple(sum(axis, Fraction(0)) / size for axis in zip(*cell.corners, strict=True))
        pairs = zip(cell.forms, spec.exactly(middle), strict=True)
        wrong += any(abs(value(form, middle) - right) > CLOSE for form, right in pairs)
    return wrong


def _turns(weights: Weights[Transformer], count: int) -> int:
    """How often the outputs turn along each axis, seen from the places where they must: at least that often."""
    grid = np.linspace(-1, 1, count + 1)
    turns = 0
    for axis in range(len(weights.architecture.inputs)):
        points = np.zeros((len(grid), len(weights.architecture.inputs)))
        points[:, axis] = grid
        steps = np.sign(np.diff(outputs(weights, points)[:, axis]))
        turns += int((steps[1:] * steps[:-1] < 0).sum())
    return turns


def sabotage(subject: Subject) -> Subject:
    """A piece that leads somewhere is lost in the last MLP."""
    weights = subject.weights
    block = max(i for i, b in enumerate(weights.architecture.blocks) if b.units)
    name = f"blocks.{block}.mlp.W_out"
    rows = next(label for label in weights.labels.units if label.block == block and label.name != "erase")
    x = np.random.default_rng(0).uniform(-subject.spec.radius, subject.spec.radius, size=(500, subject.spec.inputs))
    for row in range(rows.start, rows.stop):
        array = weights.arrays[name].copy()
        array[row] = 0.0
        broken = weights.with_array(name, array)
        if np.abs(outputs(broken, x) - subject.spec(x)).max() > 1e-6:
            return replace(subject, weights=broken)
    raise AssertionError("no piece of the last MLP leads anywhere")


CLAIM = Claim(row="R8", status="proved", certified="sampled", subjects=subjects, check=check, sabotage=sabotage)
