"""Answers of a network beside those of its spec, at every position, as plain JSON data."""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.checking import net_check
from vitrify.certification.checks.points import PointCheck
from vitrify.certification.checks.words import WordCheck
from vitrify.encoding import JsonObject
from vitrify.errors import VitrifyError
from vitrify.net.architecture import Output, SequenceArchitecture
from vitrify.net.inference import encode, log_probabilities, read
from vitrify.net.trace import Trace
from vitrify.web.story_units import displayed

DIGITS = 6  # significant ones of a number in an answer
SHOWN = 12  # symbols of one answer
SAID = 3  # symbols of a set, in a few characters
TIE = 1e-6  # logits nearer to each other than this are tied


class AnswerJudge:
    """The oracle of a spec, for one net and all its variants."""

    def __init__(self, architecture: SequenceArchitecture, spec: object) -> None:
        self.net = architecture
        questions = net_check(architecture, spec)
        assert isinstance(questions, WordCheck | PointCheck)
        self.check = questions

    def beside(self, trace: Trace, words: list[str], position: int) -> JsonObject:
        """The answers along a run; `position` is the one whose answer is given symbol by symbol.

        `right` says for every answer whether the oracle accepts it, null where nothing is asked.
        """
        logits, output = self._logits(trace), self.net.output
        first = self.net.pads - 1 if self.net.reads == "tokens" else 0  # the position of the first answer
        rows = answers_of(output, logits)
        right, passes = self._judged(trace, words, logits)
        at = min(max(position - first, 0), len(rows) - 1)
        accepts = output.symbols[int(rows[-1].argmax())] in output.accepting
        return {
            "kind": output.kind,
            "first": first,
            "answers": [_short(output, row, listed=self.net.reads == "rows") for row in rows],
            "right": passes,
            "at": at,
            "detail": _detail(output, rows[at], right[at], logits[at]),
            "accepts": accepts if output.kind == "recognizer" else None,
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
            if isinstance(self.check, WordCheck):
                word = np.array(encode(self.net, words), dtype=np.int64)
                right = self.check.oracle.right(word)
                errors = self.check.oracle.errors(word[None], logits[None].copy())[0]
            else:
                point = np.asarray(read(trace.weights, words)[0][0], dtype=np.float64)
                right = np.atleast_2d(self.check.oracle.right(point))
                last_logits = logits if self.net.reads == "rows" else logits[-1]
                errors = np.repeat(self.check.oracle.errors(point[None], last_logits[None]), len(right))
        except VitrifyError:  # no word of the spec's at all
            return nothing, [None] * len(logits)
        has_answer = ~np.isnan(right[:, 0])
        good = errors <= self.check.oracle.tolerance()
        return right, [bool(ok) if there else None for ok, there in zip(good, has_answer, strict=True)]


def answers_of(output: Output, logits: Floats) -> Floats:
    """Answers in the form of `Oracle.right`: probabilities, 1 for each chosen symbol, or numbers."""
    if output.kind == "values":
        return logits
    rows = np.arange(logits.shape[1]) == logits.argmax(axis=1)[:, None]
    if output.kind == "lm":
        rows = np.exp(log_probabilities(output, logits))
    elif output.kind == "next":
        rows = logits > 0
    return np.asarray(rows, dtype=np.float64)


def _short(output: Output, row: Floats, *, listed: bool) -> str:
    """An answer in a few characters; with `listed`, numbers are truth values, and the true symbols are listed."""
    if output.kind == "values" and not listed:
        return " ".join(f"{number:.4g}" for number in row[:SAID]) + (" …" if len(row) > SAID else "")
    if output.kind in ("next", "values"):
        legal = [output.symbols[i] for i in np.flatnonzero(row > 0.5)]
        return " ".join(legal[:SAID]) + (f" +{len(legal) - SAID}" if len(legal) > SAID else "") or "nothing"
    return output.symbols[int(np.nan_to_num(row).argmax())]


def _detail(output: Output, row: Floats, right: Floats, logits: Floats) -> JsonObject:
    """One answer symbol by symbol: the net's, the spec's (null where it says nothing), the logit."""
    weight = np.maximum(np.nan_to_num(np.abs(row)), np.nan_to_num(np.abs(right)))
    order = np.arange(len(row)) if output.kind == "values" else np.argsort(-weight, kind="stable")
    some = order[:SHOWN].tolist()
    return {
        "symbols": [[output.symbols[i], *(displayed(x[i], DIGITS) for x in (row, right, logits))] for i in some],
        "more": len(row) - len(some),
        "accepting": list(output.accepting[:SHOWN]),
        "tied": tied(output, logits),
    }


def tied(output: Output, logits: Floats) -> list[str]:
    """Return the other symbols whose logit is as large as that of the first answer: then no symbol is the answer."""
    if output.kind not in ("recognizer", "transducer", "class"):
        return []
    best = int(logits.argmax())
    near = logits[best] - logits <= TIE
    return [symbol for at, symbol in enumerate(output.symbols) if near[at] and at != best]
