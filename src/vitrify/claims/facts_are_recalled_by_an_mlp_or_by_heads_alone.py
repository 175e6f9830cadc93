r"""Facts are recalled by one head and an MLP with $md \propto SR$, or by heads alone with $d \propto R + A$.

Statement: For $S$ subjects, $R$ relations and $A$ answers per relation: (a) one head that finds both words and $m$
units with a fitted read-out recall all $SR$ facts at $SR = 0.2\,md$, and no draw of five does at $SR = 0.5\,md$. (b)
Heads without an MLP, one per block of 16 subjects or relations, recall all at $d = 8 (R + A) \ln(RA)$ for any $S$
tested, and no draw of five does at a quarter of that.
Why: The read-out has $md$ numbers to fit. What heads write for a subject and a relation are sums of the codes of $R$
and of $A$ answers; only the right one is in both and exceeds others by about 1, with a variance of about $(R + A)/d$.
Checked: (a) $(S, R, A, d)$ from (32, 8, 8, 16) to (64, 8, 8, 32); (b) $(S, R, A)$ from (32, 4, 4) to (128, 4, 4) and
(32, 6, 6). First draw: all short prefixes, every fact in either order at several positions among filler words, random
sentences. Four more draws without fillers. Sizes are compared with the formulas; bits stored per parameter are
measured.
Not checked: The theorem itself: the source proves $md \gtrsim SR$ and $d \gtrsim R + A$ up to logarithms, with unknown
constants, for random embeddings and large sizes. The constants 0.2 and 8 are measured here on a few sizes.
Source: Nichani, Lee & Bietti 2025, arXiv 2412.06538 [S]; the weights are our own.
Saboteur: The head attends to all positions; two heads exchange their outputs; a quarter as much is stored, or the
dimension is four times as large, where too much should be stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.claims._figures import bars, show
from vitrify.claims._memories import beyond, memories, recalls_everything, recalls_too_little, storing
from vitrify.claims._nets import Claim, Evidence, Subject, Subjects, Weights, zeroed
from vitrify.constructions.facts import facts, facts_in_heads, sizes, sizes_in_heads
from vitrify.kit import assemble
from vitrify.kit.fact_storage import FactCodes, fact_heads, fact_units
from vitrify.kit.network import Network
from vitrify.net.transformer import AttentionKind
from vitrify.spec.memory.facts import Facts, random_facts

STORED, BEYOND = 0.2, 0.5  # facts for each number of the fitted read-out
ENOUGH, TOO_FEW = 8.0, 2.0  # the dimension, divided by (R + A) ln(RA)
UNITS: tuple[tuple[int, int, int, int, AttentionKind], ...] = (  # subjects, relations, answers, dimension
    (32, 8, 8, 16, "softmax"),
    (32, 8, 8, 32, "sparsemax"),
    (32, 8, 8, 64, "hard"),
    (64, 8, 8, 32, "softmax"),
)
HEADS: tuple[tuple[int, int, int, AttentionKind], ...] = (  # subjects, relations, answers
    (32, 4, 4, "softmax"),
    (64, 4, 4, "hard"),
    (128, 4, 4, "sparsemax"),
    (32, 6, 6, "softmax"),
)


def subjects() -> Subjects:
    for many, relations, answers, size, attention in UNITS:
        units = math.ceil(many * relations / (STORED * size))
        net = partial(_net, many, relations, answers, dimension=size, units=units, attention=attention)
        name = f"{many} × {relations} facts in {units} units, d = {size}, {attention}"
        yield memories(name, net, dimension=size, units=units)
    for many, relations, answers, attention in HEADS:
        size = dimension(relations, answers, ENOUGH)
        net = partial(_net, many, relations, answers, dimension=size, attention=attention)
        yield memories(f"{many} × {relations} facts in heads, d = {size}, {attention}", net, dimension=size, units=0)
    units = int(32 * 8 / (BEYOND * 32))
    draw = partial(units_share, relations=8, answers=8, size=32, units=units)
    yield beyond(f"32 × 8 facts in {units} units, d = 32", 32, draw)
    for many, relations, answers, _ in HEADS[:2]:
        size = dimension(relations, answers, TOO_FEW)
        name = f"{many} × {relations} facts in heads, d = {size}"
        yield beyond(name, size, partial(heads_share, many, relations, answers))


def dimension(relations: int, answers: int, times: float) -> int:
    """A multiple of $(R + A) \\ln(RA)$."""
    return math.ceil(times * (relations + answers) * math.log(relations * answers))


def units_share(many: int, relations: int, answers: int, size: int, units: int, seed: int) -> float:
    """The share of random facts that units recall."""
    rng = np.random.default_rng(seed)
    codes = FactCodes.draw(random_facts(many, relations, answers, seed), size, rng)
    return fact_units(codes, units, rng).accuracy


def heads_share(many: int, relations: int, answers: int, size: int, seed: int) -> float:
    """The share of random facts that heads alone recall."""
    spec = random_facts(many, relations, answers, seed)
    return fact_heads(FactCodes.draw(spec, size, np.random.default_rng(seed)))[0].accuracy


def _net(many: int, relations: int, answers: int, seed: int, **settings: object) -> tuple[Facts, Weights]:
    spec = random_facts(many, relations, answers, seed, fillers=0 if seed else 3, length=2 if seed else 6)
    make: Callable[..., Network] = facts if "units" in settings else facts_in_heads
    return spec, assemble(make(spec, seed=seed, **settings))


def check(subject: Subject) -> Evidence:
    if subject.weights is None:
        return recalls_too_little(subject)
    size, units, spec = subject.data["dimension"], subject.data["units"], subject.spec
    parameters = 2 * units * size or (len(spec.subjects) + len(spec.relations)) * 2 * size
    bits = len(spec.facts) * math.log2(len(spec.answers) / len(spec.relations)) / parameters
    promised = sizes(spec, dimension=size, units=units) if units else sizes_in_heads(spec, dimension=size)
    return recalls_everything(subject, promised.exact, {"bits stored per parameter": round(bits, 4)})


def sabotage(subject: Subject) -> Subject:
    """A head that looks everywhere; two heads exchanged; less stored, or more room."""
    if subject.weights is None:
        return storing(subject, 0.25 if "units" in subject.name else 4)
    if subject.data["units"]:
        return zeroed(subject, "blocks.0.attn.W_K", 0)
    written = subject.weights.arrays["blocks.0.attn.W_O"].copy()
    written[[0, 1]] = written[[1, 0]]
    return replace(subject, weights=subject.weights.with_array("blocks.0.attn.W_O", written))


FIGURE = show(
    bars({"bits stored per parameter": "bits stored per parameter"}, "bits stored per parameter", "y"),
    bars({"share recalled with too few": "mean share that is recalled"}, "share of the facts recalled"),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R30", standing="experiment", certified="sampled", budget_seconds=20, figure=FIGURE
)
