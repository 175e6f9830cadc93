"""The lemma on machine steps at any length: nothing is proved of a network that differs in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from vitrify.certification.checks.words import WordCheck
from vitrify.certification.equivalence.catalogue import SpecCase
from vitrify.certification.equivalence.steps_at_any_length import machine_steps_at_any_length
from vitrify.certification.margins.values import Undecided
from vitrify.constructions.catalogue import build
from vitrify.net.positions import PositionFormula, tabulated
from vitrify.net.transformer import Block
from vitrify.net.weights import Weights
from vitrify.spec.computation.turing import MachineRule, TuringMachine, busy_beaver, increment, random_machine

MACHINE = increment(4)


@cache
def network(name: str = "turing-any-length") -> Weights:
    net: Weights = build(MACHINE, name, max_length=30)
    return net


def proved(weights: Weights, machine: TuringMachine = MACHINE) -> int | None:
    check = WordCheck(weights.architecture, machine)
    return machine_steps_at_any_length(SpecCase(weights, machine, check.oracle, None)).longest


def dim(name: str, place: int = 0) -> int:
    return network().labels.space(name).dims[place]


def plus(name: str, index: Any, by: float) -> Weights:
    array = np.array(network().arrays[name], dtype=float)
    array[index] += by
    return network().with_array(name, array)


def shaped(**changes: Any) -> Weights:
    return replace(network(), architecture=replace(network().architecture, **changes))


def head(block: int, index: int, **changes: Any) -> Weights:
    blocks = list(network().architecture.blocks)
    heads = list(blocks[block].heads)
    heads[index] = replace(heads[index], **changes)
    blocks[block] = replace(blocks[block], heads=tuple(heads))
    return shaped(blocks=tuple[Block, ...](blocks))


def formulas(index: int, **changes: Any) -> Weights:
    every = list(network().architecture.formulas)
    every[index] = replace(every[index], **changes)
    return shaped(formulas=tuple[PositionFormula, ...](every))


@pytest.mark.parametrize(
    "machine",
    [
        MACHINE,
        busy_beaver(),
        random_machine(5, 4, 4, length=2, steps=9),
        TuringMachine("s", (MachineRule("s", "_", "_", "R", "s"),), (), (), steps=5, length=0),
    ],
)
def test_it_is_proved_to_the_end_of_float64(machine: TuringMachine) -> None:
    assert proved(build(machine, "turing-any-length"), machine) == 23_726_565
    assert proved(build(machine, "turing-hybrid-any-length"), machine) == 23_726_565


def test_a_net_that_reads_longer_words_is_proved_no_further() -> None:
    with pytest.raises(Undecided, match="at 30011995 symbols rounding may exceed the gap"):
        proved(shaped(rounding=10))


BROKEN: dict[str, tuple[Callable[[], Weights], str]] = {
    "a table": (lambda: tabulated(network()), "table of positions"),
    "another power": (lambda: formulas(1, coefficients=(0, 0, 0, 1)), "more than t and t²"),
    "a constant": (lambda: formulas(0, coefficients=(1, 1)), "more than t and t²"),
    "twice the position": (lambda: formulas(0, coefficients=(0, 2)), "scores|layer"),
    "a shared dimension": (lambda: plus("embed.W_E", (slice(None), dim("square")), 1.0), "layer 2"),
    "BOS moves": (lambda: plus("embed.W_E", (0, dim("move")), 1.0), "apart|values"),
    "a letter moves": (lambda: plus("embed.W_E", (1, dim("move")), 1.0), "values"),
    "a letter is unmarked": (lambda: plus("embed.W_E", (1, dim("letter")), -1.0), "scores of tokens"),
    "a step is marked": (lambda: plus("embed.W_E", (4, dim("letter")), 1.0), "scores of tokens"),
    "an odd number": (lambda: plus("embed.W_E", (1, dim("symbol")), 0.3), "small powers of two"),
    "another symbol": (lambda: plus("embed.W_E", (3, dim("symbol", 1)), 1.0), "values of"),
    "scores in layer 1": (lambda: plus("blocks.0.attn.b_Q", (0, 0), 1.0), ""),
    "moves counted twice": (lambda: plus("blocks.0.attn.W_V", (0, dim("move"), 0), 1.0), "scores"),
    "one mask": (lambda: head(0, 1, mask="causal"), "one causal and one strict"),
    "ties in layer 1": (lambda: head(0, 0, ties="right"), "apart"),
    "a mask in layer 2": (lambda: head(1, 2, mask="causal"), "scores"),
    "a resolution": (lambda: head(1, 0, resolution=1e-9), "resolution"),
    "a key from a token": (lambda: plus("blocks.1.attn.W_K", (1, dim("state"), 0), 1.0), "layer 2|several"),
    "a query bias": (lambda: plus("blocks.1.attn.b_Q", (1, 0), 1.0), "biases"),
    "a half query": (lambda: plus("blocks.1.attn.W_Q", (0, dim("share of the cell"), 0), -1.0), "scores"),
    "a value from a token": (lambda: plus("blocks.1.attn.W_V", (1, dim("bos"), 0), 1.0), "several"),
    "the square negated": (lambda: plus("blocks.1.attn.W_O", (3, 1, dim("cell written", 1)), -2.0), "opposite signs"),
    "left ties": (lambda: head(2, 0, ties="left"), "does not take the last"),
    "a wide resolution": (lambda: head(2, 0, resolution=0.5), "does not take the last"),
    "a strict last head": (lambda: head(2, 0, mask="strict"), "does not take the last"),
    "no sink": (lambda: plus("blocks.2.attn.W_K", (0, dim("bos"), 2), -1.0), "scores of the last layer"),
    "a high sink": (lambda: plus("blocks.2.attn.b_Q", (0, 2), 1.0), "scores of the last layer"),
    "units see the cell": (lambda: plus("blocks.2.mlp.W_in", (dim("cell"), 0), 0.01), "units of H"),
    "logits see the position": (lambda: plus("unembed.W_U", (dim("index"), 0), 1e-9), "logits of t"),
    "softmax": (lambda: head(2, 0, attention="softmax"), "is not hard"),
    "a bias": (lambda: plus("unembed.b_U", (0,), 9.0), "not that of its rule"),
    "a rule": (lambda: plus("blocks.2.mlp.W_out", (1, dim("next step")), 5.0), "not that of its rule"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_nothing_is_proved_of_what_differs(name: str) -> None:
    make, reason = BROKEN[name]
    if name == "scores in layer 1":  # keys are 0, so scores are too
        assert proved(make()) == 23_726_565
        return
    with pytest.raises(Undecided, match=reason):
        proved(make())


def test_another_rule_of_the_machine_is_noticed() -> None:
    carry = MachineRule("carry", "0", "0", "L", "carry")
    rules = tuple(carry if rule[:2] == carry[:2] else rule for rule in MACHINE.rules)
    other = TuringMachine("right", rules, ("done",), ("0", "1"), length=4)
    with pytest.raises(Undecided, match="a step after reading '0' is not that of its rule"):
        proved(network(), other)


RECURRENCE = "turing-hybrid-any-length"
CELLS = network(RECURRENCE).labels.space("cells").dims


def recurrent(array: str, index: Any, by: float) -> Weights:
    weights = network(RECURRENCE)
    changed = np.array(weights.arrays[array], dtype=float)
    changed[index] += by
    return weights.with_array(array, changed)


def place_of(name: str) -> int:
    return network(RECURRENCE).labels.space(name).dims[0]


@pytest.mark.parametrize(
    ("array", "index", "by", "reason"),
    [
        ("blocks.0.rec.W_B", (place_of("bos"), 0), 1.0, "what drives"),
        ("blocks.0.rec.W_B", (place_of("move"), 0), 1.0, "what drives"),
        ("blocks.0.rec.W_A", (place_of("move"), 0, 1), -1.0, "a matrix"),
        ("blocks.0.rec.W_A", (place_of("moves"), 4, 1), 1.0, "a matrix"),
        ("blocks.0.rec.W_A", (place_of("letter"), 2, 2), 1.0, "a matrix"),
        ("blocks.0.rec.W_A", (place_of("step"), 0, 2), -2.0, "a matrix"),
        ("blocks.0.rec.W_A", (place_of("symbol"), 0, 0), 1.0, "a matrix"),
        ("blocks.0.rec.W_A", (place_of("letter"), 0, 0), 0.3, "small powers of two"),
        ("blocks.0.rec.W_C", (2, CELLS[0]), 1.0, "one dimension"),
        ("blocks.0.rec.W_C", (0, CELLS[0]), 1.0, "last layer"),
        ("embed.W_E", (1, CELLS[0]), 1.0, "queries of tokens"),
        ("blocks.1.attn.b_K", (0, 0), 1.0, "scores of the last layer"),
        ("blocks.1.attn.W_K", (0, place_of("bos"), 2), -1.0, "scores of the last layer"),
        ("blocks.1.attn.W_Q", (0, CELLS[2], 0), 1.0, "queries of the last layer"),
        ("blocks.1.mlp.W_in", (CELLS[1], 0), 1.0, "units of H²"),
        ("unembed.W_U", (CELLS[3], 0), 1.0, "logits of p²"),
    ],
)
def test_nothing_is_proved_of_a_recurrence_that_differs(array: str, index: Any, by: float, reason: str) -> None:
    with pytest.raises(Undecided, match=reason):
        proved(recurrent(array, index, by))
