"""Automata that are learned from answers: right ones, planted deviations, too small ones, interruptions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import vitrify as v
from cases import each
from extracted import LONGEST, counts, model_of, planted
from vitrify.arrays import Ints
from vitrify.certification.evidence import Scope
from vitrify.errors import InputError
from vitrify.extraction import observations as module
from vitrify.extraction.callables import callable_net
from vitrify.extraction.result import CLOSE_ANSWERS, COVERED, MARGIN, OPEN_ANSWERS, RIVALS
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, random_automaton


@pytest.mark.long
@each("seed", range(12))
def test_the_minimal_automaton_is_learned_and_certified_to_the_complete_length(seed: int) -> None:
    spec = random_automaton(6, 2, seed=seed)
    result = v.extract(model_of(spec), max_length=9)
    minimal = spec.minimized()
    accepts = {result.spec.accepts(word) == minimal.accepts(word) for word in map(list, words_to(minimal, 10)) if word}
    assert accepts == {True}
    assert len(result.spec.states) <= len(minimal.states)
    assert result.evidence.verdict == "holds"
    assert result.known.startswith("equal on every word up to length 9; longer ones sampled")
    headline = result.evidence.headline
    assert headline is not None
    assert (headline.scope, headline.longest) == (Scope.SAMPLED, 9)
    assert result.evidence.methods == ("sampled",)


def words_to(spec: Automaton, longest: int) -> list[tuple[str, ...]]:
    words: list[tuple[str, ...]] = [()]
    for word in words:
        if len(word) < longest:
            words += [(*word, letter) for letter in spec.alphabet]
    return words


def test_a_rare_deviation_beyond_the_searched_length_is_reported_as_sampled_there() -> None:
    trigger = "0110100110010110011"  # one word of 2^19
    net = model_of(cyclic(2), lambda words: planted(words, trigger))
    result = v.extract(net, max_length=12)
    assert result.spec == cyclic(2)
    headline = result.evidence.headline
    assert headline is not None
    assert (headline.scope, headline.longest) == (Scope.SAMPLED, 12)
    assert not result.every_length
    assert "exhaustive" not in result.evidence.methods
    assert "proved" not in result.evidence.methods
    assert "longer ones sampled: below" in result.known
    deviates = result.spec.accepts(trigger) != (net(list(trigger))[-1].argmax() == 1)
    assert deviates  # so nothing more may be said


def test_a_deviation_within_the_searched_length_is_part_of_the_automaton_or_shown() -> None:
    net = model_of(cyclic(2), lambda words: planted(words, "0110"))
    result = v.extract(net, max_length=8)
    assert result.evidence.verdict == "holds"
    assert len(result.spec.states) > 2
    for word in words_to(result.spec, 8)[1:]:
        assert result.spec.accepts(word) == (net(list(word))[-1].argmax() == 1), word
    small = v.extract(net, max_length=8, max_states=2)
    assert small.evidence.verdict == "fails"
    assert small.spec == cyclic(2)
    assert small.counterexample == {"word": ["0", "1", "1", "0"], "expected": "yes", "actual": "no"}
    assert small.stopped == "a machine of 2 states, the most that are allowed, does not suffice"
    assert {each.length: each.wrong for each in small.errors if each.complete} == dict.fromkeys(range(9), 0) | {4: 1}


def test_a_saturating_counter_is_an_automaton_and_its_errors_grow_with_length() -> None:
    """A net that counts ones to 5 and then stays there is no parity, from length 6 on."""
    net = model_of(cyclic(2), lambda words: (np.maximum(counts(words) - 5, 0)) % 2)
    result = v.extract(net, max_length=10)
    assert result.evidence.verdict == "holds"
    assert len(result.spec.states) == 6
    small = v.extract(net, max_length=10, max_states=4)
    assert small.counterexample is not None
    assert small.counterexample["word"] == ["1"] * 6
    shares = [each.wrong / each.words for each in small.errors if each.complete]
    assert shares[:6] == [0.0] * 6
    assert shares[6:] == sorted(shares[6:])
    assert shares[6] == 1 / 64
    assert [each.length for each in small.errors if not each.complete] == [20]


def test_a_net_that_names_states_is_learned_with_its_names() -> None:
    spec = cyclic(3)
    result = v.extract(model_of(spec, answers="states"), max_length=7)
    assert (result.spec.states, result.spec.transitions) == (spec.states, spec.transitions)


def test_the_whole_reach_of_a_network_is_exhaustive() -> None:
    result = v.extract(model_of(cyclic(3), longest=8))
    headline = result.evidence.headline
    assert headline is not None
    assert (headline.scope, headline.longest) == (Scope.EXHAUSTIVE, 8)
    assert result.known == "equal on every word up to length 8, the longest that the network reads"


@each("longest", (1, 3, 4))
@each("answers", ("verdict", "states"))
def test_the_least_number_of_states_of_another_machine_is_that_of_one(longest: int, answers: str) -> None:
    """It counts letters, and answers otherwise after the last. Of yes and no, that after the empty word is ignored."""
    one = Automaton(("low", "high"), ("a",), ((0,), (1,)), 0, frozenset({1}))
    result = v.extract(model_of(one, answers=answers, longest=20), max_length=longest, max_states=1)
    other = longest + 1 + (answers == "states")  # states that first answer otherwise at length `longest` + 1
    assert len(result.spec.states) == 1
    assert result.evidence.measured(RIVALS) == other


def test_another_machine_is_told_apart_up_to_the_proved_length() -> None:
    net = v.build(cyclic(3), "log-depth", max_length=12)
    result = v.extract(net, max_length=6)
    assert result.known == "equal on every word up to length 12, proved"
    assert result.evidence.measured(RIVALS) == 12 + 3 - 3


def test_a_counterexample_is_printed_with_the_answers_of_spec_and_network() -> None:
    net = model_of(cyclic(2), lambda words: planted(words, "0110"))
    rows = dict(v.extract(net, max_length=8, max_states=2).rows())
    assert rows["counterexample"] == "word: 0 1 1 0, spec: yes, network: no"


def test_a_deviation_that_only_long_words_show_is_the_counterexample() -> None:
    """Its automaton has a state for each length: more than allowed. What is returned is right on short words."""
    net = model_of(cyclic(2), lambda words: np.broadcast_to(np.arange(words.shape[1] + 1) >= 15, counts(words).shape))
    result = v.extract(net, max_length=8, max_states=6)
    assert result.spec == cyclic(2)
    assert result.evidence.verdict == "fails"
    assert result.known == "equal on every word up to length 8; a word of length 15 tells them apart"
    assert result.counterexample is not None
    word = result.counterexample["word"]
    assert result.spec.accepts(word) == (result.counterexample["expected"] == "yes")
    assert (net(word)[-1].argmax() == 1) == (result.counterexample["actual"] == "yes")
    assert result.counterexample["expected"] != result.counterexample["actual"]
    assert [(each.length, each.wrong) for each in result.errors if not each.complete] == [(16, 256), (20, 256)]


@each("attention", ("softmax", "hard"))
def test_what_may_come_next_is_learned_along_legal_words(attention: str) -> None:
    dyck = v.Dyck.of("( )", depth=2, length=10)
    net = v.build(dyck, attention=attention, max_length=10)
    result = v.extract(net)
    assert result.method.startswith("learned")
    assert result.evidence.verdict == "holds"
    assert len(result.spec.states) == 4  # no, one and two open brackets, and the end of all hope
    for word in words_to(result.spec, 8):
        assert result.spec.accepts(word) == dyck.holds(word)


# Bounds, interruptions, files


def test_words_are_counted_and_bounded() -> None:
    run = []

    def counted(words: Ints) -> Ints:
        run.append(len(words))
        return np.zeros((len(words), words.shape[1] + 1), dtype=int)

    result = v.extract(model_of(cyclic(5), counted), words=300)
    assert result.words <= 300
    headline = result.evidence.headline
    assert headline is not None
    assert headline.longest is not None
    assert 2**headline.longest <= 300
    with pytest.raises(InputError, match="choose a smaller --max-length"):
        v.extract(model_of(cyclic(2)), max_length=LONGEST + 1)


@each("after", (1, 2, 3))
def test_an_interruption_leaves_the_best_automaton_and_a_file_to_go_on_from(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_ACTIVATIONS", 1 << 19)  # small batches
    calls = []

    def interrupting(words: Ints) -> Ints:
        calls.append(words.shape)
        if len(calls) == after + 2 and not resumed:
            raise KeyboardInterrupt
        return np.zeros((len(words), words.shape[1] + 1), dtype=int)

    file, resumed = tmp_path / "answers.safetensors", False
    net = model_of(cyclic(3), interrupting)
    first = v.extract(net, max_length=10, resume=file)
    assert first.stopped == "interrupted"
    headline = first.evidence.headline
    assert headline is not None
    assert headline.longest == 5
    assert first.evidence.measured(COVERED) is None  # none of these words was run
    assert "longer ones were not compared" in first.known or first.evidence.verdict == "fails"
    resumed, calls[:] = True, []
    second = v.extract(net, max_length=10, resume=file)
    assert second.stopped is None
    assert second.spec == cyclic(3)
    whole = v.extract(model_of(cyclic(3)), max_length=10)
    assert second.words < whole.words
    assert replace(second.evidence, seconds=0) == replace(whole.evidence, seconds=0)


@each("spoil", ("text", "short", "other", "levels"))
def test_a_file_of_answers_that_does_not_fit_is_refused(spoil: str, tmp_path: Path) -> None:
    file = tmp_path / "answers.safetensors"
    net = v.build(cyclic(3), "log-depth", max_length=8)
    v.extract(net, max_length=4, resume=file)
    if spoil == "text":
        file.write_text("nothing")
    elif spoil == "short":
        file.write_bytes(file.read_bytes()[:-8])
    elif spoil == "other":
        net = v.build(cyclic(2), "log-depth", max_length=8)
    else:
        from safetensors.numpy import save_file

        facts = {"net": net.digest, "complete": "3", "smallest": "1.0"}
        save_file({"length 0": np.zeros(1, dtype=np.int64)}, file, facts)
    with pytest.raises(InputError, match=r"resumed|another network"):
        v.extract(net, max_length=4, resume=file)


# What is refused


def test_a_model_that_looks_ahead_is_refused() -> None:
    def backwards(words: Ints) -> Ints:
        last = words[:, -1:] - 1 if words.shape[1] else np.zeros((len(words), 1), dtype=int)
        return np.repeat(last, words.shape[1] + 1, axis=1)

    with pytest.raises(InputError, match="depends on what comes later"):
        v.extract(model_of(cyclic(2), backwards), max_length=6)


def test_logits_of_another_shape_are_refused() -> None:
    net = callable_net(lambda tokens: np.zeros((len(tokens), 2), dtype=np.float64), "ab", ("no", "yes"), longest=4)
    with pytest.raises(InputError, match=r"must return logits \[batch, position, answer\] of shape \(2, 2, 2\)"):
        v.extract(net, max_length=2)
    with pytest.raises(InputError, match="different names"):
        callable_net(lambda tokens: np.zeros((*tokens.shape, 2)), "aa", ("no", "yes"), longest=4)


@each("kind", ("automaton", "ngram", "formula", "counter"))
def test_networks_of_other_kinds_are_refused_in_one_sentence(kind: str) -> None:
    lm = v.build(v.read("examples/weather.arpa"), max_length=8)
    automaton = v.build(cyclic(2), "elman")
    net = automaton if kind == "ngram" else lm
    with pytest.raises(InputError, match="extracted from") as refusal:
        v.extract(net, kind)  # type: ignore[arg-type]
    assert "\n" not in str(refusal.value)


# Close logits


def scaled(factor: float) -> Weights[Transformer]:
    """Return a network whose logits are closer to each other by a factor."""
    net: Weights[Transformer] = v.build(cyclic(3), "log-depth", max_length=6)
    for name in ("unembed.W_U", "unembed.b_U"):
        net = net.with_array(name, factor * np.asarray(dense(net.arrays[name])))
    return net


def test_close_logits_are_compared_in_real_arithmetic() -> None:
    result = v.extract(scaled(2.0**-24), max_length=4)
    assert (result.spec.states, result.spec.transitions) == (cyclic(3).states, cyclic(3).transitions)
    assert result.evidence.measured(CLOSE_ANSWERS) >= 31
    assert result.evidence.measured(OPEN_ANSWERS) is None
    assert result.evidence.measured(MARGIN) < 1e-6
    assert v.extract(scaled(1.0), max_length=4).evidence.measured(CLOSE_ANSWERS) is None


def test_close_logits_of_a_function_are_counted() -> None:
    net = callable_net(lambda tokens: np.zeros((*tokens.shape, 2)), "ab", ("no", "yes"), longest=4)
    result = v.extract(net)
    assert len(result.spec.states) == 1
    assert result.evidence.measured(OPEN_ANSWERS) >= 31
