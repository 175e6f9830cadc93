"""Moore machines: minimal ones, words that lead to states and tell them apart."""

from __future__ import annotations

from itertools import product

import numpy as np

from cases import each
from vitrify.spec.automata.moore import MooreMachine

LONGEST = 8  # of words over two letters: any two machines of up to 5 states are told apart


def random_machine(seed: int, states: int = 5, letters: int = 2, answers: int = 3) -> MooreMachine:
    rng = np.random.default_rng(seed)
    table = rng.integers(states, size=(states, letters)).tolist()
    return MooreMachine(tuple(map(tuple, table)), tuple(rng.integers(answers, size=states).tolist()))


def answer(machine: MooreMachine, word: tuple[int, ...], state: int = 0) -> int:
    for letter in word:
        state = machine.transitions[state][letter]
    return machine.answers[state]


def words(longest: int) -> list[tuple[int, ...]]:
    return [word for length in range(longest + 1) for word in product((0, 1), repeat=length)]


@each("seed", range(60))
def test_a_minimal_machine_has_the_same_answers_and_a_state_for_each_future(seed: int) -> None:
    machine = random_machine(seed)
    small = machine.minimized()
    assert all(answer(small, word) == answer(machine, word) for word in words(LONGEST))
    futures = {tuple(answer(machine, (*word, *more)) for more in words(4)) for word in words(4)}
    assert len(small.answers) == len(futures)
    assert small.minimized() == small
    renamed = MooreMachine((*machine.transitions, (0, 0)), (*machine.answers, 9)).minimized()
    assert renamed == small  # a state that no word reaches


@each("seed", range(30))
def test_machines_run_many_words_at_once(seed: int) -> None:
    machine = random_machine(seed)
    batch = np.array(list(product((0, 1), repeat=5)))
    assert machine.after(batch)[:, -1].tolist() == [answer(machine, tuple(word)) for word in batch.tolist()]
    for length, level in enumerate(machine.levels(5)):
        assert level.tolist() == [answer(machine, word) for word in product((0, 1), repeat=length)]


@each("seed", range(60))
def test_words_lead_to_all_states_and_tell_them_apart(seed: int) -> None:
    machine = random_machine(seed, states=6).minimized()
    states = list(range(len(machine.answers)))
    reached = [
        machine.states(np.array([word], dtype=np.int64).reshape(1, -1))[0, -1] for word in machine.access_words()
    ]
    assert sorted(reached) == states
    tails = machine.distinguishing_words()
    assert tails[0] == ()
    assert len({tuple(answer(machine, tail, state) for tail in tails) for state in states}) == len(states)


def test_a_free_answer_to_the_empty_word_spares_a_state() -> None:
    parity = MooreMachine(((1, 2), (1, 2), (2, 1)), (5, 0, 1))  # state 0 is state 1 with another answer
    assert parity.with_free_start() == MooreMachine(((0, 1), (1, 0)), (0, 1))
    back = MooreMachine(((1, 0), (1, 0)), (5, 0))  # a word leads back to the initial state: its answer is not free
    assert back.with_free_start() == back.minimized()
    apart = MooreMachine(((1, 2), (1, 1), (2, 2)), (5, 0, 1))  # no other state goes on like the initial one
    assert apart.with_free_start() == apart.minimized()


def test_states_are_named_after_their_answers() -> None:
    machine = MooreMachine(((1,), (2,), (0,)), (0, 1, 0)).automaton(("a",), {1}, {0: "even", 1: "odd"})
    assert machine.states == ("even", "odd", "even#2")
    assert machine.accepting_states == ("odd",)
    assert MooreMachine(((0,),), (4,)).automaton(("a",), {4}).states == ("0",)
