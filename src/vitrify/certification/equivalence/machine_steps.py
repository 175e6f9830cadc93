r"""Lemma "machine steps": after every prefix of a Turing machine's own run, the network writes the next step.

A word is the input and then the steps. At position $i = 1 \dots T$ let $x$ be the token (a letter, or a step that wrote
a symbol, moved by $\mu(x)$ and went to a state) and $c = \sum_{j \le i} \mu(x_j)$ the cell of the machine's head. The
token wrote to the cell $w$: a step to $c - \mu(x)$, the letter at $i$ to $i - 1$. A *record* is a triple $(x, i, c)$
with $|c| \le i$ and $|c - \mu(x)| < i$; letters have $c = 0$. All that occur are among them. Instances:

1. Layer 1: what a head adds to the residual stream depends on the record alone. A head with fixed weights gives all
   tokens the same weight, at every position, and a token adds $\mu(x)$ times one vector: their sum is $c$ times it. Any
   other head reads its own position or BOS, as $x$ and $i$ say. So the residual stream after the units of the stored
   weights is known for every record.
2. Layer 2: the query of a record depends on $c$ alone, the key on $(w, i)$, the value on the symbol written. For every
   $c$, keys with $w = c$ are better the later they are; the worst of them is better than BOS, and BOS better than any
   other key. So the head reads the symbol that was written last to the cell $c$, and else what BOS holds.
3. For every record, and every symbol that may be read, BOS for the blank, units and logits of the stored weights give
   the step of the rule for the state of $x$ (the start state for a letter) and that symbol.

By induction over the steps a prefix of the run determines state, head and tape as the machine does, so that the next
step is right. The answer before the first token is judged by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.ideal import HeadRule, need_above
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.right import logit_margins
from vitrify.net.attention import weigh
from vitrify.spec.computation.turing import MOVES, OneTapeMachine, TuringMachine

MAX_NUMBERS = 1 << 25  # of the residual streams of all records
SAME = 1e-9  # numbers nearer to each other than this, relative to the largest, are equal
SELECTED = 0.99  # of the weight of a head


class Records(NamedTuple):
    """All records: tokens, positions from 1, cells of the machine's head, and cells that were written to."""

    token: Ints
    position: Ints
    cell: Ints
    written: Ints


@lemma(TuringMachine)
def machine_steps(case: SpecCase) -> SpecProof:
    """Prove that a network writes the steps of a Turing machine."""
    ideal, spec = case.ideal, case.spec
    net, length = ideal.net, ideal.longest
    if len(net.blocks) != 2 or len(net.blocks[1].heads) != 1 or any(r.head.mask != "causal" for r in ideal.rules):
        raise Undecided("steps are followed through two layers of causal heads, the second of which has one")
    if not (case.oracle.errors(np.zeros((1, 0), dtype=np.int64), ideal.first_logits[None, None]) == 0).all():
        raise Undecided("the first step on the empty input is wrong")
    parts = [parts_of(spec, token) for token in net.inputs[1:]]  # symbol, move, state
    records = _records(spec, [move for _, move, _ in parts], length)
    if len(records.token) * net.d_model > MAX_NUMBERS:
        raise Undecided(f"{len(records.token):,} records of {net.d_model} numbers are too many")
    x = ideal.after_stored_units(0, _first_layer(case, records, np.array([move for _, move, _ in parts])))
    (maps,) = ideal.selecting(1)
    values = _last_writes(maps, records, x, [symbol for symbol, _, _ in parts], spec.blank)
    rules = {(rule.state, rule.read): net.output.symbols.index(rule.step) for rule in spec.rules}
    for symbol, value in values:
        logits = ideal.after_stored_units(1, x + value) @ ideal.w_u + ideal.b_u
        expected = np.array([rules[state, symbol] for _, _, state in parts])[records.token - 1]
        if not (logit_margins(logits, expected) > case.oracle.TIE).all():
            raise Undecided(f"a step after reading {symbol!r} is not that of its rule")
    return SpecProof("machine steps", length, {"records": len(records.token), "symbols read": len(values)})


def parts_of(spec: OneTapeMachine, token: str) -> tuple[str, int, str]:
    """Return the symbol that a token writes, its move, and the state after it."""
    if token in spec.alphabet:
        return token, 0, spec.start
    symbol, move, state = token.split(",")[:3]
    return symbol, MOVES[move], state


def _records(spec: TuringMachine, moves: list[int], length: int) -> Records:
    """Return all records that can occur, and more."""
    rows = [
        (token, i, cell, cell - move if token > len(spec.alphabet) else i - 1)
        for token, move in enumerate(moves, start=1)
        for i in range(1, length + 1)
        for cell in (range(-i, i + 1) if token > len(spec.alphabet) else [0])
        if abs(cell - move) < i
    ]
    return Records(*np.array(rows, dtype=np.int64).reshape(-1, 4).T)


def _first_layer(case: SpecCase, records: Records, moves: Ints) -> Floats:
    """Return the residual stream [record, dim] after the heads of the first layer."""
    ideal = case.ideal
    letters = ideal.embed[1:] + ideal.steady
    x = ideal.embed[records.token] + ideal.positions[ideal.net.pads + records.position - 1]
    for maps in ideal.blocks[0].heads:
        if np.ptp(ideal.embed[1:] @ maps.k, axis=0).max(initial=0.0) > 0:
            raise Undecided("keys of the first layer depend on tokens")
        scores = [maps.scores(letters[0] @ maps.k, letter @ maps.q) for letter in letters]
        weights = np.array([weigh(maps.head, each, np.isfinite(each)) for each in scores])
        own, pad = (letters @ maps.v)[:, None] + maps.v_places + maps.b_v, maps.pad_values  # [token, position, dim]
        if maps.averages:
            x = x + _summed(weights, own, pad, moves, records.cell)
        else:
            x = x + _read(weights, own, pad)[records.token - 1, records.position - 1]
    return np.asarray(x)


def _summed(weights: Floats, own: Floats, pad: Floats, moves: Ints, cells: Ints) -> Floats:
    """Return what a head with fixed weights adds: the sum of the moves, times a vector, and a constant."""
    share = weights[0, 0, len(pad)]  # of the first token at its own position
    visible = np.tri(weights.shape[1], dtype=bool)
    if not (np.abs(weights[:, :, len(pad) :] - share * visible) <= SAME * share).all():
        raise Undecided("tokens do not have the same weight everywhere")
    added, constant = share * own, weights[0, :, : len(pad)] @ pad
    moving = int(np.abs(moves).argmax())
    vector = added[moving, 0] * moves[moving]  # a move is 1 or -1, or there is none
    wanted = moves[:, None, None] * vector
    slack = SAME * (1 + np.abs(vector).max())
    if np.abs(added - wanted).max() > slack / len(visible) or np.ptp(constant, axis=0).max() > slack:
        raise Undecided("a head with fixed weights does not sum the moves")
    return np.asarray(cells[:, None] * vector + constant[0])


def _read(weights: Floats, own: Floats, pad: Floats) -> Floats:
    """Return what a head adds [token, position, dim] that reads its own position or the pads."""
    itself = np.diagonal(weights[:, :, len(pad) :], axis1=1, axis2=2) > SELECTED
    nothing = weights[:, :, : len(pad)].sum(axis=-1) > SELECTED
    if not (itself | nothing).all() or np.ptp(pad, axis=0).max() > 0:
        raise Undecided("a head of the first layer reads neither its own position nor BOS")
    return np.where(itself[..., None], own, pad[0])


def _table(numbers: Ints, rows: Floats, what: str) -> Floats:
    """Return the row of every number; refuse rows that differ where numbers are equal."""
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    if np.abs(rows - rows[first][inverse]).max() > SAME * (1 + np.abs(rows).max()):
        raise Undecided(what)
    return np.asarray(rows[first])


def _last_writes(
    maps: HeadRule, records: Records, x: Floats, symbols: list[str], blank: str
) -> list[tuple[str, Floats]]:
    """Return the values that the head of the second layer may read, by symbol: the last one written to the cell."""
    width = 1 + int(records.position.max())
    written = records.written * width + records.position
    queries = _table(records.cell, x @ maps.q + maps.b_q, "queries depend on more than the cell")
    keys = _table(written, x @ maps.k + maps.b_k, "keys depend on more than cell and position")
    names = sorted(set(symbols))
    symbol = np.array([names.index(each) for each in symbols])[records.token - 1]
    values = _table(symbol, x @ maps.v + maps.b_v, "values depend on more than the symbol")
    cells, (where, when) = np.unique(records.cell), np.divmod(np.unique(written), width)
    bos, scores = (queries @ maps.pad_keys.T).max(axis=1), queries @ keys.T
    size = float(np.abs(scores).max() + np.abs(bos).max())
    for cell, row, level in zip(cells.tolist(), scores, bos, strict=True):
        match = where == cell  # in the order of positions
        assert (np.diff(when[match]) > 0).all()
        need_above(row[match][1:], row[match][:-1], size, "a later symbol of a cell is not better than an earlier one")
        need_above(row[match], level, size, "a symbol of the cell is not better than BOS")
        need_above(np.array(level), row[~match], size, "another cell is better than BOS")
    if np.ptp(maps.pad_values, axis=0).max() > 0:
        raise Undecided("pads hold different symbols")
    present = np.unique(symbol).tolist()
    return [(blank, maps.pad_values[0]), *((names[number], row) for number, row in zip(present, values, strict=True))]
