"""How much memories recall: the share of right answers against what is stored, beside the predicted thresholds.

    python benchmarks/capacity.py [--draws 5] [--only linear,two,units,facts,heads] [--small] [--figure capacity.png]

Each row stores a multiple of the predicted capacity; `perfect` counts the draws that recall everything. Linear memories
are measured in units of d²/ln d, two answers in d, units and facts in md, heads by the dimension in (R + A) ln(RA). The
figure needs matplotlib; without it the table is all there is.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from vitrify.claims.associative_memories_store_in_proportion_to_their_parameters import linear_share, mlp_share
from vitrify.claims.facts_are_recalled_by_an_mlp_or_by_heads_alone import dimension, heads_share, units_share
from vitrify.kit.memory import Rule

RULES: tuple[Rule, ...] = ("hebbian", "least squares", "fitted")
FITTED_TO = 2_000  # associations that are fitted, at most: the scores of all answers to all are held at once


@dataclass(frozen=True)
class Curve:
    """Shares against an amount, for one kind of memory: `draw` takes the amount under the name `varied`, and a seed."""

    group: str
    name: str
    unit: str
    points: tuple[float, ...]
    amount: Callable[[float], int]
    varied: str
    draw: Callable[..., float]

    def shares(self, amount: int, draws: int) -> list[float]:
        """The share that each draw recalls."""
        return [self.draw(**{self.varied: amount}, seed=seed) for seed in range(draws)]


def curves(*, small: bool) -> Iterator[Curve]:
    """All curves, by group."""
    for rule in RULES:
        for d in (64, 128) if small else (64, 128, 256):
            points = (1 / 4, 0.4, 0.5, 0.6, 0.8) if rule == "fitted" else (1 / 16, 1 / 12, 1 / 8, 1 / 4, 1 / 2)
            amount = partial(_times, d * d / math.log(d))
            kept = tuple(x for x in points if rule != "fitted" or amount(x) <= FITTED_TO)
            draw = partial(linear_share, outputs=None, dimension=d, rule=rule)
            yield Curve("linear", f"{rule}, d = {d}", "d²/ln d", kept, amount, "count", draw)
    for d in (32, 64) if small else (32, 64, 128):
        two = partial(linear_share, outputs=2, dimension=d, rule="fitted")
        points = (1.0, 1.5, 2.0, 2.5, 3.0)
        yield Curve("two", f"two answers, fitted, d = {d}", "d", points, partial(_times, d), "count", two)
    for rule in RULES[::-1]:
        for d, m in ((16, 64), (32, 64)) if small else ((16, 64), (16, 128), (32, 64), (32, 128), (64, 64), (128, 64)):
            units = partial(mlp_share, dimension=d, units=m, rule=rule)
            points, name = (0.03, 0.06, 0.12, 0.16, 0.24), f"{m} units, {rule}, d = {d}"
            yield Curve("units", name, "md", points, partial(_times, m * d), "count", units)
    for d in (16, 32, 64):
        facts = partial(units_share, many=32, relations=8, answers=8, size=d)
        points, name = (0.1, 0.2, 0.3, 0.4, 0.5), f"32 × 8 facts in units, d = {d}"
        yield Curve("facts", name, "md", points, partial(_into, 32 * 8 / d), "units", facts)
    for many, r, a in ((32, 4, 4), (512, 4, 4), (32, 8, 8)) if small else ((32, 4, 4), (512, 4, 4), (64, 16, 16)):
        heads = partial(heads_share, many=many, relations=r, answers=a)
        points, name = (1.0, 2.0, 4.0, 6.0, 8.0), f"{many} × {r} facts in heads"
        yield Curve("heads", name, "(R + A) ln(RA)", points, partial(dimension, r, a), "size", heads)


def _times(unit: float, point: float) -> int:
    return int(unit * point)


def _into(unit: float, point: float) -> int:
    return math.ceil(unit / point)


AMOUNT = {"count": "stored", "units": "units", "size": "dimensions"}  # what is varied, in words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--figure", default="capacity.png")
    chosen = parser.parse_args()
    wanted = [group for group in chosen.only.split(",") if group]
    found: list[tuple[Curve, list[float]]] = []
    for curve in curves(small=chosen.small):
        if wanted and curve.group not in wanted:
            continue
        print(f"{curve.group}: {curve.name}")
        means = []
        for point in curve.points:
            amount = curve.amount(point)
            shares = curve.shares(amount, chosen.draws)
            means.append(float(np.mean(shares)))
            perfect = sum(share == 1.0 for share in shares)
            told = f"{point:.3f} {curve.unit} = {amount} {AMOUNT[curve.varied]}"
            print(f"  {told:38} {'█' * round(20 * means[-1]):20} {means[-1]:.4f}  perfect {perfect}/{chosen.draws}")
        found.append((curve, means))
    if importlib.util.find_spec("matplotlib") is None:
        print("no figure: matplotlib is not installed")
    elif found:
        plot(found, chosen.figure)
        print(f"figure: {chosen.figure}")


def plot(found: list[tuple[Curve, list[float]]], file: str) -> None:
    """One panel for each group of curves."""
    plt: Any = importlib.import_module("matplotlib.pyplot")

    groups = list(dict.fromkeys(curve.group for curve, _ in found))
    figure, panels = plt.subplots(1, len(groups), figsize=(5 * len(groups), 4), squeeze=False)
    for panel, group in zip(panels[0], groups, strict=True):
        for curve, means in found:
            if curve.group == group:
                panel.plot(curve.points, means, marker="o", label=curve.name)
                panel.set_xlabel(curve.unit)
        panel.set_title(group)
        panel.set_ylabel("share recalled")
        panel.legend(fontsize=6)
    figure.tight_layout()
    figure.savefig(file)


if __name__ == "__main__":
    main()
