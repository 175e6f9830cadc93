r"""A back-off n-gram language model, and its reference semantics: the nets built from it are checked against these.

A model of order $n$ lists n-grams of up to $n$ words, each with a probability $p^*$ and, below the highest order, a
back-off weight $b$. After a context $h$ of at most $n - 1$ words, $h'$ being $h$ without its first word,

$$p(w \mid h) = \begin{cases} p^*(hw) & hw \text{ is listed} \\ b(h)\, p(w \mid h') & \text{otherwise} \end{cases}$$

with $b(h) = 1$ where $h$ is not listed. A sentence begins with one `<s>`, never predicted, and ends with `</s>`.
"""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from vitrify.arrays import Float, Int
from vitrify.errors import InputError, Problem, SpecError, SpecWarning
from vitrify.files import write_bytes
from vitrify.spec.formats.text import refuse_any
from vitrify.spec.kinds import Kind, Meaning, PrefixStates, Spec, at_every_prefix
from vitrify.spec.ngrams import trie
from vitrify.spec.ngrams.arpa import Listing, read_arpa
from vitrify.spec.ngrams.kneser_ney import fit_levels
from vitrify.spec.ngrams.trie import BEGIN, END, Level

__all__ = ["BEGIN", "END", "Level", "NGramModel"]

LN10 = float(np.log(10.0))
MAX_TABLE_ENTRIES = 1 << 22  # of one dense array of contexts × words; more contexts are evaluated in blocks
MAX_DEFECT = 1e-3  # of a sum of probabilities: more is no rounding, but a damaged or unnormalized file
MAX_CACHED = 1 << 20  # probabilities of the contexts evaluated last
MAX_DRAWN = 20_000  # n-grams of a model whose file's first lines a notebook shows
WARNED_DEFECT = 1e-6  # more than the rounding in files with seven digits


@dataclass(frozen=True, eq=False, repr=False)
class NGramModel(Spec):
    """A back-off n-gram model over words, stored as a trie with one level per order.

    >>> model = NGramModel.from_ngrams({
    ...     ("<s>",): (-99, 0.0), ("a",): (np.log10(0.75), np.log10(0.4)), ("</s>",): (np.log10(0.25), 0.0),
    ...     ("a", "</s>"): (np.log10(0.7), 0.0)})
    >>> model
    NGramModel(order=2, words=3, ngrams=(3, 1))
    >>> [round(float(np.exp(model.log_prob(["a"], word))), 4) for word in model.predicted]
    [0.3, 0.7]
    """

    suffix: ClassVar[str] = ".arpa"
    SIZES: ClassVar[tuple[str, ...]] = ("order", "vocabulary")

    vocabulary: tuple[str, ...]
    levels: tuple[Level, ...]
    source: InitVar[Listing | None] = None

    def __post_init__(self, source: Listing | None) -> None:
        source = source or Listing()
        object.__setattr__(self, "vocabulary", tuple(self.vocabulary))
        object.__setattr__(self, "levels", tuple(self.levels))
        problems = list(source.problems)
        malformed = [Problem(text, file=source.file) for text in trie.level_problems(self.vocabulary, self.levels)]
        problems += malformed or trie.rule_problems(self.vocabulary, self.levels, source)
        refuse_any(problems)
        self._check_sums(source)

    def _check_sums(self, source: Listing) -> None:
        """Raise a SpecError if probabilities don't sum to one, warn if they do so only nearly."""
        defect, context = self.normalization_defect()
        if defect <= WARNED_DEFECT:
            return
        index = self.find(np.array([[self._ids[word] for word in context]]))[0] if context else 0
        after = f"after {' '.join(context)!r}" if context else "of the unigrams"
        with np.errstate(over="ignore"):
            total = float(
                np.exp(self.next_log_probs_of_contexts(trie.right_aligned([self.ids(context)], self.order - 1))).sum()
            )
        message = f"the probabilities {after} must sum to 1, they sum to {total!r}, off by {defect:.3g}"
        level = max(len(context) - 1, 0)
        problem = source.problem(message, level, index) if context else Problem(message, file=source.file)
        if not defect <= MAX_DEFECT:
            raise SpecError([Problem(message + "; normalize the model", problem.file, problem.line)])
        warnings.warn(str(problem), SpecWarning, stacklevel=5)

    @classmethod
    def fit(cls, sentences: Iterable[Sequence[str]], order: int, *, discount: float = 0.75, unk: bool = False) -> Self:
        """Fit a model to sentences by interpolated Kneser–Ney smoothing; `kneser_ney.py` has the formula.

        With `unk`, `<unk>` is listed too, and gets its share of the uniform distribution below the unigrams. The
        vocabulary is `<s>`, `</s>`, perhaps `<unk>`, then the words sorted. If the longest sentence with its two
        markers is shorter than `order`, its length is the order of the model.

        >>> model = NGramModel.fit([["a", "b"], ["a"]], order=2, discount=0.5)
        >>> np.exp(model.next_log_probs([["a"]])).round(4).tolist()  # </s>, a, b
        [[0.5, 0.125, 0.375]]
        """
        return cls(*fit_levels(sentences, order, discount, unk))

    @classmethod
    def from_ngrams(cls, ngrams: Mapping[tuple[str, ...], tuple[float, float]]) -> NGramModel:
        """Make a model from `{words: (log10_prob, log10_backoff)}`; the vocabulary is ordered as the unigrams are."""
        return cls._from_listing(trie.listing_of(ngrams))

    @classmethod
    def read(cls, path: str | Path) -> NGramModel:
        """Read an ARPA file, gzipped if its name ends in .gz; a SpecError names every line that is wrong."""
        return cls._from_listing(read_arpa(path))

    @classmethod
    def _from_listing(cls, listing: Listing) -> NGramModel:
        levels, source = trie.assemble(listing)
        return cls(listing.vocabulary, levels, source)

    def to_text(self) -> str:
        return trie.arpa_text(self.vocabulary, self.levels)

    def write(self, path: str | Path) -> None:
        """Write an ARPA file, gzipped if its name ends in .gz; reading it gives an equal model."""
        data = self.to_text().encode("utf-8")
        write_bytes(path, gzip.compress(data, compresslevel=6, mtime=0) if Path(path).suffix == ".gz" else data)

    @classmethod
    def samples(cls) -> dict[str, NGramModel]:
        from vitrify.spec.ngrams.families import random_ngram

        return {"trigrams": random_ngram(2, 3, seed=1), "one word": random_ngram(3, 1, seed=0)}

    def __repr__(self) -> str:
        sizes = tuple(map(len, self.levels))
        return f"NGramModel(order={self.order}, words={len(self.vocabulary)}, ngrams={sizes})"

    def first_lines(self) -> str:
        """Return the beginning of its ARPA file; of a large model, whose file takes long to write, the sizes."""
        return super().first_lines() if sum(map(len, self.levels)) <= MAX_DRAWN else repr(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NGramModel):
            return NotImplemented
        return self.vocabulary == other.vocabulary and self.levels == other.levels

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.vocabulary, self.levels))

    # Words

    @property
    def order(self) -> int:
        """The number of words in the longest listed n-grams."""
        return len(self.levels)

    @cached_property
    def predicted(self) -> tuple[str, ...]:
        """The words that the model assigns probabilities to: all but `<s>`."""
        return tuple(word for word in self.vocabulary if word != BEGIN)

    @cached_property
    def readable(self) -> tuple[str, ...]:
        """The words that may occur in a history: all but `<s>` and `</s>`."""
        return tuple(word for word in self.vocabulary if word not in (BEGIN, END))

    @cached_property
    def unk(self) -> str | None:
        """The token for unknown words, if the model lists one, else None."""
        return next((word for word in ("<unk>", "<UNK>") if word in self._ids), None)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.vocabulary)}

    def ids(self, words: Iterable[str]) -> Int[np.ndarray, " words"]:
        """Return the vocabulary indices of words; unknown ones count as `<unk>` if the model lists it."""
        words = tuple(words)
        unknown = self._ids[self.unk] if self.unk else -1
        ids = np.array([self._ids.get(word, unknown) for word in words], dtype=np.int64)
        if (ids < 0).any():
            missing = ", ".join(map(repr, dict.fromkeys(word for word in words if word not in self._ids)))
            raise InputError(f"every word must be in the vocabulary, as this model has no <unk>; unknown: {missing}")
        return ids

    # The trie

    @cached_property
    def _keys(self) -> tuple[Int[np.ndarray, " ngrams"], ...]:
        return tuple(level.keys(len(self.vocabulary)) for level in self.levels)

    @cached_property
    def _first_child(self) -> tuple[Int[np.ndarray, " ngrams+1"], ...]:
        """Per level below the highest: the index in the next level at which the extensions of each n-gram begin."""
        return tuple(np.searchsorted(b.parent, np.arange(len(a) + 1)) for a, b in pairwise(self.levels))

    def find(self, grams: Int[np.ndarray, "queries order"]) -> Int[np.ndarray, " queries"]:
        """Return the indices of n-grams in their level; -1 where one is not listed, or begins with padding (-1)."""
        index = grams[:, 0].astype(np.int64)
        for k in range(1, grams.shape[1]):
            index = trie.child(self._keys[k], len(self.vocabulary), index, grams[:, k])
        return index

    def words_of(self, level: int, indices: Int[np.ndarray, " picked"]) -> Int[np.ndarray, "picked order"]:
        """Return the word ids of n-grams of one level."""
        return trie.words_of(self.levels, level, indices)

    def contexts(self) -> tuple[Int[np.ndarray, " contexts"], ...]:
        """Return the contexts per level: n-grams with a listed extension or a back-off weight, not ending in `</s>`."""
        contexts = []
        for level, first in zip(self.levels, self._first_child, strict=False):
            is_context = (np.diff(first) > 0) | (level.log10_backoff != 0)
            contexts.append(np.flatnonzero(is_context & (level.word != self._ids[END])))
        return tuple(contexts)

    def meanings(self) -> dict[str, Meaning]:
        """Return the one behavior to check, `lm`: the distribution of the next word after every history."""

        @lru_cache(MAX_CACHED // len(self.predicted) + 1)
        def after_context(context: tuple[str, ...]) -> dict[str, float]:
            return dict(zip(self.predicted, np.exp(self.next_log_probs([context])[0]).tolist(), strict=True))

        def context(history: Sequence[str]) -> tuple[str, ...]:
            return tuple(history[max(0, len(history) - self.order + 1) :])

        states = PrefixStates((), lambda last, word: context((*last, word)))
        after = at_every_prefix(lambda history: after_context(context(history)))
        return {"lm": Meaning("distribution", self.readable, self.predicted, after, states=states)}

    def log_prob(self, history: Sequence[str], word: str) -> float:
        """Return the natural log-probability of a word after `<s>` and the words of a history."""
        return float(self.log_probs_along([*history, word])[-1])

    def log_prob_of(self, sentence: Sequence[str], end: bool = True) -> float:
        """Return the natural log-probability of a sentence, with its `</s>` unless `end` is false."""
        return float(self.log_probs_along([*sentence, END] if end else list(sentence)).sum())

    def log_probs_along(self, words: list[str]) -> Float[np.ndarray, " pos"]:
        """Return the natural log-probability of each word after `<s>` and those before it; the last may be `</s>`."""
        ids = self.ids(words)
        if BEGIN in words:
            raise InputError(f"{BEGIN} is put before every history automatically and is never predicted; leave it out")
        if END in words[:-1]:
            raise InputError(f"{END} ends a sentence, so it may not occur in a history")
        histories = [ids[max(0, i - self.order) : i] for i in range(len(ids))]
        begin = np.array([self._ids[BEGIN]])
        contexts = [h if i > len(h) else np.concatenate([begin, h]) for i, h in enumerate(histories)]
        return LN10 * self.log10_probs(trie.right_aligned(contexts, self.order - 1), ids)

    def log10_probs(
        self, contexts: Int[np.ndarray, "batch order-1"], words: Int[np.ndarray, " batch"]
    ) -> Float[np.ndarray, " batch"]:
        """Return $\\log_{10} p(w \\mid h)$ of each context $h$ (word ids, padded with -1 on the left) and word $w$."""
        total: Float[np.ndarray, " batch"] = self.levels[0].log10_prob[words]
        for k in range(1, self.order):
            context = self.find(contexts[:, -k:])
            total = total + np.where(context >= 0, self.levels[k - 1].log10_backoff[context], 0.0)
            gram = trie.child(self._keys[k], len(self.vocabulary), context, words)
            total = np.where(gram >= 0, self.levels[k].log10_prob[gram], total)
        return total

    def next_log_probs(
        self, histories: Sequence[Sequence[str]] | Int[np.ndarray, "batch words"]
    ) -> Float[np.ndarray, "batch predicted"]:
        """Return the natural log-probabilities of all predicted words after each history.

        Histories are words, or their ids with -1 as padding on the left; `<s>` is put before each of them.
        """
        begin = self._ids[BEGIN]
        if isinstance(histories, np.ndarray):
            table = histories
        else:
            lengths = [len(history) for history in histories]
            ids = self.ids(word for history in histories for word in history)
            table = trie.right_aligned(np.split(ids, np.cumsum(lengths))[:-1], max(lengths, default=0))
        self._checked(table)
        if (table == begin).any():
            raise InputError(f"{BEGIN} is put before every history automatically; leave it out")
        opened = np.pad(table.astype(np.int64), ((0, 0), (1, 0)), constant_values=-1)
        opened[np.arange(len(table)), (table < 0).sum(axis=1)] = begin
        return self.next_log_probs_of_contexts(trie.right_aligned(list(opened), self.order - 1))

    def next_log_probs_of_contexts(
        self, contexts: Int[np.ndarray, "batch order-1"]
    ) -> Float[np.ndarray, "batch predicted"]:
        """Return the natural log-probabilities of all predicted words after contexts of word ids.

        Shorter contexts are padded with -1 on the left; one at the beginning of a sentence starts with the id of `<s>`.
        """
        contexts = self._checked(np.asarray(contexts))
        if contexts.shape[1] != self.order - 1:
            raise InputError(f"contexts must have order - 1 = {self.order - 1} columns, got {contexts.shape[1]}")
        log_probs = np.empty((len(contexts), len(self.predicted)))
        step = max(1, MAX_TABLE_ENTRIES // len(self.predicted))
        for start in range(0, len(contexts), step):
            log_probs[start : start + step] = LN10 * self._next_log10_probs(contexts[start : start + step])
        return log_probs

    def _next_log10_probs(self, contexts: Int[np.ndarray, "batch order-1"]) -> Float[np.ndarray, "batch predicted"]:
        """Start from the unigrams; for each longer suffix, add its back-off weight, then overwrite listed n-grams."""
        predicted = np.flatnonzero(np.arange(len(self.vocabulary)) != self._ids[BEGIN])
        column = np.zeros(len(self.vocabulary), dtype=np.int64)
        column[predicted] = np.arange(len(predicted))
        total = np.tile(self.levels[0].log10_prob[predicted], (len(contexts), 1))
        for k in range(1, self.order):
            context = self.find(contexts[:, -k:])
            total += np.where(context >= 0, self.levels[k - 1].log10_backoff[context], 0.0)[:, None]
            row = np.flatnonzero(context >= 0)
            first, last = self._first_child[k - 1][context[row]], self._first_child[k - 1][context[row] + 1]
            row = np.repeat(row, last - first)
            listed = np.arange(len(row)) + np.repeat(last - np.cumsum(last - first), last - first)
            total[row, column[self.levels[k].word[listed]]] = self.levels[k].log10_prob[listed]
        return total

    def _checked(self, contexts: Int[np.ndarray, "batch width"]) -> Int[np.ndarray, "batch width"]:
        """Return the word ids unchanged if valid as contexts: `<s>` only first, padding only before it, no `</s>`."""
        begin, end = self._ids[BEGIN], self._ids[END]
        if contexts.ndim != 2 or contexts.dtype.kind not in "iu":
            raise InputError(f"contexts must be a table of word ids, got shape {contexts.shape} of {contexts.dtype}")
        if ((contexts < -1) | (contexts >= len(self.vocabulary))).any():
            raise InputError(f"word ids must lie from -1 (padding) to {len(self.vocabulary) - 1}")
        if (contexts == end).any():
            raise InputError(f"{END} ends a sentence, so it may not occur in a history")
        if ((contexts[:, :-1] >= 0) & (contexts[:, 1:] < 0)).any():
            raise InputError("padding (-1) may only be on the left of a history")
        if ((contexts[:, :-1] >= 0) & (contexts[:, 1:] == begin)).any():
            raise InputError(f"{BEGIN} may only be at the beginning of a history")
        return contexts

    # Normalization

    def normalization_defect(self) -> tuple[float, tuple[str, ...]]:
        r"""Return the largest $|\sum_w p(w \mid h) - 1|$ over the empty and all listed contexts, and that context.

        With $L(h)$ the words listed after $h$, the sum is
        $S(h) = \sum_{w \in L(h)} p^*(hw) + b(h)\,(S(h') - \sum_{w \in L(h)} p(w \mid h'))$,
        so it follows from the sums of shorter contexts without a loop over the words not listed.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # a huge back-off weight shows up as an infinite defect
            sums = self._sums()
        worst, worst_context = abs(sums[0][0] - 1.0), ()
        for k, contexts in enumerate(self.contexts()):
            defects = np.nan_to_num(np.abs(sums[k + 1][contexts] - 1.0), nan=np.inf, posinf=np.inf)
            if len(defects) and defects.max() > worst:
                worst = defects.max()
                gram = self.words_of(k, contexts[[defects.argmax()]])[0]
                worst_context = tuple(self.vocabulary[word] for word in gram)
        return float(worst), worst_context

    def _sums(self) -> list[Float[np.ndarray, " ngrams"]]:
        """Return $S$ of the empty context, then of all n-grams of each level below the highest, taken as contexts."""
        unigram = 10.0 ** self.levels[0].log10_prob
        sums = [unigram[np.arange(len(unigram)) != self._ids[BEGIN]].sum(keepdims=True)]
        for k in range(1, self.order):
            level, below = self.levels[k], self.levels[k - 1]
            context = self.words_of(k - 1, np.arange(len(below)))
            shorter = np.full(len(below), sums[0][0])  # S(h') of every context h: that of its longest listed suffix
            for size in range(1, k):
                index = self.find(context[:, -size:])
                shorter = np.where(index >= 0, sums[size][index], shorter)
            gram = self.words_of(k, np.arange(len(level))).astype(np.int64)
            suffix = np.pad(gram[:, 1:-1], ((0, 0), (self.order - k, 0)), constant_values=-1)
            lower = self.log10_probs(suffix, gram[:, -1])
            listed = np.bincount(level.parent, 10.0**level.log10_prob, minlength=len(below))
            shadowed = np.bincount(level.parent, 10.0**lower, minlength=len(below))
            sums.append(listed + 10.0**below.log10_backoff * (shorter - shadowed))
        return sums


KIND = Kind(NGramModel, {".arpa": "n-gram language model", ".arpa.gz": "n-gram language model, compressed"})
