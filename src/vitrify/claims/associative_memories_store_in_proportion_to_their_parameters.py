r"""Linear memories store about $d^2$ associations and MLPs of width $m$ about $md$, if the read-out is fitted.

Statement: With random codes of $d$ numbers for inputs and outputs, a $d \times d$ matrix recalls $d^2/(12 \ln d)$
associations with different outputs, and $m$ random ReLU units with a read-out fitted by cross-entropy recall $0.12\,md$
(up to eight times $m$). Units fail at twice as many, a matrix of Hebbian sums at $d^2/(4 \ln d)$. With two outputs a
matrix stores no more than about $2d$.
Why: $N$ other associations add noise of variance about $N/d^2$ to a score of 1, in $N$ comparisons; a read-out has $md$
numbers to fit. Two outputs are separated by one hyperplane, and for $N > 2d$ random inputs that hardly ever exists
(Cover).
Checked: Five draws on every input: least squares at $d^2/(12 \ln d)$, $d = 128, 256$; Hebbian sums at $d^2/(16 \ln d)$,
$d = 64, 128$; two outputs at $1.5\,d$; units at $0.12\,md$, $d = 16, 32, 64$, $m = 64, 128$. No draw of five is perfect
with Hebbian sums at $d^2/(4 \ln d)$, $d = 128$, with two outputs at $4d$, or at $0.24\,md$. Also measured: Hebbian sums
at $d^2/(12 \ln d)$, what least squares and sums recall from the same units, and bits stored per parameter.
Not checked: The theorems, which are asymptotic up to logarithms and whose proofs were not read; constants are measured
at these sizes. Read-outs by least squares and by Hebbian sums do not reach $0.12\,md$; the limit falls slowly with
size, about like $N \ln N = 0.9\,md$.
Source: Nichani, Lee & Bietti 2025, arXiv 2412.06538 [S]; Cabannes, Dohmatob & Bietti 2024 [S]; Cover 1965 [S].
Saboteur: Output codes are shifted by one; a quarter as much is stored where too much should be.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from vitrify.certification.evidence import Evidence
from vitrify.claims import _memories
from vitrify.claims._figures import bars, named, points, show
from vitrify.claims._memories import SEEDS, beyond, memories, recalls_everything, recalls_too_little, storing
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.associations import linear_memory, linear_sizes, mlp_memory, mlp_sizes
from vitrify.kit import assemble
from vitrify.kit.fact_storage import linear, mlp
from vitrify.kit.memory import Rule
from vitrify.net.weights import Weights
from vitrify.spec.memory.associations import Associations, random_associations

LINEAR: tuple[tuple[Rule, int, float], ...] = (  # rule, dimension, what divides d²/ln d
    ("least squares", 128, 12.0),
    ("least squares", 256, 12.0),
    ("hebbian", 64, 16.0),
    ("hebbian", 128, 16.0),
)
LAYERED = ((16, 64), (32, 64), (64, 64), (32, 128))  # dimension, units
STORED, BEYOND = 0.12, 0.24  # associations for each number of the fitted read-out


def subjects() -> Subjects:
    for rule, size, part in LINEAR:
        count = linear_capacity(size, part)
        figures = _linear_figures(size) if part == 12.0 else {}
        name = f"{rule}, d = {size}, {count} associations"
        yield memories(name, partial(_linear, count, None, size, rule), dimension=size, units=0, figures=figures)
    fitted = partial(_linear, 96, 2, 64, "fitted")
    yield memories("two answers, d = 64, 96 words", fitted, dimension=64, units=0, figures={})
    for size, units in LAYERED:
        count = int(STORED * units * size)
        name, figures = f"{units} units, d = {size}, {count} associations", _mlp_figures(count, size, units)
        yield memories(name, partial(_mlp, count, size, units), dimension=size, units=units, figures=figures)
    draw = partial(linear_share, outputs=None, dimension=128, rule="hebbian")
    yield beyond("hebbian, d = 128, too many", linear_capacity(128, 4.0), draw)
    draw = partial(linear_share, outputs=2, dimension=32, rule="fitted")
    yield beyond("two answers, d = 32, too many", 4 * 32, draw)
    for size, units in LAYERED[:2]:
        name, stored = f"{units} units, d = {size}, too many", int(BEYOND * units * size)
        yield beyond(name, stored, partial(mlp_share, dimension=size, units=units, rule="fitted"))


def linear_capacity(dimension: int, part: float) -> int:
    """$d^2/(c \\ln d)$ for a constant $c$."""
    return int(dimension**2 / (part * math.log(dimension)))


def linear_share(count: int, outputs: int | None, dimension: int, rule: Rule, seed: int) -> float:
    """The share of random associations that a matrix recalls; each has its own answer, or one of `outputs`."""
    rng = np.random.default_rng(seed)
    right = np.arange(count) if outputs is None else rng.integers(outputs, size=count)
    return linear(right, outputs or count, dimension, rng, rule).accuracy


def mlp_share(count: int, dimension: int, units: int, rule: Rule, seed: int) -> float:
    """The share of random associations, each with its own answer, that units recall."""
    return mlp(np.arange(count), count, dimension, units, np.random.default_rng(seed), rule).accuracy


def _linear(count: int, outputs: int | None, dimension: int, rule: Rule, seed: int) -> tuple[Associations, Weights]:
    spec = random_associations(count, seed, outputs=outputs)
    return spec, assemble(linear_memory(spec, rule=rule, dimension=dimension, seed=seed))


def _mlp(count: int, dimension: int, units: int, seed: int) -> tuple[Associations, Weights]:
    spec = random_associations(count, seed)
    return spec, assemble(mlp_memory(spec, dimension=dimension, units=units, seed=seed))


def _linear_figures(dimension: int) -> dict[str, float]:
    count = linear_capacity(dimension, 12.0)
    shares = [linear_share(count, None, dimension, "hebbian", seed) for seed in SEEDS]
    return {f"the sum recalls, of {count}": round(float(np.mean(shares)), 5)}


def _mlp_figures(count: int, dimension: int, units: int) -> dict[str, float]:
    others: tuple[Rule, ...] = ("least squares", "hebbian")
    shares = {rule: np.mean([mlp_share(count, dimension, units, rule, seed) for seed in SEEDS]) for rule in others}
    return {f"{rule} recalls": round(float(share), 4) for rule, share in shares.items()}


def check(subject: Subject) -> Evidence:
    if subject.weights is None:
        return recalls_too_little(subject)
    spec, size, units = subject.spec, subject.data["dimension"], subject.data["units"]
    bits = len(spec.pairs) * math.log2(len(spec.answers)) / (size * (2 * units or size))
    figures = {**subject.data["figures"], "bits stored per number": round(bits, 4)}
    promised = mlp_sizes(spec, dimension=size, units=units) if units else linear_sizes(spec, dimension=size)
    return recalls_everything(subject, promised.exact, figures)


def sabotage(subject: Subject) -> Subject:
    return storing(subject, 0.25) if subject.weights is None else _memories.answers_shifted(subject)


FIGURE = show(
    bars({"bits stored per number": "bits stored per number"}, "bits stored per number"),
    points(
        "d = {}",
        "stored",
        "dimension d",
        "associations stored",
        "2x2y",
        by=named("(least squares|hebbian|units)", "two answers"),
    ),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R29", standing="experiment", certified="proved", budget_seconds=60, figure=FIGURE
)
