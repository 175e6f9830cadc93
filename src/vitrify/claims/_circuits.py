"""Shared parts of claims about circuits of nets in finite precision: comparison, growth, and a circuit with a gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from vitrify.arrays import Ints
from vitrify.bounds.activations import read_answer
from vitrify.bounds.fixed_point import FixedNet
from vitrify.bounds.gates import FALSE, NetCircuit, WideGate, input_bits

RANDOM_WORDS = 1000


def random_words(letters: int, length: int) -> Ints:
    """Return random words of one length, always the same [word, position]."""
    return np.random.default_rng(length).integers(1, letters + 1, (RANDOM_WORDS, length))


def first_difference(fixed: FixedNet, circuit: NetCircuit, words: Ints) -> dict[str, object] | None:
    """Return the first word on which a circuit and a net in finite precision differ, with both answers, or None."""
    net = fixed.net
    logits = fixed.run(words)[:, -1].tolist()
    for word, row, actual in zip(words, logits, circuit.run(words), strict=True):
        expected = read_answer(net.output.kind, net.output.symbols, row)
        if actual != expected:
            return {"word": " ".join(net.inputs[token] for token in word), "expected": expected, "actual": actual}
    return None


def exponent(sizes: Mapping[int, int]) -> float:
    """Return the slope of the logarithm of sizes over that of lengths, by least squares."""
    return round(float(np.polyfit(np.log([*sizes]), np.log([*sizes.values()]), 1)[0]), 2)


def without_value(circuit: NetCircuit, word: Ints) -> NetCircuit:
    """Return a circuit in which one vector is missing: the one that the last position holds after this word."""
    wide, bits = circuit.circuit, input_bits(word[None], circuit.letters)
    chosen = int(wide.evaluate(bits)[0].argmax())
    name, literal = wide.outputs[chosen]
    at = (literal >> 1) - 1 - len(wide.inputs)
    if at < 0 or literal & 1 or wide.gates[at].kind != "or":
        outputs = (*wide.outputs[:chosen], (name, FALSE), *wide.outputs[chosen + 1 :])
        return replace(circuit, circuit=replace(wide, outputs=outputs))
    wires = wide.gates[at].wires
    true = replace(wide, outputs=tuple((str(wire), wire) for wire in wires)).evaluate(bits)[0]
    left = WideGate("or", tuple(wire for wire, is_true in zip(wires, true, strict=True) if not is_true))
    return replace(circuit, circuit=replace(wide, gates=(*wide.gates[:at], left, *wide.gates[at + 1 :])))
