"""The grammar value, its semantics on grammars done by hand, and the small families."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from cases import each
from vitrify.constructions.catalogue import build
from vitrify.errors import BuildRefused, InputError, SpecError
from vitrify.spec.grammars.families import english, random_grammar, random_hierarchy, random_pcfg
from vitrify.spec.grammars.grammar import END, Grammar, Rule, Symbol

BRACKETS = Grammar.from_text("S -> '(' S ')' | '(' ')' | S S")
HALVES = Grammar.from_text("S -> 'a' S [1/2] | 'a' [1/2]")


def test_recursive_grammars_predict_and_accept() -> None:
    assert BRACKETS.next_words([]) == {"("}
    assert BRACKETS.next_words("(") == {"(", ")"}
    assert BRACKETS.next_words("()") == {"(", END}
    assert BRACKETS.next_words("(()") == {"(", ")"}
    assert BRACKETS.next_words("())") == frozenset()
    assert BRACKETS.accepts("(()())")
    assert not BRACKETS.accepts("(()")
    assert len(BRACKETS.next_words_along("()" * 40)) == 81


def test_a_long_ambiguous_prefix_is_no_trouble() -> None:
    grammar = Grammar.from_text("S -> S S | S S S | 'a'")
    assert grammar.next_words(["a"] * 40) == {"a", END}


@each("call", ["leveled", "sentences", "ambiguous", "derivations", "lengths", "children_first"], ids=str)
def test_recursion_is_refused_with_the_cycle(call: str) -> None:
    grammar = Grammar.from_text("S -> 'a' T | 'a'\nT -> U 'b'\nU -> 'c' T | 'c'")
    assert grammar.cycle() == ("T", "U", "T")
    with pytest.raises(SpecError, match=r"T → U → T leads back to itself; cut it at a depth"):
        getattr(grammar, call)()


def test_probabilities_of_recursive_grammars_are_refused_and_cut_ones_given() -> None:
    with pytest.raises(SpecError, match="S → S"):
        HALVES.next_word_probs([])
    cut = HALVES.cut(3)
    assert cut.sentences() == (("a",), ("a", "a"), ("a", "a", "a"))
    assert [cut.probability(["a"] * n) for n in (1, 2, 3, 4)] == [Fraction(4, 7), Fraction(2, 7), Fraction(1, 7), 0]
    assert cut.next_word_probs(["a"]) == {"a": Fraction(3, 7), END: Fraction(4, 7)}
    assert cut.next_word_probs(["a"] * 4) == {}


def test_cut_symbols_avoid_names_in_use_and_share_equal_heights() -> None:
    grammar = Grammar.from_text("S -> 'a' S | S^1\nS^1 -> 'b'")
    cut = grammar.cut(3)
    assert set(cut.sentences()) == {("b",), ("a", "b")}
    assert len(set(cut.nonterminals)) == 3
    assert cut.nonterminals == ("S^3", "S^2", "S^1")
    assert grammar.cut(2).start == "S^2"
    assert Grammar.from_text("S -> T | 'x'\nT -> 'a' S").cut(2).depth == 1


def test_deep_cuts_stay_of_a_sane_size() -> None:
    cut = Grammar.from_text("S -> S S [0.4] | 'a' [0.6]").cut(60)
    assert cut.depth == 60
    assert all(sum(rule.probability or 0 for rule in cut.rules_of(lhs)) == 1 for lhs in cut.nonterminals)
    assert Grammar.from_text(cut.to_text()) == cut
    mass = 0.0
    for _ in range(60):
        mass = 0.6 + 0.4 * mass * mass
    assert float(cut.rules_of("S^60")[1].probability or 0) == pytest.approx(0.6 / mass, rel=1e-12)


def test_values_are_compared_printed_and_checked() -> None:
    rules = [Rule("S", [("a", True)], 0.1), Rule("S", [("b", True)], 0.9)]  # type: ignore[arg-type]
    grammar = Grammar("S", rules)  # type: ignore[arg-type]
    assert grammar == Grammar.from_text("S -> 'a' [0.1] | 'b' [0.9]")
    assert {grammar: 1}[grammar] == 1
    assert eval(repr(grammar)) == grammar
    assert str(grammar) == "S -> 'a' [0.1] | 'b' [0.9]"
    assert repr(english()).startswith("<Grammar: ")
    assert grammar.plain().suffix == ".cfg"
    assert grammar.plain().uniform().next_word_probs([]) == {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    for wrong in (math.nan, math.inf, "0.5"):
        with pytest.raises(SpecError, match="finite number"):
            Rule("S", (Symbol("a", terminal=True),), wrong)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="must be made of letters"):
        Grammar("S T", (Rule("S T", (Symbol("a", terminal=True),)),))
    with pytest.raises(SpecError, match="both kinds of quotes"):
        Grammar("S", (Rule("S", (Symbol("'\"", terminal=True),)),))


def test_unknown_words_and_missing_probabilities_are_refused() -> None:
    with pytest.raises(InputError, match="unknown: 'x'"):
        BRACKETS.next_words(["(", "x"])
    with pytest.raises(InputError, match="list of words"):
        Grammar.from_text("S -> 'hello' 'you'").next_words("hello")
    with pytest.raises(SpecError, match="no probabilities"):
        Grammar.from_text("S -> 'a'").next_word_probs([])


def test_listing_and_sampling_have_guards() -> None:
    grammar = Grammar.from_text("S -> T T T\nT -> 'a' | 'b' | 'c'")
    assert len(grammar.sentences(limit=27)) == 27
    with pytest.raises(BuildRefused, match=r"more than 26 \(27 reached\)"):
        grammar.sentences(limit=26)
    with pytest.raises(BuildRefused, match="grew beyond 10000"):
        Grammar.from_text("S -> S S [0.9] | 'a' [0.1]").sample(3, seed=0)


def test_samples_follow_the_probabilities() -> None:
    grammar = Grammar.from_text("S -> 'a' [0.7] | 'b' T [0.3]\nT -> 'a' [0.5] | 'b' [0.5]")
    drawn = Counter(grammar.sample(4_000, seed=3))
    for sentence in grammar.sentences():
        p = float(grammar.probability(sentence))
        assert abs(drawn[sentence] / 4_000 - p) < 5 * math.sqrt(p * (1 - p) / 4_000)


def test_deep_chains_do_not_run_out_of_stack() -> None:
    deep = 3_000
    text = "".join(f"A{k} -> A{k + 1} [1.0]\n" for k in range(deep)) + f"A{deep} -> 'a' [1.0]"
    grammar = Grammar.from_text(text)
    assert (grammar.depth, grammar.sentences()) == (deep + 1, (("a",),))
    assert grammar.next_words([]) == {"a"}
    assert grammar.next_word_probs(["a"]) == {END: 1}
    assert grammar.leveled().depth == deep + 1


def test_levels_lead_down_one_by_one() -> None:
    with pytest.raises(SpecError, match="already"):
        Grammar.from_text("S -> 'a'").leveled().with_end().with_end()
    levels = Grammar.from_text("S -> NP 'x' NP\nNP -> 'a' | 'b' N\nN -> 'c' | 'd' | 'e'").leveled()
    assert (levels.depth, levels.size) == (3, 10)
    assert max(len(rule.rhs) for level in levels.rules for rule in level) == 3
    assert max(len(rules) for level in levels.rules_of for rules in level) == 3


def test_what_nobody_builds_is_refused_by_its_type() -> None:
    with pytest.raises(BuildRefused, match="no construction builds a spec of type Leveled yet"):
        build(Grammar.from_text("S -> 'a'").leveled())


# Families


@each("seed", range(30))
def test_random_grammars_are_ambiguous_small_and_of_unequal_lengths(seed: int) -> None:
    grammar = random_grammar(seed)
    assert grammar.ambiguous()
    assert len(grammar.lengths()) > 1
    assert grammar.cycle() is None
    assert max(len(rule.rhs) for rule in grammar.rules) <= 3
    assert grammar.derivations() <= 5_000
    assert grammar == random_grammar(seed)
    levels = grammar.leveled().with_end()
    assert levels.count_shapes() == len(levels.shapes(limit=100_000))


@pytest.mark.slow
def test_random_grammars_can_be_asked_to_be_otherwise() -> None:
    plain = random_grammar(1, ambiguous=False, unequal=False)
    assert plain.ambiguous() is None
    assert len(plain.lengths()) == 1
    assert plain.leveled().shapes().ambiguous() is None
    few = random_grammar(2, shapes=42)
    assert few.leveled().count_shapes() <= 42 < random_grammar(2).leveled().count_shapes()
    with pytest.raises(SpecError, match="no such grammar"):
        random_grammar(0, rules=1)
    with pytest.raises(SpecError, match="depth must be at least 1"):
        random_grammar(0, depth=0)


@pytest.mark.parametrize("seed", range(3))
def test_random_pcfgs_sum_to_one(seed: int) -> None:
    grammar = random_pcfg(seed)
    assert grammar.plain() == random_grammar(seed)
    assert sum(grammar.probability(sentence) for sentence in grammar.sentences()) == 1
    assert sum(grammar.next_word_probs([]).values()) == 1


@each(
    ("v", "m", "s", "L", "classes"),
    [(2, 2, 2, 2, 1), (3, 2, 2, 2, 3), (4, 4, 2, 2, 2), (3, 3, 3, 1, 1), (8, 2, 2, 3, 1)],
)
def test_random_hierarchies(v: int, m: int, s: int, L: int, classes: int) -> None:
    grammar = random_hierarchy(v, m, s, L, seed=5, classes=classes)
    assert grammar.lengths() == {s**L}
    own = [rule for rule in grammar.rules if len(rule.rhs) == s]
    assert len({rule.rhs for rule in own}) == len(own)  # no right side is shared
    assert all(len(grammar.rules_of(lhs)) == m for lhs in {rule.lhs for rule in own})
    assert grammar.derivations() == classes * m ** ((s**L - 1) // (s - 1))
    assert grammar.ambiguous() is None
    shapes = grammar.leveled().shapes()
    assert len(shapes) == 1
    assert shapes.ambiguous() is None
    assert grammar.depth == L + (classes > 1)


def test_a_hierarchy_needs_room_for_its_right_sides() -> None:
    with pytest.raises(SpecError, match="no right side may be shared"):
        random_hierarchy(2, 3, 2, 2, seed=0)


def test_english_is_large_deep_and_long() -> None:
    grammar = english()
    assert len(grammar.rules) >= 300
    assert grammar.depth == 7
    assert max(grammar.lengths()) >= 40
    levels = grammar.leveled().with_end()
    assert levels.count_shapes() == grammar.leveled().count_shapes() > 100_000
    with pytest.raises(BuildRefused, match="more than 10000"):
        levels.shapes()
    uniform = grammar.uniform()
    for sentence in grammar.sample(20, seed=0):
        along: Any = uniform.next_word_probs_along(sentence)
        sets = grammar.next_words_along(sentence)
        assert END in sets[-1]
        for chances, words in zip(along, sets, strict=True):
            assert set(chances) == words
            assert sum(chances.values()) == 1


def test_english_agrees_in_number() -> None:
    grammar = english()
    assert grammar.accepts(["the", "dog", "that", "alice", "sees", "sleeps"])
    assert not grammar.accepts(["the", "dog", "that", "alice", "sees", "sleep"])
    assert "sleep" in grammar.next_words(["the", "dogs", "that", "alice", "sees"])
