"""Running a network on words or numbers: encode, batch, forward, read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.arrays import Array, Logits, namespace
from vitrify.errors import InputError
from vitrify.net.architecture import Output, SequenceArchitecture
from vitrify.net.conv import Convolutional, pixels, symbol_planes
from vitrify.net.spaces import Reals
from vitrify.net.trace import Trace
from vitrify.net.transformer import QUERY_CHUNK
from vitrify.net.weights import Weights
from vitrify.spec.connectivity import adjacency, edges_of_words

BATCH_BYTES = 1 << 28  # activations of one batch; larger batches were not faster
UNKNOWN = ("<unk>", "<UNK>")

Ids = NDArray[np.int64]


def encode(net: SequenceArchitecture, words: Sequence[str]) -> list[int]:
    """Token ids of a word, without the beginning-of-sequence token.

    Symbols that the net does not read stand for its unknown-word token if it has one, and are refused otherwise.
    """
    ids = net.input_ids
    fallback = next((ids[name] for name in UNKNOWN if name in ids), None)
    unknown = sorted({word for word in words if word not in ids}) if fallback is None else []
    if unknown:
        readable = " ".join(net.inputs[1:21]) + (" …" if len(net.inputs) > 21 else "")
        raise InputError(f"this network does not read {', '.join(map(repr, unknown))}; it reads: {readable}")
    if len(words) > net.max_length:
        raise InputError(
            f"the sequence has {len(words)} tokens, the network was built for at most {net.max_length}: "
            f"build it again with --max-length {len(words)}"
        )
    if len(words) < net.min_length:
        raise InputError(f"the sequence has {len(words)} tokens, the network was built for at least {net.min_length}")
    return [ids.get(word, fallback or 0) for word in words]


def numbers(weights: Weights[Any], words: Sequence[str]) -> NDArray[np.float64]:
    """The vector that words write down, as a batch of one; it must lie where the net was built to be right."""
    net = weights.architecture
    if len(words) != len(net.inputs):
        raise InputError(f"this network reads {len(net.inputs)} numbers ({', '.join(net.inputs)}), not {len(words)}")
    try:
        found = np.array([[float(word) for word in words]])
    except ValueError as error:
        raise InputError(f"this network reads numbers: {error}") from None
    kinds = [label.kind for label in weights.labels.spaces if label.born == 0 and isinstance(label.kind, Reals)]
    low, high = next(((k.low, k.high) for k in kinds if k.labels == net.inputs), (-np.inf, np.inf))
    for name, number in zip(net.inputs, found[0].tolist(), strict=True):
        if not (np.isfinite(number) and low <= number <= high):
            raise InputError(f"the network is right for numbers from {low:g} to {high:g}, but {name} is {number:g}")
    return found


def batch_of(net: SequenceArchitecture, sequences: Sequence[Sequence[int]]) -> tuple[Ids, Ids]:
    """Sequences of ids as one array, with beginning-of-sequence pads in front and filling behind, and their lengths."""
    lengths = np.array([net.pads + len(sequence) for sequence in sequences], dtype=np.int64)
    tokens = np.zeros((len(sequences), lengths.max(initial=net.pads)), dtype=np.int64)
    for row, sequence in zip(tokens, sequences, strict=True):
        row[net.pads : net.pads + len(sequence)] = sequence
    return tokens, lengths


def logits(weights: Weights[Any], sequences: Sequence[Sequence[int]]) -> Iterator[NDArray[np.float64]]:
    """Logits [1 + tokens, out] of each sequence in turn: row t is read after t tokens."""
    net = weights.architecture
    order = sorted(range(len(sequences)), key=lambda place: len(sequences[place]))
    done: dict[int, NDArray[np.float64]] = {}
    waiting = 0  # results come out in the caller's order, whatever order the batches are run in
    for places in _batches(net, [len(sequences[place]) for place in order]):
        members = [order[place] for place in places]
        tokens, lengths = batch_of(net, [sequences[member] for member in members])
        out = batch_logits(weights, tokens, lengths)
        for row, member in enumerate(members):
            done[member] = out[row, net.pads - 1 : lengths[row]]
        while waiting in done:
            yield done.pop(waiting)
            waiting += 1


def batch_logits(weights: Weights[Any], tokens: Ids, lengths: Ids | None = None) -> NDArray[np.float64]:
    """Logits [batch, pos, out] of one padded batch."""
    net = weights.architecture
    chunk = QUERY_CHUNK if tokens.shape[1] > 2 * QUERY_CHUNK else None
    shown = lengths if net.looks_ahead else None
    return np.asarray(net.forward(weights.prepared, tokens, lengths=shown, query_chunk=chunk))


def outputs(weights: Weights[Any], inputs: Array) -> NDArray[np.float64]:
    """Logits [input, out] of a net that reads numbers [input, …], at its last position; [input, pos, out] for rows."""
    net = weights.architecture
    step = max(1, BATCH_BYTES // (8 * net.activations(getattr(net, "max_length", 1))))
    parts = [net.forward(weights.prepared, inputs[at : at + step]) for at in range(0, len(inputs), step)]
    found = np.concatenate([np.asarray(part) for part in parts])
    return found[:, -1] if net.reads == "vector" else found


def _batches(net: SequenceArchitecture, lengths: Sequence[int]) -> Iterator[range]:
    """Runs of sequences (sorted by length) whose activations fit the budget."""
    start = 0
    while start < len(lengths):
        stop = start + 1
        while stop < len(lengths):
            if 8 * (stop + 1 - start) * net.activations(lengths[stop] + net.pads) > BATCH_BYTES:
                break
            stop += 1
        yield range(start, stop)
        start = stop


def trace(weights: Weights[Any], words: Sequence[str]) -> Trace:
    """Every activation of one run, by name; words are symbols, numbers, edges of a graph or the pixels of an image."""
    inputs, names = read(weights, words)
    seen: dict[str, Array] = {"hook_input": inputs} if weights.architecture.reads == "image" else {}
    found = weights.architecture.forward(weights.prepared, inputs, record=seen.__setitem__)
    seen.setdefault("hook_logits", found)
    return Trace(weights, names, {name: _first(value) for name, value in seen.items()})


def read(weights: Weights[Any], words: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
    """What words write down, as a batch of one, and a name for each position."""
    net = weights.architecture
    if isinstance(net, Convolutional):
        planes = symbol_planes(net, [words]) if net.pixels == "symbols" else pixels(net, words)
        return planes, tuple(words) if net.pixels == "symbols" else ()
    if net.reads == "rows":
        return adjacency(net.inputs, edges_of_words(words))[None], net.inputs
    if net.reads == "vector":  # the same vector at every position: these are told apart by their number
        return numbers(weights, words), tuple(str(place + 1) for place in range(net.max_length))
    return batch_of(net, [encode(net, words)])[0], (net.inputs[0],) * net.pads + tuple(words)


def _first(value: Array | list[Array]) -> Array:
    if isinstance(value, list):  # a concatenating residual records one output per head
        return np.concatenate([part[0] for part in value], axis=-1)
    return value[0] if value.ndim > 2 else value


def log_probabilities(output: Output, logits: Logits) -> Logits:
    """Natural-log probabilities of the output symbols."""
    if output.scores == "log":
        return logits
    xp = namespace(logits)
    if output.scores == "linear":
        with np.errstate(divide="ignore", invalid="ignore"):  # the log of 0; 0/0 off the language
            return xp.log(logits / logits.sum(axis=-1, keepdims=True))
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))
