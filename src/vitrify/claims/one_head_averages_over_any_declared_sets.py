r"""One head of about $q \ln N$ dimensions takes the mean over any declared sets of $q$ of $N$ positions.

Statement: a transformer of one layer with one head and no units is within $\varepsilon$ of the mean of the vectors that
every position points at, in $2d' + 2m$ dimensions for vectors of $d'$: $m = \lceil 19 q\ln N\rceil$ with random signs
and least squares, $\lceil 3 q\ln N\rceil$ with random unit vectors and linear programs, both for the sets that were
looked at; $O(q^2 \log N)$ for all sets at once with keys of low coherence; $2q$ with moments, exact for all sets, where
the arithmetic carries a tiny gap.
Why: a query whose product with the keys is 1 on a set and at most ½ off it, at the temperature $2\ln(4N/\varepsilon)$,
gives members the weight $1/q$ and all others together next to none.
Checked: $N = 256$, $q = 2, 4, 8$, for 256 declared sets (16 for linear programs): scores from the built arrays without
rounding, the proved error, answers to random words, sizes; several draws of signs. Low coherence: all pairs of keys,
and the bound for all sets; all 1,176 sets of 2 of 49 positions one by one. Moments: all 220 sets of 3 of 12, against
the gap promised for every set. Of 8 draws of signs with $m = 3.6\,q\ln N$ none has a certificate, and all are refused;
so are moments of 8 of 256 positions.
Source: Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896 [S]; codes and constants here are our own.
Saboteur: one dimension of the keys is lost; instead of a code that is refused, one that will do is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, log

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.certify.set_oracle import looked_at
from vitrify.certify.words import WordExamination
from vitrify.claims._nets import with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.sparse_averaging import TOLERANCE, accuracy, sizes, sparse_averaging
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.kit.set_codes import HALF, CodeOfSets, coherence, least_gap_of_moments, off_every_set
from vitrify.net.sparse import dense
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.tasks.sparse_averaging import SparseAveraging, random_sets

LENGTH = 256
SETS: dict[CodeOfSets, int] = {"signs": 256, "units": 16, "coherent": 256}
DRAWS = 3  # of signs
MOMENTS = ((256, 2), (64, 4))  # positions and members
ALL: tuple[tuple[int, int, CodeOfSets], ...] = ((49, 2, "coherent"), (12, 3, "moments"))
NARROW, REFUSED = 3.6, 8
WORDS = 4
OFF, EVERY = "largest score off a declared set", "largest score off any set"
GAP = "least gap of any set"


def subjects() -> Iterator[Subject]:
    """Every code at full size, all sets of a small one, and codes that are too narrow."""
    for q in (2, 4, 8):
        for code, count in SETS.items():
            task = SparseAveraging(LENGTH, q, 1, random_sets(LENGTH, q, count, seed=q))
            for seed in range(DRAWS if code == "signs" else 1):
                net = assemble(sparse_averaging(task, code=code, seed=seed))
                yield Subject(f"{q} of {LENGTH}, {code}, draw {seed}", task, net, {"code": code})
    for length, q in MOMENTS:
        task = SparseAveraging(length, q, 1, random_sets(length, q, 256, seed=q))
        net = assemble(sparse_averaging(task, code="moments"))
        yield Subject(f"{q} of {length}, moments", task, net, {"code": "moments"})
    for length, q, code in ALL:
        every = SparseAveraging(length, q, 1)
        net = assemble(sparse_averaging(every, code=code))
        yield Subject(f"all sets of {q} of {length}, {code}", every, net, {"code": code})
    for q in (2, 4, 8):
        task = SparseAveraging(LENGTH, q, 1, random_sets(LENGTH, q, 256, seed=q))
        narrow = {"code": "signs", "draws": REFUSED, "width": ceil(NARROW * q * log(LENGTH))}
        yield Subject(f"{q} of {LENGTH}, too narrow", task, None, narrow)
    yield Subject(f"8 of {LENGTH}, moments", task, None, {"code": "moments", "draws": 1, "width": None})


def check(subject: Subject) -> Evidence:
    """Answers, scores without rounding and sizes; what a code promises about every set; refusals of narrow codes."""
    if subject.weights is None:
        return _refusals(subject)
    task, net, code = subject.spec, subject.weights, subject.data["code"]
    evidence = WordExamination(net.architecture, task, samples=WORDS, work=1e6).run(net)
    size, promised = Ledger.of(net), sizes(task, code)
    evidence = with_sizes(evidence, promised, {name: getattr(size, name) for name in promised})
    seen = looked_at(net, task)
    if evidence.verdict != "holds" or seen is None:
        return evidence if seen else replace(evidence, verdict="fails", witness={"scores": "can't be listed"})
    if code == "moments":
        least = least_gap_of_moments(task.length, task.sparsity)
        return _beside(evidence, GAP, f"at least {least:.3g}", seen.gap, seen.gap >= Fraction(least))
    evidence = _beside(evidence, OFF, "at most 1/2", seen.off, seen.off <= HALF)
    if code == "coherent" and evidence.verdict == "holds":
        off = off_every_set(coherence(_keys(net)), task.sparsity)
        rounding = Fraction(accuracy(task.length, TOLERANCE))  # of queries
        holds = off is not None and seen.off <= off + rounding <= HALF
        return _beside(evidence, EVERY, "at most 1/2", (off or 0) + rounding, holds)
    return evidence


def _beside(evidence: Evidence, name: str, declared: str, measured: Fraction | int, holds: bool) -> Evidence:
    found = replace(
        evidence,
        declared={**evidence.declared, name: declared},
        measured={**evidence.measured, name: float(measured)},
    )
    return found if holds else replace(found, verdict="fails", witness={name: float(measured)})


def _keys(weights: Weights) -> np.ndarray:
    """The keys of all positions, from the arrays."""
    told = dense(weights.arrays["pos_embed.W_pos"]) @ dense(weights.arrays["blocks.0.attn.W_K"])[0]
    return np.asarray(told[1:])


def _refusals(subject: Subject) -> Evidence:
    """How many draws of codes that can't do it are refused."""
    refused, draws, code = 0, subject.data["draws"], subject.data["code"]
    for seed in range(draws):
        try:
            sparse_averaging(subject.spec, code=code, width=subject.data["width"], seed=seed)
        except BuildRefused:
            refused += 1
    return Evidence(
        verdict="holds" if refused == draws else "fails",
        method="exhaustive",
        domain=f"{draws} draws of {code}",
        cases=draws,
        witness=None if refused == draws else {"refused": refused},
        declared={"refused draws": draws},
        measured={"refused draws": refused},
        seed=0,
        seconds=0.0,
    )


def sabotage(subject: Subject) -> Subject:
    """The first dimension of all keys is lost; what is refused is replaced by a code that will do."""
    if subject.weights is None:
        return replace(subject, data={**subject.data, "code": "coherent", "width": None})
    key = subject.weights.labels.space("position")
    return zeroed(subject, "pos_embed.W_pos", (slice(None), key.dims[0]))


CLAIM = Claim(row="R17", status="proved", certified="sampled", subjects=subjects, check=check, sabotage=sabotage)
