"""Log-depth automata: the state after every letter, in ⌈log₂ T⌉ layers of the stated size."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2

import numpy as np
import pytest

from built import ATTENTIONS, all_words, random_words, states, walked
from cases import all_pairs, each, each_then_slow, in_turn
from vitrify.constructions import catalogue
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.log_depth import layers_for, log_depth, sizes
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import (
    alternating_group,
    cyclic,
    divisibility,
    flip_flop,
    gridworld,
    random_automaton,
    symmetric_group,
)

LENGTH = 100  # not a power of two
LENGTHS = (1, 2, 3, 5, 8, 9, LENGTH)
MOST_WORDS = 10_000

MACHINES = {
    "S5": symmetric_group(5),
    "A5": alternating_group(5),
    "random, 7 states, 2 letters": random_automaton(7, 2, seed=7),
    "random, 7 states, 3 letters": random_automaton(7, 3, seed=8),
    "random, 7 states, 4 letters": random_automaton(7, 4, seed=9),
    "(ab|ba)*": Automaton.from_regex("(ab|ba)*"),
    "divisibility by 7": divisibility(7),
}
TINY = {
    "one state": cyclic(1),
    "one letter": cyclic(5, 1),
    "flip-flop": flip_flop(),
    "corridor": gridworld(6),
    "two letters of a reset": random_automaton(2, 2, seed=0),
}


def build(machine: Automaton, attention: Attention = "softmax", length: int = LENGTH) -> Weights:
    return assemble(log_depth(machine, attention=attention, max_length=length))


def short_words(machine: Automaton, longest: int) -> np.ndarray:
    """All words of the greatest length that has at most so many; their prefixes are all shorter ones."""
    letters = len(machine.alphabet)
    length = max(n for n in range(longest + 1) if letters**n <= MOST_WORDS)
    return all_words(letters, length)


@pytest.mark.long
@pytest.mark.parametrize("name", MACHINES)
def test_every_short_word_and_hundreds_of_long_ones(name: str) -> None:
    machine = MACHINES[name]
    attention = ATTENTIONS[list(MACHINES).index(name) % 3]
    weights = build(machine, attention)
    short = short_words(machine, 8)
    assert short.shape[1] == 8 or len(machine.alphabet) > 2
    np.testing.assert_array_equal(states(weights, short), walked(machine, short))
    long = random_words(len(machine.alphabet), LENGTH, 300, seed=1)
    np.testing.assert_array_equal(states(weights, long), walked(machine, long))


@pytest.mark.long
@pytest.mark.parametrize(("name", "length", "attention"), all_pairs([*MACHINES, *TINY], LENGTHS, ATTENTIONS))
def test_every_length_and_attention(name: str, length: int, attention: Attention) -> None:
    machine = {**MACHINES, **TINY}[name]
    weights = build(machine, attention, length)
    assert len(weights.architecture.blocks) == (ceil(log2(length)) if len(machine.states) > 1 else 0)
    words = random_words(len(machine.alphabet), length, 25, seed=length)
    np.testing.assert_array_equal(states(weights, words), walked(machine, words))
    short = short_words(machine, min(length, 5))
    np.testing.assert_array_equal(states(weights, short), walked(machine, short))


@each("name", ["S5", "(ab|ba)*", "random, 7 states, 3 letters", "flip-flop", "corridor"])
def test_every_initial_state(name: str) -> None:
    machine = {**MACHINES, **TINY}[name]
    words = random_words(len(machine.alphabet), 20, 50, seed=3)
    for start in range(len(machine.states)):
        for length in (1, 3, 20):
            begun = replace(machine, initial=start)
            weights = build(begun, "hard", length)
            found = states(weights, words[:, :length])
            np.testing.assert_array_equal(found, walked(begun, words[:, :length]))
            assert (found[:, 0] == start).all()


@each("length", LENGTHS)
@each("name", MACHINES)
def test_sizes(name: str, length: int) -> None:
    machine = MACHINES[name]
    number = len(machine.states)
    for attention in ATTENTIONS:
        size = build(machine, attention, length).sizes
        layers = ceil(log2(length))
        assert size.layers == size.heads == size.attention_layers == layers == layers_for(length)
        assert max(size.units_per_layer, default=0) <= 6 * number**2
        assert not sizes(machine, max_length=length, positions="dyadic").problems(size)
        if layers >= 2:
            assert size.d_model == 2 * number + 2 * layers
        else:
            assert size.d_model <= 2 * number + 2


@pytest.mark.parametrize("name", ["S5", "divisibility by 7"])
def test_the_width_grows_by_the_position_code_alone(name: str) -> None:
    machine = MACHINES[name]
    nets = {k: build(machine, length=2**k) for k in range(2, 10)}
    widths = [nets[k].architecture.d_model for k in nets]
    assert set(np.diff(widths)) == {2}
    code = {k: len(nets[k].labels.space("position").dims) for k in nets}
    assert code == {k: 2 * k - 1 for k in nets}
    assert {nets[k].architecture.d_model - code[k] for k in nets} == {2 * len(machine.states) + 1}


@pytest.mark.long
@each_then_slow("name, attention", *in_turn(MACHINES, ATTENTIONS))
def test_single_precision_gives_the_same_states(name: str, attention: Attention) -> None:
    machine = MACHINES[name]
    single = build(machine, attention).map(lambda array: array.astype(np.float32))
    words = random_words(len(machine.alphabet), LENGTH, 40, seed=5)
    np.testing.assert_array_equal(states(single, words), walked(machine, words))


def test_labels_of_a_run_are_the_maps_of_the_letters() -> None:
    """What the spaces say is what the construction says they hold: the map of the last 2^l letters."""
    from vitrify.net.inference import trace

    machine = MACHINES["S5"]
    word = [machine.alphabet[i - 1] for i in random_words(2, 9, 1, seed=2)[0].tolist()]
    seen = trace(build(machine, "hard", 16), word)
    maps = machine.maps()
    for layer in range(3):
        for t, value in enumerate(seen.read(f"map {layer}")):
            recent = word[max(0, t - 2**layer) : t]
            image = list(range(5))
            for letter in recent:
                image = [maps[letter][q] for q in image]
            assert value == image


def test_the_output_says_who_accepts() -> None:
    machine = MACHINES["(ab|ba)*"]
    output = build(machine).architecture.output
    assert output.kind == "recognizer"
    assert output.symbols == machine.states
    assert output.accepting == machine.accepting_states


def test_a_letter_may_be_called_like_the_beginning() -> None:
    machine = Automaton(("p", "q"), ("<s>", "<<s>>"), ((1, 0), (0, 1)), 0, frozenset({1}))
    weights = build(machine, "hard", 6)
    assert weights.architecture.inputs[0] == "<<<s>>>"
    words = all_words(2, 6)
    np.testing.assert_array_equal(states(weights, words), walked(machine, words))


def test_refusals_and_settings() -> None:
    machine = MACHINES["S5"]
    with pytest.raises(BuildRefused, match=r"--max-length .* must be a whole number of at least 1, not 0"):
        log_depth(machine, max_length=0)
    with pytest.raises(BuildRefused, match="use the dyadic position code"):
        assemble(log_depth(machine, max_length=100_000, positions="sqrt"))
    weights = catalogue.build(machine, attention="sparsemax", max_length=12, positions="quadratic")
    assert weights.about["positions"] == "quadratic"
    assert weights.about["attention"] == "sparsemax"
    words = all_words(2, 12)[::7]
    np.testing.assert_array_equal(states(weights, words), walked(machine, words))
    assert catalogue.build(machine).architecture.max_length == 128
