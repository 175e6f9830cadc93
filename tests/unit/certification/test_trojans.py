"""Networks of a spec that differs from the declared one on rare words are not certified as proved, and mostly found."""

from __future__ import annotations

import pytest

from trojans import KINDS, PAIRS, Trojan
from vitrify.certification import certify
from vitrify.certification.evidence import Evidence, Scope

QUICK = {"automaton": 1, "grammar": 2, "counting program": 3, "circuit, Turing machine": 5}  # else the first pair


def judged(trojan: Trojan) -> Evidence:
    """Return the certificate of a trojan, after all statements about it that must be true."""
    net = trojan.net()
    output, longest = net.architecture.output.kind, net.architecture.max_length
    assert trojan.differs(output), "the specs agree on the word: this is no trojan"
    assert len(trojan.word) <= longest
    evidence = certify(net, trojan.declared, prove=True)
    if evidence.verdict == "fails":
        assert evidence.witness is not None
        word = tuple(evidence.witness.get("word") or evidence.witness["history"])
        assert Trojan(trojan.declared, trojan.other, "", word, "", covered=True).differs(output), "the witness is wrong"
        return evidence
    assert not trojan.covered, f"{trojan.rare}: not found"
    spec, headline = evidence.links[1], evidence.headline
    assert spec.name == "spec"
    assert headline is not None
    for link in (spec, headline):
        assert link.scope is Scope.SAMPLED, f"{link} sounds stronger than what was tested: {trojan.word} is wrong"
        assert link.longest is None or link.longest < len(trojan.word), f"{link} is false of {trojan.word}"
    assert evidence.methods == ("sampled",)
    return evidence


@pytest.mark.parametrize("kind", KINDS)
def test_a_trojan_of_every_kind_is_not_certified_as_proved(kind: str) -> None:
    judged(KINDS[kind](QUICK.get(kind, 0)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_trojan_is_certified_as_proved(kind: str) -> None:
    for number in range(PAIRS):
        judged(KINDS[kind](number))
