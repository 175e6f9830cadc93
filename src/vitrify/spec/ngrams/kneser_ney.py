r"""Interpolated Kneser–Ney smoothing: the n-gram probabilities and back-off weights that `NGramModel.fit` computes.

Every sentence is read as `<s> words </s>`. With $c(g)$ the count of an n-gram $g$ defined below, $D$ the discount,
$h'$ the context $h$ without its first word and $N(h)$ the number of different words after $h$,

$$p(w \mid h) = \frac{\max(c(hw) - D, 0)}{\sum_v c(hv)} + b(h)\, p(w \mid h'), \qquad
  b(h) = \frac{D\, N(h)}{\sum_v c(hv)},$$

and the unigrams are interpolated with the uniform distribution over all predicted words. For n-grams of the highest
order, and for those that begin with `<s>`, $c$ is the number of occurrences; for all others it is the number of
different words that precede them. The count of the unigram `<s>` is 0. Every n-gram that occurs is listed, with $b$ as
its back-off weight, so the back-off model has exactly these interpolated probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vitrify.arrays import Float, Int
from vitrify.errors import SpecError
from vitrify.spec.ngrams.trie import BEGIN, END, LOG10_ZERO, Level


def fit_levels(
    sentences: Iterable[Sequence[str]], order: int, discount: float, unk: bool
) -> tuple[tuple[str, ...], tuple[Level, ...]]:
    """Return the vocabulary and the trie levels of the smoothed model, with one discount for all orders."""
    texts = [tuple(sentence) for sentence in sentences]
    words = frozenset(word for sentence in texts for word in sentence)
    markers = (BEGIN, END, "<unk>") if unk else (BEGIN, END)
    vocabulary = (*markers, *sorted(words.difference(markers)))
    problems = []
    if order < 1:
        problems.append(f"the order must be at least 1, got {order}")
    if not 0 < discount < 1:
        problems.append(f"the discount must lie between 0 and 1, got {discount}")
    if not texts:
        problems.append("there are no sentences to fit the model to")
    if reserved := sorted({BEGIN, END} & words):
        problems.append(f"sentences must not contain {' and '.join(reserved)}; these markers are added around each")
    if problems:
        raise SpecError(problems)
    return vocabulary, _smoothed_levels(_kneser_ney_counts(texts, vocabulary, order), discount)


@dataclass(frozen=True, eq=False)
class _Counts:
    """The distinct n-grams of one order, sorted by (parent, word) as in the trie, with their counts $c$."""

    parent: Int[np.ndarray, " ngrams"]
    word: Int[np.ndarray, " ngrams"]
    suffix: Int[np.ndarray, " ngrams"]  # index of the n-gram without its first word, one order below
    count: Int[np.ndarray, " ngrams"]


def _kneser_ney_counts(texts: Sequence[Sequence[str]], vocabulary: Sequence[str], order: int) -> list[_Counts]:
    """Return the n-grams of each order with their counts $c$; all positions of the corpus are processed at once."""
    size, number = len(vocabulary), {word: i for i, word in enumerate(vocabulary)}
    ids = np.array([number[word] for text in texts for word in (BEGIN, *text, END)], dtype=np.int64)
    remaining = np.array([i for text in texts for i in range(len(text) + 2, 0, -1)])  # words to the end of the sentence
    gram, zeros = ids, np.zeros(size, dtype=np.int64)  # gram: index of the n-gram that starts at each position
    orders = [_Counts(zeros, np.arange(size), zeros, np.bincount(gram, minlength=size))]
    for k in range(1, order):
        start = np.flatnonzero(remaining > k)
        if not len(start):
            break
        keys, first, index, count = np.unique(
            gram[start] * size + ids[start + k], return_index=True, return_inverse=True, return_counts=True
        )
        orders.append(_Counts(keys // size, keys % size, gram[start[first] + 1], count))
        gram = np.full(len(gram), -1)
        gram[start] = index
    begins = orders[0].word == 0
    for k, (counts, longer) in enumerate(pairwise(orders)):
        begins = begins[counts.parent] if k else begins
        preceding = np.bincount(longer.suffix, minlength=len(counts.word))
        orders[k] = _Counts(counts.parent, counts.word, counts.suffix, np.where(begins, counts.count, preceding))
    orders[0].count[0] = 0  # <s> is never predicted
    return orders


def _smoothed_levels(orders: Sequence[_Counts], discount: float) -> tuple[Level, ...]:
    """Apply the formula of the module, from the unigrams up."""
    count = orders[0].count
    uniform = discount * np.count_nonzero(count) / count.sum() / (len(count) - 1)
    prob = np.maximum(count - discount, 0.0) / count.sum() + uniform
    log10_prob = _log10(prob)
    log10_prob[0] = LOG10_ZERO
    levels = []
    for counts, longer in pairwise(orders):
        total = np.bincount(longer.parent, longer.count, minlength=len(counts.word))
        followers = np.bincount(longer.parent, minlength=len(counts.word))
        backoff = np.where(total > 0, discount * followers / np.maximum(total, 1.0), 1.0)
        levels.append(Level(counts.parent, counts.word, log10_prob, np.log10(backoff)))
        prob = (longer.count - discount) / total[longer.parent] + backoff[longer.parent] * prob[longer.suffix]
        log10_prob = _log10(prob)
    top = orders[-1]
    return (*levels, Level(top.parent, top.word, log10_prob, np.zeros(len(top.word))))


def _log10(prob: Float[np.ndarray, " ngrams"]) -> Float[np.ndarray, " ngrams"]:
    return np.asarray(np.minimum(np.log10(prob), 0.0))  # rounding may make prob exceed 1
