"""Explain why a mutant does no harm, from the activations of the net and of the mutant, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.arrays import Bools, Floats, Ints
from vitrify.certification.attacks.words import answer_margins
from vitrify.certification.mutation_test import Mutant
from vitrify.certification.oracles.right import Oracle
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.inference import log_probabilities, with_pads
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

Reason = tuple[str, str]

STILL = 1e-12  # relative change of an activation that counts as none
UNEXPLAINED = "unexplained"


def reason_of(
    weights: Weights[SequenceArchitecture], mutant: Mutant[SequenceArchitecture], oracle: Oracle, words: Sequence[Ints]
) -> Reason:
    """Return the kind of reason and a sentence with figures, from all the words of a domain."""
    net = weights.architecture
    readable = [some for some in words if some.shape[1] <= net.max_length]
    if len(readable) < len(words):
        return "right for longer words", "it answers the longer words that it now reads as the spec does"
    if net.reads == "tokens" and mutant.weights.architecture.max_length < net.max_length:
        return "fewer words", "it reads shorter words only, and is right for them"
    sizes: dict[str, tuple[float, float]] = {}
    for some in readable:
        for name, here, there in _side_by_side(weights, mutant.weights, some):
            by, size = sizes.get(name, (0.0, 0.0))
            sizes[name] = (
                max(by, float(np.abs(there - here).max(initial=0.0))),
                max(size, float(np.abs(here).max(initial=0.0))),
            )
    moved = {name: by for name, (by, size) in sizes.items() if by > STILL * (1 + size)}
    if "hook_logits" in moved:
        return _answers_move(weights, mutant, oracle, readable, moved["hook_logits"])
    if not moved:
        return _nothing_moves(weights, mutant, readable)
    last = list(moved)[-1]
    return "absorbed", f"{last} moves by {moved[last]:.3g}, and nothing after it moves"


def _side_by_side(
    one: Weights[SequenceArchitecture], two: Weights[SequenceArchitecture], words: Ints
) -> list[tuple[str, Floats, Floats]]:
    here, there = (_activations(weights, words) for weights in (one, two))
    return [(name, here[name], there[name]) for name in here if here[name].shape == there[name].shape]


def _activations(weights: Weights[SequenceArchitecture], words: Ints) -> dict[str, Floats]:
    net, seen = weights.architecture, dict[str, Floats]()
    net.forward(weights.prepared, with_pads(net, words), record=seen.__setitem__)
    return seen


def _nothing_moves(
    weights: Weights[SequenceArchitecture], mutant: Mutant[SequenceArchitecture], words: Sequence[Ints]
) -> Reason:
    """Explain a mutant that moves no recorded activation: a label, an unused field, scores within their gap, or 0."""
    changed = [name for name in weights.arrays if not np.array_equal(weights.arrays[name], mutant.weights.arrays[name])]
    if mutant.kind.startswith("label"):
        return "label only", "no activation moves, and no run contradicts what the label now says"
    if not changed:
        return "field without effect", "no activation moves on any word"
    far, gap = _scores_move(weights, mutant.weights, words)
    if far > 0:
        return (
            "within the margin",
            f"scores move by {far:.3g}, where the best has a margin of {gap:.3g}",
        )
    return "dead entry", "no activation and no score moves: what it is multiplied with is always 0"


def _scores_move(
    one: Weights[SequenceArchitecture], two: Weights[SequenceArchitecture], words: Sequence[Ints]
) -> tuple[float, float]:
    """Return the largest relative movement of the scores of a query, and the smallest margin of a best key."""
    net, far, gap = one.architecture, 0.0, np.inf
    if not isinstance(net, Transformer) or net.norm:
        return 0.0, gap
    for some in words:
        seen = _activations(one, some)
        for index, block in enumerate(net.blocks):
            for place in range(len(block.heads)):
                x, pattern = seen[f"blocks.{index}.hook_resid_pre"], seen[f"blocks.{index}.attn.hook_pattern"][:, place]
                here, there = (_scores(weights, index, place, x) for weights in (one, two))
                shift = there - here
                apart = float((shift.max(axis=-1) - shift.min(axis=-1)).max(initial=0.0))
                if apart <= STILL * (1 + np.abs(here).max(initial=0.0)):
                    continue
                wins = pattern > 0.5 / pattern.shape[-1]
                best = np.where(wins, here, np.inf).min(axis=-1)
                lost = np.where(wins, -np.inf, here).max(axis=-1)
                margin = np.where(np.isfinite(lost) & np.isfinite(best), best - lost, np.inf)
                far, gap = max(far, apart), min(gap, float(np.abs(margin).min(initial=np.inf)))
    return far, gap


def _scores(weights: Weights[SequenceArchitecture], index: int, place: int, x: Floats) -> Floats:
    """The scores [word, query, key] of a head, whatever its mask."""
    part = {name: weights.arrays[f"blocks.{index}.attn.{name}"][place] for name in ("W_Q", "b_Q", "W_K", "b_K", "beta")}
    queries, keys = x @ part["W_Q"] + part["b_Q"], x @ part["W_K"] + part["b_K"]
    return np.asarray(part["beta"] * np.einsum("bqd,bkd->bqk", queries, keys))


def _answers_move(
    weights: Weights[SequenceArchitecture],
    mutant: Mutant[SequenceArchitecture],
    oracle: Oracle,
    words: Sequence[Ints],
    moved: float,
) -> Reason:
    """Explain a mutant whose logits move: within the tolerance, within the margin, or without changing the best."""
    net = weights.architecture
    both = [
        [_activations(w, some)["hook_logits"][:, net.pads - 1 :] for some in words] for w in (weights, mutant.weights)
    ]
    if net.output.kind in ("lm", "values"):
        if net.output.kind == "lm":
            pairs = zip(*both, strict=True)
            apart = [np.abs(np.subtract(*(np.exp(log_probabilities(net.output, x)) for x in pair))) for pair in pairs]
            largest = max(float(np.nan_to_num(x).max(initial=0.0)) for x in apart)
            if largest <= STILL:
                return "output invariant", f"logits move by {moved:.3g}, probabilities do not"
        error = max(float(oracle.errors(some, x).max(initial=0.0)) for some, x in zip(words, both[1], strict=True))
        return (
            "within the tolerance",
            f"answers are off by {error:.3g} at most, where {oracle.tolerance():.3g} is allowed",
        )
    before, after = (
        min(
            float(answer_margins(weights, x)[_has_answer(oracle, some, x)].min(initial=np.inf))
            for some, x in zip(words, part, strict=True)
        )
        for part in both
    )
    if 2 * moved < before:
        return "within the margin", f"logits move by {moved:.3g}, where the right answer has a margin of {before:.3g}"
    if after > 0:
        return (
            "smaller margin",
            f"logits move by {moved:.3g}, and the right answer has a margin of {after:.3g} instead of {before:.3g}",
        )
    return UNEXPLAINED, f"logits move by {moved:.3g}"


def _has_answer(oracle: Oracle, words: Ints, logits: Floats) -> Bools:
    """Return after which prefixes [word, prefix] there is a right answer: there, NaN is an error."""
    return np.asarray(~(oracle.errors(words, np.full_like(logits, np.nan)) <= oracle.tolerance()))
