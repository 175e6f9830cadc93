"""The sums behind next-word probabilities: their values against charts, their ranges, their parts."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from cases import each
from vitrify.errors import BuildRefused, SpecError
from vitrify.spec.grammars import chart as grammar_chart
from vitrify.spec.grammars import sums as grammar_sums
from vitrify.spec.grammars.families import random_grammar, random_hierarchy, random_pcfg
from vitrify.spec.grammars.grammar import END, Grammar, Symbol
from vitrify.spec.grammars.sums import Sums, Weight, log, sums

UNARY = "S -> A [0.5] | A S2 [0.5]\nS2 -> A [1.0]\nA -> B [0.25] | C [0.75]\nB -> 'a' [1.0]\nC -> 'a' [1/3] | 'b' [2/3]"
GRAMMARS = {
    "ambiguous": random_pcfg(0),
    "arity 3": random_pcfg(9),
    "hierarchy": random_hierarchy(3, 2, 2, 2, seed=0),
    "unary": Grammar.from_text(UNARY),
}


def check_values(grammar: Grammar, found: Sums) -> None:
    """Complete weights are the inside weights, begun words the forward weights, of charts that share no code."""
    rules = {name: grammar.rules_of(name) for name in grammar.nonterminals}
    listed = {s.weight for s in found.listed} | {Weight(symbol, 1) for symbol in found.single}
    for sentence in grammar.sentences(5000)[::29]:
        values = found.values(sentence)
        inside = grammar_chart.inside(grammar.children_first(), rules, sentence)
        forward = grammar_chart.forward(grammar.start, grammar.children_first(), rules, sentence)
        for weight in listed:
            for t in range(len(sentence) + 1):
                got = values[weight][t]
                if weight.part:
                    continue
                if weight.width and not weight.symbol.terminal:
                    ends = inside[t - weight.width].get(weight.symbol.name, {}) if t >= weight.width else {}
                    assert got == ends.get(t, 0), (weight, sentence, t)
                elif weight.width:
                    assert got == (t > 0 and sentence[t - 1] == weight.symbol.name)
                elif weight.symbol.terminal:
                    assert got == forward[t].get(weight.symbol.name, 0), (weight, sentence, t)


@each("name", GRAMMARS)
def test_values_are_those_of_the_charts(name: str) -> None:
    check_values(GRAMMARS[name], sums(GRAMMARS[name]))


@each("name", GRAMMARS)
def test_logarithms_lie_in_their_ranges(name: str) -> None:
    grammar = GRAMMARS[name]
    found = sums(grammar)
    for sentence in grammar.sentences(5000)[::29]:
        values = found.values(sentence)
        for s in found.listed:
            for number in values[s.weight]:
                assert number == 0 or s.low - 1e-12 <= math.log(number) <= s.high + 1e-12, s.weight
    assert found.low == min(s.low for s in found.listed)
    assert found.longest == max(grammar.lengths())


def test_stages_come_one_after_another() -> None:
    found = sums(GRAMMARS["arity 3"])
    stage = {s.weight: s.stage for s in found.listed}
    for s in found.listed:
        assert s.stage == 1 + max(stage.get(term.weight, 0) for row in s.products for term in row.terms)
    depth = GRAMMARS["arity 3"].depth
    assert found.stages <= found.rounds * max(2 * depth - 1, depth + 1)


def test_long_sums_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = GRAMMARS["arity 3"]
    whole = sums(grammar)
    assert whole.rounds == 1
    monkeypatch.setattr(grammar_sums, "SUM_PRODUCTS", 3)
    parted = sums(grammar)
    assert parted.max_products == 3 < whole.max_products
    assert parted.rounds == math.ceil(math.log(whole.max_products, 3))
    assert parted.stages <= parted.rounds * max(2 * grammar.depth - 1, grammar.depth + 1)
    check_values(grammar, parted)


def test_without_probabilities_rules_are_equally_probable() -> None:
    plain = random_grammar(3)
    assert sums(plain).values(plain.sentences(5000)[-1]) == sums(plain.uniform()).values(plain.sentences(5000)[-1])


def test_probabilities_that_do_not_add_up_are_scaled() -> None:
    with pytest.warns(UserWarning, match="sum to 1"):
        grammar = Grammar.from_text("S -> A A [1.0]\nA -> 'a' [0.3333] | 'b' [0.6666]")
    values = sums(grammar).values(["a", "b"])
    assert values[Weight(Symbol(END, True), 0)][2] == Fraction(1, 3) * Fraction(2, 3)
    assert grammar.proper().rules_of("A")[0].probability == Fraction(1, 3)


def test_refusals() -> None:
    with pytest.raises(SpecError, match="S → S leads back to itself"):
        sums(Grammar.from_text("S -> 'a' S | 'b'"))
    with pytest.raises(BuildRefused, match="more than 10 products"):
        sums(GRAMMARS["arity 3"], limit=10)


def test_logarithms_of_very_small_numbers() -> None:
    assert log(Fraction(1, 10**400)) == pytest.approx(-400 * math.log(10))
    assert log(Fraction(1, 3)) == math.log(1 / 3)
