r"""The linear regions of maxout networks, and of the transformers that compute them, can multiply with every layer.

Statement: For every $k$, $L$ and $n$, zigzags of $k$ pieces composed $L$ times in each of $n$ coordinates have
$(k^L)^n$ linear regions, with at most two units of rank $\lfloor k/2 \rfloor + 1$ per layer and coordinate. The
transformer built from them has exactly as many, on $L$ attention layers; in one attention layer, as a difference of
two convex functions, the same function takes $k^L + 1$ pieces. The transformer built from any maxout network has its
regions.
Why: Every zigzag runs $k$ times through the interval on which the next one is defined.
Checked: Zigzags with $(k, L)$ up to (5, 2), (4, 3), (2, 10) on the line and (3, 2) in the plane; six random
networks with one or two inputs. Regions are counted in exact fractions, of the network and of the transformer's
weights; the function on each region is compared within 1e-12; outputs turn $k^L - 1$ times along each axis.
Not checked: More than two inputs and the upper bounds on the number of regions. The count is for hard attention;
softmax has no linear regions.
Source: Gu, Yang & Zhou 2026, arXiv 2603.03084 [A]; Montúfar et al. 2014, arXiv 1402.1869 [S].
Saboteur: A piece of the transformer's last MLP is removed.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from vitrify.certification.reading.regions import net_regions
from vitrify.claims._figures import points, show
from vitrify.claims._nets import Claim, Domain, Evidence, Method, Quantity, Subject, Subjects, Weights, zeroed
from vitrify.constructions.maxout import convex_difference, maxout
from vitrify.kit import assemble
from vitrify.net.inference import outputs
from vitrify.net.transformer import Transformer
from vitrify.spec.geometry.maxout import Maxout, random_maxout, random_relu, zigzag
from vitrify.spec.geometry.regions import Regions, regions, value

FAMILY = ((2, 1), (2, 3), (2, 5), (3, 2), (3, 3), (4, 3), (5, 2), (2, 10))
PLANE = ((2, 1), (2, 2), (3, 1), (3, 2))
SEEDS = 2
CLOSE = 1e-12  # biases of the transformer are rounded, so its function may be that much off


def subjects() -> Subjects:
    for inputs, pairs in ((1, FAMILY), (2, PLANE)):
        for k, depth in pairs:
            spec, data = zigzag(k, depth, inputs), {"k": k, "depth": depth, "wanted": k ** (inputs * depth)}
            name = f"{k} pieces, {depth} layer{'s' * (depth > 1)}{', plane' * (inputs > 1)}"
            yield Subject(name, spec, _built(spec), data)
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
    spec, weights = subject.spec, subject.weights
    own, built = regions(spec), net_regions(weights, spec.radius)
    wanted = subject.data.get("wanted", own.linear)
    depth = subject.data.get("depth", len(spec.layers) - (max(spec.layers[-1].ranks) == 1))
    activation = subject.data.get("wanted", own.activation)
    counts = [
        Quantity("linear regions", own.linear, wanted, "="),
        Quantity("linear regions of the transformer", built.linear, wanted, "="),
        Quantity("activation regions of the transformer", built.activation, activation, "="),
        Quantity("attention layers", weights.sizes.attention_layers, depth, "="),
        Quantity("regions on which the transformer is another function", _different(built, spec), 0, "="),
    ]
    if "k" in subject.data:
        k = subject.data["k"]
        counts.append(Quantity("turns of the outputs", _turns(weights, k**depth), spec.inputs * (k**depth - 1), "="))
        counts.append(Quantity("largest rank", max(max(layer.ranks) for layer in spec.layers), k // 2 + 1, "="))
        if spec.inputs == 1 and k > 2:  # two pieces make one concave unit
            pieces = sum(convex_difference(spec).layers[0].ranks)
            counts.append(Quantity("pieces in one layer", pieces, k**depth + 1, "="))
    cells = Domain("regions of the box, in fractions", Method.EXHAUSTIVE, built.activation)
    return Evidence("holds", built.activation, (cells,)).adding(*counts)


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
    """Return how often the outputs turn along the axes, seen at the points where they must: a lower bound."""
    grid = np.linspace(-1, 1, count + 1)
    turns = 0
    for axis in range(len(weights.architecture.inputs)):
        points = np.zeros((len(grid), len(weights.architecture.inputs)))
        points[:, axis] = grid
        steps = np.sign(np.diff(outputs(weights, points)[:, axis]))
        turns += int((steps[1:] * steps[:-1] < 0).sum())
    return turns


def sabotage(subject: Subject) -> Subject:
    """A piece that is the maximum somewhere is removed from the last MLP."""
    block = max(i for i, b in enumerate(subject.weights.architecture.blocks) if b.units)
    labels = subject.weights.labels.units
    rows = next(label for label in labels if label.block == block and label.name != "erase")
    x = np.random.default_rng(0).uniform(-subject.spec.radius, subject.spec.radius, size=(500, subject.spec.inputs))
    for row in range(rows.start, rows.stop):
        broken = zeroed(subject, f"blocks.{block}.mlp.W_out", row)
        if np.abs(outputs(broken.weights, x) - subject.spec(x)).max() > 1e-6:
            return broken
    raise AssertionError("no piece of the last MLP is ever the maximum")


def kind(name: str) -> str:
    """Return the series of a subject: how many pieces a layer has, on how many inputs."""
    pieces = name.split(", ")[0]
    return "random networks" if pieces.startswith("random") else pieces + (" of the plane" if "plane" in name else "")


FIGURE = show(
    points(
        "attention layers",
        "linear regions of the transformer",
        "attention layers",
        "linear regions",
        "y",
        by=kind,
        joined=True,
    )
)
CLAIM = Claim(
    subjects, check, sabotage, id="R8", standing="theorem", certified="sampled", budget_seconds=60, figure=FIGURE
)
