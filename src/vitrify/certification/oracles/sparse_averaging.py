"""The oracle of sparse averaging: answers, and a certificate of all declared sets from the arrays, without rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.certification.oracles.catalogue import oracle
from vitrify.certification.oracles.tasks import TaskOracle
from vitrify.kit.affine import UNIT_ROUNDOFF
from vitrify.kit.set_codes import ExactScores, exact_scores
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights, has_architecture
from vitrify.spec.tasks.sparse_averaging import SparseAveraging

LOW, HIGH, OFF, PROVED = "least score on a set", "largest score on a set", "largest score off a set", "proved error"


@oracle(SparseAveraging)
class SetOracle(TaskOracle):
    """A net of one head whose queries are of symbols and whose keys are of positions has scores that can be listed.

    Their least and largest values on and off every set, whatever vectors a word holds, prove how far an answer is off.
    Nets of another form are judged by their answers alone.
    """

    task: SparseAveraging

    def check_inside(
        self,
        weights: Weights[SequenceArchitecture],
        seed: int,  # noqa: ARG002
    ) -> tuple[dict[str, object], dict[str, object] | None]:
        """The scores of all sets, and a witness if they do not prove the error that the net states."""
        seen = looked_at(weights, self.task)
        if seen is None or not has_architecture(weights, Transformer):
            return {}, None
        proved = proved_error(weights, seen)
        measured: dict[str, object] = {LOW: float(seen.low), HIGH: float(seen.high), OFF: float(seen.off)}
        measured[PROVED] = proved
        if seen.gap > 0 and proved <= self.tolerance():
            return measured, None
        return measured, {"expected": f"a proved error of at most {self.tolerance():g}", **measured}


def looked_at(weights: Weights[SequenceArchitecture], task: SparseAveraging) -> ExactScores | None:
    """Return the scores of the queries of all declared sets and the keys of all positions, from the built arrays."""
    net, arrays = weights.architecture, weights.arrays
    if not isinstance(net, Transformer) or net.heads_per_layer != (1,) or net.norm or net.blocks[0].heads[0].window:
        return None
    embedded, placed = dense(arrays["embed.W_E"]), dense(arrays["pos_embed.W_pos"])
    ask, tell = (dense(arrays[f"blocks.0.attn.{name}"])[0] for name in ("W_Q", "W_K"))
    if (placed @ ask).any() or (embedded @ tell).any() or net.blocks[0].heads[0].mask != "none":
        return None
    queries = embedded[1:] @ ask + arrays["blocks.0.attn.b_Q"][0]
    keys = placed @ tell + arrays["blocks.0.attn.b_K"][0]
    if keys[: net.pads].any():
        return None
    sets = np.array(task.pointers) - 1
    return exact_scores(keys[net.pads :], queries, np.tile(sets, (len(task.vectors), 1)))


def proved_error(weights: Weights[Any], seen: ExactScores) -> float:
    """Return the largest distance of an answer from the mean, for vectors of norm 1, taken by the last head."""
    net = weights.architecture
    last = len(net.blocks) - 1
    head, beta = net.blocks[last].heads[0], float(weights.arrays[f"blocks.{last}.attn.beta"][0])
    rounding: float = UNIT_ROUNDOFF * (2 * net.d_model + seen.dimensions) * seen.bound  # of a score
    if seen.gap <= 0:
        return np.inf
    summed = 4 * UNIT_ROUNDOFF * (seen.size + seen.others)  # rounding of weights and of their products with vectors
    if head.attention == "softmax":
        return seen.error(beta) + 4 * beta * rounding + summed
    spread, gap = float(seen.spread) + 2 * rounding, float(seen.gap) - 2 * rounding
    if head.attention == "sparsemax":
        return seen.size * beta * spread + summed if seen.size * beta * gap >= 1 else np.inf
    return summed if spread < head.resolution < gap else np.inf
