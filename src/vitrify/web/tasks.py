"""Tasks of worker processes, by name: thin calls of the other layers, plain JSON in and out.

A net is a model folder of the app's own. The process that traces keeps the nets and the runs of the latest questions,
so that a keystroke costs one run and a look at another layer costs none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from json import dumps, loads
from pathlib import Path

from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.trace import Trace
from vitrify.net.weights import Weights
from vitrify.report.live import described, stops, suggestion
from vitrify.web.answers import AnswerJudge
from vitrify.web.entries import broken, entries
from vitrify.web.looking import draw_words, extract, look
from vitrify.web.story import story_at

LOADED = 12  # nets in one process; changed nets; runs
QUANTITIES = 6  # of a certificate that are shown
FITTED_ORDER = 2  # of the n-gram model of a text
MAX_GENERATED = 64  # symbols that a net writes at once, at most


def read(path: str) -> JsonObject:
    """Return the content of a spec file and the constructions for it."""
    from vitrify.constructions.catalogue import fitting
    from vitrify.spec import read_spec
    from vitrify.web.examples import kind_of

    spec = read_spec(Path(path))
    entries = [
        {
            "construction": entry.name,
            "summary": entry.summary,
            "default": entry.default,
            "choices": [parameter.to_json() for parameter in entry.parameters],
        }
        for entry in fitting(spec)
    ]
    from vitrify.spec.grammars.grammar import Grammar

    return {"kind": kind_of(path), "constructions": entries, "depth": isinstance(spec, Grammar)}


def fit(path: str) -> JsonObject:
    """Replace a text, with a sentence on each line, by an n-gram model of it."""
    from vitrify.spec.ngrams.model import NGramModel

    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    NGramModel.fit([line.split() for line in lines if line.strip()], FITTED_ORDER).write(Path(path))
    return {}


def build(
    path: str, folder: str, construction: str | None, options: JsonObject, progress: Callable[..., None]
) -> JsonObject:
    """Build a net from a spec into a folder, and say what it is."""
    from vitrify.constructions.catalogue import build as built
    from vitrify.net.folder import save
    from vitrify.spec import bounded, read_spec

    progress("reading")
    spec = read_spec(Path(path))
    depth = options.pop("depth", None)
    progress("building")
    weights = built(bounded(spec, depth) if depth else spec, construction, **options)
    progress("saving")
    save(weights, Path(folder), bounded(spec, depth) if depth else spec)
    progress("explaining")
    return described(weights)


def check(folder: str, changes: list[JsonObject], progress: Callable[..., None]) -> JsonObject:
    """Certify a net against its spec, as `vitrify certify` does."""
    from vitrify.certification import certify
    from vitrify.net.folder import load, spec_path
    from vitrify.report import wording
    from vitrify.spec import read_spec

    weights, _ = broken(load(Path(folder)), changes)
    spec = read_spec(spec_path(Path(folder)))
    evidence = certify(weights, spec, prove=True, progress=lambda done, total: progress("checking", done, total))
    proved = evidence.headline is not None and evidence.headline.scope.proved
    data = replace(evidence, proof=None).to_json()
    words = {
        "methods": wording.methods(evidence),
        "links": wording.links(evidence),
        "domains": wording.domains(evidence),
        "quantities": wording.lines(evidence)[:QUANTITIES],
        "remarks": wording.remarks(evidence),
    }
    return {"witness": None, "seconds": 0.0} | data | {"proved": proved, "words": words}


def trace(folder: str, changes: list[JsonObject], words: list[str], stop: int, position: int | None) -> JsonObject:
    """One stop of a run and its answers."""
    seen = _run(folder, dumps(changes), tuple(words))
    at = len(seen.tokens) - 1 if position is None else position
    stop = min(max(stop, 0), len(stops(seen.weights)) - 1)
    return story_at(seen, stop, at) | {"answer": _load(folder)[1].beside(seen, words, at)}


def changed(folder: str, changes: list[JsonObject]) -> JsonObject:
    """Return the effect of some changes on a network."""
    return {"changes": broken(_load(folder)[0], changes)[1]}


def listed(folder: str, changes: list[JsonObject], array: str, search: str) -> JsonObject:
    """Entries of an array, by name."""
    return entries(_changed(folder, dumps(changes)), array, search)


def suggest(folder: str, seed: int) -> JsonObject:
    """An input that the spec has something to say about."""
    weights, judge = _load(folder)
    return {"words": suggestion(weights.architecture, judge.check, seed)}


def write(folder: str, changes: list[JsonObject], words: list[str], steps: int) -> JsonObject:
    """Return what a network generates after a prompt."""
    from vitrify.net.generate import generate

    weights = _changed(folder, dumps(changes))
    if weights.architecture.reads != "tokens":
        raise InputError(f"this network reads {weights.architecture.reads}, and writes no words")
    room = weights.architecture.longest - len(words)
    (generation,) = generate(weights, [words], max(0, min(steps, MAX_GENERATED, room)))
    return {"words": [*words, *(symbol for symbol in generation.symbols if symbol in weights.architecture.input_ids)]}


@lru_cache(maxsize=LOADED)
def _load(folder: str) -> tuple[Weights[SequenceArchitecture], AnswerJudge]:
    """Return a net as it was built, and the judge of its spec."""
    from vitrify.net.folder import load, spec_path
    from vitrify.spec import read_spec

    weights = load(Path(folder))
    return weights, AnswerJudge(weights.architecture, read_spec(spec_path(Path(folder))))


@lru_cache(maxsize=LOADED)
def _changed(folder: str, changes: str) -> Weights[SequenceArchitecture]:
    """Return a net as it is now; `changes` is a JSON text."""
    return broken(_load(folder)[0], loads(changes))[0]


@lru_cache(maxsize=LOADED)
def _run(folder: str, changes: str, words: tuple[str, ...]) -> Trace:
    """Return a run of a net as it is now."""
    from vitrify.net.inference import trace as traced

    return traced(_changed(folder, changes), words)


FUNCTIONS: tuple[Callable[..., JsonObject], ...] = (
    read,
    fit,
    build,
    check,
    trace,
    changed,
    listed,
    suggest,
    write,
    look,
    extract,
    draw_words,
)
TASKS = {function.__name__: function for function in FUNCTIONS}
