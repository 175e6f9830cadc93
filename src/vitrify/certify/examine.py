"""Is this net right? The examination that fits what it reads, and a certificate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from vitrify.certify.evidence import Evidence, Progress
from vitrify.certify.margins import proof_of
from vitrify.certify.oracles import AsksSome, Oracle
from vitrify.certify.points import PointExamination
from vitrify.certify.refute import SLACK
from vitrify.certify.robust import radii
from vitrify.certify.rounding import supports
from vitrify.certify.search import attack_words
from vitrify.certify.words import WORK, WordExamination
from vitrify.errors import InputError
from vitrify.net.architecture import Architecture
from vitrify.net.conv import Convolutional
from vitrify.net.weights import Weights

IMAGES = 64  # whose robustness radius is worked out
FLOAT32 = "share of answers that float32 must give too"


class Examination(Protocol):
    """Questions for one architecture and spec, prepared once and put to any number of variants of the net."""

    def run(self, weights: Weights[Any], progress: Progress | None = None, *, hardest_first: bool = False) -> Evidence:
        """Examine a net; stops at the first wrong answer, which becomes the witness."""
        ...


def examination(
    net: Architecture,
    spec: object,
    *,
    max_length: int | None = None,
    seed: int = 0,
    work: float = WORK,
    samples: int | None = None,
) -> Examination:
    """The examination of a net built from a spec."""
    if any(getattr(block, "crowded", False) for block in getattr(net, "blocks", ())):
        raise InputError("experts that choose rows answer a word by the words beside it: nothing can be certified")
    if net.reads == "tokens":
        return WordExamination(net, spec, max_length, seed, work, samples)  # type: ignore[arg-type]  # it reads tokens
    if max_length is not None or samples is not None:
        raise InputError(
            f"this network reads no words but {net.reads.removesuffix('s')}s: leave --max-length and --samples out"
        )
    return PointExamination(net, spec, seed)


def certify(
    weights: Weights[Any],
    spec: object,
    *,
    max_length: int | None = None,
    seed: int = 0,
    work: float = WORK,
    samples: int | None = None,
    prove: bool = False,
    arithmetic: bool = False,
    reals: bool = False,
    attack: int = 0,
    progress: Progress | None = None,
) -> Evidence:
    """Check a net against its spec: all words up to `max_length` (by default, by cost), then long random ones.

    `samples` is how many random ones; `work` bounds the cost of what is not asked for explicitly, in multiplications.
    Nets that read numbers are asked at the points that their oracle chooses; those that read images get a robustness
    radius, too. With `prove`, the margins of a net that reads words are proved for all words up to its maximum length,
    where that can be done; with `arithmetic`, also in which formats a run keeps the answers (see `arithmetic.py`).
    With `reals`, all short words (or some of the points) are asked about once more in real arithmetic, where nothing is
    rounded (see `decide.py`). With `attack`, a search tries so many words of any length to find the one after which the
    right answer leads by least (see `search.py`).
    """
    if attack and weights.architecture.reads != "tokens":
        raise InputError("an attack looks for words, which this network does not read: leave --attack out")
    questions = examination(weights.architecture, spec, max_length=max_length, seed=seed, work=work, samples=samples)
    if arithmetic and not (prove and isinstance(questions, WordExamination)):
        raise InputError("lower precision is looked at where margins are proved, of networks that read words")
    evidence = questions.run(weights, progress)
    if evidence.verdict == "holds" and reals:
        evidence = _in_reals(evidence, weights, questions, progress)
    if evidence.verdict == "holds" and isinstance(questions, PointExamination):
        return replace(evidence, measured={**evidence.measured, **_radius_of(weights, questions)})
    if evidence.verdict == "holds" and isinstance(questions, WordExamination) and prove:
        evidence = with_proof(evidence, weights, questions.oracle, in_formats=questions if arithmetic else None)
    if evidence.verdict == "holds" and isinstance(questions, WordExamination) and attack:
        evidence = _attacked(evidence, weights, questions, attack)
    net = weights.architecture
    if evidence.verdict != "holds" or not supports(net) or net.output.kind == "values":
        return evidence  # of numbers none is the largest that must stay so
    assert isinstance(questions, WordExamination)
    share = float(np.mean([part.mean() for part in questions.decided(weights, "float32")]))
    return replace(evidence, measured={**evidence.measured, FLOAT32: share})


def _in_reals(evidence: Evidence, weights: Weights[Any], questions: Examination, progress: Progress | None) -> Evidence:
    """The evidence with what real arithmetic adds to it, or takes away."""
    from vitrify.certify.decide import in_reals

    assert isinstance(questions, WordExamination | PointExamination)
    found = in_reals(weights, questions, progress)
    return replace(
        evidence,
        verdict=found.verdict,
        method="+".join((evidence.method, found.method)),
        domain="; ".join((evidence.domain, found.domain)),
        cases=evidence.cases + found.cases,
        witness=found.witness,
        declared={**evidence.declared, **found.declared},
        measured={**evidence.measured, **found.measured},
        seconds=evidence.seconds + found.seconds,
    )


def with_proof(
    evidence: Evidence, weights: Weights[Any], oracle: Oracle, *, in_formats: WordExamination | None = None
) -> Evidence:
    """The evidence with the margins of the net; where they can't be proved it says why.

    With `in_formats` it also says to which length each floating-point format keeps the answers to those questions.
    """
    proof = proof_of(weights, oracle)
    notes, found = (*evidence.notes, proof.summary), proof.to_json()
    if in_formats:
        from vitrify.certify.arithmetic import arithmetic_report

        asked = oracle.asked if isinstance(oracle, AsksSome) else None
        report = arithmetic_report(
            weights,
            in_formats.domains[-1].words,
            language=oracle.language is not None,
            longest=weights.about.get("longest sentence"),
            asked=asked,
            unproved=proof.reason,
        )
        notes, found = (*notes, report.summary), found | {"arithmetic": report.to_json()}
    method = evidence.method + "+proved" if proof.holds else evidence.method
    return replace(evidence, method=method, notes=notes, proof=found)


def _attacked(evidence: Evidence, weights: Weights[Any], questions: WordExamination, count: int) -> Evidence:
    """The evidence with the weakest word that a search found; a wrong answer is the end of it, and so is a false proof.

    A proof says by how much every answer leads: an answer that leads by less contradicts it.
    """
    found = attack_words(weights, questions, count, questions.seed)
    said = f"{found.tried} words tried by the attack: the smallest margin is {found.margin:.6g}, after: {found.said}"
    measured = {**evidence.measured, "smallest margin that the attack found": found.margin}
    proof, witness = evidence.proof, found.witness
    lead = proof["lead"] if proof is not None and proof["holds"] else None
    if witness is None and lead is not None and found.margin < lead * (1 - SLACK):
        witness = {"word": list(found.word), "expected": f"the proved lead of {lead:.6g}", "found": found.margin}
    verdict = evidence.verdict if witness is None else "fails"
    return replace(evidence, verdict=verdict, witness=witness, measured=measured, notes=(*evidence.notes, said))


def _radius_of(weights: Weights[Any], questions: PointExamination) -> dict[str, float]:
    """How far every pixel of an image may move, for some of the images that a net of intensities was asked about."""
    net = weights.architecture
    if not isinstance(net, Convolutional) or net.pixels != "numbers":
        return {}
    found = radii(weights, questions.questions[0].inputs[:IMAGES])
    parts = {"smallest": found.min(), "median": np.median(found), "largest": found.max()}
    return {f"certified radius, {part} of {len(found)} images": float(value) for part, value in parts.items()}
