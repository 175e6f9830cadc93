"""Circuits of sums that are rounded after every addition, against the sums themselves; and why they have no groups."""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from vitrify.bounds.fixed_point import Grid
from vitrify.bounds.gates import GateWiring
from vitrify.bounds.rounded_sums import LEVEL_DEPTH, Map, chain, point_after, refuse_cycles, rounded_sum
from vitrify.errors import BuildRefused
from vitrify.spec.automata.analysis import is_aperiodic
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.cascade import cascade
from vitrify.spec.automata.holonomy import Holonomy


def monotone(points: int) -> list[Map]:
    return list(combinations_with_replacement(range(points), points))


def automaton(maps: list[Map] | tuple[Map, ...]) -> Automaton:
    points = len(maps[0])
    table = tuple(tuple(each[x] for each in maps) for x in range(points))
    return Automaton(tuple(map(str, range(points))), tuple(map(str, range(len(maps)))), table, 0, frozenset({0}))


def one_hot(word: tuple[int, ...], letters: int) -> list[bool]:
    return [letter == each for letter in word for each in range(letters)]


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[Map], int, int]:
    """Distinct monotone maps of a chain, a start, and a length."""
    points = draw(st.integers(1, 5))
    maps = draw(st.lists(st.sampled_from(monotone(points)), min_size=1, max_size=3, unique=True))
    return maps, draw(st.integers(0, points - 1)), draw(st.integers(0, 5))


@pytest.mark.long
@given(chains())
@settings(max_examples=examples(150), deadline=None)
def test_a_circuit_finds_the_point_after_every_word(case: tuple[list[Map], int, int]) -> None:
    maps, start, length = case
    wiring = GateWiring([f"{letter}@{at}" for at in range(length) for letter in range(len(maps))])
    words = [
        [(each, wiring.literals[at * len(maps) + letter]) for letter, each in enumerate(maps)] for at in range(length)
    ]
    ends = point_after(wiring, words, start, len(maps[0]))
    circuit = wiring.circuit([(str(point), literal) for point, literal in ends.items()])
    every = list(product(range(len(maps)), repeat=length))
    outputs = circuit.evaluate(np.array([one_hot(word, len(maps)) for word in every]).reshape(len(every), -1))
    for word, row in zip(every, outputs, strict=True):
        point = start
        for letter in word:
            point = maps[letter][point]
        assert [end for end, is_true in zip(ends, row, strict=True) if is_true] == [point]
    assert circuit.size.depth <= LEVEL_DEPTH * (len(maps[0]) - 1) + 1
    assert circuit.size.thresholds == 0


@pytest.mark.parametrize("grid", [Grid(1, 2, 1, 1), Grid(1, 2, 1, 2), Grid(0, 5, 1, 2)])
def test_a_circuit_adds_as_the_grid_does(grid: Grid) -> None:
    summands = np.array([-3, 1, 2])
    wiring = GateWiring([f"{number}@{at}" for at in range(6) for number in summands])
    positions = np.repeat(np.arange(6), 3)
    sums = rounded_sum(wiring, grid, np.tile(summands, 6), positions, wiring.literals)
    every = list(product(range(3), repeat=6))
    circuit = wiring.circuit([(str(total), literal) for total, literal in sums.items()])
    for word, row in zip(every, circuit.evaluate(np.array([one_hot(word, 3) for word in every])), strict=True):
        total = np.array(0)
        for letter in word:
            total = grid.plus(total, summands[letter])
        assert [x for x, is_true in zip(sums, row, strict=True) if is_true] == [total]


def test_the_depth_of_a_sum_stops_growing() -> None:
    grid, depths, gates = Grid(0, 4, 1, 2), {}, {}
    for length in (4, 8, 16, 32):
        wiring = GateWiring([f"{at}{sign}" for at in range(length) for sign in "-+"])
        sums = rounded_sum(wiring, grid, np.tile([-1, 1], length), np.repeat(np.arange(length), 2), wiring.literals)
        size = wiring.circuit([(str(x), literal) for x, literal in sums.items()]).size
        depths[length], gates[length] = size.depth, size.gates
    assert depths[8] <= depths[16] == depths[32] <= LEVEL_DEPTH * (grid.partial_sums - 1) + 1
    assert gates[32] < 4 * gates[16] < 16 * gates[8]


def test_monotone_maps_have_no_groups() -> None:
    """Of a chain of four points: all 35 maps together, and the holonomy of what they generate."""
    everything = automaton(monotone(4))
    assert is_aperiodic(everything)
    assert all(group.order == 1 for _, group in Holonomy(everything).groups())


def test_sums_that_wrap_around_or_are_exact_are_refused() -> None:
    wrapped = tuple((x + 1) % 4 for x in range(4))
    assert not is_aperiodic(automaton([wrapped]))
    with pytest.raises(
        BuildRefused, match=r"moves the points 0, 1, 2, … to \(1, 2, 3, 0\): such sums can count modulo"
    ):
        refuse_cycles([(0, 0, 1, 2), wrapped])
    with pytest.raises(BuildRefused, match="partial sums have more than 64 values"):
        chain(Grid(0, 5, 1), (1,))  # exact: no end
    assert chain(Grid(0, 5, 1, 3), (1,))[0] == (0, 1, 2, 3, 4, 5)


@pytest.mark.long
def test_the_tables_of_the_holonomy_grow_exponentially_with_the_chain() -> None:
    """So the cascade of general automata is refused for 17 points, where that of monotone maps is small."""

    def saturating(most: int) -> Automaton:
        points, maps = chain(Grid(0, most, 1, 10), (1, -1))
        assert len(points) == 2 * most + 1
        return automaton(maps)

    chains = [len(cascade(saturating(most)).next_chains) for most in (2, 3, 4)]
    assert all(large >= 4 * small for small, large in pairwise(chains))
    with pytest.raises(BuildRefused, match="too large"):
        cascade(saturating(8))
    grid = Grid(0, 8, 1, 10)
    wiring = GateWiring([f"{at}{sign}" for at in range(8) for sign in "-+"])
    rounded_sum(wiring, grid, np.tile([-1, 1], 8), np.repeat(np.arange(8), 2), wiring.literals)
    assert len(wiring.gates) < 20_000
