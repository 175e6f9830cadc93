"""What claims about stages share: what is trained, and the plateaus of its curves by the names of known predictors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from vitrify.learn.models.catalogue import Family
from vitrify.learn.program import Probe
from vitrify.learn.recipe import Recipe
from vitrify.learn.stages import OPTIMAL, Curve, Plateau, Stage, order, stages
from vitrify.learn.train import Run, train
from vitrify.sandboxes._contexts import order_name
from vitrify.sandboxes.in_context_markov import InContextMarkov

NEAR = 0.05  # of a predictor's loss: how far the level of a plateau that has its name may be from it
MOST_SEEDS = 7 / 8  # the share of the seeds that must go through the stages in their order
WINDOW = 0.5  # in ln(1 + step), over which slopes are fitted: no more than the shortest plateau; curves have the points


@dataclass(frozen=True)
class Trial:
    """What is trained: members of a family on in-context chains."""

    sandbox: InContextMarkov
    family: Family
    recipe: Recipe
    members: int
    probes: Mapping[str, Probe] = field(default_factory=dict)

    def runs(self) -> list[Run]:
        """The trained members."""
        return train(self.family, self.sandbox, members=self.members, recipe=self.recipe, probes=self.probes)

    @property
    def best(self) -> str:
        """The name of the optimal predictor among those of all orders."""
        return order_name(self.sandbox.order)

    def stages(self, curve: Curve) -> list[Stage]:
        """The plateaus of a member's curve; the optimal predictor goes by its name."""
        found = stages(curve, window=WINDOW)
        return [Stage(self.best if s.name == OPTIMAL else s.name, s.plateau, s.distance) for s in found]

    def levels(self, curve: Curve) -> dict[str, float]:
        """The losses of the known predictors on the rows on which the members are measured, the worst first."""
        last = curve[-1]
        known = {name.removeprefix("floor."): value for name, value in last.items() if name.startswith("floor.")}
        return dict(sorted((known | {self.best: last["floor"]}).items(), key=lambda item: -item[1]))

    def distances(self) -> dict[str, str]:
        """Under which name the KL to each known predictor is measured."""
        return {name: f"kl.{name}" for name in self.known} | {self.best: "kl"}

    def nearest(self, curve: Curve, least: float) -> list[Stage]:
        """The predictors that are the nearest in KL for at least so long in ln(1 + step), one after the other.

        The level of such a stage is the loss where the member is nearest. It needs no plateau: a member that is soon on
        its way again is told from one that never came by.
        """
        keys = self.distances()
        names = [min(keys, key=lambda name: point[keys[name]]) for point in curve]
        found: list[Stage] = []
        for name, run in groupby(range(len(curve)), key=names.__getitem__):
            places = list(run)
            first, last = places[0], places[-1]
            ends = float(curve[first]["step"]), float(curve[last]["step"])
            if np.log1p(ends[1]) - np.log1p(ends[0]) < least or (found and found[-1].name == name):
                continue
            best = min((curve[place] for place in places), key=lambda point: point[keys[name]])
            found.append(Stage(name, Plateau(first, last, *ends, best["loss"]), best[keys[name]]))
        return found

    def passes(self, curve: Curve, wanted: Sequence[str]) -> bool:
        """Whether a member goes through exactly the wanted stages, in this order."""
        return order(self.stages(curve)) == tuple(wanted)

    def gap(self, curve: Curve) -> float:
        """How far the level of a plateau is from the loss of the predictor it is named after, at most; as a part."""
        levels = self.levels(curve)
        far = [abs(s.plateau.level / levels[s.name] - 1) for s in self.stages(curve) if s.name is not None]
        return max(far, default=np.nan)

    @property
    def known(self) -> set[str]:
        """The predictors that members are measured against, beside the optimal one."""
        return set(self.sandbox.predictors())

    def shown(self, runs: Sequence[Run], measured: Mapping[str, str], more: Mapping[str, Any]) -> dict[str, Any]:
        """Steps, predictors' losses, stages and what was measured [member, step], as plain data for a figure."""
        curves = [run.curve for run in runs]
        found = {name: [[point[key] for point in curve] for curve in curves] for name, key in measured.items()}
        return {**found, **more} | {
            "steps": [point["step"] for point in curves[0]],
            "levels": self.levels(curves[0]),
            "stages": [[(s.name, s.plateau.start, s.plateau.end) for s in self.stages(curve)] for curve in curves],
        }
