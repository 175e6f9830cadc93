"""Check a net against its spec by the check that fits its input, and certify it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from vitrify.certification.attacks.robust import radii
from vitrify.certification.attacks.words import attack_words
from vitrify.certification.checks.divergence import divergence
from vitrify.certification.checks.points import PointCheck
from vitrify.certification.checks.words import MAX_STEPS, WORK, WordCheck
from vitrify.certification.equivalence.catalogue import SpecCase, prove_spec
from vitrify.certification.equivalence.product import MAX_PAIRS
from vitrify.certification.evidence import Evidence, Link, Progress, Quantity, Scope
from vitrify.certification.margins.net import proof_of
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.right import Oracle
from vitrify.certification.precision.rounding import supports
from vitrify.errors import BudgetSpent, InputError
from vitrify.limits import checked_seed
from vitrify.net.architecture import Architecture, SequenceArchitecture
from vitrify.net.conv import Convolutional
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.recurrent import Recurrent
from vitrify.net.weights import Weights, has_architecture, has_positions

SLACK = 1e-12  # rounding of a run of the ideal, relative to its largest number
MAX_ATTACK, ATTACK_WORK = 500, 2e8  # words of an attack by default, and multiplications that they may cost
IMAGES = 64  # whose robustness radius is worked out
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
    checked_seed(seed)
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
    attack: int | None = 0,
    progress: Progress | None = None,
) -> Evidence:
    """Check a net against its spec: all words up to `max_length` (by default, by cost), then long random ones.

    `samples` is the number of random ones; `work` bounds the cost of what is not set explicitly, in multiplications.
    Nets that read numbers are checked at the points that their oracle chooses; those that read images get a robustness
    radius, too. With `prove`, both links between the weights and the spec are proved for all words, where that can be
    done: the margins (`margins/`) and the equivalence of the ideal and the spec (`equivalence/`); with `arithmetic`,
    also which formats keep the answers (`precision/arithmetic.py`).
    With `reals`, all short words (or some of the points) are checked once more in real arithmetic, where nothing is
    rounded (`reals/decide.py`). With `attack`, a search tries that many words of any length to find the one with the
    smallest margin of the right answer (`attacks/words.py`); if it is None, as many as take about a second.
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
        in_reals = partial(_in_reals, evidence, weights, check, progress)
        evidence = _unless_spent(evidence, "short inputs in real arithmetic", in_reals)
    if isinstance(check, PointCheck):
        return evidence.adding(*_radius_of(weights, check)) if evidence.verdict == "holds" else evidence
    assert isinstance(check, WordCheck)
    assert has_positions(weights)
    if evidence.verdict == "holds" and prove:
        proving = partial(with_proof, evidence, weights, check, arithmetic=arithmetic)
        evidence = _unless_spent(evidence, "the proof of both links", proving)
    if attack is None:
        attack = min(
            MAX_ATTACK, int(ATTACK_WORK / (weights.architecture.cost * max(weights.architecture.max_length, 1)))
        )
    if evidence.verdict == "holds" and attack:
        attacking = partial(_attacked, evidence, weights, check, attack)
        evidence = _unless_spent(evidence, f"an attack with {attack:,} words", attacking)
    net = weights.architecture
    if net.output.kind == "lm" and (evidence.verdict == "fails" or net.output.error):
        evidence = evidence.adding(*divergence(weights, check))
    if evidence.verdict != "holds" or not supports(net) or net.output.kind == "values":
        return evidence  # of numbers none is the largest that must stay so
    share = float(np.mean([part.mean() for part in check.decided(weights, "float32")]))
    return evidence.adding(Quantity(FLOAT32, share))


def _unless_spent(evidence: Evidence, what: str, step: Callable[[], Evidence]) -> Evidence:
    """Return the evidence after one more step, or with a note that the step was left out for want of time or memory."""
    try:
        return step()
    except (BudgetSpent, MemoryError) as spent:
        return replace(
            evidence, notes=(*evidence.notes, f"left out: {what}: {str(spent) or 'it takes too much memory'}")
        )


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
    evidence: Evidence,
    weights: Weights[SequenceArchitecture],
    check: WordCheck,
    *,
    arithmetic: bool = False,
    max_pairs: int = MAX_PAIRS,
) -> Evidence:
    """Return the evidence with proofs of both links between network and spec, or the reasons why there are none.

    A word that refutes the equivalence makes it fail. With `arithmetic` it also says to which length each
    floating-point format keeps the answers. `max_pairs` bounds the search for pairs of states.
    """
    oracle = check.oracle
    proof = proof_of(weights, oracle)
    data = proof.to_json()
    if arithmetic:
        from vitrify.certification.precision.arithmetic import arithmetic_report

        data |= {"arithmetic": arithmetic_report(weights, check.batches[-1].words, oracle, proof.reason).to_json()}
    evidence = replace(evidence, proof=data)
    (ideal, meaning), start = evidence.links, time.perf_counter()
    if proof.holds:
        ideal = Link("weights", Scope.MAX_LENGTH, proof.max_length, "margins", {"heads": len(proof.heads)})
    else:
        ideal = replace(ideal, reason=proof.reason or "")
    try:
        shown = prove_spec(SpecCase(weights, check.spec, oracle, proof, max_pairs))
    except Undecided as stop:
        meaning = replace(meaning, reason=str(stop))
    else:
        if shown.witness is not None:
            return _refuted(evidence, weights, oracle, shown.witness)
        scope = Scope.EVERY_LENGTH if shown.longest is None else Scope.MAX_LENGTH
        meaning = Link("spec", scope, shown.longest, shown.lemma, shown.instances)
        if shown.exact:  # about the stored weights themselves
            ideal = replace(meaning, name="weights")
    return replace(evidence, links=(ideal, meaning), seconds=evidence.seconds + time.perf_counter() - start)


def _refuted(
    evidence: Evidence, weights: Weights[SequenceArchitecture], oracle: Oracle, word: tuple[int, ...]
) -> Evidence:
    """Return the evidence that fails by a word, if a run of the network confirms that."""
    words = np.array([word], dtype=np.int64).reshape(1, -1)
    logits = batch_logits(weights, with_pads(weights.architecture, words))[:, weights.architecture.pads - 1 :]
    if oracle.errors(words, logits)[0, -1] <= oracle.tolerance():
        note = (
            f"the ideal is wrong after {' '.join(weights.architecture.inputs[i] for i in word)!r}, the network is not"
        )
        return replace(evidence, notes=(*evidence.notes, note))
    return replace(evidence, verdict="fails", witness=oracle.witness(words[0], logits[0]))


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
    if not has_architecture(weights, Convolutional):
        return ()
    if weights.architecture.pixels != "numbers" or not weights.architecture.shared:
        return ()
    radius = radii(weights, check.batches[0].inputs[:IMAGES])
    parts = {"smallest": radius.min(), "median": np.median(radius), "largest": radius.max()}
    return tuple(Quantity(f"certified radius, {part} of {len(radius)} images", value) for part, value in parts.items())
