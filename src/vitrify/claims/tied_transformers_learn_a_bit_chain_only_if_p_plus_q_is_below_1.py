r"""Trained from small weights, a tied one-layer transformer learns to read a chain of bits only where p + q < 1.

Statement: A chain of bits leaves 0 with probability p and 1 with probability q. One-layer transformers with tied
weights that start small are, after 400 steps of AdamW, at the entropy of a single bit, $H(\pi)$, where $p + q > 1$, and
at the entropy rate where $p + q < 1$; without tying they are at the entropy rate on both sides, and so are, at
(0.5, 0.8), tied ones that start beside a low-rank form with $w < -1/\sqrt 2$.
Why: Not reading is a local minimum of the tied loss where $p + q > 1$, and a saddle everywhere else; and flows from
$w < -1/\sqrt 2$ go the other way.
Checked: All (p, q), both ways of reading out, both starts and eight seeds of each are trained as one program. At six
chains, in which a 1 comes up half of the time at most: losses within 0.006 nats of the one or the other on the same
rows, and the probabilities of a 1 after 0 and after 1. Over the whole grid, wherever the two losses are further apart
than that: whether the loss reached lies on the predicted side of their middle. Steps and chains were chosen after
trials: at (0.4, 0.2), left out, probabilities were up to 0.06 off after 400 steps, as the bias lags; after 600 steps
they were right, but 1 of 24 tied networks with p + q > 1 had left $H(\pi)$, at (0.9, 0.9). The better start (e = 1/2,
w = -1) is one of several that were tried; at (0.9, 0.9) it had a fifth to a quarter of the way left, and over the grid
it is told and not asked for: most that do not get through are at p > q, p + q > 1, where a 1 comes up more often.
Source: Makkuva et al. 2024, arXiv 2402.04161 and arXiv 2406.03072 [S] (sizes and optimiser from their public code, with
shorter rows; the start with w < 0 is beside the low-rank form of size 1, as theirs is of a size that takes longer).
Saboteur: The networks that are said to be tied are not, and the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._learned import Asked, decided, rate_interval
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.models.scalar import ScalarFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import Run, train
from vitrify.sandboxes.markov import Markov

POINTS = ((0.2, 0.3), (0.1, 0.1), (0.1, 0.5), (0.5, 0.8), (0.9, 0.9), (0.3, 0.9))
SHOWN = (0.5, 0.8)  # the papers' own chain: its curves are drawn, and the better start is judged there
SEEDS = 8
LOSS, SAME, APART = (
    0.006,
    0.02,
    0.03,
)  # nats; probabilities: of 1 after 0 and after 1, from each other and from p, 1 - q
AGREE = 0.95  # of the members must end on the predicted side
KINDS = {"tied": (1.0, 0.0, 0.0), "untied": (0.0, 0.0, 0.0), "tied, start w = −1": (1.0, 0.5, -1.0)}  # tied, e, w
TIED, UNTIED, BETTER = KINDS

RECIPE = Recipe(
    steps=400,
    batch=16,
    lr=2e-3,
    weight_decay=1e-3,
    beta2=0.95,
    schedule="cosine",
    warmup=8,
    test_rows=128,
    marks=1,
)


@dataclass(frozen=True)
class Settings:
    """What is trained: `points`, a grid of so many p and q, rows of `length` bits; and whether readouts are swapped."""

    length: int = 64
    recipe: Recipe = RECIPE
    points: tuple[tuple[float, float], ...] = POINTS
    grid: int = 0
    swapped: bool = False

    @property
    def cells(self) -> list[tuple[float, float]]:
        """The (p, q) of the grid, none of them on the line p + q = 1."""
        values = [round((0.5 + at) / (self.grid + 0.5), 4) for at in range(self.grid)]
        return [(p, q) for p in values for q in values]

    @property
    def members(self) -> list[tuple[float, ...]]:
        """All (p, q, tied, e, w): every kind at every chain, the better start on the grid and where it is judged."""
        everywhere = list(dict.fromkeys([*self.points, *self.cells]))
        few = list(dict.fromkeys([SHOWN, *self.cells]))
        return [(*point, *self.kind(name)) for name in KINDS for point in (few if name == BETTER else everywhere)]

    def kind(self, name: str) -> tuple[float, float, float]:
        """How the networks of a kind are made, or of the kind that stands in for it."""
        tied, e, w = KINDS[name]
        return (1 - tied if self.swapped else tied), e, w


def subjects() -> Iterator[Subject]:
    yield Subject("chains", data={"settings": Settings()})


def paper() -> Iterator[Subject]:
    more = replace(RECIPE, test_rows=256)
    yield Subject("chains", data={"settings": Settings(length=128, recipe=more, grid=12)})


def sabotage(subject: Subject) -> Subject:
    """The other readout, on the papers' chain alone."""
    settings = replace(subject.data["settings"], points=(SHOWN,), grid=0, swapped=True)
    return replace(subject, data={"settings": settings})


def after(net: Any, arrays: Any, row: Any, seen: Mapping[str, Any]) -> Any:
    """The mean probability of a 1 after 0 and after 1."""
    del net, arrays
    says = jax.nn.softmax(seen["hook_logits"])[..., 1]
    return jnp.stack([jnp.where(row.tokens == bit, says, 0).sum() / (row.tokens == bit).sum() for bit in (0, 1)])


def left(point: Mapping[str, float]) -> float:
    """How much of the way from the entropy rate to H(π) is left, on the same rows."""
    return point["excess"] / (point["floor.unigram"] - point["floor"])


def check(subject: Subject) -> Evidence:
    settings: Settings = subject.data["settings"]
    runs = train(
        ScalarFamily(),
        Markov(length=settings.length),
        axes={"p,q,tied,e,w": settings.members},
        members=SEEDS,
        recipe=settings.recipe,
        probes={"after": after},
    )
    found: dict[tuple[str, float, float], list[Run]] = {}
    names = {settings.kind(name): name for name in KINDS}
    for run in runs:
        chain, model = run.identity["sandbox"], run.identity["model"]
        kind = names[model["tied"], model["e"], model["w"]]
        found.setdefault((kind, chain["p"], chain["q"]), []).append(run)
    asked = [*at_points(settings, found), *on_sides(found)]
    chains = len({(p, q) for _, p, q in found})
    domain = f"{len(runs)} networks with d = 8 on {chains} chains, rows of {settings.length} bits"
    steps = settings.recipe.steps
    return decided(
        asked, domain=f"{domain}, {steps} steps", shown=pictures(settings, found), notes=rates(found), seed=0
    )


def at_points(settings: Settings, found: Mapping[tuple[str, float, float], Sequence[Run]]) -> list[Asked]:
    """What is asked at single chains: of the loss, and of the probabilities of a 1."""
    values: dict[tuple[str, float], list[float]] = {}
    for (kind, p, q), runs in found.items():
        if (p, q) not in ([SHOWN] if kind == BETTER else settings.points):
            continue
        for run in runs:
            last = run.last
            zero, one = np.asarray(last["after"])
            if kind == TIED and p + q > 1:
                of = "tied, p + q > 1"
                values.setdefault((f"{of}: distance from H(π)", LOSS), []).append(
                    abs(last["loss"] - last["floor.unigram"])
                )
                values.setdefault((f"{of}: P(1 | 0) and P(1 | 1) apart", SAME), []).append(abs(zero - one))
            else:
                of = {TIED: "tied, p + q < 1", UNTIED: "untied", BETTER: "tied, start w = −1, p + q > 1"}[kind]
                away = max(abs(zero - p), abs(one - (1 - q)))
                values.setdefault((f"{of}: loss above the entropy rate", LOSS), []).append(last["excess"])
                values.setdefault((f"{of}: error of P(1 | 0), P(1 | 1)", APART), []).append(float(away))
    return [Asked(name, numbers, most=most) for (name, most), numbers in values.items()]


def on_sides(found: Mapping[tuple[str, float, float], Sequence[Run]], apart: float = LOSS) -> list[Asked]:
    """Whether members end on the predicted side of the middle, where the two losses are that far apart."""
    sides: dict[str, list[float]] = {}
    for (kind, p, q), runs in found.items():
        stuck = kind == TIED and p + q > 1
        told = [run for run in runs if run.last["floor.unigram"] - run.last["floor"] >= apart]
        sides.setdefault(kind, []).extend(float((left(run.last) > 0.5) == stuck) for run in told)
    shares = {TIED: AGREE, UNTIED: AGREE, BETTER: 0.0}  # of the better start the share is told, and not asked for
    return [
        Asked(f"{kind}: ends on the predicted side", right, least=1, share=shares[kind])
        for kind, right in sides.items()
    ]


def rates(found: Mapping[tuple[str, float, float], Sequence[Run]]) -> list[str]:
    """The rates of agreement with their intervals, and over all chains."""
    told = []
    for one, every in zip(on_sides(found), on_sides(found, apart=0.0), strict=True):
        count, low, high = sum(one.inside), *rate_interval(sum(one.inside), len(one.values))
        text = f"{one.name}: {count / len(one.values):.4f} [{low:.4f}, {high:.4f}] of {len(one.values)} members"
        told.append(f"{text}; {sum(every.inside)} of all {len(every.values)}")
    return told


def pictures(settings: Settings, found: Mapping[tuple[str, float, float], Sequence[Run]]) -> dict[str, Any]:
    """What is left of the way at every cell, and the curves for one chain."""
    cells: dict[str, Any] = {}
    drawn = settings.cells or [*settings.points, SHOWN]
    for (kind, p, q), runs in found.items():
        if (p, q) in drawn:
            cells.setdefault(kind, []).append([p, q, round(float(np.mean([left(run.last) for run in runs])), 3)])
    curves = {
        kind: [[point["loss"] for point in run.curve] for run in runs]
        for (kind, p, q), runs in found.items()
        if (p, q) == SHOWN
    }
    one = found[TIED, *SHOWN][0]
    return {
        "cells": cells,
        "curves": curves,
        "steps": [point["step"] for point in one.curve],
        "floors": {"H(π)": one.last["floor.unigram"], "entropy rate": one.last["floor"]},
        "chain": SHOWN,
    }


def draw(shown: Mapping[str, Any]) -> Any:
    from vitrify.learn.figures import band, by_step, level, sheet

    one = shown["chains"]
    figure, planes = sheet(2, 2, "Where does training get stuck? One-layer transformers on chains of bits", 4.8, 4.2)
    for plane, (kind, cells) in zip(planes.flat, one["cells"].items(), strict=False):
        p, q, rest = np.array(cells).T
        many = len(p) > 20
        size = 250 if many else 160
        drawn = plane.scatter(p, q, c=rest, cmap="coolwarm", vmin=0, vmax=1, marker="s", s=size, edgecolors="white")
        plane.plot([0, 1], [1, 0], "k--", linewidth=1)
        plane.text(0.5, 0.5, "p + q = 1", fontsize=8, rotation=-45, ha="center", va="center", backgroundcolor="white")
        plane.set(xlim=(0, 1), ylim=(0, 1), xlabel="p = P(1 after 0)", ylabel="q = P(0 after 1)", aspect="equal")
        plane.set_title(f"{kind}: theory says stuck {'above the line' if kind == TIED else 'nowhere'}", fontsize=9)
    figure.colorbar(drawn, ax=planes[:, :], label="left of the way from H(π) (1) to the entropy rate (0)", shrink=0.6)
    plane = planes[1][1]
    for (kind, curves), colour in zip(one["curves"].items(), ("C3", "C0", "C2"), strict=True):
        band(plane, one["steps"], curves, f"{kind} ({len(curves)} seeds)", colour)
    for name, value in one["floors"].items():
        level(plane, value, name)
    by_step(plane)
    plane.set_ylabel("loss (nats per bit)")
    plane.set_title("p = {:g}, q = {:g}".format(*one["chain"]), fontsize=9)
    low, high = min(one["floors"].values()), max(one["floors"].values())
    plane.set_ylim(low - 0.2 * (high - low), high + (high - low))
    plane.legend(fontsize=7)
    return figure


CLAIM = Claim(
    row="L2",
    status="empirical",
    learned=True,
    subjects=subjects,
    paper=paper,
    check=check,
    sabotage=sabotage,
    draw=draw,
)
