r"""The position code $(\sqrt{1/t}, \sqrt{1-1/t})$ needs a temperature of about $8T^3$, the dyadic code does not.

Statement: to attend to the previous position among $T$, the square-root code's best score leads by about $1/(8T^3)$,
so soft attention needs $\beta \approx 8T^3 \ln(\cdot)$ and float32 can't tell the scores apart from $T \approx 100$
on; the dyadic code leads by 2 at every $T$, in $2\lceil\log_2 T\rceil - 1$ dimensions.
Why: neighbouring angles $\arctan\sqrt{t-1}$ differ by about $1/(2t^{3/2})$, and $1 - \cos x \approx x^2/2$.
Checked: the lead measured in the scores of built nets for T = 8 to 128, sink left out: exponent of T fitted by least
squares, constant at the largest T; the first position at which float32 attends wrongly; the assembler's verdict on
float32 at T = 32 and 128 for either code.
Source: the code is that of Svete & Cotterell 2024, arXiv 2404.14994 [T]; the constant is our own derivation.
Saboteur: the dyadic code under the square-root code's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.ngram import ngram
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.kit.margins import Arithmetic
from vitrify.kit.positions import CodeName
from vitrify.net.weights import Weights
from vitrify.spec.ngrams import random_ngram

LENGTHS = (8, 16, 32, 64, 128)
EXPONENT_WITHIN = 0.05  # the law is asymptotic: at T = 8 the lead is 7 % off the limit
CONSTANT_WITHIN = 0.02
FLOAT32 = (32, 128)  # the assembler's bound on rounding is safe, not tight: it must allow the first, refuse the second
LONGEST = 256  # how far the first wrong choice in float32 is looked for


def subjects() -> Iterator[Subject]:
    """Bigram-and-back nets (order 3: one head looks one place back) at growing lengths, with either code."""
    model = random_ngram(2, 3, seed=1)
    nets = {code: {T: _net(code, T, arithmetic="float64") for T in (*LENGTHS, LONGEST)} for code in ("sqrt", "dyadic")}
    refused = {code: {T: _refused(code, T) for T in FLOAT32} for code in ("sqrt", "dyadic")}
    yield Subject("lead of the previous position", model, data={"nets": nets, "refused": refused})


def _net(code: CodeName, length: int, arithmetic: Arithmetic) -> Weights:
    network = ngram(random_ngram(2, 3, seed=1), max_length=length, attention="hard", positions=code)
    return assemble(network, arithmetic=arithmetic)


def _refused(code: CodeName, length: int) -> bool:
    try:
        _net(code, length, arithmetic="float32")
    except BuildRefused:
        return True
    return False


def _scores(weights: Weights, precision: type) -> np.ndarray:
    """Scores of the head that looks one place back, [query, key], in the net's own numbers."""
    place = weights.arrays["pos_embed.W_pos"].astype(precision)
    query, key = (
        place @ weights.arrays[f"blocks.0.attn.W_{x}"][1].astype(precision)
        + weights.arrays[f"blocks.0.attn.b_{x}"][1].astype(precision)
        for x in "QK"
    )
    scores: np.ndarray = query @ key.T
    return scores


def first_wrong_choice(weights: Weights) -> int | None:
    """The first token for which float32 does not score the previous one strictly best."""
    scores = _scores(weights, np.float32)
    for t in range(2, len(scores)):
        if scores[t, t - 1] <= np.delete(scores[t, 1 : t + 1], t - 2).max():
            return t
    return None


def lead(weights: Weights) -> float:
    """The smallest lead of the previous position's score over every other token's."""
    scores = _scores(weights, np.float64)
    rows = [np.delete(scores[t, 1 : t + 1], t - 2) for t in range(2, len(scores))]
    return float(min(scores[t, t - 1] - row.max() for t, row in enumerate(rows, start=2)))


def check(subject: Subject) -> Evidence:
    """The exponent and the constant of either code's lead."""
    nets, refused = subject.data["nets"], subject.data["refused"]
    leads = {code: np.array([lead(nets[code][T]) for T in LENGTHS]) for code in nets}
    slope = -float(np.polyfit(np.log(LENGTHS), np.log(leads["sqrt"]), 1)[0])
    constant = float(leads["sqrt"][-1] * 8 * LENGTHS[-1] ** 3)
    dyadic = float(np.abs(leads["dyadic"] - 2).max())
    broken = first_wrong_choice(nets["sqrt"][max(nets["sqrt"])])
    good = (
        abs(slope - 3) <= EXPONENT_WITHIN
        and abs(constant - 1) <= CONSTANT_WITHIN
        and dyadic <= 1e-12
        and refused == {"sqrt": {32: False, 128: True}, "dyadic": {32: False, 128: False}}
        and broken is not None
        and FLOAT32[0] < broken
    )
    measured = {
        "exponent of T": slope,
        "lead times 8T³ at T = 128": constant,
        "dyadic lead minus 2": dyadic,
        "refused in float32": {code: [T for T, no in found.items() if no] for code, found in refused.items()},
        "first position at which float32 attends wrongly": broken,
    }
    return Evidence(
        verdict="holds" if good else "fails",
        method="exhaustive",
        domain=f"all pairs of positions, T in {LENGTHS}",
        cases=sum(T * (T - 1) // 2 for T in LENGTHS),
        witness=None if good else measured,
        declared={
            "exponent of T": f"3 ± {EXPONENT_WITHIN}",
            "lead times 8T³ at T = 128": f"1 ± {CONSTANT_WITHIN}",
            "dyadic lead minus 2": "at most 1e-12",
            "refused in float32": {"sqrt": [128], "dyadic": []},
            "first position at which float32 attends wrongly": f"in {FLOAT32[0]} … {LONGEST}",
        },
        measured=measured,
    )


def sabotage(subject: Subject) -> Subject:
    """The dyadic code under the square-root code's name."""
    nets = subject.data["nets"]
    return replace(subject, data={**subject.data, "nets": {**nets, "sqrt": nets["dyadic"]}})


CLAIM = Claim(row="R1", status="proved", subjects=subjects, check=check, sabotage=sabotage)
