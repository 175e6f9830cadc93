"""Networks that run in a page: their arrays as compact text, their labels, and what is said of them before any input.

`packed(weights)` is what `live/forward.js` runs, to rounding the same as `vitrify.net`. An array is the gaps between
its non-zero entries and, for each, the number of its value among the different ones: whole numbers of seven bits to a
byte, low bits first, as base64.
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from vitrify.arrays import Floats, Ints, Matrix
from vitrify.certification.checking import net_check
from vitrify.certification.checks.points import PointCheck
from vitrify.certification.checks.words import WordCheck
from vitrify.claims import is_learned
from vitrify.claims.catalogue import Claim, Outcome, Subject, claim_of
from vitrify.encoding import JsonObject, canonical
from vitrify.errors import InputError, VitrifyError
from vitrify.files import put
from vitrify.net.architecture import Architecture, SequenceArchitecture, to_json
from vitrify.net.conv import Convolutional
from vitrify.net.explain_terms import Source
from vitrify.net.labels import Labels
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import Stack, is_sparse, nonzeros
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.registry import Headline
from vitrify.report.frame import STATIC, environment

SCRIPTS = Path(__file__).parent / "live"
DRAWING = ("page", "maps", "arrays", "forward", "story", "circuit", "answers", "stage", "typing", "breaking", "glass")
ORDER = (*DRAWING, "source", "live")  # what a module uses at once, and not in a function, comes before it
STYLES = ("glass", "stage")
NAMED = re.compile(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)
MAX_NONZERO, TYPICAL = 6_000, 250  # weights of a net in the page of a claim: at most, and preferably
VOCABULARY = 20_000  # symbols that are offered while typing
LONGEST = 12  # tokens of a suggestion
DRAWN = 4  # sentences of which the longest is suggested
RANDOM = 6  # tokens where the spec has none to suggest
MAX_WEIGHTS = 300_000  # of a network in a page, some megabytes
TELLING = 100  # weights from which on a network shows something
SUBJECTS, NETWORKS = 8, 4  # of a claim that are looked at for one that a page can hold
SHOWN_WORDS = 512  # of an input in a line of Python
SUGGESTED, SUGGESTED_POINTS = 8, 3  # inputs that come with a net in a page, where they are words or numbers


def script() -> str:
    """Return the modules as one plain script: browsers refuse to load modules from a disk."""
    texts = [(SCRIPTS / f"{name}.js").read_text(encoding="utf-8") for name in ORDER]
    names = Counter(name for text in texts for name in NAMED.findall(text))
    assert not (doubled := [name for name, count in names.items() if count > 1]), doubled
    parts = [re.sub(r"^import .*\n|^export (?=\w)", "", text, flags=re.MULTILINE) for text in texts]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


def styles() -> str:
    """Return the style sheets of the glass box as one."""
    return "\n".join((SCRIPTS / f"{name}.css").read_text(encoding="utf-8") for name in STYLES)


StopKind = Literal["embedding", "attention", "recurrence", "units", "maps", "answer"]


@dataclass(frozen=True)
class Stop:
    """A point of a run that can be shown; `moment` is the index of its residual stream in a `Trace`."""

    name: str
    kind: StopKind
    moment: int
    block: int


def stops(weights: Weights[Architecture]) -> list[Stop]:
    """Return the stops of a run, in order; half layers without heads, cell or units are left out."""
    net = weights.architecture
    if isinstance(net, Convolutional):
        layers = [f"convolution {i}" for i in range(len(net.convolutions))]
        layers += ["sum over locations", *(f"dense layer {i}" for i in range(len(net.dense)))]
        listed = [Stop(name, "maps", place, place) for place, name in enumerate(["input", *layers])]
        return [*listed, Stop("answer", "answer", len(listed), 0)]
    if isinstance(net, Recurrent):
        listed = [Stop("embedding", "embedding", 0, 0), Stop("recurrence", "recurrence", 1, 0)]
        listed += [Stop("MLP", "units", 2, 0)] if net.units else []
        return [*listed, Stop("answer", "answer", len(listed) - 1, 0)]
    assert isinstance(net, Transformer)
    listed = [Stop("embedding", "embedding", 0, 0)]
    for turn, (index, block) in enumerate(net.turns):
        first = f"round {turn // len(net.blocks) + 1}, " if net.loops > 1 else ""
        if block.heads or block.cell:
            kind: StopKind = "attention" if block.heads else "recurrence"
            listed.append(Stop(f"{first}{kind} {index}", kind, 2 * turn + 1, index))
        if block.halves:
            listed.append(Stop(f"{first}{'experts' if block.experts else 'MLP'} {index}", "units", 2 * turn + 2, index))
    return [*listed, Stop("answer", "answer", len(net.moments) - 1, len(net.blocks))]


def described(weights: Weights[SequenceArchitecture]) -> JsonObject:
    """Return the data of a network that its page shows before any input."""
    from vitrify.net.explain import explain

    net = weights.architecture
    lines = explain(weights, shown=6)
    inputs = getattr(net, "inputs", getattr(net, "symbols", ()))
    return {
        "name": net.name,
        "what": lines.what,
        "about": {key: value for key, value in weights.about.items() if isinstance(value, str | int | float)},
        "sizes": asdict(weights.sizes),
        "stops": [asdict(stop) for stop in stops(weights)],
        "reads": net.reads,
        "pixels": getattr(net, "pixels", None),
        "image": [net.rows, net.columns] if isinstance(net, Convolutional) else None,
        "inputs": list(inputs[1:] if net.reads == "tokens" else inputs)[:VOCABULARY],
        "most": getattr(net, "max_length", None),
        "output": net.output.kind,
        "writes": net.reads == "tokens"
        and net.output.kind in ("lm", "class")
        and not net.input_ids.keys().isdisjoint(net.output.symbols),
        "heads": {head.location: {"attends_to": head.attends_to, "copies": head.copies} for head in lines.heads},
        "cells": [asdict(cell) for cell in lines.cells],
        "arrays": arrays(weights),
    }


def arrays(weights: Weights[Architecture]) -> list[JsonObject]:
    """Return the arrays of a network that hold anything: name, shape and number of non-zero entries."""
    return [
        {"name": name, "shape": list(array.shape), "nonzero": count}
        for name, array in weights.arrays.items()
        if (count := nonzeros(array))
    ]


def packed(weights: Weights[Any], spec: object = None) -> JsonObject:
    """Return a network as a page runs it; a spec suggests inputs."""
    net = weights.architecture
    facts = described(weights) | {"moments": len(getattr(net, "moments", ())), "longest": getattr(net, "longest", None)}
    return {
        "net": to_json(net),
        "arrays": {name: _array(array) for name, array in weights.arrays.items()},
        "labels": _labels(weights.labels),
        "facts": facts,
        "suggestions": _suggestions(weights, spec),
    }


def _array(array: Matrix) -> JsonObject:
    at, values = _entries(array)
    distinct, codes = np.unique(values, return_inverse=True)
    gaps = np.diff(at, prepend=-1) - 1
    return {"shape": list(array.shape), "gaps": _whole(gaps), "codes": _whole(codes), "values": distinct.tolist()}


def _entries(array: Matrix) -> tuple[Ints, Floats]:
    """Return the non-zero entries of an array: their indices in the flattened array, and their values."""
    if is_sparse(array):
        coo = (array.csr if isinstance(array, Stack) else array).tocoo()
        at = coo.row.astype(np.int64) * array.shape[-1] + coo.col
        order = np.argsort(at)
        return at[order], np.asarray(coo.data[order], dtype=np.float64)
    values = np.asarray(array, dtype=np.float64).ravel()
    at = np.flatnonzero(values)
    return at, values[at]


def _whole(numbers: Ints) -> str:
    data = bytearray()
    for number in numbers.tolist():
        while number > 127:
            data.append(number & 127 | 128)
            number >>= 7
        data.append(number)
    return b64encode(data).decode()


def _labels(labels: Labels) -> JsonObject:
    spaces = []
    for space in labels.spaces:
        source = Source(space.name, space.kind, space.dims)
        ends = [source.coordinate(at).removeprefix(space.name) for at in range(len(space.dims))]
        kind = {"tag": space.kind.tag, "size": space.kind.size, "low": space.kind.low, "high": space.kind.high}
        kind |= {"values": getattr(space.kind, "values", ()), "void": getattr(space.kind, "void", False)}
        known = {key: getattr(space, key) for key in ("name", "dims", "born", "dies", "error")}
        spaces.append(known | {"kind": kind, "ends": ends})
    return {
        "spaces": spaces,
        "heads": [{key: getattr(head, key) for key in ("name", "block", "index", "writes")} for head in labels.heads],
        "units": [asdict(units) for units in labels.units],
    }


def _suggestions(weights: Weights[Any], spec: object) -> list[list[str]]:
    net = weights.architecture
    try:
        check = net_check(net, spec) if spec is not None else None
        count = SUGGESTED_POINTS if isinstance(check, PointCheck) else SUGGESTED
        found = [suggestion(net, check, seed) for seed in range(count)] if check else []
    except VitrifyError:
        found = []
    if not found and net.reads == "tokens":
        rng, count = np.random.default_rng(0), max(min(net.longest, RANDOM), net.min_length)
        found = [[net.inputs[at] for at in rng.integers(1, len(net.inputs), count)] for _ in range(SUGGESTED)]
    return found or [["0"] * (net.rows * net.columns if isinstance(net, Convolutional) else len(net.inputs))]


def suggestion(net: SequenceArchitecture, check: object, seed: int) -> list[str]:
    """Return an input that a spec has something to say about, from the check of a net against it."""
    rng = np.random.default_rng(seed)
    if isinstance(check, PointCheck):
        points = check.oracle.cases(rng)[0].inputs
        return _words(net, points[int(rng.integers(len(points)))])
    assert isinstance(check, WordCheck)
    longest = max(LONGEST, net.min_length)
    language = check.oracle.language
    if language is not None:
        drawn: Sequence[int] = max((language.draw(rng) for _ in range(DRAWN)), key=lambda word: len(word[:longest]))
    else:  # words of one letter show little
        candidates = [word for word in check.oracle.cases(rng, 64) if len(set(word[:longest])) > 1]
        random = rng.integers(1, len(net.inputs), size=max(min(net.max_length, RANDOM), net.min_length)).tolist()
        drawn = candidates[int(rng.integers(len(candidates)))] if candidates else random
    return [net.inputs[int(i)] for i in drawn[:longest]]


def _words(net: SequenceArchitecture, point: Floats) -> list[str]:
    """Return a point as the words that a run reads."""
    if net.reads == "rows":
        edges = np.argwhere(np.triu(point, 1)).tolist()
        return [f"{net.inputs[a]}-{net.inputs[b]}" for a, b in edges]
    if isinstance(net, Convolutional) and net.pixels == "symbols":
        return [net.symbols[i] for i in point[:, 0].argmax(axis=0)]
    return [f"{number:.4g}" for number in point.ravel()]


@dataclass(frozen=True)
class GlassBox:
    """A network in a page that is complete in itself: a notebook shows it, `save` writes it to a file."""

    page: str = field(repr=False)

    def save(self, path: Path | str) -> None:
        """Write the page; it works from a disk, without a network."""
        put(Path(path), self.page)

    def _repr_html_(self) -> str:
        inside = html.escape(self.page, quote=True)
        return f'<iframe srcdoc="{inside}" title="glass box" style="width:100%;height:46em;border:0"></iframe>'


def glass_box(weights: Weights[Any], spec: object = None, title: str = "") -> GlassBox:
    """Return a network to look into: type, step through its layers, break a weight. A spec suggests inputs."""
    if (count := weights.sizes.nonzero) > MAX_WEIGHTS:
        raise InputError(f"a page holds networks of up to {MAX_WEIGHTS:,} weights, not {count:,}: use 'vitrify serve'")
    data = packed(weights, spec)
    looks = [(STATIC / f"{name}.css").read_text(encoding="utf-8") for name in ("site", "parts")]
    values = {"title": title or weights.architecture.name, "what": data["facts"]["what"], "data": embedded(data)}
    styled = values | {"styles": [*looks, styles()], "script": script()}
    return GlassBox(environment().get_template("net.html.j2").render(styled))


class LiveNets:
    """Networks for the pages of claims, in a folder, under a digest of the evidence and of what packs them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, headline: Headline, outcome: Outcome) -> JsonObject | None:
        """Return the network of a claim, if it was packed; an empty one if the claim has none to show."""
        path = self._path(headline, outcome)
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None

    def make(self, headline: Headline, outcome: Outcome) -> None:
        """Pack the network of a claim, and store it."""
        subject = None if is_learned(headline) else shown_subject(claim_of(headline))
        data = {"subject": subject.name, **packed(subject.weights, subject.spec)} if subject else {}
        put(self._path(headline, outcome), json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False))

    def _path(self, headline: Headline, outcome: Outcome) -> Path:
        known = hashlib.sha256(canonical(outcome).encode() + Path(__file__).read_bytes())
        return self.folder / f"{headline.name}.{known.hexdigest()[:16]}.json"


def shown_subject(claim: Claim) -> Subject | None:
    """Return a subject of a claim whose network a page can hold, of middle size, with a spec if there is one."""
    best, least, seen = None, (True, math.inf), 0
    for each in islice(claim.subjects(), SUBJECTS):
        seen += isinstance(each.weights, Weights)
        if isinstance(each.weights, Weights) and (count := each.weights.sizes.nonzero) <= MAX_NONZERO:
            rank = (each.spec is None, abs(math.log(count / TYPICAL)))
            best, least = (each, rank) if rank < least else (best, least)
        telling = best is not None and best.spec is not None and best.weights.sizes.nonzero >= TELLING
        if telling or (best and seen >= NETWORKS):  # further ones may take seconds
            break
    return best


def embedded(data: JsonObject) -> str:
    """Return JSON data as the text of a script element."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def python_of(claim: str, data: JsonObject) -> str:
    """Return the Python that builds the network of a claim and runs it on its first suggested input."""
    words = data["suggestions"][0][:SHOWN_WORDS]
    return (
        "from vitrify.claims.catalogue import claim_of, find\n\n"
        f"claim = claim_of(find({claim!r}))\n"
        f"net = next(s for s in claim.subjects() if s.name == {data['subject']!r}).weights\n"
        f"print(net({words!r}))"
    )
