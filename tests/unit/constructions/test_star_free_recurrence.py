"""Star-free languages on layers of recurrences without negative factors: every length, bit by bit, and real numbers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from vitrify.certification import certify
from vitrify.certification.equivalence.hard import HardAttentionMachine
from vitrify.certification.evidence import Scope
from vitrify.certification.margins.values import Undecided
from vitrify.constructions.catalogue import build
from vitrify.constructions.star_free_recurrence import SHIFT
from vitrify.errors import BuildRefused
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.automata.analysis import is_aperiodic
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, random_automaton

NAME = "star-free-recurrence"


def machine(text: str) -> Automaton:
    return Automaton.from_regex(text, "ab")


def factors(net: Weights[Transformer]) -> set[float]:
    """All factors that letters and contexts can have."""
    seen: dict[str, np.ndarray] = {}
    words = np.random.default_rng(0).integers(1, len(net.architecture.inputs), size=(4, net.architecture.max_length))
    net.architecture.forward(net.prepared, with_pads(net.architecture, words), record=seen.__setitem__)
    streams = [seen[f"blocks.{i}.hook_resid_pre"][:, 1:] for i in range(len(net.architecture.blocks))]
    each = [stream @ net.arrays[f"blocks.{i}.rec.W_A"] for i, stream in enumerate(streams)]
    return {float(value) for value in np.concatenate(each).ravel()}


@pytest.mark.parametrize("text", ["(ab)*", "a*b*", "(a|b)a(a|b)*", "(ab|ba)*", "(a|b)*abb(a|b)*", "(a|b)*"])
def test_languages_are_proved_at_every_length(text: str) -> None:
    spec = machine(text)
    net = build(spec, NAME)
    evidence = certify(net, spec, prove=True, work=1e7)
    assert evidence.verdict == "holds"
    assert {link.scope for link in evidence.links} == {Scope.EVERY_LENGTH}
    assert not net.architecture.blocks or factors(net) <= {1.0, 1 / SHIFT}


def test_random_automata_without_groups_are_right_on_long_words() -> None:
    built = 0
    for seed in range(400):
        spec = random_automaton(5, 2, seed).reachable()
        if len(spec.states) < 4 or not is_aperiodic(spec):
            continue
        try:
            net = build(spec, NAME, max_length=2_000)
        except BuildRefused:  # its decomposition has a group, which no word cycles through
            continue
        built += 1
        words = np.random.default_rng(seed).integers(0, 2, size=(4, 2_000))
        answers = batch_logits(net, with_pads(net.architecture, words + 1)).argmax(axis=-1)
        assert (answers == spec.run_batch(words)).all()
    assert built >= 5


def test_states_are_two_coordinates_in_one_number() -> None:
    net = build(machine("(ab|ba)*"), NAME, max_length=300)
    words = np.random.default_rng(1).integers(1, 3, size=(8, 300))
    seen: dict[str, np.ndarray] = {}
    net.architecture.forward(net.prepared, with_pads(net.architecture, words), record=seen.__setitem__)
    for block in range(len(net.architecture.blocks)):
        for state in np.unique(seen[f"blocks.{block}.hook_state"]):
            newest = round(float(state))
            before = (Fraction(float(state)) - newest) * Fraction(SHIFT)
            assert before.denominator == 1
            assert newest >= 1
            assert before >= 0


def test_real_arithmetic_gives_the_same_answers() -> None:
    spec = machine("(ab)*")
    evidence = certify(build(spec, NAME, max_length=12), spec, reals=True, max_length=6)
    assert evidence.verdict == "holds"
    assert "reals" in {domain.arithmetic for domain in evidence.domains}


def test_factors_of_zero_and_one_can_not_tell_one_letter_from_two() -> None:
    """The same layers with the factor 0 at a reset: what comes before it is lost."""
    spec = machine("(ab)*")
    net = build(spec, NAME)
    arrays = {name: np.where(a < 0, -1.0, a) if name.endswith("rec.W_A") else a for name, a in net.arrays.items()}
    broken = replace(net, arrays=arrays)
    assert factors(broken) <= {0.0, 1.0}
    assert certify(broken, spec).verdict == "fails"
    once, twice = (batch_logits(broken, np.array([[0, *word]]))[0, -1] for word in ([1, 2], [1, 1, 2, 2]))
    assert np.array_equal(once, twice)


def test_a_factor_that_is_no_power_of_two_is_not_followed() -> None:
    net = build(machine("(ab)*"), NAME)
    odd = HardAttentionMachine(net.with_array("blocks.0.rec.W_A", net.arrays["blocks.0.rec.W_A"] * 0.75))
    with pytest.raises(Undecided, match="no power of two"):
        odd.steps([odd.start()[0]], [1])


def test_groups_are_refused_by_name() -> None:
    for modulus in (2, 3):
        with pytest.raises(
            BuildRefused, match=f"not negative recognize star-free languages only, .* the group Z{modulus}"
        ):
            build(cyclic(modulus), NAME)


def test_no_weight_depends_on_the_length() -> None:
    short, long = (build(machine("(ab)*"), NAME, max_length=length) for length in (10, 1_000))
    same = [np.array_equal(array, long.arrays[name]) for name, array in short.arrays.items() if "W_pos" not in name]
    assert all(same)
    assert not short.arrays["pos_embed.W_pos"].any()
