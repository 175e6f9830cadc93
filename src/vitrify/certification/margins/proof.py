"""Result of a proof of margins: for every head, for every named space, and for the answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from vitrify.arrays import Floats
from vitrify.certification.margins.values import ValueFactor
from vitrify.encoding import JsonObject
from vitrify.net.labels import SpaceLabel


@dataclass(frozen=True)
class HeadMargin:
    """Proved of a head: its gap (after beta; None where it averages with fixed weights), and the leaked weight.

    `fixed`: positions alone decide its scores, whatever the word.
    """

    name: str
    block: int
    index: int
    attends_to: str
    gap: float | None
    kappa: float | None
    noise: float
    leak: float
    fixed: bool


@dataclass(frozen=True)
class SpaceMargin:
    """Proved of a space: the values that it can hold at a token, part by part, and its largest distance from them."""

    label: SpaceLabel
    factors: tuple[ValueFactor, ...]
    places: Floats = field(repr=False)
    error: Floats = field(repr=False)

    @property
    def worst(self) -> float:
        """The largest error of a coordinate."""
        return float(self.error.max(initial=0.0))

    @property
    def count(self) -> int | None:
        """Return the number of values of all parts; None where some are only known within bounds."""
        counts = [factor.count for factor in self.factors]
        return None if None in counts else sum(count or 0 for count in counts)


@dataclass(frozen=True)
class Proof:
    """The margins of every head and space, for words up to a length; `reason` says where the proof failed, if it did.

    `error` bounds the distance of a logit from the ideal one, `margin` the distance of the best logit from the next.
    """

    max_length: int
    heads: tuple[HeadMargin, ...]
    spaces: tuple[SpaceMargin, ...]
    error: float | None
    margin: float | None
    reason: str | None
    assumed: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        return self.reason is None

    def to_json(self) -> JsonObject:
        """Plain JSON data, without the values themselves."""
        return {
            "holds": self.holds,
            "reason": self.reason,
            "max_length": self.max_length,
            "assumed": list(self.assumed),
            "heads": [asdict(head) for head in self.heads],
            "spaces": [
                {"name": s.label.name, "kind": s.label.kind.tag, "values": s.count, "error": s.worst}
                for s in self.spaces
            ],
            "error": self.error,
            "margin": self.margin,
            "seconds": round(self.seconds, 3),
        }
