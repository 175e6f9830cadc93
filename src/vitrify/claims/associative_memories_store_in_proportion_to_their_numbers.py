r"""Linear memories store about $d^2$ associations, $m$ units about $md$, if the read-out is fitted.

Statement: with random codes of $d$ numbers for words and answers, a $d \times d$ matrix recalls $d^2/(12 \ln d)$
different answers, and a layer of $m$ random ReLU units with a fitted read-out recalls $0.12\,md$, though that is up to
eight times $m$; at twice as much it fails. With two answers only, a matrix stores no more than about $2d$.
Why: the noise that $N$ other associations add to a score of 1 has a variance of about $N/d^2$, and must not lead in any
of $N$ comparisons; a read-out has $md$ numbers to fit. Two answers are divided by one hyperplane, and random words
$N > 2d$ hardly ever can be divided as asked (Cover 1965).
Checked: nets of five draws each on every word, at $N = d^2/(12 \ln d)$ for least squares, $d = 128, 256$, and at
$d^2/(16 \ln d)$ for the sum of associations, $d = 64, 128$; two answers at $1.5\,d$; units at $0.12\,md$, $d = 16, 32,
64$, $m = 64, 128$; and that none of five draws is perfect at $d^2/(4 \ln d)$, with two answers at $4d$, at $0.24\,md$.
Measured beside it: the sum of associations at $d^2/(12 \ln d)$; what least squares and the sum recall from the same
units; bits stored per number of the memory, which can't be more than the bits of a number.
Source: Nichani, Lee & Bietti 2025, arXiv 2412.06538 [S]; Cabannes, Dohmatob & Bietti 2024 [S]; Cover 1965 [S]. The
constants are measured here, and the proofs were not read; read-outs by least squares and by the sum of associations do
not reach $0.12\,md$. The limit falls slowly with size, about as $N \ln N = 0.9\,md$ would have it.
Saboteur: every answer's code at its neighbour's place; a quarter as much stored where too much should be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._memories import SEEDS, answers_shifted, recalls_everything, recalls_too_little
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions._memory import linear, mlp
from vitrify.constructions.associations import linear_memory, mlp_memory, sizes
from vitrify.kit import assemble
from vitrify.kit.memory import Rule
from vitrify.net.weights import Weights
from vitrify.spec.associations import Associations, random_associations

LINEAR: tuple[tuple[Rule, int, float], ...] = (  # rule, dimension, what divides d²/ln d
    ("least squares", 128, 12.0),
    ("least squares", 256, 12.0),
    ("hebbian", 64, 16.0),
    ("hebbian", 128, 16.0),
)
LAYERED = ((16, 64), (32, 64), (64, 64), (32, 128))  # dimension, units
STORED, BEYOND = 0.12, 0.24  # associations for each number of the fitted read-out


def subjects() -> Iterator[Subject]:
    """Memories within what they store, and draws beyond it."""
    for rule, size, part in LINEAR:
        count = linear_capacity(size, part)
        nets = [_linear(count, None, size, rule, seed) for seed in SEEDS]
        data = {
            "others": nets[1:],
            "dimension": size,
            "units": 0,
            "figures": _linear_figures(size) if part == 12.0 else {},
        }
        yield Subject(f"{rule}, d = {size}, {count} associations", *nets[0], data)
    nets = [_linear(96, 2, 64, "fitted", seed) for seed in SEEDS]
    yield Subject(
        "two answers, d = 64, 96 words", *nets[0], {"others": nets[1:], "dimension": 64, "units": 0, "figures": {}}
    )
    for size, units in LAYERED:
        count = int(STORED * units * size)
        nets = [_mlp(count, size, units, seed) for seed in SEEDS]
        data = {"others": nets[1:], "dimension": size, "units": units, "figures": _mlp_figures(count, size, units)}
        yield Subject(f"{units} units, d = {size}, {count} associations", *nets[0], data)
    yield _beyond(
        "hebbian, d = 128, too many", linear_capacity(128, 4.0), lambda n, s: linear_share(n, None, 128, "hebbian", s)
    )
    yield _beyond("two answers, d = 32, too many", 4 * 32, lambda n, s: linear_share(n, 2, 32, "fitted", s))
    for size, units in LAYERED[:2]:
        yield _beyond(
            f"{units} units, d = {size}, too many",
            int(BEYOND * units * size),
            lambda n, s, d=size, m=units: mlp_share(n, d, m, "fitted", s),
        )


def linear_capacity(dimension: int, part: float) -> int:
    """$d^2/(c \\ln d)$ for a constant $c$."""
    return int(dimension**2 / (part * math.log(dimension)))


def linear_share(count: int, outputs: int | None, dimension: int, rule: Rule, seed: int) -> float:
    """The share of random associations that a matrix recalls; each has its own answer, or one of so many."""
    rng = np.random.default_rng(seed)
    right = np.arange(count) if outputs is None else rng.integers(outputs, size=count)
    return linear(right, outputs or count, dimension, rng, rule).accuracy


def mlp_share(count: int, dimension: int, units: int, rule: Rule, seed: int) -> float:
    """The share of random associations, each with its own answer, that units recall."""
    return mlp(np.arange(count), count, dimension, units, np.random.default_rng(seed), rule).accuracy


def _linear(
    count: int, outputs: int | None, dimension: int, rule: Rule, seed: int
) -> tuple[Associations, Weights[Any]]:
    spec = random_associations(count, seed, outputs=outputs)
    return spec, assemble(linear_memory(spec, rule=rule, dimension=dimension, seed=seed))


def _mlp(count: int, dimension: int, units: int, seed: int) -> tuple[Associations, Weights[Any]]:
    spec = random_associations(count, seed)
    return spec, assemble(mlp_memory(spec, dimension=dimension, units=units, seed=seed))


def _linear_figures(dimension: int) -> dict[str, Any]:
    count = linear_capacity(dimension, 12.0)
    shares = [linear_share(count, None, dimension, "hebbian", seed) for seed in SEEDS]
    return {f"the sum recalls, of {count}": round(float(np.mean(shares)), 5)}


def _mlp_figures(count: int, dimension: int, units: int) -> dict[str, Any]:
    others: tuple[Rule, ...] = ("least squares", "hebbian")
    shares = {rule: np.mean([mlp_share(count, dimension, units, rule, seed) for seed in SEEDS]) for rule in others}
    return {f"{rule} recalls": round(float(share), 4) for rule, share in shares.items()}


def _beyond(name: str, stored: int, draw: Any) -> Subject:
    return Subject(name, data={"stored": stored, "draw": draw})


def check(subject: Subject) -> Evidence:
    """Every answer of every draw, and sizes; or no perfect draw beyond what is stored."""
    if subject.weights is None:
        return recalls_too_little(subject, subject.name)
    size, units = subject.data["dimension"], subject.data["units"]
    bits = len(subject.spec.pairs) * math.log2(len(subject.spec.answers)) / (size * (2 * units or size))
    figures = {**subject.data["figures"], "bits stored per number": round(bits, 4)}
    return recalls_everything(subject, sizes(size, units), figures)


def sabotage(subject: Subject) -> Subject:
    """Answers at their neighbours' places; or so little stored that it is recalled."""
    if subject.weights is None:
        return replace(subject, data={**subject.data, "stored": subject.data["stored"] // 4})
    return answers_shifted(subject)


CLAIM = Claim(row="R29", status="empirical", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
