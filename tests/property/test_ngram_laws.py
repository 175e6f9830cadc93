"""Laws of n-gram models over random ones: parse ∘ print = id, fast evaluation = textbook recursion, sums = 1."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.arpa_evaluator import ArpaEvaluator
from vitrify.spec.ngrams.model import NGramModel

Ngrams = dict[tuple[str, ...], tuple[float, float]]

WORDS = ("a", "b", "é", "<unk>")
ONE = 1e-9  # how far a sum of a few rounded probabilities may lie from one
LOG = 1e-11  # how far two orders of adding five logarithms may lie apart


def naive(ngrams: Ngrams, order: int, context: tuple[str, ...], word: str) -> float:
    """log10 p(word | context), by the definition."""
    context = context[max(0, len(context) - (order - 1)) :]
    if (*context, word) in ngrams:
        return ngrams[(*context, word)][0]
    return ngrams.get(context, (0.0, 0.0))[1] + naive(ngrams, order, context[1:], word)


@st.composite
def normalised(draw: st.DrawFn) -> Ngrams:
    """N-grams that sum to one, often without the suffixes of what they list."""
    words = draw(st.lists(st.sampled_from(WORDS), unique=True, max_size=4))
    predicted = draw(st.permutations([*words, "</s>"]))
    order = draw(st.integers(1, 4))
    weights = draw(st.lists(st.integers(1, 9), min_size=len(predicted), max_size=len(predicted)))
    ngrams: Ngrams = {(w,): (math.log10(n / sum(weights)), 0.0) for w, n in zip(predicted, weights, strict=True)}
    ngrams["<s>",] = (draw(st.sampled_from([-99.0, 0.0, -1.5])), 0.0)
    contexts: list[tuple[str, ...]] = [(word,) for word in ["<s>", *words]]
    for _ in range(1, order):
        longer = []
        for context in contexts:
            listed = draw(st.dictionaries(st.sampled_from(predicted), st.integers(1, 9), max_size=3))
            if not listed:
                continue
            rest = [word for word in predicted if word not in listed]
            left = draw(st.integers(1, 9)) if rest else 0
            mass = sum(listed.values()) + left
            shadow = sum(10 ** naive(ngrams, order, context[1:], word) for word in rest)
            weight = math.log10(left / mass / shadow) if rest else 0.0
            ngrams[context] = (ngrams[context][0], weight)
            ngrams |= {(*context, word): (math.log10(n / mass), 0.0) for word, n in listed.items()}
            longer += [(*context, word) for word in listed if word != "</s>"]
        contexts = longer
    return ngrams


def some_histories(model: NGramModel) -> st.SearchStrategy[list[list[str]]]:
    history = st.lists(st.sampled_from(model.readable), max_size=6) if model.readable else st.just([])
    return st.lists(history, min_size=1, max_size=6)


@given(normalised(), st.data())
@settings(deadline=None)
def test_evaluation_is_the_recursion(ngrams: Ngrams, data: st.DataObject) -> None:
    model = NGramModel.from_ngrams(ngrams)
    histories = data.draw(some_histories(model))
    table = model.next_log_probs(histories)
    assert np.abs(np.exp(table).sum(axis=1) - 1).max() < ONE
    for history, row in zip(histories, table, strict=True):
        for word, found in zip(model.predicted, row, strict=True):
            expected = math.log(10) * naive(ngrams, model.order, ("<s>", *history), word)
            assert abs(found - expected) < LOG
            assert abs(model.log_prob(history, word) - expected) < LOG


@given(normalised())
@settings(deadline=None)
def test_the_defect_is_small_where_all_is_normalised(ngrams: Ngrams) -> None:
    assert NGramModel.from_ngrams(ngrams).normalization_defect()[0] < ONE


@given(normalised(), st.data())
@settings(deadline=None)
def test_parse_after_print_is_the_identity(ngrams: Ngrams, data: st.DataObject) -> None:
    model = NGramModel.from_ngrams(ngrams)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lm.arpa"
        model.write(path)
        again, second = NGramModel.read(path), ArpaEvaluator(path)
    assert again == model
    assert hash(again) == hash(model)
    assert second.ngrams == ngrams
    history = data.draw(some_histories(model))[0]
    for word in model.predicted:
        assert abs(second.log_prob(["<s>", *history], word) - again.log_prob(history, word)) < LOG


@given(normalised())
@settings(deadline=None)
def test_the_trie_holds_what_was_listed(ngrams: Ngrams) -> None:
    model = NGramModel.from_ngrams(ngrams)
    held = {}
    for k, level in enumerate(model.levels):
        words = model.words_of(k, np.arange(len(level)))
        assert model.find(words).tolist() == list(range(len(level)))
        for gram, prob, backoff in zip(words, level.log10_prob, level.log10_backoff, strict=True):
            held[tuple(model.vocabulary[word] for word in gram)] = (prob, backoff)
    assert held == ngrams


@given(
    st.lists(st.lists(st.sampled_from("abcde"), max_size=6), min_size=1, max_size=8),
    st.integers(1, 6),
    st.floats(0.01, 0.99),
    st.booleans(),
)
@settings(deadline=None)
def test_estimates_sum_to_one(sentences: list[list[str]], order: int, discount: float, unk: bool) -> None:
    model = NGramModel.fit(sentences, order, discount=discount, unk=unk)
    assert model.normalization_defect()[0] < 1e-12
    histories = [sentence[:i] for sentence in sentences for i in range(len(sentence) + 1)]
    assert np.abs(np.exp(model.next_log_probs(histories)).sum(axis=1) - 1).max() < 1e-12
