"""How far a language model is from its spec, against sums over all words; and allowed errors of probabilities."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import vitrify as v
from cases import each
from vitrify.certification import net_check
from vitrify.certification.checks.divergence import DIVERGENCE, FARTHEST, divergence
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.recognition import allowing, one_sentence, reading
from vitrify.errors import InputError
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.ngrams.model import END

MODEL = random_ngram(2, 2, seed=1)


def shifted(amount: float) -> Weights[Any]:
    """Return a network of the model, with the logit of its first symbol moved."""
    net: Weights[Any] = v.build(MODEL, max_length=5)
    bias = np.array(dense(net.arrays["unembed.b_U"]), dtype=np.float64)
    bias[0] += amount
    return net.with_array("unembed.b_U", bias)


def laws(net: Weights[Any], word: list[str]) -> tuple[Any, Any]:
    """Return the distributions of the model and of a network after a word."""
    names = net.architecture.output.symbols
    row = np.exp(MODEL.next_log_probs([word]))[0]
    logits = net(word)[-1]
    return row[[MODEL.predicted.index(name) for name in names]], np.exp(logits - np.logaddexp.reduce(logits))


@each("amount", (0.0, 0.1, 0.5))
def test_the_divergence_is_that_of_the_definition(amount: float) -> None:
    net, letters = shifted(amount), MODEL.readable
    total = worst = 0.0
    for length in range(6):
        weight = 0.0
        inner = 0.0
        for word in product(letters, repeat=length):
            share = 1.0
            for place in range(length):
                p, _ = laws(net, list(word[:place]))
                names = net.architecture.output.symbols
                going = sum(p[names.index(letter)] for letter in letters)
                share *= p[names.index(word[place])] / going  # words that go on
            p, q = laws(net, list(word))
            inner += share * float((p * np.log(p / q)).sum())
            weight += share
            worst = max(worst, float(np.abs(p - q).max()))
        assert weight == pytest.approx(1)
        total += inner
    check = net_check(net.architecture, MODEL)
    assert isinstance(check, WordCheck)
    measured = {each.name: each.measured for each in divergence(net, check)}
    assert measured[DIVERGENCE] == pytest.approx(total / 6, rel=0.1, abs=1e-12)  # 64 words of the model
    assert measured[FARTHEST] <= worst + 1e-12
    assert measured[FARTHEST] >= 0.8 * worst - 1e-12


def test_a_stated_error_is_allowed_and_no_more() -> None:
    net = shifted(0.2)
    exact = v.certify(net, MODEL, max_length=3)
    assert exact.verdict == "fails"
    error = exact.measured(FARTHEST)
    assert isinstance(error, float)
    near = v.certify(allowing(net, 1.01 * error), MODEL, max_length=3)
    assert near.verdict == "holds"
    assert near.allowed_error == 1.01 * error
    assert v.certify(allowing(net, 0.9 * error), MODEL, max_length=3).verdict == "fails"
    assert v.certify(allowing(net, None), MODEL, max_length=3).verdict == "fails"


def test_an_error_that_lets_a_constant_answer_pass_is_no_certificate() -> None:
    evidence = v.certify(allowing(shifted(0.2), 0.49), MODEL, max_length=3)
    assert evidence.verdict == "fails"
    assert evidence.witness is not None
    assert "at which a constant answer is right" in str(evidence.witness["expected"])


def test_errors_are_of_numbers_and_of_probabilities_below_a_half() -> None:
    with pytest.raises(InputError, match=r"must be below 0\.5, not 0\.5"):
        allowing(shifted(0), 0.5)
    with pytest.raises(InputError, match="about probabilities and numbers, not answers of kind 'recognizer'"):
        allowing(v.build(v.read("cyclic:2"), "elman"), 0.1)


def test_a_network_that_reads_the_end_of_a_sentence_is_judged_without_it() -> None:
    net = shifted(0)
    rows = np.asarray(dense(net.arrays["embed.W_E"]))
    inputs = (net.architecture.inputs[0], END, *net.architecture.inputs[1:])
    both = replace(
        net,
        architecture=replace(net.architecture, inputs=inputs),
        arrays={**net.arrays, "embed.W_E": np.insert(rows, 1, 7.0, axis=0)},
    )
    assert one_sentence(both).architecture == net.architecture
    assert np.array_equal(one_sentence(both).arrays["embed.W_E"], rows)
    assert one_sentence(net) is net
    first = reading(net, [MODEL.readable[0]])
    assert np.array_equal(first([[MODEL.readable[0]] * 3])[0], net([[MODEL.readable[0]] * 3])[0])
    with pytest.raises(InputError, match="some that the network reads, not z"):
        reading(net, ["z"])
