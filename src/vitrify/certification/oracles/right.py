"""Right answers as rows of numbers, one for each symbol that a network may say, and how answers are judged by them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vitrify.arrays import Bools, Floats, Ints
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.inference import log_probabilities
from vitrify.net.labels import SpaceLabel
from vitrify.net.weights import Weights

if TYPE_CHECKING:
    from vitrify.certification.oracles.meanings import Beginnings

Known = NDArray[np.int64 | np.float64 | np.bool_]
NO_ANSWER, UNKNOWN_SYMBOL = -1, -2  # instead of a symbol: no right answer; not a symbol of the network


class Oracle(ABC):
    """The right answers after all prefixes of the input words of a network; subclasses give them, and words to check.

    The distance of a symbol or a set is 0 or 1: the right symbol must lead all others, and the logits of a set must be
    positive exactly on it. A tie counts as wrong: rounding would decide it. The distance of probabilities and of
    numbers is their largest difference. `language` is None where every word is legal, and `longest` the length of its
    longest word, where that is known.
    """

    KNOWS_SPACES = False  # whether `space_error` knows the right values of some named spaces
    TIE = 1e-6  # logits nearer to each other, or to 0, than this are tied
    TOLERANCE = 1e-9  # of probabilities and numbers
    SHOWN = 5  # symbols of each kind in a witness

    answer: Literal["symbol", "set", "distribution", "number"]
    language: Beginnings | None = None
    longest: int | None = None
    net: SequenceArchitecture

    @abstractmethod
    def known(self, words: Ints) -> Known:
        """Return indices of symbols [word, prefix], `NO_ANSWER` or `UNKNOWN_SYMBOL`; or rows [word, prefix, symbol]."""

    @abstractmethod
    def cases(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Return input words, at most `count`, that exercise every listed part of the spec."""

    def tolerance(self) -> float:
        """Return the largest distance that still counts as right."""
        return 0.0 if self.answer in ("symbol", "set") else max(self.TOLERANCE, self.net.output.error)

    def where_known(self, known: Known) -> Bools:
        """Return where there is one of the `known` answers, [word, prefix]."""
        if self.answer in ("symbol", "number"):
            return np.asarray(known != NO_ANSWER if self.answer == "symbol" else ~np.isnan(known[..., 0]))
        return np.asarray(known.any(axis=-1))

    def has_answer(self, words: Ints) -> Bools:
        """Return where there is a right answer, [word, prefix]."""
        return self.where_known(self.known(words))

    def errors(self, words: Ints, logits: Floats) -> Floats:
        """Return the distances of answers from the right ones [word, prefix]; words are input ids [word, length]."""
        return self.judged(self.known(words), logits)

    def judged(self, known: Known, logits: Floats) -> Floats:
        """Return the distances [word, prefix] of answers from the right ones."""
        if self.answer == "distribution":
            wrong = distances(self.net, logits, known.astype(np.float64))
        elif self.answer == "number":
            wrong = np.abs(logits - known).max(axis=-1, initial=0.0)
            wrong = np.where(np.isfinite(wrong), wrong, np.inf)
        else:
            if self.answer == "symbol":
                right = (logit_margins(logits, known) > self.TIE) & (known >= 0)
            else:
                right = (((logits > 0) == known) & (np.abs(logits) > self.TIE)).all(axis=-1)
            wrong = np.where(right & np.isfinite(logits).all(axis=-1), 0.0, 1.0)
        return np.where(self.where_known(known), wrong, 0.0)

    def right(self, word: Ints) -> Floats:
        """Return the right answers [prefix, symbol]: probabilities, 1 for right symbols and 0 for others, or numbers.

        NaN where there is no right answer.
        """
        known = self.known(word[None])[0]
        if self.answer == "symbol":
            return one_of(known, len(self.net.output.symbols))
        return np.where(self.where_known(known)[..., None], known.astype(np.float64), np.nan)

    def witness(self, word: Ints, logits: Floats) -> dict[str, object]:
        """Describe one wrong answer: the prefix, the expected answer, and the answer of the network."""
        return self.witness_of(self.known(word[None]), word, logits)

    def witness_of(self, known: Known, word: Ints, logits: Floats) -> dict[str, object]:
        """Return the wrong answer at the end of a word, by the right ones [1, prefix]; else the first wrong one.

        `position` is the number of tokens before it. What comes after may matter to a network that looks ahead, so that
        its words are not cut at the wrong answer, and the first one counts.
        """
        wrong = self.judged(known, logits[None])[0] > self.tolerance()
        last = not wrong.any() or (wrong[-1] and not self.net.looks_ahead)
        position = len(word) if last else int(np.argmax(wrong))
        answer, row = known[0, position], logits[position]
        words, symbols = [self.net.inputs[i] for i in word], self.net.output.symbols
        where = {"position": position} if position < len(word) else {}
        if self.answer == "distribution":
            return furthest(self.net, word, row, answer)
        if self.answer == "set":
            return {
                "history": words,
                "missing": self._some(answer & ~(row > 0)),
                "too many": self._some((row > 0) & ~answer),
                "undecided": self._some(~(np.abs(row) > self.TIE)),
            }
        if self.answer == "number":
            return {"word": words, **where, "expected": answer.tolist(), "actual": row.tolist()}
        expected = symbols[int(answer)] if answer >= 0 else "a symbol that the network can't output"
        return {"word": words, **where, "expected": expected, "actual": symbols[int(row.argmax())]}

    def space_error(self, words: Ints, label: SpaceLabel, vectors: Floats) -> float | None:  # noqa: ARG002
        """Return the largest distance of a space [word, prefix, coordinate] from its right value; None if unknown."""
        return None

    def check_inside(
        self, weights: Weights[SequenceArchitecture], seed: int
    ) -> tuple[dict[str, object], dict[str, object] | None]:
        """Return what was measured inside a network, by name, and a witness if something is wrong."""
        del weights, seed
        return {}, None

    def _some(self, chosen: Bools) -> list[str]:
        return [self.net.output.symbols[i] for i in np.flatnonzero(chosen)[: self.SHOWN].tolist()]


def symbol_indices(net: SequenceArchitecture, symbols: Iterable[str]) -> Ints:
    """Return the indices of symbols among the answers of a network, `UNKNOWN_SYMBOL` for those that it lacks."""
    index = {symbol: place for place, symbol in enumerate(net.output.symbols)}
    return np.array([index.get(symbol, UNKNOWN_SYMBOL) for symbol in symbols], dtype=np.int64)


def some_of(words: list[list[int]], rng: np.random.Generator, count: int) -> list[list[int]]:
    """Return at most `count` of the words, a random part in their order if they are more."""
    if len(words) <= count:
        return words
    return [words[i] for i in sorted(rng.choice(len(words), size=count, replace=False).tolist())]


def one_of(answers: ArrayLike, symbols: int) -> Floats:
    """Return one-hot vectors of the right symbols; NaN where the index is negative: there is no right answer.

    >>> one_of([1, -1], 2)
    array([[ 0.,  1.],
           [nan, nan]])
    """
    indices = np.asarray(answers, dtype=np.int64)[:, None]
    return np.where(indices < 0, np.nan, indices == np.arange(symbols))


def logit_margins(logits: Floats, symbols: ArrayLike) -> Floats:
    """Return the margin of the logit of each symbol over all others; a negative index counts as 0.

    >>> logit_margins(np.array([[0.0, 3.0, 1.0], [0.0, 3.0, 1.0]]), [1, 2])
    array([ 2., -2.])
    """
    at = np.maximum(np.asarray(symbols, dtype=np.int64), 0)[..., None]
    others = logits.copy()
    np.put_along_axis(others, at, -np.inf, axis=-1)
    with np.errstate(invalid="ignore"):  # infinite logits have no margin
        margins: Floats = np.take_along_axis(logits, at, axis=-1)[..., 0] - others.max(axis=-1, initial=-np.inf)
    return margins


def distances(net: SequenceArchitecture, logits: Floats, expected: Floats) -> Floats:
    """Return the largest difference of two probabilities [word, prefix]; infinite where there is no number."""
    errors: Floats = np.abs(np.exp(log_probabilities(net.output, logits)) - expected).max(axis=-1)
    return np.where(np.isfinite(errors), errors, np.inf)


def furthest(net: SequenceArchitecture, word: Ints, logits: Floats, expected: Floats) -> dict[str, object]:
    """Return the symbol whose probability is furthest off, after some words."""
    probs = np.exp(log_probabilities(net.output, logits))
    symbol = int(np.abs(probs - expected).argmax())
    return {
        "history": [net.inputs[i] for i in word],
        "next": net.output.symbols[symbol],
        "expected": float(expected[symbol]),
        "actual": float(probs[symbol]),
    }
