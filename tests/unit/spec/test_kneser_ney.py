"""Interpolated Kneser–Ney: against a slow one written from the formula, by hand, and on real text."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache

import numpy as np
import pytest

from cases import each
from corpora import pydoc_sentences
from vitrify.errors import SpecError
from vitrify.spec.ngrams.model import NGramModel


class SlowKneserNey:
    """The interpolated formula, term by term, over dictionaries of counts."""

    def __init__(self, sentences: list[list[str]], order: int, discount: float, extra: tuple[str, ...] = ()) -> None:
        padded = [("<s>", *sentence, "</s>") for sentence in sentences]
        self.order, self.discount = order, discount
        self.predicted = {word for sentence in padded for word in sentence[1:]} | set(extra)
        raw: Counter[tuple[str, ...]] = Counter()
        for sentence in padded:
            for k in range(1, order + 1):
                raw.update(sentence[i : i + k] for i in range(len(sentence) - k + 1))
        preceded = Counter(gram[1:] for gram in raw)
        self.count = {
            g: n if len(g) == order or g[0] == "<s>" else preceded[g] for g, n in raw.items() if g != ("<s>",)
        }

    @cache  # noqa: B019  (lives as long as one test)
    def prob(self, context: tuple[str, ...], word: str) -> float:
        context = context[max(0, len(context) - self.order + 1) :]
        below = self.prob(context[1:], word) if context else 1 / len(self.predicted)
        after = {gram[-1]: n for gram, n in self.count.items() if gram[:-1] == context}
        if not after:
            return below
        freed = self.discount * len(after) * below
        return (max(after.get(word, 0) - self.discount, 0) + freed) / sum(after.values())


TEXT = """
the cat sat on the mat
the dog sat on the cat
a dog sat
sat

the the the the
a dog sat
"""
SENTENCES = [line.split() for line in TEXT.strip().split("\n")]


@each("order", [1, 2, 3, 5])
@each("unk", [False, True])
def test_agrees_with_the_formula(order: int, unk: bool) -> None:
    model = NGramModel.fit(SENTENCES, order, discount=0.6, unk=unk)
    slow = SlowKneserNey(SENTENCES, order, 0.6, ("<unk>",) if unk else ())
    assert set(model.predicted) == slow.predicted
    histories = [s[:i] for s in SENTENCES for i in range(len(s) + 1)] + [["mat", "a", "the"], ["cat", "on", "on"]]
    expected = [[slow.prob(("<s>", *history), word) for word in model.predicted] for history in histories]
    np.testing.assert_allclose(np.exp(model.next_log_probs(histories)), expected, rtol=1e-12)


def test_by_hand() -> None:
    """Different words precede a 1, b 1 and </s> 2 times, so p(</s>) = 1.5/4 + 0.5·3/4/3 = 0.5, p(a) = p(b) = 0.25."""
    model = NGramModel.fit([["a", "b"], ["a"]], 2, discount=0.5)
    assert math.exp(model.log_prob(["b"], "</s>")) == pytest.approx(0.5 / 1 + 0.5 * 0.5)
    assert math.exp(model.log_prob([], "a")) == pytest.approx(1.5 / 2 + 0.25 * 0.25)
    assert math.exp(model.log_prob(["a"], "a")) == pytest.approx(0.5 * 0.25)


def test_the_vocabulary_is_sorted_and_the_order_of_sentences_makes_no_difference() -> None:
    model = NGramModel.fit(SENTENCES, 4, unk=True)
    assert model.vocabulary == ("<s>", "</s>", "<unk>", "a", "cat", "dog", "mat", "on", "sat", "the")
    assert NGramModel.fit(reversed(SENTENCES), 4, unk=True) == model


def test_the_order_is_at_most_that_of_the_longest_sentence() -> None:
    assert repr(NGramModel.fit([["a"], ["b"]], 7)) == "NGramModel(order=3, words=4, ngrams=(4, 4, 2))"
    assert repr(NGramModel.fit([[]], 1)) == "NGramModel(order=1, words=2, ngrams=(2,))"
    assert NGramModel.fit([[]], 1).log_prob_of([]) == 0.0


def test_rounding_does_not_reach_past_certainty() -> None:
    """With this discount, 4.48/5 + 0.52/5 rounds to more than one."""
    assert NGramModel.fit([[]] * 5, 2, discount=0.52).log_prob_of([]) == 0.0


def test_unk_in_the_text_is_counted() -> None:
    with_text = NGramModel.fit([["<unk>", "a"]], 2, unk=True)
    assert with_text.vocabulary == ("<s>", "</s>", "<unk>", "a")
    assert with_text == NGramModel.fit([["<unk>", "a"]], 2)
    assert with_text.log_prob([], "yak") > math.log(0.2)


@each(
    ("sentences", "order", "discount", "fragments"),
    [
        ([["a"]], 0, 0.5, ["order must be at least 1, got 0"]),
        ([["a"]], 2, 1.0, ["discount must lie between 0 and 1, got 1.0"]),
        ([["a"]], 2, math.nan, ["discount must lie between 0 and 1, got nan"]),
        ([], 0, 0.0, ["order", "discount", "no sentences"]),
        ([["<s>", "a", "</s>"]], 2, 0.5, ["sentences must not contain </s> and <s>"]),
        ([["a b"]], 2, 0.5, ["text without blanks"]),
    ],
)
def test_what_is_refused(sentences: list[list[str]], order: int, discount: float, fragments: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        NGramModel.fit(sentences, order, discount=discount)
    assert len(caught.value.problems) == len(fragments)
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_real_text_sums_to_one_and_predicts_better_than_chance() -> None:
    sentences = pydoc_sentences()
    model = NGramModel.fit(sentences[::2], 5, unk=True)
    assert model.normalization_defect()[0] < 1e-12
    held_out = sentences[1:400:2]
    words = sum(len(sentence) + 1 for sentence in held_out)
    perplexity = {
        order: _perplexity(NGramModel.fit(sentences[::2], order, unk=True), held_out, words) for order in (1, 2, 3)
    }
    assert perplexity[3] < perplexity[2] < perplexity[1] < len(model.predicted)


def _perplexity(model: NGramModel, sentences: list[list[str]], words: int) -> float:
    return math.exp(-sum(model.log_prob_of(sentence) for sentence in sentences) / words)
