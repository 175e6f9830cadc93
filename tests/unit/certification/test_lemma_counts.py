"""The lemma of counts of letters: what it proves is right on every word, and what it rests on is needed."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from vitrify.certification.equivalence.catalogue import SpecCase
from vitrify.certification.equivalence.letter_counts import letter_counts
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.constructions.catalogue import build
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic

LENGTH, MUTANTS = 6, 250
NAMES = ("parity-by-position", "parity-any-length", "parity")


def counted(net: Weights[Transformer], spec: Automaton) -> dict[str, int]:
    """Return the instances that the lemma checks, or raise Undecided."""
    proof = letter_counts(SpecCase(net, spec, oracle_for(spec, net.architecture), None))
    assert (proof.longest, proof.exact) == (net.architecture.max_length, True)
    return dict(proof.instances)


def is_right(net: Weights[Transformer], spec: Automaton) -> bool:
    """Return whether every answer to every word that the network reads is right, by running them all."""
    oracle = oracle_for(spec, net.architecture)
    for length in range(net.architecture.min_length, net.architecture.max_length + 1):
        words = np.array(list(product((1, 2), repeat=length)), dtype=np.int64).reshape(2**length, length)
        logits = batch_logits(net, with_pads(net.architecture, words))
        known = oracle.known(words)
        if (logits.argmax(axis=-1) != known).any() or (np.ptp(logits, axis=-1) == 0).any():
            return False
    return True


def test_every_count_is_run_once() -> None:
    counts = [counted(build(cyclic(2), name, max_length=LENGTH), cyclic(2))["counts"] for name in NAMES]
    assert counts == [LENGTH + 1, sum(range(LENGTH + 2)), LENGTH + 1]


@pytest.mark.parametrize("name", NAMES)
def test_mutants_that_are_proved_are_right_on_every_word(name: str) -> None:
    net, rng = build(cyclic(2), name, max_length=LENGTH), np.random.default_rng(0)
    proved = refused = 0
    for _ in range(MUTANTS):
        which = rng.choice([key for key, array in net.arrays.items() if array.size])
        array = np.array(net.arrays[which])
        at = tuple(rng.integers(size) for size in array.shape)
        array[at] = rng.choice([0.0, -array[at], array[at] * 0.5, array[at] + 1.0, array[at] - 0.25])
        mutant = net.with_array(which, array)
        try:
            counted(mutant, cyclic(2))
        except Undecided:
            refused += 1
            continue
        proved += 1
        assert is_right(mutant, cyclic(2)), (which, at)
    assert proved > 5
    assert refused > 20


def with_heads(net: Weights[Transformer], block: int, **changes: Any) -> Weights[Transformer]:
    blocks = list(net.architecture.blocks)
    blocks[block] = replace(blocks[block], heads=tuple(replace(head, **changes) for head in blocks[block].heads))
    return replace(net, architecture=replace(net.architecture, blocks=tuple(blocks)))


def test_what_the_lemma_rests_on_is_needed() -> None:
    net = build(cyclic(2), "parity-by-position", max_length=LENGTH)
    letter = int(np.flatnonzero(net.arrays["embed.W_E"][1] != net.arrays["embed.W_E"][2])[0])
    shares = next(label for label in net.labels.spaces if label.name == "k/n and 1/n").dims[0]
    position = net.architecture.formulas[0].dim

    def with_one(name: str, at: tuple[int, ...]) -> Weights[Transformer]:
        array = np.array(net.arrays[name])
        array[at] = 1e-9
        return net.with_array(name, array)

    for odd, why in [
        (with_one("blocks.1.attn.W_K", (0, letter, 0)), "head 1.0 attends by letters"),
        (with_one("blocks.1.attn.W_Q", (0, letter, 0)), "head 1.0 attends by letters"),
        (with_one("blocks.1.attn.W_V", (0, shares, 0)), "reads counts at other positions"),
        (with_one("blocks.0.attn.W_K", (0, position, 0)), "head 0.0 does not weigh all letters alike"),
        (with_heads(net, 0, ties="right"), "head 0.0 does not weigh all letters alike"),
        (with_one("unembed.W_U", (letter, 0)), "the readout reads the letter"),
        (with_heads(net, 0, mask="strict"), "not all heads see"),
        (net.with_array("unembed.W_U", -net.arrays["unembed.W_U"]), "is wrong, or might be after rounding"),
    ]:
        with pytest.raises(Undecided, match=why):
            counted(odd, cyclic(2))


def test_specs_that_depend_on_the_order_are_not_counted() -> None:
    net = build(cyclic(2), "parity-by-position", max_length=LENGTH)
    last = Automaton.explore("0", "01", lambda _, letter: letter, lambda state: state == "0")
    with pytest.raises(Undecided, match="the order of letters matters"):
        counted(net, last)
    with pytest.raises(Undecided, match="at most 160 letters"):
        counted(build(cyclic(2), "parity-by-position", max_length=161), cyclic(2))
