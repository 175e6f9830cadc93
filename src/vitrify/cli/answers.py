"""The JSON contract of `vitrify run`: what a network answers to a sequence."""

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
from vitrify.net.run import encode, log_probabilities, logits, numbers, outputs
from vitrify.net.weights import Weights

Floats = NDArray[np.float64]
LINES = 512  # how many lines are read before a batch is run


def answer(weights: Weights[Any], words: Sequence[str], everywhere: bool, top: int | None) -> dict[str, Any]:
    """The answer to one sequence.

    Language models: `next` maps tokens to probabilities after the last token (with `everywhere`: a list of such maps,
    the first before any token), `log_probs` are those of the given tokens in turn, `log_prob` their sum. Recognisers:
    `states` has the state before any token and after each, `accept` says whether the last one accepts. Transducers:
    `output` has one symbol per token. Sets of next symbols: `next` lists those that may come after the last token (with
    `everywhere`: a list of such lists). Classifiers: `class` is the likeliest symbol at the end (with `everywhere`: a
    list, the first before any token). Functions: `values` maps names to numbers.
    """
    if isinstance(weights.architecture, Convolutional):
        return {"tokens": list(words)} | _seen(weights, symbol_planes(weights.architecture, [words]))
    if weights.architecture.reads != "tokens":
        found = outputs(weights, numbers(weights, words))
    else:
        (found,) = logits(weights, [encode(weights.architecture, words)])
    return _answer(weights, words, found, everywhere, top)


def of_image(weights: Weights[Any], path: Path) -> dict[str, Any]:
    """The answer to an image in a file: the `class`, the `logits`, and what was `found` where."""
    if not isinstance(weights.architecture, Convolutional):
        raise InputError("this network reads no images: give its input as tokens")
    return {"input": str(path)} | _seen(weights, image_planes(weights.architecture, _image(path)[None]))


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
        tokens = weights.architecture.reads == "tokens"
        for (number, _), words in zip(chunk, sequences, strict=True):
            try:
                if whole:
                    read.append(symbol_planes(net, [words]))
                else:
                    read.append(encode(net, words) if tokens else numbers(weights, words)[0])
            except InputError as error:
                raise InputError(f"standard input, line {number}: {error}") from None
        if whole:
            yield from ({"tokens": words} | _seen(weights, x) for words, x in zip(sequences, read, strict=True))
            continue
        answers = logits(weights, read) if tokens else outputs(weights, np.array(read))[:, None]
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
    if output.kind == "values":
        return answer | {"values": dict(zip(output.symbols, found[-1].tolist(), strict=True))}
    symbols = [output.symbols[place] for place in found.argmax(axis=-1)]
    if output.kind == "recogniser":
        return answer | {"states": symbols, "accept": symbols[-1] in output.accepting}
    if output.kind == "class":
        return answer | {"class": symbols if everywhere else symbols[-1]}
    return answer | {"output": symbols[1:]}


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
