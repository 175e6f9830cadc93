"""Oracles of specs that have sentences: which words may come next after every beginning of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.right import one_of, where_any
from vitrify.errors import FolderError
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.dyck import ANSWERS, Dyck
from vitrify.spec.ngram import END

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


class HasSentences(Protocol):
    """A spec that says what its sentences are."""

    @property
    def vocabulary(self) -> tuple[str, ...]: ...

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]: ...

    def examples(self) -> Iterator[tuple[str, ...]]: ...

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]: ...


@runtime_checkable
class Sentences(HasSentences, Protocol):
    """A spec that also says which words may come next in them."""

    def next_words_along(self, sentence: Sequence[str]) -> tuple[frozenset[str], ...]: ...


class Beginnings:
    """What may be asked of a net whose spec has sentences: beginnings of these."""

    def __init__(self, spec: HasSentences, net: SequenceArchitecture, symbols: tuple[str, ...] | None = None) -> None:
        if net.inputs[1:] != spec.vocabulary or net.output.symbols != (symbols or (*spec.vocabulary, END)):
            raise FolderError("the network and its spec do not speak about the same words")
        self.spec, self.net = spec, net
        self._input = {word: place for place, word in enumerate(net.inputs)}

    def beginnings(self) -> Iterator[list[int]]:
        return map(self._cut, self.spec.prefixes(self.net.max_length))

    def draw(self, rng: np.random.Generator) -> list[int]:
        return self._cut(self.spec.draw(rng))

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Sentences that have every word at every place where it may stand; a random part if they are many."""
        asked = [self._cut(sentence) for sentence in islice(self.spec.examples(), 100 * count)]
        if len(asked) > count:
            asked = [asked[i] for i in sorted(rng.choice(len(asked), size=count, replace=False).tolist())]
        return asked

    def _cut(self, words: Sequence[str]) -> list[int]:
        return [self._input[word] for word in words[: self.net.max_length]]


class NextSetOracle:
    """The set of words that may come next: the distance is 0 or 1; asked about beginnings of sentences only.

    A logit of 0 counts as wrong on either side: rounding would decide it.
    """

    SHOWN = 5  # words of each kind in a witness
    TIE = 1e-6  # logits nearer to 0 than this are none
    REMEMBERED = 1 << 12  # sentences whose answers are kept for the next variant of the net

    def __init__(self, spec: Sentences, net: SequenceArchitecture) -> None:
        self.language = Beginnings(spec, net)
        self.spec, self.net = spec, net
        self._symbol = {word: place for place, word in enumerate(net.output.symbols)}
        self._remembered = lru_cache(maxsize=self.REMEMBERED)(self._legal)

    def tolerance(self) -> float:
        return 0.0

    def _expected(self, word: Ids) -> NDArray[np.bool_]:
        """Which symbols may come next [prefix, symbol]."""
        return self._remembered(tuple(word.tolist()))

    def _legal(self, word: tuple[int, ...]) -> NDArray[np.bool_]:
        legal = np.zeros((len(word) + 1, len(self._symbol)), dtype=bool)
        for row, allowed in zip(legal, self.spec.next_words_along([self.net.inputs[i] for i in word]), strict=True):
            row[[self._symbol[symbol] for symbol in allowed]] = True
        return legal

    def errors(self, words: Ids, logits: Floats) -> Floats:
        right = [((found > 0) == self._expected(word)).all(axis=-1) for word, found in zip(words, logits, strict=True)]
        clear = (np.isfinite(logits) & (np.abs(logits) > self.TIE)).all(axis=-1)
        return np.where(np.array(right) & clear, 0.0, 1.0)

    def right(self, word: Ids) -> Floats:
        return where_any(self._expected(word))

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        found, expected = logits[-1] > 0, self._expected(word)[-1]
        return {
            "history": [self.net.inputs[i] for i in word],
            "missing": self._some(expected & ~found),
            "too many": self._some(found & ~expected),
            "undecided": self._some(~(np.abs(logits[-1]) > self.TIE)),
        }

    def _some(self, chosen: NDArray[np.bool_]) -> list[str]:
        return [self.net.output.symbols[i] for i in np.flatnonzero(chosen)[: self.SHOWN].tolist()]

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        return self.language.questions(rng, count)


class MembershipOracle:
    """Whether a whole word is in a language: the same answer at every position; the distance is 0 or 1.

    Random words are hardly ever in it, so it asks about sentences, and about sentences with one word changed, missing
    or twice.
    """

    language = None
    TIE = 1e-6  # the logits of yes and no must differ by more
    SENTENCES = 200  # of each kind, at most

    def __init__(self, spec: Dyck, net: SequenceArchitecture) -> None:
        if net.inputs[1:] != spec.vocabulary or net.output.symbols != ANSWERS:
            raise FolderError("the network and its spec do not speak about the same words and answers")
        self.spec, self.net = spec, net
        self._sentences = Beginnings(spec, net, ANSWERS)

    def tolerance(self) -> float:
        return 0.0

    def _holds(self, word: Ids) -> bool:
        return self.spec.holds([self.net.inputs[i] for i in word])

    def errors(self, words: Ids, logits: Floats) -> Floats:
        wanted = np.array([1.0 if self._holds(word) else -1.0 for word in words])
        lead = (logits[..., 1] - logits[..., 0]) * wanted[:, None]
        return np.where(lead > self.TIE, 0.0, 1.0)

    def right(self, word: Ids) -> Floats:
        return one_of([int(self._holds(word))] * (len(word) + 1), len(ANSWERS))

    def witness(self, word: Ids, logits: Floats) -> dict[str, object]:
        wrong = int(np.argmax(self.errors(word[None], logits[None])[0]))
        return {
            "word": [self.net.inputs[i] for i in word],
            "place": wrong,
            "expected": ANSWERS[self._holds(word)],
            "found": ANSWERS[int(logits[wrong].argmax())],
        }

    def questions(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        share = min(count // 8, self.SENTENCES)
        asked = self._sentences.questions(rng, share)
        asked += [self._sentences.draw(rng) for _ in range(share)]
        return [*asked, *(self._changed(word, rng) for word in asked for _ in range(3))][:count]

    def _changed(self, word: list[int], rng: np.random.Generator) -> list[int]:
        """A word with one place changed, missing or twice."""
        if not word:
            return [1]
        at = int(rng.integers(len(word)))
        instead = ([int(rng.integers(1, len(self.net.inputs)))], [], [word[at], word[at]])[int(rng.integers(3))]
        return [*word[:at], *instead, *word[at + 1 :]][: self.net.max_length]
