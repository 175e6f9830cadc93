"""The result of an extraction: a spec, how far it is known to be what the network computes, and where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from vitrify.certification.evidence import Evidence, Scope
from vitrify.encoding import JsonObject
from vitrify.intervals import rate_interval


@dataclass(frozen=True)
class LengthErrors:
    """Words of one length after which spec and network differ; `complete`: all words of the length were run."""

    length: int
    words: int
    wrong: int
    complete: bool

    @property
    def interval(self) -> tuple[float, float]:
        """The share of wrong words: itself, or its 95 % interval where the words are random ones."""
        share = self.wrong / max(self.words, 1)
        return (share, share) if self.complete else rate_interval(self.wrong, self.words)


@dataclass(frozen=True)
class Extraction:
    """A spec that was extracted from a network.

    - `evidence`: what is known of spec and network. Its verdict is `fails` where they differ after a known word.
    - `known`: the same in one sentence, for which words they are equal.
    - `counterexample`: the shortest known word after which they differ, with both answers.
    - `errors`: how often they differ, by length, where they do.
    - `stopped`: the reason for which the search for a better spec ended early.
    - `words`: words that the search ran, each with its prefixes; where nothing is searched, those of the certificate.
    """

    kind: str
    spec: Any  # an Automaton, NGramModel or Formula
    evidence: Evidence
    known: str
    method: str
    words: int
    seconds: float
    stopped: str | None = None
    counterexample: JsonObject | None = None
    errors: tuple[LengthErrors, ...] = field(default=(), repr=False)

    @property
    def every_length(self) -> bool:
        """True if spec and network are proved equal on every word of every length."""
        headline = self.evidence.headline
        return self.evidence.verdict == "holds" and headline is not None and headline.scope is Scope.EVERY_LENGTH

    def to_json(self) -> JsonObject:
        """Return the result as plain JSON data; `evidence` as in `certify --json`."""
        errors = [
            {"length": each.length, "words": each.words, "wrong": each.wrong, "complete": each.complete}
            for each in self.errors
        ]
        return {
            "as": self.kind,
            "known": self.known,
            "method": self.method,
            "words": self.words,
            "seconds": round(self.seconds, 3),
            "stopped": self.stopped,
            "counterexample": self.counterexample,
            "errors": errors,
            "evidence": self.evidence.to_json(),
        }

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the facts that a table shows."""
        yield "method", self.method
        yield "words run", f"{self.words:,}"
        for each in self.evidence.quantities:
            if each.name in SHOWN or each.name.startswith(SHOWN_PARTS):
                ends = f" [{', '.join(map(amount, each.interval))}]" if each.interval else ""
                yield each.name, amount(each.measured) + ends
        if self.stopped:
            yield "stopped", self.stopped
        if self.counterexample:
            names = {"expected": "spec", "actual": "network"}  # here the network is the truth
            both = (f"{names.get(key, key)}: {_text(value)}" for key, value in self.counterexample.items())
            yield "counterexample", ", ".join(both)


ROUNDED = 1e-12  # quantities below are what rounding leaves of 0
MARGIN = "smallest margin of an answer (logits)"
CLOSE_ANSWERS = "answers with close logits, compared in real arithmetic"
OPEN_ANSWERS = "answers with close logits, compared in float64 alone"
RIVALS = "states that any other machine with these answers has at least"
COVERED = "longer words of the W-method, without a difference"
MIXED = "letter counts after which the order of the letters matters"
SHOWN = (MARGIN, CLOSE_ANSWERS, OPEN_ANSWERS, COVERED, RIVALS, MIXED)
SHOWN_PARTS = ("excess", "letter ")  # with which names of others that are shown begin


def counts_of(letter: str) -> str:
    """Return the name of the fact that says how a counter counts a letter."""
    return f"letter {letter}"


def known_words(evidence: Evidence, counterexample: JsonObject | None, complete: int | None = None) -> str:
    """Return one sentence: for which words spec and network are known to be equal.

    `complete` is the length up to which all words were compared, if it is not that of the evidence.
    """
    headline = evidence.headline
    assert headline is not None
    if evidence.verdict == "holds" and headline.scope.proved:
        proved = "for every length" if headline.longest is None else f"on every word up to length {headline.longest}"
        return f"equal {proved}, proved"
    longest = complete if complete is not None else headline.longest if evidence.verdict == "holds" else None
    if counterexample is not None:
        word: Any = counterexample.get("word", counterexample.get("history", ()))
        length = len(word)
        longest = length - 1 if longest is None else min(longest, length - 1)
        text = f"equal on every word up to length {longest}" if longest >= 0 else "different on the empty word"
        return f"{text}; a word of length {length} tells them apart"
    text = f"equal on every word up to length {longest}"
    if headline.scope is Scope.EXHAUSTIVE:
        return f"{text}, the longest that the network reads"
    random = [each for each in evidence.domains if each.kind == "random words"]
    bound = next((each.measured for each in evidence.quantities if "95 % upper bound" in each.name), None)
    if not random or bound is None:
        return f"{text}; longer ones were not compared"
    return f"{text}; longer ones sampled: below {bound:.2g} of those of length {random[0].longest} differ (95 %)"


def amount(number: float | str) -> str:
    """Return a number in words; what rounding leaves of 0 is 0."""
    if isinstance(number, str):
        return number
    return f"{0 if abs(number) < ROUNDED else number:.4g}" if isinstance(number, float) else f"{number:,}"


def _text(value: object) -> str:
    return " ".join(map(str, value)) or "the empty word" if isinstance(value, list | tuple) else str(value)
