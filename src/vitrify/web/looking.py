"""Any network on some words, as plain JSON data: where its heads attend, and what it answers after every word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from vitrify.arrays import Floats
from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.net.architecture import Output
from vitrify.net.inference import log_probabilities
from vitrify.net.inference import trace as traced
from vitrify.net.trace import Trace
from vitrify.net.weights import Weights
from vitrify.web.story import shades

if TYPE_CHECKING:
    from vitrify.extraction import SpecKind

LOADED = 64  # networks and checkpoints in one process
HEADS = 24  # that are shown
SUGGESTED = 16  # words
MAX_WORDS, MAX_SECONDS, MAX_LINES = 1 << 14, 20.0, 40  # that an extraction runs, takes, and shows
BEST = 3  # answers that are shown after each word


def look(reference: str, words: list[str], beside: str | None = None) -> JsonObject:
    """Return the attention of every head of a network, and its likeliest answers after every word.

    Where the words are those of the network `beside` it, with as many symbols of other names, they are translated in
    the order of the symbols.
    """
    weights = _load(reference)
    net = weights.architecture
    if net.reads != "tokens" or not hasattr(net, "pads"):
        raise InputError(f"{net.name} reads {net.reads}, and no words: it can't be shown here")
    other = () if beside is None else _load(beside).architecture.inputs[1:]
    if len(other) == len(net.input_ids) and not set(words) <= set(net.input_ids):
        names = dict(zip(other, net.inputs[1:], strict=True))
        words = [names.get(word, word) for word in words]
    trace = traced(weights, words)
    first = max(net.pads - 1, 0)  # the position of the first answer
    logits = np.asarray(trace["hook_logits"])[first:]
    return {
        "name": net.name,
        "tokens": list(trace.tokens),
        "heads": _heads(trace)[:HEADS],
        "more": max(len(_heads(trace)) - HEADS, 0),
        "first": first,
        "answers": [_answer(net.output, row) for row in logits],
    }


def extract(reference: str, kind: SpecKind, words: list[str], progress: Callable[..., None]) -> JsonObject:
    """Return the spec that a network computes, as lines, with what is known of it; of words with these symbols."""
    from vitrify.extraction import extract as extracted

    symbols = [symbol for symbol in _load(reference).architecture.inputs[1:] if symbol in words]
    result = extracted(
        _load(reference),
        kind,
        symbols=symbols or None,
        words=MAX_WORDS,
        seconds=MAX_SECONDS,
        progress=lambda done, total: progress("running words", done, total),
    )
    lines = str(result.spec).splitlines()
    more = [f"and {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
    return {
        "verdict": result.evidence.verdict,
        "known": result.known,
        "spec": "\n".join([*lines[:MAX_LINES], *more]),
        "facts": [list(row) for row in result.rows()],
    }


def draw_words(reference: str) -> JsonObject:
    """Return random words that a network reads."""
    net, rng = _load(reference).architecture, np.random.default_rng(0)
    if net.reads != "tokens" or not hasattr(net, "pads"):
        return {"words": []}
    count = max(min(net.longest, SUGGESTED), net.min_length)
    return {"words": [net.inputs[at] for at in rng.integers(1, len(net.inputs), size=count).tolist()]}


@lru_cache(maxsize=LOADED)
def _load(reference: str) -> Weights[Any]:
    from vitrify.interop.nets import load

    return load(reference)


def _heads(trace: Trace) -> list[JsonObject]:
    """Return the attention of all heads, each pass of a loop for itself."""
    names = {(label.block, label.index): label.name for label in trace.weights.labels.heads}
    turns = getattr(trace.weights.architecture, "turns", ())
    return [
        {"name": names.get((index, head), f"head {turn}.{head}"), "pattern": shades(pattern)}
        for turn, (index, block) in enumerate(turns)
        if block.heads
        for head, pattern in enumerate(trace[f"blocks.{turn}.attn.hook_pattern"])
    ]


def _answer(output: Output, row: Floats) -> Sequence[tuple[str, float | None]]:
    """Return the likeliest answers with their probabilities; of a set its symbols, of numbers their values."""
    if output.kind == "values":
        pairs = zip(output.symbols, row.tolist(), strict=True)
        return [(f"{name} = {value:.4g}", None) for name, value in pairs][:BEST]
    if output.kind == "next":
        return [(output.symbols[at], None) for at in np.flatnonzero(row > 0)][:BEST]
    shares = np.exp(log_probabilities(output, row))
    return [(output.symbols[at], float(shares[at])) for at in np.argsort(-shares, kind="stable")[:BEST]]
