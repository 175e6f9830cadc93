"""What worker processes do, by name: thin calls of the other layers, plain JSON in and out.

A net is a model folder of the app's own. The process that traces keeps the nets of the latest questions loaded, with
the last run of each, so that a keystroke costs one run and a look at another layer costs none.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vitrify.net.trace import Trace
from vitrify.net.weights import Ledger, Weights
from vitrify.web.answers import Judge
from vitrify.web.entries import arrays, broken, entries
from vitrify.web.story import stops, told

LOADED = 12  # nets in one process
VOCABULARY = 20_000  # symbols that are offered while typing
DECODED = 64  # symbols that a net writes at once, at most


@dataclass(eq=False)
class Loaded:
    """A net, its spec's judge, the changes that were made to it, and its last run."""

    weights: Weights[Any]
    judge: Judge
    variants: dict[str, Weights[Any]] = field(default_factory=dict)
    last: tuple[str, tuple[str, ...], Trace] | None = None


_loaded: OrderedDict[str, Loaded] = OrderedDict()


def read(path: str, **_: Any) -> dict[str, Any]:
    """What is in a spec's file, and how nets can be built from it."""
    from vitrify.constructions.catalogue import constructions
    from vitrify.spec import SUFFIXES, read_spec

    spec = read_spec(Path(path))
    kind = next(kind for suffix, (kind, _, _) in sorted(SUFFIXES.items(), reverse=True) if path.endswith(suffix))
    shapes = [
        {"shape": c.shape, "summary": c.summary, "default": c.default, "choices": list(c.choices)}
        for c in constructions()
        if isinstance(spec, c.spec)
    ]
    from vitrify.spec.grammar import Grammar

    return {"kind": kind, "shapes": shapes, "depth": isinstance(spec, Grammar)}


def build(
    path: str, folder: str, shape: str | None, options: dict[str, Any], progress: Callable[..., None], **_: Any
) -> dict[str, Any]:
    """Build a net from a spec into a folder, and say what it is."""
    from vitrify.constructions.catalogue import KINDS, Settings
    from vitrify.constructions.catalogue import build as built
    from vitrify.kit.positions import code_name
    from vitrify.net.folder import save
    from vitrify.spec import bounded, read_spec

    progress("reading")
    spec = read_spec(Path(path))
    chosen = {key: value for key, value in options.items() if value is not None}
    depth = chosen.pop("depth", None)
    if "positions" in chosen:
        chosen["positions"] = code_name(chosen["positions"])
    chosen["attention"] = KINDS[chosen.get("attention", "soft")]
    progress("building")
    weights = built(bounded(spec, depth) if depth else spec, shape, Settings(**chosen))
    progress("saving")
    save(weights, Path(folder), bounded(spec, depth) if depth else spec)
    progress("explaining")
    return described(weights)


def described(weights: Weights[Any]) -> dict[str, Any]:
    """What a page needs to know of a net before it reads anything."""
    from vitrify.net.explain import explain

    net = weights.architecture
    lines = explain(weights, shown=6)
    inputs = getattr(net, "inputs", getattr(net, "symbols", ()))
    return {
        "name": net.name,
        "what": lines.what,
        "about": {key: value for key, value in weights.about.items() if isinstance(value, str | int | float)},
        "ledger": asdict(Ledger.of(weights)),
        "stops": [asdict(stop) for stop in stops(weights)],
        "reads": net.reads,
        "pixels": getattr(net, "pixels", None),
        "image": [net.rows, net.columns] if net.reads == "image" else None,
        "inputs": list(inputs[1:] if net.reads == "tokens" else inputs)[:VOCABULARY],
        "most": getattr(net, "max_length", None),
        "output": net.output.kind,
        "writes": net.reads == "tokens" and net.output.kind in ("lm", "class") and bool(_written(net)),
        "heads": {head.place: {"how": head.how, "looks": head.looks, "brings": head.brings} for head in lines.heads},
        "cells": [asdict(cell) for cell in lines.cells],
        "arrays": arrays(weights),
    }


def _written(net: Any) -> set[str]:
    return set(net.output.symbols) & set(net.input_ids)


def check(folder: str, changes: list[dict[str, Any]], progress: Callable[..., None]) -> dict[str, Any]:
    """Certify a net against its spec, as `vitrify certify` does."""
    from vitrify.certify import certify
    from vitrify.net.folder import load, spec_path
    from vitrify.spec import read_spec

    weights, _said = broken(load(Path(folder)), changes)
    spec = read_spec(spec_path(Path(folder)))
    evidence = certify(weights, spec, prove=True, progress=lambda done, total: progress("checking", done, total))
    found = evidence.to_json()
    proof = found.pop("proof")
    return found | {"proved": None if proof is None else bool(proof.get("holds"))}


def trace(
    folder: str, changes: list[dict[str, Any]], words: list[str], stop: int, place: int | None, **_: Any
) -> dict[str, Any]:
    """One stop of a run and its answers."""
    loaded = _load(folder)
    key = repr(changes)
    run = loaded.last
    if run is None or run[:2] != (key, tuple(words)):
        from vitrify.net.run import trace as traced

        run = (key, tuple(words), traced(_variant(loaded, changes), words))
        loaded.last = run
    seen = run[2]
    at = len(seen.tokens) - 1 if place is None else place
    stop = min(max(stop, 0), len(stops(loaded.weights)) - 1)
    return told(seen, stop, at) | {"answer": loaded.judge.beside(seen, words, at)}


def changed(folder: str, changes: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
    """What some changes did to a net."""
    return {"said": broken(_load(folder).weights, changes)[1]}


def listed(folder: str, changes: list[dict[str, Any]], array: str, search: str, **_: Any) -> dict[str, Any]:
    """Entries of an array, by name."""
    return entries(_variant(_load(folder), changes), array, search)


def suggest(folder: str, seed: int, **_: Any) -> dict[str, Any]:
    """An input that the spec has something to say about."""
    return {"words": _load(folder).judge.suggestion(seed)}


def write(folder: str, changes: list[dict[str, Any]], words: list[str], steps: int, **_: Any) -> dict[str, Any]:
    """What a net writes after some words."""
    from vitrify.net.decode import decode

    weights = _variant(_load(folder), changes)
    room = weights.architecture.max_length - len(words)
    (found,) = decode(weights, [words], max(0, min(steps, DECODED, room)))
    return {"words": [*words, *(symbol for symbol in found.symbols if symbol in weights.architecture.input_ids)]}


def _load(folder: str) -> Loaded:
    if folder not in _loaded:
        from vitrify.net.folder import load, spec_path
        from vitrify.spec import read_spec

        weights = load(Path(folder))
        judge = Judge(weights.architecture, read_spec(spec_path(Path(folder))))
        _loaded[folder] = Loaded(weights, judge)
    _loaded.move_to_end(folder)
    while len(_loaded) > LOADED:
        _loaded.popitem(last=False)
    return _loaded[folder]


def _variant(loaded: Loaded, changes: list[dict[str, Any]]) -> Weights[Any]:
    """The net as it is now; of changed ones the latest is kept."""
    if not changes:
        return loaded.weights
    key = repr(changes)
    if key not in loaded.variants:
        loaded.variants = {key: broken(loaded.weights, changes)[0]}
    return loaded.variants[key]


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "read": read,
    "build": build,
    "check": check,
    "trace": trace,
    "changed": changed,
    "entries": listed,
    "suggest": suggest,
    "write": write,
}
