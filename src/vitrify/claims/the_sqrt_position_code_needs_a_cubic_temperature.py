r"""The position code $(\sqrt{1/t}, \sqrt{1-1/t})$ needs inverse temperature $8T^3$; the dyadic code does not.

Statement: For attention to the previous position among $T$, the best score under the square-root code exceeds the next
by about $1/(8T^3)$, so softmax needs $\beta \approx 8T^3 \ln(\cdot)$, and float32 cannot separate the scores from $T
\approx 100$ on. Under the dyadic code the gap is 2 at every $T$, in $2\lceil\log_2 T\rceil - 1$ dimensions.
Why: Neighbouring angles $\arctan\sqrt{t-1}$ differ by about $1/(2t^{3/2})$, and $1 - \cos x \approx x^2/2$.
Checked: Gaps measured on the scores of built nets for $T$ = 8, 16, 32, 64, 128 (sink left out): the exponent of $T$,
fitted by least squares, is 3 within 0.05, the constant at $T = 128$ is right within 2 %, and dyadic gaps are 2 within
1e-12. The first position at which float32 attends wrongly lies between 33 and 256. The builder refuses float32 for the
square-root code at $T = 128$ and not at 32; for the dyadic code at neither.
Not checked: Other offsets than 1 and $T > 256$; the law is asymptotic.
Source: The code is that of Svete & Cotterell 2024, arXiv 2404.14994 [T]; the constant is our own derivation.
Saboteur: The dyadic code under the name of the square-root code.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from vitrify.claims._figures import curves, show
from vitrify.claims._nets import Claim, Domain, Evidence, Method, Quantity, Subject, Subjects, Weights, refused
from vitrify.constructions.ngram import ngram
from vitrify.kit import assemble
from vitrify.kit.margins import Arithmetic
from vitrify.kit.positions import CodeName
from vitrify.spec.ngrams.families import random_ngram

LENGTHS = (8, 16, 32, 64, 128)
CODES: tuple[CodeName, ...] = ("sqrt", "dyadic")
EXPONENT_WITHIN = 0.05  # the law is asymptotic: at T = 8 the gap is 7 % off the limit
CONSTANT_WITHIN = 0.02
FLOAT32 = (32, 128)  # the assembler's bound on rounding is safe, not tight: it must allow the first, refuse the second
LONGEST = 256  # how far the first wrong choice in float32 is looked for


def subjects() -> Subjects:
    model = random_ngram(2, 3, seed=1)
    nets = {code: {T: _net(code, T, arithmetic="float64") for T in (*LENGTHS, LONGEST)} for code in CODES}
    no_net = {code: {T: refused(partial(_net, code, T, "float32")) for T in FLOAT32} for code in CODES}
    yield Subject("gap of the previous position", model, data={"nets": nets, "refused": no_net})


def _net(code: CodeName, length: int, arithmetic: Arithmetic) -> Weights:
    network = ngram(random_ngram(2, 3, seed=1), max_length=length, attention="hard", positions=code)
    return assemble(network, arithmetic=arithmetic)


def _margins(weights: Weights, precision: type) -> np.ndarray:
    """Return by how much the head's score of the previous position exceeds all others, from the second token on."""
    positions = weights.arrays["pos_embed.W_pos"].astype(precision)
    query, key = (
        positions @ weights.arrays[f"blocks.0.attn.W_{x}"][1].astype(precision)
        + weights.arrays[f"blocks.0.attn.b_{x}"][1].astype(precision)
        for x in "QK"
    )
    scores = np.asarray(query @ key.T)  # [query, key]
    return np.array([row[t - 1] - np.delete(row[1 : t + 1], t - 2).max() for t, row in enumerate(scores) if t > 1])


def first_wrong_choice(weights: Weights) -> int | None:
    """The first token for which float32 does not score the previous one strictly best."""
    wrong = np.flatnonzero(_margins(weights, np.float32) <= 0)
    return int(wrong[0]) + 2 if wrong.size else None


def gap(weights: Weights) -> float:
    """Return the smallest gap between the score of the previous position and that of any other token."""
    return float(_margins(weights, np.float64).min())


def check(subject: Subject) -> Evidence:
    nets = subject.data["nets"]
    gaps = {code: np.array([gap(nets[code][T]) for T in LENGTHS]) for code in nets}
    slope = -float(np.polyfit(np.log(LENGTHS), np.log(gaps["sqrt"]), 1)[0])
    constant = float(gaps["sqrt"][-1] * 8 * LENGTHS[-1] ** 3)
    dyadic = float(np.abs(gaps["dyadic"] - 2).max())
    broken = first_wrong_choice(nets["sqrt"][max(nets["sqrt"])])
    pairs = sum(T * (T - 1) // 2 for T in LENGTHS)
    domain = Domain("pairs of positions", Method.EXHAUSTIVE, pairs, settings={"T": LENGTHS})
    precise = {code: [T for T, no in lengths.items() if no] for code, lengths in subject.data["refused"].items()}
    first = "first position at which float32 attends wrongly"
    return Evidence("holds", pairs, (domain,)).adding(
        Quantity("exponent of T", slope),
        Quantity("distance of the exponent from 3", abs(slope - 3), EXPONENT_WITHIN, "<="),
        Quantity("gap times 8T³ at T = 128", constant),
        Quantity("distance of that from 1", abs(constant - 1), CONSTANT_WITHIN, "<="),
        Quantity("largest distance of a dyadic gap from 2", dyadic, 1e-12, "<="),
        Quantity("refused in float32", precise, {"sqrt": [128], "dyadic": []}, "="),
        Quantity(first, broken, FLOAT32[0] + 1, ">="),
        Quantity(f"{first}, at the latest", broken, LONGEST, "<="),
        *(Quantity(f"least gap at T = {T}", {code: gaps[code][at] for code in gaps}) for at, T in enumerate(LENGTHS)),
    )


def sabotage(subject: Subject) -> Subject:
    nets = subject.data["nets"]
    return subject.with_data(nets={**nets, "sqrt": nets["dyadic"]})


FIGURE = show(
    curves(
        "least gap at T = {}",
        {f"{code} code": code for code in CODES},
        "length T",
        "least gap of the previous position",
        "2xy",
        laws={"1/(8T³)": lambda T: 1 / (8 * T**3)},
    )
)
CLAIM = Claim(
    subjects, check, sabotage, id="R1", standing="theorem", uncertified="about a code of positions", figure=FIGURE
)
