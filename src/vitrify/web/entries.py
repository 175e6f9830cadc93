"""Single weights by name: which entry of which array, what it connects, and nets in which some were changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from vitrify.arrays import Matrix
from vitrify.certification.mutation_test import mutants
from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.net.architecture import Architecture
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import Stack, is_sparse
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.web.story_units import dimension_namer, label_at, unit_labels

SHOWN = 200  # entries of one answer
Name = Callable[[int], str]
A = TypeVar("A", bound=Architecture)


def entries(weights: Weights[Architecture], name: str, search: str = "") -> JsonObject:
    """Entries of an array that are not zero, with what they connect; only those whose words hold all of `search`."""
    array = _array(weights, name)
    axes = _axes(weights, name)
    index, values = _nonzero(array)
    wanted = search.lower().split()
    listed: list[list[object]] = []
    left = 0
    for place, value in zip(index, values, strict=True):
        if len(listed) == SHOWN:
            left = len(index) if wanted else len(index) - SHOWN
            break
        words = " → ".join(axis(at) for axis, at in zip(axes, place, strict=True))
        if all(word in words.lower() for word in wanted):
            listed.append([list(place), words, value])
    return {"entries": listed, "more": left, "shape": list(array.shape)}


def _nonzero(array: Matrix) -> tuple[list[tuple[int, ...]], list[float]]:
    if is_sparse(array):
        array = array.tocsr()
        rows = np.repeat(np.arange(len(array.indptr) - 1), np.diff(array.indptr))
        shape = array.shape
        lead = [rows] if len(shape) == 2 else list(np.unravel_index(rows, shape[:-1]))
        return list(zip(*(axis.tolist() for axis in (*lead, array.indices)), strict=True)), array.data.tolist()
    at = np.nonzero(array)
    return list(zip(*(axis.tolist() for axis in at), strict=True)), np.asarray(array)[at].tolist()


def broken(weights: Weights[A], changes: Sequence[JsonObject]) -> tuple[Weights[A], list[str]]:
    """A net after some changes, and what each of them did: one entry set to a value, or one row broken at random."""
    notes = []
    for change in changes:
        if "seed" in change:
            mutant = next(mutants(weights, 1, int(change["seed"])), None)
            if mutant is None:
                raise InputError("this network holds nothing that could be broken")
            weights = mutant.weights
            notes.append(mutant.what)
        else:
            weights, what = _set(weights, str(change["array"]), change["index"], change["value"])
            notes.append(what)
    return weights, notes


def _set(weights: Weights[A], name: str, index: object, value: object) -> tuple[Weights[A], str]:
    array = _array(weights, name)
    place = tuple(index) if isinstance(index, list) else ()
    fits = len(place) == len(array.shape) and all(isinstance(at, int) for at in place)
    if not fits or not all(0 <= at < size for at, size in zip(place, array.shape, strict=True)):
        raise InputError(f"{name} has the shape {tuple(array.shape)}: there is no entry {list(place)}")
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise InputError(f"a weight must be a finite number, not {value!r}")
    old, changed = _with(array, place, float(value))
    where = " → ".join(axis(at) for axis, at in zip(_axes(weights, name), place, strict=True))
    return weights.with_array(name, changed), f"{name}[{', '.join(map(str, place))}] ({where}): {old:.4g} → {value:.4g}"


def _with(array: Matrix, place: tuple[int, ...], value: float) -> tuple[float, Matrix]:
    """The entry at a place, and the array with another one there; sparse ones stay sparse."""
    if not is_sparse(array):
        changed = np.array(array, dtype=np.float64)
        changed[place] = value
        return float(array[place]), changed
    from scipy.sparse import csr_array

    csr = (array.csr if isinstance(array, Stack) else array).copy()
    row = int(np.ravel_multi_index(place[:-1], array.shape[:-1]))
    start, stop = csr.indptr[row], csr.indptr[row + 1]
    here = start + np.flatnonzero(csr.indices[start:stop] == place[-1])
    old = float(csr.data[here].sum())
    if len(here):
        csr.data[here] = value
    else:
        csr = csr + csr_array(([value], ([row], [place[-1]])), shape=csr.shape)
    return old, Stack(array.heads, csr) if isinstance(array, Stack) else csr


def _array(weights: Weights[Architecture], name: str) -> Matrix:
    if name not in weights.arrays:
        raise InputError(f"this network has no array {name!r}")
    return weights.arrays[name]


def _axes(weights: Weights[Architecture], name: str) -> list[Name]:
    """Return the names of the indices of each axis of an array."""
    net, last = weights.architecture, name.rsplit(".", 1)[-1]
    block = int(name.split(".")[1]) if name.startswith("blocks.") else 0
    if isinstance(net, Transformer | Recurrent):
        after = 2 * block + 2 if isinstance(net, Transformer) else 2
        unit = _units(weights, block, name)
        named = {label.index: label.name for label in weights.labels.heads if label.block == block}
        head: Name = lambda place: f"head {named.get(place, place)}"  # noqa: E731
        known: dict[str, list[Name]] = {
            "W_E": [net.inputs.__getitem__, dimension_namer(weights, 0)],
            "W_pos": [_numbered("position"), dimension_namer(weights, 0)],
            "W_O": [head, _numbered("value"), dimension_namer(weights, 2 * block + 1)],
            "beta": [head],
            "W_U": [
                dimension_namer(weights, 2 * len(net.blocks) if isinstance(net, Transformer) else len(net.moments) - 1),
                net.output.symbols.__getitem__,
            ],
            "b_U": [net.output.symbols.__getitem__],
            **{
                f"W_{letter}": [head, dimension_namer(weights, 2 * block), _numbered(word)]
                for letter, word in QKV.items()
            },
            **{f"b_{letter}": [head, _numbered(word)] for letter, word in QKV.items()},
        }
        if ".mlp." in name:
            known |= {"W_in": [dimension_namer(weights, 2 * block + 1), unit], "b_in": [unit]}
            known |= {"W_out": [unit, dimension_namer(weights, after)], "b_out": [dimension_namer(weights, after)]}
        if last in known and len(known[last]) == len(weights.arrays[name].shape):
            return known[last]
    return [_numbered("")] * len(weights.arrays[name].shape)


QKV = {"Q": "query", "K": "key", "V": "value"}


def _numbered(word: str) -> Name:
    return lambda at: f"{word} {at}".strip()


def _units(weights: Weights[Architecture], block: int, name: str) -> Name:
    own = unit_labels(weights, block, ".".join(name.split(".")[2:-1]))

    def named(unit: int) -> str:
        label = label_at(own, unit)
        name = label and (label.unit_names[unit - label.start] if label.unit_names else label.name)
        return f"unit {unit}" + (f", {name}" if name else "")

    return named
