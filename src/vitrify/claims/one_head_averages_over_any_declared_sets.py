r"""One head of about $q \ln N$ dimensions averages over any declared sets of $q$ of $N$ positions.

Statement: For every $N$, $q$, $d'$ and $\varepsilon$ a transformer with one layer, one head and no MLP is within
$\varepsilon$ of the mean of the vectors in $\mathbb R^{d'}$ that every position points at, in $2d' + 2m$ dimensions: $m
= \lceil 19 q\ln N\rceil$ with random signs and least squares, $\lceil 3 q\ln N\rceil$ with random unit vectors and
linear programs (both for the sets that were tested); $O(q^2 \log N)$ with keys of low coherence, for all sets; $2q$
with moments, for all sets, if the arithmetic resolves a tiny gap.
Why: A query whose product with the keys is 1 on a set and at most ½ off it, at $\beta = 2\ln(4N/\varepsilon)$, gives
each member weight $1/q$ and all others together almost none.
Checked: $N = 256$, $q = 2, 4, 8$, 256 declared sets (16 for linear programs), three draws of signs: scores from the
built arrays without rounding, the proved error, outputs on random words, sizes. Low coherence: the bound for all sets,
and all 1,176 sets of 2 of 49 positions. Moments: all 220 sets of 3 of 12, against the promised gap. Eight draws of
signs with $m = 3.6\,q\ln N$ are all refused, and so are moments of 8 of 256.
Not checked: All $\binom{N}{q}$ sets at $N = 256$ with signs and unit vectors: the constants 19 and 3 are measured,
while the source proves $O(q \log N)$ for all sets at once.
Source: Sanford, Hsu & Telgarsky 2023, arXiv 2306.02896 [S]; codes and constants here are our own.
Saboteur: One dimension of the keys is removed; a sufficient code takes the place of one that must be refused.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import ceil, log

import numpy as np

from vitrify.certification.oracles.sparse_averaging import looked_at
from vitrify.claims._nets import Domain, Evidence, Method, Quantity, check_net, refused, zeroed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.sparse_averaging import TOLERANCE, accuracy, sizes, sparse_averaging
from vitrify.kit import assemble
from vitrify.kit.set_codes import MAX_OFF_SCORE, CodeOfSets, coherence, max_score_off_any_set, min_gap_of_moments
from vitrify.net.sparse import dense
from vitrify.spec.tasks.sparse_averaging import SparseAveraging, random_sets

LENGTH = 256
SETS: dict[CodeOfSets, int] = {"signs": 256, "units": 16, "coherent": 256}
DRAWS = 3  # of signs
MOMENTS = ((256, 2), (64, 4))  # positions and members
ALL: tuple[tuple[int, int, CodeOfSets], ...] = ((49, 2, "coherent"), (12, 3, "moments"))
NARROW, REFUSED = 3.6, 8
WORDS = 4
OFF_DECLARED, OFF_ANY = "largest score off a declared set", "largest score off any set"
GAP = "least gap of any set"


def subjects() -> Subjects:
    tasks = {q: SparseAveraging(LENGTH, q, 1, random_sets(LENGTH, q, 256, seed=q)) for q in (2, 4, 8)}
    for q in tasks:
        for code, count in SETS.items():
            task = SparseAveraging(LENGTH, q, 1, random_sets(LENGTH, q, count, seed=q))
            for seed in range(DRAWS if code == "signs" else 1):
                yield _subject(f"{q} of {LENGTH}, {code}, draw {seed}", task, code, seed)
    for length, q in MOMENTS:
        task = SparseAveraging(length, q, 1, random_sets(length, q, 256, seed=q))
        yield _subject(f"{q} of {length}, moments", task, "moments")
    for length, q, code in ALL:
        yield _subject(f"all sets of {q} of {length}, {code}", SparseAveraging(length, q, 1), code)
    for q, task in tasks.items():
        narrow = {"code": "signs", "draws": REFUSED, "width": ceil(NARROW * q * log(LENGTH))}
        yield Subject(f"{q} of {LENGTH}, too narrow", task, None, narrow)
    yield Subject(f"8 of {LENGTH}, moments", tasks[8], None, {"code": "moments", "draws": 1, "width": None})


def _subject(name: str, task: SparseAveraging, code: CodeOfSets, seed: int = 0) -> Subject:
    net = assemble(sparse_averaging(task, code=code, seed=seed))
    return Subject(name, task, net, {"code": code, "sizes": sizes(task, code=code)})


def check(subject: Subject) -> Evidence:
    if subject.weights is None:
        return _refusals(subject)
    task, net, code = subject.spec, subject.weights, subject.data["code"]
    evidence = check_net(subject, samples=WORDS, work=1e6)
    seen = looked_at(net, task)
    if evidence.verdict != "holds" or seen is None:
        return evidence if seen else replace(evidence, verdict="fails", witness={"scores": "can't be listed"})
    if code == "moments":
        least = min_gap_of_moments(task.length, task.sparsity)
        return _beside(evidence, Quantity(GAP, float(seen.gap), least, ">="), seen.gap >= Fraction(least))
    evidence = _beside(evidence, Quantity(OFF_DECLARED, float(seen.off), 0.5, "<="), seen.off <= MAX_OFF_SCORE)
    if code == "coherent" and evidence.verdict == "holds":
        keys = dense(net.arrays["pos_embed.W_pos"]) @ dense(net.arrays["blocks.0.attn.W_K"])[0]
        off = max_score_off_any_set(coherence(np.asarray(keys[1:])), task.sparsity)
        rounding = Fraction(accuracy(task.length, TOLERANCE))  # of queries
        holds = off is not None and seen.off <= off + rounding <= MAX_OFF_SCORE
        return _beside(evidence, Quantity(OFF_ANY, float((off or 0) + rounding), 0.5, "<="), holds)
    return evidence


def _beside(evidence: Evidence, quantity: Quantity, holds: bool) -> Evidence:
    """Return the evidence with a quantity that was judged in fractions, which it only holds rounded."""
    evidence = replace(evidence, quantities=(*evidence.quantities, quantity))
    return evidence if holds else replace(evidence, verdict="fails", witness={quantity.name: quantity.measured})


def _refusals(subject: Subject) -> Evidence:
    """Count the draws of insufficient codes that are refused."""
    draws, code = subject.data["draws"], subject.data["code"]
    construct = partial(sparse_averaging, subject.spec, code=code, width=subject.data["width"])
    count = sum(refused(partial(construct, seed=seed)) for seed in range(draws))
    evidence = Evidence("holds", draws, (Domain(f"draws of {code}", Method.SAMPLED, draws),), seed=0)
    return evidence.adding(Quantity("refused draws", count, draws, "="))


def sabotage(subject: Subject) -> Subject:
    if subject.weights is None:
        return subject.with_data(code="coherent", width=None)
    key = subject.weights.labels.space("position")
    return zeroed(subject, "pos_embed.W_pos", (slice(None), key.dims[0]))


CLAIM = Claim(subjects, check, sabotage, id="R17", standing="theorem", certified="sampled", budget_seconds=60)
