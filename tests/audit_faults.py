"""Mutants of many kinds: nets with one wrong weight, temperature, label or field of the architecture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.mutation_test import Mutant
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.labels import HeadLabel, SpaceLabel
from vitrify.net.spaces import Integers
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

NUDGES = (1e-3, 1e-2, 0.1, 0.5, 2.0)  # relative changes of a weight
TEMPERATURES = (0.0, 0.02, 0.1, 0.3, 0.7, 1.5, 10.0, -1.0)  # factors
RESOLUTIONS = (0.0, 0.1, 10.0, 1e3)  # factors
MAX_SKIPPED = 100  # draws per mutant that may give nothing new

Change = tuple[str, Weights[SequenceArchitecture]] | None
Fault = Callable[[Weights[SequenceArchitecture], np.random.Generator], Change]


def faulty_nets(
    weights: Weights[SequenceArchitecture], count: int, seed: int
) -> Iterator[Mutant[SequenceArchitecture]]:
    """Yield random mutants, every kind of fault that fits the net equally likely; none is equal to the net."""
    rng = np.random.default_rng(seed)
    yielded, skipped = 0, 0
    while yielded < count and skipped < MAX_SKIPPED * count:
        kind = list(FAULTS)[int(rng.integers(len(FAULTS)))]
        change = FAULTS[kind](weights, rng)
        if change is None or _same(weights, change[1]):
            skipped += 1
            continue
        yielded += 1
        yield Mutant(*change, kind)


def _same(one: Weights[SequenceArchitecture], two: Weights[SequenceArchitecture]) -> bool:
    facts = one.labels == two.labels and one.architecture == two.architecture
    return facts and all(np.array_equal(dense(one.arrays[name]), dense(two.arrays[name])) for name in one.arrays)


# ---- weights
def _array(weights: Weights[SequenceArchitecture], rng: np.random.Generator) -> tuple[str, Floats]:
    names = [name for name, array in sorted(weights.arrays.items()) if array.size and not name.endswith(".beta")]
    name = str(rng.choice(names))
    return name, np.array(dense(weights.arrays[name]))


def _entry(
    change: Callable[[float, np.random.Generator], tuple[str, float]], *, empty: bool = False
) -> Callable[[Weights[SequenceArchitecture], np.random.Generator], Change]:
    """Return a fault that changes one weight: one that is not 0, or one that is (`empty`)."""

    def make(weights: Weights[SequenceArchitecture], rng: np.random.Generator) -> Change:
        name, array = _array(weights, rng)
        candidates = np.flatnonzero((array == 0) == empty)
        if not len(candidates):
            return None
        flat = int(rng.choice(candidates))
        what, array.flat[flat] = change(float(array.flat[flat]), rng)
        index = ", ".join(str(int(i)) for i in np.unravel_index(flat, array.shape))
        return f"{name}[{index}] {what}", weights.with_array(name, array)

    return make


def _zeroed(_: float, __: np.random.Generator) -> tuple[str, float]:
    return "set to 0", 0.0


def _negated(number: float, _: np.random.Generator) -> tuple[str, float]:
    return "times -1", -number


def _nudged(number: float, rng: np.random.Generator) -> tuple[str, float]:
    by = float(rng.choice(NUDGES)) * float(rng.choice((-1.0, 1.0)))
    return f"times {1 + by:.6g}", number * (1 + by)


def _planted(_: float, rng: np.random.Generator) -> tuple[str, float]:
    number = float(rng.choice(NUDGES)) * float(rng.choice((-1.0, 1.0)))
    return f"set to {number:.6g}", number


def _swapped(weights: Weights[SequenceArchitecture], rng: np.random.Generator) -> Change:
    name, array = _array(weights, rng)
    one, two = (int(i) for i in rng.integers(array.size, size=2))
    array.flat[one], array.flat[two] = float(array.flat[two]), float(array.flat[one])
    return f"{name}: numbers {one} and {two} swapped", weights.with_array(name, array)


def _shifted(axis: int, called: str) -> Fault:
    def make(weights: Weights[SequenceArchitecture], rng: np.random.Generator) -> Change:
        name, array = _array(weights, rng)
        if array.ndim < 2:
            return None
        return f"{name}: {called} moved by one", weights.with_array(name, np.roll(array, 1, axis=axis))

    return make


def _tempered(weights: Weights[SequenceArchitecture], rng: np.random.Generator) -> Change:
    names = [name for name in sorted(weights.arrays) if name.endswith(".beta")]
    if not names:
        return None
    name, by = str(rng.choice(names)), float(rng.choice(TEMPERATURES))
    array = np.array(weights.arrays[name])
    head = int(rng.integers(len(array)))
    array[head] *= by
    return f"{name}[{head}] times {by:g}", weights.with_array(name, array)


# ---- labels
def _relabelled(field: Literal["heads", "spaces"], other: Callable[..., tuple[str, object | None]]) -> Fault:
    """Return a fault that changes or drops the label of a head or of a space."""

    def make(weights: Weights[SequenceArchitecture], rng: np.random.Generator) -> Change:
        labels = getattr(weights.labels, field)
        if not labels:
            return None
        index = int(rng.integers(len(labels)))
        change, new = other(labels[index], weights, rng)
        changed = (*labels[:index], *([new] if new else []), *labels[index + 1 :])
        what = f"label of {labels[index].name!r}: {change}"
        return what, replace(weights, labels=replace(weights.labels, **{field: changed}))

    return make


def _other_head(
    old: HeadLabel, _: Weights[SequenceArchitecture], rng: np.random.Generator
) -> tuple[str, HeadLabel | None]:
    choices: list[tuple[str, HeadLabel | None]] = [("gone", None)]
    for target in (0, 1, 2, "last", "first", "all", None):
        choices.append((f"attends to {target}", replace(old, attends_to=target)))
    gap = None if old.gap is not None else 1.0
    choices.append((f"gap {gap}", replace(old, gap=gap)))
    if old.beta_min is not None:
        choices += [(f"beta_min times {by:g}", replace(old, beta_min=old.beta_min * by)) for by in (0.1, 10.0)]
    return choices[int(rng.integers(len(choices)))]


def _other_space(
    old: SpaceLabel, weights: Weights[SequenceArchitecture], rng: np.random.Generator
) -> tuple[str, SpaceLabel | None]:
    last = len(weights.architecture.moments) - 1
    choices: list[tuple[str, SpaceLabel | None]] = [
        ("gone", None),
        ("error 0", replace(old, error=0.0)),
        ("error times 1000", replace(old, error=1000 * old.error)),
        ("dimensions turned round", replace(old, dims=old.dims[::-1])),
        ("dimensions moved by one", replace(old, dims=tuple((d + 1) % weights.architecture.width for d in old.dims))),
        ("born a half layer later", replace(old, born=min(old.born + 1, last))),
        ("born a half layer earlier", replace(old, born=max(old.born - 1, 0))),
        ("dies at once", replace(old, dies=old.born)),
        ("never dies", replace(old, dies=last)),
    ]
    kinds = [label.kind for label in weights.labels.spaces if label.kind.size == old.kind.size]
    kind = kinds[int(rng.integers(len(kinds)))]
    choices.append((f"kind {kind.tag}", replace(old, kind=kind)))
    if isinstance(old.kind, Integers):
        narrow = replace(old.kind, high=old.kind.high - 1)
        choices += [("a smaller range", replace(old, kind=narrow))] if narrow.high >= narrow.low else []
    return choices[int(rng.integers(len(choices)))]


# ---- fields of the architecture
def _head_field(weights: Weights[SequenceArchitecture], rng: np.random.Generator) -> Change:
    net = weights.architecture
    if not isinstance(net, Transformer):
        return None
    heads = [(i, j) for i, block in enumerate(net.blocks) for j in range(len(block.heads))]
    if not heads:
        return None
    index, head_index = heads[int(rng.integers(len(heads)))]
    block, old = net.blocks[index], net.blocks[index].heads[head_index]
    by = float(rng.choice(RESOLUTIONS))
    new = [
        (f"resolution times {by:g}", replace(old, resolution=old.resolution * by)),
        *((f"ties {ties}", replace(old, ties=ties)) for ties in ("left", "right", "average")),
        *((f"mask {mask}", replace(old, mask=mask)) for mask in ("causal", "strict", "none", "after")),
        *((f"attention {kind}", replace(old, attention=kind)) for kind in ("softmax", "sparsemax", "hard")),
    ]
    what, head = new[int(rng.integers(len(new)))]
    block = replace(block, heads=(*block.heads[:head_index], head, *block.heads[head_index + 1 :]))
    blocks = (*net.blocks[:index], block, *net.blocks[index + 1 :])
    return f"head {index}.{head_index}: {what}", replace(weights, architecture=replace(net, blocks=blocks))


def _length(weights: Weights[SequenceArchitecture], rng: np.random.Generator) -> Change:
    """Make a net read words one longer or shorter; an added position repeats the last position embedding."""
    net = weights.architecture
    if not isinstance(net, Transformer) or net.reads != "tokens" or net.max_length < 2:
        return None
    by = int(rng.choice((-1, 1)))
    table = np.array(dense(weights.arrays["pos_embed.W_pos"]))
    table = table[:-1] if by < 0 else np.vstack([table, table[-1:]])
    wide = replace(net, max_length=net.max_length + by)
    changed = replace(weights, architecture=wide, arrays={**weights.arrays, "pos_embed.W_pos": table})
    return f"max_length {net.max_length + by}", changed


FAULTS: dict[str, Fault] = {
    "zeroed": _entry(_zeroed),
    "sign turned": _entry(_negated),
    "nudged": _entry(_nudged),
    "planted": _entry(_planted, empty=True),
    "swapped": _swapped,
    "rows moved": _shifted(-2, "rows"),
    "columns moved": _shifted(-1, "columns"),
    "temperature": _tempered,
    "label of a head": _relabelled("heads", _other_head),
    "label of a space": _relabelled("spaces", _other_space),
    "field of a head": _head_field,
    "length": _length,
}
