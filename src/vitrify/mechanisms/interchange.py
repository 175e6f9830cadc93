r"""Interchange interventions: does another network have the circuit of a reference, on its domain?

An intervention patches a set of edges in both networks. Their answers are compared

- without an intervention;
- with every single edge outside the circuit patched, with all of them at once, and with `RANDOM_SETS` random sets of
  them: on all pairs of a sequence and a donor. The reference's answers do not change there;
- with every node patched (all edges that leave it), and `RANDOM_SETS` random sets of nodes: on the pairs whose donor is
  read at the same positions. These are the interchange interventions of Geiger et al. 2021 (arXiv 2106.02997).

And every true edge, patched alone, must change some answer. Interventions outside the circuit are what *strict*
interchange intervention training adds (Gupta et al. 2024, arXiv 2407.14494).

A patched construction may be without a clear answer: two symbols share the largest logit, or almost. An answer to a
position is *decided* if no logit of the reference is between the tolerance and twice the tolerance from changing the
set of answers. With nodes patched, only decided answers are compared.
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
MAX_MOVE = 0.05  # of a probability or a number that may still count as the same answer


@dataclass(frozen=True)
class Interchange:
    """Answers that were compared, how many were not as in the reference, and how many were undecided there.

    `silent` are true edges without an effect in the network.
    """

    compared: int
    violations: int
    undecided: int
    silent: tuple[Edge, ...]
    faithfulness: float  # of the true circuit, in the network

    @property
    def holds(self) -> bool:
        """Return whether the network has the circuit of the reference."""
        return not self.violations and not self.silent and self.faithfulness == 1.0


def interventions(wired: NetWiring, circuit: Sequence[Edge], seed: int = 0) -> Iterator[tuple[tuple[Edge, ...], bool]]:
    """Yield sets of edges that are patched, and whether only donors at the same positions are used."""
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


def interchange(reference: Judge, other: Judge, circuit: Sequence[Edge], *, hasty: bool = False) -> Interchange:
    """Compare all answers of two networks under all interventions; a hasty comparison ends at the first violation."""
    compared = violations = undecided = 0
    for cut, aligned in interventions(other.wired, circuit):
        answers = reference.recalled(cut if aligned else ())
        for part, one, two in zip(reference.domain, answers, other.logits(cut), strict=True):
            counts = part.mask[part.pairs[:, 0]]
            if aligned:
                counts = counts & part.aligned[:, None]
            clear = counts & decided(reference.output, one, other.tolerance) if aligned else counts
            wrong = clear & disagree(reference.output, one, two, other.tolerance)
            compared, violations = compared + int(clear.sum()), violations + int(wrong.sum())
            undecided += int((counts & ~clear).sum())
        if hasty and violations:
            return Interchange(compared, violations, undecided, (), 0.0)
    silent = tuple(edge for edge in circuit if other.changed((edge,)) == 0)
    return Interchange(compared, violations, undecided, silent, other.faithfulness(circuit))


def disagree(output: Output, reference: Floats, logits: Floats, tolerance: float) -> Bools:
    """Return where the answers of a network [word, pos, out] are not those of the reference."""
    if output.kind in ("lm", "values"):
        return differs(output, reference, logits, tolerance)
    exact = tolerance if output.kind == "next" else TIE
    want, got = answer_sets(output, reference, exact), answer_sets(output, logits, tolerance)
    return np.asarray((want != got).any(axis=-1))


def decided(output: Output, logits: Floats, tolerance: float) -> Bools:
    """Return where answers of the reference [word, pos, out] are not near to being others."""
    if output.kind in ("lm", "values"):
        return np.ones(logits.shape[:-1], dtype=bool)
    height = logits - tolerance if output.kind == "next" else logits.max(axis=-1, keepdims=True) - logits
    if output.kind == "next":
        return np.asarray((np.abs(height) >= tolerance / 2).all(axis=-1))
    return np.asarray(((height <= TIE) | (height >= 2 * tolerance)).all(axis=-1))


def wide_tolerance(reference: Judge, circuit: Sequence[Edge]) -> float:
    """Return a tolerance for a network with less exact answers.

    Sets of symbols: a quarter of the smallest margin of the reference's answers (half of the smallest positive logit
    for next words). Probabilities and numbers: half of the smallest effect that a true edge has somewhere, at most
    `MAX_MOVE`.
    """
    output = reference.output
    if output.kind in ("lm", "values"):
        effects = [_effect(reference, edge) for edge in circuit]
        return max(usual_tolerance(output), min(MAX_MOVE, *(effect / 2 for effect in effects)))
    margins = []
    for part, _, clean in reference.ready:
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
