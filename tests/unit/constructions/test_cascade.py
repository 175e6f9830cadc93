"""Cascades of automata: exact under every kind of attention, as deep as the formula says, else refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

from built import ATTENTIONS, all_words, states, walked
from cases import each, each_then_slow, in_turn
from small_automata import full_transformations, long_words, minimal_automata
from vitrify.constructions import catalogue
from vitrify.constructions.cascade import cascade
from vitrify.constructions.catalogue import Attention
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.inference import trace
from vitrify.net.weights import Weights
from vitrify.spec.automata import cascade as cascades
from vitrify.spec.automata import holonomy
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.cascade import cascade as decomposed
from vitrify.spec.automata.families import (
    alternating_group,
    cyclic,
    divisibility,
    flip_flop,
    gridworld,
    permutation_group,
    product,
    random_automaton,
    symmetric_group,
)

LENGTH = 120

# attention layers: the sum over levels of the derived length of the group and of one for resets
DEPTHS = {
    "one state": (cyclic(1), 0),
    "the last letter": (Automaton.from_regex("(a|b)*a"), 0),
    "parity": (cyclic(2), 1),
    "mod 6": (cyclic(6, 6), 1),
    "flip-flop": (flip_flop(), 1),
    "gridworld of 5": (gridworld(5), 4),
    "(ab|ba)*": (Automaton.from_regex("(ab|ba)*"), 3),
    "S3": (symmetric_group(3), 2),
    "S4": (symmetric_group(4), 3),
    "S4 on itself": (symmetric_group(4, regular=True), 3),
    "A4": (alternating_group(4), 2),
    "quaternions": (permutation_group([(1, 2, 3, 0, 5, 6, 7, 4), (4, 7, 6, 5, 2, 1, 0, 3)]), 2),
    "divisibility by 7": (divisibility(7), 2),
    "divisibility by 12": (divisibility(12), 5),
    "all maps of 3": (full_transformations(3), 5),
    "all maps of 4": (full_transformations(4), 9),
    "corridor × S3": (product(gridworld(3), symmetric_group(3)), 4),
    "mod 2 and resets": (Automaton(("0", "1"), ("t", "r", "k"), ((1, 0, 0), (0, 0, 1)), 1, frozenset({1})), 2),
}


def build(machine: Automaton, attention: Attention = "softmax", length: int = LENGTH) -> Weights:
    return assemble(cascade(machine, attention=attention, max_length=length))


def check_states(machine: Automaton, weights: Weights, words: np.ndarray) -> None:
    names = np.array([machine.states.index(state) for state in weights.architecture.output.symbols])
    np.testing.assert_array_equal(names[states(weights, words)], walked(machine, words))


@pytest.mark.long
@each_then_slow("name, attention", *in_turn(DEPTHS, ATTENTIONS))
def test_long_words_and_depth(name: str, attention: Attention) -> None:
    machine, depth = DEPTHS[name]
    weights = build(machine, attention)
    check_states(machine, weights, long_words(len(machine.alphabet), LENGTH, seed=len(name), count=4))
    size, plan = weights.sizes, decomposed(machine)
    assert size.attention_layers == size.heads == plan.attention_layers == depth
    assert depth == sum(level.group.derived_length + bool(level.resets) for level in plan.levels)


@pytest.mark.long
@each_then_slow(
    "name, attention", *in_turn(["(ab|ba)*", "S3", "mod 2 and resets", "parity", "the last letter"], ATTENTIONS)
)
def test_all_words_to_length_8(name: str, attention: Attention) -> None:
    machine, _ = DEPTHS[name]
    for length in (8, 20):
        check_states(machine, build(machine, attention, length), all_words(len(machine.alphabet), 8))
    check_states(machine, build(machine, attention, 1), all_words(len(machine.alphabet), 1))


def transition_tables() -> list[Automaton]:
    """One automaton for every table of transitions that a minimal automaton with up to 3 states has.

    The net follows states; which of them accept is in its output only.
    """
    return list({m.transitions: m for n in (1, 2, 3) for m in minimal_automata(n)}.values())


def check_small(machine: Automaton, attention: Attention, seed: int) -> bool:
    """Whether the automaton is solvable; if so, it is right on words of length 120, else it is refused."""
    if decomposed(machine).unsolvable:
        with pytest.raises(BuildRefused, match="only solvable automata"):
            cascade(machine, attention=attention)
        return False
    weights = build(machine, attention)
    check_states(machine, weights, long_words(2, LENGTH, seed))
    assert weights.sizes.attention_layers == decomposed(machine).attention_layers
    return True


def test_some_minimal_automata_of_3_states() -> None:
    for place, machine in enumerate(transition_tables()[::12]):
        assert check_small(machine, ATTENTIONS[place % 3], place)


def random_ones(count: int) -> list[Automaton]:
    return [random_automaton(2 + seed % 5, 2 + seed % 7 % 2, seed) for seed in range(count)]


def test_some_random_automata() -> None:
    assert sum(check_small(m, ATTENTIONS[place % 3], place) for place, m in enumerate(random_ones(200)[::14])) >= 12


@pytest.mark.slow
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_every_minimal_automaton_of_up_to_3_states(attention: Attention) -> None:
    assert all(check_small(machine, attention, place) for place, machine in enumerate(transition_tables()))


@pytest.mark.slow
def test_two_hundred_random_automata_of_up_to_6_states() -> None:
    right = sum(check_small(m, ATTENTIONS[place % 3], place) for place, m in enumerate(random_ones(200)))
    assert right >= 180


def test_coordinates_are_those_before_the_letter() -> None:
    """The glass box: the coordinate of the one level of parity is the number of ones before each letter."""
    weights = build(cyclic(2), length=9)
    seen = trace(weights, ["1", "1", "0", "1", "1"])
    assert seen.read("level 1, factor 1: count")[1:] == [0, 1, 2, 2, 3]
    assert seen.read("level 1, factor 1: remainder 1")[1:] == ["0", "1", "0", "0", "1"]
    assert seen.read("state")[1:] == ["1", None, None, "1", None]


def test_unreachable_states_are_left_out() -> None:
    machine = Automaton(("p", "q", "lost"), ("a", "b"), ((1, 0), (0, 1), (0, 1)), 0, frozenset({0, 2}))
    weights = build(machine, length=10)
    assert weights.architecture.output.symbols == ("p", "q")
    check_states(machine, weights, all_words(2, 6))


@each(
    ("machine", "level", "group", "perfect"),
    [
        (symmetric_group(5), "level 1 of 1", "S5 of 120", 60),
        (alternating_group(5), "level 1 of 1", "A5 of 60", 60),
        (full_transformations(5), "level 1 of 4", "S5 of 120", 60),
        (product(flip_flop(), alternating_group(5)), "level 2 of 2", "A5 of 60", 60),
    ],
    ids=["S5", "A5", "T5", "flip-flop × A5"],
)
def test_what_is_not_solvable_is_refused_by_name(machine: Automaton, level: str, group: str, perfect: int) -> None:
    with pytest.raises(BuildRefused) as refused:
        cascade(machine)
    message = str(refused.value)
    assert f"{level} has the group {group} permutations" in message
    assert f"stops at order {perfect}" in message
    assert "--construction log-depth" in message


def test_other_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BuildRefused, match=r"--max-length .* must be a whole number of at least 1, not 0"):
        cascade(cyclic(3), max_length=0)
    monkeypatch.setattr(holonomy, "MAX_IMAGE_SETS", 10)
    with pytest.raises(
        BuildRefused, match=r"of 5 states have more than 10 different image sets.*--construction log-depth"
    ):
        cascade(full_transformations(5))
    monkeypatch.undo()
    monkeypatch.setattr(cascades, "MAX_STEPS", 10)
    with pytest.raises(BuildRefused, match=r"has 4 levels and more than \d+ chains.*--construction log-depth"):
        cascade(gridworld(5))
    monkeypatch.undo()
    monkeypatch.setattr("vitrify.constructions._cascade_reach.MAX_NODES", 3)
    with pytest.raises(BuildRefused, match=r"group S3 meet more than 3 combinations.*--construction log-depth"):
        cascade(symmetric_group(3))


def test_a_full_cascade_of_many_states_is_refused_with_the_count() -> None:
    machine = Automaton(
        tuple(map(str, range(14))),
        ("turn", "merge"),
        tuple(((q + 1) % 14, 0 if q == 1 else q) for q in range(14)),
        0,
        frozenset({0}),
    )
    with pytest.raises(BuildRefused, match=re.escape("14 states have more than 4096 different image sets")):
        cascade(machine)


def test_settings() -> None:
    weights = catalogue.build(symmetric_group(3), "cascade", attention="sparsemax", max_length=9)
    assert weights.architecture.max_length == 9
    assert weights.about["attention"] == "sparsemax"
    assert weights.about["levels"] == "3 tiles, S3"
    assert catalogue.build(flip_flop(), "cascade").architecture.max_length == 128
    assert catalogue.build(flip_flop(), "cascade", attention="hard", max_length=30).architecture.pads == 1
    assert catalogue.build(cyclic(2), "cascade", attention="hard", max_length=30).architecture.pads == 30
