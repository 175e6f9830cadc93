r"""A transformer computes any maxout network, with a head per unit, a block per layer and a position per piece.

Statement: a maxout network of $L$ layers, $n$ units each of rank $k$, is computed by a transformer of $L+1$ blocks with
$n$ heads, $nk + 2n$ hidden units and $2n+k$ dimensions on $k$ positions; to rounding under hard attention, and under
softmax attention of temperature $\beta$ within $\frac{1}{\beta} W\!\big(\frac{k-1}{e}\big) \sum_l \prod_{l'>l}
\Lambda_{l'}$, where $\Lambda = \max_{ij} |w_{ij}|_1$ and $W$ is Lambert's function. The bound is reached.
Why: position $j$ computes piece $j$ of every unit, and a head whose score is its value looks at the largest. The
shortfall of softmax is worst when all rivals are $1 + W((k-1)/e)$ behind, in units of $1/\beta$; later layers steepen
it.
Checked: random networks up to width 16, rank 4 and depth 4, ReLU networks and piecewise linear functions, at random
points, corners, breakpoints and where each piece leads by most; sizes against the formulas; on networks whose pieces
are all at the worst gap, the error against the bound at five temperatures, and the slope of their logarithms.
Source: Gu, Yang & Zhou 2026, arXiv 2603.03084 (attention as maximum, comparable complexity) [A]; the construction, its
sizes and the constant of the bound are our own derivation.
Saboteur: one piece is moved; where the bound must be reached, the heads are twice as hot as certified.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.certify.examine import certify
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.maxout import maxout, sizes, temperature
from vitrify.kit import assemble
from vitrify.kit.heads import shortfall
from vitrify.net.run import outputs
from vitrify.net.transformer import AttentionKind, Transformer
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.maxout import Maxout
from vitrify.spec.maxout_nets import level_pieces, random_maxout, random_relu, zigzag

EXACT = 1e-12  # hard attention, activations of size 1 to 10
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
REACHED = 0.999  # how much of the bound the worst case must reach


def subjects() -> Iterator[Subject]:
    """Networks under hard attention, some under soft attention, and chains that are the worst case for softmax."""
    specs = {
        "width 16, rank 4, depth 4": random_maxout((16, 16, 16, 16, 16), 4, seed=0),
        "widths 3 to 8, rank 3": random_maxout((3, 8, 4, 6, 2), 3, seed=1),
        "rank 2, depth 4": random_maxout((2, 5, 5, 5, 1), 2, seed=2),
        "rank 4, one layer": random_maxout((4, 6, 3), 4, seed=3),
        "ReLU, widths 4, 12, 12, 2": random_relu((4, 12, 12, 2), seed=4),
        "zigzag of 27 pieces": zigzag(3, 3),
        "function through 12 points": _function(12, seed=5),
    }
    kinds: tuple[AttentionKind, ...] = ("hard", "softmax", "sparsemax")
    for place, (name, spec) in enumerate(specs.items()):
        for attention in ("hard", kinds[1 + place % 2]):
            weights = assemble(maxout(spec, attention=attention))
            yield Subject(f"{name}, {attention}", spec, weights)
    for rank, depth in ((2, 1), (3, 2), (5, 3)):
        nets = {}
        for tolerance in TOLERANCES:
            beta = temperature(level_pieces(rank, depth, 1.0), "softmax", tolerance)
            spec = level_pieces(rank, depth, (1 + shortfall("softmax", rank - 1, 0)) / beta)
            nets[tolerance] = spec, assemble(maxout(spec, tolerance=tolerance))
        yield Subject(f"worst case, rank {rank}, depth {depth}", data={"nets": nets})


def _function(points: int, seed: int) -> Maxout:
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-1, 1, size=points))
    return Maxout.from_points(list(zip(x.tolist(), rng.normal(size=points).tolist(), strict=True)))


def check(subject: Subject) -> Evidence:
    """Errors and sizes, or how near the worst case comes to the bound."""
    return _worst_case(subject) if subject.spec is None else _network(subject)


def _network(subject: Subject) -> Evidence:
    spec, weights = subject.spec, subject.weights
    start = time.perf_counter()
    size, hard = Ledger.of(weights), weights.about["attention"] == "hard"
    evidence = certify(weights, spec)
    allowed = EXACT if hard else weights.about["error bound"] + weights.about["rounding allowed"]
    declared = {"largest error": allowed, **sizes(spec)}
    measured = {
        "largest error": evidence.measured["largest error"],
        "positions": weights.architecture.max_length,
        "layers": size.layers,
        "heads": size.heads,
        "units": size.units,
        "width": size.d_model,
        "numbers of the maxout network": spec.parameters,
        "numbers of the transformer that are not 0": size.nonzero,
    }
    right = all(measured[name] == promised for name, promised in declared.items() if name != "largest error")
    close = measured["largest error"] <= allowed
    return replace(
        evidence,
        verdict="holds" if evidence.verdict == "holds" and right and close else "fails",
        witness=None if evidence.verdict == "holds" and right and close else evidence.witness or measured,
        declared=declared,
        measured=measured,
        seconds=time.perf_counter() - start,
    )


def _worst_case(subject: Subject) -> Evidence:
    start = time.perf_counter()
    errors, bounds, betas, cases = [], [], [], 0
    for spec, weights in subject.data["nets"].values():
        x = np.linspace(-spec.radius, spec.radius, 101)[:, None]
        errors.append(float(np.abs(outputs(weights, x) - spec(x)).max()))
        bounds.append(weights.about["error bound"])
        betas.append(weights.about["temperature"])
        cases += len(x)
    shares = [error / bound for error, bound in zip(errors, bounds, strict=True)]
    slope = float(np.polyfit(np.log(betas), np.log(errors), 1)[0])
    measured = {
        "temperatures": betas,
        "errors": errors,
        "least share of the bound that is reached": min(shares),
        "largest share of the bound": max(shares),
        "slope of log error in log temperature": slope,
    }
    good = min(shares) >= REACHED and max(shares) <= 1 + 1e-6 and abs(slope + 1) <= 1e-3
    return Evidence(
        verdict="holds" if good else "fails",
        method="sampled",
        domain=f"101 points each at {len(betas)} temperatures",
        cases=cases,
        witness=None if good else measured,
        declared={
            "least share of the bound that is reached": f"at least {REACHED}",
            "largest share of the bound": "at most 1, but for rounding",
            "slope of log error in log temperature": "-1 ± 0.001",
        },
        measured=measured,
        seconds=time.perf_counter() - start,
    )


def sabotage(subject: Subject) -> Subject:
    """One piece is moved by 1 %; where the bound must be reached, all heads are twice as hot."""
    if subject.spec is None:
        nets = {tolerance: (spec, _hotter(weights)) for tolerance, (spec, weights) in subject.data["nets"].items()}
        return replace(subject, data={"nets": nets})
    layer = subject.spec.layers[0]
    x = np.random.default_rng(0).uniform(-subject.spec.radius, subject.spec.radius, size=(1000, subject.spec.inputs))
    scores = np.einsum("bi,uki->buk", x, layer.weights) + layer.biases
    wins = (scores == scores.max(axis=-1, keepdims=True)).sum(axis=0)
    unit, piece = np.unravel_index(int(wins.argmax()), wins.shape)  # the piece that leads most often
    bias = subject.weights.arrays["blocks.0.mlp.b_in"].copy()
    bias[sum(layer.ranks[:unit]) + int(piece)] += 0.01
    return replace(subject, weights=subject.weights.with_array("blocks.0.mlp.b_in", bias))


def _hotter(weights: Weights[Transformer]) -> Weights[Transformer]:
    for name in [name for name in weights.arrays if name.endswith(".beta")]:
        weights = weights.with_array(name, weights.arrays[name] / 2)
    return weights


CLAIM = Claim(row="R7", status="proved", certified="sampled", subjects=subjects, check=check, sabotage=sabotage)
