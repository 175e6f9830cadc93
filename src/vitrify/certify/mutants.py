"""Mutants of every sort: a net with one weight, one temperature, one label or one declared fact that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vitrify.certify.mutate import Mutation
from vitrify.net.labels import HeadLabel, SpaceLabel
from vitrify.net.spaces import Integers
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

NUDGES = (1e-3, 1e-2, 0.1, 0.5, 2.0)  # of a weight, relative
TEMPERATURES = (0.0, 0.02, 0.1, 0.3, 0.7, 1.5, 10.0, -1.0)
RESOLUTIONS = (0.0, 0.1, 10.0, 1e3)

Changed = tuple[str, Weights[Any]] | None
Maker = Callable[[Weights[Any], np.random.Generator], Changed]


@dataclass(frozen=True, eq=False)
class Mutant(Mutation):
    """A mutation and its sort."""

    sort: str


def mutants(weights: Weights[Any], count: int, seed: int) -> Iterator[Mutant]:
    """Random mutants, each sort as likely as every other one that the net has; none is equal to the net."""
    rng = np.random.default_rng(seed)
    made, vain = 0, 0
    while made < count and vain < 100 * count:
        sort = list(MAKERS)[int(rng.integers(len(MAKERS)))]
        found = MAKERS[sort](weights, rng)
        if found is None or _same(weights, found[1]):
            vain += 1
            continue
        made += 1
        yield Mutant(found[0], found[1], sort)


def _same(one: Weights[Any], two: Weights[Any]) -> bool:
    facts = one.labels == two.labels and one.architecture == two.architecture
    return facts and all(np.array_equal(dense(one.arrays[name]), dense(two.arrays[name])) for name in one.arrays)


# ---- weights
def _array(weights: Weights[Any], rng: np.random.Generator) -> tuple[str, Any]:
    names = [name for name, array in sorted(weights.arrays.items()) if array.size and not name.endswith(".beta")]
    name = str(rng.choice(names))
    return name, np.array(dense(weights.arrays[name]))


def _entry(
    change: Callable[[float, np.random.Generator], tuple[str, float]], *, empty: bool = False
) -> Callable[[Weights[Any], np.random.Generator], Changed]:
    """A maker that changes one number: one that is not 0, or one that is (`empty`)."""

    def make(weights: Weights[Any], rng: np.random.Generator) -> Changed:
        name, array = _array(weights, rng)
        at = np.flatnonzero((array == 0) == empty)
        if not len(at):
            return None
        place = int(rng.choice(at))
        said, array.flat[place] = change(float(array.flat[place]), rng)
        where = ", ".join(str(int(i)) for i in np.unravel_index(place, array.shape))
        return f"{name}[{where}] {said}", weights.with_array(name, array)

    return make


def _zeroed(_: float, __: np.random.Generator) -> tuple[str, float]:
    return "set to 0", 0.0


def _turned(number: float, _: np.random.Generator) -> tuple[str, float]:
    return "times -1", -number


def _nudged(number: float, rng: np.random.Generator) -> tuple[str, float]:
    by = float(rng.choice(NUDGES)) * float(rng.choice((-1.0, 1.0)))
    return f"times {1 + by:.6g}", number * (1 + by)


def _planted(_: float, rng: np.random.Generator) -> tuple[str, float]:
    number = float(rng.choice(NUDGES)) * float(rng.choice((-1.0, 1.0)))
    return f"set to {number:.6g}", number


def _swapped(weights: Weights[Any], rng: np.random.Generator) -> Changed:
    name, array = _array(weights, rng)
    one, two = (int(i) for i in rng.integers(array.size, size=2))
    array.flat[one], array.flat[two] = float(array.flat[two]), float(array.flat[one])
    return f"{name}: numbers {one} and {two} swapped", weights.with_array(name, array)


def _shifted(axis: int, called: str) -> Maker:
    def make(weights: Weights[Any], rng: np.random.Generator) -> Changed:
        name, array = _array(weights, rng)
        if array.ndim < 2:
            return None
        return f"{name}: {called} moved by one", weights.with_array(name, np.roll(array, 1, axis=axis))

    return make


def _tempered(weights: Weights[Any], rng: np.random.Generator) -> Changed:
    names = [name for name in sorted(weights.arrays) if name.endswith(".beta")]
    if not names:
        return None
    name, by = str(rng.choice(names)), float(rng.choice(TEMPERATURES))
    array = np.array(weights.arrays[name])
    place = int(rng.integers(len(array)))
    array[place] *= by
    return f"{name}[{place}] times {by:g}", weights.with_array(name, array)


# ---- labels
def _head_label(weights: Weights[Any], rng: np.random.Generator) -> Changed:
    labels = weights.labels
    if not labels.heads:
        return None
    place = int(rng.integers(len(labels.heads)))
    old = labels.heads[place]
    said, new = _other_head(old, rng)
    heads = (*labels.heads[:place], *([new] if new else []), *labels.heads[place + 1 :])
    return f"label of {old.name!r}: {said}", replace(weights, labels=replace(labels, heads=heads))


def _other_head(old: HeadLabel, rng: np.random.Generator) -> tuple[str, HeadLabel | None]:
    choices: list[tuple[str, HeadLabel | None]] = [("gone", None)]
    for looks in (0, 1, 2, "last", "first", "all", None):
        choices.append((f"looks {looks}", replace(old, looks=looks)))
    gap = None if old.gap is not None else 1.0
    choices.append((f"gap {gap}", replace(old, gap=gap)))
    if old.beta_min is not None:
        choices += [(f"beta_min times {by:g}", replace(old, beta_min=old.beta_min * by)) for by in (0.1, 10.0)]
    return choices[int(rng.integers(len(choices)))]


def _space_label(weights: Weights[Any], rng: np.random.Generator) -> Changed:
    labels = weights.labels
    if not labels.spaces:
        return None
    place = int(rng.integers(len(labels.spaces)))
    old = labels.spaces[place]
    said, new = _other_space(old, weights, rng)
    spaces = (*labels.spaces[:place], *([new] if new else []), *labels.spaces[place + 1 :])
    return f"label of {old.name!r}: {said}", replace(weights, labels=replace(labels, spaces=spaces))


def _other_space(old: SpaceLabel, weights: Weights[Any], rng: np.random.Generator) -> tuple[str, SpaceLabel | None]:
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


# ---- declared facts of the architecture
def _head_fact(weights: Weights[Any], rng: np.random.Generator) -> Changed:
    net = weights.architecture
    if not isinstance(net, Transformer):
        return None
    spots = [(i, place) for i, block in enumerate(net.blocks) for place in range(len(block.heads))]
    if not spots:
        return None
    index, place = spots[int(rng.integers(len(spots)))]
    block, old = net.blocks[index], net.blocks[index].heads[place]
    by = float(rng.choice(RESOLUTIONS))
    new = [
        (f"resolution times {by:g}", replace(old, resolution=old.resolution * by)),
        *((f"ties {ties}", replace(old, ties=ties)) for ties in ("left", "right", "average")),
        *((f"mask {mask}", replace(old, mask=mask)) for mask in ("causal", "strict", "none", "after")),
        *((f"attention {kind}", replace(old, attention=kind)) for kind in ("softmax", "sparsemax", "hard")),
    ]
    said, head = new[int(rng.integers(len(new)))]
    heads = (*block.heads[:place], head, *block.heads[place + 1 :])
    blocks = (*net.blocks[:index], replace(block, heads=heads), *net.blocks[index + 1 :])
    return f"head {index}.{place}: {said}", replace(weights, architecture=replace(net, blocks=blocks))


def _length(weights: Weights[Any], rng: np.random.Generator) -> Changed:
    """A net that is said to read longer or shorter words; what it gets for further positions is the last row again."""
    net = weights.architecture
    if not isinstance(net, Transformer) or net.reads != "tokens" or net.max_length < 2:
        return None
    by = int(rng.choice((-1, 1)))
    table = np.array(dense(weights.arrays["pos_embed.W_pos"]))
    table = table[:-1] if by < 0 else np.vstack([table, table[-1:]])
    wide = replace(net, max_length=net.max_length + by)
    changed = replace(weights, architecture=wide, arrays={**weights.arrays, "pos_embed.W_pos": table})
    return f"max_length {net.max_length + by}", changed


MAKERS: dict[str, Maker] = {
    "zeroed": _entry(_zeroed),
    "sign turned": _entry(_turned),
    "nudged": _entry(_nudged),
    "planted": _entry(_planted, empty=True),
    "swapped": _swapped,
    "rows moved": _shifted(-2, "rows"),
    "columns moved": _shifted(-1, "columns"),
    "temperature": _tempered,
    "label of a head": _head_label,
    "label of a space": _space_label,
    "fact of a head": _head_fact,
    "length": _length,
}
