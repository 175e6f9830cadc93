r"""A back-off n-gram language model, with the plain semantics that everything built from it is checked against.

A model of order $n$ lists n-grams of up to $n$ words, each with a probability $p^*$ and, below the highest order, a
back-off weight $b$. After a context $h$ of at most $n - 1$ words, $h'$ being $h$ without its first word,

$$p(w \mid h) = \begin{cases} p^*(hw) & hw \text{ is listed} \\ b(h)\, p(w \mid h') & \text{otherwise} \end{cases}$$

with $b(h) = 1$ where $h$ is not listed. A sentence begins with one `<s>`, never predicted, and ends with `</s>`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from vitrify.errors import InputError, Problem, SpecError, SpecWarning
from vitrify.spec.arpa import Listing, Table, read_arpa, write_arpa
from vitrify.spec.display import Displayed
from vitrify.spec.files import refuse_any
from vitrify.spec.ngram_trie import (
    BEGIN,
    END,
    Level,
    Source,
    assemble,
    child,
    level_problems,
    listing_of,
    rule_problems,
    words_of,
)

if TYPE_CHECKING:
    from jaxtyping import Float64, Int, Int32, Int64

__all__ = ["BEGIN", "END", "Level", "NGramModel"]

LN10 = float(np.log(10.0))
CELLS = 1 << 22  # entries of the dense tables that are worked on at a time
REFUSED_DEFECT = 1e-3  # sums this far from one are no rounding: the file is damaged, or was never normalised
DRAWN = 20_000  # n-grams up to which a notebook shows the file's first lines
WARNED_DEFECT = 1e-6  # what files with seven digits stay below


@dataclass(frozen=True, eq=False, repr=False)
class NGramModel(Displayed):
    """A back-off n-gram model over words, held as a trie with one level per order.

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
    source: InitVar[Source | None] = None

    def __post_init__(self, source: Source | None) -> None:
        source = source or Source()
        object.__setattr__(self, "vocabulary", tuple(self.vocabulary))
        object.__setattr__(self, "levels", tuple(self.levels))
        problems = list(source.problems)
        shapeless = [Problem(message, file=source.file) for message in level_problems(self.vocabulary, self.levels)]
        problems += shapeless or list(rule_problems(self.vocabulary, self.levels, source))
        refuse_any(problems)
        self._check_sums(source)

    def _check_sums(self, source: Source) -> None:
        """Refuse a model whose probabilities don't sum to one, warn of one where they nearly do."""
        defect, context = self.normalisation_defect()
        if defect <= WARNED_DEFECT:
            return
        place = self.find(np.array([[self._ids[word] for word in context]]))[0] if context else 0
        after = f"after {' '.join(context)!r}" if context else "of the unigrams"
        with np.errstate(over="ignore"):
            total = float(np.exp(self.next_log_probs_of_contexts(self._right_aligned([self.ids(context)]))).sum())
        message = f"the probabilities {after} must sum to 1, they sum to {total!r}, off by {defect:.3g}"
        level = max(len(context) - 1, 0)
        problem = source.problem(message, level, place) if context else Problem(message, file=source.file)
        if not defect <= REFUSED_DEFECT:
            raise SpecError([Problem(message + "; normalise the model", problem.file, problem.line)])
        warnings.warn(str(problem), SpecWarning, stacklevel=5)

    @classmethod
    def from_ngrams(cls, ngrams: Mapping[tuple[str, ...], tuple[float, float]]) -> NGramModel:
        """Make a model from `{words: (log10_prob, log10_backoff)}`; the unigrams give the vocabulary its order."""
        return cls._from_listing(listing_of(ngrams))

    @classmethod
    def read(cls, path: str | Path) -> NGramModel:
        """Read an ARPA file, gzipped if its name ends in .gz; a SpecError names every line that is wrong."""
        return cls._from_listing(read_arpa(path))

    @classmethod
    def _from_listing(cls, listing: Listing) -> NGramModel:
        levels, source = assemble(listing)
        return cls(listing.vocabulary, levels, source)

    def write(self, path: str | Path) -> None:
        """Write an ARPA file, gzipped if its name ends in .gz; reading it gives an equal model."""
        tables = []
        for k, level in enumerate(self.levels):
            rows = np.arange(len(level))
            tables.append(Table(self.words_of(k, rows), level.log10_prob, level.log10_backoff, rows))
        write_arpa(path, self.vocabulary, tables)

    def __repr__(self) -> str:
        sizes = tuple(map(len, self.levels))
        return f"NGramModel(order={self.order}, words={len(self.vocabulary)}, ngrams={sizes})"

    def first_lines(self) -> str:
        """How its ARPA file begins; of a large model, whose file takes long to write, its sizes."""
        return super().first_lines() if sum(map(len, self.levels)) <= DRAWN else repr(self)

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
        """How many words the longest listed n-grams have."""
        return len(self.levels)

    @cached_property
    def predicted(self) -> tuple[str, ...]:
        """The words that the model gives probabilities to: all but `<s>`."""
        return tuple(word for word in self.vocabulary if word != BEGIN)

    @cached_property
    def readable(self) -> tuple[str, ...]:
        """The words that may stand in a history: all but `<s>` and `</s>`."""
        return tuple(word for word in self.vocabulary if word not in (BEGIN, END))

    @cached_property
    def unk(self) -> str | None:
        """The word that stands for all unknown ones, if the model lists it."""
        return next((word for word in ("<unk>", "<UNK>") if word in self._ids), None)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.vocabulary)}

    def ids(self, words: Iterable[str]) -> Int64[np.ndarray, " words"]:
        """The places of words in the vocabulary; unknown ones count as `<unk>` where the model lists it."""
        words = tuple(words)
        unknown = self._ids[self.unk] if self.unk else -1
        ids = np.array([self._ids.get(word, unknown) for word in words], dtype=np.int64)
        if (ids < 0).any():
            strangers = ", ".join(map(repr, dict.fromkeys(word for word in words if word not in self._ids)))
            raise InputError(f"every word must be in the vocabulary, as this model has no <unk>; unknown: {strangers}")
        return ids

    # The trie

    @cached_property
    def _keys(self) -> tuple[Int64[np.ndarray, " ngrams"], ...]:
        return tuple(level.keys(len(self.vocabulary)) for level in self.levels)

    @cached_property
    def _first_child(self) -> tuple[Int64[np.ndarray, " ngrams+1"], ...]:
        """Per level below the highest, where the extensions of each n-gram begin in the next level."""
        pairs = zip(self.levels, self.levels[1:], strict=False)
        return tuple(np.searchsorted(above.parent, np.arange(len(level) + 1)) for level, above in pairs)

    def _child(
        self, level: int, parent: Int[np.ndarray, " queries"], word: Int[np.ndarray, " queries"]
    ) -> Int64[np.ndarray, " queries"]:
        return child(self._keys[level], len(self.vocabulary), parent, word)

    def find(self, grams: Int[np.ndarray, "queries order"]) -> Int64[np.ndarray, " queries"]:
        """The places of n-grams in their level; -1 where one is not listed, or begins with padding (-1)."""
        place = grams[:, 0].astype(np.int64)
        for k in range(1, grams.shape[1]):
            place = self._child(k, place, grams[:, k])
        return place

    def words_of(self, level: int, indices: Int[np.ndarray, " picked"]) -> Int32[np.ndarray, "picked order"]:
        """The word ids of some n-grams of one level."""
        return words_of(self.levels, level, indices)

    def contexts(self) -> tuple[Int64[np.ndarray, " contexts"], ...]:
        """The listed contexts, per level: n-grams with a listed extension or a back-off weight; none ends in `</s>`."""
        listed = []
        for level, first in zip(self.levels, self._first_child, strict=False):
            useful = (np.diff(first) > 0) | (level.log10_backoff != 0)
            listed.append(np.flatnonzero(useful & (level.word != self._ids[END])))
        return tuple(listed)

    # The semantics

    def log_prob(self, history: Sequence[str], word: str) -> float:
        """The natural log-probability of a word after `<s>` and the words of a history."""
        return float(self._log_probs_along([*history, word])[-1])

    def log_prob_of(self, sentence: Sequence[str], end: bool = True) -> float:
        """The natural log-probability of a sentence, with its `</s>` unless `end` is false."""
        return float(self._log_probs_along([*sentence, END] if end else list(sentence)).sum())

    def _log_probs_along(self, words: list[str]) -> Float64[np.ndarray, " pos"]:
        ids = self.ids(words)
        if BEGIN in words:
            raise InputError(f"{BEGIN} stands before every history by itself and is never predicted; leave it out")
        if END in words[:-1]:
            raise InputError(f"{END} ends a sentence, so it may not stand in a history")
        histories = [ids[max(0, i - self.order) : i] for i in range(len(ids))]
        begin = np.array([self._ids[BEGIN]])
        rows = [h if i > len(h) else np.concatenate([begin, h]) for i, h in enumerate(histories)]
        found: Float64[np.ndarray, " pos"] = LN10 * self.log10_probs(self._right_aligned(rows), ids)
        return found

    def log10_probs(
        self, contexts: Int[np.ndarray, "rows order-1"], words: Int[np.ndarray, " rows"]
    ) -> Float64[np.ndarray, " rows"]:
        """One log10 probability per row, of its word after its context, from the shortest suffix to the longest."""
        total: Float64[np.ndarray, " rows"] = self.levels[0].log10_prob[words]
        for k in range(1, self.order):
            context = self.find(contexts[:, -k:])
            total = total + np.where(context >= 0, self.levels[k - 1].log10_backoff[context], 0.0)
            gram = self._child(k, context, words)
            total = np.where(gram >= 0, self.levels[k].log10_prob[gram], total)
        return total

    def next_log_probs(
        self, histories: Sequence[Sequence[str]] | Int[np.ndarray, "rows words"]
    ) -> Float64[np.ndarray, "rows predicted"]:
        """Natural log-probabilities of all predicted words after each history.

        Histories are words, or their ids with -1 as padding on the left; `<s>` is put before each of them.
        """
        begin = self._ids[BEGIN]
        if isinstance(histories, np.ndarray):
            table = histories
        else:
            lengths = [len(history) for history in histories]
            ids = self.ids(word for history in histories for word in history)
            table = self._right_aligned(np.split(ids, np.cumsum(lengths))[:-1], max(lengths, default=0))
        self._checked(table)
        if (table == begin).any():
            raise InputError(f"{BEGIN} stands before every history by itself; leave it out")
        opened = np.pad(table.astype(np.int64), ((0, 0), (1, 0)), constant_values=-1)
        opened[np.arange(len(table)), (table < 0).sum(axis=1)] = begin
        return self.next_log_probs_of_contexts(self._right_aligned(list(opened)))

    def next_log_probs_of_contexts(
        self, contexts: Int[np.ndarray, "rows order-1"]
    ) -> Float64[np.ndarray, "rows predicted"]:
        """Natural log-probabilities of all predicted words after contexts of word ids, padded on the left with -1.

        A context that reaches the beginning of the sentence says so with the id of `<s>`.
        """
        contexts = self._checked(np.asarray(contexts))
        if contexts.shape[1] != self.order - 1:
            raise InputError(f"contexts must have order - 1 = {self.order - 1} columns, got {contexts.shape[1]}")
        found = np.empty((len(contexts), len(self.predicted)))
        step = max(1, CELLS // len(self.predicted))
        for start in range(0, len(contexts), step):
            found[start : start + step] = self._next_log10_probs(contexts[start : start + step])
        found *= LN10
        return found

    def _next_log10_probs(self, contexts: Int[np.ndarray, "rows order-1"]) -> Float64[np.ndarray, "rows predicted"]:
        """Start from the unigrams; for each longer suffix, pay its back-off weight, then put in what is listed."""
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

    def _right_aligned(
        self, rows: Sequence[Int64[np.ndarray, " words"]], width: int | None = None
    ) -> Int64[np.ndarray, "rows width"]:
        """Put the last words of each row side by side, with -1 on the left of the shorter ones."""
        width = self.order - 1 if width is None else width
        aligned = np.full((len(rows), width), -1, dtype=np.int64)
        for to, row in zip(aligned, rows, strict=True):
            tail = row[max(0, len(row) - width) :]
            to[width - len(tail) :] = tail
        return aligned

    def _checked(self, contexts: Int[np.ndarray, "rows width"]) -> Int[np.ndarray, "rows width"]:
        """Pass on word ids that may stand in a context, with `<s>` only first and padding only before it."""
        begin, end = self._ids[BEGIN], self._ids[END]
        if contexts.ndim != 2 or contexts.dtype.kind not in "iu":
            raise InputError(f"contexts must be a table of word ids, got shape {contexts.shape} of {contexts.dtype}")
        if ((contexts < -1) | (contexts >= len(self.vocabulary))).any():
            raise InputError(f"word ids must lie from -1 (padding) to {len(self.vocabulary) - 1}")
        if (contexts == end).any():
            raise InputError(f"{END} ends a sentence, so it may not stand in a history")
        if ((contexts[:, :-1] >= 0) & (contexts[:, 1:] < 0)).any():
            raise InputError("padding (-1) may only stand on the left of a history")
        if ((contexts[:, :-1] >= 0) & (contexts[:, 1:] == begin)).any():
            raise InputError(f"{BEGIN} may only stand at the beginning of a history")
        return contexts

    # Sums

    def normalisation_defect(self) -> tuple[float, tuple[str, ...]]:
        r"""The largest $|\sum_w p(w \mid h) - 1|$ over the empty context and all listed ones, and that context.

        With $L(h)$ the words listed after $h$, the sum is
        $S(h) = \sum_{w \in L(h)} p^*(hw) + b(h)\,(S(h') - \sum_{w \in L(h)} p(w \mid h'))$,
        so it follows from the sums of shorter contexts without a look at the words not listed.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # a huge back-off weight shows up as an infinite defect
            sums = self._sums()
        worst, where = abs(sums[0][0] - 1.0), ()
        for k, contexts in enumerate(self.contexts()):
            defects = np.nan_to_num(np.abs(sums[k + 1][contexts] - 1.0), nan=np.inf, posinf=np.inf)
            if len(defects) and defects.max() > worst:
                worst = defects.max()
                gram = self.words_of(k, contexts[[defects.argmax()]])[0]
                where = tuple(self.vocabulary[word] for word in gram)
        return float(worst), where

    def _sums(self) -> list[Float64[np.ndarray, " ngrams"]]:
        """The sums $S$ of the empty context, then of all n-grams of each level below the highest, taken as contexts."""
        unigram = 10.0 ** self.levels[0].log10_prob
        sums = [unigram[np.arange(len(unigram)) != self._ids[BEGIN]].sum(keepdims=True)]
        suffix = np.zeros(len(unigram), dtype=np.int64)  # the place of each n-gram without its first word
        for k in range(1, self.order):
            level, below = self.levels[k], self.levels[k - 1]
            shorter = self._suffix_sums(k - 1, suffix, sums)
            suffix = level.word if k == 1 else self._child(k - 1, suffix[level.parent], level.word)
            lower = self._suffix_log10_probs(k, suffix)
            listed = np.bincount(level.parent, 10.0**level.log10_prob, minlength=len(below))
            shadowed = np.bincount(level.parent, 10.0**lower, minlength=len(below))
            sums.append(listed + 10.0**below.log10_backoff * (shorter - shadowed))
        return sums

    def _suffix_sums(
        self, level: int, suffix: Int[np.ndarray, " ngrams"], sums: Sequence[Float64[np.ndarray, " some"]]
    ) -> Float64[np.ndarray, " ngrams"]:
        """$S(h')$ for every n-gram $h$ of a level: of the longest listed suffix, as unlisted contexts change no sum."""
        found: Float64[np.ndarray, " ngrams"] = np.where(suffix >= 0, sums[level][suffix], sums[0][0])
        lost = np.flatnonzero(suffix < 0)
        words = self.words_of(level, lost)
        for k in range(1, level):
            place = self.find(words[:, -k:])
            found[lost] = np.where(place >= 0, sums[k][place], found[lost])
        return found

    def _suffix_log10_probs(self, level: int, suffix: Int[np.ndarray, " ngrams"]) -> Float64[np.ndarray, " ngrams"]:
        """$\\log_{10} p(w \\mid h')$ for every n-gram $hw$ of a level."""
        found: Float64[np.ndarray, " ngrams"] = self.levels[level - 1].log10_prob[suffix]
        lost = np.flatnonzero(suffix < 0)
        words = self.words_of(level, lost).astype(np.int64)
        contexts = np.full((len(lost), self.order - 1), -1)
        contexts[:, self.order - level :] = words[:, 1:-1]
        found[lost] = self.log10_probs(contexts, words[:, -1])
        return found
