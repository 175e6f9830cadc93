r"""Lemma "paths": every round of two blocks lets paths of twice as many edges count.

The network is the ideal one (`ideal.py`): heads select exactly. *Instances* are the finitely many cases of a statement,
and each is computed. A token is a pair of nodes, or a padding token. **Invariant**: before each round the contents of
token $p$ are $x + b_p u$ with a *bit* $b_p \in \{0, 1\}$ and vectors $x$, $u$ that are the same for all tokens; and BOS
attends to itself alone, so that it holds the same for every word. In the round

1. Each of two heads has scores that no bit changes. The best key of token $p$ is one token, its left and its right
   *source* $l_p$, $r_p$ (instances: all scores). After units, the contents depend on $b_p$, $b_{l_p}$ and $b_{r_p}$:
   what the next head reads as key and value is $k_p + c_p\kappa$ and $v + c_p\nu$ with $c_p = b_{l_p} \land b_{r_p}$,
   and its queries depend on positions alone (instances: eight cases for each token).
2. Without what $c$ adds, several keys have the best score for $p$: the set $M_p$. A key with $c = 1$ gains more than
   nothing, and less than what others are behind (instances: all scores). So the head copies $v + \nu \bigvee_{m \in
   M_p} c_m$. After units the contents are $x' + b'_p u'$, where $b'_p$ is that disjunction (instances: all cases).

For the pair $p = (i, k)$ the sources of $M_p$ are $(p, p)$ and, for every node $j$, $((i, j), (j, k))$, and no others
(instances: all pairs). By induction on $r$, after $r$ rounds the bit says if a path of 1 to $2^r$ edges leads from $i$
to $k$; $2^R \ge n - 1$ for $R$ rounds covers all simple paths between different nodes. Claim: the logits are right for
both bits of $(i, k)$, $i \ne k$, and say yes for both of $(i, i)$ (instances: all pairs).
"""

from __future__ import annotations

from itertools import product

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.ideal import EQUAL, HeadRule, Ideal, need_above
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.right import logit_margins
from vitrify.spec.tasks.reachability import BITS, PAD, Reachability

ROUNDING = 1e-9  # of contents that are computed here
CASES = np.array(list(product((0.0, 1.0), repeat=3)))  # bits of a token, of its left and of its right source


@lemma(Reachability)
def paths(case: SpecCase) -> SpecProof:
    """Prove that every round doubles the length of the paths that bits stand for."""
    ideal, n = case.ideal, case.spec.nodes
    net, rounds = ideal.net, len(ideal.blocks) // 2
    if net.pads != 1 or [len(block.heads) for block in net.blocks] != [2, 1] * rounds:
        raise Undecided("paths are followed behind one pad, in rounds of two heads and then one")
    if 2**rounds < n - 1 or ideal.longest != case.spec.length or net.min_length != ideal.longest:
        raise Undecided(f"{rounds} rounds on {ideal.longest} tokens do not cover all paths of {n - 1} edges")
    zero, one, pad = (ideal.embedded(net.input_ids[symbol]) for symbol in (*BITS, PAD))
    if not np.array_equal(zero, pad):
        raise Undecided("padding tokens do not hold the bit 0")
    x, u, scores = zero, one - zero, 0
    for index in range(rounds):
        x, u, compared = _round(ideal, 2 * index, x, u, n)
        scores += compared
    answers = np.eye(n, dtype=int).ravel() | np.array([[0], [1]])
    logits = ideal.logits(x + np.array([0.0, 1.0])[:, None, None] * u, np.arange(n * n))
    right = np.array([net.output.symbols.index(bit) for bit in BITS])[answers]
    if not (logit_margins(logits, right) > case.oracle.TIE).all():
        raise Undecided("the answer at some pair is wrong")
    return SpecProof("paths", ideal.longest, {"scores": scores, "pairs": rounds * n * n, "answers": right.size})


def _round(ideal: Ideal, block: int, x: Floats, u: Floats, n: int) -> tuple[Floats, Floats, int]:
    """Return x and u after a round, and the number of scores that were compared."""
    at, varying = np.arange(len(ideal.places[0])), u != 0
    contents = x + CASES[:, :1] * u
    contents = np.repeat(contents[:, None], len(at), axis=1)  # [case, token, dim]
    sources = []
    for side, rule in enumerate(ideal.selecting(block), start=1):
        if np.any(rule.q[varying]) or np.any(rule.k[varying]):
            raise Undecided("bits change the scores of a head that should read a source")
        source, _ = rule.winners(x @ rule.k, x @ rule.q)
        if (source < 0).any():
            raise Undecided("a token reads its source from a pad")
        sources.append(source)
        contents = contents + (x @ rule.v + rule.b_v + rule.v_places[source])
        contents = contents + CASES[:, side, None, None] * (u @ rule.v)
        _bos_alone(rule, ideal.pads[2 * block], x @ rule.k, 0.0)
    contents = ideal.after_units(block, contents, at)
    (rule,) = ideal.selecting(block + 1)
    both = CASES[:, 1] * CASES[:, 2]
    query, change = _linear(contents @ rule.q, both)
    key, gain = _linear(contents @ rule.k, both)
    value, copied = _linear(contents @ rule.v + rule.v_places, both)
    if np.any(change):
        raise Undecided("bits change a query")
    _bos_alone(rule, ideal.pads[2 * block + 2], key, gain)
    _need_paths(_matches(rule, key, gain, query), sources[0], sources[1], n)
    bits = np.array([0.0, 1.0])[:, None, None, None]
    after = ideal.after_units(block + 1, contents + value + rule.b_v + bits * copied, at)
    x, u = after[0, 0, 0], after[1, 0, 0] - after[0, 0, 0]
    if np.abs(after - x - bits * u).max() > ROUNDING:
        raise Undecided("a round leaves more than one bit at a token")
    return x, u, 3 * len(at) ** 2


def _linear(read: Floats, both: Floats) -> tuple[Floats, Floats]:
    """Return what a matrix makes of all tokens [case, token, …] where c = 0, and what it adds where c = 1."""
    start, step = read[0, 0], read[-1, 0] - read[0, 0]
    if np.abs(read - start - both[:, None, None] * step).max() > ROUNDING * (1 + np.abs(read).max()):
        raise Undecided("what a head reads of a token is no function of the conjunction of its sources")
    return start, step


def _bos_alone(rule: HeadRule, pads: Floats, key: Floats, gain: Floats | float) -> None:
    """Refuse a head by which BOS attends to a token, whose key is `key`, with or without `gain`."""
    query = pads[0] @ rule.q + rule.b_q
    tokens = rule.k_places @ query + np.maximum(key @ query, (key + gain) @ query)
    own = rule.pad_keys[0] @ query
    need_above(own, tokens, float(np.abs(own) + np.abs(tokens).max()), "BOS does not attend to itself alone")


def _matches(rule: HeadRule, key: Floats, gain: Floats, query: Floats) -> list[Ints]:
    """Return the keys that have the best score for each token, whatever the bits are."""
    scores, gained = rule.scores(key, query), (rule.q_places + query) @ gain
    best = scores.max(axis=1)
    size = float(np.abs(scores).max()) + float(np.abs(gained).max())
    tied = rule.head.resolution if rule.head.attention == "hard" else 0.0
    match = scores >= best[:, None] - max(tied, EQUAL * size)
    if match[:, : rule.first].any():
        raise Undecided("a pad may win against tokens")
    need_above(gained, np.full(1, tied), size, "a conjunction does not win against others that are false")
    behind = np.where(match, -np.inf, scores).max(axis=1)
    need_above(best, behind + gained + tied, size, "a conjunction wins for another target")
    return [np.flatnonzero(row[rule.first :]) for row in match]


def _need_paths(matches: list[Ints], left: Ints, right: Ints, n: int) -> None:
    """Refuse sources that are not the two halves of all paths between two nodes."""
    for i, k in product(range(n), repeat=2):
        halves = {(i * n + j, j * n + k) for j in range(n)} | {(i * n + k, i * n + k)}
        some = matches[i * n + k]
        if set(zip(left[some].tolist(), right[some].tolist(), strict=True)) != halves:
            raise Undecided(f"the pair {i + 1},{k + 1} does not read the halves of all paths between its nodes")
