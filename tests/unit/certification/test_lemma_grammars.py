"""The lemma about grammars, and products of states with grammars and word patterns: what is proved, what is refused."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from built import ATTENTIONS
from samples import ENTRIES, SAMPLES, built
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.equivalence.catalogue import SpecCase, prove_spec
from vitrify.certification.equivalence.clauses import ClauseProgram
from vitrify.certification.equivalence.grammars import chart_of_a_grammar
from vitrify.certification.margins.net import proof_of
from vitrify.certification.margins.proof import Proof
from vitrify.certification.margins.values import Undecided
from vitrify.constructions.catalogue import build
from vitrify.errors import SpecWarning
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights, has_architecture
from vitrify.spec.grammars.families import english, random_grammar
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.grammars.rules import Rule, Symbol
from vitrify.spec.languages.word_patterns import WordPatterns, waking_up

pytestmark = pytest.mark.long

CHARTS = ("auto", "shapes", "spans", "one-pass")  # constructions that the lemma is about
LEMMA, PRODUCT = "rows of units are rules of the grammar", "product of states"


def case_of(weights: Weights[Any], spec: object, proof: Proof | None = None) -> SpecCase:
    """Return the case of a network and a spec, by default with the proof of the network's own margins."""
    oracle = WordCheck(weights.architecture, spec).oracle
    if proof is None and has_architecture(weights, Transformer):
        proof = proof_of(weights, oracle)
    return SpecCase(weights, spec, oracle, proof)


def proved(case: SpecCase) -> bool:
    """Return whether the lemma proves a case; it never refutes one."""
    try:
        chart_of_a_grammar(case)
    except Undecided:
        return False
    return True


def right(weights: Weights[Any], grammar: Grammar) -> bool:
    """Return whether a network is right after every prefix of every sentence."""
    net, oracle = weights.architecture, WordCheck(weights.architecture, grammar).oracle
    assert oracle.language is not None
    words = [np.array([word], dtype=np.int64).reshape(1, -1) for word in oracle.language.beginnings()]
    logits = (batch_logits(weights, with_pads(net, word))[:, net.pads - 1 :] for word in words)
    return all(not oracle.errors(word, row).any() for word, row in zip(words, logits, strict=True))


def same_language(one: Grammar, other: Grammar) -> bool:
    """Return whether the same words may follow the same prefixes."""
    return all(one.next_words(prefix) == other.next_words(prefix) for prefix in one.prefixes())


def changed(weights: Weights[Any], name: str, index: Any, value: float) -> Weights[Any]:
    """Return a network with one entry of an array set to a value."""
    array = np.array(dense(weights.arrays[name]), dtype=np.float64)
    array[index] = value
    return replace(weights, arrays={**weights.arrays, name: array})


def other_grammars(grammar: Grammar, seed: int, count: int) -> Iterator[Grammar]:
    """Yield grammars that differ in one rule, which is left out, added, or has another word."""
    rng = np.random.default_rng(seed)
    for kind in range(count):
        rules = list(grammar.rules)
        at = int(rng.integers(len(rules)))
        side = list(rules[at].rhs)
        side[int(rng.integers(len(side)))] = Symbol(str(rng.choice(grammar.terminals)), terminal=True)
        new = Rule(rules[at].lhs, tuple(side))
        rules = [rules[:at] + rules[at + 1 :], [*rules[:at], new, *rules[at + 1 :]], [*rules, new]][kind % 3]
        complete = {rule.lhs for rule in rules} == set(grammar.nonterminals)
        if complete and len(set(rules)) == len(rules):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SpecWarning)  # that no sentence uses a symbol
                other = Grammar(grammar.start, tuple(rules))
            if other.terminals == grammar.terminals and other.nonterminals == grammar.nonterminals:
                yield other


# What is proved


@pytest.mark.parametrize("name", CHARTS)
def test_samples_are_proved_by_the_lemma(name: str) -> None:
    for spec in SAMPLES[Grammar]:
        for attention in ATTENTIONS:
            weights = built(ENTRIES[name], spec, attention)
            assert weights is not None
            result = prove_spec(case_of(weights, spec))
            assert (result.lemma, result.witness) == (LEMMA, None)
            assert result.longest == weights.about["longest sentence"]


@pytest.mark.parametrize("name", ["unambiguous", "plane", "classes", "register"])
def test_samples_of_others_are_proved_by_states(name: str) -> None:
    for spec in SAMPLES[ENTRIES[name].kind]:
        weights = built(ENTRIES[name], spec, "hard") or built(ENTRIES[name], spec, "softmax")
        if weights is not None:
            result = prove_spec(case_of(weights, spec))
            assert result.lemma in (LEMMA, PRODUCT)
            assert result.witness is None


@pytest.mark.parametrize("name", ["shapes", "spans", "one-pass"])
def test_random_grammars_are_proved(name: str) -> None:
    for seed in (6, 9, 11):
        grammar = random_grammar(seed, shapes=20)
        assert proved(case_of(build(grammar, name), grammar))


def test_a_grammar_of_english_is_proved_over_spans() -> None:
    grammar = english(5)
    result = chart_of_a_grammar(case_of(build(grammar, "spans"), grammar))
    assert result.longest == max(grammar.lengths())
    assert min(result.instances.values()) > 100


@pytest.mark.long
@pytest.mark.parametrize(("depth", "name"), [(4, "shapes"), (4, "one-pass"), (7, "auto")])
def test_large_grammars_of_english_are_proved(depth: int, name: str) -> None:
    grammar = english(depth)
    assert proved(case_of(build(grammar, name), grammar))


def test_a_thousand_words_of_a_class_count_as_one() -> None:
    spec = waking_up(1000)
    result = prove_spec(case_of(build(spec, "classes"), spec))
    assert result.lemma == PRODUCT
    assert result.instances["steps"] < 50


# What is not


@pytest.mark.parametrize("name", ["shapes", "spans", "one-pass"])
def test_networks_of_other_grammars_are_not_proved(name: str) -> None:
    wrong = 0
    for seed in (0, 2):
        grammar = random_grammar(seed, shapes=20, ambiguous=None)
        for other in other_grammars(grammar, seed, 6):
            if not same_language(grammar, other):
                wrong += 1
                assert not proved(case_of(build(other, name), grammar))
    assert wrong > 5


@pytest.mark.parametrize(("old", "new"), [("NBs | Name", "NBs | Name Name"), ("| 'swims'", "| 'swims' 'swims'")])
def test_one_rule_in_hundreds_is_noticed(old: str, new: str) -> None:
    grammar = english(4)
    text = grammar.to_text()
    assert old in text
    other = Grammar.from_text(text.replace(old, new))
    for one, two in ((grammar, other), (other, grammar)):
        assert not proved(case_of(build(one, "spans"), two))
        assert proved(case_of(build(two, "spans"), two))


def test_a_wrong_network_comes_with_a_word() -> None:
    grammar, other = (Grammar.from_text(f"S -> A 'b' | A A\nA -> 'a' | 'a' 'b' {x}") for x in ("", "| 'b'"))
    for name in ("shapes", "spans", "one-pass"):
        result = prove_spec(case_of(build(other, name), grammar))
        assert result.witness is not None


@pytest.mark.parametrize("name", ["shapes", "spans", "one-pass"])
def test_mutants_that_are_wrong_are_not_proved(name: str) -> None:
    """Under hard attention the network is its ideal: the proof of margins of the right network may be kept."""
    grammar, rng = random_grammar(2, shapes=20), np.random.default_rng(0)
    weights = build(grammar, name, attention="hard")
    case = case_of(weights, grammar)
    arrays = {key: np.asarray(dense(array)) for key, array in weights.arrays.items()}
    names = [key for key, array in arrays.items() if array.any()]
    wrong = 0
    for _ in range(60):
        key = str(rng.choice(names))
        places = np.argwhere(arrays[key]) if rng.random() < 0.75 else np.argwhere(arrays[key] == 0)
        index = tuple(places[rng.integers(len(places))]) if len(places) else (0,) * arrays[key].ndim
        old = float(arrays[key][index])
        mutant = changed(weights, key, index, float(rng.choice([-old, 1.5 * old, 0.0, old + 1, old - 1])))
        if not right(mutant, grammar):
            wrong += 1
            assert not proved(case_of(mutant, grammar, case.proof))
    assert wrong > 10


def last(weights: Weights[Any], name: str) -> tuple[str, tuple[int, ...]]:
    """Return the last array whose name ends so that has an entry other than 0, and the index of its last one."""
    for key, array in reversed(list(weights.arrays.items())):
        if key.endswith(name) and np.asarray(dense(array)).any():
            return key, tuple(np.argwhere(np.asarray(dense(array)))[-1])
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("array", "value", "reason"),
    [
        ("embed.W_E", 2.0, "other numbers than 0 and 1"),
        ("attn.W_V", 0.5, "no copy"),
        ("attn.b_V", 1.0, "no copy"),
        ("mlp.W_in", -2.0, "negative weights"),
        ("mlp.W_in", 4.0, "neither a conjunction"),
        ("mlp.b_in", 2.0, "neither a conjunction"),
        ("mlp.W_out", 0.5, "no positive whole number"),
        ("mlp.b_out", 1.0, "constants"),
        ("unembed.W_U", 0.25, "a logit is not positive"),
        ("unembed.b_U", 0.5, "a logit is not positive"),
    ],
)
def test_what_is_no_logic_program_is_refused(array: str, value: float, reason: str) -> None:
    grammar = Grammar.from_text("S -> A 'b' | A A\nA -> 'a' | 'a' 'b'")
    weights = build(grammar, "spans")
    case = case_of(weights, grammar)
    ClauseProgram.of(case.ideal)
    if array == "embed.W_E":
        key, index = array, tuple(np.argwhere(np.asarray(dense(weights.arrays[array]))[1:])[0] + [1, 0])
    elif array in ("attn.b_V", "mlp.b_out"):
        key = next(key for key in weights.arrays if key.endswith(array))
        index = (0,) * np.asarray(dense(weights.arrays[key])).ndim
    else:
        key, index = last(weights, array)
    mutant = case_of(changed(weights, key, index, value), grammar, case.proof)
    with pytest.raises(Undecided, match=reason):
        ClauseProgram.of(mutant.ideal)


def test_heads_that_select_by_contents_are_no_copies() -> None:
    grammar = Grammar.from_text("S -> A 'b' | A A\nA -> 'a' | 'a' 'b'")
    weights = build(grammar, "spans")
    case = case_of(weights, grammar)
    word = int(np.flatnonzero(np.asarray(dense(weights.arrays["embed.W_E"]))[1])[0])
    key = next(key for key in weights.arrays if key.endswith("attn.W_K"))
    mutant = case_of(changed(weights, key, (0, word, 0), 1.0), grammar, case.proof)
    with pytest.raises(Undecided, match="selects by contents"):
        ClauseProgram.of(mutant.ideal)


def test_a_window_that_is_too_small_is_refuted() -> None:
    spec = waking_up(2)
    for name in ("classes", "register"):
        result = prove_spec(case_of(build(spec, name, window=spec.window() - 1), spec))
        assert result.witness is not None


def test_a_pattern_with_one_more_word_is_refuted() -> None:
    classes = {"WHO": "Ann Bob", "HOUR": "one two three"}
    one, other = (WordPatterns.of(classes, ['WHO "wakes at" HOUR', f'WHO "sleeps" {more}']) for more in ("", '"at"'))
    for name in ("classes", "register"):
        assert prove_spec(case_of(build(other, name), one)).witness is not None


# States


def test_states_of_grammars_know_what_may_follow() -> None:
    """After equal states the same words may follow, also in recursive grammars; a state is None after wrong words."""
    for text in ("S -> 'a' S 'b' | 'c'", "S -> A A | 'b'\nA -> 'a' | 'a' A", "S -> S S | 'a' | 'b'"):
        grammar = Grammar.from_text(text)
        states = grammar.meanings()["next"].states
        assert states is not None
        seen: dict[object, frozenset[str]] = {}
        level: list[tuple[tuple[str, ...], Any]] = [((), states.start)]
        for _ in range(6):
            following = []
            for prefix, state in level:
                allowed = grammar.next_words(prefix)
                assert seen.setdefault(state, allowed) == allowed
                for word in grammar.vocabulary:
                    after = states.step(state, word)
                    assert (after is not None) == (word in allowed)
                    following += [((*prefix, word), after)] if after is not None else []
            level = following
