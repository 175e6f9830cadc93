"""The result of an extraction: a spec, how far it is known to be what the network computes, and where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from vitrify.certification.evidence import Evidence, Scope
from vitrify.encoding import JsonObject
from vitrify.intervals import rate_interval
from vitrify.spec.kinds import Spec


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
    - `equal_to`: they are equal on every word up to this length, None where they are equal on every word of any length;
      -1 where they differ on the empty word.
    - `counterexample`: the shortest known word after which they differ, with both answers.
    - `errors`: how often they differ, by length, where they do.
    - `stopped`: the reason for which the search for a better spec ended early.
    - `words`: words that were run.
    """

    kind: str
    spec: Spec
    evidence: Evidence
    equal_to: int | None
    method: str
    words: int
    seconds: float
    stopped: str | None = None
    counterexample: JsonObject | None = None
    errors: tuple[LengthErrors, ...] = field(default=(), repr=False)

    @property
    def known(self) -> str:
        """One sentence: for which words spec and network are known to be equal."""
        headline = self.evidence.headline
        if self.equal_to is None:
            return "equal for every length"
        if headline is not None and headline.scope is Scope.MAX_LENGTH:
            return f"equal on every word up to length {headline.longest} (proved)"
        text = f"equal on every word up to length {self.equal_to}" if self.equal_to >= 0 else "not equal"
        return f"{text}; beyond, {self._sampled()}"

    def _sampled(self) -> str:
        """Return what is known of words that are longer than those which are all known."""
        if self.counterexample is not None:
            return f"they differ: the shortest known word has length {len(self.counterexample['word'])}"
        if headline := self.evidence.headline:
            if headline.scope is Scope.EXHAUSTIVE:
                return "the network reads no words"
        random = [each for each in self.evidence.domains if each.kind == "random words"]
        bound = next((each.measured for each in self.evidence.quantities if "95 % upper bound" in each.name), None)
        if not random or bound is None:
            return "nothing was tested"
        length = random[0].longest
        return f"sampled: no difference in random words of length {length}, whose rate is below {bound:.2g} (95 %)"

    def to_json(self) -> JsonObject:
        """Return the result as plain JSON data; `evidence` as in `certify --json`."""
        errors = [
            {"length": each.length, "words": each.words, "wrong": each.wrong, "complete": each.complete}
            for each in self.errors
        ]
        return {
            "as": self.kind,
            "known": self.known,
            "equal_to": self.equal_to,
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
        yield "known", self.known
        yield "method", self.method
        yield "words run, time", f"{self.words:,}, {self.seconds:.1f} s"
        for each in self.evidence.quantities:
            if each.name in SHOWN:
                yield each.name, f"{each.measured:.4g}" if isinstance(each.measured, float) else str(each.measured)
        if self.stopped:
            yield "stopped", self.stopped
        if self.counterexample:
            yield "counterexample", ", ".join(f"{key}: {_text(value)}" for key, value in self.counterexample.items())


MARGIN = "smallest margin of an answer (logits)"
CLOSE_ANSWERS = "answers compared in real arithmetic"
RIVALS = "states that any other machine with these answers has at least"
COVERED = "longer words that cover its transitions (W-method)"
SHOWN = (MARGIN, CLOSE_ANSWERS, COVERED, RIVALS)


def equal_to(evidence: Evidence) -> int | None:
    """Return the length up to which evidence covers every word, None for every length; -1 if it covers none."""
    headline = evidence.headline
    if headline is None or evidence.verdict != "holds":
        return -1
    return None if headline.scope is Scope.EVERY_LENGTH else headline.longest


def _text(value: object) -> str:
    return " ".join(map(str, value)) or "the empty word" if isinstance(value, list | tuple) else str(value)
