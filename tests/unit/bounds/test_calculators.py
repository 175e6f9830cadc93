"""The contract of every bound in the catalogue, and figures worked out by hand."""

from __future__ import annotations

from itertools import product
from math import log2
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from vitrify.bounds.calculators._entropy import doubt, least_error
from vitrify.bounds.calculators.associative_recall import needed
from vitrify.bounds.calculators.catalogue import (
    EXPLAINED,
    PACKAGE,
    Bound,
    BoundReading,
    Status,
    bound_of,
    find,
    listing,
    shown,
    values_of,
)
from vitrify.errors import InputError, SpecError
from vitrify.parameters import described
from vitrify.registry import Headline, names

BOUNDS = {shown(headline): headline for headline in listing()}


@pytest.fixture(params=BOUNDS)
def headline(request: pytest.FixtureRequest) -> Headline:
    return BOUNDS[request.param]


def reading(name: str, *words: str) -> BoundReading:
    bound = bound_of(find(name))
    return bound.evaluate(**values_of(bound, words))


def test_every_bound_says_what_it_states_assumes_and_where_it_comes_from(headline: Headline) -> None:
    bound = bound_of(headline)
    assert bound.status in get_args(Status)
    assert bound.status in EXPLAINED
    assert headline.fields["status"] == bound.status
    for word in ("Statement", "Assumes", "Source"):
        assert len(headline.section(word).split()) >= 5, word
    assert any(tag in headline.section("Source") for tag in ("[T]", "[A]", "[S]"))
    told = " ".join(f"{word}: {headline.section(word)}" for word in ("Statement", "Assumes", "Source"))
    assert told == " ".join(" ".join(headline.doc.splitlines()[1:]).split())
    for parameter in described(bound.evaluate):
        assert parameter.help
        assert parameter.within is not None


def lowest(bound: Bound) -> dict[str, float]:
    """The least value of every parameter."""
    return {p.name: p.within.low for p in described(bound.evaluate) if p.within and p.within.low is not None}


def smallest(bound: Bound) -> list[str]:
    return [f"{name}={max(low, 64 if name in 'NT' else low):g}" for name, low in lowest(bound).items()]


def test_every_bound_is_evaluated_from_the_least_sizes_on(headline: Headline) -> None:
    bound = bound_of(headline)
    found = bound.evaluate(**values_of(bound, smallest(bound)))
    assert found.figures
    assert found.says
    if bound.status != "unconditional":
        assert "impossible" not in found.says


def test_every_parameter_is_checked(headline: Headline) -> None:
    bound = bound_of(headline)
    parameters = described(bound.evaluate)
    wrong = [f"{name}={low - 1:g}" for name, low in lowest(bound).items()]
    assert len(wrong) == len(parameters)
    with pytest.raises(SpecError) as refused:
        values_of(bound, [*wrong, "nonsense=1", "word"])
    assert len(refused.value.problems) == len(wrong) + 2
    required = [parameter for parameter in parameters if parameter.required]
    with pytest.raises(SpecError) as refused:
        values_of(bound, [])
    assert len(refused.value.problems) == len(required)


def test_the_listing_and_its_names() -> None:
    assert list(BOUNDS) == [name.replace("_", "-") for name in names(PACKAGE)]
    assert len(BOUNDS) >= 12
    assert {headline.fields["status"] for headline in BOUNDS.values()} == set(get_args(Status))
    assert find("compo").name == "composition"
    with pytest.raises(InputError, match="no bound is called 'x'"):
        find("x")
    with pytest.raises(InputError, match="several bounds begin with 'associative'"):
        find("associative")


def test_values_given_twice_or_that_do_not_go_together() -> None:
    bound = bound_of(find("sparse-averaging"))
    with pytest.raises(SpecError, match="q is given twice"):
        values_of(bound, ["N=9", "q=2", "q=3", "m=1", "p=1"])
    with pytest.raises(SpecError, match="at least 2q \\+ 1 = 9"):
        values_of(bound, ["N=8", "q=4", "m=1", "p=1"])
    with pytest.raises(SpecError, match=r"must be a whole number from 1 to 64, not 1\.5"):
        values_of(bound, ["N=9", "q=4", "m=1", "p=1.5"])


FIGURES: list[tuple[str, str, str, Any]] = [
    ("composition", "n=64 H=1 d=14 p=16", "error at least", 0.125),
    ("composition", "n=64 H=1 d=14 p=16", "R", 144.0),
    ("composition", "n=64 H=1 d=14 p=16", "bits of exact sums", 330),
    ("composition", "n=500 H=1 d=20 p=16", "error at least", pytest.approx(0.308, abs=5e-4)),
    ("sparse-averaging", "N=17 q=8 m=3 p=2", "least m", 4),
    ("fully-connected-averaging", "N=9 d=3 q=2 width=10", "published least width", 14),
    ("recurrent-averaging", "N=21 coordinates=3 bits=3", "published least bits", 10.0),
    ("match3", "N=33 H=1 m=1 p=2", "bits of partial sums", 12),
    ("induction", "T=33 H=2 m=3 p=4", "bits of exact partial sums", 64),
    ("induction", "T=33 H=2 m=3 p=4", "bits of p-bit partial sums", 32),
    ("associative-recall", "P=8 V=4", "state bits needed", 16.0),
    ("associative-recall", "P=8 V=2 error=0.5", "state bits needed", 0.0),
    ("copying", "L=10 D=4", "state bits needed", 20.0),
    ("copying", "L=10 D=2 bits=8", "probability of a right copy at most", 0.25),
    ("conditional-trigram", "T=999 H=1 d=4 p=8", "longest word not excluded", 150),
    ("associative-memory", "N=100 M=16 b=8", "least parameters", 50),
    ("linear-attention", "P=8 V=4 k=2 m=3 p=2", "state bits", 16),
    ("comparison", "n=200 H=1 m=5 p=20", "bits of partial sums", 168),
    ("comparison", "n=200 S=4 H=1 m=5 p=20", "bits needed, also of a recurrent state", 400.0),
    ("chain-of-thought", "n=4096 H=1 d=8 p=8", "√(n/(Hdp))", 8.0),
    ("hops", "k=9", "layers that suffice", 5),
    ("multi-layer-composition", "L=1 H=1 d=1 p=8", "log₂ of the least n", 48.0),
    ("multi-layer-composition", "L=2 H=2 d=2 p=1", "log₂ of the least n", 512.0),
    ("subquadratic-attention", "n=1024 d=64", "pairs", 523776),
    ("subquadratic-attention", "n=1024 d=64", "d / log₂ n", 6.4),
    ("sliding-window", "L=3 w=4 back=10", "letters seen", 10),
    ("sliding-window", "L=3 w=4 back=10", "least layers", 4),
]


@each(("name", "words", "figure", "value"), FIGURES)
def test_figures(name: str, words: str, figure: str, value: Any) -> None:
    assert reading(name, *words.split()).figures[figure] == value


@each(
    ("name", "below", "above"),
    [
        ("composition", "n=64 H=1 d=14 p=16", "n=64 H=1 d=23 p=16"),
        ("sparse-averaging", "N=17 q=8 m=3 p=2", "N=17 q=8 m=4 p=2"),
        ("fully-connected-averaging", "N=9 d=3 q=2 width=26", "N=9 d=3 q=2 width=27"),
        ("recurrent-averaging", "N=21 coordinates=19 bits=1", "N=21 coordinates=5 bits=4"),
        ("match3", "N=33 H=1 m=1 p=2", "N=33 H=1 m=1 p=4"),
        ("induction", "T=33 H=1 m=1 p=1", "T=33 H=1 m=1 p=8"),
        ("associative-recall", "P=8 V=4 bits=15", "P=8 V=4 bits=16"),
        ("copying", "L=10 D=2 bits=9", "L=10 D=2 bits=10"),
        ("conditional-trigram", "T=151 H=1 d=4 p=8", "T=150 H=1 d=4 p=8"),
        ("associative-memory", "N=100 M=16 b=8 parameters=49", "N=100 M=16 b=8 parameters=50"),
        ("linear-attention", "P=9 V=4 k=2 m=3 p=2", "P=8 V=4 k=2 m=3 p=2"),
        ("comparison", "n=200 H=1 m=6 p=20", "n=200 H=2 m=6 p=20"),
        ("sliding-window", "L=3 w=4 back=10", "L=3 w=4 back=9"),
    ],
)
def test_what_is_impossible_and_what_is_not(name: str, below: str, above: str) -> None:
    says = reading(name, *below.split()).says
    assert "impossible" in says or "is wrong on at least" in says
    says = reading(name, *above.split()).says
    assert "not excluded" in says or "says nothing" in says


@each(
    ("name", "vacuous", "applies"),
    [
        ("multi-layer-composition", "L=1 H=1 d=2 p=4", "L=1 H=1 d=2 p=2"),
        ("subquadratic-attention", "n=1024 d=10", "n=1024 d=11"),
    ],
)
def test_a_bound_says_when_it_is_vacuous(name: str, vacuous: str, applies: str) -> None:
    assert "vacuous" in reading(name, *vacuous.split()).says
    assert "vacuous" not in reading(name, *applies.split()).says


def test_one_head_finds_the_most_similar_pair() -> None:
    """Orthogonal vectors: the score of a pair is minus its product, so that a best key of score 0 is orthogonal."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        left, right = rng.integers(0, 2, (2, 12, 6))
        best = (-left @ right.T).max(axis=1)
        pairs = any(not np.any(a & b) for a in left for b in right)
        assert (best.max() == 0) == pairs
        assert np.all(np.diff(np.unique(-left @ right.T)) >= 1)  # the gap of the head


@pytest.mark.parametrize("n", [1, 2, 3, 6, 9])
def test_average_sensitivities_are_those_of_all_words(n: int) -> None:
    words = np.array(list(product((0, 1), repeat=n)))
    flipped = [np.where(np.arange(n) == i, 1 - words, words) for i in range(n)]
    figures = reading("one-layer-parity", f"n={n}").figures
    parity = [np.mean(words.sum(1) % 2 != other.sum(1) % 2) for other in flipped]
    majority = [np.mean((words.sum(1) > n / 2) != (other.sum(1) > n / 2)) for other in flipped]
    assert figures["of PARITY"] == pytest.approx(np.sum(parity))
    assert figures["of MAJORITY"] == pytest.approx(np.sum(majority))


def test_windows_reach_as_far_as_counted() -> None:
    """A letter moves the last output of a net with windows exactly if it is among the letters that are seen."""
    layers, window, length = 3, 4, 16
    reached = {length - 1}
    for _ in range(layers):
        reached = {key for query in reached for key in range(max(0, query - window + 1), query + 1)}
    assert len(reached) == reading("sliding-window", f"L={layers}", f"w={window}", "back=1").figures["letters seen"]


@given(st.integers(2, 300), st.floats(0, 1))
def test_fano_both_ways(choices: int, share: float) -> None:
    error = share * (1 - 1 / choices)
    missing = doubt(error, choices)
    assert missing <= log2(choices) + 1e-9
    assert least_error(missing, choices) <= error + 1e-6
    assert doubt(least_error(missing, choices), choices) == pytest.approx(missing, abs=1e-6)


@given(st.integers(1, 50), st.integers(2, 64), st.floats(0, 0.5))
def test_an_error_makes_recall_cheaper_but_never_free_of_charge_below_zero(pairs: int, values: int, e: float) -> None:
    assert 0 <= needed(pairs, values, e) <= needed(pairs, values) == pairs * log2(values)
