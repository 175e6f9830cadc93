"""N-gram models that are extracted: exact ones, their order, what they lose, and networks that are none."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import vitrify as v
from cases import each
from vitrify.arrays import Floats, Ints
from vitrify.errors import InputError
from vitrify.extraction.callables import CallableNet, callable_net
from vitrify.net.weights import Weights
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.ngrams.model import NGramModel


def chain(order: int, seed: int = 0, letters: str = "ab") -> tuple[Weights[CallableNet], Floats]:
    """Return a Markov chain over two letters as a function, and its laws [context, letter] after `order` letters."""
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.ones(len(letters)), size=len(letters) ** order)

    def function(tokens: Ints) -> Floats:
        contexts = np.zeros(tokens.shape, dtype=int)  # letters before the first are the first one of the alphabet
        for back in range(order):
            seen = np.pad(np.maximum(tokens - 1, 0), ((0, 0), (back, 0)))[:, : tokens.shape[1]]
            contexts += seen * len(letters) ** back
        return np.log(laws[contexts])

    return callable_net(function, letters, letters, longest=12, kind="lm"), laws


@each("order", (1, 2, 3))
@pytest.mark.filterwarnings("ignore::vitrify.errors.SpecWarning")
def test_the_order_is_that_of_the_chain_and_the_laws_are_its_own(order: int) -> None:
    net, laws = chain(order)
    result = v.extract(net, "ngram", max_length=9, tolerance=1e-9)
    model = result.spec
    assert isinstance(model, NGramModel)
    assert model.order == order + 1
    assert result.evidence.verdict == "holds"
    assert f"context of {order} symbol" in result.known
    for place, context in enumerate(product("ab", repeat=order)):
        law = np.exp(model.next_log_probs([["a", "b", *context]]))[0]
        got = [law[model.predicted.index(letter)] for letter in "ab"]
        assert np.allclose(got, laws[place], atol=1e-9)


def test_the_excess_of_a_smaller_order_is_the_divergence_per_symbol() -> None:
    """Against a sum over all words, written down from the definition."""
    net, _ = chain(1, seed=3)
    longest = 6
    result = v.extract(net, "ngram", max_length=longest, order=1)
    law = np.exp(result.spec.next_log_probs([[]]))[0]
    predicted = result.spec.predicted
    q = {letter: law[predicted.index(letter)] for letter in "ab"}
    total, weight_of = 0.0, dict[tuple[str, ...], dict[str, float]]()
    for length in range(longest + 1):
        for word in product("ab", repeat=length):
            p = np.exp(net(list(word))[-1] - np.logaddexp.reduce(net(list(word))[-1]))
            weight = weight_of[word[:-1]][word[-1]] if word else 1.0
            weight_of[word] = {letter: weight * p[place] for place, letter in enumerate("ab")}
            total += weight * sum(p[place] * np.log(p[place] / q[letter]) for place, letter in enumerate("ab"))
    weighted = {letter: sum(each[letter] for each in weight_of.values()) / (longest + 1) for letter in "ab"}
    assert q == pytest.approx(weighted, rel=1e-9)
    measured = result.evidence.measured("excess of order 1 (nats per symbol)")
    assert measured == pytest.approx(total / (longest + 1), rel=1e-9)
    assert result.evidence.verdict == "fails"
    assert result.counterexample is not None


@each("seed", (0, 1))
def test_a_built_network_gives_back_its_model(seed: int) -> None:
    spec = random_ngram(3, 3, seed=seed)
    net = v.build(spec, max_length=32)
    result = v.extract(net, "ngram", max_length=5, tolerance=1e-12)
    assert result.evidence.verdict == "holds"
    assert result.evidence.measured("largest error") < 1e-9
    rng = np.random.default_rng(seed)
    words = [[str(word) for word in rng.choice(spec.readable, size=4)] for _ in range(8)]
    model: Any = result.spec
    order = [model.predicted.index(word) for word in spec.predicted]
    assert np.allclose(np.exp(model.next_log_probs(words))[:, order], np.exp(spec.next_log_probs(words)), atol=1e-9)


def test_a_law_that_depends_on_the_whole_past_is_no_ngram_model() -> None:
    def counting(tokens: Ints) -> Floats:  # Laplace's rule: the law depends on how many b came
        ones = np.cumsum(tokens == 2, axis=1)
        share = (ones + 1) / (np.arange(tokens.shape[1]) + 2)
        return np.log(np.stack([1 - share, share], axis=-1))

    net = callable_net(counting, "ab", "ab", longest=10, kind="lm")
    result = v.extract(net, "ngram")
    assert result.evidence.verdict == "fails"
    assert result.counterexample is not None
    word = result.counterexample["word"]
    p = np.exp(net(word)[-1])["ab".index(result.counterexample["next"])]
    assert p == pytest.approx(result.counterexample["actual"])
    assert abs(p - result.counterexample["expected"]) > 0.1
    table = [each.measured for each in result.evidence.quantities if each.name.startswith("excess of order")]
    assert table == sorted(table, reverse=True)


@pytest.mark.jax
@pytest.mark.long
def test_a_trained_markov_transformer_loses_no_more_than_its_excess() -> None:
    recipe = v.Recipe(steps=300, batch=64)
    (run,) = v.train(v.model("transformer", layers=1, d_model=16), v.sandbox("markov", length=16), recipe=recipe)
    result = v.extract(run.weights, "ngram", max_length=10)
    model: Any = result.spec
    assert model.order == 2
    law = np.exp(model.next_log_probs([["0"], ["1"]]))[:, :2]
    true, stationary = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([0.6, 0.4])
    loss = float(stationary @ (true * np.log(true / law)).sum(axis=1))
    assert 0 <= loss <= run.last["excess"] < 0.005  # it is at its floor
    assert result.known.startswith("context of 1 symbol: the model loses ")
    assert result.evidence.verdict == "holds"


# Bounds


def test_the_search_is_bounded_in_words_and_seconds_and_can_be_interrupted() -> None:
    net, laws = chain(1)
    few = v.extract(net, "ngram", words=64)
    assert few.words <= 64
    assert few.known.startswith("context of 1 symbol")
    with pytest.raises(InputError, match="nothing was extracted: the budget of 0 seconds is spent"):
        v.extract(net, "ngram", seconds=0.0)
    shown: list[tuple[int, int]] = []

    def interrupting(done: int, total: int) -> None:
        shown.append((done, total))
        if total == 2**9:
            raise KeyboardInterrupt

    part = v.extract(net, "ngram", max_length=9, progress=interrupting)
    assert part.stopped == "interrupted"
    assert "on all words to length 4" in part.known
    assert np.allclose(np.exp(part.spec.next_log_probs([["a"], ["b"]]))[:, :2], laws[:, :2], atol=1e-9)
    assert shown[0] == (16, 16)


def test_an_order_for_which_every_word_is_a_context_is_refused() -> None:
    net, _ = chain(2)
    with pytest.raises(InputError, match="the order is at most 2, by words of length 2"):
        v.extract(net, "ngram", max_length=2, order=3)
