r"""Lemma "gates": after the inputs and any gates of a circuit's own run, the network writes the next gate's value.

A word is the input bits and then the values of gates, so position $v$ holds the value of variable $v$, and position 0,
BOS, stands for the variable 0, which is false. Heads are those of the ideal network (`ideal.py`), which select exactly.
Instances (the finitely many cases of a statement, each of which is computed):

- keys and queries do not depend on bits, so that every head at position $i$ reads one position $w(i)$, the clear winner
  of all $j \le i$;
- the residual stream at $i$ then depends on $i$, on its own bit and on the bits at $w(i)$ of every head. For each $i$
  before a gate, and all values of these variables and of the gate's two operands (equal variables have equal values),
  units and logits of the stored weights give the gate's value.

As a prefix of a run that has all input bits holds the right value of every variable, the next value is right after each
of them, up to the length $T$ of the longest word.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from vitrify.arrays import Ints
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.ideal import HeadRule, Ideal
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.right import logit_margins
from vitrify.spec.computation.circuit import Circuit

MAX_HEADS = 4


@lemma(Circuit)
def gates(case: SpecCase) -> SpecProof:
    """Prove that a network writes the values of the gates of a circuit."""
    ideal, spec = case.ideal, case.spec
    net, length = ideal.net, ideal.longest
    if net.pads != 1 or net.looks_ahead or len(net.blocks) != 1 or len(net.blocks[0].heads) > MAX_HEADS:
        raise Undecided("gates are followed behind one pad, by one layer of causal heads")
    if (
        not spec.inputs
        and not case.oracle.errors(np.zeros((1, 0), dtype=np.int64), ideal.first_logits[None, None]) == 0
    ):
        raise Undecided("the value of the first gate is wrong")
    embed, places = ideal.embed, ideal.positions
    at = np.arange(max(1, len(spec.inputs)), min(length, len(spec.inputs) + len(spec.gates) - 1) + 1)
    literals = np.array(spec.gates, dtype=np.int64)[at - len(spec.inputs)]
    maps = ideal.selecting(0)
    read = [_winners(ideal, each)[at - 1] for each in maps]
    variables = np.stack([*read, at, *(literals >> 1).T], axis=1)  # [position, variable]
    tokens = np.array([net.input_ids[bit] for bit in spec.BITS])
    outputs = np.array([net.output.symbols.index(bit) for bit in spec.BITS])
    checked = 0
    for bits in product((0, 1), repeat=variables.shape[1]):
        values = np.array(bits)
        rows = _consistent(variables, values)
        token = np.where(variables[rows] == 0, 0, tokens[values])  # [position, variable]
        x = embed[token[:, len(maps)]] + places[at[rows]]
        for head, each in enumerate(maps):
            there = variables[rows, head]
            x = x + (embed[token[:, head]] + places[there]) @ each.v + each.b_v
        left, right = (values[side] ^ (literals[rows, side] & 1) for side in (-2, -1))
        logits = ideal.after_stored_units(0, x) @ ideal.w_u + ideal.b_u
        margins = logit_margins(logits, outputs[left & right])
        if not (margins > case.oracle.TIE).all():
            raise Undecided("the value of a gate is wrong for some values of its operands")
        checked += len(rows)
    return SpecProof("gates", length, {"positions": len(at), "values of variables": checked})


def _consistent(variables: Ints, values: Ints) -> Ints:
    """Return the positions at which equal variables have equal values, and the variable 0 is false."""
    same = (variables[:, :, None] != variables[:, None]) | (values[:, None] == values[None])
    return np.flatnonzero(same.all(axis=(1, 2)) & ((variables != 0) | (values == 0)).all(axis=1))


def _winners(ideal: Ideal, rule: HeadRule) -> Ints:
    """Return the position that a head reads at every position from 1 on; 0 is BOS."""
    for matrix in (rule.q, rule.k):
        if np.ptp(ideal.embed[1:] @ matrix, axis=0).max(initial=0.0) > 0:
            raise Undecided("a head selects by bits")
    if rule.head.mask != "causal":
        raise Undecided("a head does not see its own position and all before")
    letter = ideal.embed[1] + ideal.steady
    winner, _ = rule.winners(letter @ rule.k, letter @ rule.q)
    return winner + 1
