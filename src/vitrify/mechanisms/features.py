r"""Features of a network: the directions in its residual stream that hold the values of named spaces.

A space of a construction gives each of its values $v$ a code vector $c_v$. The *feature* of $v$ is the direction of
$c_v - \bar c$, where $\bar c$ is the mean code of the space: a constant that all values share shows nothing. A flag or
a number has one feature, its dimension. In an entangled network directions are turned with the stream.

A *concept* is what probes are trained on: for each position of the domain, which value the space holds there. A probe
is scored by its cosine with the feature of its value. A dictionary, such as that of a sparse autoencoder, is scored by
the largest cosine that each feature has with a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Array, Floats, Ints
from vitrify.encoding import JsonObject
from vitrify.errors import FolderError, InputError
from vitrify.mechanisms.domain import PatchDomain
from vitrify.net.labels import SpaceLabel
from vitrify.net.spaces import Bits, Circle, Flag, MultiHot, OneHot
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

FLAG, NUMBER = ("yes",), ("value",)  # values of concepts that are a flag, or a number
MAX_NUMBERS = 16  # dimensions of a space of sets or numbers, each a concept; larger ones are codes without names
NONE = -1  # the label of a position where the space holds no value
SIGNIFICANT = 1e-6  # size of a code below which a position holds no value
RECOVERED = 0.9  # the cosine from which a feature counts as recovered
READABLE = 0.95  # share of positions at which the value of a concept must be the nearest along its features


@dataclass(frozen=True, eq=False)
class Concept:
    """A named space: its values, their features [value, model], the activation that holds it, and its labels.

    `labels` are [sequence, pos] for each part of the domain: the index of the value, or -1; of a number, its value.
    """

    name: str
    values: tuple[str, ...]
    features: Floats
    moment: str
    labels: tuple[Array, ...]


def concepts(weights: Weights[Transformer], domain: Sequence[PatchDomain]) -> tuple[Concept, ...]:
    """Return the concepts of a construction that take more than one value on the domain."""
    net = weights.architecture
    streams = [residuals(weights, part.tokens) for part in domain]
    made = []
    for space in weights.labels.spaces:
        moment = net.moments[space.born]
        for name, values, dims, codes in _codes(space):
            labels = tuple(_labels(values, codes, stream[moment][..., dims]) for stream in streams)
            vectors = np.zeros((len(codes), net.d_model))
            vectors[:, dims] = codes - codes.mean(axis=0) if len(codes) > 1 else codes
            if len(np.unique(np.concatenate([each.ravel() for each in labels]))) > 1:
                made.append(Concept(name, values, vectors, moment, labels))
    return tuple(made)


def _codes(space: SpaceLabel) -> Iterator[tuple[str, tuple[str, ...], list[int], Floats]]:
    """Yield the concepts of a space: name, values, dimensions, codes; sets and numbers have one for each dimension."""
    dims = list(space.dims)
    if isinstance(space.kind, OneHot | Bits | Circle):
        yield space.name, tuple(map(str, space.kind.values)), dims, np.asarray(space.kind.codes)
    elif len(dims) <= MAX_NUMBERS:
        values = FLAG if isinstance(space.kind, Flag | MultiHot) else NUMBER
        for name, dim in zip(space.kind.names, dims, strict=True):
            yield space.name + name, values, [dim], np.ones((1, 1))


def _labels(values: tuple[str, ...], codes: Floats, x: Floats) -> Array:
    """Return which value vectors [sequence, pos, dim] hold."""
    if values == NUMBER:
        return np.round(x[..., 0], 6)
    if values == FLAG:
        return np.where(x[..., 0] > 0.5, 0, NONE)
    held = np.abs(x).max(axis=-1) > SIGNIFICANT
    return np.where(held, (x @ codes.T).argmax(axis=-1), NONE)


def residuals(weights: Weights[Transformer], tokens: Ints) -> dict[str, Floats]:
    """Return the residual stream [sequence, pos, model] at every moment, by name."""
    seen: dict[str, Floats] = {}
    weights.architecture.forward(weights.prepared, tokens, record=seen.__setitem__)
    return {name: np.asarray(seen[name]) for name in weights.architecture.moments}


def turned(concept: Concept, turn: Floats) -> Concept:
    """Return a concept of an entangled network: features padded with zeros for noise dimensions, and turned."""
    wide = np.pad(concept.features, ((0, 0), (0, len(turn) - concept.features.shape[1])))
    return Concept(concept.name, concept.values, wide @ turn, concept.moment, concept.labels)


def readable(weights: Weights[Transformer], domain: Sequence[PatchDomain], concept: Concept) -> bool:
    """Return whether a network still has a concept: the least squares reading along its features gives its values."""
    stream = [residuals(weights, part.tokens)[concept.moment] for part in domain]
    labels = np.concatenate([each.ravel() for each in concept.labels])
    x = np.concatenate([each.reshape(-1, each.shape[-1]) for each in stream]) @ concept.features.T
    x = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    if concept.values == NUMBER:
        rest = labels - x @ np.linalg.lstsq(x, labels, rcond=None)[0]
        return bool(np.var(rest) <= (1 - READABLE) * np.var(labels))
    answers = (labels[:, None] == np.arange(NONE, len(concept.values))).astype(float)
    guess = (x @ np.linalg.lstsq(x, answers, rcond=None)[0]).argmax(axis=1) + NONE
    return bool(np.mean(guess == labels) >= READABLE)


def mean_difference(question: JsonObject, weights: Weights[Transformer]) -> dict[str, list[float]]:
    """Return a probe of every value: the mean activation where it is held, less the mean where another one is."""
    probes = {}
    domain = [PatchDomain.from_json(part) for part in question["domain"]]
    streams = [residuals(weights, part.tokens) for part in domain]
    for concept in question["concepts"]:
        x = np.concatenate([stream[concept["moment"]].reshape(-1, weights.architecture.d_model) for stream in streams])
        labels = np.concatenate([np.ravel(each) for each in concept["labels"]])
        if concept["values"] == [*NUMBER]:
            probes[f"{concept['name']}={NUMBER[0]}"] = ((labels - labels.mean()) @ x).tolist()
            continue
        for number, value in enumerate(concept["values"]):
            here, elsewhere = labels == number, (labels != number) & (labels != NONE)
            elsewhere = elsewhere if elsewhere.any() else labels == NONE
            if here.any() and elsewhere.any():
                probes[f"{concept['name']}={value}"] = (x[here].mean(axis=0) - x[elsewhere].mean(axis=0)).tolist()
    return probes


@dataclass(frozen=True)
class FeatureScore:
    """Of probes or of a dictionary: mean cosine of true features, the share recovered, and the share of right rows."""

    features: int
    cosine: float
    recall: float
    precision: float


def score_features(truth: JsonObject, data: JsonObject) -> FeatureScore:
    """Score probes (`{"probes": {"space=value": vector}}`) or dictionaries (`{"dictionary": {moment: vectors}}`)."""
    true = {
        f"{each['name']}={each['value']}": (str(each["moment"]), np.array(each["vector"]))
        for each in truth.get("features", ())
    }
    if ("probes" in data) == ("dictionary" in data):
        raise FolderError('a result about features must have either "probes" or "dictionary"')
    if not true:
        raise InputError("this puzzle has no features")
    width = len(next(iter(true.values()))[1])
    if "probes" in data:
        probes = {str(name): _vectors([vector], width)[0] for name, vector in _mapping(data["probes"]).items()}
        if odd := sorted(set(probes) - set(true)):
            raise InputError(f"{odd[0]!r} is no concept of the puzzle; question.json lists them all")
        cosine = {name: abs(float(_unit(probes[name]) @ _unit(true[name][1]))) for name in probes}
        return _feature_score([cosine.get(name, 0.0) for name in true], list(cosine.values()))
    rows = {str(moment): _vectors(vectors, width) for moment, vectors in _mapping(data["dictionary"]).items()}
    hits, best = [], {moment: np.zeros(len(vectors)) for moment, vectors in rows.items()}
    for moment, vector in true.values():
        cosines = np.abs(_unit(rows[moment]) @ _unit(vector)) if len(rows.get(moment, ())) else np.zeros(1)
        hits.append(float(cosines.max()))
        if moment in rows:
            best[moment] = np.maximum(best[moment], cosines)
    return _feature_score(hits, [hit for each in best.values() for hit in each.tolist()])


def _feature_score(hits: Sequence[float], submitted: Sequence[float]) -> FeatureScore:
    precision = float(np.mean(np.array(submitted) >= RECOVERED)) if submitted else 0.0
    return FeatureScore(len(hits), float(np.mean(hits)), float(np.mean(np.array(hits) >= RECOVERED)), precision)


def _mapping(data: object) -> Mapping[str, object]:
    if not isinstance(data, Mapping):
        raise FolderError(f"probes and dictionaries are mappings from names to vectors, not {type(data).__name__}")
    return data


def _vectors(data: object, width: int) -> Floats:
    """Return vectors of a result; odd ones are refused."""
    try:
        vectors = np.array(data, dtype=float)
    except (TypeError, ValueError):
        vectors = np.zeros(0)
    if vectors.ndim != 2 or vectors.shape[1] != width or not np.isfinite(vectors).all():
        raise FolderError(f"a direction must be a list of {width} finite numbers, the width of the residual stream")
    return vectors


def _unit(x: Floats) -> Floats:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12))


def features_json(known: Sequence[Concept]) -> list[JsonObject]:
    """Return the features as data of an answer: unit vectors with their names; those without a length are left out."""
    return [
        {"name": concept.name, "value": value, "moment": concept.moment, "vector": np.round(_unit(vector), 6).tolist()}
        for concept in known
        for value, vector in zip(concept.values, concept.features, strict=True)
        if np.linalg.norm(vector) > SIGNIFICANT
    ]


def concepts_json(known: Sequence[Concept]) -> list[JsonObject]:
    """Return the concepts as data of a question: without their features."""
    return [
        {"name": each.name, "values": list(each.values), "moment": each.moment}
        | {"labels": [labels.tolist() for labels in each.labels]}
        for each in known
    ]
