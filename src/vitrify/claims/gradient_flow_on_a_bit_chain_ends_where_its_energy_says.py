r"""Gradient flow of the low-rank transformer on a chain of bits reads or does not read as its energy at the start says.

Statement: In its low-rank form a tied one-layer transformer has two numbers $e$ and $w$, and its loss with the best
bias depends on $A = e^2 (1 + 2w|w|)$ only. The flow keeps $E = e^2 - w^2 - \mathrm{sign}(w) \log|w|$ and never crosses
$w = 0$. It ends at $e = 0$, with the loss $H(\pi)$, from $w < -1/\sqrt 2$ with $E < E_s$ where $p + q < 1$, and from
$w \ge 0$ or $-1/\sqrt 2 < w < 0$ with $E < E_s$ where $p + q > 1$; from everywhere else it ends at the entropy rate
($E_s = -(1 + \log 2)/2$). So small Gaussian starts all escape for $p + q < 1$ and are all trapped for $p + q > 1$,
where a start near $w = -1$ escapes. With a third number $a$ for attention, in our derivation, the same holds for small
starts.
Why: The flow in $e$ and $w$ is $-2e(1+2w|w|)\,l'(A)$ and $-4|w| e^2\, l'(A)$, so $dE/dt = 0$; $l'$ has the sign of
$p + q - 1$ up to the best contrast, so the sign of $1 + 2w|w|$ decides whether $e$ shrinks, and only paths with
$E > E_s$ pass the saddle at $(0, -1/\sqrt 2)$. If attention returns the token itself, $A = e^2 (1+2w|w|)(1+a)$, and
$e^2 - 2(1+a)^2$ is kept as well.
Checked: The flow is followed in float64 to its rest from random starts over a square, from Gaussian balls of several
sizes, from starts near w = -1 and, in (e, w, a), from small balls; ends against the table, drift of the energies, signs
of w.
Source: Makkuva et al. 2024, arXiv 2406.03072 [S] (the loss in e and w and its energy are theirs; the basins were
derived again, and the variant with a is ours).
Saboteur: The table is read as if p + q lay on the other side of 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims import _chain
from vitrify.claims._learned import Asked, decided, rate_interval
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.flow import Flow, flow

POINTS = ((0.2, 0.3), (0.1, 0.1), (0.5, 0.8), (0.9, 0.9))  # two (p, q) on each side
SQUARE = 2.0  # starts over the square have e and w up to it
BALL, BETTER = 0.1, -1.0  # the standard deviation of small starts; the w around which better ones lie
REACHED = 1e-6  # nats: how near an end must be to the loss of a minimum
DRIFT = 1e-6  # of conserved quantities
RIGHT = 58 / 60  # of the starts must end where they should: some lie on the border within what rounding tells
SURE = 0.99  # of the starts in a small ball
DRAWN = 30  # paths in each picture


@dataclass(frozen=True)
class Settings:
    """How many starts there are for each (p, q), and whether the claim mistakes its side."""

    square: int = 60
    widths: tuple[float, ...] = (0.1, 0.3, 0.5, 1.0)
    each: int = 50  # starts of every width
    ball: int = 100
    mistaken: bool = False


def subjects() -> Iterator[Subject]:
    yield Subject("flows", data={"settings": Settings()})


def paper() -> Iterator[Subject]:
    widths = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
    yield Subject("flows", data={"settings": Settings(square=500, widths=widths, each=200, ball=500)})


def sabotage(subject: Subject) -> Subject:
    return replace(subject, data={"settings": replace(subject.data["settings"], mistaken=True)})


def two(point: Mapping[str, Any], chain: Any) -> Any:
    """The loss in (e, w)."""
    return _chain.profile(point["e"] ** 2 * _chain.gain(point["w"]), *chain)


def three(point: Mapping[str, Any], chain: Any) -> Any:
    """The loss in (e, w, a), the derived variant: attention returns the token itself."""
    return _chain.profile(point["e"] ** 2 * _chain.gain(point["w"]) * (1 + point["a"]), *chain)


def energy(point: Mapping[str, Any]) -> Any:
    return _chain.energy(point["e"], point["w"])


def attended(point: Mapping[str, Any]) -> Any:
    return point["e"] ** 2 - 2 * (1 + point["a"]) ** 2


@dataclass(frozen=True, eq=False)
class Followed:
    """Flows with the chain and the kind of start of each, and where they ended: trapped 1, at the rate 0, else NaN."""

    flow: Flow
    kind: Any  # [start]
    chain: Any  # [start, 2]
    trapped: Any  # [start]

    def of(self, kind: str, over: bool | None = None) -> Any:
        """Which starts are of a kind, and of a side of p + q = 1."""
        chosen = self.kind == kind
        return chosen if over is None else chosen & ((self.chain.sum(axis=1) > 1) == over)


@cache
def followed(settings: Settings) -> tuple[Followed, Followed]:
    """The flows in (e, w) from all kinds of starts, and those in (e, w, a) from small balls."""
    rng = np.random.default_rng(0)
    starts: list[Any] = [rng.uniform(-SQUARE, SQUARE, (len(POINTS) * settings.square, 2))]
    kinds = ["square"] * len(starts[0])
    for width in settings.widths:
        starts.append(rng.normal(0, width, (len(POINTS) * settings.each, 2)))
        kinds += [f"ball {width:g}"] * len(starts[-1])
    starts.append(rng.normal((0, BETTER), BALL, (len(POINTS) * settings.ball, 2)))
    kinds += ["better"] * len(starts[-1])
    plane = np.concatenate(starts)
    flat = {"e": plane[:, 0], "w": plane[:, 1]}
    space = rng.normal(0, BALL, (len(POINTS) * settings.ball, 3))
    solid = dict(zip("ewa", space.T, strict=True))
    return (
        _followed(two, flat, kinds, {"E": energy}),
        _followed(three, solid, ["ball"] * len(space), {"E": energy, "E with a": attended}),
    )


def _followed(loss: Any, starts: Mapping[str, Any], kinds: list[str], conserved: Mapping[str, Any]) -> Followed:
    chain = np.array(POINTS)[np.arange(len(kinds)) % len(POINTS)]
    found = flow(loss, starts, (chain[:, 0], chain[:, 1]), conserved=conserved)
    alone, rate = (np.array([one(p, q) for p, q in chain]) for one in (_chain.alone, _chain.rate))
    end = found.losses[:, -1]
    trapped = np.where(abs(end - alone) < REACHED, 1.0, np.where(abs(end - rate) < REACHED, 0.0, np.nan))
    return Followed(found, np.array(kinds), chain, trapped)


def check(subject: Subject) -> Evidence:
    settings: Settings = subject.data["settings"]
    flat, solid = followed(replace(settings, mistaken=False))
    chain = 1 - flat.chain if settings.mistaken else flat.chain
    e, w = (flat.flow.points[name][:, 0] for name in "ew")
    agree = flat.trapped == _chain.trapped(e, w, *chain.T)
    above, below = (False, True) if settings.mistaken else (True, False)
    asked = [Asked("ends as predicted, from the square", agree[flat.of("square")], least=1, share=RIGHT)]
    for width in settings.widths:
        name = f"ends as predicted, from a ball of size {width:g}"
        asked.append(Asked(name, agree[flat.of(f"ball {width:g}")], least=1, share=RIGHT))
    small = "from a ball of size 0.1 in (e, w, a)"
    asked += [
        Asked(f"trapped {small}, p + q > 1", solid.trapped[solid.of("ball", above)], least=1, share=SURE),
        Asked(f"trapped {small}, p + q < 1", solid.trapped[solid.of("ball", below)], most=0, share=SURE),
        Asked("trapped from near w = -1, p + q > 1", flat.trapped[flat.of("better", above)], most=0, share=SURE),
    ]
    for where, one in (("e, w", flat), ("e, w, a", solid)):
        for name, drift in one.flow.drift.items():
            asked.append(Asked(f"drift of {name} in ({where})", [drift], most=DRIFT))
        ends = np.sign(one.flow.points["w"][:, -1]) == np.sign(one.flow.points["w"][:, 0])
        asked.append(Asked(f"w keeps its sign in ({where})", ends, least=1))
    domain = f"{len(flat.kind)} starts in (e, w) and {len(solid.kind)} in (e, w, a), {len(POINTS)} chains"
    return replace(decided(asked, domain=domain, seed=0, shown=pictures(settings, flat)), method="integrated")


def pictures(settings: Settings, flat: Followed) -> dict[str, Any]:
    """Paths and ends for two chains, and the shares of trapped starts by the size of the ball."""
    portraits = []
    for p, q in (POINTS[0], POINTS[2]):
        here = np.flatnonzero(flat.of("square") & (flat.chain == (p, q)).all(axis=1))
        every = np.linspace(0, flat.flow.times.shape[1] - 1, 26).astype(int)
        paths = np.stack([flat.flow.points[name][here[:DRAWN]][:, every] for name in "ew"], axis=-1)
        portraits.append({"p": p, "q": q, "paths": np.round(paths, 3), "trapped": flat.trapped[here[:DRAWN]]})
    rng = np.random.default_rng(1)
    draws, sizes = rng.normal(size=(2, 20_000)), np.geomspace(0.02, 2, 25)
    shares: dict[str, Any] = {"sizes": sizes, "sides": []}
    for over, (p, q) in ((False, POINTS[0]), (True, POINTS[2])):
        seen = []
        for width in settings.widths:
            ends = flat.trapped[flat.of(f"ball {width:g}", over)]
            seen.append([width, float(np.mean(ends == 1)), *rate_interval(int((ends == 1).sum()), len(ends))])
        rule = [float(np.mean(_chain.trapped(size * draws[0], size * draws[1], p, q))) for size in sizes]
        shares["sides"].append({"over": over, "rule": rule, "seen": seen})
    return {"portraits": portraits, "shares": shares}


def draw(shown: Mapping[str, Any]) -> Any:
    from vitrify.learn.figures import sheet

    one = shown["flows"]
    figure, planes = sheet(1, 3, "Gradient flow of the low-rank transformer: which starts learn to read?", 4.6, 4.2)
    for plane, portrait in zip(planes[0], one["portraits"], strict=False):
        _portrait(plane, portrait)
    plane = planes[0][2]
    for side, colour in zip(one["shares"]["sides"], ("C0", "C3"), strict=True):
        name = "p + q > 1" if side["over"] else "p + q < 1"
        plane.plot(one["shares"]["sizes"], side["rule"], color=colour, label=f"{name}, by the energy")
        size, share, low, high = np.array(side["seen"]).T
        plane.errorbar(
            size, share, [share - low, high - share], fmt="o", color=colour, capsize=3, label=f"{name}, followed (95 %)"
        )
    plane.set_xscale("log")
    plane.set_xlabel("standard deviation of the first e and w")
    plane.set_ylabel("share of starts that end at the loss H(π)")
    plane.legend(fontsize=8)
    return figure


def _portrait(plane: Any, portrait: Mapping[str, Any]) -> None:
    p, q = portrait["p"], portrait["q"]
    over, edge = p + q > 1, 2.5
    w = np.linspace(_chain.CRITICAL, -1e-4, 300) if over else np.linspace(-edge, _chain.CRITICAL, 300)
    e = np.minimum(_chain.separatrix(w), edge)
    shade = {"color": "C3", "alpha": 0.12, "linewidth": 0}
    plane.fill_betweenx(w, -e, e, label="theory: trapped", **shade)
    if over:
        plane.fill_betweenx([0, edge], -edge, edge, **shade)
    line = np.linspace(-edge, -1e-4, 600)
    for sign in (-1, 1):
        plane.plot(
            sign * _chain.separatrix(line), line, "k--", linewidth=1, label="energy of the saddle" if sign > 0 else None
        )
        wide = np.linspace(-edge, edge, 800)
        gain = 1 + 2 * wide * abs(wide)
        inside = gain * _chain.contrast(p, q) > 0
        goal = sign * np.sqrt(np.abs(_chain.contrast(p, q) / gain))
        plane.plot(goal[inside], wide[inside], color="C0", linewidth=2.5, label="entropy rate" if sign > 0 else None)
    plane.axvline(0, color="C3", linewidth=2.5, label="e = 0: H(π)")
    for path, trapped in zip(portrait["paths"], portrait["trapped"], strict=True):
        colour = "C3" if trapped == 1 else "C0" if trapped == 0 else "black"
        across, up = np.array(path).T
        plane.plot(across, up, color=colour, linewidth=0.8)
        plane.plot(across[0], up[0], "o", color=colour, markersize=3.5)
    plane.set_xlim(-edge, edge)
    plane.set_ylim(-edge, edge)
    plane.set_xlabel("e (embedding)")
    plane.set_ylabel("w (units)")
    plane.set_title(f"p = {p:g}, q = {q:g}: p + q {'>' if over else '<'} 1", fontsize=10)
    plane.legend(fontsize=7, loc="upper right")


CLAIM = Claim(row="L3", status="cited", subjects=subjects, paper=paper, check=check, sabotage=sabotage, draw=draw)
