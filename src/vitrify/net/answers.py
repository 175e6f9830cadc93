"""What a network answers to a sequence, as plain data: the JSON contract of `vitrify run`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import InputError
from vitrify.net.architecture import Output
from vitrify.net.conv import Convolutional, image_planes, symbol_planes
from vitrify.net.decode import decode
from vitrify.net.run import encode, log_probabilities, logits, numbers, outputs
from vitrify.net.weights import Weights
from vitrify.spec.connectivity import adjacency, edges_of_words, read_graph
from vitrify.spec.thought import Concluding

Floats = NDArray[np.float64]
LINES = 512  # how many lines are read before a batch is run


def answer(
    weights: Weights[Any], words: Sequence[str], everywhere: bool = False, top: int | None = None
) -> dict[str, Any]:
    """The answer to one sequence.

    Language models: `next` maps tokens to probabilities after the last token (with `everywhere`: a list of such maps,
    the first before any token), `log_probs` are those of the given tokens in turn, `log_prob` their sum. Recognisers:
    `states` has the state before any token and after each, `accept` says whether the last one accepts. Transducers:
    `output` has one symbol per token. Sets of next symbols: `next` lists those that may come after the last token (with
    `everywhere`: a list of such lists). Classifiers: `class` is the likeliest symbol at the end (with `everywhere`: a
    list, the first before any token). Functions: `values` maps names to numbers. Graphs, whose edges are given:
    `connected` maps each node to those that it is connected with.
    """
    if isinstance(weights.architecture, Convolutional):
        return {"tokens": list(words)} | _seen(weights, symbol_planes(weights.architecture, [words]))
    if weights.architecture.reads == "rows":
        (found,) = outputs(weights, _rows(weights, edges_of_words(words))[None])
    elif weights.architecture.reads != "tokens":
        found = outputs(weights, numbers(weights, words))
    else:
        (found,) = logits(weights, [encode(weights.architecture, words)])
    return _answer(weights, words, found, everywhere, top)


def thought(weights: Weights[Any], words: Sequence[str], steps: int, seed: int | None, spec: object) -> dict[str, Any]:
    """What a network writes after a prompt: the `thought`, its `steps`, whether it `stopped`, and the `conclusion`.

    The conclusion is what the thought comes to, where the spec can say it.
    """
    (found,) = decode(weights, [words], steps, seed=seed)
    said = spec.conclusion(found.prompt, found.symbols) if isinstance(spec, Concluding) else {}
    answer = {"tokens": list(words), "kind": "thought", "thought": list(found.symbols)}
    return answer | {"steps": found.steps, "stopped": found.stopped, "conclusion": dict(said)}


def of_file(weights: Weights[Any], path: Path) -> dict[str, Any]:
    """The answer to a file: an image (the `class`, the `logits`, and what was `found` where) or a graph."""
    if weights.architecture.reads == "rows":
        edges = read_graph(path, weights.architecture.inputs)
        (found,) = outputs(weights, _rows(weights, edges)[None])
        return {"input": str(path)} | _answer(weights, ["-".join(edge) for edge in edges], found, False, None)
    if not isinstance(weights.architecture, Convolutional):
        raise InputError("this network reads no images and no graphs: give its input as tokens")
    return {"input": str(path)} | _seen(weights, image_planes(weights.architecture, _image(path)[None]))


def _rows(weights: Weights[Any], edges: Sequence[tuple[str, str]]) -> Floats:
    return adjacency(weights.architecture.inputs, edges)


def _image(path: Path) -> NDArray[Any]:
    """The numbers of a .npy or .csv file."""
    try:
        if path.name.endswith(".npy"):
            return np.asarray(np.load(path, allow_pickle=False))
        if path.name.endswith(".csv"):
            return np.loadtxt(path, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} can't be read as an image: {error}") from None
    raise InputError(f"{path}: the name of an image file must end in .npy or .csv")


def _seen(weights: Weights[Convolutional], planes: Floats) -> dict[str, Any]:
    """A convolutional network's answer: the class, all logits, and what its last convolution found where."""
    net = weights.architecture
    seen: dict[str, Floats] = {}
    logits = net.forward(weights.prepared, planes, record=seen.__setitem__)[0]
    found: dict[str, list[list[int]]] = {}
    if net.convolutions:
        last = len(net.convolutions) - 1
        layer, maps = net.convolutions[last], seen[f"conv.{last}.hook_post"][0]
        named = [row for label in weights.labels.units if label.block == last for row in label.rows]
        for name, places in zip(named, maps, strict=False):
            corners = np.argwhere(places > 0.5) * layer.stride - layer.pad
            found |= {name: corners.tolist()} if len(corners) else {}
    said = net.output.symbols[int(logits.argmax())]
    values = dict(zip(net.output.symbols, logits.tolist(), strict=True))
    return {"kind": net.output.kind, "class": said, "logits": values, "found": found}


def stream(weights: Weights[Any], lines: TextIO, everywhere: bool, top: int | None) -> Iterator[dict[str, Any]]:
    """Answers to one sequence per line, run in batches, in order."""
    numbered = enumerate(lines, start=1)
    net = weights.architecture
    whole = isinstance(net, Convolutional)
    while chunk := list(islice(numbered, LINES)):
        sequences = [line.split() for _, line in chunk]
        read: list[Any] = []
        tokens, rows = net.reads == "tokens", net.reads == "rows"
        for (number, _), words in zip(chunk, sequences, strict=True):
            try:
                if whole:
                    read.append(symbol_planes(net, [words]))
                elif rows:
                    read.append(_rows(weights, edges_of_words(words)))
                else:
                    read.append(encode(net, words) if tokens else numbers(weights, words)[0])
            except InputError as error:
                raise InputError(f"standard input, line {number}: {error}") from None
        if whole:
            yield from ({"tokens": words} | _seen(weights, x) for words, x in zip(sequences, read, strict=True))
            continue
        if tokens:
            answers: Any = logits(weights, read)
        else:
            answers = outputs(weights, np.array(read)) if rows else outputs(weights, np.array(read))[:, None]
        for words, found in zip(sequences, answers, strict=True):
            yield _answer(weights, words, found, everywhere, top)


def _answer(
    weights: Weights[Any], words: Sequence[str], found: Floats, everywhere: bool, top: int | None
) -> dict[str, Any]:
    output = weights.architecture.output
    answer: dict[str, Any] = {"tokens": list(words), "kind": output.kind}
    if output.kind == "lm":
        log_probs = log_probabilities(output, found)
        rows = [_next(output, row, top) for row in np.exp(log_probs if everywhere else log_probs[-1:])]
        given = _given(weights, words, log_probs)
        return answer | {"next": rows if everywhere else rows[-1], "log_probs": given, "log_prob": sum(given)}
    if output.kind == "next":
        legal = [[s for s, x in zip(output.symbols, row.tolist(), strict=True) if x > 0] for row in found]
        return answer | {"next": legal if everywhere else legal[-1]}
    if weights.architecture.reads == "rows":
        pairs = zip(weights.architecture.inputs, found > 0.5, strict=True)
        return answer | {"connected": {node: _held(output.symbols, row) for node, row in pairs}}
    if output.kind == "values":
        return answer | {"values": dict(zip(output.symbols, found[-1].tolist(), strict=True))}
    symbols = [output.symbols[place] for place in found.argmax(axis=-1)]
    if output.kind == "recogniser":
        return answer | {"states": symbols, "accept": symbols[-1] in output.accepting}
    if output.kind == "class":
        return answer | {"class": symbols if everywhere else symbols[-1]}
    return answer | {"output": symbols[1:]}


def _held(symbols: Sequence[str], row: NDArray[np.bool_]) -> list[str]:
    return [symbol for symbol, held in zip(symbols, row.tolist(), strict=True) if held]


def _next(output: Output, row: Floats, top: int | None) -> dict[str, float]:
    if top is None:
        return dict(zip(output.symbols, row.tolist(), strict=True))
    best = np.argsort(-row, kind="stable")[:top]
    return {output.symbols[place]: float(row[place]) for place in best}


def _given(weights: Weights[Any], words: Sequence[str], log_probs: Floats) -> list[float]:
    """The log-probability of each token after those before it; unknown words count as the unknown-word token."""
    net = weights.architecture
    places = {symbol: place for place, symbol in enumerate(net.output.symbols)}
    read = [net.inputs[i] for i in encode(net, words)]
    return [float(log_probs[t, places[word]]) for t, word in enumerate(read)]
