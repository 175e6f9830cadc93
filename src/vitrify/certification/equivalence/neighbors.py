r"""Lemma "the nearest": one head copies the point before a label, another attends to the label of the nearest point.

The network is the ideal one (`ideal.py`): heads select exactly. *Instances* are the finitely many cases of a statement,
and each is computed. In a word $p_1 v_1 p_2 v_2 \dots$ the position $t$ holds the symbol $u_t$.

1. The head of block 0 reads the position before (`slots.py`), and nothing else happens. So the residual stream at $t$
   is $P(t) + A_0[u_t] + A_1[u_{t-1}]$, without the last part at the first position.
2. The query of a point $p$ depends on $p$ alone, the key of a label on its position $j$ and the point $p'$ before it,
   as a sum: the score is $S[p, p'] + R[p, j]$ (instances: all points, labels and positions).
3. $S[p, p']$ is equal for points at the same distance from $p$, and falls with the distance by more than $R[p, \cdot]$
   varies. $R[p, \cdot]$ rises, or is constant and ties go to the right. Keys of points, whatever label is before them,
   and BOS score lower than any label (instances: all pairs). So after the first pair the head reads the label of the
   nearest point, the latest of them; at the first point it reads points and BOS.
4. Logits depend on the label that is read alone, and are right for each of them; those of points and BOS are right for
   no label (instances).
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.equivalence.catalogue import SpecCase, SpecProof, lemma
from vitrify.certification.equivalence.ideal import EQUAL, HeadRule, Ideal, need_above
from vitrify.certification.equivalence.slots import ZERO, Slots
from vitrify.certification.margins.values import Undecided
from vitrify.certification.oracles.right import logit_margins
from vitrify.net.sparse import dense
from vitrify.spec.tasks.nearest import Nearest

MAX_POINTS = 1 << 12


@lemma(Nearest)
def the_nearest(case: SpecCase) -> SpecProof:
    """Prove that a network answers with the label of the nearest point."""
    ideal, task, proof = case.ideal, case.spec, case.proof
    net = ideal.net
    assert proof is not None
    if (
        net.pads != 1
        or [len(block.heads) for block in net.blocks] != [1, 1]
        or any(block.units for block in net.blocks)
    ):
        raise Undecided("neighbors are followed behind one pad, through two heads without units")
    if task.points > MAX_POINTS:
        raise Undecided(f"the products of {task.points} points are too many to compare")
    if set(net.output.symbols) != {*task.outputs}:
        raise Undecided("the network lacks an answer")
    slots = Slots(ideal.weights, proof)
    slots.read(0)
    if len(slots.tables) != 2:
        raise Undecided("the first head does not read the position before")
    (maps,) = ideal.selecting(1)
    if maps.head.mask != "causal":
        raise Undecided("the second head does not see all earlier positions and its own")
    streams = _Streams(slots, net.input_ids, task)
    query = streams.queries(maps)
    scores = _need_nearest(maps, streams, query, task.points)
    _need_answers(ideal, maps, streams, [net.output.symbols.index(label) for label in task.outputs], case.oracle.TIE)
    return SpecProof("the nearest", proof.max_length, {"scores": scores, "labels": task.labels})


class _Streams:
    """Parts of the residual stream before block 1: by position, and by symbols at and before the position."""

    def __init__(self, slots: Slots, ids: dict[str, int], task: Nearest) -> None:
        here, before = (np.asarray(dense(table)) for table in slots.tables)
        points, labels = ([ids[name] for name in names] for names in (task.point_names, task.label_names))
        self.places, self.bos = slots.fixed, slots.pads[2][0]
        self.point, self.label = here[points], here[labels]
        self.after_point, self.after_label = before[points], before[labels]

    def queries(self, maps: HeadRule) -> Floats:
        """Return the query of each point, if it depends on nothing else."""
        query: Floats = self.point @ maps.q + self.places[0] @ maps.q + maps.b_q
        size = float(np.abs(query).max())
        if np.abs(self.after_label @ maps.q).max() > ZERO * size or np.ptp(self.places @ maps.q, axis=0).max() > 0:
            raise Undecided("the query of a point depends on the label before it, or on the position")
        return query


def _need_nearest(maps: HeadRule, streams: _Streams, query: Floats, count: int) -> int:
    """Refuse scores by which another key than the label of the latest nearest point may win; return their number."""
    of_label = query @ (streams.label @ maps.k).T
    if np.ptp(of_label, axis=1).max() > ZERO * (1 + np.abs(of_label).max()):
        raise Undecided("the key of a label depends on the label")
    by_place = query @ (streams.places @ maps.k + maps.b_k).T
    by_point = of_label[:, :1] + query @ (streams.after_point @ maps.k).T
    size = float(max(np.abs(part).max() for part in (by_place, by_point)))
    slack = EQUAL * (1 + size)
    steps = np.abs(np.arange(count)[:, None] - np.arange(count))
    steps = np.minimum(steps, count - steps)
    order = np.take_along_axis(by_point, np.argsort(steps, axis=1, kind="stable"), axis=1)
    edges = np.arange(1, count) % 2 == 1  # the point itself, then two at every distance, but one if that is half a turn
    spread = np.ptp(by_place, axis=1)
    falls = order[:, :-1] - order[:, 1:]
    need_above(falls[:, edges], spread[:, None], size, "a nearer point may score less than a later one")
    if np.abs(falls[:, ~edges]).max(initial=0.0) > slack:
        raise Undecided("points at the same distance have different scores")
    rises = bool((np.diff(by_place[:, 1::2], axis=1) > slack).all())
    tied = float(spread.max()) == 0 and maps.head.attention == "hard" and maps.head.ties == "right"
    if not rises and not tied:
        raise Undecided("of equally near points the latest is not preferred")
    least = by_point.min(axis=1) + by_place.min(axis=1)
    others = (query @ (streams.point @ maps.k).T).max(axis=1)
    others = others + np.maximum((query @ (streams.after_label @ maps.k).T).max(axis=1), 0.0) + by_place.max(axis=1)
    need_above(least, others, size, "a point may score more than a label")
    need_above(least, query @ (streams.bos @ maps.k + maps.b_k), size, "BOS may score more than a label")
    return int(by_place.size + by_point.size)


def _need_answers(ideal: Ideal, maps: HeadRule, streams: _Streams, answers: list[int], tie: float) -> None:
    """Refuse logits that depend on anything but the label that is read, or are wrong; `answers` are all outputs."""
    w_u = ideal.w_u
    direct = [streams.point @ w_u, streams.after_label @ w_u, streams.after_label @ maps.v @ w_u]
    direct += [
        streams.after_point @ maps.v @ w_u,
        (streams.places - streams.places[0]) @ np.hstack([w_u, maps.v @ w_u]),
    ]
    if any(np.abs(part).max() > ZERO for part in direct):
        raise Undecided("the logits depend on more than the label that is read")
    base = (streams.places[0] + streams.places[0] @ maps.v + maps.b_v) @ w_u + ideal.b_u
    labels = base + streams.label @ maps.v @ w_u
    none = np.vstack([streams.point @ maps.v @ w_u, (streams.bos - streams.places[0]) @ maps.v @ w_u]) + base
    right = np.array([*answers[1:], *answers[:1] * len(none)])
    if np.ptp(none, axis=0).max() > ZERO * (1 + np.abs(none).max()):
        raise Undecided("points and BOS have different values")
    if not (logit_margins(np.vstack([labels, none]), right) > tie + 2 * ZERO).all():
        raise Undecided("the best logit is not that of the label that is read")
