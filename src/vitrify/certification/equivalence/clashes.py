r"""Lemma "a clash": two words are compared by a head that reads $n$ positions back, and one that looks for a clash.

The network is the ideal one (`ideal.py`): heads select exactly. *Instances* are the finitely many cases of a statement,
and each is computed. A word is $x_1 \dots x_n\, y_1 \dots y_n\,?$, and the answer at ? is the only one.

1. The head of block 0 reads the position $n$ back (`slots.py`). So before the units the residual stream at $t$ is $P(t)
   + A_0[u_t] + A_n[u_{t-n}]$, where the last part is absent up to $t = n$. Nothing else is read, so after the units it
   is a function of $t$ and these symbols (instances: all positions, all pairs of symbols).
2. The head of block 1 attends from ? by the scores of these streams. For every $y_1$, which ? itself has read: each
   position of $y$ with a clash scores higher than BOS, and BOS higher than all other positions, ? included (instances:
   all of them). All clashes have the same value vector. So the head reads that vector if there is a clash, however many
   there are, and else that of BOS.
3. The logits of both are right for every $y_1$ (instances).
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.ideal import need_above
from vitrify.certification.equivalence.slots import ZERO, Slots
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.right import logit_margins
from vitrify.net.sparse import dense
from vitrify.spec.tasks.comparison import Comparison

MAX_STREAMS = 1 << 20  # pairs of symbols at all positions


@lemma(Comparison)
def a_clash(case: SpecCase) -> SpecProof:
    """Prove that a network compares two words."""
    ideal, task, proof = case.ideal, case.spec, case.proof
    net, n = ideal.net, task.size
    assert proof is not None
    if net.pads != 1 or [len(block.heads) for block in net.blocks] != [1, 1] or net.blocks[1].units:
        raise Undecided("comparisons are followed behind one pad, through two heads, with units between them")
    if proof.max_length != task.length or task.length * task.symbols**2 > MAX_STREAMS:
        raise Undecided("the pairs of symbols at all positions are too many, or the length is not that of the words")
    if set(net.output.symbols) != {*task.outputs}:
        raise Undecided("the network lacks an answer")
    slots = Slots(ideal.weights, proof)
    slots.read(0)
    tables = [np.asarray(dense(table)) for table in slots.tables]
    if len(tables) != n + 1 or any(table.any() for table in tables[1:n]):
        raise Undecided("the first head does not read n positions back")
    numbers = [net.input_ids[letter] for letter in task.letters]
    symbols, back = tables[0][numbers], tables[n][numbers]
    first = slots.fixed[:n, None] + symbols
    second = slots.fixed[n : 2 * n, None, None] + back[:, None] + symbols  # [position, x, y]
    last = slots.fixed[2 * n] + back + tables[0][net.input_ids["?"]]
    first, second, last = (ideal.after_stored_units(0, _rows(part)) for part in (first, second, last))
    (maps,) = ideal.selecting(1)
    if maps.head.mask == "strict":
        raise Undecided("the second head does not see its own position")
    query = last @ maps.q + maps.b_q
    bos = query @ maps.pad_keys[0]
    clash = np.array([[task.clash(x, y) for y in task.letters] for x in task.letters]).ravel()
    clashes = np.tile(clash, n)
    yes = query @ (second[clashes] @ maps.k + maps.b_k).T
    others = np.concatenate([first, second[~clashes], last])
    no = query @ (others @ maps.k + maps.b_k).T
    size = float(max(np.abs(part).max(initial=0.0) for part in (yes, no, bos)))
    need_above(yes, bos[:, None], size, "BOS may be better than a clash")
    need_above(bos[:, None], no, size, "a position without a clash may be better than BOS")
    values = second[clashes] @ maps.v
    if np.ptp(values @ ideal.w_u, axis=0).max(initial=0.0) > ZERO:
        raise Undecided("the values of clashes differ")
    for answer, value in (("no", values[0]), ("yes", maps.pad_values[0] - maps.b_v)):
        logits = (last + value + maps.b_v) @ ideal.w_u + ideal.b_u
        expected = np.full(len(logits), net.output.symbols.index(answer))
        if not (logit_margins(logits, expected) > case.oracle.TIE + 2 * ZERO).all():
            raise Undecided(f"the answer {answer!r} is not the best one")
    return SpecProof("a clash", task.length, {"streams": len(first) + len(second), "scores": yes.size + no.size})


def _rows(streams: Floats) -> Floats:
    """Return streams [case, dim]."""
    return streams.reshape(-1, streams.shape[-1])
