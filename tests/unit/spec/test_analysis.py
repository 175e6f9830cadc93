"""What `analyze` says of textbook languages and automata."""

from __future__ import annotations

import json

import pytest

from cases import each
from small_automata import closure, full_transformations, has_a_counter
from vitrify.errors import InputError
from vitrify.spec.automata import analysis, holonomy
from vitrify.spec.automata.analysis import analyze
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import (
    alternating_group,
    cyclic,
    divisibility,
    flip_flop,
    gridworld,
    symmetric_group,
)
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.ngrams.families import random_ngram

# regular expression over a, b (or with c), and whether a formula without star describes it too
STAR_FREE = {
    "()": True,
    "(a|b)*": True,
    "ab|ba": True,
    "a*": True,
    "a*b*": True,
    "(a|b)*a": True,
    "(a|b)*b(a|b)": True,
    "(a|b)*abb": True,
    "(a|b)*aa(a|b)*": True,
    "(a|b)*a(a|b)*a(a|b)*": True,
    "a(a|b)*b": True,
    "(ab)*": True,
    "a(ba)*": True,
    "(ab|b)*": True,
    "(ab|ba)*": True,
    "(aab)*": True,
    "(aba)*": True,
    "(abc)*": True,
    "(a(ab)*b)*": True,
    "(a(a(ab)*b)*b)*": True,
    "(aa)*": False,
    "(aaa)*": False,
    "(aa|b)*": False,
    "(a|bb)*": False,
    "(abab)*": False,
    "((a|b)(a|b))*": False,
    "((a|b)(a|b)(a|b))*": False,
    "b*(ab*ab*)*": False,
    "(b|ab*ab*a)*": False,
    "(a|b)*a((a|b)(a|b))*": False,
    "a(aa)*b": False,
}


@each("expression", STAR_FREE)
def test_star_free_languages(expression: str) -> None:
    machine = Automaton.from_regex(expression, "abc" if "c" in expression else "ab")
    found = analyze(machine)
    assert found.star_free == STAR_FREE[expression] == (not has_a_counter(machine))
    assert found.solvable
    assert found.minimal_states == found.states == len(machine.states)


@each(
    ("expression", "finite"),
    [("()", True), ("ab|ba", True), ("(ab){0,3}", True), ("a*", False), ("(a|b)*", False), ("(ab)*", False)],
)
def test_finite_languages(expression: str, finite: bool) -> None:
    machine = Automaton.from_regex(expression, "ab")
    assert analyze(machine).finite == finite
    assert analyze(Automaton(("q",), ("a",), ((0,),), 0, frozenset())).finite  # the empty language


# states of the minimal automaton, size of the syntactic monoid, groups of the levels, attention layers of the cascade
KNOWN = {
    "parity": (cyclic(2), 2, 2, ["Z2"], 1),
    "flip-flop": (flip_flop(), 2, 3, ["trivial"], 1),
    "S3": (symmetric_group(3), 3, 6, ["S3"], 2),
    "S4": (symmetric_group(4), 4, 24, ["S4"], 3),
    "A5": (alternating_group(5), 5, 60, ["A5"], None),
    "all maps of 3": (full_transformations(3), 3, 27, ["S3", "Z2"], 5),
    "all maps of 4": (full_transformations(4), 4, 256, ["S4", "S3", "Z2"], 9),
    "gridworld of 4": (gridworld(4), 4, 18, ["trivial"] * 3, 3),
    "(ab)*": (Automaton.from_regex("(ab)*"), 3, 6, ["trivial"] * 2, 2),
}


@each("name", KNOWN)
def test_known_automata(name: str) -> None:
    machine, states, monoid, groups, layers = KNOWN[name]
    found = analyze(machine)
    assert (found.minimal_states, found.monoid) == (states, monoid)
    assert monoid == len(closure({tuple(range(len(machine.states))), *machine.maps().values()}))
    assert found.levels is not None
    assert [level.group for level in found.levels] == groups
    depth = {d.construction: d for d in found.depths}
    assert depth["cascade"].attention_layers == layers
    assert depth["cascade"].crossover == (None if layers is None else 2**layers)
    assert found.solvable == (layers is not None)
    assert depth["log-depth"].attention_layers == "⌈log₂ T⌉"
    assert found.notes == ()
    if layers is not None:
        assert sum(level.attention_layers or 0 for level in found.levels) == layers
    else:
        assert depth["cascade"].why == "level 1 has the group A5, not solvable"


def test_depths_of_special_shapes() -> None:
    def layers(machine: Automaton) -> dict[str, object]:
        return {depth.construction: depth.attention_layers for depth in analyze(machine).depths}

    assert layers(cyclic(2))["commutative"] == 1
    assert layers(symmetric_group(3))["commutative"] is None
    assert layers(gridworld(9))["gridworld"] == 2
    assert layers(cyclic(3))["gridworld"] is None


def test_classes_are_those_of_the_language_and_depths_those_of_the_automaton() -> None:
    """All states of S5 accept: the language is everything, but the net has to follow the states."""
    s5 = symmetric_group(5)
    found = analyze(Automaton(s5.states, s5.alphabet, s5.transitions, 0, frozenset(range(5))))
    assert (found.minimal_states, found.monoid, found.star_free, found.commutative) == (1, 1, True, True)
    assert found.levels is not None
    assert [level.group for level in found.levels] == ["S5"]
    assert found.depths[2].attention_layers is None


def test_what_takes_too_long_is_said_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "MAX_MAPS", 20)
    monkeypatch.setattr(holonomy, "MAX_IMAGE_SETS", 5)
    found = analyze(full_transformations(4))
    assert found.monoid is None
    assert found.star_free is None
    assert found.solvable is None
    assert found.levels is None
    assert len(found.notes) == 2
    assert "more than 20 different maps" in found.notes[0]
    assert "more than 5 different image sets" in found.notes[1]
    assert found.depths[2].attention_layers is None


def test_json_and_other_specs() -> None:
    text = json.dumps(analyze(divisibility(3)).to_json())
    assert json.loads(text)["levels"][0] == {
        "level": 1,
        "sets": 1,
        "tiles": 3,
        "group": "S3",
        "order": 6,
        "solvable": True,
        "attention_layers": 2,
    }
    for spec, name in ((random_ngram(2, 2, seed=0), "NGramModel"), (Grammar.from_text("S -> 'a'"), "Grammar")):
        with pytest.raises(InputError, match=rf"got a spec of type {name}"):
            analyze(spec)
