"""Labels of a network's parts: where and when each named space exists, the purpose of heads and units."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from vitrify.encoding import JsonObject
from vitrify.errors import FolderError
from vitrify.net.spaces import Kind, kind_from_json, kind_to_json

# Moments of a run: 0 after embedding, 2i+1 after the attention (or recurrence) of block i, 2i+2 after its MLP.


AttendsTo = int | Literal["last", "first", "all"]


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
        "spaces": [{**_plain(space), "kind": kind_to_json(space.kind)} for space in labels.spaces],
        "heads": [asdict(head) for head in labels.heads],
        "units": [asdict(units) for units in labels.units],
    }


def _plain(space: SpaceLabel) -> JsonObject:
    return {key: getattr(space, key) for key in ("name", "dims", "born", "dies", "error")}


def labels_from_json(data: JsonObject) -> Labels:
    """Return the labels that `labels_to_json` wrote."""
    try:
        return Labels(
            spaces=tuple(
                SpaceLabel(**{**s, "kind": kind_from_json(s["kind"]), "dims": tuple(s["dims"])}) for s in data["spaces"]
            ),
            heads=tuple(HeadLabel(**head) for head in data["heads"]),
            units=tuple(
                UnitsLabel(**{**u, **{key: tuple(u[key]) for key in ("writes", "unit_names")}}) for u in data["units"]
            ),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise FolderError(f"labels.json is not a set of labels: {error!r}") from None
