"""Audit the certifying methods: does any of them certify a mutant that is wrong?

The truth about a mutant is its run in float64 on every word of a small domain. It is compared with each method by
itself: the check of all these words, the proof of margins, the proof that the ideal computes the spec, both links
together, and real arithmetic on the shorter words. A method that says `holds` of a mutant for which its own statement
is false on some word is unsound; that must never happen. A mutant that is certified and right has *survived*, and the
reason is searched in its activations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from audit_faults import faulty_nets
from audit_proofs import contradiction, ideal_net, premise_fails
from audit_survivors import reason_of
from vitrify.arrays import Ints
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.equivalence.catalogue import SpecCase, prove_spec
from vitrify.certification.evidence import Progress
from vitrify.certification.margins.net import proof_of
from vitrify.certification.margins.proof import Proof
from vitrify.certification.margins.values import Undecided
from vitrify.certification.mutation_test import Mutant
from vitrify.certification.reals.decide import in_reals
from vitrify.certification.reals.steps import OpenComparison
from vitrify.errors import VitrifyError
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights, has_architecture

WORK = 1e6  # multiplications of the sampled part of a check
ROUNDED = 1e-9  # relative change of a resolution that only matters where rounding decides
MAX_PAIRS = 1 << 11  # of states of network and spec that a proof may search


@dataclass(frozen=True, eq=False)
class AuditedNet:
    """A net, its spec and the lengths to which words are enumerated: all of them, and those for real arithmetic."""

    weights: Weights[SequenceArchitecture]
    spec: object
    length: int
    real_length: int = 1

    def check(self, weights: Weights[SequenceArchitecture], length: int | None = None) -> WordCheck:
        """Return the check of a mutant up to a length; longer if its declared maximum length is longer."""
        further = weights.architecture.max_length - self.weights.architecture.max_length
        longest = self.length + (further if self.length >= self.weights.architecture.max_length else 0)
        longest = min(longest, weights.architecture.max_length)
        length_checked = longest if length is None else min(length, longest)
        return WordCheck(weights.architecture, self.spec, max_length=length_checked, work=WORK)

    @cached_property
    def words(self) -> tuple[Ints, ...]:
        """The words of the domain, by length."""
        return words_of(self.check(self.weights))


def words_of(check: WordCheck) -> tuple[Ints, ...]:
    """All words of the exhaustive domain of a check, by length."""
    return check.short(0).words


@dataclass(frozen=True)
class Judgement:
    """Verdicts of all methods on one mutant, and the truth about it.

    `wrong` is the word and prefix of a wrong answer; `methods` says holds, fails, undecided or refused for each method;
    `unsound` lists the methods that said something false. `later` says that its margins are proved, and that only words
    of more than half the length get a wrong answer: a proof does not say that the ideal is the spec's. `reason` is why
    a survivor does no harm, a kind and a sentence.
    """

    what: str
    kind: str
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
    """Judgements of all mutants of one net."""

    judgements: tuple[Judgement, ...] = field(repr=False)

    @property
    def wrong(self) -> int:
        return sum(j.wrong is not None for j in self.judgements)

    @property
    def refused(self) -> int:
        """Return the number of mutants that are right on the domain and not certified by any method."""
        return sum(j.wrong is None and not j.survived for j in self.judgements)

    @property
    def unsound(self) -> tuple[Judgement, ...]:
        return tuple(j for j in self.judgements if j.unsound)

    @property
    def survivors(self) -> dict[str, int]:
        """Return the number of survivors, by the kind of reason."""
        return dict(Counter(j.reason[0] for j in self.judgements if j.reason))

    def certified(self, method: str) -> int:
        """Return the number of mutants that a method certified."""
        return sum(j.methods.get(method) == "holds" for j in self.judgements)


def audit(subject: AuditedNet, count: int, seed: int = 0, progress: Progress | None = None) -> Audit:
    """Judge `count` mutants of a net."""
    judgements = []
    for mutant in faulty_nets(subject.weights, count, seed):
        judgements.append(judge(subject, mutant))
        if progress:
            progress(len(judgements), count)
    return Audit(tuple(judgements))


def judge(subject: AuditedNet, mutant: Mutant[SequenceArchitecture]) -> Judgement:
    """Run every method on one mutant, and compare with its answers."""
    weights = mutant.weights
    try:
        check = subject.check(weights)
        words = words_of(check)
        wrong = mistake(weights, check, words)
    except (VitrifyError, ValueError, IndexError) as error:  # the mutant is no valid net
        return Judgement(mutant.what, mutant.kind, f"it can't be run: {error}", {"exhaustive": "refused"})
    methods: dict[str, str] = {"exhaustive": _tested(check, weights)}
    unsound = ["exhaustive"] if methods["exhaustive"] == "holds" and wrong is not None else []
    later = False
    proof = proof_of(weights, check.oracle)
    methods["proved"] = "holds" if proof.holds else "undecided"
    if proof.holds and premise_fails(weights, proof, words):
        methods["proved"] = "premise fails"
    elif proof.holds:
        against = contradiction(weights, proof, words)
        unsound += [f"proved: {against}"] if against else []
        short = subject.check(weights, (subject.length + 1) // 2)
        later = wrong is not None and mistake(weights, short, words_of(short)) is None
    methods["spec"], methods["both links"], false = _links(weights, check, proof, words)
    unsound += [f"links: {false}"] if false else []
    methods["reals"], false = _reals(subject, weights)
    unsound += [f"reals: {false}"] if false else []
    judged = Judgement(mutant.what, mutant.kind, wrong, methods, tuple(unsound), later)
    if not judged.survived:
        return judged
    why = reason_of(subject.weights, mutant, check.oracle, words)
    return replace(judged, reason=why)


def _tested(check: WordCheck, weights: Weights[SequenceArchitecture]) -> str:
    """Return the verdict of a check on all words; a label that no activation has is refused."""
    try:
        return check.run(weights).verdict
    except IndexError:
        return "refused"


def _links(
    weights: Weights[SequenceArchitecture], check: WordCheck, proof: Proof, words: tuple[Ints, ...]
) -> tuple[str, str, str | None]:
    """Return the verdicts on the link between ideal and spec and on both links, and a word that contradicts them."""
    try:
        shown = prove_spec(SpecCase(weights, check.spec, check.oracle, proof, MAX_PAIRS))
    except Undecided:
        return "undecided", "undecided", None
    if shown.witness is not None:
        return "fails", "undecided", None
    covered = [some for some in words if shown.longest is None or some.shape[1] <= shown.longest]
    both = shown.exact or proof.holds
    false = mistake(weights, check, covered) if both else None
    if false is None and has_architecture(weights, Transformer) and not shown.exact:  # a proof about the ideal
        false = mistake(ideal_net(weights, proof), check, covered)
    return "holds", "holds" if both else "undecided", false


def mistake(weights: Weights[SequenceArchitecture], check: WordCheck, words: Iterable[Ints]) -> str | None:
    """Return the first wrong answer to some words in float64, as text, or None."""
    net, oracle = weights.architecture, check.oracle
    for some in words:
        with np.errstate(all="ignore"):
            logits = batch_logits(weights, with_pads(net, some))[:, net.pads - 1 :]
        wrong = ~(oracle.errors(some, logits) <= oracle.tolerance())
        if wrong.any():
            row, prefix = np.argwhere(wrong)[0]
            return f"{' '.join(net.inputs[i] for i in some[row])!r} after {int(prefix)}"
    return None


def _reals(subject: AuditedNet, weights: Weights[SequenceArchitecture]) -> tuple[str, str | None]:
    """Return the verdict of real arithmetic on the shorter words, and a word that contradicts it in float64.

    A statement about reals says nothing of a run in float64 in which rounding decides: where a hard head compares a
    score with its resolution, and a resolution that is a little larger or smaller gives the right answers.
    """
    check = subject.check(weights, subject.real_length)
    try:
        verdict = in_reals(weights, check).verdict
    except (VitrifyError, OpenComparison):
        return "refused", None
    wrong = mistake(weights, check, words_of(check)) if verdict == "holds" else None
    if wrong is None or not has_architecture(weights, Transformer):
        return verdict, wrong
    nudged = (_with_resolution(weights, 1 + by) for by in (-ROUNDED, ROUNDED))
    decided = any(mistake(other, check, words_of(check)) is None for other in nudged)
    return ("rounding decides", None) if decided else (verdict, wrong)


def _with_resolution(weights: Weights[Transformer], factor: float) -> Weights[Transformer]:
    """Return a network whose hard heads have their resolution times a factor."""
    net = weights.architecture
    blocks = tuple(
        replace(block, heads=tuple(replace(head, resolution=head.resolution * factor) for head in block.heads))
        for block in net.blocks
    )
    return replace(weights, architecture=replace(net, blocks=blocks))
