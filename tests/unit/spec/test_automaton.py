"""The automaton value: validation at birth, the reference semantics, and the small families."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import permutations, product
from math import factorial
from typing import Any

import numpy as np
import pytest

from cases import each
from vitrify.errors import InputError, SpecError
from vitrify.spec.automata import families as automata
from vitrify.spec.automata.automaton import Automaton

PARITY: dict[str, Any] = {
    "states": ["even", "odd"],
    "alphabet": ["0", "1"],
    "transitions": {"even": {"0": "even", "1": "odd"}, "odd": {"0": "odd", "1": "even"}},
    "initial": "even",
    "accepting": ["odd"],
}


def parity(**changed: Any) -> Automaton:
    return Automaton.from_dict(**(PARITY | changed))


def table(**changed: Any) -> Automaton:
    given: dict[str, Any] = {
        "states": ("p", "q"),
        "alphabet": ("a",),
        "transitions": ((1,), (0,)),
        "initial": 0,
        "accepting": frozenset({1}),
    }
    return Automaton(**(given | changed))


def test_it_runs_by_name_and_accepts_by_the_last_state() -> None:
    assert parity().run(["1", "0", "1", "1"]) == ("even", "odd", "odd", "even", "odd")
    assert parity().accepts("1011")
    assert not parity().accepts([])
    assert parity().run("") == ("even",)


def test_tokens_may_be_longer_than_a_character() -> None:
    memory = automata.flip_flop()
    assert memory.run(["set", "keep", "reset"]) == ("0", "1", "1", "0")
    assert memory.ids(["keep", "reset"]) == (2, 0)


def test_names_and_indices_tell_the_same_story() -> None:
    automaton = parity()
    assert (automaton.initial, automaton.initial_state) == (0, "even")
    assert (automaton.accepting, automaton.accepting_states) == (frozenset({1}), ("odd",))
    assert automaton.transitions == ((0, 1), (1, 0))
    assert automaton.named_transitions() == PARITY["transitions"]
    assert automaton.maps() == {"0": (0, 1), "1": (1, 0)}


def test_equal_values_are_one_key() -> None:
    assert {parity(): 1}[parity()] == 1
    assert parity() != parity(accepting=["even"])


def test_lists_and_arrays_become_tuples() -> None:
    assert table(states=["p", "q"], transitions=np.array([[1], [0]]), accepting=[1]) == table()
    assert isinstance(table(transitions=np.array([[1], [0]])).transitions[0][0], int)


def test_repr_rebuilds_small_ones_and_names_the_sizes_of_large_ones() -> None:
    for automaton in (parity(), parity(accepting=[]), automata.gridworld(5)):
        assert eval(repr(automaton)) == automaton
    assert repr(automata.cyclic(60)) == "<Automaton: 60 states, 2 letters, 1 accepting, initial '0'>"
    assert str(automata.cyclic(60)) == repr(automata.cyclic(60))


def test_the_array_can_not_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        parity().table[0, 0] = 1


@each(
    ("make", "fragments"),
    [
        (lambda: table(states=()), ["at least one state", "2 rows"]),
        (lambda: table(alphabet=()), ["at least one letter", "row 0 of transitions needs 0 entries"]),
        (lambda: table(states=("p", "p")), ["state 'p' is listed 2 times"]),
        (lambda: table(states=("p", "q q")), ["state 'q q' contains a blank; write for example 'q_q'"]),
        (lambda: table(alphabet=("",)), ["letter '' is empty"]),
        (lambda: table(alphabet=("\u00a0",)), ["contains a blank"]),
        (lambda: table(alphabet=("\ud800",)), ["surrogate"]),
        (lambda: table(states=("p", 3)), ["state 3 must be a string"]),
        (lambda: table(transitions=((1,),)), ["each of the 2 states, got 1 rows"]),
        (lambda: table(transitions=((1, 0), (0,))), ["row 0 of transitions needs 1 entries"]),
        (lambda: table(transitions=((2,), (-1,))), ["state index 2", "state index -1"]),
        (lambda: table(initial=2), ["initial state index 2 is outside 0 to 1"]),
        (lambda: table(accepting={7, 1}), ["accepting state index 7 is outside"]),
        (lambda: table(states=("p", "p"), initial=9, accepting={8}), ["listed 2 times", "index 9", "index 8"]),
        (lambda: parity(initial="odder"), ["initial state 'odder' is not listed"]),
        (lambda: parity(accepting=["odd", "odd", "x"]), ["'odd' is listed 2 times", "'x' is not listed"]),
        (lambda: parity(alphabet=["0"]), ["'even' --1--> 'odd' uses the letter '1', which is not listed in alphabet"]),
        (lambda: parity(states=["even"]), ["'odd' --0--> 'odd' uses the state 'odd', which is not listed in states"]),
        (
            lambda: parity(alphabet=["0", "1", "2"], states=["even", "odd", "new"]),
            ["('even', '2'), ('odd', '2'), ('new', '0'), ('new', '1'), ('new', '2'); add them, or add a sink state"],
        ),
        (lambda: automata.cyclic(0), ["n must be at least 1, got 0"]),
        (lambda: automata.divisibility(2, base=1), ["base must be at least 2"]),
        (lambda: automata.symmetric_group(1), ["n must be at least 2"]),
        (lambda: automata.permutation_group([]), ["at least one generator"]),
        (lambda: automata.permutation_group([[1, 0], [0, 0], [0, 1, 2]]), ["got [0, 0]", "got [0, 1, 2]"]),
    ],
)
def test_all_broken_rules_are_told_at_once(make: Callable[[], Automaton], fragments: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        make()
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_two_targets_are_refused_as_not_deterministic() -> None:
    triples = [("p", "a", "p"), ("p", "a", "q"), ("q", "a", "q"), ("q", "a", "q")]
    with pytest.raises(SpecError) as caught:
        Automaton.from_dict(states="pq", alphabet="a", transitions=triples, initial="p", accepting="")
    assert [str(problem) for problem in caught.value.problems] == [
        "the automaton is not deterministic: state 'p' on letter 'a' leads to 'p' and 'q'; keep one of them",
        "the transition of state 'q' on letter 'a' is given 2 times",
    ]


def test_unknown_letters_are_all_named() -> None:
    with pytest.raises(InputError, match=r"0, 1 only; unknown: '2', 'x'; give the word as a list"):
        parity().accepts("012x2")
    with pytest.raises(InputError, match=r"unknown: '10'$"):
        parity().run(["10"])


@pytest.mark.parametrize(
    ("letters", "fragment"),
    [
        (np.array([[0, 2, -1]]), "from 0 to 1; unknown: -1, 2"),
        (np.array([0, 1]), "array [batch, pos], got int64 (2,)"),
        (np.array([[0.0]]), "got float64 (1, 1)"),
    ],
)
def test_a_bad_batch_is_refused(letters: np.ndarray, fragment: str) -> None:
    with pytest.raises(InputError) as caught:
        parity().run_batch(letters)
    assert fragment in str(caught.value)


def test_a_batch_may_be_empty_or_of_empty_words() -> None:
    assert parity().run_batch(np.zeros((0, 3), dtype=np.uint8)).shape == (0, 4)
    assert parity().run_batch(np.zeros((2, 0))).tolist() == [[0], [0]]


def test_reachable_keeps_names_and_order() -> None:
    automaton = Automaton(("x", "b", "a"), ("0",), ((0,), (2,), (1,)), 2, frozenset({0, 1}))
    assert automaton.reachable() == Automaton(("b", "a"), ("0",), ((1,), (0,)), 1, frozenset({0}))


def test_minimised_merges_and_numbers_breadth_first() -> None:
    counter = automata.cyclic(6)
    even = Automaton(counter.states, counter.alphabet, counter.transitions, 3, frozenset({0, 2, 4}))
    assert even.minimized() == Automaton(("0", "1"), ("0", "1"), ((0, 1), (1, 0)), 0, frozenset({1}))
    nothing = Automaton(counter.states, counter.alphabet, counter.transitions, 3, frozenset())
    assert nothing.minimized() == Automaton(("0",), ("0", "1"), ((0, 0),), 0, frozenset())


def test_regexes_are_minimal_complete_and_ordered() -> None:
    automaton = Automaton.from_regex("ab", alphabet="bac")
    assert automaton.alphabet == ("b", "a", "c")
    # 0 start, 1 sink (first met on b), 2 after a, 3 after ab
    assert automaton.transitions == ((1, 2, 1), (1, 1, 1), (3, 1, 1), (1, 1, 1))
    assert automaton.accepting_states == ("3",)


# The families, against arithmetic


@each(("k", "base"), [(1, 2), (3, 2), (7, 2), (5, 3), (9, 10)])
def test_divisibility_is_division(k: int, base: int) -> None:
    automaton = automata.divisibility(k, base)
    for number in range(200):
        digits = [str(number // base**place % base) for place in reversed(range(9))]
        assert automaton.run(digits)[-1] == str(number % k)
        assert automaton.accepts(digits) == (number % k == 0)


def test_cyclic_adds() -> None:
    automaton = automata.cyclic(5, letters=4)
    for word in product("0123", repeat=4):
        assert automaton.run(word)[-1] == str(sum(map(int, word)) % 5)
        assert automaton.accepts(word) == (sum(map(int, word)) % 5 == 0)


def test_gridworld_has_walls() -> None:
    assert automata.gridworld(3).run("LRRRL") == ("0", "0", "1", "2", "2", "1")
    assert automata.gridworld(3).accepts("RRR")


def test_the_groups_have_their_orders() -> None:
    for n in (2, 3, 4, 5):
        group = automata.symmetric_group(n, regular=True)
        assert len(group.states) == factorial(n)
        assert len(automata.symmetric_group(n).states) == n
        assert group.is_group()
    for n in (3, 4, 5, 6):
        assert len(automata.alternating_group(n, regular=True).states) == factorial(n) // 2
    assert len(automata.symmetric_group(2).alphabet) == len(automata.alternating_group(3).alphabet) == 1


def test_a_point_follows_the_group() -> None:
    """In the regular automaton of S4, the element after a word sends 0 where the automaton on points goes."""
    points, regular = automata.symmetric_group(4), automata.symmetric_group(4, regular=True)
    names = {automata._cycles(images): images for images in permutations(range(4))}
    for word in product(points.alphabet, repeat=5):
        element = names[regular.run(word)[-1]]
        assert points.run(word)[-1] == str(element[0])
        assert regular.accepts(word) == (element == (0, 1, 2, 3))


def test_commutative_and_group() -> None:
    facts = {
        "cyclic": (automata.cyclic(4), True, True),
        "S3": (automata.symmetric_group(3), False, True),
        "flip-flop": (automata.flip_flop(), False, False),
        "corridor": (automata.gridworld(3), False, False),
        "sticky": (Automaton(("0", "1"), ("a",), ((1,), (1,)), 0, frozenset()), True, False),
    }
    for name, (automaton, commutative, group) in facts.items():
        assert (automaton.is_commutative(), automaton.is_group()) == (commutative, group), name


def test_a_product_moves_one_factor_at_a_time() -> None:
    both = automata.product(automata.flip_flop(), automata.gridworld(3))
    assert both.alphabet == ("reset", "set", "keep", "L", "R")
    assert both.run(["set", "R", "R", "reset"]) == ("(0,0)", "(1,0)", "(1,1)", "(1,2)", "(0,2)")
    assert both.accepts(["set", "R", "R"])
    assert not both.accepts(["set", "R"])
    assert automata.product(automata.cyclic(2), automata.cyclic(3)).alphabet == ("1:0", "1:1", "2:0", "2:1")


def test_random_automata_follow_their_seed() -> None:
    one, other = automata.random_automaton(20, 3, seed=1), automata.random_automaton(20, 3, seed=2)
    assert one == automata.random_automaton(20, 3, seed=1) != other
    assert one.alphabet == ("a", "b", "c")
    assert len(automata.random_automaton(2, 30, seed=0).alphabet) == 30


def test_reading_and_minimising_import_no_other_library_of_automata() -> None:
    code = """
import sys
from vitrify.spec.automata.automaton import Automaton
Automaton.from_regex("((a|b)*a)&((ab)*^b)").minimized()
sys.exit("automata" in sys.modules or "networkx" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
