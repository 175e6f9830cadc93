"""Lemmas about n-gram models, memories, tasks and chains of thought: what they prove, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from built import ATTENTIONS, all_words
from samples import ENTRIES, SAMPLES, built
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.equivalence.all_inputs import all_inputs
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, prove_spec
from vitrify.certification.equivalence.contexts import contexts
from vitrify.certification.equivalence.estimates import frequencies
from vitrify.certification.equivalence.gates import gates
from vitrify.certification.equivalence.hops import hops
from vitrify.certification.equivalence.machine_steps import machine_steps
from vitrify.certification.equivalence.matches import a_match
from vitrify.certification.equivalence.paths import paths
from vitrify.certification.equivalence.permutations import permutations
from vitrify.certification.margins.net import proof_of
from vitrify.certification.margins.values import Undecided
from vitrify.constructions.catalogue import build
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.sparse import dense
from vitrify.net.transformer import Mask, Transformer
from vitrify.net.weights import Weights, has_architecture
from vitrify.spec.computation.circuit import adder, random_circuit
from vitrify.spec.computation.turing import increment, random_machine
from vitrify.spec.memory.associations import Associations, random_associations
from vitrify.spec.memory.facts import Facts, random_facts
from vitrify.spec.ngrams.families import pydoc_sentences, random_ngram
from vitrify.spec.ngrams.model import NGramModel
from vitrify.spec.tasks.catalogue import make

pytestmark = pytest.mark.long

Lemma = Callable[[SpecCase], SpecProof]

PROVED = {  # the lemma of each construction for its samples, and whether that is so at every length
    "heads": ("contexts", True),
    "layers": ("contexts", True),
    "states-aloud": ("contexts", True),
    "states-in-turn": ("contexts", True),
    "comparison": ("a clash", False),
    "nearest": ("the nearest", False),
    "k-hop": ("hops", False),
    "match2": ("a match", True),
    "estimate-heads": ("frequencies", True),
    "padded-loop": ("paths", False),
    "barrington": ("all inputs", False),
    "circuit": ("all inputs", False),
    "turing": ("all inputs", False),
    "mlp-memory": ("all inputs", False),
    "fitted": ("all inputs", False),
    "hebbian": ("all inputs", False),
    "least-squares": ("all inputs", False),
}


def case_of(weights: Weights[Any], spec: object) -> SpecCase:
    """Return the case of a network and a spec, with the proof of the network's margins."""
    oracle = WordCheck(weights.architecture, spec).oracle
    return SpecCase(
        weights, spec, oracle, proof_of(weights, oracle) if has_architecture(weights, Transformer) else None
    )


def verdict(lemma: Lemma, weights: Weights[Any], spec: object) -> str:
    """Return `proved`, `refuted` (the word was confirmed), or the reason for neither."""
    case = case_of(weights, spec)
    try:
        result = lemma(case)
    except Undecided as reason:
        return str(reason)
    if result.witness is None:
        return "proved"
    assert not right(weights, spec, [np.array([result.witness], dtype=np.int64).reshape(1, -1)])
    return "refuted"


def right(weights: Weights[Any], spec: object, words: list[np.ndarray] | None = None) -> bool:
    """Return whether all answers on some words are right, by default on all words up to the network's length."""
    net, oracle = weights.architecture, WordCheck(weights.architecture, spec).oracle
    if words is None and oracle.language is not None:
        words = [np.array([word], dtype=np.int64).reshape(1, -1) for word in oracle.language.beginnings()]
    lengths = range(net.max_length + 1) if net.looks_ahead else [net.max_length]
    every = words or [all_words(len(net.inputs) - 1, length) for length in lengths]
    return all(
        (
            oracle.errors(some, batch_logits(weights, with_pads(net, some))[:, net.pads - 1 :]) <= oracle.tolerance()
        ).all()
        for some in every
    )


def changed(weights: Weights[Any], name: str, index: Any, value: Any) -> Weights[Any]:
    """Return a network with some entries of an array set to values."""
    array = np.array(dense(weights.arrays[name]), dtype=np.float64)
    array[index] = value
    return replace(weights, arrays={**weights.arrays, name: array})


def dims(weights: Weights[Any], name: str) -> tuple[int, ...]:
    return next(label.dims for label in weights.labels.spaces if label.name == name)


# What is proved


@pytest.mark.parametrize("name", PROVED)
def test_samples_are_proved(name: str) -> None:
    entry, (lemma, every_length) = ENTRIES[name], PROVED[name]
    for spec in SAMPLES[entry.kind]:
        for attention in ATTENTIONS:
            weights = built(entry, spec, attention)
            if weights is not None:
                proof = prove_spec(case_of(weights, spec))
                assert (proof.lemma, proof.witness) == (lemma, None)
                assert proof.longest == (None if every_length else weights.architecture.max_length)
                assert proof.exact == (lemma == "all inputs")


@pytest.mark.parametrize("name", ["facts", "facts-heads"])
def test_facts_are_proved_to_the_length_of_their_sentences(name: str) -> None:
    for spec in (random_facts(3, 2, 2, seed=0, fillers=1, length=6), random_facts(4, 3, 2, seed=1)):
        proof = prove_spec(case_of(build(spec, name), spec))
        assert proof.exact
        assert proof.longest == spec.length


@pytest.mark.parametrize("name", ["hidden", "linear"])
def test_knowledge_is_proved_where_its_words_are_few(name: str) -> None:
    from vitrify.spec.memory.knowledge import Knowledge

    spec = Knowledge.of({"capital": (["of #"], {"F": "Paris", "N": "Wellington"}), "money": (["in #"], {"F": "euro"})})
    assert prove_spec(case_of(build(spec, name, max_length=5), spec)).exact


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_gates_are_proved_where_inputs_are_too_many_to_run(attention: Any) -> None:
    spec = random_circuit(3, 40, 60, 5)
    proof = prove_spec(case_of(build(spec, "circuit", attention=attention), spec))
    assert (proof.lemma, proof.longest) == ("gates", 99)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_machines_are_proved_where_inputs_are_too_many_to_run(attention: Any) -> None:
    spec = random_machine(1, 2, 4, length=20, steps=12)
    proof = prove_spec(case_of(build(spec, "turing", attention=attention), spec))
    assert (proof.lemma, proof.longest) == ("machine steps", 31)


def test_a_model_of_a_text_is_proved_by_its_contexts() -> None:
    model = NGramModel.fit(pydoc_sentences()[::40], 4)
    for name in ("heads", "layers"):
        proof = prove_spec(case_of(build(model, name, max_length=32), model))
        assert proof.lemma == "contexts"
        assert proof.instances["contexts"] > 2_000


def test_a_model_that_does_not_sum_to_one_is_proved_as_it_stands() -> None:
    model = random_ngram(2, 3, seed=1)
    grams = listed(model)
    longest = max(grams, key=len)
    grams[longest] = (grams[longest][0] + 1e-7, 0.0)
    spec = NGramModel.from_ngrams(grams)
    weights = build(spec, "heads", max_length=8)
    assert weights.architecture.output.scores == "log"
    assert verdict(contexts, weights, spec) == "proved"


def test_hops_of_all_numbers() -> None:
    for count in (*range(1, 10), 13, 64):
        spec = make("k-hop", hops=count, symbols=3, length=9)
        assert verdict(hops, build(spec, "k-hop"), spec) == "proved"


# Trojans: networks of specs that differ from the declared one on few words


def listed(model: NGramModel) -> dict[tuple[str, ...], tuple[float, float]]:
    """Return the n-grams of a model with their logarithms."""
    return {
        tuple(model.vocabulary[word] for word in words): (float(level.log10_prob[i]), float(level.log10_backoff[i]))
        for k, level in enumerate(model.levels)
        for i, words in enumerate(model.words_of(k, np.arange(len(level))).tolist())
    }


def swapped(model: NGramModel) -> Iterator[NGramModel]:
    """Yield models in which two probabilities after one of the longest contexts are exchanged."""
    grams = listed(model)
    for words in grams:
        for other in grams:
            if (
                words < other
                and words[:-1] == other[:-1]
                and len(words) == model.order
                and grams[words] != grams[other]
            ):
                one, two = grams[words], grams[other]
                yield NGramModel.from_ngrams({**grams, words: (two[0], one[1]), other: (one[0], two[1])})


@pytest.mark.parametrize("name", ["heads", "layers"])
def test_a_model_with_two_probabilities_exchanged_is_refuted(name: str) -> None:
    rng = np.random.default_rng(5)
    model = NGramModel.fit([["abc"[i] for i in rng.integers(3, size=5)] for _ in range(9)], 3)
    weights = [build(other, name, max_length=6) for other in swapped(model)]
    assert len(weights) > 3
    assert {verdict(contexts, each, model) for each in weights} == {"refuted"}


def test_a_model_that_lists_one_context_more_or_less_is_refuted() -> None:
    sentences = [list("abab"), list("bba"), list("aab")]
    small, large = (NGramModel.fit(some, 3) for some in (sentences, [*sentences, list("bbb")]))
    assert verdict(contexts, build(small, "heads", max_length=6), large) == "refuted"
    assert verdict(contexts, build(large, "heads", max_length=6), small) == "refuted"


def test_other_tasks_are_not_proved() -> None:
    three, five = (make("k-hop", hops=count, symbols=3, length=9) for count in (3, 5))
    assert "after 5 hops" in verdict(hops, build(three, "k-hop"), five)
    assert "after 3 hops" in verdict(hops, build(five, "k-hop"), three)
    second, third = (make("estimate", order=order, symbols=2, length=9) for order in (2, 3))
    assert verdict(frequencies, build(second, "estimate-heads"), third) != "proved"
    assert verdict(frequencies, build(third, "estimate-heads"), second) != "proved"


def test_a_circuit_with_another_gate_is_not_proved() -> None:
    spec = adder(3)
    seen = set()
    for number, (left, right_) in enumerate(spec.gates):
        for pair in ((left ^ 1, right_), (left, right_ ^ 1), (left, 2)):
            if pair != (left, right_):
                other = replace(spec, gates=(*spec.gates[:number], pair, *spec.gates[number + 1 :]))
                seen.add(verdict(gates, build(other, "circuit"), spec))
    assert seen == {"the value of a gate is wrong for some values of its operands"}


def test_one_wrong_answer_among_all_inputs_is_found() -> None:
    pairs = random_associations(30, seed=1, outputs=3)
    word, answer = pairs.pairs[-1]
    other_answer = next(each for each in pairs.answers if each != answer)
    assert (
        verdict(all_inputs, build(pairs, "mlp-memory"), Associations((*pairs.pairs[:-1], (word, other_answer))))
        == "refuted"
    )
    facts = Facts((("s", "r", "a"), ("s", "q", "b"), ("t", "r", "b"), ("t", "q", "a")))
    other = Facts((("s", "r", "a"), ("s", "q", "b"), ("t", "r", "a"), ("t", "q", "a")))
    assert verdict(all_inputs, build(facts, "facts"), other) == "refuted"
    machine = increment(3)
    rules = [
        rule._replace(write="0", move="L", to="carry") if rule[:2] == ("carry", "0") else rule for rule in machine.rules
    ]
    other_machine = replace(machine, rules=tuple(rules), steps=machine.limit)
    assert verdict(all_inputs, build(other_machine, "turing"), machine) == "refuted"
    assert "is not that of its rule" in verdict(machine_steps, build(other_machine, "turing"), machine)


def test_words_that_a_spec_does_not_list_are_not_taken_for_all() -> None:
    composition = make("composition", size=2)
    assert "does not list" in verdict(all_inputs, build(composition, "composition"), composition)


# Mutants: one weight changed


TASKS: dict[str, tuple[Lemma, str, Any]] = {
    "contexts": (contexts, "heads", random_ngram(2, 3, seed=1)),
    "induction": (hops, "k-hop", make("k-hop", hops=1, symbols=3, length=6)),
    "hops": (hops, "k-hop", make("k-hop", hops=2, symbols=3, length=6)),
    "frequencies": (frequencies, "estimate-heads", make("estimate", order=2, symbols=2, length=7)),
    "a match": (a_match, "match2", make("match2", modulus=5, length=4)),
    "paths": (paths, "padded-loop", make("reachability", nodes=3)),
    "permutations": (permutations, "barrington", make("formula-value", formula="a & !b")),
    "gates": (gates, "circuit", random_circuit(1, 3, 8, 2)),
    "machine steps": (machine_steps, "turing", increment(2)),
}


def network(name: str, attention: Any = "softmax") -> Weights[Any]:
    _, construction, spec = TASKS[name]
    options: dict[str, Any] = {"max_length": 7} if name == "contexts" else {}
    return build(spec, construction, attention=attention, **options)


def mutant(weights: Weights[Any], rng: np.random.Generator) -> Weights[Any]:
    """Return a network with one weight negated, halved or doubled, or with a number added to it."""
    names = [name for name, array in weights.arrays.items() if array.shape and 0 not in array.shape]
    name = names[int(rng.integers(len(names)))]
    array = np.array(dense(weights.arrays[name]), dtype=np.float64)
    there = np.flatnonzero(array)
    if len(there) and rng.random() < 0.6:
        at = int(rng.choice(there))
        value = array.flat[at] * rng.choice([-1.0, 0.5, 2.0])
    else:
        at = int(rng.integers(array.size))
        value = array.flat[at] + rng.choice([1.0, -1.0, 0.3, 1e-3, 30.0])
    return changed(weights, name, np.unravel_index(at, array.shape), float(value))


@pytest.mark.parametrize("attention", ["softmax", "hard"])
@pytest.mark.parametrize("name", TASKS)
def test_no_mutant_with_a_wrong_answer_is_proved(name: str, attention: Any) -> None:
    lemma, _, spec = TASKS[name]
    weights, rng = network(name, attention), np.random.default_rng(3)
    assert verdict(lemma, weights, spec) == "proved"
    wrong = 0
    for _ in range(40):
        other = mutant(weights, rng)
        if not right(other, spec):
            wrong += 1
            assert verdict(lemma, other, spec) != "proved"
    assert wrong > 8


# Every instance is needed: what it guards against is refused, even if the margins of the intact network are given

Change = Callable[[Weights[Any]], Weights[Any]]


def add(name: str, index: Callable[[Weights[Any]], Any], value: float) -> Change:
    """Return the change that adds a value to one entry of an array."""

    def change(weights: Weights[Any]) -> Weights[Any]:
        at = index(weights)
        return changed(weights, name, at, float(np.asarray(dense(weights.arrays[name]))[at]) + value)

    return change


def at(*parts: Any) -> Callable[[Weights[Any]], Any]:
    """Return an index into an array; a text is the last dimension of the space of that name."""
    return lambda weights: tuple(dims(weights, part)[-1] if isinstance(part, str) else part for part in parts)


def with_mask(block: int, mask: Mask) -> Change:
    """Return the change of the mask of the one head of a block."""

    def change(weights: Weights[Any]) -> Weights[Any]:
        net, old = weights.architecture, weights.architecture.blocks[block]
        blocks = list(net.blocks)
        blocks[block] = replace(old, heads=(replace(old.heads[0], mask=mask),))
        return replace(weights, architecture=replace(net, blocks=tuple(blocks)))

    return change


def with_a_low_sink(weights: Weights[Any]) -> Weights[Any]:
    """Return an induction head with BOS between mismatches and the first position, which has no symbol before it."""
    query = 4 * np.asarray(weights.arrays["blocks.1.attn.W_Q"])
    return changed(weights.with_array("blocks.1.attn.W_Q", query), "blocks.1.attn.b_Q", (0, 3), 0.0)


BROKEN: list[tuple[str, str, Change]] = [
    ("contexts", "fixed distance", add("pos_embed.W_pos", at(7, "position"), 50.0)),
    ("contexts", "selects by symbols", add("blocks.0.attn.W_Q", at(1, "token", 0), 1.0)),
    ("contexts", "selects by symbols", add("blocks.0.attn.W_K", at(1, "token", 0), 1.0)),
    ("contexts", "read a symbol directly", add("unembed.W_U", at("slot 0", 0), 1e-6)),
    ("contexts", "no conjunction", add("blocks.0.mlp.b_in", at(3), 1.5)),
    ("contexts", "positions are read", add("blocks.0.mlp.W_in", at("position", 0), 0.1)),
    ("contexts", "refuted", add("blocks.0.mlp.W_out", at(3, "logits"), 1e-3)),
    ("contexts", "refuted", add("unembed.b_U", at(0), 1e-3)),
    ("hops", "something else", add("unembed.W_U", at("index", 1), 1e-3)),
    ("hops", "something else", add("unembed.W_U", at("number", 1), 1e-3)),
    ("hops", "best logit", add("unembed.b_U", at(1), 3.0)),
    ("hops", "later match", add("blocks.0.attn.b_Q", at(0, 2), -4.0)),
    ("hops", "later match", add("pos_embed.W_pos", at(1, "index"), 1.5)),
    ("hops", "a match is not better", add("blocks.0.attn.b_Q", at(0, 3), 50.0)),
    ("hops", "than BOS", add("blocks.0.attn.b_Q", at(0, 3), -50.0)),
    ("hops", "symbol that it matches", add("blocks.0.attn.W_V", at(0, "number", 0), 1.0)),
    ("hops", "neither by a position", with_mask(0, "causal")),
    ("hops", "neither by a position", with_mask(1, "strict")),
    ("hops", "neither by a position", add("blocks.2.attn.W_Q", at(0, "number", 0), 1.0)),
    ("hops", "share the weight", add("blocks.1.attn.b_Q", at(0, 0), 1.0)),
    ("hops", "more than erase", add("blocks.0.mlp.W_in", at("number", 0), 1.0)),
    ("hops", "position that is pointed to", add("blocks.1.attn.b_Q", at(0, 0), 2.0)),
    ("hops", "position that is pointed to", add("blocks.0.attn.W_V", at(0, "index", 0), 1.0)),
    ("hops", "BOS does not hold", add("blocks.0.attn.b_V", at(0, 0), 1.0)),
    ("hops", "BOS does not hold", add("blocks.0.mlp.b_in", at(0), -3.0)),
    ("induction", "first position is better", with_a_low_sink),
    ("induction", "something else", add("unembed.W_U", at("symbol", 1), 1e-3)),
    ("induction", "later match", add("blocks.1.attn.b_Q", at(0, 2), -4.0)),
    ("induction", "a match is not better", add("blocks.1.attn.b_Q", at(0, 3), 50.0)),
    ("induction", "than BOS", add("blocks.1.attn.b_Q", at(0, 3), -50.0)),
    ("induction", "what is before", add("blocks.1.attn.W_V", at(0, "symbol before", 0), 1.0)),
    ("induction", "neither by a position", with_mask(1, "strict")),
    ("induction", "share the weight", add("blocks.0.attn.b_Q", at(0, 0), 1.0)),
    ("frequencies", "depend on a symbol directly", add("unembed.W_U", at("symbol", 0), 1e-3)),
    ("frequencies", "BOS is not between", add("blocks.1.attn.b_Q", at(0, -1), 3.0)),
    ("frequencies", "BOS is not between", add("blocks.1.attn.b_Q", at(0, -1), -3.0)),
    ("frequencies", "different scores", add("blocks.1.attn.W_Q", at(0, "symbol", 1), 0.1)),
    ("frequencies", "positions are read", add("blocks.1.attn.W_Q", at(0, "position", 0), 0.1)),
    ("frequencies", "alone", add("blocks.1.attn.b_Q", at(0, 0), 0.1)),
    ("frequencies", "unit vectors", add("blocks.1.attn.b_V", at(0, 0), 1e-3)),
    ("frequencies", "symbol before", add("blocks.1.attn.W_V", at(0, "symbol 1 back, exact", 0), 1e-3)),
    ("a match", "positions play a role", add("pos_embed.W_pos", at(3, "angle"), 1e-3)),
    ("a match", "better than a match", add("blocks.0.attn.b_Q", at(0, 2), 50.0)),
    ("a match", "mismatch may be better", add("blocks.0.attn.b_Q", at(0, 2), -50.0)),
    ("a match", "values of numbers differ", add("blocks.0.attn.W_V", at(0, "angle", 0), 1e-3)),
    ("a match", "answer 'no'", add("unembed.b_U", at(0), -3.0)),
    ("a match", "answer 'yes'", add("unembed.b_U", at(0), 3.0)),
    ("gates", "selects by bits", add("blocks.0.attn.W_K", at(0, "value", 0), 1.0)),
    ("gates", "wrong for some values", add("blocks.0.mlp.b_in", at(0), 2.0)),
    ("gates", "wrong for some values", add("pos_embed.W_pos", at(9, "left negated"), 1.0)),
    ("machine steps", "keys of the first layer", add("blocks.0.attn.W_K", at(0, "symbol", 0), 1.0)),
    ("machine steps", "same weight", add("pos_embed.W_pos", at(4, "sink of cell"), 0.5)),
    ("machine steps", "sum the moves", add("blocks.0.attn.W_V", at(0, "symbol", 0), 1e-3)),
    ("machine steps", "neither its own", add("blocks.0.attn.b_Q", at(1, 1), -1.0)),
    ("machine steps", "more than the cell", add("blocks.1.attn.W_Q", at(0, "state", 0), 1e-3)),
    ("machine steps", "cell and position", add("blocks.1.attn.W_K", at(0, "state", 0), 1e-3)),
    ("machine steps", "more than the symbol", add("blocks.1.attn.W_V", at(0, "state", 0), 1e-3)),
    (
        "machine steps",
        "a later symbol",
        lambda weights: changed(weights, "blocks.1.attn.b_Q", (0, [-2, -1]), [0.0, 13.0]),
    ),
    ("machine steps", "not better than BOS", add("blocks.1.attn.b_Q", at(0, -1), 60.0)),
    ("machine steps", "another cell", add("blocks.1.attn.b_Q", at(0, -1), -60.0)),
    ("machine steps", "not that of its rule", add("blocks.1.mlp.b_in", at(4), -1.0)),
    ("machine steps", "on the empty input", add("blocks.1.mlp.b_in", at(0), -1.0)),
    ("gates", "share the weight", lambda weights: changed(weights, "blocks.0.attn.beta", 0, 0.0)),
]


@pytest.mark.parametrize(("name", "reason", "change"), BROKEN, ids=[f"{name}: {why}" for name, why, _ in BROKEN])
def test_what_an_instance_guards_against_is_refused(name: str, reason: str, change: Change) -> None:
    lemma, _, spec = TASKS[name]
    weights = network(name)
    broken = replace(case_of(weights, spec), weights=change(weights))
    if reason == "refuted":
        assert lemma(broken).witness is not None
    else:
        with pytest.raises(Undecided, match=reason):
            lemma(broken)
