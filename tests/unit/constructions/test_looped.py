"""Automata by one layer in a loop: one weight set and one temperature for every length, sharp enough and no sharper."""

from __future__ import annotations

from dataclasses import replace
from math import exp

import numpy as np
import pytest

from built import ATTENTIONS, all_words, random_words, states, walked
from vitrify.certification.margins.net import margins
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.looped import looped, temperature
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.inference import trace
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, flip_flop, product, random_automaton, symmetric_group

MACHINES = {
    "S5": symmetric_group(5),
    "parity": cyclic(2),
    "one state": cyclic(1),
    "flip-flop × counter": product(flip_flop(), cyclic(3)),
    "random": random_automaton(7, 2, seed=7),
    "(ab|ba)*": Automaton.from_regex("(ab|ba)*"),
}
POSITIONS = "pos_embed.W_pos"


def build(name: str, length: int, attention: Attention = "softmax") -> Weights:
    return assemble(looped(MACHINES[name], max_length=length, attention=attention))


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("name", MACHINES)
def test_every_short_word_and_long_ones(name: str, attention: Attention) -> None:
    machine = MACHINES[name]
    for length in (1, 2, 5):
        words = all_words(len(machine.alphabet), min(length, 4))
        np.testing.assert_array_equal(states(build(name, length, attention), words), walked(machine, words))
    words = random_words(len(machine.alphabet), 70, 20, seed=1)
    np.testing.assert_array_equal(states(build(name, 70, attention), words), walked(machine, words))


def test_no_weight_depends_on_the_length() -> None:
    """One set of weights is right at each length, in as many rounds as that length needs, and not in fewer."""
    long = build("S5", 700)
    assert long.sizes.d_model == 2 * 5 + 3
    assert long.sizes.units == 2 * 5 * 5 + 3
    for length, rounds in ((3, 2), (10, 4), (100, 7), (700, 10)):
        short = build("S5", length)
        assert short.architecture.loops == rounds
        for array, other in short.arrays.items():
            np.testing.assert_array_equal(
                other, long.arrays[array][: len(other)] if array == POSITIONS else long.arrays[array]
            )
        words = random_words(2, length, 3, seed=length)
        for count, right in ((rounds, True), (rounds - 1, False)):
            net = replace(long, architecture=replace(long.architecture, loops=count))
            assert (states(net, words) == walked(MACHINES["S5"], words)).all() == right


@pytest.mark.parametrize(("name", "length"), [("parity", 400), ("S5", 400), ("flip-flop × counter", 100)])
def test_the_leak_is_that_of_the_nearest_keys(name: str, length: int) -> None:
    """A softmax over squares of distances leaks 2 Σ exp(-β δ²) on both sides; runs and the proof agree with that."""
    weights, states_ = build(name, length), len(MACHINES[name].states)
    chosen = temperature(states_)
    beta = float(weights.arrays["blocks.0.attn.beta"][0])
    assert beta == chosen["beta"]
    assert (states_ - 1) * 2 * sum(exp(-beta * d * d) for d in range(1, 9)) <= chosen["shortfall"] < 1 / 7
    word = [MACHINES[name].alphabet[i - 1] for i in random_words(len(MACHINES[name].alphabet), length, 1, seed=3)[0]]
    activations = trace(weights, word).activations
    far = [
        float(np.abs(z - np.round(z)).max())
        for z in (activations[f"blocks.{r}.attn.hook_z"] for r in range(weights.architecture.loops))
    ]
    proof = margins(weights)
    assert proof.holds
    older = [space.worst for space in proof.spaces if space.label.name.startswith("older map")]
    assert all(
        0 < measured <= proved <= 1.001 * chosen["shortfall"] for measured, proved in zip(far, older, strict=True)
    )


def test_a_softer_head_is_not_proved() -> None:
    weights = build("S5", 100)
    half = weights.with_array("blocks.0.attn.beta", weights.arrays["blocks.0.attn.beta"] / 2)
    assert not margins(half).holds
    assert margins(half).reason is not None


def test_lengths_end_where_rounding_reaches_the_gap() -> None:
    assert assemble(looped(cyclic(2), max_length=724), arithmetic="float32").architecture.loops == 10
    with pytest.raises(BuildRefused, match=r"must tell scores apart .* use a smaller maximum length or float64$"):
        assemble(looped(cyclic(2), max_length=725), arithmetic="float32")
