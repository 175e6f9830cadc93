"""Laws of the holonomy decomposition: it simulates the automaton, and its groups tell what the automaton is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from oracles.sympy_groups import derived_orders, groups_inside, sympy_group
from small_automata import has_a_counter, minimal_automata, solvable_by_monoid
from vitrify.spec.automata.analysis import analyze, transition_monoid
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.cascade import Cascade, cascade
from vitrify.spec.automata.families import alternating_group, product, symmetric_group
from vitrify.spec.automata.holonomy import Holonomy


@st.composite
def automata(draw: st.DrawFn, most: int = 6) -> Automaton:
    states, letters = draw(st.integers(1, most)), draw(st.integers(1, 3))
    state = st.integers(0, states - 1)
    table = draw(st.lists(st.tuples(*[state] * letters), min_size=states, max_size=states))
    return Automaton(tuple(map(str, range(states))), tuple("abc"[:letters]), tuple(table), draw(state), frozenset({0}))


def check_holonomy(machine: Automaton) -> None:
    """Every chain that words reach from every state's chain is that of the right state, and moves as it must."""
    holonomy = Holonomy(machine)
    chains = [holonomy.chain(state) for state in range(len(machine.states))]
    assert [holonomy.state(chain) for chain in chains] == list(range(len(machine.states)))
    seen = set(chains)
    for chain in chains:
        state = holonomy.state(chain)
        for letter in range(len(machine.alphabet)):
            after = holonomy.read(chain, letter)
            assert holonomy.state(after) == machine.transitions[state][letter]
            if after not in seen:
                seen.add(after)
                chains.append(after)
    check_levels(holonomy, chains)


def check_levels(holonomy: Holonomy, chains: list[tuple[int | None, ...]]) -> None:
    """Each level permutes or resets, and how it moves depends on the letter and the coordinates above, nothing else."""
    told: dict[object, object] = {}
    for tiles in (level.tiles for level in holonomy.levels):
        assert all(one == other or one & ~other for one in tiles for other in tiles)  # none inside another
    for chain in chains:
        for letter in range(len(holonomy.letters)):
            for level, step in enumerate(holonomy.walk(chain, letter)):
                assert told.setdefault((level, letter, chain[:level]), step.move) == step.move
                moved = step.move.permutation
                assert moved is None or sorted(moved) == list(range(len(holonomy.levels[level].tiles)))


def follow(plan: Cascade, word: list[int]) -> list[int]:
    """The states that a cascade passes through, from its levels' tables and nothing else."""
    machine = plan.automaton
    coordinates = [level.start for level in plan.levels]
    passed = [machine.initial]
    for letter in word:
        context = plan.first_contexts[letter]
        for place, level in enumerate(plan.levels):
            if context is None:
                break
            before, to = coordinates[place], level.next_contexts[context]
            coordinates[place] = level.moves[context](before)
            context = to.get(before) if isinstance(to, dict) else to  # type: ignore[arg-type]
        passed.append(machine.initial if context is None else machine.states.index(plan.states[context]))
    return passed


def check_cascade(machine: Automaton, word: list[int]) -> None:
    plan = cascade(machine)
    assert not any(move.permutation == tuple(range(level.size)) for level in plan.levels for move in level.moves)
    letters = [machine.alphabet[letter] for letter in word]
    assert tuple(plan.automaton.states[q] for q in follow(plan, word)) == machine.run(letters)


@given(automata())
@settings(max_examples=examples(80), deadline=None)
def test_the_holonomy_product_simulates_the_automaton(machine: Automaton) -> None:
    check_holonomy(machine)


@given(automata(), st.lists(st.integers(0, 2), min_size=30, max_size=60))
@settings(max_examples=examples(80), deadline=None)
def test_the_cascade_simulates_the_automaton(machine: Automaton, letters: list[int]) -> None:
    check_cascade(machine, [letter % len(machine.alphabet) for letter in letters])


def test_the_number_of_minimal_automata_is_the_known_one() -> None:
    assert [len(minimal_automata(n)) for n in (1, 2, 3)] == [2, 24, 1028]


@pytest.mark.parametrize("states", [1, 2, 3])
def test_all_small_minimal_automata(states: int) -> None:
    word = [0, 0, 1, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1, 1, 0, 1] * 2
    for machine in {m.transitions: m for m in minimal_automata(states)}.values():
        check_holonomy(machine)
        check_cascade(machine, word)
        check_classes(machine)


def check_classes(machine: Automaton) -> None:
    """Trivial groups are no counters, and solvable ones are those of the transition monoid."""
    plan = cascade(machine)
    groups = [group for _, group in plan.holonomy.groups()]
    assert all(group.order == 1 for group in groups) == (not has_a_counter(machine))
    assert all(level.group.order == 1 for level in plan.levels) == (not has_a_counter(machine))
    assert all(group.is_solvable for group in groups) == solvable_by_monoid(machine) == (plan.unsolvable is None)


def check_by_sympy(machine: Automaton) -> None:
    """SymPy says the same of the groups of the levels, and of those inside the transition monoid."""
    plan = cascade(machine)
    inside = groups_inside(machine)
    assert (plan.unsolvable is None) == all(group.is_solvable for group in inside)
    assert analyze(machine).solvable == all(group.is_solvable for group in groups_inside(machine.minimized()))
    for _, group in plan.holonomy.groups():
        assert [part.order for part in group.derived_series] == derived_orders(group.degree, group.generators)
        assert group.is_solvable == sympy_group(group.degree, group.generators).is_solvable
    assert all(group.order == 1 for _, group in plan.holonomy.groups()) == all(g.order() == 1 for g in inside)


@given(automata(most=4))
@settings(max_examples=examples(60), deadline=None)
def test_classes_of_random_automata(machine: Automaton) -> None:
    check_classes(machine)
    check_by_sympy(machine)


@pytest.mark.slow
@given(automata(most=6))
@settings(max_examples=examples(60), deadline=None)
def test_classes_of_larger_random_automata(machine: Automaton) -> None:
    if len(transition_monoid(machine.reachable())) <= 2_000:
        check_classes(machine)
        check_by_sympy(machine)


@pytest.mark.parametrize("machine", [symmetric_group(5), alternating_group(5)], ids=["S5", "A5"])
def test_groups_that_are_not_solvable(machine: Automaton) -> None:
    check_classes(machine)
    check_by_sympy(machine)
    assert cascade(machine).unsolvable is not None
    assert cascade(product(Automaton.from_regex("a*b*", "ab"), machine)).unsolvable is not None
