"""Check a net against its spec by the check that fits its input, and certify it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.certification.attacks.robust import radii
from vitrify.certification.attacks.words import attack_words
from vitrify.certification.checks.points import PointCheck
from vitrify.certification.checks.words import WORK, WordCheck
from vitrify.certification.evidence import Evidence, Progress, Quantity
from vitrify.certification.margins.net import proof_of
from vitrify.certification.oracles.right import Oracle
from vitrify.certification.precision.rounding import supports
from vitrify.errors import InputError
from vitrify.net.architecture import Architecture, SequenceArchitecture
from vitrify.net.conv import Convolutional
from vitrify.net.recurrent import Recurrent
from vitrify.net.weights import Weights, has_architecture, has_positions

SLACK = 1e-12  # rounding of a run of the ideal, relative to its largest number
IMAGES = 64  # whose robustness radius is worked out
MAX_STEPS = 1 << 13  # length of the words on which a recurrent network is checked
FLOAT32 = "share of answers that float32 must give too"


def net_check(
    net: Architecture,
    spec: object,
    *,
    max_length: int | None = None,
    seed: int = 0,
    work: float = WORK,
    samples: int | None = None,
) -> WordCheck | PointCheck:
    """Return the check of a net against the spec that it was built from."""
    if any(getattr(block, "crowded", False) for block in getattr(net, "blocks", ())):
        raise InputError("experts that choose tokens answer a word by the rest of its batch: nothing can be certified")
    if net.reads == "tokens":
        if not net.pads:  # type: ignore[attr-defined]  # it reads tokens
            raise InputError("certificates are about networks that read a beginning-of-sequence token first")
        if isinstance(net, Recurrent) and net.max_length > MAX_STEPS:  # no array bounds its length
            net = replace(net, max_length=MAX_STEPS)
        return WordCheck(net, spec, max_length, seed, work, samples)  # type: ignore[arg-type]  # it reads tokens
    if max_length is not None or samples is not None:
        raise InputError(
            f"this network reads no words but {net.reads.removesuffix('s')}s: leave --max-length and --samples out"
        )
    return PointCheck(net, spec, seed)


def certify(
    weights: Weights[Architecture],
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

    `samples` is the number of random ones; `work` bounds the cost of what is not set explicitly, in multiplications.
    Nets that read numbers are checked at the points that their oracle chooses; those that read images get a robustness
    radius, too. With `prove`, the margins of a net that reads words are proved for all words up to its maximum length,
    where that can be done; with `arithmetic`, also which formats keep the answers (`precision/arithmetic.py`).
    With `reals`, all short words (or some of the points) are checked once more in real arithmetic, where nothing is
    rounded (`reals/decide.py`). With `attack`, a search tries that many words of any length to find the one with the
    smallest margin of the right answer (`attacks/words.py`).
    """
    if attack and weights.architecture.reads != "tokens":
        raise InputError("an attack searches for words, which this network does not read: leave --attack out")
    kinds = {str(array.dtype) for array in weights.arrays.values()} - {"float64"}
    if kinds:
        raise InputError(f"certificates are about arithmetic in float64, and this network holds {', '.join(kinds)}")
    check = net_check(weights.architecture, spec, max_length=max_length, seed=seed, work=work, samples=samples)
    if arithmetic and not (prove and isinstance(check, WordCheck)):
        raise InputError("lower precision is checked where margins are proved, of networks that read words")
    evidence = check.run(weights, progress)
    if evidence.verdict == "holds" and reals:
        evidence = _in_reals(evidence, weights, check, progress)
    if isinstance(check, PointCheck):
        return evidence.adding(*_radius_of(weights, check)) if evidence.verdict == "holds" else evidence
    assert isinstance(check, WordCheck)
    assert has_positions(weights)
    if evidence.verdict == "holds" and prove:
        evidence = with_proof(evidence, weights, check.oracle, in_formats=check if arithmetic else None)
    if evidence.verdict == "holds" and attack:
        evidence = _attacked(evidence, weights, check, attack)
    net = weights.architecture
    if evidence.verdict != "holds" or not supports(net) or net.output.kind == "values":
        return evidence  # of numbers none is the largest that must stay so
    share = float(np.mean([part.mean() for part in check.decided(weights, "float32")]))
    return evidence.adding(Quantity(FLOAT32, share))


def _in_reals(
    evidence: Evidence, weights: Weights[Architecture], check: WordCheck | PointCheck, progress: Progress | None
) -> Evidence:
    """Return the evidence merged with that of a check in real arithmetic."""
    from vitrify.certification.reals.decide import in_reals

    assert isinstance(check, WordCheck | PointCheck)
    exact = in_reals(weights, check, progress)
    return replace(
        evidence,
        verdict=exact.verdict,
        cases=evidence.cases + exact.cases,
        domains=(*evidence.domains, *exact.domains),
        quantities=(*evidence.quantities, *exact.quantities),
        witness=exact.witness,
        seconds=evidence.seconds + exact.seconds,
    )


def with_proof(
    evidence: Evidence, weights: Weights[SequenceArchitecture], oracle: Oracle, *, in_formats: WordCheck | None = None
) -> Evidence:
    """Return the evidence with a proof of the margins of the net, or the reason why there is none.

    With `in_formats` it also says to which length each floating-point format keeps the answers to those check.
    """
    proof = proof_of(weights, oracle)
    data = proof.to_json()
    if in_formats:
        from vitrify.certification.precision.arithmetic import arithmetic_report

        report = arithmetic_report(
            weights,
            in_formats.batches[-1].words,
            language=oracle.language is not None,
            longest=oracle.longest,
            has_answer=oracle.has_answer,
            unproved=proof.reason,
        )
        data |= {"arithmetic": report.to_json()}
    return replace(evidence, proof=data)


def _attacked(evidence: Evidence, weights: Weights[SequenceArchitecture], check: WordCheck, count: int) -> Evidence:
    """Return the evidence with the word of the smallest margin that a search found.

    It fails if the search found a wrong answer, or a margin below the proved one.
    """
    attack = attack_words(weights, check, count, check.seed)
    quantities = (
        Quantity("words tried by the attack", attack.tried),
        Quantity("smallest margin that the attack found", attack.margin),
        Quantity("word with the smallest margin", attack.word),
    )
    proof, witness = evidence.proof, attack.witness
    margin = proof["margin"] if proof is not None and proof["holds"] else None
    if witness is None and margin is not None and attack.margin < margin * (1 - SLACK):
        witness = {"word": list(attack.word), "expected": f"the proved margin of {margin:.6g}", "actual": attack.margin}
    verdict = evidence.verdict if witness is None else "fails"
    return replace(evidence.adding(*quantities), verdict=verdict, witness=witness)


def _radius_of(weights: Weights[Architecture], check: PointCheck) -> tuple[Quantity, ...]:
    """Return certified radii: by how much every pixel may change, for some images that a net was run on."""
    if not has_architecture(weights, Convolutional) or weights.architecture.pixels != "numbers":
        return ()
    radius = radii(weights, check.batches[0].inputs[:IMAGES])
    parts = {"smallest": radius.min(), "median": np.median(radius), "largest": radius.max()}
    return tuple(Quantity(f"certified radius, {part} of {len(radius)} images", value) for part, value in parts.items())
