"""The lemma about stacks of brackets in recurrent networks: what is proved, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vitrify.certification.checks.words import WordCheck
from vitrify.certification.equivalence.catalogue import SpecCase, product_of_states
from vitrify.certification.equivalence.stacks import slots_of_a_stack
from vitrify.certification.margins.values import Undecided
from vitrify.constructions.catalogue import build
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.spec.languages.dyck import Dyck

pytestmark = pytest.mark.long

NAMES = ("dyck-lstm", "dyck-elman")


def case_of(weights: Weights[Any], spec: Dyck) -> SpecCase:
    return SpecCase(weights, spec, WordCheck(weights.architecture, spec).oracle, None)


def proved(weights: Weights[Any], spec: Dyck) -> bool:
    try:
        result = slots_of_a_stack(case_of(weights, spec))
    except Undecided:
        return False
    assert (result.longest, result.exact, result.witness) == (None, True, None)
    return True


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("kinds", "depth"), [(1, 1), (1, 4), (2, 1), (3, 3), (9, 4)])
def test_stacks_are_proved_at_every_length(name: str, kinds: int, depth: int) -> None:
    spec = Dyck.of_kinds(kinds, depth, 20)
    assert proved(build(spec, name), spec)


def test_stacks_far_too_many_to_search_are_proved() -> None:
    spec = Dyck.of_kinds(8, 8, 20)
    with pytest.raises(Undecided, match="more than"):
        product_of_states(case_of(build(spec, "dyck-elman"), spec))
    assert proved(build(spec, "dyck-elman"), spec)


@pytest.mark.long
def test_so_are_those_of_an_lstm() -> None:
    spec = Dyck.of_kinds(8, 8, 20)
    assert proved(build(spec, "dyck-lstm"), spec)


@pytest.mark.parametrize("name", NAMES)
def test_networks_of_other_depths_are_not_proved(name: str) -> None:
    for depth in (3, 5):
        assert not proved(build(Dyck.of_kinds(3, depth, 20), name), Dyck.of_kinds(3, 4, 20))


def changed(weights: Weights[Any], name: str, index: Any, value: float) -> Weights[Any]:
    array = np.array(dense(weights.arrays[name]), dtype=np.float64)
    array[index] = value
    return replace(weights, arrays={**weights.arrays, name: array})


def test_one_bit_that_is_lost_between_the_deepest_slots_is_noticed() -> None:
    spec = Dyck.of_kinds(8, 8, 20)
    weights = build(spec, "dyck-elman")
    moves = np.asarray(dense(weights.arrays["blocks.0.rec.W_A"]))
    deepest = next(label.dims for label in weights.labels.spaces if label.name == "slot 8 pushed")
    source = int(np.flatnonzero(moves[:, deepest[-1]])[0])
    assert not proved(changed(weights, "blocks.0.rec.W_A", (source, deepest[-1]), 0.0), spec)


@pytest.mark.parametrize("name", NAMES)
def test_what_depends_on_many_slots_is_refused(name: str) -> None:
    """A sum over the whole stack would need more stacks than the rows."""
    spec = Dyck.of_kinds(3, 4, 20)
    weights = build(spec, name)
    readout = np.array(dense(weights.arrays["unembed.W_U" if name == "dyck-elman" else "blocks.0.mlp.W_in"]))
    readout[np.abs(readout).sum(axis=1) == 0, 0] = 2.0**-12
    key = "unembed.W_U" if name == "dyck-elman" else "blocks.0.mlp.W_in"
    if name == "dyck-lstm":
        readout[:, 0] += 2.0**-12
    wide = replace(weights, arrays={**weights.arrays, key: readout})
    with pytest.raises(Undecided, match="more than two slots"):
        slots_of_a_stack(case_of(wide, spec))


@pytest.mark.parametrize("name", NAMES)
def test_mutants_are_proved_only_if_all_pairs_of_states_are_right(name: str) -> None:
    spec, rng = Dyck.of_kinds(3, 3, 20), np.random.default_rng(0)
    weights = build(spec, name)
    arrays = {key: np.asarray(dense(array)) for key, array in weights.arrays.items()}
    names = [key for key, array in arrays.items() if array.any()]
    wrong = 0
    for _ in range(60):
        key = str(rng.choice(names))
        places = np.argwhere(arrays[key]) if rng.random() < 0.7 else np.argwhere(arrays[key] == 0)
        if len(places):
            index = tuple(places[rng.integers(len(places))])
            old = float(arrays[key][index])
            mutant = changed(weights, key, index, float(rng.choice([-old, 0.0, old + 1, old - 1, 2 * old])))
            try:
                right = product_of_states(case_of(mutant, spec)).witness is None
            except Undecided:
                right = False  # rounded, or too many
            wrong += not right
            assert right or not proved(mutant, spec)
    assert wrong > 10
