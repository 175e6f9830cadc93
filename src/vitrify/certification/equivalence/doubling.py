r"""Lemma: an automaton by doubling. After block $l$ every position holds the map of its last $2^l$ letters.

Let $\delta_a$ be the map of the states that letter $a$ makes, and $m_l(t)$ the product of the last $\min(t, 2^l)$
letters up to position $t$; before the first letter it is the identity. The state after $t \le 2^l$ letters is
$m_l(t)(q_0)$. **Invariant**: before block $l$ the contents of position $t$ are a vector `base` that does not depend on
the word, plus $m_l(t)(q)$ in dimension `dims[q]` of every state $q$ that is followed, plus anything in the dimensions
`junk`. Checked instances:

| instance | statement |
| --- | --- |
| letters | the embedding of $a$ is $\delta_a$ in `dims`, `base` elsewhere |
| positions | at every position the head of block $l$ selects the key $2^l$ back; where there is none, pads |
| pads | the value of the pads is that of the identity map |
| reads | scores read neither `dims` nor `junk`; values and units do not read `junk`, nor anything of positions |
| compositions | below |
| answers | at the end, the logits of $s$ in `dims[q_0]` are right for state $s$, for all $s$ that words reach |

Let $f$ be the map at $t$ and $f'$ the one that the head fetches. Units and residual stream write $h(q) = f(f'(q))$ into
a dimension: of $f'$ only $f'(q) = v$ is read there, and every unit reads at most one $f(j) = x$, so what is written
is $c_v + \sum_j \varphi_{vj}(x_j)$. It is $f(v)$ for all maps if $\varphi_{vv}(x) - x$ and the other $\varphi_{vj}$ are
constant and these constants and $c_v$ add up to 0: finitely many values, even where the maps are very many. $x$ runs
through $R_j$, the states to which products of up to $2^l$ letters take $j$, and $v$ through $R_q \cup \{q\}$.
By induction on $l$ the invariant holds after every block; $2^L \ge T$ for $L$ blocks covers every word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Bools, Floats, Ints
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.ideal import HeadRule, Ideal
from vitrify.certification.margins.values import Undecided
from vitrify.spec.automata.automaton import Automaton

ROUNDING = 1e-9  # of whole numbers that are computed here
MAX_VALUES = 1 << 33  # of units, over all compositions of a network
TRIED_MAPS = 64  # random pairs of maps, to find the dimension in which a composition stands


@dataclass(frozen=True, eq=False)
class Maps:
    """The contents of a position: maps of states in some dimensions, as in the docstring of this module.

    `reach[q, s]`: the map may take $q$ to $s$.
    """

    dims: dict[int, int]
    base: Floats
    junk: Bools
    reach: Bools


@lemma(Automaton)
def doubling(case: SpecCase) -> SpecProof:
    """Prove that every block composes two maps of states, and that the composition of all letters is read out."""
    ideal, automaton = case.ideal, case.spec
    if case.net.output.kind != "recognizer" or not ideal.blocks:
        raise Undecided("no block composes maps of states")
    if 2 ** len(ideal.blocks) < ideal.longest:
        raise Undecided(f"{len(ideal.blocks)} doublings do not cover {ideal.longest} letters")
    maps, checked = _embedded(ideal, automaton), 0
    for index in range(len(ideal.blocks)):
        maps, values = _composed(ideal, index, maps, MAX_VALUES - checked)
        checked += values
    answers = _answers(case, ideal, automaton, maps)
    return SpecProof(
        "doubling: each block composes the maps of two halves",
        ideal.longest,
        {
            "letters": len(automaton.alphabet),
            "positions": len(ideal.blocks) * ideal.longest,
            "compositions": checked,
            "answers": answers,
        },
    )


def _embedded(ideal: Ideal, automaton: Automaton) -> Maps:
    """Return the maps of single letters."""
    rows, states = ideal.embed[1:] + ideal.steady, np.arange(len(automaton.states))
    dims = _found(np.vstack([ideal.embed[0], rows]), np.vstack([states, automaton.table.T]).astype(float))
    reach = np.zeros((len(automaton.states),) * 2, dtype=bool)
    np.put_along_axis(reach, automaton.table, True, axis=1)
    junk = np.ptp(rows, axis=0) != 0
    return Maps(dims, *_constants(rows[0], junk, dims), reach)


def _found(rows: Floats, columns: Floats) -> dict[int, int]:
    """Return the dimension of rows [case, dim] that equals each of some columns [case, state], if there is one.

    In one case, the map is the identity: so no two columns are equal, and no two states have the same dimension.
    """
    dims: dict[int, int] = {}
    for state, column in enumerate(columns.T):
        equal = np.flatnonzero((np.abs(rows - column[:, None]) <= ROUNDING).all(axis=0))
        dims |= {state: int(equal[0])} if len(equal) else {}
    if len(set(dims.values())) < len(dims):
        raise Undecided("two states seem to have the same dimension")
    return dims


def _constants(base: Floats, junk: Bools, dims: dict[int, int]) -> tuple[Floats, Bools]:
    """Return the constant part and the junk, without the dimensions of the maps."""
    base, junk = base.copy(), junk.copy()
    base[list(dims.values())], junk[list(dims.values())] = 0.0, False
    return base, junk


def _composed(ideal: Ideal, index: int, maps: Maps, most: int) -> tuple[Maps, int]:
    """Return the maps after a block, and the number of values of units that were checked."""
    block, states = ideal.blocks[index], sorted(maps.dims)
    if len(block.heads) != 1 or not states:
        raise Undecided("a block without one head, or without maps of states to compose")
    rule, dims = block.heads[0], np.array([maps.dims[q] for q in states])
    fetched, constant = _fetched(rule, maps, dims, np.array(states, dtype=float), 2**index)
    size = len(maps.base)
    empty = (np.zeros((size, 0)), np.zeros(0), np.zeros((0, size)), np.zeros(size))
    w_in, b_in, w_out, b_out = block.units or empty
    placed = ideal.places[index] @ w_in
    if np.any(w_in[maps.junk]) or np.ptp(placed, axis=0).max(initial=0.0) > ROUNDING:
        raise Undecided("units read positions, or what is left of other spaces")
    units = _Units(
        maps.reach,
        states,
        newer=w_in[dims],
        older=fetched @ w_in,
        bias=(maps.base + constant) @ w_in + b_in + placed[0],
        out=w_out,
        newer_past=np.eye(size)[dims],
        older_past=fetched.copy(),
        constant=maps.base + constant,
    )
    for past in (units.newer_past, units.older_past, units.constant[None]):
        past[:, block.gone] = 0.0
    units.constant += b_out
    junk = maps.junk.copy()
    junk[block.gone] = False
    found = units.found(index)
    values = sum(units.need_composed(q, dim, most) for q, dim in found.items() if not junk[dim])
    found = {q: dim for q, dim in found.items() if not junk[dim]}
    depends = units.newer.any(axis=0) | units.older.any(axis=0)
    base = units.constant + np.maximum(units.bias[~depends], 0.0) @ w_out[~depends]
    junk |= units.newer_past.any(axis=0) | units.older_past.any(axis=0) | w_out[depends].any(axis=0)
    with_none = maps.reach | np.eye(len(maps.reach), dtype=bool)
    reach = (with_none.astype(np.float32) @ maps.reach.astype(np.float32)) > 0
    return Maps(found, *_constants(base, junk, found), reach), values


def _fetched(rule: HeadRule, maps: Maps, dims: Ints, identity: Floats, distance: int) -> tuple[Floats, Floats]:
    """Return what a head writes of the map at a distance [state, dim], and what it writes besides.

    Refuse a head that selects another position, or whose pads do not hold the identity.
    """
    varying = maps.junk.copy()
    varying[dims] = True
    if rule.averages or rule.head.mask not in ("causal", "strict"):
        raise Undecided("a head that composes maps must select one earlier key")
    if np.any(rule.q[varying]) or np.any(rule.k[varying]) or np.any(rule.v[maps.junk]):
        raise Undecided("a head reads more than positions, or copies more than the map")
    winner, ahead = rule.winners(maps.base @ rule.k, maps.base @ rule.q)
    if (winner != np.maximum(np.arange(len(winner)) - distance, -1)).any():
        raise Undecided(f"a head does not select the key {distance} back at every position")
    pads = np.flatnonzero(ahead[:distance].any(axis=0))
    constants = maps.base @ rule.v + rule.b_v + rule.v_places
    if np.ptp(constants, axis=0).max(initial=0.0) > ROUNDING:
        raise Undecided("a head copies something of positions")
    fetched, constant = rule.v[dims], constants[0]
    if np.abs(rule.pad_values[pads] - identity @ fetched - constant).max(initial=0.0) > ROUNDING:
        raise Undecided("the pads do not hold the identity map")
    return fetched, constant


@dataclass(eq=False)
class _Units:
    """Units and residual stream of a block, as functions of the map at the position and of the one fetched for it.

    `newer`, `older` [state, unit] is what units read of them, `newer_past`, `older_past` [state, dim] what passes by.
    """

    reach: Bools
    states: list[int]
    newer: Floats
    older: Floats
    bias: Floats
    out: Floats
    newer_past: Floats
    older_past: Floats
    constant: Floats

    def written(self, newer: Floats, older: Floats) -> Floats:
        """Return the contents [case, dim] after the block, of some maps [case, state]."""
        post = np.maximum(newer @ self.newer + older @ self.older + self.bias, 0.0)
        return np.asarray(newer @ self.newer_past + older @ self.older_past + post @ self.out + self.constant)

    def found(self, seed: int) -> dict[int, int]:
        """Return the dimensions that seem to hold the composition: right for the identity and for random maps."""
        rng, size = np.random.default_rng(seed), len(self.reach)
        chance = rng.random((2, TRIED_MAPS, size, size))
        newer = np.where(self.reach, chance[0], -1.0).argmax(axis=2)
        older = np.where(self.reach | np.eye(size, dtype=bool), chance[1], -1.0).argmax(axis=2)
        newer[0], older[0] = np.arange(size), np.arange(size)
        rows = self.written(newer[:, self.states].astype(float), older[:, self.states].astype(float))
        dims = _found(rows, np.take_along_axis(newer, older, axis=1).astype(float))
        return {q: dim for q, dim in dims.items() if q in self.states}

    def need_composed(self, state: int, dim: int, most: int) -> int:
        """Check that a dimension holds the composition at a state, whatever the maps; return the number of values."""
        here, size = self.states.index(state), len(self.states)
        used = np.flatnonzero((self.out[:, dim] != 0) & (self.newer.any(axis=0) | self.older.any(axis=0)))
        idle = np.flatnonzero((self.out[:, dim] != 0) & ~(self.newer.any(axis=0) | self.older.any(axis=0)))
        newer, older = self.newer[:, used], self.older[:, used]
        others = np.arange(size) != here
        if np.any(older[others]) or np.any(self.older_past[others, dim]) or (np.count_nonzero(newer, axis=0) > 1).any():
            raise Undecided("a unit reads more of two maps than one image of each")
        through = np.flatnonzero(self.reach[state] | (np.arange(len(self.reach)) == state))
        if not set(through.tolist()) <= set(self.states):
            raise Undecided("a map is read at a state that is not followed")
        x, v = np.arange(float(len(self.reach))), through.astype(float)
        if len(used) * len(v) * len(x) > most:
            raise Undecided(f"more than {MAX_VALUES:,} values of units that compose maps")
        source = np.where(newer.any(axis=0), np.abs(newer).argmax(axis=0), size)  # the last: no newer map
        weight = newer.sum(axis=0)
        before = weight[:, None, None] * x + (older[here][:, None] * v + self.bias[used][:, None])[:, :, None]
        by_image = np.zeros((size + 1, len(v), len(x)))
        np.add.at(by_image, source, np.maximum(before, 0.0) * self.out[used, dim][:, None, None])
        by_image[:size] += self.newer_past[:, dim][:, None, None] * x
        for at, image in enumerate(through.tolist()):
            by_image[self.states.index(image), at] -= x
        possible = self.reach[self.states]
        low, high = (np.where(possible[:, None], by_image[:size], fill) for fill in (np.inf, -np.inf))
        if (high.max(axis=2) - low.min(axis=2)).max(initial=0.0) > ROUNDING:
            raise Undecided("units do not compose two maps")
        idly = self.constant[dim] + np.maximum(self.bias[idle], 0.0) @ self.out[idle, dim]
        total = low.min(axis=2).sum(axis=0) + by_image[size, :, 0] + self.older_past[here, dim] * v + idly
        if np.abs(total).max(initial=0.0) > ROUNDING:
            raise Undecided("units do not compose two maps")
        return int(before.size)


def _answers(case: SpecCase, ideal: Ideal, automaton: Automaton, maps: Maps) -> int:
    """Judge the answers at every state that words reach; return their number."""
    states, symbols = np.flatnonzero(maps.reach[automaton.initial]), case.net.output.symbols
    if automaton.initial not in maps.dims or not {automaton.states[s] for s in states.tolist()} <= set(symbols):
        raise Undecided("the last block does not follow the initial state, or some state is no answer")
    dim = maps.dims[automaton.initial]
    unread = maps.junk.copy()
    unread[[other for other in maps.dims.values() if other != dim]] = True
    placed = ideal.places[-1] @ ideal.w_u
    if np.any(ideal.w_u[unread]) or np.ptp(placed, axis=0).max(initial=0.0) > ROUNDING:
        raise Undecided("logits depend on more than the state")
    contents = np.tile(maps.base, (len(states), 1))
    contents[:, dim] += states
    logits = np.vstack([ideal.first_logits, ideal.logits(contents, 0)])
    known = np.array([symbols.index(automaton.states[s]) for s in [automaton.initial, *states.tolist()]])
    if case.oracle.judged(known[:, None], logits[:, None]).any():
        raise Undecided("the answer at some state is wrong")
    return len(known)
