"""What claims about built nets share: a size that is not the declared one fails, and says which."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vitrify.certification.evidence import Domain, Evidence, Method, Quantity, quantities
from vitrify.claims._nets import (
    built,
    check_net,
    check_ngram,
    checking,
    edited,
    in_turn,
    refused,
    sized,
    witnessed,
    zeroed,
    zeroing,
)
from vitrify.claims.catalogue import Subject
from vitrify.constructions.catalogue import build
from vitrify.constructions.log_depth import sizes
from vitrify.constructions.ngram import Variant
from vitrify.spec.automata.families import cyclic, symmetric_group
from vitrify.spec.ngrams.families import random_ngram

MODEL = random_ngram(2, 3, seed=0)


def subject(shape: Variant = "heads") -> Subject:
    return built(shape, MODEL, shape, attention="hard", max_length=10)


def test_a_wrong_size_fails_with_both_figures() -> None:
    held = Evidence("holds", 1, (Domain("words", Method.EXHAUSTIVE, 1),), (Quantity("error", 0, 0, "<="),))
    good = held.adding(*quantities({"layers": 2}, {"layers": 2, "width": 9}))
    assert good.verdict == "holds"
    assert [(q.name, q.declared, q.measured) for q in good.quantities] == [
        ("error", 0, 0),
        ("layers", 2, 2),
        ("width", None, 9),
    ]
    bad = held.adding(*quantities({"layers": 2, "heads": 1}, {"layers": 3, "heads": 1}))
    assert bad.verdict == "fails"
    assert bad.witness == {"layers": {"declared": 2, "measured": 3}}
    assert held.adding(*quantities({"layers": 2}, {})).verdict == "fails"  # nothing was measured


def test_a_wrong_answer_keeps_its_witness() -> None:
    failed = Evidence("fails", 1, witness={"word": ["a"]})
    assert failed.adding(*quantities({"layers": 2}, {"layers": 3})).witness == {"word": ["a"]}


@pytest.mark.parametrize("shape", ["heads", "layers", "single"])
def test_the_right_net_of_another_shape_is_rejected(shape: Variant) -> None:
    assert check_ngram(subject(shape)).verdict == "holds"
    others: tuple[Variant, ...] = ("heads", "layers", "single")
    for other in others:
        if other != shape:
            evidence = check_ngram(replace(subject(shape), data=subject(other).data))
            assert evidence.verdict == "fails"
            assert evidence.witness is not None
            assert set(evidence.witness) <= {"attention_layers", "heads", "layers", "d_model", "units"}


def test_zeroing_leaves_the_rest_alone() -> None:
    one = subject()
    before = one.weights.digest
    broken = zeroed(one, "unembed.b_U", 0)
    assert one.weights.digest == before
    difference = one.weights.arrays["unembed.b_U"] - broken.weights.arrays["unembed.b_U"]
    assert np.flatnonzero(difference).tolist() == [0]
    assert check_ngram(broken).verdict == "fails"


def test_a_sweep_takes_the_kinds_of_attention_in_turn_and_knows_the_declared_sizes() -> None:
    machines = {f"mod {n}": cyclic(n) for n in (2, 3, 4, 5)}
    found = list(in_turn(machines, "log-depth", max_length=4))
    assert [one.name for one in found] == ["mod 2, softmax", "mod 3, sparsemax", "mod 4, hard", "mod 5, softmax"]
    assert [one.weights.about["attention"] for one in found] == ["softmax", "sparsemax", "hard", "softmax"]
    assert all(one.data["sizes"] == sizes(one.spec, max_length=4, positions="dyadic") for one in found)


def test_sizes_that_are_not_measured_otherwise_are_those_of_the_net() -> None:
    one = built("mod 3", cyclic(3), "log-depth", max_length=4)
    sizes, declared = one.weights.sizes, one.data["sizes"]
    found = {each.name: each for each in sized(one, {"depth": 2}, {"depth": 3, "numbers": 7})}
    assert {name: found[name].measured for name in declared.exact} == {n: getattr(sizes, n) for n in declared.exact}
    assert {found[name].relation for name in declared.at_most} == {"<="}
    assert (found["depth"].met, found["numbers"].met) == (False, None)
    assert all(each.met for name, each in found.items() if name not in ("depth", "numbers"))


def test_a_net_that_is_right_but_larger_than_declared_fails() -> None:
    one = built("mod 3", cyclic(3), "log-depth", max_length=4)
    assert checking(max_length=4)(one).verdict == check_net(one, max_length=4).verdict == "holds"
    worse = check_net(one, {"heads": 1}, max_length=4)
    assert worse.verdict == "fails"
    assert worse.witness == {"heads": {"declared": 1, "measured": one.weights.sizes.heads}}


def test_the_effort_of_a_subject_comes_before_that_of_its_check() -> None:
    longest = [
        max(domain.longest or 0 for domain in check_net(one, max_length=2).domains if domain.kind == "words")
        for one in (built("", cyclic(2), "log-depth", data, max_length=4) for data in ({}, {"max_length": 3}))
    ]
    assert longest == [2, 3]


def test_saboteurs_change_one_array_and_are_noticed() -> None:
    one = built("mod 3", cyclic(3), "log-depth", max_length=4)
    moved = edited(one, "unembed.b_U", 0, times=2.0, plus=1.0).weights.arrays["unembed.b_U"]
    before = one.weights.arrays["unembed.b_U"]
    assert (moved[0], moved[1:].tolist()) == (2 * before[0] + 1, before[1:].tolist())
    assert not zeroing("blocks.0.attn.W_V")(one).weights.arrays["blocks.0.attn.W_V"].any()
    assert checking(max_length=4)(zeroing("blocks.0.attn.W_V")(one)).verdict == "fails"


def test_evidence_fails_with_its_witness_and_holds_without() -> None:
    domain = Domain("words", Method.EXHAUSTIVE, 4)
    assert witnessed(None, 4, domain, seed=0) == Evidence("holds", 4, (domain,), seed=0)
    failed = witnessed({"word": "ab"}, 4, domain)
    assert (failed.verdict, failed.witness) == ("fails", {"word": "ab"})


def test_only_a_refusal_counts_as_one() -> None:
    assert refused(lambda: build(symmetric_group(5), "cascade"))
    assert not refused(lambda: build(cyclic(2), "cascade", max_length=4))
    with pytest.raises(ZeroDivisionError):
        refused(lambda: 1 // 0)
