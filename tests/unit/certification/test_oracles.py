"""Oracles: what they expect is what the specs say, and their witnesses are true."""

from __future__ import annotations

import numpy as np
import pytest

from built import ATTENTIONS, all_words, answers, expected, probabilities, random_words, walked
from cases import each
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.oracles.automata import StateOracle
from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.certification.oracles.grammars import NextWordOracle
from vitrify.certification.oracles.meanings import MeaningOracle
from vitrify.certification.oracles.ngrams import NextTokenOracle
from vitrify.constructions.commutative import commutative
from vitrify.constructions.grammar_probabilities import grammar_probabilities
from vitrify.constructions.log_depth import log_depth
from vitrify.constructions.ngram import ngram
from vitrify.constructions.word_classes import word_classes
from vitrify.errors import FolderError, InputError
from vitrify.kit import assemble
from vitrify.net.inference import trace
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, divisibility, random_automaton, symmetric_group
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.languages.word_patterns import waking_up
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.ngrams.model import NGramModel

MODELS = {
    "order 1": random_ngram(2, 1, seed=0),
    "order 2": random_ngram(3, 2, seed=1),
    "order 4": random_ngram(2, 4, seed=2),
    "estimated": NGramModel.fit([["a", "b"], ["b"], ["a", "a", "b"], []], 3, unk=True),
}


def net_of(model: NGramModel) -> Weights:
    return assemble(ngram(model, attention="hard", max_length=9))


def logits_for(probability: np.ndarray) -> np.ndarray:
    """Logits whose softmax is a given distribution, shifted by something that does not matter."""
    logits: np.ndarray = np.log(probability) + 3.5
    return logits


@each("name", MODELS)
def test_next_tokens_are_those_of_the_model(name: str) -> None:
    model = MODELS[name]
    oracle = NextTokenOracle(model, net_of(model).architecture)
    words = random_words(len(model.readable), 9, 40, seed=1)
    right = expected(model, words)
    assert oracle.errors(words, logits_for(right)).shape == (40, 10)
    assert oracle.errors(words, logits_for(right)).max() <= 1e-14
    for row, word in zip(right, words, strict=True):  # and both agree with the model, one history at a time
        for n in (0, 1, 2, 5, 9):
            history = [model.readable[i - 1] for i in word[:n]]
            np.testing.assert_allclose(np.exp(model.next_log_probs([history]))[0], row[n], rtol=1e-12)


@each("name", MODELS)
def test_one_wrong_probability_is_measured_where_it_is(name: str) -> None:
    model = MODELS[name]
    net = net_of(model).architecture
    oracle = NextTokenOracle(model, net)
    words = random_words(len(model.readable), 9, 5, seed=2)
    wrong = expected(model, words)
    moved = min(0.01, *(wrong[3, 7, [0, 2]] / 2).tolist())
    wrong[3, 7, :3] += [-moved / 2, moved, -moved / 2]
    errors = oracle.errors(words, np.log(wrong))
    assert errors[3, 7] == pytest.approx(moved, rel=1e-9)
    errors[3, 7] = 0
    assert errors.max() <= 1e-14
    witness = oracle.witness(words[3, :7], np.log(wrong)[3, :8])
    assert witness["history"] == [net.inputs[i] for i in words[3, :7]]
    assert witness["next"] == model.predicted[1]
    difference = float(witness["actual"]) - float(witness["expected"])  # type: ignore[arg-type]
    assert difference == pytest.approx(moved, rel=1e-9)


@pytest.mark.parametrize("strange", [np.nan, np.inf])
def test_a_number_that_is_none_is_an_error(strange: float) -> None:
    model = MODELS["order 2"]
    words = all_words(3, 2)
    logits = np.log(expected(model, words))
    logits[4, 1, 2] = strange
    with np.errstate(invalid="ignore"):
        errors = NextTokenOracle(model, net_of(model).architecture).errors(words, logits)
    assert errors[4, 1] > 0.1
    machine = cyclic(3)
    net = assemble(log_depth(machine, max_length=4))
    found = answers(net, words % 2 + 1)
    oracle = StateOracle(machine, net.architecture)
    assert not oracle.errors(words % 2 + 1, found).any()
    found[4, 1] = strange
    errors = oracle.errors(words % 2 + 1, found)
    assert np.argwhere(errors).tolist() == [[4, 1]]


def test_tolerances() -> None:
    model = MODELS["order 2"]
    tolerance = {
        attention: NextTokenOracle(
            model, assemble(ngram(model, attention=attention, max_length=4)).architecture
        ).tolerance()
        for attention in ATTENTIONS
    }
    assert tolerance == {"softmax": 1e-9, "sparsemax": 1e-12, "hard": 1e-12}
    machine = cyclic(3)
    assert StateOracle(machine, assemble(log_depth(machine, max_length=4)).architecture).tolerance() < 1


@pytest.mark.parametrize("name", ["order 2", "order 4", "estimated"])
def test_questions_ask_about_every_listed_context(name: str) -> None:
    model = MODELS[name]
    net = net_of(model).architecture
    oracle = NextTokenOracle(model, net)
    total = sum(len(level) for level in model.contexts())
    questions = oracle.cases(np.random.default_rng(0), 10_000)
    assert len(questions) == total
    ends = {tuple(["<s>", *(net.inputs[i] for i in word)][-n:]) for word in questions for n in range(1, model.order)}
    for level, index in enumerate(model.contexts()):
        for gram in model.words_of(level, index).tolist():
            assert tuple(model.vocabulary[w] for w in gram) in ends
    assert all(0 < i < len(net.inputs) for word in questions for i in word)
    assert all(len(word) <= net.max_length for word in questions)
    few = oracle.cases(np.random.default_rng(0), 3)
    assert len(few) == 3
    assert few == oracle.cases(np.random.default_rng(0), 3)


def test_questions_fit_a_short_net() -> None:
    model = MODELS["order 4"]
    net = assemble(ngram(model, max_length=2)).architecture
    questions = NextTokenOracle(model, net).cases(np.random.default_rng(0), 100)
    assert max(map(len, questions)) == 2


@pytest.mark.parametrize(
    "machine", [divisibility(7), symmetric_group(5), random_automaton(5, 3, seed=0)], ids=["div 7", "S5", "random"]
)
def test_states_are_those_of_the_automaton(machine: Automaton) -> None:
    net = assemble(log_depth(machine, max_length=9)).architecture
    oracle = StateOracle(machine, net)
    words = random_words(len(machine.alphabet), 9, 30, seed=0)
    right = walked(machine, words)
    logits = np.eye(len(machine.states))[right]
    assert not oracle.errors(words, logits).any()
    wrong = (right[7, 4] + 1) % len(machine.states)
    logits[7, 4] = np.eye(len(machine.states))[wrong]
    errors = oracle.errors(words, logits)
    assert np.argwhere(errors > oracle.tolerance()).tolist() == [[7, 4]]
    assert oracle.witness(words[7, :4], logits[7, :5]) == {
        "word": [machine.alphabet[i - 1] for i in words[7, :4]],
        "expected": machine.states[right[7, 4]],
        "actual": machine.states[wrong],
    }


def test_states_of_a_net_that_speaks_of_the_reachable_ones_only() -> None:
    machine = Automaton(("lost", "p", "q"), ("a", "b"), ((0, 0), (2, 1), (1, 2)), 1, frozenset({0, 1}))
    net = assemble(commutative(machine, max_length=6))
    assert net.architecture.output.symbols == ("p", "q")
    words = all_words(2, 6)
    oracle = oracle_for(machine, net.architecture)
    assert not oracle.errors(words, answers(net, words)).any()


def test_questions_about_an_automaton_drive_counts_to_their_ends() -> None:
    machine = random_automaton(3, 3, seed=0)
    net = assemble(log_depth(machine, max_length=7)).architecture
    questions = StateOracle(machine, net).cases(np.random.default_rng(0), 1000)
    assert {len(word) for word in questions} == {7}
    for word in (
        [2] * 7,
        [1, 1, 1, 3, 3, 3, 3],
        [1, 1, 1, 1, 1, 2, 2],
        [3, 1, 1, 1, 1, 1, 1],
        [1, 3, 1, 3, 1, 3, 1],
        [1, 2, 1, 1, 2, 1, 1],
    ):
        assert word in questions
    # 12 words of one or two letters behind nothing or a letter, 12 changes, 27 of three letters, and the wanderers
    assert len(questions) == 12 * 4 + 12 + 27 + StateOracle.WANDERING
    assert len(StateOracle(machine, net).cases(np.random.default_rng(0), 2)) == 2


def test_some_questions_about_an_automaton_avoid_its_traps() -> None:
    machine = Automaton.from_regex("(ab|ba)*")
    net = assemble(log_depth(machine, max_length=30)).architecture
    questions = StateOracle(machine, net).cases(np.random.default_rng(0), 1000)
    trap = next(q for q, row in enumerate(machine.transitions) if set(row) == {q})
    ends = [walked(machine, np.array([word]))[0, -1] for word in questions[-StateOracle.WANDERING :]]
    assert trap not in ends
    assert len({tuple(word) for word in questions[-StateOracle.WANDERING :]}) == StateOracle.WANDERING


def test_tied_states_are_wrong() -> None:
    machine = cyclic(2)
    oracle = StateOracle(machine, assemble(log_depth(machine, max_length=4)).architecture)
    words = np.array([[1]])
    assert oracle.errors(words, np.array([[[1.0, 0.0], [1.0, 0.0]]])).tolist() == [[0.0, 0.0]]
    assert oracle.errors(words, np.array([[[1.0, 0.0], [1.0, 1.0]]])).tolist() == [[0.0, 1.0]]


def test_a_wrong_net_gives_a_witness_that_is_wrong_by_hand() -> None:
    model = MODELS["order 2"]
    weights = net_of(model)
    table = weights.arrays["unembed.b_U"].copy()
    table[1] += 0.3
    broken = weights.with_array("unembed.b_U", table)
    oracle = oracle_for(model, weights.architecture)
    words = all_words(3, 3)
    errors = oracle.errors(words, answers(broken, words))
    row, prefix = np.argwhere(errors > oracle.tolerance())[0].tolist()
    witness = oracle.witness(words[row, :prefix], answers(broken, words)[row, : prefix + 1])
    history = witness["history"]
    assert isinstance(history, list)
    ids = np.array([[model.readable.index(word) + 1 for word in history]], dtype=np.int64).reshape(1, -1)
    symbol = model.predicted.index(str(witness["next"]))
    assert witness["expected"] == pytest.approx(float(expected(model, ids)[0, -1, symbol]), rel=1e-12)
    assert witness["actual"] == pytest.approx(float(probabilities(broken, ids)[0, -1, symbol]), rel=1e-12)
    assert abs(float(witness["actual"]) - float(witness["expected"])) > 1e-3  # type: ignore[arg-type]


def test_foreign_specs_are_refused() -> None:
    three, two = assemble(log_depth(cyclic(3), max_length=4)).architecture, cyclic(2)
    with pytest.raises(FolderError, match="the same symbols"):
        oracle_for(two, three)
    with pytest.raises(FolderError, match="the same symbols"):
        oracle_for(cyclic(3, 3), three)
    other = Automaton(three.output.symbols, ("0", "1"), cyclic(3).transitions, 0, frozenset({1}))
    with pytest.raises(FolderError, match="accept the same answers"):
        oracle_for(other, three)
    with pytest.raises(FolderError, match="the same symbols"):
        oracle_for(MODELS["order 2"], net_of(MODELS["order 4"]).architecture)
    with pytest.raises(FolderError, match="no oracle for a spec of type int"):
        oracle_for(3, three)


def test_next_sets_are_those_of_the_language() -> None:
    spec = waking_up(2)
    weights = assemble(word_classes(spec))
    net = weights.architecture
    oracle = oracle_for(spec, net)
    assert isinstance(oracle, MeaningOracle)
    assert oracle.tolerance() == 0
    sentence = next(s for s in spec.sentences() if len(s) == spec.longest == 10)
    word = np.array([[net.inputs.index(w) for w in sentence]])
    legal = [spec.next_words(sentence[:n]) for n in range(11)]
    logits = np.array([[[0.01 if symbol in row else -0.01 for symbol in net.output.symbols] for row in legal]])
    assert not oracle.errors(word, logits).any()
    assert not oracle.errors(word, answers(weights, word)).any()
    wrong = logits.copy()
    wrong[0, 3, net.output.symbols.index("</s>")] = 1.0
    wrong[0, 5, net.output.symbols.index(sentence[5])] = -1.0
    wrong[0, 7, 0] = np.nan
    wrong[0, 8, 0] = 0.0
    assert np.flatnonzero(oracle.errors(word, wrong)[0]).tolist() == [3, 5, 7, 8]
    for place in (7, 8):
        witness = oracle.witness(word[0, :place], wrong[0, : place + 1])
        assert witness["undecided"] == [net.output.symbols[0]]
    assert oracle.witness(word[0, :3], wrong[0, :4]) == {
        "history": list(sentence[:3]),
        "missing": [],
        "too many": ["</s>"],
        "undecided": [],
    }
    assert oracle.witness(word[0, :5], wrong[0, :6])["missing"] == [sentence[5]]


def test_questions_about_a_language_are_sentences_of_it() -> None:
    spec = waking_up(30)
    net = assemble(word_classes(spec, max_length=6)).architecture
    oracle = oracle_for(spec, net)
    assert oracle.language is not None
    rng = np.random.default_rng(0)
    asked = oracle.cases(rng, 1_000)
    assert {net.inputs[i] for word in asked for i in word} == set(spec.vocabulary)
    assert len(oracle.cases(rng, 7)) == 7
    for word in [*asked, *(oracle.language.draw(rng) for _ in range(20))]:
        assert len(word) <= 6
        assert spec.next_words([net.inputs[i] for i in word])
    with pytest.raises(FolderError, match="the same symbols"):
        oracle_for(waking_up(29), net)


def test_beginnings_are_asked_by_whole_lengths() -> None:
    spec = waking_up(30)
    net = assemble(word_classes(spec)).architecture
    few = WordCheck(net, spec, work=1e3).batches[0]
    assert (few.domain.method, few.domain.covers_lengths) == ("sampled", True)
    level = [sum(len(prefix) == n for prefix in spec.prefixes(4)) for n in range(5)]
    longest = max(words.shape[1] for words in few.words)
    assert few.cases == sum(level[: longest + 1])
    with pytest.raises(InputError, match="longer than the network reads"):
        WordCheck(net, spec, max_length=99).batches  # noqa: B018


def test_next_words_of_a_grammar_by_exact_probabilities() -> None:
    grammar = Grammar.from_text("S -> 'a' A [0.25] | 'a' [0.75]\nA -> 'b' [1/3] | 'a' [2/3]")
    weights = assemble(grammar_probabilities(grammar))
    net = weights.architecture
    oracle = oracle_for(grammar, net)
    assert isinstance(oracle, NextWordOracle)
    assert net.output.symbols == ("a", "b", "</s>")
    word = np.array([[1, 2]])
    right = np.log(np.maximum(np.array([[[1, 0, 0], [1 / 6, 1 / 12, 3 / 4], [0, 0, 1]]]), 1e-300))
    assert oracle.errors(word, right).max() <= 2e-16
    assert oracle.errors(word, answers(weights, word)).max() <= 1e-14
    wrong = right.copy()
    wrong[0, 1, 1] += 1e-8
    wrong[0, 2, 0] = np.nan
    assert (oracle.errors(word, wrong)[0] > oracle.tolerance()).tolist() == [False, False, True]
    wrong[0, 1, 1] += 1e-7
    assert (oracle.errors(word, wrong)[0] > oracle.tolerance()).tolist() == [False, True, True]
    witness = oracle.witness(word[0, :1], right[0, :2] + [[0, 0, 0], [0, 3, 0]])
    assert (witness["history"], witness["next"], witness["expected"]) == (["a"], "b", 1 / 12)
    with pytest.raises(FolderError, match="the same symbols"):
        NextWordOracle(Grammar.from_text("S -> 'a' [1.0]"), net)


def test_numbers_on_the_way_of_a_grammar_are_known() -> None:
    grammar = Grammar.from_text("S -> A A [0.5] | A [0.5]\nA -> 'a' [0.25] | 'a' 'b' [0.75]")
    weights = assemble(grammar_probabilities(grammar))
    oracle = oracle_for(grammar, weights.architecture)
    assert oracle.KNOWS_SPACES
    words = np.array([[1, 2, 1]])
    run = trace(weights, ["a", "b", "a"])
    known = 0
    for label in weights.labels.spaces:
        held = run.space(label.name)[None, weights.architecture.pads - 1 :].copy()
        far = oracle.space_error(words, label, held)
        if far is None:
            assert label.name in ("bos", "position", "sink", "summand", "words read")
            continue
        known += 1
        assert far <= label.error + 1e-12, label.name
        for t, coordinate in [(2, 0), (3, held.shape[-1] - 1)]:
            moved = held.copy()
            moved[0, t, coordinate] += 30.0
            assert (oracle.space_error(words, label, moved) or 0.0) > 15, (label.name, t)
    assert known >= 8
