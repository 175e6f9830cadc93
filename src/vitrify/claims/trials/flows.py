"""Gradient flows of the low-rank transformer on drawn bit chains: starts, end points, critical energies, portraits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from vitrify.arrays import Array, Bools
from vitrify.claims.protocol.measurements import Measured
from vitrify.encoding import JsonObject
from vitrify.intervals import rate_interval
from vitrify.learn import bit_chain
from vitrify.learn.flow import flow

MIN_PROBABILITY, MIN_APART = 0.05, 0.2  # of p, q, 1 - p and 1 - q; of p + q from 1
SQUARE = 2.0  # largest |e| and |w| of starts over the square
BORDER = 0.1  # largest distance of the energy from that of the saddle, of starts near the border of the basins
STRIPS = {False: (-2.0, -1.0), True: (-0.45, -0.05)}  # w of starts near the border, by p + q > 1: e is real there
BALL, BETTER_DEVIATION = 0.1, 0.05  # standard deviation of small and of better starts
BETTER_W = -1.0  # mean w of better starts
MAX_DISTANCE = 1e-6  # nats between an end and the loss of the minimum that it is at
STEP, STEPS = 0.01, 2000  # of gradient descent
SOLID = "with a"  # starts in (e, w, a)
DRAWN_PATHS, DRAWN_TIMES, EDGE = 30, 26, 2.5  # in a portrait
SIZES = tuple(np.geomspace(0.02, 2, 25))  # of balls in the figure

Chain = tuple[float, float]  # p, q
Point = Mapping[str, Array]


@dataclass(frozen=True)
class StartCounts:
    """Numbers of starts of each chain: over the square, near the border, and in each small ball."""

    square: int
    border: int
    widths: tuple[float, ...]  # of the balls
    each: int


def chain(number: int) -> Chain:
    """Return (p, q) drawn uniformly, apart from p + q = 1, which the sum exceeds for odd numbers."""
    rng = np.random.default_rng(number)
    while True:
        p, q = (round(float(each), 3) for each in rng.uniform(MIN_PROBABILITY, 1 - MIN_PROBABILITY, 2))
        if abs(p + q - 1) >= MIN_APART and (p + q > 1) == bool(number % 2):
            return p, q


def ball(width: float) -> str:
    """Return the name of Gaussian starts of a size."""
    return f"ball {width:g}"


def loss(point: Point, chain: Sequence[Array]) -> Array:
    """Return the loss in (e, w), and in (e, w, a) where attention returns the token itself, the derived variant."""
    return bit_chain.profile(point["e"] ** 2 * bit_chain.gain(point["w"]) * (1 + point.get("a", 0)), *chain)


def energy(point: Point) -> Array:
    """Return the quantity that the flow in (e, w) conserves."""
    return bit_chain.energy(point["e"], point["w"])


def attention_energy(point: Point) -> Array:
    """Return the second quantity that the flow in (e, w, a) conserves."""
    return point["e"] ** 2 - 2 * (1 + point["a"]) ** 2


def measured(numbers: Sequence[int], chains: Sequence[Chain], counts: StartCounts) -> Measured:
    """Return starts and ends of the flows of every chain by "kind of start/quantity" [chain, start].

    `trapped` is 1 for an end at the loss H(π), 0 at the entropy rate, NaN elsewhere. `drift` [chain] is the largest
    deviation of a conserved quantity from its start, `crossed` [chain] the number of starts whose w changed its sign.
    `drift in steps` is that under gradient descent, for each start.
    """
    each = [starts_of(*pair, counts) for pair in zip(numbers, chains, strict=True)]
    starts = {kind: np.stack([own[kind] for own in each]) for kind in each[0]}
    solid = {SOLID: starts.pop(SOLID)}
    flat = _followed(starts, chains, {"E": energy})
    return flat | _followed(solid, chains, {"E": energy, "E with a": attention_energy})


def starts_of(number: int, chain: Chain, counts: StartCounts) -> dict[str, Array]:
    """Return the starts of a chain by kind: [start, coordinate], exact in 32 bits."""
    rng, over = np.random.default_rng((number, 1)), sum(chain) > 1
    starts = {"square": rng.uniform(-SQUARE, SQUARE, (counts.square, 2))}
    w = rng.uniform(*STRIPS[over], counts.border)
    level = bit_chain.SADDLE + rng.uniform(-BORDER, BORDER, counts.border)
    starts["border"] = np.stack([np.sqrt(level + w**2 - np.log(-w)), w], axis=1)
    starts |= {ball(width): rng.normal(0, width, (counts.each, 2)) for width in counts.widths}
    starts["better"] = rng.normal((0, BETTER_W), BETTER_DEVIATION, (counts.each, 2))
    starts[SOLID] = rng.normal(0, BALL, (counts.each, 3))
    return {kind: own.astype(np.float32).astype(np.float64) for kind, own in starts.items()}


def _followed(
    starts: Mapping[str, Array], chains: Sequence[Chain], conserved: Mapping[str, Callable[[Point], Array]]
) -> dict[str, Array]:
    """Follow the flows from starts by kind [chain, start, coordinate]."""
    together = np.concatenate(list(starts.values()), axis=1)
    shape, coordinates = together.shape[:2], together.shape[2]
    p, q = np.repeat(np.array(chains), shape[1], axis=0).T
    points = dict(zip("ewa", together.reshape(-1, coordinates).T, strict=False))
    flows = flow(loss, points, (p, q), conserved=conserved)
    minima = [np.array([loss_at(*each) for each in chains]) for loss_at in (bit_chain.alone, bit_chain.rate)]
    last = flows.losses[:, -1].reshape(shape)
    trapped = np.select([abs(last - least[:, None]) < MAX_DISTANCE for least in minima], [1.0, 0.0], np.nan)
    w = flows.points["w"].reshape(*shape, -1)
    at = np.cumsum([0, *(own.shape[1] for own in starts.values())])
    parts = {kind: slice(*ends) for kind, *ends in zip(starts, at[:-1], at[1:], strict=True)}
    arrays = {
        f"{kind}/{name}": own[..., i] for kind, own in starts.items() for i, name in enumerate("ewa"[:coordinates])
    }
    arrays |= {f"{kind}/trapped": trapped[:, part] for kind, part in parts.items()}
    plane = "(" + ", ".join(points) + ")"
    for name, value in flows.conserved.items():
        drift = np.abs(value - value[:, :1]).max(axis=1).reshape(shape)
        arrays[f"{plane}/drift of {name}"] = drift.max(axis=1)
    arrays[f"{plane}/crossed"] = (np.sign(w[..., -1]) != np.sign(w[..., 0])).sum(axis=1)
    if "square" in parts:
        paths = np.stack([flows.points[name].reshape(*shape, -1) for name in "ew"], axis=-1)[:2, :DRAWN_PATHS]
        every = np.linspace(0, paths.shape[2] - 1, DRAWN_TIMES).astype(int)
        arrays["portraits/paths"] = paths[:, :, every].astype(np.float32)
        arrays["square/drift in steps"] = descent_drifts(arrays["square/e"], arrays["square/w"], chains)
    return arrays


def descent_drifts(e: Array, w: Array, chains: Sequence[Chain]) -> Array:
    """Return the largest deviation of the energy from its start under gradient descent: [chain, start]."""
    p, q = (column[:, None] for column in np.array(chains).T)
    first = bit_chain.energy(e, w)
    largest = np.zeros_like(first)
    for _ in range(STEPS):
        gain = bit_chain.gain(w)
        fall = STEP * bit_chain.slope(e**2 * gain, p, q)
        e, w = e - 2 * e * gain * fall, w - 4 * abs(w) * e**2 * fall
        largest = np.maximum(largest, abs(bit_chain.energy(e, w) - first))
    return largest.astype(np.float32)


def side(chains: Sequence[Chain], over: bool) -> Bools:
    """Return a mask of the chains on one side of p + q = 1."""
    mask: Bools = (np.sum(chains, axis=1) > 1) == over
    return mask


def ends(arrays: Measured, *kinds: str) -> Array:
    """Return which starts of some kinds are trapped: [chain, start]."""
    return np.concatenate([arrays[f"{kind}/trapped"] for kind in kinds], axis=1)


def predicted(arrays: Measured, kind: str, chains: Sequence[Chain]) -> Array:
    """Return which starts of a kind end at the loss H(π) by the energy: [chain, start]."""
    p, q = (column[:, None] for column in np.array(chains).T)
    return bit_chain.trapped(arrays[f"{kind}/e"], arrays[f"{kind}/w"], p, q)


def critical_energies(arrays: Measured) -> Array:
    """Return for each chain the energy that best parts the starts near the border into trapped ones and others.

    It is the middle between two neighboring energies. Trapped starts have the lower energies.
    """
    level = energy({name: arrays[f"border/{name}"] for name in "ew"})
    order = np.argsort(level, axis=1)
    level, trapped = (np.take_along_axis(each, order, axis=1) for each in (level, arrays["border/trapped"] == 1))
    ends = [np.full((len(level), 1), bit_chain.SADDLE + sign * BORDER) for sign in (-1, 1)]
    padded = np.concatenate([ends[0], level, ends[1]], axis=1)
    wrong = np.cumsum(np.insert(np.where(trapped, -1, 1), 0, 0, axis=1), axis=1)  # by cut, up to a constant
    cut = wrong.argmin(axis=1)[:, None]
    low, high = (np.take_along_axis(padded, at, axis=1)[:, 0] for at in (cut, cut + 1))
    return (low + high) / 2


def portraits(arrays: Measured, chains: Sequence[Chain]) -> list[JsonObject]:
    """Return paths from the square with their end points, for the first chain on either side of p + q = 1."""
    paths, trapped = arrays["portraits/paths"], arrays["square/trapped"]
    return [
        {"p": p, "q": q, "paths": paths[at].round(3), "trapped": trapped[at, : len(paths[at])]}
        for at, (p, q) in enumerate(chains[:2])
    ]


def trapped_shares(widths: Sequence[float], arrays: Measured, chains: Sequence[Chain]) -> JsonObject:
    """Return the share of trapped starts by ball size, predicted and integrated, for both sides of p + q = 1."""
    sides = []
    for over in (False, True):
        seen = []
        for width in widths:
            ends = arrays[f"{ball(width)}/trapped"][side(chains, over)] == 1
            seen.append([width, ends.mean(), *rate_interval(int(ends.sum()), ends.size)])
        sides.append({"over": over, "rule": list(predicted_shares(over)), "seen": seen})
    return {"sizes": list(SIZES), "sides": sides}


@cache
def predicted_shares(over: bool) -> tuple[float, ...]:
    """Return the share of Gaussian starts that are trapped by theory, for balls of `SIZES`."""
    draws, chain = np.random.default_rng(1).normal(size=(2, 20_000)), (0.7, 0.7) if over else (0.3, 0.3)
    return tuple(float(np.mean(bit_chain.trapped(size * draws[0], size * draws[1], *chain))) for size in SIZES)


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
