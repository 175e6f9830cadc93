"""Formulas and automata of one network say the same."""

from __future__ import annotations

import pytest

import vitrify as v
from cases import each
from vitrify.errors import InputError
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.logic.ltl import Formula


@each("text", ("b & Y a", "O (a & Y b)", "!a S b", "H (a -> Y b)"))
def test_a_formula_and_an_automaton_are_read_from_one_network(text: str) -> None:
    spec = Formula.from_text(f"alphabet: a b\nlength: 10\n{text}")
    net = v.build(spec, attention="hard")
    formula, automaton = v.extract(net, "formula"), v.extract(net)
    assert formula.every_length
    assert automaton.every_length
    assert isinstance(formula.spec, Formula)
    assert isinstance(automaton.spec, Automaton)
    after = formula.spec.meanings()["transducer"].after("abbaabab")
    assert [*map(str, after[1:])] == [str(automaton.spec.accepts("abbaabab"[:end])) for end in range(1, 9)]


def test_a_network_with_positions_has_no_formula() -> None:
    net = v.build(Formula.from_text("alphabet: a b\nlength: 8\nb & Y a"))
    with pytest.raises(InputError, match=r"no formula can be read .*: try --as automaton"):
        v.extract(net, "formula")
