r"""Facts are recalled by one head and units with $md$ like their number, or by heads alone with $d$ like $R + A$.

Statement: for $S$ subjects and $R$ relations, of $A$ answers each, one head that finds both words and $m$ units with
a fitted read-out recall all $SR$ facts at $SR = 0.2\,md$, and none of five draws does at $SR = 0.5\,md$; heads without
units, one for each block of 16 subjects and of 16 relations, recall all at $d = 8 (R + A) \ln(RA)$ whatever $S$ is, and
none of five draws does at a quarter of it.
Why: the read-out has $md$ numbers to fit. What the heads write for a subject and for a relation are sums of the
codes of $R$ and of $A$ answers, of which only the right one is in both: it leads by about 1, with a variance of about
$(R + A)/d$.
Checked: nets of the first draw on all short beginnings of sentences, on every fact in either order at several places
among fillers, and on random sentences, attention included; four other draws without fillers; three kinds of attention;
sizes against the formulas. Bits stored per number of the memory are measured beside it.
Source: Nichani, Lee & Bietti 2025, arXiv 2412.06538 [S]; constants are measured here, the weights are our own.
Saboteur: the head that finds both words looks everywhere; two heads write what the other should; a quarter as much
stored, or four times the dimension, where too much should be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._memories import SEEDS, recalls_everything, recalls_too_little
from vitrify.claims._nets import zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions._memory import FactCodes, fact_heads, fact_units
from vitrify.constructions.facts import facts, facts_in_heads, sizes
from vitrify.kit import assemble
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights
from vitrify.spec.facts import Facts, random_facts

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


def subjects() -> Iterator[Subject]:
    """Nets within what they recall, and draws beyond it."""
    for many, relations, answers, size, attention in UNITS:
        units = math.ceil(many * relations / (STORED * size))
        nets = [
            _net(many, relations, answers, seed, {"dimension": size, "units": units, "attention": attention})
            for seed in SEEDS
        ]
        name = f"{many} × {relations} facts in {units} units, d = {size}, {attention}"
        yield Subject(name, *nets[0], {"others": nets[1:], "dimension": size, "units": units})
    for many, relations, answers, attention in HEADS:
        size = dimension(relations, answers, ENOUGH)
        nets = [_net(many, relations, answers, seed, {"dimension": size, "attention": attention}) for seed in SEEDS]
        name = f"{many} × {relations} facts in heads, d = {size}, {attention}"
        yield Subject(name, *nets[0], {"others": nets[1:], "dimension": size, "units": 0})
    units = int(32 * 8 / (BEYOND * 32))
    yield Subject(
        f"32 × 8 facts in {units} units, d = 32",
        data={"stored": 32, "draw": lambda n, s: units_share(n, 8, 8, 32, units, s)},
    )
    for many, relations, answers, _ in HEADS[:2]:
        size = dimension(relations, answers, TOO_FEW)
        yield Subject(
            f"{many} × {relations} facts in heads, d = {size}",
            data={"stored": size, "draw": lambda d, s, r=relations, a=answers, n=many: heads_share(n, r, a, d, s)},
        )


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


def _net(many: int, relations: int, answers: int, seed: int, settings: dict[str, Any]) -> tuple[Facts, Weights[Any]]:
    spec = random_facts(many, relations, answers, seed, fillers=0 if seed else 3, length=2 if seed else 6)
    make = facts if "units" in settings else facts_in_heads
    return spec, assemble(make(spec, seed=seed, **settings))


def check(subject: Subject) -> Evidence:
    """Every question of every draw, and sizes; or no perfect draw beyond what is recalled."""
    if subject.weights is None:
        return recalls_too_little(subject, subject.name)
    size, units, spec = subject.data["dimension"], subject.data["units"], subject.spec
    numbers = 2 * units * size or (len(spec.subjects) + len(spec.relations)) * 2 * size
    bits = len(spec.facts) * math.log2(len(spec.answers) / len(spec.relations)) / numbers
    return recalls_everything(subject, sizes(spec, size, units), {"bits stored per number": round(bits, 4)})


def sabotage(subject: Subject) -> Subject:
    """A head that looks everywhere; two heads exchanged; less stored, or more room."""
    if subject.weights is None:
        stored = subject.data["stored"]
        return replace(subject, data={**subject.data, "stored": stored // 4 if "units" in subject.name else 4 * stored})
    if subject.data["units"]:
        return zeroed(subject, "blocks.0.attn.W_K", 0)
    written = subject.weights.arrays["blocks.0.attn.W_O"].copy()
    written[[0, 1]] = written[[1, 0]]
    return replace(subject, weights=subject.weights.with_array("blocks.0.attn.W_O", written))


CLAIM = Claim(row="R30", status="empirical", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
