"""What a net says beside what its spec says, at every position, as plain JSON data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.examine import Examination, examination
from vitrify.certify.points import PointExamination
from vitrify.certify.words import WordExamination
from vitrify.errors import VitrifyError
from vitrify.net.architecture import Output
from vitrify.net.run import encode, log_probabilities, read
from vitrify.net.trace import Trace

Floats = NDArray[np.float64]
SHOWN = 12  # symbols of one answer
SAID = 3  # symbols of a set, in a few characters


class Judge:
    """The oracle of a spec, for one net and all its variants."""

    def __init__(self, architecture: Any, spec: object) -> None:
        self.net = architecture
        self.questions: Examination = examination(architecture, spec)
        assert isinstance(self.questions, WordExamination | PointExamination)
        self.oracle: Any = self.questions.oracle

    def beside(self, trace: Trace, words: list[str], place: int) -> dict[str, Any]:
        """The answers along a run; `place` is the position whose answer is told symbol by symbol.

        `right` says for every answer whether the oracle lets it pass, null where nothing is asked.
        """
        logits = self._logits(trace)
        first = self.net.pads - 1 if self.net.reads == "tokens" else 0  # the position of the first answer
        rows = said(self.net.output, logits)
        right, passes = self._judged(trace, words, logits)
        at = min(max(place - first, 0), len(rows) - 1)
        return {
            "kind": self.net.output.kind,
            "first": first,
            "said": [_short(self.net.output, row, listed=self.net.reads == "rows") for row in rows],
            "right": passes,
            "at": at,
            "detail": _detail(self.net.output, rows[at], right[at], logits[at]),
            "accepts": _accepts(self.net.output, rows[-1]),
        }

    def _logits(self, trace: Trace) -> Floats:
        """The answers in turn [answer, symbol]."""
        logits = trace["hook_logits"]
        if self.net.reads == "tokens":
            return logits[self.net.pads - 1 :]
        return logits if self.net.reads == "rows" else logits[-1:]

    def _judged(self, trace: Trace, words: list[str], logits: Floats) -> tuple[Floats, list[bool | None]]:
        nothing = np.full(logits.shape, np.nan)
        try:
            if self.net.reads == "tokens":
                word = np.array(encode(self.net, words), dtype=np.int64)
                right = self.oracle.right(word)
                errors = self.oracle.errors(word[None], logits[None].copy())[0]
            else:
                point = np.asarray(read(trace.weights, words)[0][0])
                right = np.atleast_2d(self.oracle.right(point))
                whole = logits if self.net.reads == "rows" else logits[-1]
                errors = np.repeat(self.oracle.errors(point[None], whole[None]), len(right))
        except VitrifyError:  # no word of the spec's at all
            return nothing, [None] * len(logits)
        asked = ~np.isnan(right[:, 0])
        good = errors <= self.oracle.tolerance()
        return right, [bool(ok) if there else None for ok, there in zip(good, asked, strict=True)]

    def suggestion(self, seed: int) -> list[str]:
        """An input that the spec has something to say about."""
        rng = np.random.default_rng(seed)
        if self.net.reads != "tokens":
            asked = self.oracle.questions(rng)[0].inputs
            return _words(self.net, asked[int(rng.integers(len(asked)))])
        language = self.oracle.language
        if language is not None:
            drawn = max((language.draw(rng) for _ in range(DRAWN)), key=lambda word: len(word[:LONGEST]))
        else:  # words of one letter show little
            asked = [word for word in self.oracle.questions(rng, 64) if len(set(word[:LONGEST])) > 1]
            random = rng.integers(1, len(self.net.inputs), size=min(self.net.max_length, RANDOM)).tolist()
            drawn = asked[int(rng.integers(len(asked)))] if asked else random
        return [self.net.inputs[int(i)] for i in drawn[:LONGEST]]


LONGEST = 12  # tokens of a suggestion
DRAWN = 4  # sentences of which the longest is suggested
RANDOM = 6  # tokens where the spec has none to suggest


def said(output: Output, logits: Floats) -> Floats:
    """Answers in the form of `Oracle.right`: chances, 1 for each symbol that is said, or numbers."""
    if output.kind == "values":
        return logits
    rows: Any = np.arange(logits.shape[1]) == logits.argmax(axis=1)[:, None]
    if output.kind == "lm":
        rows = np.exp(log_probabilities(output, logits))
    elif output.kind == "next":
        rows = logits > 0
    return np.asarray(rows, dtype=np.float64)


def _short(output: Output, row: Floats, *, listed: bool) -> str:
    """An answer in a few characters; `listed` says that numbers are truths, of which the true ones are listed."""
    if output.kind == "values" and not listed:
        return " ".join(f"{number:.4g}" for number in row[:SAID]) + (" …" if len(row) > SAID else "")
    if output.kind in ("next", "values"):
        legal = [output.symbols[i] for i in np.flatnonzero(row > 0.5)]
        return " ".join(legal[:SAID]) + (f" +{len(legal) - SAID}" if len(legal) > SAID else "") or "nothing"
    return output.symbols[int(np.nan_to_num(row).argmax())]


def _detail(output: Output, row: Floats, right: Floats, logits: Floats) -> dict[str, Any]:
    """One answer symbol by symbol: the net's, the spec's (null where it says nothing), the logit."""
    weight = np.maximum(np.nan_to_num(np.abs(row)), np.nan_to_num(np.abs(right)))
    order = np.arange(len(row)) if output.kind == "values" else np.argsort(-weight, kind="stable")
    some = order[:SHOWN].tolist()
    return {
        "symbols": [[output.symbols[i], _plain(row[i]), _plain(right[i]), _plain(logits[i])] for i in some],
        "more": len(row) - len(some),
        "accepting": list(output.accepting[:SHOWN]),
    }


def _accepts(output: Output, row: Floats) -> bool | None:
    return output.symbols[int(row.argmax())] in output.accepting if output.kind == "recogniser" else None


def _plain(number: float) -> float | None:
    return float(f"{number:.6g}") if np.isfinite(number) else None


def _words(net: Any, point: Floats) -> list[str]:
    """A point as the words that a run reads."""
    if net.reads == "rows":
        edges = np.argwhere(np.triu(point, 1)).tolist()
        return [f"{net.inputs[a]}-{net.inputs[b]}" for a, b in edges]
    if net.reads == "image" and net.pixels == "symbols":
        return [net.symbols[i] for i in point[:, 0].argmax(axis=0)]
    return [f"{number:.4g}" for number in point.ravel()]
