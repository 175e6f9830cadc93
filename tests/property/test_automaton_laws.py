"""Laws of automata over random ones: files, semantics, minimisation, and regular expressions against Python's `re`."""

from __future__ import annotations

import re
import tempfile
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from automata.fa.dfa import DFA
from automata.fa.nfa import NFA
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from vitrify.errors import SpecError
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import product as side_by_side

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4).filter(
    lambda name: not any(character.isspace() for character in name)
)


@st.composite
def automata(
    draw: st.DrawFn, letters: tuple[str, ...] | None = None, names: st.SearchStrategy[str] = NAMES
) -> Automaton:
    states = tuple(draw(st.lists(names, min_size=1, max_size=6, unique=True)))
    alphabet = letters or tuple(draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)))
    state = st.integers(0, len(states) - 1)
    row = st.tuples(*[state] * len(alphabet))
    table = draw(st.tuples(*[row] * len(states)))
    return Automaton(states, alphabet, table, draw(state), draw(st.frozensets(state)))


def words(automaton: Automaton, longest: int = 5) -> list[tuple[str, ...]]:
    return [word for length in range(longest + 1) for word in product(automaton.alphabet, repeat=length)]


@given(automata())
def test_reading_undoes_writing(automaton: Automaton) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.automaton.json"
        automaton.write(path)
        assert Automaton.read(path) == automaton


@given(automata())
def test_names_rebuild_it(automaton: Automaton) -> None:
    again = Automaton.from_dict(
        states=automaton.states,
        alphabet=automaton.alphabet,
        transitions=automaton.named_transitions(),
        initial=automaton.initial_state,
        accepting=automaton.accepting_states,
    )
    assert again == automaton == eval(repr(automaton))
    assert hash(again) == hash(automaton)


@given(automata(), st.data())
def test_running_is_walking_a_dictionary(automaton: Automaton, data: st.DataObject) -> None:
    word = data.draw(st.lists(st.sampled_from(automaton.alphabet), max_size=12))
    arrows = automaton.named_transitions()
    path = [automaton.initial_state]
    for letter in word:
        path.append(arrows[path[-1]][letter])
    assert automaton.run(word) == tuple(path)
    assert automaton.accepts(word) == (path[-1] in automaton.accepting_states)


@given(automata(), st.integers(0, 4), st.integers(0, 6), st.integers(0, 2**32 - 1))
def test_a_batch_is_its_words(automaton: Automaton, count: int, time: int, seed: int) -> None:
    letters = np.random.default_rng(seed).integers(len(automaton.alphabet), size=(count, time))
    batch = automaton.run_batch(letters)
    assert batch.shape == (count, time + 1)
    for ids, path in zip(letters, batch, strict=True):
        word = [automaton.alphabet[letter] for letter in ids]
        assert automaton.ids(word) == tuple(ids)
        assert tuple(automaton.states[state] for state in path) == automaton.run(word)


def as_dfa(automaton: Automaton) -> DFA:
    return DFA(
        states=set(automaton.states),
        input_symbols=set(automaton.alphabet),
        transitions=automaton.named_transitions(),
        initial_state=automaton.initial_state,
        final_states=set(automaton.accepting_states),
    )


@given(automata())
@settings(max_examples=examples(50))
def test_automata_lib_accepts_the_same_words(automaton: Automaton) -> None:
    dfa = as_dfa(automaton)
    for word in words(automaton, 4):
        assert automaton.accepts(word) == dfa.accepts_input(word)  # type: ignore[arg-type]


@given(automata())
@settings(max_examples=examples(50))
def test_smaller_automata_accept_the_same_words(automaton: Automaton) -> None:
    small, trimmed = automaton.minimized(), automaton.reachable()
    for word in words(automaton):
        assert small.accepts(word) == trimmed.accepts(word) == automaton.accepts(word)
        assert trimmed.run(word) == automaton.run(word)
    assert len(small.states) <= len(trimmed.states) <= len(automaton.states)
    assert small.minimized() == small


@given(automata())
@settings(max_examples=examples(50))
def test_minimised_states_are_told_apart_by_a_word(automaton: Automaton) -> None:
    """Moore's refinement, run to its fixed point, puts every state of the minimal automaton in a class of its own."""
    small = automaton.minimized()
    labels: dict[int, int] = {state: int(state in small.accepting) for state in range(len(small.states))}
    for _ in small.states:
        views = {state: (labels[state], *(labels[target] for target in small.transitions[state])) for state in labels}
        numbers = {view: number for number, view in enumerate(dict.fromkeys(views.values()))}
        labels = {state: numbers[view] for state, view in views.items()}
    assert len(set(labels.values())) == len(small.states)


PLAIN = st.sampled_from("pqrstu")  # a product of names with commas may name two states alike, and is then refused


@given(automata(letters=("a", "b"), names=PLAIN), automata(letters=("c",), names=PLAIN))
@settings(max_examples=examples(30))
def test_a_product_is_its_factors_on_their_own_letters(left: Automaton, right: Automaton) -> None:
    both = side_by_side(left, right)
    for word in words(both, 4):
        mine, yours = [x for x in word if x in "ab"], [x for x in word if x == "c"]
        assert both.run(word)[-1] == f"({left.run(mine)[-1]},{right.run(yours)[-1]})"
        assert both.accepts(word) == (left.accepts(mine) and right.accepts(yours))


# Regular expressions: text from a small tree, which reads the same here and in `re`

ATOMS = st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", "[a-c]", "()"])
REPEATS = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{2,}", "{0,}", "{1}"])
REGEXES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: f"{pair[0]}{pair[1]}"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        st.tuples(inner, REPEATS).map(lambda pair: f"({pair[0]}){pair[1]}"),
    ),
    max_leaves=8,
)


@lru_cache
def all_words(letters: str, longest: int) -> tuple[str, ...]:
    return tuple("".join(word) for length in range(longest + 1) for word in product(letters, repeat=length))


@given(REGEXES)
@settings(max_examples=examples(150), deadline=None)
def test_regexes_agree_with_re(expression: str) -> None:
    automaton, pattern = Automaton.from_regex(expression, "abc"), re.compile(expression)
    assert automaton.minimized() == automaton
    for word in all_words("abc", 6):
        assert automaton.accepts(word) == (pattern.fullmatch(word) is not None), word


@given(st.text("ab()[]{}|&^*+?.\\-,12 $#é", max_size=8))
@settings(max_examples=examples(300), deadline=None)
def test_any_text_is_a_regex_or_a_spec_error(text: str) -> None:
    try:
        automaton = Automaton.from_regex(text)
    except SpecError:
        return
    assert automaton.minimized() == automaton


@given(REGEXES, REGEXES)
@settings(max_examples=examples(40), deadline=None)
def test_intersection_is_both(left: str, right: str) -> None:
    automaton = Automaton.from_regex(f"({left})&({right})", "abc")
    first, second = re.compile(left), re.compile(right)
    for word in all_words("abc", 5):
        assert automaton.accepts(word) == bool(first.fullmatch(word) and second.fullmatch(word)), word


def expressions(depth: int = 3) -> st.SearchStrategy[str]:
    """Expressions with every operator, over the letters a, b and c."""
    if depth == 0:
        return st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", "()"])
    inner = expressions(depth - 1)
    repeated = st.builds("({}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "{,2}"]))
    joined = st.builds("(({}){}({}))".format, inner, st.sampled_from("|&^"), inner)
    return st.one_of(inner, repeated, joined, st.builds("{}{}".format, inner, inner))


@given(expressions())
@settings(max_examples=examples(200), deadline=None)
def test_automata_lib_makes_the_same_automaton_of_an_expression(expression: str) -> None:
    plain = expression.replace("[ab]", "(a|b)").replace("[^a]", "(b|c)")  # its own classes widen the alphabet
    theirs: Any = DFA.from_nfa(NFA.from_regex(plain, input_symbols={*"abc"}), minify=True)

    def step(state: int | None, letter: str) -> int | None:
        target: int | None = None if state is None else theirs.transitions[state].get(letter)
        return target

    same = Automaton.explore(theirs.initial_state, "abc", step, lambda state: state in theirs.final_states)
    assert Automaton.from_regex(expression, "abc") == same
