"""The cone of an answer against brute force: letters outside it never matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from examples import examples
from hard_nets import hard_nets
from nets import copycat
from vitrify.bounds.activations import ExactNet, read_answer
from vitrify.bounds.cone import blind_spot, cone
from vitrify.bounds.gates import all_words
from vitrify.constructions.dyck_recognizer import dyck_recognizer
from vitrify.constructions.log_depth import log_depth
from vitrify.constructions.temporal import temporal
from vitrify.errors import BuildRefused, InputError
from vitrify.kit import assemble
from vitrify.net.inference import batch_logits
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.logic.ltl import Formula


def sensitive(weights: Weights, length: int, fixed: dict[int, int]) -> tuple[set[int], set[Any]]:
    """The places that matter on some word under a restriction, and all answers, by running the net on every word."""
    net = weights.architecture
    words = all_words(len(net.inputs) - 1, length)
    words = words[[all(word[place] == letter for place, letter in fixed.items()) for word in words]]
    logits = batch_logits(weights, np.pad(words, ((0, 0), (net.pads, 0))))[:, -1].tolist()
    said = {
        tuple(word): read_answer(net.output.kind, net.output.symbols, row)
        for word, row in zip(words.tolist(), logits, strict=True)
    }
    matter = set()
    for place in range(length):
        groups: dict[Any, set[Any]] = {}
        for word, answer in said.items():
            groups.setdefault(word[:place] + word[place + 1 :], set()).add(answer)
        if any(len(answers) > 1 for answers in groups.values()):
            matter.add(place)
    return matter, set(said.values())


@pytest.mark.long
@given(hard_nets(ties=("left", "right", "average")), st.integers(1, 4), st.data())
@settings(max_examples=examples(150), deadline=None)
def test_what_matters_is_in_the_cone(weights: Weights, length: int, data: st.DataObject) -> None:
    letters = st.integers(1, len(weights.architecture.inputs) - 1)
    fixed = data.draw(st.dictionaries(st.integers(0, length - 1), letters))
    try:
        found = cone(ExactNet(weights), length, fixed)
    except BuildRefused:
        assume(False)
    matter, answers = sensitive(weights, length, fixed)
    assert matter <= found.depends
    assert answers <= found.answers
    assert found.depends <= found.free
    assert found.irrelevant == found.free - found.depends


@pytest.mark.long
def test_nothing_is_irrelevant_to_a_net_that_does_parity() -> None:
    """Three layers suffice for eight letters: under no restriction that the search tries may a letter be missed."""
    weights = assemble(log_depth(cyclic(2), max_length=5, attention="hard"))
    exact = ExactNet(weights)
    assert blind_spot(exact, 5) is None
    for word in all_words(3, 5) - 1:  # 0 leaves a place free
        fixed = {place: int(letter) for place, letter in enumerate(word) if letter}
        assert not cone(exact, 5, fixed).irrelevant


def test_a_formula_misses_letters_once_it_is_true() -> None:
    exact = ExactNet(
        assemble(temporal(Formula.from_text("alphabet: a b c\nlength: 12\nO (c & Y b)"), attention="hard"))
    )
    assert cone(exact, 12, {}).depends == set(range(12))
    found = cone(exact, 12, {3: 2, 4: 3})
    assert not found.depends
    assert found.answers == {"True"}
    assert len(found.irrelevant) == 10


@pytest.mark.slow
def test_a_recognizer_of_bounded_brackets_misses_a_letter_of_dyck_1() -> None:
    """Three opening brackets are too many for depth 2, whatever follows; a balanced word may still follow."""
    exact = ExactNet(assemble(dyck_recognizer(Dyck.of_kinds(1, 2, 10), attention="hard")))

    def possible(fixed: Any) -> bool:
        heights = {0}
        for place in range(10):
            steps = {1: (1,), 2: (-1,)}.get(fixed.get(place, 0), (1, -1))
            heights = {height + step for height in heights for step in steps if height + step >= 0}
        return 0 in heights

    found = blind_spot(exact, 10, possible)
    assert found is not None
    assert possible(found.fixed)
    assert found.answers == {"no"}
    assert found.irrelevant == found.free


def test_a_head_that_looks_at_one_place_sees_nothing_else() -> None:
    found = blind_spot(ExactNet(copycat()), 5)
    assert found is not None
    assert not found.fixed
    assert found.depends == {3, 4}  # what a position brings itself is never left out


def test_a_bad_restriction_is_refused() -> None:
    exact = ExactNet(copycat())
    with pytest.raises(InputError, match=r"not 3 at 0, 1 at 4$"):
        cone(exact, 4, {0: 3, 4: 1})
    with pytest.raises(InputError, match="words of 1 to 5 letters, not 6"):
        cone(exact, 6, {})
