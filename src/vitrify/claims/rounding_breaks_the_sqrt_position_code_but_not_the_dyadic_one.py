r"""Float32 breaks the square-root position code within a factor of 2 of $T = 81$; the dyadic code still works at 4,096.

Statement: A head separates positions in arithmetic of unit roundoff $u$ as long as $\kappa u < 1/4$, where $\kappa$ is
its largest score divided by its gap. The code $(\sqrt{1/t}, \sqrt{1-1/t})$ has $\kappa = 8T^3$, so float32 ends it near
$T = (32u)^{-1/3} = 81$ and float64 near $6.6 \cdot 10^4$. The dyadic code has $\kappa = B/2$ with $B = \lceil\log_2
T\rceil$.
Why: Rounding moves a score by some $u$ times its size, and a key that wins by less than that may lose.
Checked: Margins of built 3-gram nets are proved for all words with every number in the format: square-root code in
float64 at $T = 10^4$, in float32 at 32 but not at 128; dyadic code in float32 at 4,096. Runs in float32 with the
square-root code go wrong from some $T$ on, within a factor of 2 of 81; the largest proved $T$ is below the first $T$
that goes wrong.
Not checked: The end in float64 near $6.6 \cdot 10^4$ (too long to run) and other formats. Wrong runs are searched by
bisection on four random words per length.
Source: The code is that of Svete & Cotterell 2024, arXiv 2404.14994 [T]; gap, $\kappa$ and bound are our own.
Saboteur: The dyadic code under the name of the square-root code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from vitrify.certification.margins.net import margins
from vitrify.certification.precision.arithmetic import agreed_length
from vitrify.certification.precision.formats import FORMATS
from vitrify.claims._figures import listed, show
from vitrify.claims._nets import CaseKind, Domain, Evidence, Method, Quantity, refused, witnessed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.catalogue import build
from vitrify.kit.margins import Arithmetic
from vitrify.kit.positions import CodeName
from vitrify.net.weights import Weights
from vitrify.spec.ngrams.families import random_ngram

Make = Callable[[int, Arithmetic], Weights]

SHORT, LONG = 32, 256  # lengths between which float32 ends the square-root code
FLOAT64, DYADIC = 10_000, 4_096
WITHIN = 2.0  # the theory has no constant for what "near" means
WORDS, SEED = 4, 0


def subjects() -> Subjects:
    yield Subject("attention to the previous position", data={"sqrt": _maker("sqrt"), "dyadic": _maker("dyadic")})


def _maker(code: CodeName) -> Make:
    model = random_ngram(2, 3, seed=1)

    @cache
    def make(length: int, arithmetic: Arithmetic = "float64") -> Weights:
        return build(model, "heads", attention="softmax", max_length=length, positions=code, arithmetic=arithmetic)

    return make


def predicted(roundoff: float) -> float:
    """The length at which 8T³u reaches 1/4."""
    return float((32 * roundoff) ** (-1 / 3))


def proved(make: Make, length: int, name: str) -> bool:
    """Return whether the answers of a net for a length are proved to stay the same in a format."""
    return margins(make(length, "float64"), arithmetic=FORMATS[name]).holds


def goes_wrong(make: Make, length: int) -> bool:
    """Return whether a net for a length answers some random word differently in float32."""
    words = np.random.default_rng(SEED).integers(1, 3, size=(WORDS, length))
    return agreed_length(make(length, "float64"), FORMATS["float32"], [words])[1]


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
    sqrt, dyadic = subject.data["sqrt"], subject.data["dyadic"]
    expected = {name: predicted(FORMATS[name].roundoff) for name in ("float32", "float64")}
    unproved = first(lambda T: not proved(sqrt, T, "float32"))
    wrong = first(lambda T: goes_wrong(sqrt, T))
    no_net = first(lambda T: refused(partial(sqrt, T, "float32")))
    good = (
        proved(sqrt, SHORT, "float32")
        and None not in (unproved, wrong, no_net)
        and unproved <= wrong  # type: ignore[operator]  # they are numbers
        and expected["float32"] / WITHIN <= wrong <= expected["float32"] * WITHIN  # type: ignore[operator]
    )
    cases = WORDS * int(np.log2(LONG - SHORT) + 1)
    domains = (
        Domain(CaseKind.WORDS, Method.PROVED, None, longest=FLOAT64, settings={"format": "float64", "code": "sqrt"}),
        Domain(CaseKind.WORDS, Method.PROVED, None, longest=DYADIC, settings={"format": "float32", "code": "dyadic"}),
        Domain(CaseKind.RANDOM_WORDS, Method.SAMPLED, cases, SHORT, LONG),
    )
    factor = None if wrong is None else max(wrong / expected["float32"], expected["float32"] / wrong)
    criteria = (
        Quantity("first T that goes wrong in float32", wrong),
        Quantity("factor between that and the T at which 8T³u = 1/4", factor, WITHIN, "<="),
        Quantity("first T that is not proved in float32", unproved, wrong, "<="),
        Quantity("first T that is refused for float32", no_net),
        Quantity(f"proved in float64 at T = {FLOAT64}", good and proved(sqrt, FLOAT64, "float64"), True, "="),
        Quantity(
            f"dyadic code proved in float32 at T = {DYADIC}", good and proved(dyadic, DYADIC, "float32"), True, "="
        ),
        Quantity("T at which 8T³u = 1/4", {name: round(length) for name, length in expected.items()}),
    )
    witness = None if good else {each.name: each.measured for each in criteria}
    return witnessed(witness, cases, *domains, seed=SEED).adding(*criteria)


def sabotage(subject: Subject) -> Subject:
    return subject.with_data(sqrt=subject.data["dyadic"])


FIGURE = show(
    listed(
        {
            "not proved, float32": "first T that is not proved in float32",
            "refused, float32": "first T that is refused for float32",
            "8T³u = 1/4, float32": "T at which 8T³u = 1/4:float32",
            "goes wrong, float32": "first T that goes wrong in float32",
            "8T³u = 1/4, float64": "T at which 8T³u = 1/4:float64",
            "dyadic code proved, float32": lambda _, part: (
                DYADIC if part.measured(f"dyadic code proved in float32 at T = {DYADIC}") else None
            ),
        },
        "length T",
        "y",
    )
)
CLAIM = Claim(
    subjects, check, sabotage, id="R1", standing="theorem", uncertified="about margins at many lengths", figure=FIGURE
)
