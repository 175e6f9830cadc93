r"""Lemma "frequencies": a head that attends to all positions with the same context computes an in-context estimate.

Letters: $u_d$ and $w_d$ are the symbols $d$ positions before the query and the key (BOS before the beginning), $k$ the
order. By `slots.py`, queries before the last head are $q + \sum_d Q_d[u_d]$, and keys $\kappa + \sum_e K_e[w_e]$.

Scores: of all products only $M_d[u_d, w_{d+1}] = Q_d[u_d] \cdot K_{d+1}[w_{d+1}]$ for $d < k$ depend on symbols
(instances: all other pairs of slots, all pairs of symbols). For letters, $M_d[a, a] = m_d$ whatever the letter is. All
other entries, those of BOS included, are at most $m_d - g$. BOS scores $b$, whatever the query is, with $\sum_d m_d - g
< b < \sum_d m_d$. So a key with $w_{d+1} = u_d$ for all $d < k$, all letters, has the best score, the same for all such
keys; without one, BOS has the best score: a query whose context reaches before the beginning has no match.

Values: they depend on $w_0$ alone, and the logits are affine in their mean: the unit vector of $w_0$ (instances: all
letters), or $1/S$ everywhere at BOS. So the logits are the mean of the unit vectors of the letters that followed the
context: the frequencies that the spec asks for.
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.ideal import EQUAL
from vitrify.certification.equivalence.slots import ZERO, Slots
from vitrify.certification.margins.values import Undecided
from vitrify.net.sparse import dense
from vitrify.spec.tasks.estimate import Estimate

MAX_SYMBOLS = 1 << 10
FREQUENCY_ERROR = 1e-12  # of the ideal


@lemma(Estimate)
def frequencies(case: SpecCase) -> SpecProof:
    """Prove that a network computes the frequencies of the symbols that followed a context."""
    ideal, spec = case.ideal, case.spec
    net, last = ideal.net, len(ideal.net.blocks) - 1
    if net.pads != 1 or last < 1 or net.blocks[last].units or len(net.blocks[last].heads) != 1:
        raise Undecided("estimates are followed behind one pad, up to one head without units")
    if spec.symbols > MAX_SYMBOLS:
        raise Undecided(f"scores of {spec.symbols} symbols are too many to compare")
    assert case.proof is not None
    slots = Slots(ideal.weights, case.proof)
    for index in range(last):
        slots.read(index)
        if net.blocks[index].units:
            slots.apply_units(index)
    (maps,) = ideal.selecting(last)
    if maps.head.mask != "causal" or (maps.head.attention == "hard" and maps.head.ties != "average"):
        raise Undecided("the last head does not share its weight among all earlier positions")
    w_u = ideal.w_u
    constant = slots.constant([maps.q, maps.k, maps.v, w_u])
    tables = [np.asarray(dense(table)) for table in slots.tables]
    tables[0][0] = tables[0][1]  # BOS is never the last symbol
    bos = slots.pads[2 * last][0]
    checked = _scores(
        maps.b_q + constant @ maps.q,
        [table @ maps.q for table in tables],
        maps.b_k + constant @ maps.k,
        [table @ maps.k for table in tables],
        maps.b_k + bos @ maps.k,
        spec.order,
    )
    if any(np.abs(table @ w_u).max() > ZERO for table in tables):
        raise Undecided("the numbers depend on a symbol directly")
    if any(np.abs(table @ maps.v @ w_u).max() > ZERO for table in tables[1:]):
        raise Undecided("the values depend on a symbol before")
    base = constant @ w_u + ideal.b_u + maps.b_v @ w_u
    shares = base + (constant + tables[0][1:]) @ maps.v @ w_u
    nothing = base + bos @ maps.v @ w_u
    expected = np.vstack([np.eye(spec.symbols), np.full((1, spec.symbols), 1 / spec.symbols)])
    if not np.abs(np.vstack([shares, nothing]) - expected).max() <= FREQUENCY_ERROR:
        raise Undecided("the values of the last head are not unit vectors")
    return SpecProof("frequencies", slots.longest, {"scores": checked, "symbols": spec.symbols})


def _scores(q: Floats, by_query: list[Floats], k: Floats, by_key: list[Floats], bos: Floats, order: int) -> int:
    """Refuse scores by which other keys than those of the query's context may have the best score; return their number.

    `by_query[d]` and `by_key[d]` [symbol, feature] are what the slots add to the query `q` and to the key `k`.
    """
    size = 1 + max(float(np.abs(a @ b.T).max()) for a in [*by_query, q[None]] for b in [*by_key, k[None], bos[None]])
    slack = EQUAL * size
    if len(by_query) < order + 1:
        raise Undecided("the last head does not see the whole context")
    alone = [part @ k for part in by_query] + [part @ bos for part in by_query] + [part @ q for part in by_key]
    if any(np.abs(part).max() > ZERO * size for part in alone):
        raise Undecided("a score depends on one symbol alone")
    checked, total, gap = 0, float(q @ k), np.inf
    for d, query in enumerate(by_query):
        for e, key in enumerate(by_key):
            table = query @ key.T
            checked += table.size
            if e != d + 1 or d >= order:
                if np.abs(table).max() > ZERO * size:
                    raise Undecided(f"a score depends on the symbols {d} and {e} positions back")
                continue
            match = np.diagonal(table)[1:]
            others = table.copy()
            np.fill_diagonal(others[1:, 1:], -np.inf)
            if np.ptp(match) > ZERO * size:
                raise Undecided("matches of different symbols have different scores")
            total += float(match[0])
            gap = min(gap, float(match[0] - others[int(d == 0) :].max()))
    level = float(q @ bos)
    if not (total - gap + slack < level < total - slack):
        raise Undecided("BOS is not between the matches and all other keys")
    return checked
