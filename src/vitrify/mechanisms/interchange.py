r"""Interchange interventions: does another network have the circuit of a reference, on its domain?

The reference is a construction with its true circuit, a set of edges. The other network has the same nodes. An
intervention patches a set of edges, and the outputs of the other network must be those of the reference:

| patched in the other network | pairs of a sequence and a donor | in the reference |
| --- | --- | --- |
| nothing | all | nothing |
| every single edge outside the circuit; all of them; `RANDOM_SETS` random sets of them | all | nothing |
| every node (all edges that leave it); `RANDOM_SETS` random sets of nodes | donor at the same positions | the same |

The reference is not patched outside its circuit: there, the definition of a circuit is that outputs stay. It was
measured of single edges and of all of them; random sets are not run on the reference. Random sets are drawn with a
fixed seed. Patching nodes is the interchange intervention of Geiger et al. 2021 (arXiv 2106.02997); interventions
outside the circuit are what *strict* interchange intervention training adds (Gupta et al. 2024, arXiv 2407.14494).

Then every true edge, patched alone in the other network, must change some output, and the circuit must be faithful.

With nodes patched, the reference may be near to another output, as where two symbols almost share the largest logit.
Only its *decided* outputs are compared there. With the tolerance $t$ of the other network, an output is undecided

- `next` (`signs` in question.json): if a logit is between $t/2$ and $3t/2$;
- `recognizer`, `transducer`, `class` (`largest`): if a logit is below the largest by more than `TIE`, which counts as
  equal, and by less than $2t$;
- `lm` (`probabilities`), `values`: never.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Bools, Floats
from vitrify.mechanisms.circuit import Judge
from vitrify.mechanisms.domain import TIE, answer_sets, differs, probabilities, usual_tolerance
from vitrify.mechanisms.parts import Edge, NetWiring
from vitrify.net.architecture import Output

RANDOM_SETS = 16
MAX_MOVE = 0.05  # of a probability or a number that may still count as the same output


@dataclass(frozen=True)
class Interchange:
    """Outputs that were compared, how many were not as in the reference, and how many were left out as undecided.

    `silent` are true edges without an effect in the network. A comparison that stopped early did not measure them, nor
    the faithfulness: both are None.
    """

    compared: int
    compared_with_nodes: int  # of these, with a node or a set of nodes patched
    violations: int
    undecided: int  # with nodes patched
    silent: tuple[Edge, ...] | None
    faithfulness: float | None  # of the true circuit, in the network

    @property
    def holds(self) -> bool:
        """Return whether the network has the circuit of the reference; not if all patched nodes left it undecided."""
        measured = self.silent == () and self.faithfulness == 1.0
        return measured and not self.violations and self.compared_with_nodes > 0


def interventions(wired: NetWiring, circuit: Sequence[Edge], seed: int = 0) -> Iterator[tuple[tuple[Edge, ...], bool]]:
    """Yield sets of edges to patch, and whether they are of nodes, patched in both networks with aligned donors."""
    outside, rng = tuple(sorted(set(wired.edges) - set(circuit))), np.random.default_rng(seed)
    yield (), False
    yield outside, False
    for node in wired.writers:
        yield tuple(edge for edge in wired.edges if edge[0] == node), True
    for _ in range(RANDOM_SETS):
        yield tuple(edge for edge in outside if rng.random() < 0.5), False
        nodes = {node for node in wired.writers if rng.random() < 0.5}
        yield tuple(edge for edge in wired.edges if edge[0] in nodes), True
    for edge in outside:
        yield (edge,), False


def interchange(reference: Judge, other: Judge, circuit: Sequence[Edge], *, stop_early: bool = False) -> Interchange:
    """Compare the outputs of two networks under `interventions`, or only up to the first one with violations."""
    compared = with_nodes = violations = undecided = 0
    for cut, aligned in interventions(other.wired, circuit):
        expected = reference.recalled(cut if aligned else ())  # logits, computed at the first call only
        for part, want, got in zip(reference.domain, expected, other.logits(cut), strict=True):
            counts = part.mask[part.pairs[:, 0]]
            if aligned:
                counts = counts & part.aligned[:, None]  # pairs whose donor is read at the same positions
            clear = counts & decided(reference.output, want, other.tolerance) if aligned else counts
            wrong = clear & disagree(reference.output, want, got, other.tolerance)
            compared, violations = compared + int(clear.sum()), violations + int(wrong.sum())
            with_nodes += int(clear.sum()) if aligned else 0
            undecided += int((counts & ~clear).sum())
        if stop_early and violations:
            return Interchange(compared, with_nodes, violations, undecided, None, None)
    silent = tuple(edge for edge in circuit if other.changed((edge,)) == 0)
    return Interchange(compared, with_nodes, violations, undecided, silent, other.faithfulness(circuit))


def disagree(output: Output, reference: Floats, logits: Floats, tolerance: float) -> Bools:
    """Return where the outputs of a network [word, pos, out] are not those of the reference.

    Sets of symbols with the largest logit are exact in the reference (up to `TIE`), and have the tolerance in the
    network.
    """
    if output.kind in ("lm", "values"):
        return differs(output, reference, logits, tolerance)
    exact = tolerance if output.kind == "next" else TIE
    want, got = answer_sets(output, reference, exact), answer_sets(output, logits, tolerance)
    return np.asarray((want != got).any(axis=-1))


def decided(output: Output, logits: Floats, tolerance: float) -> Bools:
    """Return where outputs of the reference [word, pos, out] are decided, as the module defines it."""
    if output.kind in ("lm", "values"):
        return np.ones(logits.shape[:-1], dtype=bool)
    if output.kind == "next":
        return np.asarray((np.abs(logits - tolerance) >= tolerance / 2).all(axis=-1))
    below = logits.max(axis=-1, keepdims=True) - logits
    return np.asarray(((below <= TIE) | (below >= 2 * tolerance)).all(axis=-1))


def wide_tolerance(reference: Judge, circuit: Sequence[Edge]) -> float:
    """Return a tolerance for a network with less exact outputs.

    Sets of symbols: a quarter of the smallest margin of the reference's outputs above `TIE` (half of the smallest
    logit above `TIE` for next words), or `TIE` if there is none. Probabilities and numbers: half of the largest
    effect of the weakest true edge, at most `MAX_MOVE`, and at least the usual tolerance of the kind of output.
    """
    output = reference.output
    if output.kind in ("lm", "values"):
        return max(usual_tolerance(output), min([MAX_MOVE, *(_effect(reference, edge) / 2 for edge in circuit)]))
    margins = []
    for part, _, clean in reference.ready:  # clean: logits [pair, pos, out] without an intervention
        logits = clean[part.mask[part.pairs[:, 0]]]
        height = logits if output.kind == "next" else logits.max(axis=-1, keepdims=True) - logits
        margins.append(height[height > TIE].min(initial=np.inf) / (2 if output.kind == "next" else 4))
    return float(min(margins)) if np.isfinite(min(margins)) else TIE


def _effect(judge: Judge, edge: Edge) -> float:
    """Return how far an edge moves a probability or a number, at most."""
    moved = 0.0
    for (part, _, clean), logits in zip(judge.ready, judge.logits((edge,)), strict=True):
        pair = [probabilities(judge.output, each) if judge.output.kind == "lm" else each for each in (clean, logits)]
        moved = max(moved, float(np.abs(pair[0] - pair[1])[part.mask[part.pairs[:, 0]]].max()))
    return moved
