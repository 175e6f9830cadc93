"""Run a network on tokens or numbers: encode, batch, forward, trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from vitrify.arrays import Array, Float, Floats, Int, Tokens, namespace
from vitrify.errors import InputError
from vitrify.net.architecture import Architecture, Output, SequenceArchitecture
from vitrify.net.conv import Convolutional, pixels, symbol_planes
from vitrify.net.spaces import Reals
from vitrify.net.trace import Trace
from vitrify.net.transformer import QUERY_CHUNK
from vitrify.net.weights import Weights, has_architecture, has_positions

BATCH_BYTES = 1 << 28  # activations of one batch; larger batches were not faster
UNKNOWN = ("<unk>", "<UNK>")


def encode(net: SequenceArchitecture, words: Sequence[str]) -> list[int]:
    """Return the token ids of a sequence, without the beginning-of-sequence token.

    A symbol outside the vocabulary becomes the unknown-word token if the net has one, and is refused otherwise.
    """
    ids = net.input_ids
    fallback = next((ids[name] for name in UNKNOWN if name in ids), None)
    unknown = sorted({word for word in words if word not in ids}) if fallback is None else []
    if unknown:
        readable = " ".join(net.inputs[1:21]) + (" …" if len(net.inputs) > 21 else "")
        raise InputError(f"this network does not read {', '.join(map(repr, unknown))}; it reads: {readable}")
    if len(words) > net.longest:
        advice = f"build it again with --max-length {len(words)}"
        if net.longest > net.max_length:
            advice = "beyond that float64 rounds what it computes"
        raise InputError(
            f"the sequence has {len(words)} tokens, the network was built for at most {net.longest}: {advice}"
        )
    if len(words) < (least := net.min_length or int(net.pads == 0)):  # without a pad, the first token is needed
        raise InputError(f"the sequence has {len(words)} tokens, the network was built for at least {least}")
    return [ids.get(word, fallback or 0) for word in words]


def numbers(weights: Weights[SequenceArchitecture], words: Sequence[str]) -> Floats:
    """Return the vector that numbers in text form, as a batch of one; it must lie in the domain of the net."""
    net = weights.architecture
    if len(words) != len(net.inputs):
        raise InputError(f"this network reads {len(net.inputs)} numbers ({', '.join(net.inputs)}), not {len(words)}")
    try:
        vector = np.array([[float(word) for word in words]])
    except ValueError as error:
        raise InputError(f"this network reads numbers: {error}") from None
    kinds = [label.kind for label in weights.labels.spaces if label.born == 0 and isinstance(label.kind, Reals)]
    low, high = next(((k.low, k.high) for k in kinds if k.labels == net.inputs), (-np.inf, np.inf))
    for name, number in zip(net.inputs, vector[0].tolist(), strict=True):
        if not (np.isfinite(number) and low <= number <= high):
            raise InputError(f"the network is right for numbers from {low:g} to {high:g}, but {name} is {number:g}")
    return vector


def with_pads(net: SequenceArchitecture, words: Int[np.ndarray, "batch token"]) -> Int[np.ndarray, "batch pos"]:
    """Return a batch of token ids of one length with beginning-of-sequence pads in front."""
    return np.pad(words, ((0, 0), (net.pads, 0)))


def batch_of(
    net: SequenceArchitecture, sequences: Sequence[Sequence[int]]
) -> tuple[Int[np.ndarray, "batch pos"], Int[np.ndarray, " batch"]]:
    """Return token ids as one array, with beginning-of-sequence pads in front and padding behind, and the lengths."""
    lengths = np.array([net.pads + len(sequence) for sequence in sequences], dtype=np.int64)
    tokens = np.zeros((len(sequences), lengths.max(initial=net.pads)), dtype=np.int64)
    for row, sequence in zip(tokens, sequences, strict=True):
        row[net.pads : net.pads + len(sequence)] = sequence
    return tokens, lengths


def logits(weights: Weights[SequenceArchitecture], sequences: Sequence[Sequence[int]]) -> Iterator[Floats]:
    """Return the logits of each sequence: after 0, 1, … tokens, or after 1, 2, … where no pad precedes the first."""
    net = weights.architecture
    order = sorted(range(len(sequences)), key=lambda place: len(sequences[place]))
    ready: dict[int, Floats] = {}
    next_index = 0  # results come out in the caller's order, whatever order the batches are run in
    for places in _batches(net, [len(sequences[place]) for place in order]):
        members = [order[place] for place in places]
        tokens, lengths = batch_of(net, [sequences[member] for member in members])
        out = batch_logits(weights, tokens, lengths)
        for row, member in enumerate(members):
            ready[member] = out[row, max(net.pads - 1, 0) : lengths[row]]
        while next_index in ready:
            yield ready.pop(next_index)
            next_index += 1


def logits_of_inputs(weights: Weights[Architecture], inputs: Sequence[Array]) -> Iterator[Floats]:
    """Return the logits [position, out] of each input, as `encode_input` gives them.

    A net that reads tokens answers before the first token and after each; one that reads a graph, at each node; one
    that reads a vector or an image, once.
    """
    if weights.architecture.reads == "tokens":
        assert has_positions(weights)
        yield from logits(weights, inputs)
    elif len(inputs):
        scores = outputs(weights, np.array(inputs))
        yield from scores if weights.architecture.reads == "rows" else scores[:, None]


def batch_logits(
    weights: Weights[SequenceArchitecture], tokens: Tokens, lengths: Int[Array, " batch"] | None = None
) -> Float[np.ndarray, "batch pos out"]:
    """Return the logits of one padded batch."""
    net = weights.architecture
    chunk = QUERY_CHUNK if tokens.shape[1] > 2 * QUERY_CHUNK else None
    shown = lengths if net.looks_ahead else None
    if (by_position := weights.by_position) is not None and (logits := by_position(tokens)) is not None:
        return logits
    return np.asarray(net.forward(weights.prepared, tokens, lengths=shown, query_chunk=chunk))


def outputs(weights: Weights[Architecture], inputs: Array) -> Floats:
    """Return the logits [input, out] of a net that reads numbers [input, …]; [input, pos, out] if it reads rows."""
    net = weights.architecture
    step = max(1, BATCH_BYTES // (8 * net.activations(getattr(net, "max_length", 1))))
    parts = [net.forward(weights.prepared, inputs[at : at + step]) for at in range(0, len(inputs), step)]
    scores = np.concatenate([np.asarray(part) for part in parts])
    return scores[:, -1] if net.reads == "vector" else scores


def _batches(net: SequenceArchitecture, lengths: Sequence[int]) -> Iterator[range]:
    """Return ranges of sequences (sorted by length) whose activations fit the budget."""
    start, room = 0, BATCH_BYTES // 8
    while start < len(lengths):
        stop = start + 1
        while stop < len(lengths) and (stop + 1 - start) * net.activations(lengths[stop] + net.pads) <= room:
            stop += 1
        yield range(start, stop)
        start = stop


def trace(weights: Weights[Architecture], words: Sequence[str]) -> Trace:
    """Return every activation of one run, by name; words are tokens, numbers, edges of a graph or pixels."""
    inputs, names = read(weights, words)
    activations: dict[str, Array] = {"hook_input": inputs} if weights.architecture.reads == "image" else {}
    scores = weights.architecture.forward(weights.prepared, inputs, record=activations.__setitem__)
    activations.setdefault("hook_logits", scores)
    return Trace(weights, names, {name: _first(value) for name, value in activations.items()})


def encode_input(weights: Weights[Architecture], tokens: Sequence[str]) -> Array:
    """Return one input as the network reads it: token ids, a vector, the adjacency matrix of a graph, or an image."""
    if weights.architecture.reads == "tokens":
        assert has_positions(weights)
        return np.array(encode(weights.architecture, tokens), dtype=np.int64)
    return np.asarray(read(weights, tokens)[0][0])


def read(weights: Weights[Architecture], words: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
    """Return one input as a batch of one, and a name for each position."""
    if has_architecture(weights, Convolutional):
        image = weights.architecture
        planes = symbol_planes(image, [words]) if image.pixels == "symbols" else pixels(image, words)
        return planes, tuple(words) if image.pixels == "symbols" else ()
    assert has_positions(weights)
    net = weights.architecture
    if net.reads == "rows":
        from vitrify.spec.computation.connectivity import adjacency, edges_of_words

        return adjacency(net.inputs, edges_of_words(words))[None], net.inputs
    if net.reads == "vector":  # the same vector at every position, named by its index
        return numbers(weights, words), tuple(str(place + 1) for place in range(net.max_length))
    return batch_of(net, [encode(net, words)])[0], (net.inputs[0],) * net.pads + tuple(words)


def _first(value: Array | list[Array]) -> Array:
    if isinstance(value, list):  # a concatenating residual records one output per head
        return np.concatenate([part[0] for part in value], axis=-1)
    return value[0] if value.ndim > 2 else value


def log_probabilities(output: Output, logits: Float[Array, "*lead out"]) -> Float[Array, "*lead out"]:
    """Return the natural-log probabilities of the output symbols."""
    if output.scores == "log":
        return logits
    xp = namespace(logits)
    if output.scores == "linear":
        with np.errstate(divide="ignore", invalid="ignore"):  # the log of 0; 0/0 off the language
            return xp.log(logits / logits.sum(axis=-1, keepdims=True))
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))
