r"""A transformer computes any maxout network, with a head per unit, a block per layer and a position per piece.

Statement: For every maxout network with $L$ layers of $n$ units of rank $k$ there is a transformer with $L+1$ blocks,
$n$ heads and $nk + 2n$ hidden units per block and $2n+k$ dimensions on $k$ positions that computes it: up to rounding
under hard attention, and under softmax with inverse temperature $\beta$ within $\frac{1}{\beta}
W\!\big(\frac{k-1}{e}\big) \sum_l \prod_{l'>l} \Lambda_{l'}$, where $\Lambda_l = \max_{ij} |w_{ij}|_1$ in layer $l$ and
$W$ is Lambert's function. The bound is attained where all losing pieces have the worst gap. Under sparsemax
$\frac{k-1}{4k}$ takes the place of $W\!\big(\frac{k-1}{e}\big)$.
Why: Position $j$ computes piece $j$ of every unit; a head whose score is that value attends to the largest. Softmax
errs most when all other values are $1 + W((k-1)/e)$ behind, in units of $1/\beta$; later layers scale it.
Checked: Seven networks (random maxout up to width 16, rank 4 and depth 4, ReLU networks, piecewise linear functions),
hard and softmax or sparsemax: random points, corners, breakpoints and points where each piece wins by most; sizes. On
networks with all pieces at the worst gap (rank 2, 3, 5): the error is at least 99.9 % of the bound and not above it at
five $\beta$, falling like $1/\beta$.
Not checked: All inputs: points are sampled. The source's own construction and constants; that the sizes are comparable
is its statement, the formulas are ours.
Source: Gu, Yang & Zhou 2026, arXiv 2603.03084 [A]; the construction, its sizes and the constant of the bound are our
own derivation.
Saboteur: One piece is moved by 0.01; where the bound must be attained, $\beta$ is halved.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.certification.checking import certify
from vitrify.claims._figures import points, sequence, show
from vitrify.claims._nets import Domain, Evidence, Method, Quantity, built, divided, edited, sized
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.maxout import count_positions, inverse_temperature, maxout
from vitrify.kit import assemble
from vitrify.kit.heads.maximum import shortfall
from vitrify.net.inference import outputs
from vitrify.spec.geometry.maxout import Maxout, level_pieces, random_maxout, random_relu, zigzag

EXACT = 1e-12  # hard attention, activations of size 1 to 10
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
REACHED = 0.999  # how much of the bound the worst case must reach


def subjects() -> Subjects:
    rng = np.random.default_rng(5)
    points = list(zip(np.sort(rng.uniform(-1, 1, size=12)).tolist(), rng.normal(size=12).tolist(), strict=True))
    specs = {
        "width 16, rank 4, depth 4": random_maxout((16, 16, 16, 16, 16), 4, seed=0),
        "widths 3 to 8, rank 3": random_maxout((3, 8, 4, 6, 2), 3, seed=1),
        "rank 2, depth 4": random_maxout((2, 5, 5, 5, 1), 2, seed=2),
        "rank 4, one layer": random_maxout((4, 6, 3), 4, seed=3),
        "ReLU, widths 4, 12, 12, 2": random_relu((4, 12, 12, 2), seed=4),
        "zigzag of 27 pieces": zigzag(3, 3),
        "function through 12 points": Maxout.from_points(points),
    }
    kinds: tuple[Attention, ...] = ("hard", "softmax", "sparsemax")
    for number, (name, spec) in enumerate(specs.items()):
        for attention in ("hard", kinds[1 + number % 2]):
            yield built(f"{name}, {attention}", spec, attention=attention)
    for rank, depth in ((2, 1), (3, 2), (5, 3)):
        nets = {}
        for tolerance in TOLERANCES:
            beta = inverse_temperature(level_pieces(rank, depth, 1.0), "softmax", tolerance)
            spec = level_pieces(rank, depth, (1 + shortfall("softmax", rank - 1, 0)) / beta)
            nets[tolerance] = spec, assemble(maxout(spec, tolerance=tolerance))
        yield Subject(f"worst case, rank {rank}, depth {depth}", data={"nets": nets})


def check(subject: Subject) -> Evidence:
    return _worst_case(subject) if subject.spec is None else _network(subject)


def _network(subject: Subject) -> Evidence:
    spec, weights = subject.spec, subject.weights
    evidence, about = certify(weights, spec), weights.about
    allowed = EXACT if about["attention"] == "hard" else about["error bound"] + about["rounding allowed"]
    error = Quantity("largest error", evidence.measured("largest error"), allowed, "<=")
    measured = {
        "positions": weights.architecture.max_length,
        "parameters of the maxout network": spec.parameters,
        "nonzero parameters of the transformer": weights.sizes.nonzero,
    }
    declared = {"positions": count_positions(spec)}
    return replace(evidence, quantities=()).adding(error, *sized(subject, declared, measured))


def _worst_case(subject: Subject) -> Evidence:
    errors, bounds, betas, cases = [], [], [], 0
    for spec, weights in subject.data["nets"].values():
        x = np.linspace(-spec.radius, spec.radius, 101)[:, None]
        errors.append(float(np.abs(outputs(weights, x) - spec(x)).max()))
        bounds.append(weights.about["error bound"])
        betas.append(weights.about["inverse temperature"])
        cases += len(x)
    shares = [error / bound for error, bound in zip(errors, bounds, strict=True)]
    slope = float(np.polyfit(np.log(betas), np.log(errors), 1)[0])
    points = Domain("points at each β", Method.SAMPLED, cases, settings={"β": betas})
    return Evidence("holds", cases, (points,)).adding(
        Quantity("errors", errors),
        Quantity("least share of the bound that is reached", min(shares), REACHED, ">="),
        Quantity("largest share of the bound", max(shares), 1 + 1e-6, "<="),
        Quantity("slope of log error in log β", slope),
        Quantity("distance of that slope from -1", abs(slope + 1), 1e-3, "<="),
    )


def sabotage(subject: Subject) -> Subject:
    if subject.spec is None:
        nets = subject.data["nets"].items()
        softer = {tolerance: (spec, divided(weights, ".beta", 2)) for tolerance, (spec, weights) in nets}
        return replace(subject, data={"nets": softer})
    layer = subject.spec.layers[0]
    x = np.random.default_rng(0).uniform(-subject.spec.radius, subject.spec.radius, size=(1000, subject.spec.inputs))
    scores = np.einsum("bi,uki->buk", x, layer.weights) + layer.biases
    wins = (scores == scores.max(axis=-1, keepdims=True)).sum(axis=0)
    unit, piece = np.unravel_index(int(wins.argmax()), wins.shape)  # the piece that is most often the maximum
    return edited(subject, "blocks.0.mlp.b_in", sum(layer.ranks[:unit]) + int(piece), plus=0.01)


FIGURE = show(
    points(
        "parameters of the maxout network",
        "nonzero parameters of the transformer",
        "parameters of the maxout network",
        "nonzero parameters",
        "xy",
        laws={"equal": lambda size: size},
    ),
    sequence("errors", "inverse temperature β", "largest error", "xy", at=lambda part: part.domains[0].settings["β"]),
)
CLAIM = Claim(subjects, check, sabotage, id="R7", standing="theorem", certified="sampled", figure=FIGURE)
