"""Labels of a network's parts: where and when each named space exists, the purpose of heads and units."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal, TypeVar

from vitrify.encoding import JsonObject
from vitrify.errors import FolderError
from vitrify.net.architecture import Architecture, Size
from vitrify.net.spaces import Kind, kind_from_json, kind_to_json
from vitrify.parameters import Fault, Keys, described, read, sentences

MAX_PROBLEMS = 8  # in one message
T = TypeVar("T")

# Moments of a run: 0 after embedding, 2i+1 after the attention (or recurrence) of block i, 2i+2 after its MLP.


AttendsTo = Size | Literal["last", "first", "all"]


@dataclass(frozen=True)
class SpaceLabel:
    """A named space: its dimensions, the moment it is written and the last moment at which it holds its value."""

    name: str
    kind: Kind
    dims: tuple[int, ...]
    born: int
    dies: int
    error: float = 0.0  # proved bound on the distance from the ideal value, coordinate by coordinate


@dataclass(frozen=True)
class HeadLabel:
    r"""The purpose of a head, and the gap between its scores.

    `gap` is the smallest margin of the keys that should win, before $\beta$; None when the head averages. `kappa` is
    the largest score over the gap. `beta_min` is the smallest $\beta$ that keeps the output error within `tolerance`.
    `attends_to` says which of the keys that match equally well is read: the one at a fixed distance back (a number; a
    pad where there is no such position), the `last`, the `first`, or `all` of them.
    """

    name: str
    block: int
    index: int
    writes: str
    gap: float | None = None
    kappa: float | None = None
    beta_min: float | None = None
    tolerance: float | None = None
    attends_to: AttendsTo | None = None


@dataclass(frozen=True)
class UnitsLabel:
    """The purpose of a run of hidden units: units `start` to `stop` of a block's MLP, router or expert.

    `part` is how the names of their arrays begin: `mlp`, `moe.router` or `moe.experts.3`.
    """

    name: str
    block: int
    start: int
    stop: int
    writes: tuple[str, ...]
    unit_names: tuple[str, ...] = ()
    part: str = "mlp"


@dataclass(frozen=True)
class Labels:
    """All labels of a network; a trained net may have none."""

    spaces: tuple[SpaceLabel, ...] = ()
    heads: tuple[HeadLabel, ...] = ()
    units: tuple[UnitsLabel, ...] = ()

    def space(self, name: str) -> SpaceLabel:
        """Return the space of that name."""
        for space in self.spaces:
            if space.name == name:
                return space
        raise KeyError(f"no space is called {name!r}; there are {', '.join(s.name for s in self.spaces)}")


def labels_to_json(labels: Labels) -> JsonObject:
    """Return labels as plain JSON data."""
    return {
        "spaces": [
            {key: getattr(space, key) for key in ("name", "dims", "born", "dies", "error")}
            | {"kind": kind_to_json(space.kind)}
            for space in labels.spaces
        ],
        "heads": [asdict(head) for head in labels.heads],
        "units": [asdict(units) for units in labels.units],
    }


def labels_from_json(data: object) -> Labels:
    """Return the labels that `labels_to_json` wrote; the error names what is missing or has a wrong type."""
    faults: list[Fault] = []
    if (
        not isinstance(data, dict)
        or set(data) != set(KINDS_OF_LABELS)
        or not all(type(x) is list for x in data.values())
    ):
        raise FolderError(f"labels.json is not a set of labels: it must have the lists {', '.join(KINDS_OF_LABELS)}")
    labels: dict[str, tuple[Any, ...]] = {
        key: tuple(_label(kind, label, (key, str(at)), faults) for at, label in enumerate(data[key]))
        for key, kind in KINDS_OF_LABELS.items()
    }
    if faults:
        raise FolderError("labels.json is not a set of labels: " + "; ".join(sentences(faults)[:MAX_PROBLEMS]))
    return Labels(**labels)


def _label(kind: Any, data: Any, keys: Keys, faults: list[Fault]) -> Any:
    """Return a label; long lists of numbers and names are looked at in one go."""
    before = len(faults)
    entries = data if isinstance(data, dict) else {}
    values: JsonObject = {
        name: tuple(entries[name])
        for name, each in (("dims", int), ("writes", str), ("unit_names", str))
        if type(entries.get(name)) is list and all(type(entry) is each for entry in entries[name])
    }
    if kind is SpaceLabel:
        try:
            values["kind"] = kind_from_json(entries.get("kind"))
        except FolderError as error:
            faults.append(((*keys, "kind"), str(error)))
    rest = {name: entry for name, entry in entries.items() if name not in values and name != "kind"}
    values |= read([each for each in described(kind) if each.name not in (*values, "kind")], rest, faults, keys)
    return kind(**values) if len(faults) == before else None


def labels_of(data: object, net: Architecture) -> Labels:
    """Return the labels of a network that `labels_to_json` wrote; labels of another network are refused."""
    labels = labels_from_json(data)
    if problems := label_problems(labels, net):
        raise FolderError(f"labels.json does not fit the network: {'; '.join(problems[:MAX_PROBLEMS])}")
    return labels


KINDS_OF_LABELS: dict[str, Any] = {"spaces": SpaceLabel, "heads": HeadLabel, "units": UnitsLabel}


def label_problems(labels: Labels, net: Architecture) -> list[str]:
    """Return what no network of this architecture can have: dimensions, moments, heads or units out of range.

    Spaces that hold a value at the same moment may not share a dimension.
    """
    problems = [f"two spaces are called {name!r}" for name in _doubled(space.name for space in labels.spaces)]
    last = max(len(getattr(net, "moments", ())) - 1, 0)
    widths = getattr(net, "widths", (net.width,))  # by moment, as far as they differ
    held: dict[int, list[tuple[int, int, str]]] = {}  # the moments at which a dimension holds a space
    for space in labels.spaces:
        at, width = f"space {space.name!r}", widths[min(max(space.born, 0), len(widths) - 1)]
        if len(set(space.dims)) != len(space.dims) or not all(0 <= dim < width for dim in space.dims):
            problems.append(f"{at} must have different dimensions below {width}")
        elif len(space.dims) != space.kind.size:
            problems.append(f"{at} has {len(space.dims)} dimensions, its kind {space.kind.size}")
        if not 0 <= space.born <= space.dies <= last:
            problems.append(f"{at} must be born and end at moments from 0 to {last}, not {space.born} and {space.dies}")
        if not 0 <= space.error < math.inf:
            problems.append(f"{at} must have an error that is finite and not negative")
        for dim in space.dims:
            held.setdefault(dim, []).append((space.born, space.dies, space.name))
    for dim, spans in held.items():
        for (_, ends, first), (begins, _, second) in pairwise(sorted(spans)):
            if begins <= ends and first != second:
                problems.append(f"spaces {first!r} and {second!r} share dimension {dim} at moment {begins}")
    same_head = _doubled((head.block, head.index) for head in labels.heads)
    problems += [f"head {block}.{index} has two labels" for block, index in same_head]
    for head in labels.heads:
        numbers = [head.gap, head.kappa, head.beta_min, head.tolerance]
        if not 0 <= head.block < len(net.heads_per_layer) or not 0 <= head.index < net.heads_per_layer[head.block]:
            problems.append(f"head {head.name!r} is not a head of the network: {head.block}.{head.index}")
        if any(number is not None and not math.isfinite(number) for number in numbers):
            problems.append(f"head {head.name!r} has a number that is not finite")
    shapes = net.shapes()
    for units in labels.units:
        by_layer = dict(enumerate(net.units_per_layer)) if not hasattr(net, "moments") else {}
        (count,) = shapes.get(f"blocks.{units.block}.{units.part}.b_in", (by_layer.get(units.block, 0),))
        if not 0 <= units.start <= units.stop <= count:
            problems.append(f"units {units.name!r} are {units.start} to {units.stop} of {count} in block {units.block}")
        if units.unit_names and len(units.unit_names) != units.stop - units.start:
            problems.append(
                f"units {units.name!r} are {units.stop - units.start}, and {len(units.unit_names)} have a name"
            )
    return problems


def _doubled(names: Iterable[T]) -> list[T]:
    return [name for name, count in Counter(names).items() if count > 1]
