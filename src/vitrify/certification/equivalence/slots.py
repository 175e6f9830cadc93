r"""Slots: residual streams that depend on the last symbols alone, by heads that read fixed distances back.

Letters: $u_d$ is the symbol $d$ positions back, $A_d$ [symbol, dim] what it adds to the residual stream; all matrices
are sparse, so that streams of thousands of dimensions can be followed.

Invariant: the residual stream at position $t$ is $P(t) + \sum_{d \le t} A_d[u_d]$. It holds for the embedding with
$A_0 = W_E$, and is kept by

- a head whose scores do not depend on symbols ($A_d W_Q = A_d W_K = 0$), and that selects the position $h$ back for all
  $h \le t < T$, and a pad for all $t < h$: with $V = W_V W_O$, $A_{d+h}$ grows by $A_d V$, and $P(t)$ by $P(t - h) V$
  or by what the pad holds. Instances: the best key at every position;
- units each of which depends on one slot at most: $A_d[s]$ grows by what they write for $u_d = s$. Instances: all
  symbols.

Symbols before the beginning count as BOS: $P(t) - \sum_{d > t} A_d[\text{BOS}]$ must be the same for all $t$ in the
dimensions that are read (`constant`). Then the rest of the network sees a constant plus $\sum_d A_d[u_d]$, where $u_d$
is BOS for $d > t$, and that is so at every length.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.arrays import Floats, Ints, Matrix
from vitrify.certification.equivalence.ideal import MAX_POSITIONS, HeadRule
from vitrify.certification.margins.proof import Proof
from vitrify.certification.margins.values import Undecided, at_pads, reads
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

ZERO = 1e-12  # sums of weights nearer to 0 than this are 0


class Slots:
    """The residual stream after some layers: `fixed` [position, dim] is $P$, `tables[d]` is $A_d$.

    `pads` holds the residual stream of the pads at every moment, `first` the logits before the first symbol.
    """

    def __init__(self, weights: Weights[Transformer], proof: Proof) -> None:
        from scipy.sparse import csr_array

        net, length = weights.architecture, proof.max_length
        if length > MAX_POSITIONS or net.looks_ahead:
            raise Undecided("slots are followed by heads that do not look ahead, at a few thousand positions")
        self.weights, self.proof = weights, proof
        self.pads, self.first = at_pads(weights)
        self.fixed = np.asarray(dense(weights.arrays["pos_embed.W_pos"]))[net.pads : net.pads + length]
        self.tables: list[Matrix] = [csr_array(weights.arrays["embed.W_E"])]

    @property
    def longest(self) -> int | None:
        """The length up to which the slots were seen; None, any, if every slot lies inside the longest word."""
        return None if len(self.fixed) >= len(self.tables) else len(self.fixed)

    def read(self, index: int) -> None:
        """Add what the heads of a block read."""
        from scipy.sparse import csr_array

        pads, margins = self.pads[2 * index], {head.index: head for head in self.proof.heads if head.block == index}
        fixed, moved = self.fixed.copy(), dict(enumerate(self.tables))
        for at in range(len(self.weights.architecture.blocks[index].heads)):
            rule = HeadRule(self.weights, index, at, self.fixed, pads, margins.get(at))
            if any(np.any(table[1:] @ matrix) for table in self.tables for matrix in (rule.q, rule.k)):
                raise Undecided("a head selects by symbols")
            back, read_pads = self._distance(rule)
            value, read = rule.values, np.concatenate([pads[read_pads], self.fixed[: len(fixed) - back]])
            fixed += read @ value + rule.b_v
            for distance, table in enumerate(self.tables):
                there = moved.get(distance + back)
                moved[distance + back] = table @ value if there is None else there + table @ value
        nothing = csr_array(self.tables[0].shape)
        self.fixed, self.tables = fixed, [moved.get(d, nothing) for d in range(max(moved) + 1)]

    def apply_units(self, index: int) -> None:
        """Add what the units of a block write, each of which may depend on one slot."""
        from scipy.sparse import csr_array

        prefix = f"blocks.{index}.mlp."
        w_in, b_in, w_out, b_out = (self.weights.arrays[prefix + name] for name in ("W_in", "b_in", "W_out", "b_out"))
        before = np.asarray(self.constant([w_in]) @ w_in) + b_in
        sums = [np.asarray(dense(table @ w_in)) for table in self.tables]  # [symbol, unit]
        for distance, table in enumerate(sums):
            table[0] = table[0] if distance else table[1]  # BOS is never the last symbol
        varies = np.array([np.ptp(table, axis=0) > 0 for table in sums])
        if (varies.sum(axis=0) > 1).any():
            raise Undecided("a unit depends on several symbols")
        others = before + sum(np.where(varying, 0.0, table[0]) for varying, table in zip(varies, sums, strict=True))
        fixed = self.fixed + np.maximum(others * ~varies.any(axis=0), 0.0) @ w_out + b_out
        for distance, (varying, table) in enumerate(zip(varies, sums, strict=True)):
            written = csr_array(np.maximum((table + others) * varying, 0.0) @ w_out)
            self.tables[distance] = self.tables[distance] + written
            fixed[:distance] += np.asarray(written[[0]].todense())  # before the beginning
        self.fixed = fixed

    def constant(self, readers: Sequence[Matrix]) -> Floats:
        """Return the residual stream without the slots, in the dimensions that some matrices read."""
        used = np.flatnonzero(np.any([reads(reader) for reader in readers], axis=0))
        begins = np.array([np.asarray(table[[0]].todense())[0][used] for table in self.tables])  # A_d[BOS]
        rest = self.fixed[:, used] - np.array([begins[t + 1 :].sum(axis=0) for t in range(len(self.fixed))])
        if np.ptp(rest, axis=0).max(initial=0.0) > ZERO:
            raise Undecided("symbols before the beginning do not count as BOS, or positions are read")
        constant: Floats = np.zeros(self.fixed.shape[1])
        constant[used] = rest[0]
        return constant

    def _distance(self, rule: HeadRule) -> tuple[int, Ints]:
        """Return how far back a head reads, whatever the symbols are, and which pads it reads near the beginning."""
        at, nothing = np.arange(len(self.fixed)), np.zeros(rule.q.shape[1])
        if rule.averages and (rule.seen.sum(axis=1) + np.isfinite(rule.pad_scores(nothing)).sum(axis=1) > 1).any():
            raise Undecided("a head averages several positions")
        winner, pads = rule.winners(nothing, nothing)
        back = int(at[-1] - winner[-1])
        if winner[-1] < 0 or (winner != np.maximum(at - back, -1)).any() or (pads.sum(axis=1) > 1).any():
            raise Undecided("a head does not read a fixed distance back")
        return back, pads[:back].argmax(axis=1)
