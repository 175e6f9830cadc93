"""The generator of uniform circuits against the net, the circuits of `tc0.py`, and its own declared memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Generator
from itertools import islice
from typing import Any

import numpy as np
import pytest

from nets import random_arrays
from vitrify.bounds.activations import read_answer
from vitrify.bounds.fixed_point import FixedNet, Grid, logarithmic
from vitrify.bounds.gates import all_words
from vitrify.bounds.random_nets import random_net
from vitrify.bounds.tc0 import BLOCK_DEPTH, finite_precision_circuit
from vitrify.bounds.uniform import UniformCircuit, Wire, collected, memory
from vitrify.errors import BuildRefused, InputError
from vitrify.net.architecture import Output
from vitrify.net.transformer import Block, Head, Mask, Transformer
from vitrify.net.weights import Weights


def narrow(
    seed: int, mask: Mask = "causal", heads: int = 1, layers: int = 1, width: int = 1, units: int = 2
) -> Weights:
    net = Transformer(
        inputs=("<s>", "a", "b"),
        output=Output("values", ("x",)),
        max_length=64,
        d_model=width,
        blocks=(Block((Head("softmax", mask),) * heads, d_head=1, d_value=1, units=units),) * layers,
    )
    arrays = {name: 2 * array for name, array in random_arrays(net, seed).items()}
    return Weights(net, arrays | {"pos_embed.W_pos": np.zeros((65, width))})


CASES: dict[str, tuple[dict[str, Any], Grid, int]] = {
    "causal": ({}, Grid(1, 1, 2), 3),
    "no mask": ({"mask": "none"}, Grid(1, 2, 2), 4),
    "no key at the first position": ({"mask": "strict"}, Grid(1, 1, 2), 3),
    "no key at the last position": ({"mask": "after"}, Grid(1, 1, 2), 3),
    "two heads": ({"heads": 2}, Grid(1, 1, 2), 3),
    "two layers": ({"layers": 2}, Grid(1, 1, 2), 3),
    "width 2": ({"width": 2}, Grid(0, 1, 2), 3),
    "no MLP": ({"units": 0}, Grid(2, 1, 1), 3),
}


@pytest.mark.parametrize("name", CASES)
def test_the_written_circuit_says_what_the_net_says(name: str) -> None:
    choices, grid, length = CASES[name]
    for seed in range(4):
        weights = narrow(seed, **choices)
        fixed, net, words = FixedNet(weights, grid), weights.architecture, all_words(2, length)
        circuit, gates = collected(UniformCircuit(fixed, length))
        wanted = [read_answer("values", net.output.symbols, row) for row in fixed.run(words)[:, -1].tolist()]
        assert circuit.run(words) == wanted == finite_precision_circuit(fixed, length).run(words)
        assert circuit.circuit.size.depth <= BLOCK_DEPTH * len(net.blocks) + 2
        empty = name.startswith("no key")  # a query without keys has levels that are constant
        assert gates == UniformCircuit(fixed, length).gates or empty


@pytest.mark.long
def test_the_circuit_written_for_eight_letters_in_logarithmic_precision() -> None:
    weights = narrow(3)
    fixed, words = FixedNet(weights, logarithmic(8)), all_words(2, 8)
    circuit, _ = collected(UniformCircuit(fixed, 8))
    logits = fixed.run(words)[:, -1]
    assert circuit.run(words) == [tuple(row) for row in logits.tolist()]
    assert len({*map(tuple, logits.tolist())}) > 1


def test_the_generator_holds_as_many_numbers_at_every_length() -> None:
    numbers_at = {}
    for length in (2, 4, 8, 16, 32, 64):
        stream = UniformCircuit(FixedNet(narrow(3), logarithmic(length)), length)
        wires, numbers, bits = stream.wires(), 0, 0
        for _ in islice(wires, 0, 6000, 7):
            state = memory(wires)
            numbers, bits = max(numbers, state.numbers), max(bits, state.bits)
        assert bits <= stream.declared <= 4 * length.bit_length() + 4
        numbers_at[length] = numbers
    assert len(set(numbers_at.values())) == 1


@pytest.mark.long
def test_a_suspended_generator_keeps_no_table() -> None:
    """Python's own count of memory, after 20,000 wires at 8 and at 64 letters."""
    growth = []
    for length in (8, 64):
        fixed = FixedNet(narrow(3), logarithmic(length))
        wires = UniformCircuit(fixed, length).wires()
        next(wires)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in islice(wires, 20_000):
            pass
        growth.append(tracemalloc.get_traced_memory()[0] - before)
        tracemalloc.stop()
    assert max(growth) < 20_000, growth


def test_memory_counts_what_a_generator_remembers() -> None:
    def remembering() -> Generator[Wire, None, None]:
        seen: list[int] = []
        for number in range(100):
            seen.append(number)
            yield ("type", number), ("letter", number), 1

    wires = remembering()
    assert [memory(wires).numbers for _ in islice(wires, 3)] == [2, 3, 4]


def test_what_has_no_uniform_circuit_is_refused() -> None:
    placed = random_net(0, Head("softmax"), max_length=4, width=1)
    with pytest.raises(BuildRefused, match="a table of positions"):
        UniformCircuit(FixedNet(placed, Grid(1, 1, 1)), 3)
    hard = random_net(0, Head("hard"), max_length=4, width=1, positions=False)
    for fixed in (FixedNet(hard, Grid(1, 1, 1)), FixedNet(narrow(0), Grid(1, 1, 1, 1))):
        with pytest.raises(BuildRefused, match="softmax attention whose sums are rounded once"):
            UniformCircuit(fixed, 3)
    with pytest.raises(InputError, match="words of 1 to 64 letters, not 65"):
        UniformCircuit(FixedNet(narrow(0), Grid(1, 1, 1)), 65)
    with pytest.raises(BuildRefused, match="more than 16777216 wires: read them one by one"):
        collected(UniformCircuit(FixedNet(narrow(0, width=3), logarithmic(8)), 8))
