r"""Rounding ends the square-root position code near T = 100 in float32; the dyadic code passes 4,096.

Statement: a head tells positions apart in arithmetic of unit roundoff $u$ as long as $\kappa u$ stays below 1/4, with
$\kappa$ its largest score over its lead. The code $(\sqrt{1/t}, \sqrt{1-1/t})$ has $\kappa = 8T^3$, so float32 ends it
near $T = (32u)^{-1/3} = 81$ and float64 near $6.6 \cdot 10^4$; the dyadic code has $\kappa = B/2$ with
$B = \lceil\log_2 T\rceil$, which no length in use brings near 1/4.
Why: rounding moves a score by some $u$ times its size, and a key that leads by less than that may lose.
Checked: the margins of nets built for $T$ are proved for all words with every number in the format, stored weights
included: with the square-root code in float64 at $T = 10^4$, in float32 at 32 and not at 128; with the dyadic code in
float32 at 4,096. Runs in float32 with the square-root code go wrong from some $T$ on, within a factor of 2 of 81, and
the largest $T$ that is proved is below that. The assembler refuses to build for float32 in between.
Source: the code is that of Svete & Cotterell 2024, arXiv 2404.14994 [T]; lead, $\kappa$ and bound are our own.
Saboteur: the dyadic code under the square-root code's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from vitrify.certify.arithmetic import kept_length
from vitrify.certify.evidence import Evidence
from vitrify.certify.formats import FORMATS
from vitrify.certify.margins import margins
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.catalogue import Settings, build
from vitrify.errors import BuildRefused
from vitrify.kit.margins import Arithmetic
from vitrify.kit.positions import CodeName
from vitrify.net.weights import Weights
from vitrify.spec.ngrams import random_ngram

Make = Callable[[int, Arithmetic], Weights]

SHORT, LONG = 32, 256  # lengths between which float32 ends the square-root code
FLOAT64, DYADIC = 10_000, 4_096
WITHIN = 2.0  # the theory has no constant for what "near" means
WORDS, SEED = 4, 0


def subjects() -> Iterator[Subject]:
    """Nets of a model of order 3, one head of which looks one place back, with either code, for any length."""
    yield Subject("look one place back", data={"sqrt": _maker("sqrt"), "dyadic": _maker("dyadic")})


def _maker(code: CodeName) -> Make:
    model = random_ngram(2, 3, seed=1)

    @cache
    def make(length: int, arithmetic: Arithmetic = "float64") -> Weights:
        return build(model, "heads", Settings("softmax", length, positions=code), arithmetic=arithmetic)

    return make


def predicted(roundoff: float) -> float:
    """The length at which 8T³u reaches 1/4."""
    return float((32 * roundoff) ** (-1 / 3))


def proved(make: Make, length: int, name: str) -> bool:
    """Whether a net for a length keeps all its answers in a format, provably."""
    return margins(make(length, "float64"), arithmetic=FORMATS[name]).holds


def goes_wrong(make: Make, length: int) -> bool:
    """Whether a net for a length gives some random word another answer in float32."""
    words = np.random.default_rng(SEED).integers(1, 3, size=(WORDS, length))
    return kept_length(make(length, "float64"), FORMATS["float32"], [words])[1]


def refused(make: Make, length: int) -> bool:
    """Whether the assembler refuses to build for float32."""
    try:
        make(length, "float32")
    except BuildRefused:
        return True
    return False


def first(holds: Callable[[int], bool]) -> int | None:
    """The first length after `SHORT` at which something holds, by bisection; None if it does not at `LONG`."""
    low, high = SHORT, LONG
    if not holds(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def check(subject: Subject) -> Evidence:
    """What is proved and what is measured with either code, beside the prediction."""
    sqrt, dyadic = subject.data["sqrt"], subject.data["dyadic"]
    expected = {name: predicted(FORMATS[name].roundoff) for name in ("float32", "float64")}
    unproved = first(lambda T: not proved(sqrt, T, "float32"))
    wrong = first(lambda T: goes_wrong(sqrt, T))
    no_net = first(lambda T: refused(sqrt, T))
    good = (
        proved(sqrt, SHORT, "float32")
        and None not in (unproved, wrong, no_net)
        and unproved <= wrong  # type: ignore[operator]  # they are numbers
        and expected["float32"] / WITHIN <= wrong <= expected["float32"] * WITHIN  # type: ignore[operator]
    )
    float64, float32 = good and proved(sqrt, FLOAT64, "float64"), good and proved(dyadic, DYADIC, "float32")
    measured = {
        "first T that goes wrong in float32": wrong,
        "first T that is not proved in float32": unproved,
        "first T that is refused for float32": no_net,
        f"proved in float64 at T = {FLOAT64}": float64,
        f"dyadic code proved in float32 at T = {DYADIC}": float32,
        "T at which 8T³u = 1/4": {name: round(length) for name, length in expected.items()},
    }
    return Evidence(
        verdict="holds" if float64 and float32 else "fails",
        method="proved+sampled",
        domain=f"all words to length {FLOAT64} and {DYADIC}; {WORDS} random words each of lengths {SHORT} to {LONG}",
        cases=WORDS * int(np.log2(LONG - SHORT) + 1),
        witness=None if float64 and float32 else measured,
        declared={
            "first T that goes wrong in float32": f"{expected['float32']:.0f}, within a factor of {WITHIN:g}",
            "first T that is not proved in float32": "not after the first that goes wrong",
            f"proved in float64 at T = {FLOAT64}": True,
            f"dyadic code proved in float32 at T = {DYADIC}": True,
        },
        measured=measured,
        seed=SEED,
    )


def sabotage(subject: Subject) -> Subject:
    """The dyadic code under the square-root code's name."""
    return replace(subject, data={**subject.data, "sqrt": subject.data["dyadic"]})


CLAIM = Claim(row="R1", status="proved", subjects=subjects, check=check, sabotage=sabotage)
