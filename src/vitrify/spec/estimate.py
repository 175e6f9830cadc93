r"""An n-gram model is estimated from text by interpolated Kneser–Ney smoothing, and sums to one after every context."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from vitrify.errors import SpecError
from vitrify.spec.ngram import BEGIN, END, Level, NGramModel

if TYPE_CHECKING:
    from jaxtyping import Float64, Int64

IMPOSSIBLE = -99.0  # ARPA's log10 of zero


def estimate(
    sentences: Iterable[Sequence[str]], order: int, *, discount: float = 0.75, unk: bool = False
) -> NGramModel:
    r"""Estimate an n-gram model by interpolated Kneser–Ney smoothing with one discount for all orders.

    Every sentence is read as `<s> words </s>`. With $c(g)$ the count of an n-gram $g$ defined below, $D$ the discount,
    $h'$ the context $h$ without its first word and $N(h)$ the number of different words after $h$,

    $$p(w \mid h) = \frac{\max(c(hw) - D, 0)}{\sum_v c(hv)} + b(h)\, p(w \mid h'), \qquad
      b(h) = \frac{D\, N(h)}{\sum_v c(hv)},$$

    and below the unigrams stands the uniform distribution over all predicted words. For n-grams of the highest order,
    and for those that begin with `<s>`, $c$ is how often they occur; for all others it is how many different words
    precede them. The unigram `<s>` counts for nothing. Every n-gram that occurs is listed, with $b$ as its back-off
    weight, so the back-off form is the interpolated one, word for word.

    With `unk`, the word `<unk>` is listed too, and gets its share of the uniform distribution. The vocabulary is `<s>`,
    `</s>`, perhaps `<unk>`, then the words sorted, so the order of the sentences makes no difference. If even the
    longest sentence, with its two markers, is shorter than `order`, its length is the model's order.

    >>> model = estimate([["a", "b"], ["a"]], order=2, discount=0.5)
    >>> model
    NGramModel(order=2, words=4, ngrams=(4, 4))
    >>> np.exp(model.next_log_probs([["a"]])).round(4).tolist()  # </s>, a, b
    [[0.5, 0.125, 0.375]]
    """
    text = _Text.of(sentences, unk)
    wrong = []
    if order < 1:
        wrong.append(f"the order must be at least 1, got {order}")
    if not 0 < discount < 1:
        wrong.append(f"the discount must lie between 0 and 1, got {discount}")
    if not len(text.stream):
        wrong.append("there are no sentences to estimate from")
    if strange := sorted({BEGIN, END} & text.words):
        wrong.append(f"{' and '.join(strange)} may not stand in a sentence; they are put around it")
    if wrong:
        raise SpecError(wrong)
    return NGramModel(text.vocabulary, _smoothed(_counted(text, order), discount))


@dataclass(frozen=True, eq=False)
class _Text:
    """Sentences laid end to end as word ids, with the number of words from each position to the end of its sentence."""

    vocabulary: tuple[str, ...]
    words: frozenset[str]
    stream: Int64[np.ndarray, " pos"]
    left: Int64[np.ndarray, " pos"]

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]], unk: bool) -> _Text:
        texts = [tuple(sentence) for sentence in sentences]
        words = frozenset(word for sentence in texts for word in sentence)
        markers = (BEGIN, END, "<unk>") if unk else (BEGIN, END)
        vocabulary = (*markers, *sorted(words.difference(markers)))
        ids = {word: i for i, word in enumerate(vocabulary)}
        stream = [ids[word] for sentence in texts for word in (BEGIN, *sentence, END)]
        left = [i for sentence in texts for i in range(len(sentence) + 2, 0, -1)]
        return cls(vocabulary, words, np.array(stream, dtype=np.int64), np.array(left, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class _Counts:
    """The different n-grams of one order, sorted as in a trie, and how often each counts."""

    parent: Int64[np.ndarray, " ngrams"]
    word: Int64[np.ndarray, " ngrams"]
    suffix: Int64[np.ndarray, " ngrams"]  # place of the n-gram without its first word, one order below
    count: Int64[np.ndarray, " ngrams"]


def _counted(text: _Text, order: int) -> list[_Counts]:
    """Find the n-grams of each order, all positions at once, and count them as Kneser and Ney do."""
    size = len(text.vocabulary)
    gram, none = text.stream, np.zeros(size, dtype=np.int64)
    orders = [_Counts(none, np.arange(size), none, np.bincount(gram, minlength=size))]
    for k in range(1, order):
        start = np.flatnonzero(text.left > k)
        if not len(start):
            break
        keys, first, place, count = np.unique(
            gram[start] * size + text.stream[start + k], return_index=True, return_inverse=True, return_counts=True
        )
        orders.append(_Counts(keys // size, keys % size, gram[start[first] + 1], count))
        gram = np.full(len(gram), -1)
        gram[start] = place
    begins = orders[0].word == 0
    for k, (counts, above) in enumerate(pairwise(orders)):
        begins = begins[counts.parent] if k else begins
        preceding = np.bincount(above.suffix, minlength=len(counts.word))
        orders[k] = _Counts(counts.parent, counts.word, counts.suffix, np.where(begins, counts.count, preceding))
    orders[0].count[0] = 0  # <s> is never predicted
    return orders


def _smoothed(orders: Sequence[_Counts], discount: float) -> tuple[Level, ...]:
    """Discount the counts of each order and give what that frees to the order below."""
    count = orders[0].count
    uniform = discount * np.count_nonzero(count) / count.sum() / (len(count) - 1)
    prob = np.maximum(count - discount, 0.0) / count.sum() + uniform
    log10_prob = _log10(prob)
    log10_prob[0] = IMPOSSIBLE
    levels = []
    for counts, above in pairwise(orders):
        total = np.bincount(above.parent, above.count, minlength=len(counts.word))
        kinds = np.bincount(above.parent, minlength=len(counts.word))
        backoff = np.where(total > 0, discount * kinds / np.maximum(total, 1.0), 1.0)
        levels.append(Level(counts.parent, counts.word, log10_prob, np.log10(backoff)))
        prob = (above.count - discount) / total[above.parent] + backoff[above.parent] * prob[above.suffix]
        log10_prob = _log10(prob)
    top = orders[-1]
    return (*levels, Level(top.parent, top.word, log10_prob, np.zeros(len(top.word))))


def _log10(prob: Float64[np.ndarray, " ngrams"]) -> Float64[np.ndarray, " ngrams"]:
    found: Float64[np.ndarray, " ngrams"] = np.minimum(np.log10(prob), 0.0)  # rounding may reach past certainty
    return found
