"""From hard-attention nets back to formulas: equal on all words, whoever made the net."""

from __future__ import annotations

from functools import cache

import pytest

from cases import each
from formulas import random_formula
from tied_nets import HEADS, all_words, random_net, says_true
from vitrify.certification import certify
from vitrify.certification.reading.formulas import formula_of
from vitrify.constructions.temporal import temporal
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.transformer import Head
from vitrify.net.weights import Weights
from vitrify.spec.logic.ltl import Formula


def plain(seed: int, depth: int = 3) -> Formula:
    """A random formula that needs no positions."""
    return random_formula(seed, depth, letters="ab", mod=False, length=8)


@each("seed", range(10))
def test_a_formula_survives_the_way_to_a_net_and_back(seed: int) -> None:
    formula, words = plain(seed), all_words(2, 8)
    net = assemble(temporal(formula, attention="hard"))
    found = formula_of(net)
    assert (found.holds(words) == formula.holds(words)).all(), (str(formula), str(found))
    assert (says_true(assemble(temporal(found, attention="hard")), words) == formula.holds(words)).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_200_formulas_of_depth_5_survive(seed: int) -> None:
    formula, words = plain(500 + seed, depth=5), all_words(2, 10)
    assert (formula_of(assemble(temporal(formula, attention="hard"))).holds(words) == formula.holds(words)).all()


@cache
def formula_of_random(seed: int) -> Formula:
    return formula_of(random_net(seed))


@pytest.mark.long
@each("seed", range(10))
def test_random_hard_nets_are_read_right(seed: int) -> None:
    words = all_words(2, 8)
    assert (formula_of_random(seed).holds(words) == says_true(random_net(seed), words)).all()


def read_or_refused(net: Weights) -> Formula | str:
    try:
        return formula_of(net)
    except BuildRefused as error:
        return str(error)


def test_averages_are_read_where_they_are_of_equal_values() -> None:
    words, kinds = all_words(2, 8), [HEADS[0], HEADS[-1], Head("hard"), Head("hard", "strict", resolution=0.5)]
    nets = [random_net(seed, kinds) for seed in range(8)]
    found = [read_or_refused(net) for net in nets]
    refused = [text for text in found if isinstance(text, str)]
    assert all("a head averages over different values" in text for text in refused)
    assert 0 < len(refused) < len(nets)
    for net, formula in zip(nets, found, strict=True):
        assert isinstance(formula, str) or (formula.holds(words) == says_true(net, words)).all()


@pytest.mark.long
def test_random_nets_say_interesting_things() -> None:
    found = {str(formula_of_random(seed)) for seed in range(10)}
    assert sum(" S " in text or "Y " in text for text in found) >= 4


def test_what_is_found_is_short() -> None:
    text = "alphabet: a b c\nlength: 9\n"
    for line in ('("c") S ("b")', 'H ("a")', 'O ((O ("b")) & ("c"))', '(O ("b")) & ("a")', 'Y (("a") S ("b"))'):
        assert str(formula_of(assemble(temporal(Formula.from_text(text + line), attention="hard")))) == line


def test_a_certificate_judges_the_formula_of_a_net() -> None:
    formula = Formula.from_text("alphabet: a b\nlength: 9\n!a S b")
    net = assemble(temporal(formula, attention="hard"))
    assert certify(net, formula_of(net), max_length=8).verdict == "holds"
    assert certify(net, Formula.from_text("alphabet: a b\nlength: 9\nO b"), max_length=8).verdict == "fails"
    assert certify(net, Formula.from_text("alphabet: a b\nlength: 9\ntrue"), max_length=8).verdict == "fails"
    truth, other = (Formula.from_text(f"alphabet: a b\nlength: 9\n{text}") for text in ("true", "a"))
    assert certify(assemble(temporal(truth, attention="hard")), truth, max_length=4).verdict == "holds"
    assert certify(assemble(temporal(truth, attention="hard")), other, max_length=4).verdict == "fails"
    always = Formula.from_text("alphabet: a b\nlength: 9\nO (a | b)")
    assert (
        certify(
            assemble(temporal(always, attention="hard")),
            formula_of(assemble(temporal(always, attention="hard"))),
            max_length=8,
        ).verdict
        == "holds"
    )


@pytest.mark.parametrize(
    ("text", "attention", "why"),
    [
        ("MOD(1, 2)", "hard", "its residual stream holds positions"),
        ("O a", "softmax", "its residual stream holds positions.*its attention is not hard"),
    ],
)
def test_what_can_not_be_read_is_refused_with_all_reasons(text: str, attention: str, why: str) -> None:
    formula = Formula.from_text(f"alphabet: a b\nlength: 9\n{text}")
    with pytest.raises(BuildRefused, match=why):
        formula_of(assemble(temporal(formula, attention=attention)))  # type: ignore[arg-type]
