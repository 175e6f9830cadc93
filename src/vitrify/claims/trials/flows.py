"""Gradient flows of the low-rank transformer on bit chains: starts, end points and phase portraits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from vitrify.arrays import Array, Bools
from vitrify.encoding import JsonObject
from vitrify.intervals import rate_interval
from vitrify.learn import bit_chain
from vitrify.learn.flow import Flow, flow

CHAINS = ((0.2, 0.3), (0.1, 0.1), (0.5, 0.8), (0.9, 0.9))  # two (p, q) on each side of p + q = 1
FIGURE_CHAINS = CHAINS[0], CHAINS[2]  # with p + q below and above 1
SQUARE = 2.0  # largest |e| and |w| of starts over the square
BALL, BETTER_W = 0.1, -1.0  # standard deviation of small starts; mean w of the better starts
MAX_DISTANCE = 1e-6  # nats between an end and the loss of the minimum that it is at
DRAWN_PATHS, DRAWN_TIMES, EDGE = 30, 26, 2.5  # in a portrait

Point = Mapping[str, Array]


@dataclass(frozen=True)
class StartCounts:
    """Numbers of starts for each chain: over the square, in balls of each width, in small balls and near w = -1."""

    square: int
    widths: tuple[float, ...]
    each: int
    ball: int


@dataclass(frozen=True, eq=False)
class Followed:
    """Flows with chain and kind of start; `trapped` is 1 at loss H(π), 0 at the entropy rate, NaN elsewhere."""

    flow: Flow
    kind: Array  # [start]
    chain: Array  # [start, 2]
    trapped: Array  # [start]

    def of(self, kind: str, over: bool | None = None) -> Bools:
        """Return a mask of the starts of a kind, optionally on one side of p + q = 1."""
        chosen: Bools = self.kind == kind
        return chosen if over is None else chosen & ((self.chain.sum(axis=1) > 1) == over)


def loss(point: Point, chain: Sequence[Array]) -> Array:
    """Return the loss in (e, w), and in (e, w, a) where attention returns the token itself, the derived variant."""
    return bit_chain.profile(point["e"] ** 2 * bit_chain.gain(point["w"]) * (1 + point.get("a", 0)), *chain)


def energy(point: Point) -> Array:
    """Return the quantity that the flow in (e, w) conserves."""
    return bit_chain.energy(point["e"], point["w"])


def attention_energy(point: Point) -> Array:
    """Return the second quantity that the flow in (e, w, a) conserves."""
    return point["e"] ** 2 - 2 * (1 + point["a"]) ** 2


@cache
def followed(counts: StartCounts) -> tuple[Followed, Followed]:
    """Return the flows in (e, w) from all kinds of starts, and those in (e, w, a) from small balls."""
    rng, chains = np.random.default_rng(0), len(CHAINS)
    starts = {"square": rng.uniform(-SQUARE, SQUARE, (chains * counts.square, 2))}
    starts |= {f"ball {width:g}": rng.normal(0, width, (chains * counts.each, 2)) for width in counts.widths}
    starts["better"] = rng.normal((0, BETTER_W), BALL, (chains * counts.ball, 2))
    small = {"ball": rng.normal(0, BALL, (chains * counts.ball, 3))}
    return _followed(starts, {"E": energy}), _followed(small, {"E": energy, "E with a": attention_energy})


def _followed(starts: Mapping[str, Array], conserved: Mapping[str, Callable[[Point], Array]]) -> Followed:
    kinds = np.repeat(list(starts), [len(each) for each in starts.values()])
    chain = np.array(CHAINS)[np.arange(len(kinds)) % len(CHAINS)]
    points = dict(zip("ewa", np.concatenate(list(starts.values())).T, strict=False))
    flows = flow(loss, points, (chain[:, 0], chain[:, 1]), conserved=conserved)
    minima = [np.array([loss_at(p, q) for p, q in chain]) for loss_at in (bit_chain.alone, bit_chain.rate)]
    reached = [abs(flows.losses[:, -1] - minimum) < MAX_DISTANCE for minimum in minima]
    return Followed(flows, kinds, chain, np.select(reached, [1.0, 0.0], np.nan))


def portraits(flat: Followed) -> list[JsonObject]:
    """Return paths from the square with their end points, for one chain on either side of p + q = 1."""
    every = np.linspace(0, flat.flow.times.shape[1] - 1, DRAWN_TIMES).astype(int)
    drawn = []
    for p, q in FIGURE_CHAINS:
        here = np.flatnonzero(flat.of("square") & (flat.chain == (p, q)).all(axis=1))[:DRAWN_PATHS]
        paths = np.stack([flat.flow.points[name][here][:, every] for name in "ew"], axis=-1)
        drawn.append({"p": p, "q": q, "paths": np.round(paths, 3), "trapped": flat.trapped[here]})
    return drawn


def trapped_shares(counts: StartCounts, flat: Followed) -> JsonObject:
    """Return the share of trapped starts by ball size, predicted and integrated, for both sides of p + q = 1."""
    draws, sizes = np.random.default_rng(1).normal(size=(2, 20_000)), np.geomspace(0.02, 2, 25)
    sides = []
    for over, chain in zip((False, True), FIGURE_CHAINS, strict=True):
        seen = []
        for width in counts.widths:
            ends = flat.trapped[flat.of(f"ball {width:g}", over)] == 1
            seen.append([width, ends.mean(), *rate_interval(int(ends.sum()), len(ends))])
        rule = [np.mean(bit_chain.trapped(size * draws[0], size * draws[1], *chain)) for size in sizes]
        sides.append({"over": over, "rule": rule, "seen": seen})
    return {"sizes": sizes, "sides": sides}


def draw_portrait(axes: Array, portrait: JsonObject) -> None:
    """Draw paths in (e, w), the basin that is trapped by theory, and the two kinds of minima."""
    p, q = portrait["p"], portrait["q"]
    over, contrast = p + q > 1, bit_chain.contrast(p, q)
    w = np.linspace(bit_chain.CRITICAL, -1e-4, 300) if over else np.linspace(-EDGE, bit_chain.CRITICAL, 300)
    e = np.minimum(bit_chain.separatrix(w), EDGE)
    shade = {"color": "C3", "alpha": 0.12, "linewidth": 0}
    axes.fill_betweenx(w, -e, e, label="theory: trapped", **shade)
    if over:
        axes.fill_betweenx([0, EDGE], -EDGE, EDGE, **shade)
    line, wide = np.linspace(-EDGE, -1e-4, 600), np.linspace(-EDGE, EDGE, 800)
    gain = 1 + 2 * wide * abs(wide)
    inside, goal = gain * contrast > 0, np.sqrt(np.abs(contrast / gain))
    for sign, saddle, rate in ((-1, None, None), (1, "energy of the saddle", "entropy rate")):
        axes.plot(sign * bit_chain.separatrix(line), line, "k--", linewidth=1, label=saddle)
        axes.plot(sign * goal[inside], wide[inside], color="C0", linewidth=2.5, label=rate)
    axes.axvline(0, color="C3", linewidth=2.5, label="e = 0: H(π)")
    for path, trapped in zip(portrait["paths"], portrait["trapped"], strict=True):
        color = "C3" if trapped == 1 else "C0" if trapped == 0 else "black"
        across, up = np.array(path).T
        axes.plot(across, up, color=color, linewidth=0.8)
        axes.plot(across[0], up[0], "o", color=color, markersize=3.5)
    axes.set(xlim=(-EDGE, EDGE), ylim=(-EDGE, EDGE), xlabel="e (embedding)", ylabel="w (units)")
    axes.set_title(f"p = {p:g}, q = {q:g}: p + q {'>' if over else '<'} 1", fontsize=10)
    axes.legend(fontsize=7, loc="upper right")
