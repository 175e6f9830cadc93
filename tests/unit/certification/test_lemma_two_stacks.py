"""The lemmas on probabilistic machines: nothing is proved of a network that differs in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from cases import each
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.equivalence.catalogue import SpecCase
from vitrify.certification.equivalence.steps_at_any_length import machine_steps_at_any_length
from vitrify.certification.equivalence.two_stacks import two_stacks
from vitrify.certification.margins.values import Undecided
from vitrify.certification.mutation_test import mutants
from vitrify.constructions.catalogue import build
from vitrify.net.cells import Cell
from vitrify.net.weights import Weights
from vitrify.spec.computation.probabilistic_turing import (
    ProbabilisticTuringMachine,
    equal_numbers,
    marked_palindromes,
    random_probabilistic_machine,
)

MACHINE = marked_palindromes()
TRANSFORMER, RECURRENCE = "probabilistic-turing", "probabilistic-turing-rnn"
A, B, W = "blocks.0.rec.W_A", "blocks.0.rec.W_B", "blocks.0.mlp.W_in"


@cache
def network(name: str = RECURRENCE) -> Weights:
    net: Weights = build(MACHINE, name)
    return net


def proved(weights: Weights, machine: ProbabilisticTuringMachine = MACHINE) -> int | None:
    check = WordCheck(weights.architecture, machine)
    case = SpecCase(weights, machine, check.oracle, None)
    recurrent = weights.architecture.tag == "recurrent"
    return (two_stacks if recurrent else machine_steps_at_any_length)(case).longest


def dim(name: str, place: int = 0) -> int:
    return network().labels.space(name).dims[place]


def plus(array: str, index: Any, by: float) -> Weights:
    changed = np.array(network().arrays[array], dtype=float)
    changed[index] += by
    return network().with_array(array, changed)


def shaped(**changes: Any) -> Weights:
    return replace(network(), architecture=replace(network().architecture, **changes))


def token(name: str) -> int:
    return network().architecture.input_ids[name]


def relabelled(**names: str) -> Weights:
    labels = network().labels
    spaces = tuple(replace(label, name=names.get(label.name.replace(" ", "_"), label.name)) for label in labels.spaces)
    return replace(network(), labels=replace(labels, spaces=spaces))


@pytest.mark.parametrize(
    "machine", [MACHINE, equal_numbers(), *(random_probabilistic_machine(s, 3, 2 + s) for s in range(4))]
)
def test_machines_are_proved_to_the_last_step_that_float64_carries(machine: ProbabilisticTuringMachine) -> None:
    weights = build(machine, RECURRENCE)
    longest = weights.architecture.max_length
    assert proved(weights, machine) == longest
    with pytest.raises(Undecided, match="a sum may be rounded"):
        proved(replace(weights, architecture=replace(weights.architecture, max_length=longest + 1)), machine)
    assert proved(build(machine, TRANSFORMER), machine) == 23_726_565


BROKEN: dict[str, tuple[Callable[[], Weights], str]] = {
    "a digit": (lambda: plus(B, (token("b,R,write,b"), dim("left of the head after R")), -0.25), "update|threshold"),
    "a threshold": (lambda: plus(B, (slice(1, 3), dim("left of the head after R", 1)), 0.25), "threshold"),
    "a shift": (lambda: plus(A, (dim("left of the head after R"), dim("left of the head after R")), 0.25), "update"),
    "a pop": (lambda: plus(A, (dim("left of the head after R", 1), dim("left of the head after L")), 16.0), "update"),
    "an open gate": (lambda: plus(B, (token("a,R,write,a"), dim("left of the head after L")), 2.0), "update"),
    "half a gate": (lambda: plus(B, (token("a,R,write,a"), dim("left of the head after L")), 1.75), "update"),
    "BOS pushes": (lambda: plus(B, (0, dim("left of the head after L")), 0.25), "after BOS"),
    "BOS in no state": (lambda: plus(B, (0, dim("state")), -1.0), "its state"),
    "another state": (lambda: plus(B, (1, dim("state", 1)), 1.0), "its state"),
    "a state that lasts": (lambda: plus(A, (dim("state"), dim("state")), 1.0), "read the machine's state"),
    "a state that is read": (
        lambda: plus(A, (dim("state"), dim("left of the head after R")), 0.25),
        "read the machine's",
    ),
    "an odd weight": (lambda: plus(A, (0, 0), 0.3), "no small multiples"),
    "a large weight": (lambda: plus(A, (0, 0), 4096.0), "no small multiples"),
    "units see a number": (lambda: plus(W, (dim("right of the head after L"), 0), 1.0), "more than the tops"),
    "a bias": (lambda: plus("blocks.0.mlp.b_in", (0,), 0.5), "not that of its rules"),
    "a probability": (lambda: plus("unembed.W_U", (0, 0), 0.01), "not that of its rules"),
    "a label": (lambda: relabelled(left_of_the_head_after_R="elsewhere"), "no two stacks"),
    "labels exchanged": (
        lambda: relabelled(
            left_of_the_head_after_R="right of the head after R", right_of_the_head_after_R="left of the head after R"
        ),
        "threshold|update",
    ),
    "another cell": (lambda: shaped(cell=Cell("linear", network().sizes.d_model)), "only simple recurrent"),
    "two pads": (lambda: shaped(pads=2), "other tokens"),
}


@each("name", BROKEN)
def test_nothing_is_proved_of_what_differs(name: str) -> None:
    make, reason = BROKEN[name]
    with pytest.raises(Undecided, match=reason):
        proved(make())


@each("name", (TRANSFORMER, RECURRENCE))
def test_other_probabilities_of_the_machine_are_noticed(name: str) -> None:
    first, second, *rest = MACHINE.rules
    rules = (first._replace(probability=Fraction(1, 4)), second._replace(probability=Fraction(1, 2)), *rest)
    with pytest.raises(Undecided, match="is not that of its rule"):
        proved(network(name), replace(MACHINE, rules=rules))


def test_no_mutant_is_proved_whose_answers_are_wrong() -> None:
    """What is proved of a mutant holds of it on all runs to 12 steps."""
    check = WordCheck(network().architecture, MACHINE, work=1e6)
    proofs = 0
    for mutant in mutants(network(), 60, seed=1):
        try:
            proved(mutant.weights)
        except Undecided:
            continue
        proofs += 1
        assert check.run(mutant.weights).verdict == "holds", mutant
    assert proofs < 30
