"""Run a network and read its logits: one class of answer for each kind of output.

`Answer.to_json` is the JSON contract of `vitrify run`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TextIO

import numpy as np

from vitrify.arrays import Array, Floats
from vitrify.encoding import JsonObject
from vitrify.errors import FolderError, InputError
from vitrify.net.architecture import Architecture, Output, SequenceArchitecture
from vitrify.net.conv import Convolutional, image_planes
from vitrify.net.generate import Generation, check_generation, generate
from vitrify.net.inference import BATCH_BYTES, encode, encode_input, log_probabilities, logits_of_inputs
from vitrify.net.weights import Weights, has_architecture, has_positions
from vitrify.spec.computation.connectivity import adjacency, read_graph
from vitrify.spec.computation.thought import Concluding
from vitrify.spec.kinds import Spec

BATCH_LINES = 512  # lines of standard input that are run as one batch
SHOWN_TOKENS = 5  # likeliest tokens in the repr of a next-token answer


@dataclass(frozen=True)
class Answer:
    """Base of all answers: the `tokens` that were read, or the file (`source`) that the input came from."""

    kind: ClassVar[str]
    tokens: tuple[str, ...]
    _: KW_ONLY
    source: str | None = None

    def to_json(self) -> JsonObject:
        """Return the answer as plain JSON data, with the keys that `docs/commands.md` lists."""
        origin: JsonObject = {} if self.source is None else {"input": self.source}
        return origin | {"tokens": list(self.tokens), "kind": self.kind} | self._fields()

    def _fields(self) -> JsonObject:
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("tokens", "source")}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in own.items()}

    def __getattr__(self, name: str) -> Any:
        public = [attribute for attribute in dir(type(self)) if not attribute.startswith("_")]
        known = ", ".join(sorted({*(each.name for each in fields(self)), *public} - {"kind", "to_json", "source"}))
        raise AttributeError(f"{type(self).__name__} (of a {self.kind!r} network) has no {name!r}; it has {known}")


@dataclass(frozen=True, repr=False)
class NextTokenAnswer(Answer):
    """The next-token distributions of a language model, and the log-probabilities of the tokens it read.

    `distributions` has one map from token to probability: that after the last token. With `all_positions` it has one
    for each position, the first before any token.
    """

    kind = "lm"
    distributions: tuple[Mapping[str, float], ...]
    log_probs: tuple[float, ...]
    all_positions: bool = False

    @property
    def next(self) -> Mapping[str, float]:
        """The probability of each token after the last one."""
        return self.distributions[-1]

    @property
    def log_prob(self) -> float:
        """The log-probability of the whole sequence: the sum of `log_probs`."""
        return sum(self.log_probs)

    def __repr__(self) -> str:
        likeliest = sorted(self.next.items(), key=lambda item: -item[1])[:SHOWN_TOKENS]
        shown = [f"{token!r}: {probability:.4g}" for token, probability in likeliest]
        shown += ["…"] if len(self.next) > SHOWN_TOKENS else []
        return f"NextTokenAnswer({self.tokens}, next={{{', '.join(shown)}}}, log_prob={self.log_prob:.6g})"

    def _fields(self) -> JsonObject:
        maps = [dict(distribution) for distribution in self.distributions]
        log_probs = list(self.log_probs)
        return {"next": maps if self.all_positions else maps[-1], "log_probs": log_probs, "log_prob": sum(log_probs)}


@dataclass(frozen=True)
class LegalNextAnswer(Answer):
    """The symbols that may come next, after the last token; with `all_positions` after each prefix."""

    kind = "next"
    legal: tuple[tuple[str, ...], ...]
    all_positions: bool = False

    @property
    def next(self) -> tuple[str, ...]:
        """The symbols that may come after the last token."""
        return self.legal[-1]

    def _fields(self) -> JsonObject:
        return {"next": [list(symbols) for symbols in self.legal] if self.all_positions else list(self.next)}


@dataclass(frozen=True)
class StatesAnswer(Answer):
    """The states of a recognizer, before any token and after each; `accept` is true if the last one accepts."""

    kind = "recognizer"
    states: tuple[str, ...]
    accept: bool


@dataclass(frozen=True)
class OutputAnswer(Answer):
    """The output symbols of a transducer, one for each token; with `all_positions` also that before any token.

    A network that looks ahead has such an output for the empty sequence only.
    """

    kind = "transducer"
    output: tuple[str, ...]


@dataclass(frozen=True)
class ClassAnswer(Answer):
    """The likeliest class at the end of the sequence; with `all_positions` after each prefix."""

    kind = "class"
    labels: tuple[str, ...]
    all_positions: bool = False

    @property
    def label(self) -> str:
        """The class of the whole sequence."""
        return self.labels[-1]

    def _fields(self) -> JsonObject:
        return {"class": list(self.labels) if self.all_positions else self.label}


@dataclass(frozen=True)
class ValuesAnswer(Answer):
    """The values of a function, by name."""

    kind = "values"
    values: Mapping[str, float]


@dataclass(frozen=True)
class ConnectedAnswer(Answer):
    """For each node of a graph, the nodes it is connected with; the tokens are the edges."""

    kind = "values"
    connected: Mapping[str, tuple[str, ...]]

    def _fields(self) -> JsonObject:
        return {"connected": {node: list(others) for node, others in self.connected.items()}}


@dataclass(frozen=True)
class ImageAnswer(Answer):
    """The class of an image or of a sequence of fixed length, by a convolutional network.

    `detections` maps each feature that the last convolution found to the upper left corners (row, column) of its
    occurrences.
    """

    kind = "class"
    label: str
    logits: Mapping[str, float]
    detections: Mapping[str, list[list[int]]]

    def to_json(self) -> JsonObject:
        """Return the answer as plain JSON data; an image has no tokens."""
        data = super().to_json()
        return {key: data[key] for key in data if key != "tokens" or self.source is None}

    def _fields(self) -> JsonObject:
        return {"class": self.label, "logits": dict(self.logits), "detections": dict(self.detections)}


@dataclass(frozen=True)
class GenerationAnswer(Answer):
    """The `symbols` generated after a prompt, and what they mean by the spec, such as the outputs of a circuit.

    `cut_short` says what is missing of a chain of thought that did not come to its end; otherwise it is empty.
    """

    kind = "thought"
    symbols: tuple[str, ...]
    stopped: bool
    conclusion: Mapping[str, str]
    cut_short: str = ""

    def _fields(self) -> JsonObject:
        written = {"thought": list(self.symbols), "steps": len(self.symbols), "stopped": self.stopped}
        missing = {"cut_short": self.cut_short} if self.cut_short else {}
        return written | {"conclusion": dict(self.conclusion)} | missing


def run(
    weights: Weights[Architecture], tokens: Sequence[str], *, all_positions: bool = False, top: int | None = None
) -> Answer:
    """Run a network on one sequence of tokens and return its answer, of the class for its kind of output.

    With `all_positions`, language models, classifiers and sets of next symbols answer at every position, not only after
    the last token. `top` limits next-token distributions to the most probable tokens. A network that reads numbers
    takes them as text, one that reads a graph takes its edges (`"a-b"`).
    """
    (answer,) = answers_of(weights, [tokens], [encode_input(weights, tokens)], all_positions, top)
    return answer


def run_lines(weights: Weights[Architecture], lines: TextIO, all_positions: bool, top: int | None) -> Iterator[Answer]:
    """Run a network on one sequence per line, in batches, and return the answers in order."""
    numbered = enumerate(lines, start=1)
    while batch := list(islice(numbered, BATCH_LINES)):
        sequences = [line.split() for _, line in batch]
        inputs: list[Array] = []
        for (number, _), tokens in zip(batch, sequences, strict=True):
            try:
                inputs.append(encode_input(weights, tokens))
            except InputError as error:
                raise InputError(f"standard input, line {number}: {error}") from None
        yield from answers_of(weights, sequences, inputs, all_positions, top)


def run_file(weights: Weights[Architecture], path: Path) -> Answer:
    """Run a network on an image (.npy or .csv) or a graph (.graph) in a file."""
    if has_positions(weights) and weights.architecture.reads == "rows":
        edges = read_graph(path, weights.architecture.inputs)
        inputs: Array = adjacency(weights.architecture.inputs, edges)
        tokens = ["-".join(edge) for edge in edges]
    elif has_architecture(weights, Convolutional):
        inputs, tokens = image_planes(weights.architecture, _image(path)[None])[0], []
    else:
        raise InputError("this network reads no images and no graphs: give its input as tokens")
    (answer,) = answers_of(weights, [tokens], [inputs], False, None)
    return replace(answer, source=str(path))


def run_generation(
    weights: Weights[SequenceArchitecture], prompt: Sequence[str], steps: int, seed: int | None, spec: object
) -> GenerationAnswer:
    """Generate up to `steps` symbols after a prompt, with the conclusion of the spec where it can draw one."""
    (answer,) = generation_answers(weights, [prompt], steps, seed, spec)
    return answer


def generation_answers(
    weights: Weights[SequenceArchitecture],
    prompts: Sequence[Sequence[str]],
    steps: int | None,
    seed: int | None,
    spec: object,
) -> list[GenerationAnswer]:
    """Generate up to `steps` symbols after each prompt; without a number, up to the length that the network is for."""
    check_generation(weights, steps or 0, seed)
    net, answers = weights.architecture, dict[int, GenerationAnswer]()
    for length in {len(prompt): None for prompt in prompts}:
        most = max(0, net.max_length + 1 - length) if steps is None else steps
        room = max(1, BATCH_BYTES // (8 * net.activations(net.pads + length + most)))
        places = [place for place, prompt in enumerate(prompts) if len(prompt) == length]
        for start in range(0, len(places), room):
            batch = places[start : start + room]
            generations = generate(weights, [prompts[place] for place in batch], most, seed=seed)
            answers |= {place: _concluded(weights, each, spec) for place, each in zip(batch, generations, strict=True)}
    return [answers[place] for place in range(len(prompts))]


def _concluded(weights: Weights[SequenceArchitecture], generation: Generation, spec: object) -> GenerationAnswer:
    """Return a generation with the conclusion of the spec, and what is missing of it."""
    prompt, symbols = generation.prompt, generation.symbols
    if not (isinstance(spec, Spec) and isinstance(spec, Concluding)):
        return GenerationAnswer(prompt, symbols, generation.stopped, {})
    meaning = spec.meaning(weights.architecture.output.kind, weights.architecture.inputs[1:])
    if not meaning or not (set(prompt) <= set(meaning.inputs) and set(symbols) <= set(meaning.outputs)):
        raise FolderError("the network and its spec do not speak about the same symbols and answers")
    conclusion, missing = spec.conclusion(prompt, symbols), spec.missing(prompt, symbols)
    return GenerationAnswer(prompt, symbols, generation.stopped, dict(conclusion), missing)


def _image(path: Path) -> Array:
    """Return the array in a .npy or .csv file."""
    try:
        if path.name.endswith(".npy"):
            return np.asarray(np.load(path, allow_pickle=False))
        if path.name.endswith(".csv"):
            return np.loadtxt(path, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} can't be read as an image: {error}") from None
    raise InputError(f"{path}: the name of an image file must end in .npy or .csv")


def answers_of(
    weights: Weights[Architecture],
    sequences: Sequence[Sequence[str]],
    inputs: Sequence[Array],
    all_positions: bool,
    top: int | None,
) -> Iterator[Answer]:
    """Return the answers to a batch of inputs, each with its tokens."""
    if has_architecture(weights, Convolutional):
        yield from (_image_answer(weights, tokens, planes) for tokens, planes in zip(sequences, inputs, strict=True))
        return
    assert has_positions(weights)
    for tokens, logits in zip(sequences, logits_of_inputs(weights, inputs), strict=True):
        yield _answer(weights, tuple(tokens), logits, all_positions, top)


def _answer(
    weights: Weights[SequenceArchitecture],
    tokens: tuple[str, ...],
    logits: Floats,
    all_positions: bool,
    top: int | None,
) -> Answer:
    """Return the answer that logits [position, out] stand for."""
    output, symbols = weights.architecture.output, np.array(weights.architecture.output.symbols, dtype=object)
    positions = slice(None) if all_positions else slice(-1, None)
    if output.kind == "lm":
        log_probs = log_probabilities(output, logits)
        distributions = tuple(_distribution(output, row, top) for row in np.exp(log_probs[positions]))
        return NextTokenAnswer(tokens, distributions, _log_probs(weights, tokens, log_probs), all_positions)
    if output.kind == "next":
        return LegalNextAnswer(tokens, tuple(tuple(symbols[row > 0]) for row in logits[positions]), all_positions)
    if weights.architecture.reads == "rows":
        pairs = zip(weights.architecture.inputs, logits > 0.5, strict=True)
        return ConnectedAnswer(tokens, {node: tuple(symbols[row]) for node, row in pairs})
    if output.kind == "values":
        return ValuesAnswer(tokens, dict(zip(output.symbols, logits[-1].tolist(), strict=True)))
    likeliest = tuple(symbols[logits.argmax(axis=-1)])
    if output.kind == "recognizer":
        return StatesAnswer(tokens, likeliest, likeliest[-1] in output.accepting)
    if output.kind == "class":
        return ClassAnswer(tokens, likeliest[positions], all_positions)
    first = all_positions and not (tokens and weights.architecture.looks_ahead)
    return OutputAnswer(tokens, likeliest if first else likeliest[1:])


def _image_answer(weights: Weights[Convolutional], tokens: Sequence[str], planes: Array) -> ImageAnswer:
    net = weights.architecture
    activations: dict[str, Floats] = {}
    logits = net.forward(weights.prepared, planes[None], record=activations.__setitem__)[0]
    detections: dict[str, list[list[int]]] = {}
    if net.convolutions:
        last = len(net.convolutions) - 1
        layer, maps = net.convolutions[last], activations[f"conv.{last}.hook_post"][0]
        features = [name for label in weights.labels.units if label.block == last for name in label.unit_names]
        for name, feature_map in zip(features, maps, strict=False):
            corners = np.argwhere(feature_map > 0.5) * layer.stride - layer.pad
            detections |= {name: corners.tolist()} if len(corners) else {}
    scores = dict(zip(net.output.symbols, logits.tolist(), strict=True))
    return ImageAnswer(tuple(tokens), net.output.symbols[int(logits.argmax())], scores, detections)


def _distribution(output: Output, probabilities: Floats, top: int | None) -> dict[str, float]:
    if top is None:
        return dict(zip(output.symbols, probabilities.tolist(), strict=True))
    best = np.argsort(-probabilities, kind="stable")[:top]
    return {output.symbols[index]: float(probabilities[index]) for index in best}


def _log_probs(weights: Weights[SequenceArchitecture], tokens: Sequence[str], log_probs: Floats) -> tuple[float, ...]:
    """Return the log-probability of each token that is predicted; unknown words count as the unknown-word token.

    A token that the network never predicts has the probability 0.
    """
    net = weights.architecture
    column = {symbol: index for index, symbol in enumerate(net.output.symbols)}
    known = [net.inputs[i] for i in encode(net, tokens)][0 if net.pads else 1 :]  # nothing but BOS predicts the first
    return tuple(float(log_probs[t, column[token]]) if token in column else -np.inf for t, token in enumerate(known))
