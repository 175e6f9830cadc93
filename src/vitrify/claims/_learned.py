"""Verdicts on what was learned: quantities measured once per seed, what is asked of them, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence, Verdict
from vitrify.errors import InputError

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Asked:
    """A quantity with a value for every seed (or tree, or point of a grid), and the range that it must lie in.

    At least the `share` of the values must. One that is a `premise` makes a claim undecided where it is not met: what
    the claim speaks about did not come about.
    """

    name: str
    values: Sequence[float]
    least: float = -math.inf
    most: float = math.inf
    share: float = 1.0
    premise: bool = False

    def __post_init__(self) -> None:
        if not len(self.values):
            raise InputError(f"{self.name}: no values to judge")

    @property
    def inside(self) -> list[bool]:
        """Which values lie in the range; one that is not a number does not."""
        return [bool(self.least <= value <= self.most) for value in self.values]

    @property
    def needed(self) -> int:
        """How many values must lie in the range."""
        return math.ceil(self.share * len(self.values) - 1e-9)

    @property
    def met(self) -> bool:
        """Whether enough values lie in the range."""
        return sum(self.inside) >= self.needed

    @property
    def declared(self) -> str:
        """What is asked, in words.

        >>> Asked("loss", [0.1] * 8, most=0.2, share=7 / 8).declared
        'at most 0.2, 7 of 8'
        """
        bounds = [f"at least {self.least:g}"] if self.least > -math.inf else []
        bounds += [f"at most {self.most:g}"] if self.most < math.inf else []
        return f"{' and '.join(bounds) or 'any'}, {self.needed} of {len(self.values)}"

    @property
    def measured(self) -> str:
        """The mean and its interval, the extremes, and how many values lie in the range.

        >>> Asked("loss", [0.1, 0.1, 0.3], most=0.2).measured
        '0.1667 [-0.1202, 0.4535], from 0.1 to 0.3; 2 of 3'
        """
        low, high = interval(self.values)
        ends = f"from {min(self.values):.4g} to {max(self.values):.4g}"
        found = f"{float(np.mean(self.values)):.4g} [{low:.4g}, {high:.4g}], {ends}"
        return f"{found}; {sum(self.inside)} of {len(self.values)}"


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """An interval for the mean of values that are drawn independently, by Student's t; a point for a single value."""
    numbers = np.asarray(values, dtype=float)
    mean = float(numbers.mean())
    if len(numbers) == 1:
        return mean, mean
    from scipy.special import stdtrit

    half = float(stdtrit(len(numbers) - 1, (1 + confidence) / 2) * numbers.std(ddof=1) / math.sqrt(len(numbers)))
    return mean - half, mean + half


def rate_interval(count: int, cases: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """An interval for a rate of which `count` in `cases` were seen (Clopper and Pearson, two-sided).

    >>> [round(end, 3) for end in rate_interval(8, 8)]
    [0.631, 1.0]
    """
    from scipy.special import betaincinv

    out = (1 - confidence) / 2
    low = float(betaincinv(count, cases - count + 1, out)) if count else 0.0
    high = float(betaincinv(count + 1, cases - count, 1 - out)) if count < cases else 1.0
    return low, high


def slope_interval(
    across: Sequence[float], up: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float, float]:
    """The slope of the line that fits best, and its interval by Student's t."""
    x, y = np.asarray(across, dtype=float), np.asarray(up, dtype=float)
    if len(x) < 3:
        raise InputError(f"a slope with an interval takes at least 3 points, not {len(x)}")
    from scipy.special import stdtrit

    apart = x - x.mean()
    slope = float((apart * y).sum() / (apart**2).sum())
    rest = y - y.mean() - slope * apart
    half = float(stdtrit(len(x) - 2, (1 + confidence) / 2) * np.sqrt((rest**2).sum() / (len(x) - 2) / (apart**2).sum()))
    return slope, slope - half, slope + half


def decided(
    asked: Sequence[Asked],
    *,
    domain: str,
    seed: int | None = None,
    shown: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> Evidence:
    """The verdict: undecided where a premise is not met, else fails where anything else is not, else holds."""
    missed = [one for one in asked if not one.met]
    verdict: Verdict = "undecided" if any(one.premise for one in missed) else "fails" if missed else "holds"
    witness = None
    if missed:
        worst = next((one for one in missed if one.premise), missed[0])
        at = worst.inside.index(False)
        witness = {"asked": worst.name, "expected": worst.declared, "value": float(worst.values[at]), "at": at}
    return Evidence(
        verdict,
        "trained",
        domain,
        sum(len(one.values) for one in asked),
        witness=witness,
        declared={one.name: one.declared for one in asked},
        measured={one.name: one.measured for one in asked},
        seed=seed,
        notes=tuple(notes),
        shown=plain(dict(shown or {})),
    )


def plain(value: Any, digits: int = 5) -> Any:
    """Arrays and numbers as plain JSON data with so many significant digits; what is not a number becomes None.

    >>> plain({"loss": np.array([1.2345678, np.nan]), "steps": (1, 2)})
    {'loss': [1.2346, None], 'steps': [1, 2]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(each, digits) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), digits)
    if isinstance(value, (list, tuple)):
        return [plain(each, digits) for each in value]
    if isinstance(value, np.generic):
        return plain(value.item(), digits)
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None
    return value
