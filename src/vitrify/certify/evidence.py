"""What a check found: a verdict, what it rests on, and the numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Verdict = Literal["holds", "fails", "undecided"]
Progress = Callable[[int, int], None]  # cases done, cases in all


@dataclass(frozen=True)
class Evidence:
    """A verdict on a stated domain.

    `declared` and `measured` hold the same quantities, promised and found. `witness` is one concrete case that fails.
    `proof` is what was proved for all words at once (see `margins.py`), where that was tried. `of` is the net and the
    spec whose examination this is, if it is one, and how many cases that had. `shown` is what a figure of it is drawn
    from: plain data, rounded.
    """

    verdict: Verdict
    method: str
    domain: str
    cases: int
    witness: Mapping[str, Any] | None = None
    declared: Mapping[str, Any] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    proof: Mapping[str, Any] | None = None
    shown: Mapping[str, Any] = field(default_factory=dict)
    of: tuple[object, object, int] | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; what is shown is left out where there is nothing."""
        data: dict[str, Any] = {
            "verdict": self.verdict,
            "method": self.method,
            "domain": self.domain,
            "cases": self.cases,
            "witness": None if self.witness is None else dict(self.witness),
            "declared": dict(self.declared),
            "measured": dict(self.measured),
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
            "proof": None if self.proof is None else dict(self.proof),
        }
        return data | ({"shown": dict(self.shown)} if self.shown else {})

    def _repr_html_(self) -> str:
        from vitrify.markup import badge, card, facts, folded, table, tag

        words = [f"{self.cases:,} cases", self.method, f"{self.seconds:.3g} s"]
        words += [f"seed {self.seed}"] if self.seed is not None else []
        title = tag("span", badge(self.verdict), f" {', '.join(words)}")
        parts = [tag("div", f"on {self.domain}", class_="said")]
        if self.witness is not None:
            parts.append(folded("a case that fails", facts(self.witness), unfolded=True))
        names = dict.fromkeys([*self.declared, *self.measured])
        if names:
            rows = [(name, self.declared.get(name), self.measured.get(name)) for name in names]
            parts.append(table(["quantity", "declared", "measured"], rows, "quantities"))
        if self.proof is not None:
            parts.append(folded("proved for all words at once", facts(self.proof)))
        if self.notes:
            parts.append(folded("notes", tag("ul", *(tag("li", note) for note in self.notes)), unfolded=True))
        return card(title, *parts)


def combine(parts: Mapping[str, Evidence]) -> Evidence:
    """One verdict for several subjects: that of the first that fails, else of the first undecided one, else holds."""
    worst = next((e for e in parts.values() if e.verdict == "fails"), None)
    worst = worst or next((e for e in parts.values() if e.verdict == "undecided"), None)
    names = [name for name, e in parts.items() if e is worst]
    first = worst or next(iter(parts.values()))
    return replace(
        first,
        method="+".join(dict.fromkeys(m for e in parts.values() for m in e.method.split("+"))),
        domain="; ".join(f"{name}: {e.domain}" for name, e in parts.items()),
        cases=sum(e.cases for e in parts.values()),
        witness=None if first.witness is None else {"subject": names[0], **first.witness},
        declared={f"{name}: {k}": v for name, e in parts.items() for k, v in e.declared.items()},
        measured={f"{name}: {k}": v for name, e in parts.items() for k, v in e.measured.items()},
        seconds=sum(e.seconds for e in parts.values()),
        notes=tuple(f"{name}: {note}" for name, e in parts.items() for note in e.notes),
        shown={name: dict(e.shown) for name, e in parts.items() if e.shown},
    )


def upper_failure_rate(failures: int, cases: int, confidence: float = 0.95) -> float:
    r"""The largest failure rate that the sample does not rule out (one-sided Clopper–Pearson).

    >>> round(upper_failure_rate(0, 100), 4)
    0.0295
    """
    if failures >= cases:
        return 1.0
    if failures == 0:
        return float(1.0 - (1.0 - confidence) ** (1.0 / cases))
    from scipy.special import betaincinv

    return float(betaincinv(failures + 1, cases - failures, confidence))
