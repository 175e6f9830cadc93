"""Does any method certify a net that is wrong? Mutants of a net, judged by every method, beside what they really do.

The truth about a mutant is what float64 says on every word of a small domain. Against it stand the methods, each by
itself: the examination of all these words, the proof of margins, and real arithmetic on the shorter ones. A method that
says `holds` of a mutant for which its own statement is false on some word is unsound; that must never happen. A mutant
that is certified and right has *survived*, and the reason is looked for in its activations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.ball_steps import Open
from vitrify.certify.decide import in_reals
from vitrify.certify.evidence import Progress
from vitrify.certify.margins import proof_of
from vitrify.certify.mutants import Mutant, mutants
from vitrify.certify.refute import contradiction, premise_fails
from vitrify.certify.survivors import reason_of
from vitrify.certify.words import WordExamination
from vitrify.errors import VitrifyError
from vitrify.net.run import batch_logits
from vitrify.net.weights import Weights

Ids = NDArray[np.int64]

WORK = 1e6  # multiplications of the sampled part of an examination


@dataclass(frozen=True, eq=False)
class Subject:
    """A net, its spec and the lengths to which words are enumerated: all of them, and those for real arithmetic."""

    weights: Weights[Any]
    spec: object
    length: int
    real_length: int = 1

    def questions(self, weights: Weights[Any], length: int | None = None) -> WordExamination:
        """The examination of a mutant up to a length; one that is said to read longer words is asked longer ones."""
        further = weights.architecture.max_length - self.weights.architecture.max_length
        longest = self.length + (further if self.length >= self.weights.architecture.max_length else 0)
        longest = min(longest, weights.architecture.max_length)
        asked = longest if length is None else min(length, longest)
        return WordExamination(weights.architecture, self.spec, max_length=asked, work=WORK)

    @cached_property
    def words(self) -> tuple[Ids, ...]:
        """The words of the domain, by length."""
        return words_of(self.questions(self.weights))


def words_of(questions: WordExamination) -> tuple[Ids, ...]:
    """All words of the exhaustive domain of an examination, by length."""
    return questions.short(0).words


@dataclass(frozen=True)
class Judgement:
    """What was found about one mutant.

    `wrong` is the word and prefix of a wrong answer; `methods` says holds, fails, undecided or refused for each method;
    `unsound` lists the methods that said something false. `later` says that its margins are proved, and that only words
    of more than half the length get a wrong answer: a proof does not say that the ideal is the spec's. `reason` is why
    a survivor does no harm, sort and sentence.
    """

    what: str
    sort: str
    wrong: str | None
    methods: dict[str, str]
    unsound: tuple[str, ...] = ()
    later: bool = False
    reason: tuple[str, str] | None = None

    @property
    def survived(self) -> bool:
        return self.wrong is None and "holds" in self.methods.values()


@dataclass(frozen=True)
class Audit:
    """The judgements of all mutants of one net."""

    judgements: tuple[Judgement, ...] = field(repr=False)

    @property
    def wrong(self) -> int:
        return sum(j.wrong is not None for j in self.judgements)

    @property
    def refused(self) -> int:
        """Right on the whole domain, and not certified by any method."""
        return sum(j.wrong is None and not j.survived for j in self.judgements)

    @property
    def unsound(self) -> tuple[Judgement, ...]:
        return tuple(j for j in self.judgements if j.unsound)

    @property
    def survivors(self) -> dict[str, int]:
        """How many survived, by the sort of reason."""
        return dict(Counter(j.reason[0] for j in self.judgements if j.reason))

    def certified(self, method: str) -> int:
        """How many mutants a method let through."""
        return sum(j.methods.get(method) == "holds" for j in self.judgements)


def audit(subject: Subject, count: int, seed: int = 0, progress: Progress | None = None) -> Audit:
    """Judge so many mutants of a net."""
    found = []
    for mutant in mutants(subject.weights, count, seed):
        found.append(judge(subject, mutant))
        if progress:
            progress(len(found), count)
    return Audit(tuple(found))


def judge(subject: Subject, mutant: Mutant) -> Judgement:
    """Put one mutant to every method, and compare with what it does."""
    weights = mutant.weights
    try:
        questions = subject.questions(weights)
        words = words_of(questions)
        wrong = mistake(weights, questions, words)
    except (VitrifyError, ValueError, IndexError) as error:  # no net any more
        return Judgement(mutant.what, mutant.sort, f"it can't be run: {error}", {"exhaustive": "refused"})
    methods: dict[str, str] = {"exhaustive": questions.run(weights).verdict}
    unsound = ["exhaustive"] if methods["exhaustive"] == "holds" and wrong is not None else []
    later = False
    proof = proof_of(weights, questions.oracle)
    methods["proved"] = "holds" if proof.holds else "undecided"
    if proof.holds and premise_fails(weights, proof, words):
        methods["proved"] = "given what is false"
    elif proof.holds:
        against = contradiction(weights, proof, words)
        unsound += [f"proved: {against}"] if against else []
        short = subject.questions(weights, (subject.length + 1) // 2)
        later = wrong is not None and mistake(weights, short, words_of(short)) is None
    methods["reals"], false = _reals(subject, weights)
    unsound += [f"reals: {false}"] if false else []
    judged = Judgement(mutant.what, mutant.sort, wrong, methods, tuple(unsound), later)
    if not judged.survived:
        return judged
    why = reason_of(subject.weights, mutant, questions.oracle, words)
    return replace(judged, reason=why)


def mistake(weights: Weights[Any], questions: WordExamination, words: Iterable[Ids]) -> str | None:
    """The first wrong answer to some words in float64, as text."""
    net, oracle = weights.architecture, questions.oracle
    for some in words:
        tokens = np.concatenate([np.zeros((len(some), net.pads), dtype=np.int64), some], axis=1)
        with np.errstate(all="ignore"):
            logits = batch_logits(weights, tokens)[:, net.pads - 1 :]
        wrong = ~(oracle.errors(some, logits) <= oracle.tolerance())
        if wrong.any():
            row, prefix = np.argwhere(wrong)[0]
            return f"{' '.join(net.inputs[i] for i in some[row])!r} after {int(prefix)}"
    return None


def _reals(subject: Subject, weights: Weights[Any]) -> tuple[str, str | None]:
    """What real arithmetic says of the shorter words, and a word on which that is false in float64."""
    questions = subject.questions(weights, subject.real_length)
    try:
        verdict = in_reals(weights, questions).verdict
    except (VitrifyError, Open):
        return "refused", None
    return verdict, mistake(weights, questions, words_of(questions)) if verdict == "holds" else None
