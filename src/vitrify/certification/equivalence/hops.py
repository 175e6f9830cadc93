r"""Lemma "hops": after the last layer of heads, every position has read the symbol that k hops lead to.

The network is the ideal one (`ideal.py`): heads select exactly. *Instances* are the finitely many cases of a statement,
and each is computed. Position 0 is BOS and holds the symbol 0; positions $1 \dots n$ hold the letters $x_1 \dots x_n$,
$n \le T$. A *pointer* is a map of positions: $f^m$, where $f(i) = \max\{j \le i : x_{j-1} = x_i\}$ is the hop of the
spec (0 if there is none, and $f(0) = 0$), so that $f^0$ is the position itself; or *before*, $i \mapsto \max(i - 1,
0)$. The last earlier occurrence of $x_i$ is at $\max(f(i) - 1, 0)$.

Invariant: the residual stream at every position $i$, BOS included, is $\sum_\pi A_\pi[x_{\pi(i)}] + P_\pi[\pi(i)]$,
with tables $A_\pi$ [symbol, dim] and $P_\pi$ [position, dim]. It holds for the embeddings, with $\pi = f^0$. A head
that reads the position $\tau(i)$ adds $A_\pi V$ to $A_{\pi \circ \tau}$ and $P_\pi V$ to $P_{\pi \circ \tau}$, where
$f^a \circ f^b = f^{a+b}$. Four rules $\tau$ are recognized, each from all scores that can occur (instances). Heads with
the last rule see earlier positions only, those with another rule see the position itself, too:

- *pointer*: queries depend on $\pi(i) = p$ alone, keys on their position $j$. For every $p$ the best key of all is $p$.
  So $\tau = \pi$, as $\pi(i) \le i$ is visible.
- *before*: the same with $\pi = f^0$, where the best key of all $j \le p$ is $\max(p - 1, 0)$.
- *hop*: queries depend on $x_i = x$, keys on $j$ and on $y = x_{j-1}$. For every $x$, matches $y = x$ are better the
  later they are; the worst match is better than BOS, and BOS better than the best mismatch. So $\tau = f$.
- *occurrence*: the same with $y = x_j$. So $\tau = \max(f - 1, 0)$. What is read depends on $\tau(i)$ alone, as all
  letters have one row $c$ of $A_{f^0} V$. Row $p$ of $P_f$ gets row $\max(p - 1, 0)$ of $P_{f^0} V$ and, if $p > 0$,
  the row $c$; if $p = 0$, that of BOS.

Units may only erase dimensions. The invariant is also compared with the network's own run on BOS. Claim: the logits
depend on $x_{f^k(i)}$ alone, $k$ being the spec's number of hops, and the best one is that symbol's (instances: all
symbols), `(none)` for BOS.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.ideal import HeadRule, need_above
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.right import logit_margins
from vitrify.spec.tasks.k_hop import KHop

ZERO = 1e-12  # entries of tables nearer to 0 than this are 0, relative to the largest
BEFORE = -1  # the pointer to the position before; m ≥ 0 is the pointer f^m
OCCURRENCE = -2  # the pointer to the last earlier occurrence of the symbol; no table has it

Tables = dict[int, tuple[Floats, Floats]]  # A and P, by pointer


@lemma(KHop)
def hops(case: SpecCase) -> SpecProof:
    """Prove that a network follows the hops of its spec."""
    ideal, spec = case.ideal, case.spec
    net, length = ideal.net, ideal.longest
    if net.pads != 1 or net.looks_ahead:
        raise Undecided("hops are followed behind one pad, by heads that see earlier positions")
    tables: Tables = {0: (ideal.embed.copy(), ideal.positions.copy())}
    scores = 0
    for index, block in enumerate(ideal.blocks):
        after = {pointer: (a.copy(), p.copy()) for pointer, (a, p) in tables.items()}
        for maps in ideal.selecting(index):
            target, compared = _target(maps, tables)
            scores += compared
            for pointer, (a, p) in tables.items():
                _add(after, *_composed(pointer, target, a @ maps.v, p @ maps.v))
            after[0] = (after[0][0], after[0][1] + maps.b_v)
        if block.units:
            if block.units[0].shape[1]:
                raise Undecided("units that do more than erase a dimension are not followed")
            for a, p in after.values():
                a[:, block.gone], p[:, block.gone] = 0.0, 0.0
            after[0] = (after[0][0], after[0][1] + block.units[3])
        tables = after
        alone = sum(a[0] + p[0] for a, p in tables.values())
        if np.abs(alone - ideal.pads[2 * index + 2][0]).max() > ZERO * (1 + np.abs(alone).max()):
            raise Undecided("BOS does not hold what the hops say")
    logits = _readout(tables, ideal.w_u, ideal.b_u, spec.hops)
    if not (logit_margins(logits, np.arange(len(logits))) > case.oracle.TIE).all():
        raise Undecided("the best logit is not that of the symbol that was read")
    return SpecProof("hops", length, {"scores": scores, "symbols": len(logits)})


def _composed(pointer: int, target: int, a: Floats, p: Floats) -> tuple[int | None, Floats, Floats]:
    """Return the pointer that follows `target` and then `pointer`, None if it has no name, and its tables."""
    if target == OCCURRENCE:
        if pointer or np.abs(a[1:] - a[1]).max() > ZERO * (1 + np.abs(a).max()):
            return None, a, p
        constant = np.where(np.arange(len(p))[:, None] > 0, a[1], a[0])
        return 1, np.zeros_like(a), p[np.maximum(np.arange(len(p)) - 1, 0)] + constant
    if BEFORE in (pointer, target):
        return BEFORE if pointer + target == BEFORE else None, a, p
    return pointer + target, a, p


def _add(tables: Tables, pointer: int | None, a: Floats, p: Floats) -> None:
    if not np.any(a) and not np.any(p):
        return
    if pointer is None:
        raise Undecided("a head reads what is before a position that hops lead to, or the symbol that it matches")
    old = tables.get(pointer, (0.0, 0.0))
    tables[pointer] = (old[0] + a, old[1] + p)


class MappedStream(NamedTuple):
    """Output of a matrix: a constant, tables by pointer that are not constant, and the output at BOS."""

    constant: Floats
    by_symbol: dict[int, Floats]
    by_position: dict[int, Floats]
    bos: Floats


def _parts(tables: Tables, matrix: Floats, bias: Floats) -> MappedStream:
    """Return what a matrix makes of the residual stream; rows of tables are relative to row 1.

    Row 0 of the pointer to itself is BOS's own, and no letter's.
    """
    parts = MappedStream(bias.copy(), {}, {}, bias.copy())
    for pointer, pair in tables.items():
        for table, varying in zip((part @ matrix for part in pair), (parts.by_symbol, parts.by_position), strict=True):
            parts.bos[:] += table[0]
            parts.constant[:] += table[1]
            rows = table - table[1]
            rows[0] *= pointer != 0
            if np.abs(rows).max() > ZERO * (1 + np.abs(table).max()):
                varying[pointer] = rows
    return parts


def _target(maps: HeadRule, tables: Tables) -> tuple[int, int]:
    """Return the pointer to the position that a head reads, and the number of scores that show it."""
    query, key = _parts(tables, maps.q, maps.b_q), _parts(tables, maps.k, maps.b_k)
    places = key.by_position.get(0, np.zeros((len(tables[0][1]), len(key.bos))))
    if not set(key.by_position) - {0}:
        if not query.by_symbol and len(query.by_position) == 1 and not key.by_symbol and maps.head.mask == "causal":
            ((pointer, asked),) = query.by_position.items()
            keys = np.vstack([key.bos, key.constant + places[1:]])
            return _by_position(pointer, (query.constant + asked) @ keys.T)
        symbol = 0 if maps.head.mask == "strict" else BEFORE
        if set(query.by_symbol) == {0} and not query.by_position and set(key.by_symbol) == {symbol}:
            asked = query.constant + query.by_symbol[0][1:]
            by_symbol = asked @ (key.constant + key.by_symbol[symbol]).T
            target = 1 if symbol == BEFORE else OCCURRENCE
            return target, _by_symbol(by_symbol, asked @ places[1:].T, asked @ key.bos, before=symbol == BEFORE)
    raise Undecided("a head selects neither by a position nor by a symbol")


def _by_position(pointer: int, scores: Floats) -> tuple[int, int]:
    """Return the target of a head by the scores [position pointed to, key]."""
    at = np.arange(len(scores))
    if pointer == 0:  # a letter that asks by its own position
        scores = np.where(at[None] <= at[:, None], scores, -np.inf)[1:]
    best = scores.argmax(axis=1)
    highest = scores.max(axis=1)
    others = scores.copy()
    others[np.arange(len(scores)), best] = -np.inf
    size = float(np.abs(scores[np.isfinite(scores)]).max())
    need_above(highest, others.max(axis=1), size, "two positions share the weight of a head")
    expected = at[-len(scores) :]
    if (best == expected).all():
        return pointer, scores.size
    if pointer == 0 and (best == expected - 1).all():
        return BEFORE, scores.size
    raise Undecided("a head does not read the position that is pointed to")


def _by_symbol(by_symbol: Floats, by_position: Floats, bos: Floats, *, before: bool) -> int:
    """Refuse scores by which the last match need not win; return their number.

    They are [letter, symbol] + [letter, position], and `bos` [letter]. The symbol is that of the position, or of the
    one `before`: then position 1 has none, and must not be better than BOS.
    """
    letters = np.arange(len(by_symbol))
    match, later = by_symbol[letters, letters + 1], by_position[:, int(before) :]
    size = sum(float(np.abs(part).max(initial=0.0)) for part in (by_symbol, by_position, bos))
    need_above(later[:, 1:], later[:, :-1], size, "a later match is not better than an earlier one")
    if before:
        need_above(bos, by_symbol[:, 0] + by_position[:, 0], size, "the first position is better than BOS")
    if later.size:
        need_above(match + later.min(axis=1), bos, size, "a match is not better than BOS")
        others = by_symbol[:, 1:].copy()
        others[letters, letters] = -np.inf
        need_above(bos, others.max(axis=1) + later.max(axis=1), size, "a mismatch is better than BOS")
    return by_symbol.size + by_position.size


def _readout(tables: Tables, w_u: Floats, b_u: Floats, hops: int) -> Floats:
    """Return the logits [symbol, output] for the symbol that some hops lead to, if nothing else is read."""
    parts = _parts(tables, w_u, b_u)
    if parts.by_position or set(parts.by_symbol) != {hops}:
        raise Undecided(f"the logits depend on something else than the symbol after {hops} hops")
    return parts.constant + parts.by_symbol[hops]
