"""Runs against proofs: does a net do on given words what a proof of its margins says of all words?

Nothing here knows how the proof was found. The *ideal* that a proof speaks of is run as a net of its own: the same
weights, with hard attention where heads choose their keys. A proof that a run contradicts is a fault of the prover.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.proof import Proof, SpaceMargin
from vitrify.net.labels import HeadLabel
from vitrify.net.transformer import Head, Transformer
from vitrify.net.weights import Weights

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

LEGAL = 2e-6  # how far an ideal value may be from a legal one
SLACK = 1e-12  # what rounding may add to a run of the ideal, relative to the largest number there


def contradiction(weights: Weights[Any], proof: Proof, words: Iterable[Ids]) -> str | None:
    """The first thing that a run on some words [word, length] does against a proof that holds, in a sentence."""
    ideal = _ideal(weights, proof)
    for some in words:
        if some.shape[1] > proof.max_length:
            continue
        net = weights.architecture
        tokens = np.concatenate([np.zeros((len(some), net.pads), dtype=np.int64), some], axis=1)
        seen, exact = _activations(weights, tokens), _activations(ideal, tokens)
        found = (
            _answers(weights, proof, seen, exact) or _heads(weights, proof, seen, exact) or _spaces(net, proof, seen)
        )
        if found:
            return found
    return None


def premise_fails(weights: Weights[Any], proof: Proof, words: Iterable[Ids]) -> bool:
    """Whether a run on some words breaks what a proof takes for given: that whole numbers stay within their ranges."""
    net = weights.architecture
    given = [m.label for m in proof.spaces if any(note.startswith(f"{m.label.name!r} stays") for note in proof.assumed)]
    for some in words if given else ():
        tokens = np.concatenate([np.zeros((len(some), net.pads), dtype=np.int64), some], axis=1)
        seen = _activations(weights, tokens)
        for label in given:
            stream = seen[net.moments[label.born]][:, net.pads :][..., list(label.dims)]
            if (np.maximum(label.kind.low - stream, stream - label.kind.high) > 0.5).any():
                return True
    return False


def leads(weights: Weights[Any], logits: Floats) -> Floats:
    """By how much each answer leads: over the next symbol, or, where each symbol is a yes or a no, over 0."""
    if weights.architecture.output.kind == "next":
        return np.asarray(np.abs(logits).min(axis=-1))
    if logits.shape[-1] < 2:
        return np.full(logits.shape[:-1], np.inf)
    ordered = np.sort(logits, axis=-1)
    return np.asarray(ordered[..., -1] - ordered[..., -2])


def _activations(weights: Weights[Any], tokens: Ids) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    weights.architecture.forward(weights.prepared, tokens, record=seen.__setitem__)
    return seen


def _ideal(weights: Weights[Any], proof: Proof) -> Weights[Any]:
    """The net whose heads take exactly the keys that win, where the proof says that some do."""
    net: Transformer = weights.architecture
    gaps = {(head.block, head.place): head.gap for head in proof.heads}

    def exact(head: Head, gap: float | None) -> Head:
        chooses = gap is not None and head.attention != "hard"
        return replace(head, attention="hard", ties="average", resolution=(gap or 0.0) / 2) if chooses else head

    blocks = [
        replace(block, heads=tuple(exact(head, gaps.get((i, place))) for place, head in enumerate(block.heads)))
        for i, block in enumerate(net.blocks)
    ]
    return replace(weights, architecture=replace(net, blocks=tuple(blocks)))


def _answers(weights: Weights[Any], proof: Proof, seen: dict[str, Any], exact: dict[str, Any]) -> str | None:
    """Logits are as near to the ideal ones as they should be, and the best answer leads as it should."""
    first = weights.architecture.pads  # what is said to the empty word is not part of a proof
    logits, wanted = seen["hook_logits"][:, first:], exact["hook_logits"][:, first:]
    slack = SLACK * (1 + np.abs(wanted).max(initial=0.0))
    far = float(np.abs(logits - wanted).max(initial=0.0))
    if proof.error is not None and not far <= proof.error + slack:
        return f"logits are {far:.6g} from the ideal ones, not {proof.error:.6g} at most"
    if proof.lead is not None:
        lead = float(leads(weights, logits).min(initial=np.inf))
        if not lead >= proof.lead - slack:
            return f"an answer leads by {lead:.6g}, not by {proof.lead:.6g}"
    return None


def _heads(weights: Weights[Any], proof: Proof, seen: dict[str, Any], exact: dict[str, Any]) -> str | None:
    """Of the weight of each head no more goes astray than it should, and the head looks where its label says."""
    net = weights.architecture
    labels = {(label.block, label.place): label for label in weights.labels.heads}
    for head in proof.heads:
        name = f"blocks.{head.block}.attn.hook_pattern"
        pattern, wanted = seen[name][:, head.place, net.pads :], exact[name][:, head.place, net.pads :]
        if head.gap is not None:
            astray = float(np.where(wanted > 0, 0.0, pattern).sum(axis=-1).max(initial=0.0))
            if not astray <= head.leak + SLACK:
                return f"{head.name!r} gives {astray:.6g} of its weight to other keys, not {head.leak:.6g} at most"
        label = labels.get((head.block, head.place))
        if label is not None and isinstance(label.looks, int) and label.gap is not None and pattern.size:
            found = _elsewhere(label, net.pads, wanted)
            if found:
                return found
    return None


def _elsewhere(label: HeadLabel, pads: int, pattern: Floats) -> str | None:
    """A position from which a head that looks so many places back does not look there; [word, token, key]."""
    assert isinstance(label.looks, int)
    place = np.arange(pattern.shape[1]) + pads - label.looks
    for token, there in enumerate(place.tolist()):
        keys = pattern[:, token]
        right = keys[:, there] if there >= pads else keys[:, :pads].sum(axis=1)
        if not (np.abs(right - keys.sum(axis=1)) <= SLACK).all():
            return f"{label.name!r} does not look {label.looks} back at token {token + 1}"
    return None


def _spaces(net: Transformer, proof: Proof, seen: dict[str, Any]) -> str | None:
    for margin in proof.spaces:
        stream = seen[net.moments[margin.label.born]][:, net.pads :][..., list(margin.label.dims)]
        illegal = _illegal(margin, stream)
        if illegal:
            return illegal
        far = stray(margin, stream)
        if not far <= 1e-9 * (1 + np.abs(stream).max(initial=0.0)):
            return f"{margin.label.name!r} is {far:.6g} further from its values than its error"
    return None


def _illegal(margin: SpaceMargin, stream: Floats) -> str | None:
    """A coordinate of a code that no code has, or a number that should be whole and is not."""
    tag = margin.label.kind.tag
    if tag in ("reals", "circle") or not all(factor.finite for factor in margin.factors):
        return None
    nearest = np.round(stream) if tag == "integers" else np.clip(np.round(stream), -1.0 if tag == "bits" else 0.0, 1.0)
    far = float((np.abs(stream - nearest) - margin.error).max(initial=0.0))
    return f"{margin.label.name!r} is {far:.6g} further from a legal value than its error" if far > LEGAL else None


def stray(margin: SpaceMargin, stream: Floats) -> float:
    """By how much the vectors [word, token, size] of a space are further than its error from all its values."""
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
