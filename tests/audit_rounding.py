"""Test proofs of margins by exact arithmetic: is a run in float64 as near to the exact ideal as was proved?

The *ideal* that a proof speaks of is computed with exact fractions (balls where a softmax averages), by the second
implementation of the forward pass in `certification/reals`. It shares no code with the prover or with the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from flint import arb, arb_mat, ctx

from audit_proofs import activations, excess_distance, ideal_net
from vitrify.arrays import Floats, Ints
from vitrify.certification.attacks.words import answer_margins
from vitrify.certification.margins.proof import Proof
from vitrify.certification.reals.nets import RealNet
from vitrify.net.inference import with_pads
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

EXACT_BITS = 1024  # of balls: numbers of 1e±300 and their products keep all digits that float64 could have
READ_OFF = 2.0**-50  # relative rounding of the comparisons here


def rounding_contradiction(weights: Weights[Transformer], proof: Proof, words: Iterable[Ints]) -> str | None:
    """Return a sentence about the first word [length] of which a run contradicts the proof, or None."""
    exact = RealNet(ideal_net(weights, proof))
    for word in words:
        with ctx.workprec(EXACT_BITS):
            ideal = {name: x.as_balls() for name, x in exact.run(word, precision=EXACT_BITS).items()}
        for sentence in _contradictions(weights, proof, word, ideal):
            return f"{sentence}, on {np.asarray(word).tolist()}"
    return None


def _contradictions(
    weights: Weights[Transformer], proof: Proof, word: Ints, ideal: Mapping[str, arb_mat]
) -> Iterator[str]:
    """Yield what of a proof is false of a run on a word, given the exact activations of the ideal net."""
    net = weights.architecture
    seen = activations(weights, with_pads(net, np.asarray(word, dtype=np.int64)[None]))
    logits = seen["hook_logits"][:, net.pads :]  # the answer to the empty word is not part of a proof
    far = float(distances(seen["hook_logits"][0], ideal["hook_logits"])[net.pads :].max(initial=0.0))
    if proof.error is not None and not far <= proof.error:
        yield f"logits are {far:.6g} from the ideal ones, not {proof.error:.6g} at most"
    least = float(answer_margins(weights, logits).min(initial=np.inf))
    if proof.margin is not None and not least >= proof.margin - READ_OFF * np.abs(logits).max(initial=0.0):
        yield f"an answer has a margin of {least:.6g}, not {proof.margin:.6g}"
    for margin in proof.spaces:
        name, dims = net.moments[margin.label.born], list(margin.label.dims)
        off = distances(seen[name][0], ideal[name], dims)[net.pads :]
        beyond = float((off - margin.error).max(initial=0.0))
        if beyond > 0:
            yield f"{margin.label.name!r} is {beyond:.6g} further from the ideal than its error"
        stream = seen[name][:, net.pads :][..., dims]
        beyond = excess_distance(margin, stream)
        if not beyond <= READ_OFF * np.abs(stream).max(initial=0.0):
            yield f"{margin.label.name!r} is {beyond:.6g} further from its values than its error"


def distances(run: Floats, ideal: arb_mat, dims: Sequence[int] | None = None) -> Floats:
    """Return by how much the numbers [position, dim] of a run are off, at least, rounded down."""
    columns = range(run.shape[1]) if dims is None else dims
    with ctx.workprec(EXACT_BITS):
        off = [[_distance(float(run[i, j]), ideal[i, j]) for j in columns] for i in range(run.shape[0])]
    return np.array(off, dtype=np.float64).reshape(run.shape[0], len(columns))


def _distance(number: float, ball: arb) -> float:
    if not np.isfinite(number):
        return np.inf
    return float(abs(arb(number) - ball).lower()) * (1 - 2.0**-52)
