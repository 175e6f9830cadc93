"""Gridworlds in two attention layers: exact, of the promised size, and nothing else is taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from built import ATTENTIONS, all_words, states, walked
from cases import each, each_then_slow, in_turn
from small_automata import corridors, long_words
from vitrify.constructions import catalogue
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.gridworld import gridworld as built_gridworld
from vitrify.constructions.gridworld import sizes
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import corridor, cyclic, flip_flop, gridworld, random_automaton, symmetric_group


def check_states(machine: Automaton, weights: Weights, words: np.ndarray) -> None:
    names = np.array([machine.states.index(state) for state in weights.architecture.output.symbols])
    np.testing.assert_array_equal(names[states(weights, words)], walked(machine, words))


def random_corridor(cells: int, seed: int) -> Automaton:
    rng = np.random.default_rng(seed)
    moves = [(-1, 1), (1, -1, 0), (0, 1, -1), (1, -1, -1)][seed % 4]
    return corridors(cells, int(rng.integers(cells)), moves, rng.permutation(cells).tolist())


@pytest.mark.long
@each_then_slow("cells, attention", *in_turn(range(2, 8), ATTENTIONS))
def test_long_walks_and_sizes(cells: int, attention: Attention) -> None:
    machine = random_corridor(cells, seed=cells)
    length = 100 if attention != "hard" else 60
    weights = assemble(built_gridworld(machine, attention=attention, max_length=length))
    check_states(machine, weights, long_words(len(machine.alphabet), length, seed=cells))
    size = weights.sizes
    assert not sizes(machine, max_length=length, attention=attention).problems(size)
    bits = (2 * length + 2 * cells - 2).bit_length()
    assert size.d_model == (2 * cells - 1) * bits + 5 * cells + (attention != "hard")


@each("attention", ATTENTIONS)
@each("cells", [2, 3, 4])
def test_all_words_from_every_cell(cells: int, attention: Attention) -> None:
    for start in range(cells):
        machine = corridors(cells, start, (-1, 1), list(range(cells)))
        for length in (1, 8):
            weights = assemble(built_gridworld(machine, attention=attention, max_length=length))
            check_states(machine, weights, all_words(2, length))


def test_letters_that_move_one_way() -> None:
    machine = Automaton.from_regex("(a|b)*a(a|b)*a(a|b)*")
    weights = assemble(built_gridworld(machine, max_length=10))
    check_states(machine, weights, all_words(2, 10))
    assert weights.sizes.units == 2 * 10 + 2 * 3


@each("seed", range(12))
def test_corridors_are_recognised_under_other_names(seed: int) -> None:
    machine = random_corridor(2 + seed % 6, seed)
    found = corridor(machine)
    assert found is not None
    cells, moves = found
    for place, cell in enumerate(cells):
        for letter, move in enumerate(moves):
            assert machine.transitions[cell][letter] == cells[min(max(place + move, 0), len(cells) - 1)]
    assert sorted(cells) == list(range(len(machine.states)))


def test_what_is_no_corridor() -> None:
    assert corridor(gridworld(1)) is None
    assert corridor(flip_flop()) is not None
    others = [cyclic(3), symmetric_group(3), Automaton.from_regex("(ab|ba)*"), Automaton.from_regex("(ab)*")]
    jump = Automaton(("0", "1", "2"), ("R", "RR"), ((1, 2), (2, 2), (2, 2)), 0, frozenset({2}))
    two = Automaton(("0", "1", "2", "3"), ("a",), ((0,), (0,), (2,), (2,)), 0, frozenset({0}))
    lasso = Automaton(("0", "1", "2"), ("a",), ((1,), (2,), (1,)), 0, frozenset({0}))
    for machine in (*others, jump, two, lasso):
        assert corridor(machine) is None
        if machine not in (two,):  # its reachable part is one cell
            with pytest.raises(
                BuildRefused, match=r"this automaton is not one: build it with --construction cascade or log-depth"
            ):
                built_gridworld(machine)


def brute_force(machine: Automaton) -> bool:
    """Whether some order of the states makes every letter a move, by trying all orders."""
    from itertools import permutations

    n = len(machine.states)
    maps = set(machine.maps().values())
    if maps == {tuple(range(n))}:
        return False
    for order in permutations(range(n)):
        allowed = set()
        for move in (-1, 0, 1):
            image = [0] * n
            for place, cell in enumerate(order):
                image[cell] = order[min(max(place + move, 0), n - 1)]
            allowed.add(tuple(image))
        if maps <= allowed:
            return True
    return False


def test_recognition_agrees_with_brute_force() -> None:
    verdicts = []
    for seed in range(300):
        machine = random_automaton(2 + seed % 2, 1 + seed % 3, seed)
        verdicts.append(brute_force(machine))
        assert (corridor(machine) is not None) == verdicts[-1]
    assert 10 <= sum(verdicts) <= 200


def test_refusals_and_settings() -> None:
    with pytest.raises(BuildRefused, match=r"--max-length .* must be a whole number of at least 1, not 0"):
        built_gridworld(gridworld(3), max_length=0)
    weights = catalogue.build(gridworld(3), "gridworld", attention="sparsemax", max_length=9)
    assert weights.architecture.max_length == 9
    assert weights.about["cells"] in ("0 1 2", "2 1 0")
    assert catalogue.build(gridworld(3), "gridworld").architecture.max_length == 128
