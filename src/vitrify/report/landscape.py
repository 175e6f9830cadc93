r"""The landscape of a one-layer transformer on a chain of bits, as plain data that a page draws.

The chain leaves 0 with probability $p$ and 1 with probability $q$. In its low-rank form (`learn/bit_chain.py`) the
network has the parameters $e$ (embedding) and $w$ (units). The contrast $A$ is the difference of the logits of a 1
after 1 and after 0. The loss with the best bias is $l(A)$, and $A = f\,(1 + 2w|w|)$, where

    tied       f = e²           the readout is the embedding
    attention  f = e² (1 + c)   a head returns the token itself, times c
    untied     f = e a          the readout is a number a of its own

As $\dot A = -l'(A)\,|\nabla A|^2$, the contrast goes monotonically towards the right one, $A_\star$, and stops before
only where $\nabla A = 0$, and so $A = 0$. A start whose $A$ has the right sign reaches it. Otherwise $|A|$ and with it
$e^2$ shrink, and what the flow keeps decides whether $e^2$ comes to 0, where the input is ignored, before another
factor changes its sign: $E = e^2 - h(w)$, $h(w) = w^2 + \mathrm{sign}(w) \log|w|$, and $e^2 - 2(1+c)^2$ in the first
two forms, $e^2 - h(w)/2$ and $e^2 - a^2$ in the third. The rules for the last two forms are our derivation; tests
compare all three with the flow.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np

from vitrify.arrays import Array
from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.learn import bit_chain

EDGE = 2.5  # the plotted plane: e and w from -EDGE to EDGE
SURFACE, BASINS = 81, 160  # points of the grids along each side; of the second none has e = 0, which stays as it is
SEEDS, STRIDE, STRIDES = 12, 0.05, 9  # flow lines: so many along each side, steps of that length, so many each way
UNTIL, MOMENTS = 1e4, 160  # the time to which a path is followed, and how often it is kept
MIN_GRADIENT = 1e-8  # gradient norm below which a path counts as converged, as in `learn/flow.py`
MIN_P, MAX_P = 0.01, 0.99  # of p and q
EVEN = 1e-9  # how near to 1 p + q must be to count as 1
FILE = Path(__file__).parent / "bit_chain_runs.json"
KINDS = {"tied": ("tied", "tied, start w = −1"), "attention": ("tied", "tied, start w = −1"), "untied": ("untied",)}

Numbers: TypeAlias = Array  # or one number


@dataclass(frozen=True)
class LowRankForm:
    """A low-rank form: its factor f(e, third), the derivatives of f, and the meaning of its third number."""

    key: str
    title: str
    third: str | None
    means: str
    first: float  # of the third number, where none is given
    factor: Callable[[Numbers, Numbers], Numbers]
    slopes: Callable[[Numbers, Numbers], tuple[Numbers, Numbers]]

    def contrast(self, e: Numbers, w: Numbers, third: Numbers) -> Numbers:
        """The difference A of the logits of a 1, after 1 and after 0."""
        return self.factor(e, third) * bit_chain.gain(w)

    def downhill(self, point: Array, p: float, q: float) -> Array:
        """The direction of the gradient flow [3, …] at points [3, …]."""
        e, w, third = point
        by_e, by_third = self.slopes(e, third)
        gain = bit_chain.gain(w)
        down = -bit_chain.slope(self.factor(e, third) * gain, p, q)
        return np.stack([down * gain * by_e, down * 4 * abs(w) * self.factor(e, third), down * gain * by_third])

    def trapped(self, e: Numbers, w: Numbers, third: Numbers, p: float, q: float) -> Array:
        """True if the flow ends where the input is ignored although reading it is better."""
        if abs(p + q - 1) < EVEN:
            return np.zeros(np.broadcast(e, w, third).shape, bool)
        by_e, by_third = self.slopes(e, third)
        gain, f = bit_chain.gain(w), self.factor(e, third)
        still = (gain * by_e == 0) & (gain * by_third == 0) & (w * f == 0)
        wrong = f * gain * (1 - p - q) < 0
        return still | (wrong & self._shut(e, w, third))

    def _shut(self, e: Numbers, w: Numbers, third: Numbers) -> Array:
        """True if e² reaches 0 before any other factor of the contrast."""
        bends = 2 if self.key == "untied" else 1
        with np.errstate(divide="ignore", invalid="ignore"):  # the energy has a pole at w = 0, which is never crossed
            closed = (w >= 0) | (bends * e**2 + bit_chain.energy(0.0, np.asarray(w)) <= bit_chain.SADDLE)
        if self.key == "untied":
            return closed & (e**2 == third**2)
        return closed & (e**2 <= 2 * (1 + third) ** 2) if self.key == "attention" else closed


FORMS = {
    form.key: form
    for form in (
        LowRankForm("tied", "tied", None, "", 0.0, lambda e, _: e**2, lambda e, _: (2 * e, 0.0 * e)),
        LowRankForm(
            "attention",
            "tied, with attention",
            "c",
            "what the head returns of the token itself",
            0.0,
            lambda e, c: e**2 * (1 + c),
            lambda e, c: (2 * e * (1 + c), e**2 + 0.0 * c),
        ),
        LowRankForm(
            "untied", "untied", "a", "the readout", 0.2, lambda e, a: e * a, lambda e, a: (a + 0.0 * e, e + 0.0 * a)
        ),
    )
}


def form_of(key: str) -> LowRankForm:
    """The form of that name."""
    if key not in FORMS:
        raise InputError(f"the weights are {', '.join(FORMS)}, not {key!r}")
    return FORMS[key]


def _chosen(p: float, q: float, *others: float) -> None:
    if not (MIN_P <= p <= MAX_P and MIN_P <= q <= MAX_P):
        raise InputError(f"p and q must lie from {MIN_P} to {MAX_P}, not {p:g} and {q:g}")
    if not all(abs(other) <= 2 * EDGE for other in others):
        raise InputError(f"e, w and the third number must lie from {-2 * EDGE:g} to {2 * EDGE:g}")


def surface(key: str, p: float, q: float, third: float | None = None) -> JsonObject:
    """The plane of e and w: the loss, where each start ends, flow lines, and the critical points."""
    form = form_of(key)
    at = form.first if third is None else third
    _chosen(p, q, at)
    alone, rate = bit_chain.alone(p, q), bit_chain.rate(p, q)
    side = np.linspace(-EDGE, EDGE, SURFACE)
    e, w = np.meshgrid(side, side)
    loss = bit_chain.profile(form.contrast(e, w, at), p, q)
    fine = np.linspace(-EDGE, EDGE, BASINS)
    stuck = form.trapped(*np.meshgrid(fine, fine), at, p, q)
    note = f" The plane is the slice {form.third} = {at:g}; along the way from the start {form.third} changes too."
    return {
        "form": key,
        "title": form.title,
        "third": None if form.third is None else {"name": form.third, "value": at, "means": form.means},
        "p": p,
        "q": q,
        "alone": alone,
        "rate": rate,
        "contrast": float(bit_chain.contrast(p, q)),
        "edge": EDGE,
        "loss": np.round(loss, 6).tolist(),  # [w, e]
        "trapped": [row.tobytes().decode() for row in np.where(stuck, b"1", b"0")],  # [w, e]
        "share": float(stuck.mean()),
        "lines": _lines(form, at, p, q),
        "goals": _goals(form, at, p, q),
        "critical_points": critical_points(key, p, q, at),
        "caption": _plane_caption(form, at, p, q) + (note if form.third else ""),
    }


def _lines(form: LowRankForm, at: float, p: float, q: float) -> list[list[list[float]]]:
    """Curves along the flow, as far as it stays in the plane, the direction of each its own."""
    side = np.linspace(-EDGE, EDGE, SEEDS + 1)[:-1] + EDGE / SEEDS
    middle = np.stack([*np.meshgrid(side, side), np.full((SEEDS, SEEDS), at)]).reshape(3, -1)
    points = [middle[:2]]
    for way in (-1.0, 1.0):
        point = middle
        for _ in range(STRIDES):
            point = _stride(form, point, p, q, way * STRIDE)
            points = [point[:2], *points] if way < 0 else [*points, point[:2]]
    lines: list[list[list[float]]] = np.round(np.stack(points).transpose(2, 0, 1), 3).tolist()
    return lines


def _stride(form: LowRankForm, point: Array, p: float, q: float, length: float) -> Array:
    """One step of a given length along the part of the flow that stays in the plane; at a critical point, none."""

    def unit(where: Array) -> Array:
        down = form.downhill(where, p, q)
        down[2] = 0.0
        norm = np.linalg.norm(down, axis=0)
        return np.where(norm > MIN_GRADIENT, down / np.maximum(norm, MIN_GRADIENT), 0.0)

    half = point + length / 2 * unit(point)
    return point + length * unit(half)


def _goals(form: LowRankForm, at: float, p: float, q: float) -> list[list[list[float]]]:
    """The curves in the plane on which the contrast is the right one: the loss is the entropy rate there."""
    w = np.concatenate(
        [np.linspace(-EDGE, bit_chain.CRITICAL, 121)[:-1], np.linspace(bit_chain.CRITICAL, EDGE, 161)[1:]]
    )
    f = bit_chain.contrast(p, q) / bit_chain.gain(w)
    if form.key == "untied":
        roots = [f / at] if at else []
    else:
        square = f / (1 + at) if form.key == "attention" and at != -1 else f
        with np.errstate(invalid="ignore"):
            root = np.sqrt(square)
        roots = [-root, root] if not (form.key == "attention" and at == -1) else []
    goals = []
    for root in roots:
        inside = np.isfinite(root) & (abs(root) <= 1.2 * EDGE)
        for part in np.split(np.arange(len(w)), np.flatnonzero(np.diff(inside.astype(int))) + 1):
            if len(part) > 1 and inside[part[0]]:
                goals.append(np.round(np.stack([root[part], w[part]], axis=1), 3).tolist())
    return goals


def critical_points(key: str, p: float, q: float, third: float) -> list[JsonObject]:
    """Return the critical points of the flow: their names, kinds and losses."""
    form = form_of(key)
    alone, rate = bit_chain.alone(p, q), bit_chain.rate(p, q)
    where = {"tied": "e² (1 + 2w|w|)", "attention": "e² (1 + 2w|w|) (1 + c)", "untied": "e a (1 + 2w|w|)"}[key]
    goal = f"{where} = {bit_chain.contrast(p, q):.3g}".replace("-", "−")
    minima = [{"name": "the last bit is read", "where": goal, "kind": "global minimum", "loss": rate, "w": None}]
    if abs(p + q - 1) < EVEN:
        return [minima[0] | {"name": "the last bit says nothing", "where": f"{where} = 0"}]
    if key == "untied":
        here = "" if third == 0 else f"; not in this slice, which has a = {third:g}"
        return [*minima, _critical_point("e = a = 0" + here, "saddle", alone, [-EDGE, EDGE] if third == 0 else None)]
    up = (1 - p - q) * (1 + third if form.third else 1)  # the sign of what e² is to become, times the gain
    for low, high, sign in ((bit_chain.CRITICAL, EDGE, 1), (-EDGE, bit_chain.CRITICAL, -1)):
        kind = "bad local minimum" if up * sign < 0 else "saddle"
        at = f"e = 0, w {'>' if sign > 0 else '<'} −0.707"
        minima.append(_critical_point(at, kind if up else "saddle", alone, [low, high]))
    return [*minima, _critical_point("e = 0, w = −0.707", "saddle", alone, [bit_chain.CRITICAL, bit_chain.CRITICAL])]


def _critical_point(where: str, kind: str, loss: float, w: list[float] | None) -> JsonObject:
    return {"name": "the input is ignored", "where": where, "kind": kind, "loss": loss, "w": w}


def path(key: str, p: float, q: float, e: float, w: float, third: float | None = None) -> JsonObject:
    """The gradient flow from one start: its way, its loss over time, and the kind of critical point where it ends."""
    from scipy.integrate import solve_ivp

    form = form_of(key)
    at = form.first if third is None else third
    _chosen(p, q, e, w, at)

    def down(_: float, point: Array) -> Array:
        return form.downhill(point, p, q)

    times = np.concatenate([[0.0], UNTIL * np.logspace(-7, 0, MOMENTS)])
    solved = solve_ivp(down, (0.0, UNTIL), [e, w, at], method="LSODA", t_eval=times, rtol=1e-8, atol=1e-11)
    if not solved.success:
        raise InputError(f"the flow from e = {e:g}, w = {w:g} can't be followed: begin elsewhere")
    way = solved.y
    speed = np.linalg.norm(form.downhill(way, p, q), axis=0)
    last = int(np.argmax(speed <= MIN_GRADIENT)) if (speed <= MIN_GRADIENT).any() else len(times) - 1
    loss = bit_chain.profile(form.contrast(*way), p, q)[: last + 1]
    end = ending(form, e, w, at, p, q)
    converged = bool(speed[last] <= MIN_GRADIENT)
    return {
        "start": {"e": e, "w": w, "third": at},
        "end": {"e": float(way[0, last]), "w": float(way[1, last]), "third": float(way[2, last])},
        "kind": end,
        "converged": converged,
        "times": [float(f"{t:.4g}") for t in times[: last + 1]],
        "loss": [float(f"{value:.7g}") for value in loss],
        "way": np.round(way[:2, : last + 1].T, 4).tolist(),
        "caption": _path_caption(form, e, w, at, p, q, end, float(loss[-1]), converged),
    }


def ending(form: LowRankForm, e: float, w: float, third: float, p: float, q: float) -> str:
    """The kind of critical point where the flow from a start ends."""
    if not form.trapped(e, w, third, p, q):
        return "global minimum"
    if form.key == "untied":
        return "saddle"
    curvature = bit_chain.gain(w) * (1 + third) * (p + q - 1)  # of the loss along e, at e = 0
    closed = w >= 0 or float(bit_chain.energy(e, w)) < bit_chain.SADDLE
    return "bad local minimum" if curvature > 0 and closed else "saddle"


def _plane_caption(form: LowRankForm, at: float, p: float, q: float) -> str:
    alone, rate = bit_chain.alone(p, q), bit_chain.rate(p, q)
    if abs(p + q - 1) < EVEN:
        return f"p + q = 1: the last bit says nothing about the next, and no loss is below H(π) = {alone:.4f} nats."
    above = p + q > 1
    first = f"p + q = {p + q:.2f} is {'above' if above else 'below'} 1"
    if form.key == "untied":
        return (
            f"{first}. Without tying, ignoring the input (e = a = 0, loss H(π) = {alone:.4f}) is a saddle on both "
            f"sides of p + q = 1: every start leads to the entropy rate {rate:.4f}, but those on the lines e = ±a."
        )
    small = "is a bad local minimum" if above != (1 + at < 0 and form.third is not None) else "is a saddle"
    return (
        f"{first}: ignoring the input, at e = 0 and w > −0.707 where small starts lie, {small}. Its loss is "
        f"H(π) = {alone:.4f} nats a bit, {alone - rate:.4f} above the entropy rate {rate:.4f}."
    )


def _path_caption(
    form: LowRankForm, e: float, w: float, at: float, p: float, q: float, end: str, loss: float, converged: bool
) -> str:
    start = f"e = {e:.2f}, w = {w:.2f}" + (f", {form.third} = {at:.2f}" if form.third else "")
    above = loss - bit_chain.rate(p, q)
    reads = end == "global minimum" and abs(p + q - 1) >= EVEN
    what = "reads the last bit" if reads else "ignores the input, and predicts the frequency of 1"
    still = "" if converged else f"; it is still on its way at time {UNTIL:,.0f}"
    return (
        f"From {start} the flow leads to a {end}: the network {what}. "
        f"Its loss is {loss:.4f}, {above:.4f} above the entropy rate{still}."
    )


@cache
def runs() -> JsonObject:
    """All recorded training runs, from bit_chain_runs.json."""
    data: JsonObject = json.loads(FILE.read_text(encoding="utf-8"))
    return data


def nearest(form: str, p: float, q: float) -> JsonObject:
    """The networks of the recorded chain that is nearest to (p, q); chains lie alike on both sides of p + q = 1."""
    every = runs()
    chains = sorted({(one["p"], one["q"]) for one in every["chains"]})
    near = min(chains, key=lambda chain: math.dist(chain, (p, q)))
    kinds = KINDS.get(form, ())
    matches = [one for kind in kinds for one in every["chains"] if (one["p"], one["q"]) == near and one["kind"] == kind]
    about = {key: value for key, value in every.items() if key != "chains"}
    return {"p": near[0], "q": near[1], "kinds": matches, **about}
