"""Test proofs by runs: does a net do on some words what a proof of its margins says of all words?

Nothing here depends on how the proof works. The *ideal* that a proof speaks of is run as a net of its own: the same
weights, with hard attention where heads choose their keys. A proof that a run contradicts is a fault of the prover.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from vitrify.arrays import Array, Floats, Ints
from vitrify.certification.attacks.words import answer_margins
from vitrify.certification.checking import SLACK
from vitrify.certification.margins.proof import Proof, SpaceMargin
from vitrify.net.architecture import Architecture, SequenceArchitecture
from vitrify.net.inference import with_pads
from vitrify.net.labels import HeadLabel
from vitrify.net.transformer import Head, Transformer
from vitrify.net.weights import Weights, has_architecture

LEGAL_TOLERANCE = 2e-6  # distance of an ideal value from a legal one


def contradiction(weights: Weights[Architecture], proof: Proof, words: Iterable[Ints]) -> str | None:
    """Return a sentence about the first run on `words` [word, length] that contradicts a proof, or None."""
    assert has_architecture(weights, Transformer)  # margins are proved of no others
    ideal = ideal_net(weights, proof)
    for some in words:
        if some.shape[1] > proof.max_length:
            continue
        net = weights.architecture
        tokens = with_pads(net, some)
        seen, exact = activations(weights, tokens), activations(ideal, tokens)
        sentence = (
            _answers(weights, proof, seen, exact) or _heads(weights, proof, seen, exact) or _spaces(net, proof, seen)
        )
        if sentence:
            return sentence
    return None


def premise_fails(weights: Weights[SequenceArchitecture], proof: Proof, words: Iterable[Ints]) -> bool:
    """Return whether a run violates the assumption of a proof that integers stay within their ranges."""
    net = weights.architecture
    assumed = [
        m.label for m in proof.spaces if any(note.startswith(f"{m.label.name!r} stays") for note in proof.assumed)
    ]
    for some in words if assumed else ():
        tokens = with_pads(net, some)
        seen = activations(weights, tokens)
        for label in assumed:
            stream = seen[net.moments[label.born]][:, net.pads :][..., list(label.dims)]
            if (np.maximum(label.kind.low - stream, stream - label.kind.high) > 0.5).any():
                return True
    return False


def activations(weights: Weights[Architecture], tokens: Ints) -> dict[str, Array]:
    seen: dict[str, Array] = {}
    weights.architecture.forward(weights.prepared, tokens, record=seen.__setitem__)
    return seen


def ideal_net(weights: Weights, proof: Proof) -> Weights:
    """Return the net whose heads select exactly the keys that win, where the proof says that some do."""
    net = weights.architecture
    gaps = {(head.block, head.index): head.gap for head in proof.heads}

    def exact(head: Head, gap: float | None) -> Head:
        chooses = gap is not None and head.attention != "hard"
        return replace(head, attention="hard", ties="average", resolution=(gap or 0.0) / 2) if chooses else head

    blocks = [
        replace(block, heads=tuple(exact(head, gaps.get((i, place))) for place, head in enumerate(block.heads)))
        for i, block in enumerate(net.blocks)
    ]
    return replace(weights, architecture=replace(net, blocks=tuple(blocks)))


def _answers(
    weights: Weights[SequenceArchitecture], proof: Proof, seen: dict[str, Array], exact: dict[str, Array]
) -> str | None:
    """Return how the logits contradict the proved error and margin, or None."""
    first = weights.architecture.pads  # the answer to the empty word is not part of a proof
    logits, wanted = seen["hook_logits"][:, first:], exact["hook_logits"][:, first:]
    slack = SLACK * (1 + np.abs(wanted).max(initial=0.0))
    far = float(np.abs(logits - wanted).max(initial=0.0))
    if proof.error is not None and not far <= proof.error + slack:
        return f"logits are {far:.6g} from the ideal ones, not {proof.error:.6g} at most"
    if proof.margin is not None:
        margin = float(answer_margins(weights, logits).min(initial=np.inf))
        if not margin >= proof.margin - slack:
            return f"an answer has a margin of {margin:.6g}, not {proof.margin:.6g}"
    return None


def _heads(
    weights: Weights[SequenceArchitecture], proof: Proof, seen: dict[str, Array], exact: dict[str, Array]
) -> str | None:
    """Return a head that leaks more weight than proved, or attends elsewhere than its label says, or None."""
    net = weights.architecture
    labels = {(label.block, label.index): label for label in weights.labels.heads}
    for head in proof.heads:
        name = f"blocks.{head.block}.attn.hook_pattern"
        pattern, wanted = seen[name][:, head.index, net.pads :], exact[name][:, head.index, net.pads :]
        if head.gap is not None:
            astray = float(np.where(wanted > 0, 0.0, pattern).sum(axis=-1).max(initial=0.0))
            if not astray <= head.leak + SLACK:
                return f"{head.name!r} gives {astray:.6g} of its weight to other keys, not {head.leak:.6g} at most"
        label = labels.get((head.block, head.index))
        if label is not None and isinstance(label.attends_to, int) and label.gap is not None and pattern.size:
            sentence = _wrong_position(label, net.pads, wanted)
            if sentence:
                return sentence
    return None


def _wrong_position(label: HeadLabel, pads: int, pattern: Floats) -> str | None:
    """Return a token from which a head with a fixed offset attends elsewhere, or None."""
    assert isinstance(label.attends_to, int)
    place = np.arange(pattern.shape[1]) + pads - label.attends_to
    for token, there in enumerate(place.tolist()):
        keys = pattern[:, token]
        right = keys[:, there] if there >= pads else keys[:, :pads].sum(axis=1)
        if not (np.abs(right - keys.sum(axis=1)) <= SLACK).all():
            return f"{label.name!r} does not attend {label.attends_to} back at token {token + 1}"
    return None


def _spaces(net: Transformer, proof: Proof, seen: dict[str, Array]) -> str | None:
    for margin in proof.spaces:
        stream = seen[net.moments[margin.label.born]][:, net.pads :][..., list(margin.label.dims)]
        illegal = _illegal(margin, stream)
        if illegal:
            return illegal
        far = excess_distance(margin, stream)
        if not far <= 1e-9 * (1 + np.abs(stream).max(initial=0.0)):
            return f"{margin.label.name!r} is {far:.6g} further from its values than its error"
    return None


def _illegal(margin: SpaceMargin, stream: Floats) -> str | None:
    """Return a sentence about a coordinate that no code has, or a non-integer that should be one, or None."""
    tag = margin.label.kind.tag
    if tag in ("reals", "circle") or not all(factor.finite for factor in margin.factors):
        return None
    nearest = np.round(stream) if tag == "integers" else np.clip(np.round(stream), -1.0 if tag == "bits" else 0.0, 1.0)
    far = float((np.abs(stream - nearest) - margin.error).max(initial=0.0))
    return (
        f"{margin.label.name!r} is {far:.6g} further from a legal value than its error"
        if far > LEGAL_TOLERANCE
        else None
    )


def excess_distance(margin: SpaceMargin, stream: Floats) -> float:
    """Return by how much the vectors [word, token, size] of a space exceed the proved distance from its values."""
    worst = 0.0
    rest = (stream - margin.places[: stream.shape[1]]).reshape(-1, stream.shape[2])
    order = {dim: at for at, dim in enumerate(margin.label.dims)}
    for factor in margin.factors:
        if not set(factor.dims.tolist()) <= set(order):
            continue  # a part of something larger
        if any(other is not factor and np.isin(other.dims, factor.dims).any() for other in margin.factors):
            continue  # sums of several parts
        here = [order[dim] for dim in factor.dims.tolist()]
        part, error = np.unique(rest[:, here], axis=0), margin.error[here]
        if not factor.finite:
            far = np.maximum(factor.low - error - part, part - factor.high - error).max(initial=0.0)
        else:
            points = factor.written_out()
            points = np.vstack([points, np.zeros((1, len(here)))]) if factor.void else points
            far = (np.abs(part[:, None] - points[None]) - error).max(axis=-1).min(axis=-1).max(initial=0.0)
        worst = max(worst, float(far))
    return worst
