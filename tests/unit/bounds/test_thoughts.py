"""Thoughts under hard attention: what the analysis says against every prompt; the law of blocks; what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import ceil
from typing import Any

import numpy as np
import pytest

from cases import each
from vitrify.bounds.activations import ExactNet
from vitrify.bounds.calculators.parity_thoughts import evaluate
from vitrify.bounds.random_nets import random_net
from vitrify.bounds.thoughts import BITS, BlindChain, blind_chain, parity_in_blocks, positions_read, trained_parity
from vitrify.constructions.catalogue import build
from vitrify.errors import InputError
from vitrify.net.architecture import Output
from vitrify.net.generate import generate
from vitrify.net.transformer import Head, Ties
from vitrify.net.weights import Weights
from vitrify.spec.computation.circuit import adder, random_circuit


def transcripts(weights: Weights[Any], length: int, thoughts: int) -> dict[tuple[str, ...], tuple[str, ...]]:
    return {g.prompt: g.symbols for g in generate(weights, list(product(BITS, repeat=length)), thoughts)}


def agree(chain: BlindChain, written: dict[tuple[str, ...], tuple[str, ...]]) -> bool:
    """Whether every prompt with the fixed letters gets the thoughts of a chain."""
    own = [t for prompt, t in written.items() if all(prompt[at] == BITS[bit - 1] for at, bit in chain.fixed.items())]
    return len(own) == 2 ** len(chain.free) and set(own) == {chain.thoughts}


def writer(seed: int, ties: Ties) -> Weights[Any]:
    """A random layer with hard attention that writes the letters that it reads."""
    net = random_net(seed, Head("hard", "causal", ties=ties), max_length=9, layers=1, heads=2)
    return replace(net, architecture=replace(net.architecture, output=Output("class", BITS)))


@each("seed", range(12))
def test_no_prompt_with_the_fixed_letters_gets_another_thought(seed: int) -> None:
    weights = writer(seed, ("left", "right")[seed % 2])
    chain = blind_chain(ExactNet(weights), 6, 4)
    if chain is not None:
        assert agree(chain, transcripts(weights, 6, 4))
        assert chain.fixed_by_step == tuple(sorted(chain.fixed_by_step))


def test_circuits_depend_on_the_letters_that_their_gates_reach() -> None:
    for spec in (adder(2), random_circuit(5, 6, 9, 1)):
        weights, length = build(spec, attention="hard"), len(spec.inputs)
        for thoughts in (1, 3, 6):
            chain = blind_chain(ExactNet(weights), length, thoughts)
            assert chain is None or agree(chain, transcripts(weights, length, thoughts))
            if thoughts == 1:
                assert chain is not None
                assert len(chain.fixed) <= 2


@pytest.mark.long
@each(
    "length, heads, doublings",
    [(2, 1, 0), (6, 1, 0), (7, 2, 0), (8, 3, 0), (9, 8, 0), (9, 1, 1), (10, 2, 1), (10, 1, 2)],
)
def test_blocks_take_no_thought_too_many(length: int, heads: int, doublings: int) -> None:
    weights, enough = parity_in_blocks(length, heads, doublings)
    assert enough == ceil((length - 1) / (heads * 2**doublings))
    assert weights.sizes.heads_per_layer == (1,) * doublings + (heads,)
    written = transcripts(weights, length, enough)
    assert all(text[-1] == BITS[prompt.count("1") % 2] for prompt, text in written.items())
    exact = ExactNet(weights)
    assert blind_chain(exact, length, enough) is None
    if enough > 1:
        chain = blind_chain(exact, length, enough - 1)
        assert chain is not None
        assert agree(chain, transcripts(weights, length, enough - 1))
        assert len(chain.fixed) == heads * 2**doublings * (enough - 1) + 1
    if not doublings:
        assert evaluate(n=length, H=heads).figures["thoughts of one layer, heads that choose by position"] == enough
        read = positions_read(weights, ("0",) * length, max(enough - 1, 1))
        assert len(read) == min(heads * max(enough - 1, 1) + 1, length)


def test_letters_that_no_head_reads_change_nothing() -> None:
    weights, enough = parity_in_blocks(9, 2)
    prompt = tuple("011010011")
    read = positions_read(weights, prompt, enough - 1)
    (first,) = generate(weights, [prompt], enough - 1)
    for at in range(9):
        flipped = (*prompt[:at], BITS[prompt[at] == "0"], *prompt[at + 1 :])
        (text,) = generate(weights, [flipped], enough - 1)
        assert (text.symbols == first.symbols) == (at not in read)


def test_a_net_whose_thoughts_are_no_input_stops() -> None:
    weights = writer(0, "left")
    other = replace(weights, architecture=replace(weights.architecture, output=Output("class", ("no", "yes"))))
    assert blind_chain(ExactNet(other), 5, 1) is not None
    with pytest.raises(InputError, match="stops after 1 thoughts"):
        blind_chain(ExactNet(other), 5, 2)


@each("length, heads, doublings", [(5, 1, 0), (8, 3, 0), (6, 1, 1)])
def test_a_trained_net_has_the_thoughts_of_parity_and_a_blind_letter_without_the_last(
    length: int, heads: int, doublings: int
) -> None:
    weights, thoughts = trained_parity(length, heads, doublings)
    built, _ = parity_in_blocks(length, heads, doublings)
    written = transcripts(weights, length, thoughts)
    assert all(symbols[-1] == BITS[prompt.count("1") % 2] for prompt, symbols in written.items())
    assert np.abs(weights.arrays["unembed.W_U"] - built.arrays["unembed.W_U"]).max() > 0.01  # not those that are built
    assert blind_chain(ExactNet(weights), length, thoughts) is None
    chain = blind_chain(ExactNet(weights), length, thoughts - 1)
    assert chain is not None
    assert agree(chain, transcripts(weights, length, thoughts - 1))
    again, _ = trained_parity(length, heads, doublings)
    assert all(np.array_equal(array, again.arrays[name]) for name, array in weights.arrays.items())


def test_parity_of_many_letters_at_once_is_not_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitrify.bounds.thoughts.MAX_SEEDS", 2)
    with pytest.raises(InputError, match="no net of 2 learns PARITY of 7 letters by 6 heads"):
        trained_parity(7, 6)
