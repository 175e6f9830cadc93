"""Shared parts of claims about built nets: sweeps of nets, checks of a net against its spec and formulas, saboteurs.

A claim about a construction is a sweep (`in_turn`), a check (`check_net`, or `checking` where nothing else is measured)
and a saboteur that changes part of one array (`zeroing`, `edited`). Checks that go through cases of their own end in
`witnessed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count, cycle, islice
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

import numpy as np

from vitrify.arrays import Arrays
from vitrify.certification.checking import net_check, with_proof
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.evidence import CaseKind, Domain, Evidence, Method, Quantity, combine, quantities
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.claims.protocol.certificates import MAX_PAIRS
from vitrify.constructions.catalogue import Attention, DeclaredSizes, build, chosen
from vitrify.constructions.ngram import Variant
from vitrify.errors import BuildRefused
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.sparse import nonzeros
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.ngrams.families import random_ngram

# A file of a claim about built nets imports these from here.
__all__ = ["ATTENTIONS", "SOFT", "CaseKind", "Claim", "Domain", "Evidence", "Method", "Quantity", "Subject", "Subjects"]
__all__ += ["Weights", "alike", "built", "check_net", "check_ngram", "check_truths", "checking", "combine", "divided"]
__all__ += ["edited", "groups", "in_turn", "on_every_member", "on_groups", "proving"]
__all__ += ["ngram_subjects", "quantities", "refused", "sized", "without_norms", "witnessed", "zeroed", "zeroing"]

Index = object  # of an array: a number, a slice, a list, or a tuple of these
Check = Callable[[Subject], Evidence]
Sabotage = Callable[[Subject], Subject]

ATTENTIONS: tuple[Attention, ...] = ("softmax", "sparsemax", "hard")
SOFT = ATTENTIONS[:2]
EVERYTHING = slice(None)
SAMPLES = 200  # random strings of an n-gram model


# Sweeps


def built(
    name: str,
    spec: object,
    construction: str | None = None,
    data: Mapping[str, object] = MappingProxyType({}),
    **choices: Any,
) -> Subject:
    """Return the net of a spec by a construction of the catalogue; `data` gets the sizes that its formulas declare."""
    sizes = chosen(spec, construction).sizes(spec, **choices)
    return Subject(name, spec, build(spec, construction, **choices), {"sizes": sizes, **data})


def in_turn(
    specs: Mapping[str, object],
    construction: str | None = None,
    attentions: tuple[Attention, ...] = ATTENTIONS,
    **choices: Any,
) -> Subjects:
    """Yield a net for each spec; the kinds of attention take turns, and names say which it is."""
    for (name, spec), attention in zip(specs.items(), cycle(attentions), strict=False):
        yield built(f"{name}, {attention}", spec, construction, attention=attention, **choices)


def ngram_subjects(shape: Variant) -> Subjects:
    """Yield nets of random models of 2 to 4 symbols and orders 2 to 4, under each kind of attention."""
    for words, order in ((2, 2), (3, 3), (4, 4)):
        model = random_ngram(words, order, seed=10 * words + order)
        for attention in ATTENTIONS:
            name = f"{order}-gram over {words} symbols, {attention}"
            yield built(name, model, shape, attention=attention, max_length=24)


def groups(members: Iterable[Subject], size: int, of: str) -> Subjects:
    """Yield subjects that stand for `size` others each, which `on_groups` goes through; `of` names what these are."""
    parts = iter(members)
    for number in count():
        own = tuple(islice(parts, size))
        if not own:
            return
        yield Subject(f"{of} {number * size + 1} to {number * size + len(own)}", data={"members": own})


def refused(construct: Callable[[], object]) -> bool:
    """Return whether a construction is refused."""
    try:
        construct()
    except BuildRefused:
        return True
    return False


# Checks


class Effort(TypedDict, total=False):
    """Extent of a check: all words to a length, random ones beyond it, multiplications for all else."""

    max_length: int | None
    samples: int | None
    work: float


def check_net(
    subject: Subject,
    declared: Mapping[str, object] | None = None,
    measured: Mapping[str, object] | None = None,
    **effort: Unpack[Effort],
) -> Evidence:
    """Return the check of a net against its spec, and its sizes against what is declared.

    The subject's data may hold `sizes`, which are declared as well, and an effort, which comes first.
    """
    own = {name: subject.data[name] for name in Effort.__annotations__ if name in subject.data}
    questions = net_check(subject.weights.architecture, subject.spec, **{**effort, **own})
    return questions.run(subject.weights).adding(*sized(subject, declared, measured))


def proving(subject: Subject, evidence: Evidence) -> Evidence:
    """Return the evidence of a net that reads words, with proofs of both links if it holds, however large the net."""
    if evidence.verdict != "holds":
        return evidence
    check = WordCheck(subject.weights.architecture, subject.spec)
    evidence = with_proof(evidence, subject.weights, check, max_pairs=MAX_PAIRS)
    return replace(evidence, checked=(subject.weights, subject.spec, evidence))


def checking(**effort: Unpack[Effort]) -> Check:
    """Return the check that a net is right and has the sizes declared for it."""
    return lambda subject: check_net(subject, **effort)


def check_truths(subject: Subject, longest: int, samples: int = 8) -> Evidence:
    """Return the check of a net against a logic's `holds`: all words of a length and random ones, every prefix."""
    net, spec, rng = subject.weights.architecture, subject.spec, np.random.default_rng(0)
    size, witness = len(spec.alphabet), None
    short = np.indices((size,) * longest).reshape(longest, -1).T
    for words in (short, rng.integers(0, size, (samples, net.max_length))):
        true = batch_logits(subject.weights, with_pads(net, words + 1))[:, net.pads :].argmax(axis=-1) == 1
        wrong = np.argwhere(true != spec.holds(words))
        if len(wrong) and witness is None:
            row, at = wrong[wrong[:, 1].argmin()].tolist()
            word = [spec.alphabet[letter] for letter in words[row, : at + 1]]
            witness = {"word": word, "expected": str(not true[row, at]), "actual": str(true[row, at])}
    domains = (
        Domain(CaseKind.WORDS, Method.SAMPLED, sum(size**n for n in range(1, longest + 1)), 1, longest),
        Domain(CaseKind.RANDOM_WORDS, Method.SAMPLED, samples, net.max_length, net.max_length),
    )
    return witnessed(witness, len(short) * longest + samples * net.max_length, *domains, seed=0)


def on_groups(check: Check, each: Check | None = None) -> Check:
    """Return a check that goes through the members of groups, by a check of their own, and counts those that hold."""

    def run(subject: Subject) -> Evidence:
        if "members" not in subject.data:
            return check(subject)
        whole = combine({member.name: (each or check)(member) for member in subject.data["members"]})
        held = sum(part.verdict == "holds" for part in whole.parts.values())
        domains: dict[tuple[object, ...], Domain] = {}
        for domain in (domain for _, leaf in whole.leaves() for domain in leaf.domains):
            key = domain.kind, domain.key, domain.shortest, domain.longest
            total = (domains[key].count or 0) if key in domains else 0
            domains[key] = replace(domain, count=total + (domain.count or 0))
        counted = Quantity("members that hold", held, len(whole.parts), "=")
        return replace(whole, domains=tuple(domains.values()), parts={}).adding(counted)

    return run


def sized(
    subject: Subject, declared: Mapping[str, object] | None = None, measured: Mapping[str, object] | None = None
) -> tuple[Quantity, ...]:
    """Return the sizes of a net against those of its data and others: equal to exact ones, at most as large as bounds.

    Whatever `measured` does not hold is measured on the net.
    """
    size, sizes = subject.weights.sizes, subject.data.get("sizes", DeclaredSizes())
    exact = {**sizes.exact, **(declared or {})}
    counted = {name: getattr(size, name) for name in exact if name not in (measured or {})}
    bounded = {name: getattr(size, name) for name in sizes.at_most}
    return *quantities(exact, {**counted, **(measured or {})}), *quantities(sizes.at_most, bounded, "<=")


def alike(one: Arrays, other: Arrays) -> bool:
    """Return whether all arrays of two networks are equal, byte by byte."""
    return one.keys() == other.keys() and all(array.tobytes() == other[name].tobytes() for name, array in one.items())


def witnessed(
    witness: Mapping[str, object] | None,
    cases: int,
    *domains: Domain,
    seed: int | None = None,
    notes: tuple[str, ...] = (),
) -> Evidence:
    """Return evidence that holds unless there is a witness."""
    return Evidence("fails" if witness else "holds", cases, domains, witness=witness, seed=seed, notes=notes)


def check_ngram(subject: Subject) -> Evidence:
    """Return weak equivalence on every string to length 8, and the sizes of the published shape."""
    model, weights = subject.spec, subject.weights
    table = [units for units in weights.labels.units if units.name == "listed contexts"]
    rows = [weights.arrays[f"blocks.{units.block}.mlp.W_out"][units.start : units.stop] for units in table]
    listed, units = sum(map(len, model.contexts())), sum(units.stop - units.start for units in table)
    declared = {"table_units": listed, "table_weights": sum(map(len, model.levels[1:]))}
    measured = {"table_units": units, "table_weights": sum(map(nonzeros, rows))}
    return check_net(subject, declared, measured, max_length=8, samples=SAMPLES)


# Saboteurs


def edited(subject: Subject, name: str, index: Index = EVERYTHING, *, times: float = 1.0, plus: float = 0.0) -> Subject:
    """Return the subject with a part of one array multiplied by a number and moved by another."""
    array = subject.weights.arrays[name].copy()
    array[index] = times * array[index] + plus if times else plus
    return replace(subject, weights=subject.weights.with_array(name, array))


def on_every_member(sabotage: Sabotage) -> Sabotage:
    """Return a saboteur that breaks all members of a group."""

    def run(subject: Subject) -> Subject:
        members = subject.data.get("members")
        return sabotage(subject) if members is None else subject.with_data(members=tuple(map(sabotage, members)))

    return run


def zeroed(subject: Subject, name: str, index: Index = EVERYTHING) -> Subject:
    """Return the subject with a part of one array set to zero."""
    return edited(subject, name, index, times=0.0)


def zeroing(name: str, index: Index = EVERYTHING) -> Sabotage:
    """Return the saboteur that sets a part of one array to zero."""
    return partial(zeroed, name=name, index=index)


def divided(weights: Weights[Transformer], ending: str, by: float) -> Weights[Transformer]:
    """Return the net with all arrays whose names end so divided by a number."""
    for name in [name for name in weights.arrays if name.endswith(ending)]:
        weights = weights.with_array(name, weights.arrays[name] / by)
    return weights


def without_norms(subject: Subject) -> Subject:
    """Return the subject with every norm taken out."""
    net: Weights[Transformer] = subject.weights
    arrays = {name: array for name, array in net.arrays.items() if ".ln" not in name}
    plain = replace(net.architecture, norm=False, groups=())
    return replace(subject, weights=replace(net, architecture=plain, arrays=arrays))
