"""What a proof of margins says: of every head, of every space, and of the answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from vitrify.certify.values import Factor, Floats
from vitrify.net.labels import SpaceLabel


@dataclass(frozen=True)
class HeadMargin:
    """What was proved about a head: its gap (after beta; None where fixed weights average), what can go astray."""

    name: str
    block: int
    place: int
    looks: str
    gap: float | None
    kappa: float | None
    noise: float
    leak: float


@dataclass(frozen=True)
class SpaceMargin:
    """What was proved about a space: the values it can hold at a token, part by part, and how far it is from them."""

    label: SpaceLabel
    factors: tuple[Factor, ...]
    places: Floats = field(repr=False)
    error: Floats = field(repr=False)

    @property
    def worst(self) -> float:
        """The largest error of a coordinate."""
        return float(self.error.max(initial=0.0))

    @property
    def count(self) -> int | None:
        """How many values the parts can hold, added up; None where some are only known within bounds."""
        counts = [factor.count for factor in self.factors]
        return None if None in counts else sum(count or 0 for count in counts)


@dataclass(frozen=True)
class Proof:
    """The margins of every head and space up to a length; `reason` says where the proof stopped, if it did."""

    max_length: int
    heads: tuple[HeadMargin, ...]
    spaces: tuple[SpaceMargin, ...]
    error: float | None
    lead: float | None
    reason: str | None
    assumed: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        return self.reason is None

    @property
    def summary(self) -> str:
        """What is proved, or why not, in a sentence."""
        if not self.holds:
            return f"margins not proved: {self.reason}"
        given = f", given that {' and '.join(self.assumed)}" if self.assumed else ""
        lead = "" if self.lead is None else f", and the best answer leads by at least {self.lead:.3g} more"
        return (
            f"proved for every word of length 1 to {self.max_length}{given}: in each head the best keys win, and the "
            f"logits are within {self.error:.3g} of those of exact selection{lead}"
        )

    def to_json(self) -> dict[str, Any]:
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
            "lead": self.lead,
            "seconds": round(self.seconds, 3),
        }
