"""Commutative automata: exact counts in one attention layer, groups without and others with a second block."""

from __future__ import annotations

from itertools import permutations
from math import prod

import numpy as np
import pytest

from built import ATTENTIONS, all_words, random_words, states, walked
from cases import each, each_then_slow, in_turn
from vitrify.constructions import catalogue
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.commutative import (
    Counter,
    commutative,
    group_counters,
    power_counters,
    units_for,
)
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic, flip_flop, permutation_group, product, symmetric_group


def coins(enough: int) -> Automaton:
    """What coins of 1 and of 2 add up to, until it is enough."""
    table = tuple((min(have + 1, enough), min(have + 2, enough), have) for have in range(enough + 1))
    return Automaton(tuple(map(str, range(enough + 1))), ("one", "two", "none"), table, 0, frozenset({enough}))


LENGTH = 60
COUNTING: tuple[Attention, ...] = ("softmax", "sparsemax")

GROUPS = {
    "mod 1": cyclic(1),
    "mod 2": cyclic(2),
    "mod 5": cyclic(5),
    "mod 6, all steps": cyclic(6, 6),
    "mod 2 × mod 2": product(cyclic(2), cyclic(2)),
    "mod 2 × mod 3": product(cyclic(2), cyclic(3)),
    "mod 2 × mod 4": product(cyclic(2), cyclic(4)),
    "mod 3 × mod 3": product(cyclic(3), cyclic(3)),
    "mod 2 × mod 2 × mod 3": product(product(cyclic(2), cyclic(2)), cyclic(3)),
}
OTHERS = {
    "at least one a": Automaton.from_regex("(a|b)*a(a|b)*"),
    "at least two a": Automaton.from_regex("(a|b)*a(a|b)*a(a|b)*"),
    "an a and a b": Automaton.from_regex("(a|b)*(a(a|b)*b|b(a|b)*a)(a|b)*"),
    "at most two letters": Automaton.from_regex("(a|b)?(a|b)?"),
    "mod 3 and some b": product(cyclic(3), Automaton.from_regex("bb*")),
    "two, then mod 3": Automaton.from_regex("a|aa(aaa)*"),
}
TWO_BLOCKS = {
    # coins of 1 and 2 up to a sum: 2 is two of the one or one of the other, which is no product of classes
    "coins, 3 is enough": coins(3),
    "coins, 5 is enough": coins(5),
}


def saturated(*tops: int) -> Automaton:
    """Counters that stop at their tops, one letter each."""
    letters = [chr(97 + k) for k in range(len(tops))]

    def step(counts: tuple[int, ...], letter: str) -> tuple[int, ...]:
        at = letters.index(letter)
        return tuple(min(c + (k == at), tops[k]) for k, c in enumerate(counts))

    return Automaton.explore((0,) * len(tops), letters, step, lambda counts: counts == tops)


def build(machine: Automaton, attention: Attention = "softmax", length: int = LENGTH) -> Weights:
    return assemble(commutative(machine, attention=attention, max_length=length))


def hard_words(machine: Automaton, length: int) -> np.ndarray:
    """Words of one letter and of one letter after another, which drive counts to their ends, and random ones."""
    letters = range(1, len(machine.alphabet) + 1)
    ends = [[a] * (length // 2) + [b] * (length - length // 2) for a in letters for b in letters]
    return np.concatenate([np.array(ends), random_words(len(letters), length, 60, seed=length)])


def check_states(machine: Automaton, weights: Weights) -> None:
    """Every word with at most 5,000 of its length, and long ones; the net speaks of the reachable states only."""
    names = np.array([machine.states.index(state) for state in weights.architecture.output.symbols])
    letters, length = len(machine.alphabet), weights.architecture.max_length
    longest = max(n for n in range(min(length, 8) + 1) if letters**n <= 5_000)
    for words in (all_words(letters, longest), hard_words(machine, length)):
        np.testing.assert_array_equal(names[states(weights, words)], walked(machine, words))


@pytest.mark.long
@each_then_slow("name, attention", *in_turn([*GROUPS, *OTHERS, *TWO_BLOCKS], COUNTING))
def test_states(name: str, attention: Attention) -> None:
    machine = {**GROUPS, **OTHERS, **TWO_BLOCKS}[name]
    for length in (1, 7, LENGTH):
        weights = build(machine, attention, length)
        check_states(machine, weights)
        size = weights.sizes
        assert size.attention_layers == size.heads == (1 if len(machine.reachable().states) > 1 else 0)


@each("name", [*GROUPS, *OTHERS])
def test_sizes_of_one_layer_nets(name: str) -> None:
    machine = {**GROUPS, **OTHERS}[name].reachable()
    counters, _ = group_counters(machine) if machine.is_group() else power_counters(machine)
    for attention in COUNTING:
        size = build(machine, attention).sizes
        assert size.layers == size.heads == min(len(counters), 1)
        assert size.units == units_for(counters, LENGTH)
        heaviest = max((max(c.weights) for c in counters), default=0)
        assert size.units <= 2 * LENGTH * heaviest * len(counters)


@pytest.mark.parametrize("name", TWO_BLOCKS)
def test_states_that_are_no_products_of_classes_take_a_second_block(name: str) -> None:
    machine = TWO_BLOCKS[name]
    weights = build(machine)
    size = weights.sizes
    assert size.layers == 2
    assert size.heads_per_layer == (1, 0)
    _, table = power_counters(machine)
    assert size.units_per_layer[1] == len(table)


@each("seed", range(6))
def test_random_abelian_permutation_automata(seed: int) -> None:
    """Letters are random elements of a product of cyclic groups, acting on one of its orbits in shuffled names."""
    rng = np.random.default_rng(seed)
    orders = [(2, 3), (4,), (2, 2), (2, 4), (3, 3), (2, 2, 2)][seed]
    elements = list(np.ndindex(*orders))
    shuffled = rng.permutation(len(elements)).tolist()
    place = {element: shuffled[k] for k, element in enumerate(elements)}
    letters = [tuple(int(rng.integers(order)) for order in orders) for _ in range(3)]
    table = [[0] * 3 for _ in elements]
    for element in elements:
        for k, letter in enumerate(letters):
            target = tuple((e + s) % order for e, s, order in zip(element, letter, orders, strict=True))
            table[place[element]][k] = place[target]
    machine = Automaton(
        tuple(f"q{k}" for k in range(len(elements))),
        ("x", "y", "z"),
        tuple(map(tuple, table)),
        int(rng.integers(len(elements))),
        frozenset({0}),
    )
    for attention in COUNTING:
        weights = build(machine, attention, 30)
        check_states(machine, weights)
        assert weights.sizes.layers <= 1


@each("tops", [(2, 1), (3, 2), (1, 1, 1)])
@each("attention", COUNTING)
def test_counters_that_saturate(tops: tuple[int, ...], attention: Attention) -> None:
    machine = saturated(*tops)
    assert not machine.is_group()
    weights = build(machine, attention, 20)
    check_states(machine, weights)
    assert weights.sizes.layers == 1


GROUP_ORDERS = {
    "Z2 × Z2": (product(cyclic(2), cyclic(2)), 4, [2, 2]),
    "Z4": (cyclic(4), 4, [4]),
    "Z6": (cyclic(6), 6, [6]),
    "Z2 × Z3 is Z6": (product(cyclic(2), cyclic(3)), 6, [6]),
    "Z2 × Z4": (product(cyclic(2), cyclic(4)), 8, [2, 4]),
    "Z3 × Z3": (product(cyclic(3), cyclic(3)), 9, [3, 3]),
    "Z2 × Z2 × Z4": (product(product(cyclic(2), cyclic(2)), cyclic(4)), 16, [2, 2, 4]),
    "Klein, by permutations": (permutation_group([[1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]]), 4, [2, 2]),
}


@each("name", GROUP_ORDERS)
def test_the_decomposition_of_a_group(name: str) -> None:
    machine, size, orders = GROUP_ORDERS[name]
    counters, table = group_counters(machine)
    assert prod(counter.period for counter in counters) == size == len(table)
    assert sorted(counter.period for counter in counters) == orders
    assert all(counter.preperiod == 0 for counter in counters)
    assert sorted(table.values()) == list(range(len(machine.states)))
    for classes, state in table.items():  # each letter moves the remainders by its weights
        for k, target in enumerate(machine.transitions[state]):
            moved = tuple((c + n.weights[k]) % n.period for c, n in zip(classes, counters, strict=True))
            assert table[moved] == target


def test_classes_of_a_counter() -> None:
    counter = Counter("#a", (1,), 2, 3)
    assert [counter.of(number) for number in range(9)] == [0, 1, 2, 3, 4, 2, 3, 4, 2]
    assert counter.classes == 5


def test_units_are_counted_where_a_class_changes() -> None:
    assert units_for((Counter("#a", (1, 0), 0, 1),), 10) == 0
    assert units_for((Counter("#a", (1, 0), 1, 1),), 10) == 2
    assert units_for((Counter("#a", (2, 0), 0, 2),), 10) == 40
    assert units_for((), 10) == 0


def test_letters_that_act_alike_share_a_counter() -> None:
    machine = Automaton.from_regex("(a|b|c)*a(a|b|c)*", alphabet="abc")
    counters, _ = power_counters(machine)
    assert [counter.weights for counter in counters] == [(1, 0, 0)]
    twice = Automaton(("0", "1"), ("a", "b", "c"), ((1, 1, 0), (1, 1, 1)), 0, frozenset({1}))
    assert [counter.weights for counter in power_counters(twice)[0]] == [(1, 1, 0)]


def test_unreachable_states_are_left_out() -> None:
    machine = Automaton(("p", "q", "lost"), ("a", "b"), ((1, 0), (0, 1), (0, 1)), 0, frozenset({0, 2}))
    weights = build(machine)
    assert weights.architecture.output.symbols == ("p", "q")
    assert weights.architecture.output.accepting == ("p",)
    check_states(machine, weights)


@pytest.mark.parametrize("machine", [symmetric_group(3), flip_flop()], ids=["S3", "flip-flop"])
def test_letters_that_do_not_commute_are_named(machine: Automaton) -> None:
    with pytest.raises(BuildRefused) as refused:
        commutative(machine)
    message = str(refused.value)
    pairs = [(a, b) for a, b in permutations(machine.alphabet, 2) if f"the word {a!r} {b!r} leads" in message]
    assert len(pairs) == 1
    a, b = pairs[0]
    start = next(s for s in machine.states if f"from state {s!r}" in message)
    begun = machine.states.index(start)
    maps = machine.maps()
    one, other = machine.states[maps[b][maps[a][begun]]], machine.states[maps[a][maps[b][begun]]]
    assert one != other
    assert f"leads to {one!r} and {b!r} {a!r} to {other!r}" in message
    assert "--construction log-depth" in message


def test_refusals_and_settings() -> None:
    with pytest.raises(BuildRefused, match=r"hard attention averages .* use --attention softmax or sparsemax"):
        build(cyclic(3), "hard")
    with pytest.raises(BuildRefused, match=r"--max-length .* must be a whole number of at least 1, not 0"):
        commutative(cyclic(3), max_length=0)
    weights = catalogue.build(cyclic(3), "commutative", attention="sparsemax", max_length=9)
    assert weights.architecture.max_length == 9
    assert weights.about["attention"] == "sparsemax"
    assert catalogue.build(cyclic(3), "commutative").architecture.max_length == 128
    assert set(COUNTING) < set(ATTENTIONS)
