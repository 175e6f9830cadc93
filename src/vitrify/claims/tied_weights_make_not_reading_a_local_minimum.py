r"""With tied weights and p + q > 1, saying how often a 1 comes up is a local minimum; without tying it is a saddle.

Statement: A one-layer transformer reads a chain of bits that leaves 0 with probability p and 1 with probability q. At
$\theta_\pi$ it reads nothing ($e = a = 0$) and says $\pi_1 = p/(p+q)$. The gradient there is zero and the loss is
$H(\pi)$; at $\theta_\star$ the gradient is zero too and the loss is the entropy rate. With tied weights ($a = e$) and
$p + q > 1$ the Hessian at $\theta_\pi$ is positive semidefinite with $d + 1$ positive eigenvalues; with tied weights
and $p + q < 1$ it has $d$ negative ones; without tying it has $d$ negative ones wherever $p + q \ne 1$.
Why: At $e = 0$ the logit is $b$ whatever the other weights are, so only derivatives by $b$, $e$ and $a$ matter. As
$E[(\pi_1 - x_{n+1})\,x_n] = \pi_0 \pi_1 (p + q - 1)$, the Hessian in $(b, e)$ is
$\pi_0 \pi_1 [[1, \bar p], [\bar p, \overline{pp^\top} + 2 (p+q-1) I]]$ when attention and units are zero; without tying
the same number stands off the diagonal, between $a$ and $e$, which makes it indefinite whatever its sign.
Checked: The population loss over all strings in float64, at points (p, q) on both sides of p + q = 1: loss and slope at
$\theta_\pi$ (all weights that can't matter zero but the places, and all random) and at $\theta_\star$, the Hessian
against the formula, the signs of its spectrum; losses of random points near a minimum, and of one step down from a
saddle; the loss of the low-rank form against its closed form in (e, w, b), and the best b with its slope.
Source: Makkuva et al. 2024, arXiv 2402.04161, and, for the low-rank form, Makkuva et al. 2024, arXiv 2406.03072 [S]
(proofs not read; the formulae were derived again).
Saboteur: The weights are tied where the subject says that they are not, and the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims import _chain
from vitrify.claims._learned import Asked, decided
from vitrify.claims.catalogue import Claim, Subject
from vitrify.learn.landscape import Landscape, float64, population_loss, strings
from vitrify.learn.models.scalar import ScalarFamily, low_rank
from vitrify.sandboxes.catalogue import Row
from vitrify.sandboxes.markov import Markov

PLACES = 0.1  # the size of the places at θ_π
ANYTHING = 0.05  # the size of all weights where none is zero
EXACT, FORMULA = 1e-12, 1e-10  # for losses and slopes; for the Hessian
CLEARLY = 1e-3  # how far below zero an eigenvalue must be to be called negative
NEAR, STEP = 0.1, 0.05  # how far random points lie from θ_π, and how long a step down is
MORE = ((0.05, 0.05), (0.2, 0.3), (0.5, 0.8), (0.95, 0.95))
NINE = tuple(number / 10 for number in range(1, 10))
SHAPES = ((0.7, 0.3, 0.2), (1.5, -1.2, -0.5), (0.2, -0.7, 1.0))  # (e, w, b)


@dataclass(frozen=True)
class Settings:
    """What is looked at: the network's sizes, points (p, q), and whether the claim and the network tie the weights."""

    said: bool
    tied: bool
    d: int = 3
    tokens: int = 4
    values: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)  # of p and of q
    nearby: int = 200

    @property
    def points(self) -> list[tuple[float, float]]:
        """All (p, q) of the grid off the line, those with p + q < 1 first."""
        grid = {(p, q) for p in self.values for q in self.values if abs(p + q - 1) > 1e-9} | set(MORE)
        return sorted(grid, key=lambda point: (sum(point) > 1, point))


def subjects() -> Iterator[Subject]:
    for tied in (True, False):
        yield Subject("tied" if tied else "untied", data={"settings": Settings(tied, tied)})


def paper() -> Iterator[Subject]:
    for subject in subjects():
        larger = replace(subject.data["settings"], d=4, tokens=6, values=NINE)
        yield replace(subject, data={"settings": larger})


def sabotage(subject: Subject) -> Subject:
    settings = subject.data["settings"]
    return replace(subject, data={"settings": replace(settings, tied=not settings.tied)})


@cache
def landscape(tied: bool, d: int, tokens: int) -> tuple[Any, Landscape]:
    """The network and its population loss; with tied weights there is no coordinate `a`."""
    family, chain = ScalarFamily(d_model=d, tied=float(tied)), Markov(length=tokens + 1)
    net, loss = family.architecture(chain), population_loss(family, chain)
    nothing = np.zeros(d)

    def over(parameters: Mapping[str, Any], row: Any) -> Any:
        return loss({"a": nothing, **parameters}, row)

    return net, Landscape.of(over, own(_chain.blank(net), tied), all_strings(tokens))


@cache
def all_strings(tokens: int) -> Row:
    """Every string of one bit more, with weights that are replaced by those of each chain."""
    return strings(Markov(length=tokens + 1))


@cache
def many(land: Landscape) -> Any:
    """The loss at many points at once."""
    return jax.jit(jax.vmap(land.functions[0], (0, None)))


def own(parameters: Mapping[str, Any], tied: bool) -> dict[str, Any]:
    """Those parameters that there are with or without tying."""
    return {name: value for name, value in parameters.items() if not (tied and name == "a")}


def expected(land: Landscape, places: Any, p: float, q: float, tied: bool) -> Any:
    """The Hessian at θ_π by its formula, with these places and all other weights zero."""
    found, weight = np.zeros((len(land.names),) * 2), _chain.ones(p, q) * _chain.ones(q, p)
    where = {name: [at for at, one in enumerate(land.names) if one.split("[")[0] == name] for name in ("b", "a", "e")}
    read = where["e"] if tied else where["a"]
    found[where["b"], where["b"]] = 1
    found[where["b"], read] = found[read, where["b"]] = places.mean(axis=0)
    found[np.ix_(read, read)] += places.T @ places / len(places)
    found[read, where["e"]] += p + q - 1
    found[where["e"], read] += p + q - 1
    return weight * found


def at_point(settings: Settings, p: float, q: float) -> dict[str, Any]:
    """All that is measured for one chain."""
    tied = settings.tied
    net, whole = landscape(tied, settings.d, settings.tokens)
    land = whole.over(_chain.weighted(whole.data, p, q))
    places = _chain.blank(net, PLACES)["pos_embed.W_pos"]
    start = own(_chain.unread(net, p, q, 0.0) | {"pos_embed.W_pos": places}, tied)
    here, any_ = land.look(start), land.look(own(_chain.unread(net, p, q, ANYTHING), tied))
    best = own(_chain.solved(net, p, q), tied)
    middle, rng = land.vector(start), np.random.default_rng(0)
    around = rng.normal(size=(settings.nearby, len(middle)))
    around = middle + NEAR * rng.random((len(around), 1)) * around / np.linalg.norm(around, axis=1, keepdims=True)
    down = middle + STEP * here.vectors[:, 0]
    with float64():
        lowest = float(many(whole)(jnp.asarray(around), land.data).min())
    return {
        "slope at θ_π": max(here.slope, any_.slope),
        "loss at θ_π": max(abs(here.loss - _chain.alone(p, q)), abs(any_.loss - _chain.alone(p, q))),
        "slope at θ*": float(np.abs(land.gradient(best)).max()),
        "loss at θ*": abs(land.loss(best) - _chain.rate(p, q)),
        "Hessian": float(np.abs(land.hessian(start) - expected(land, places, p, q, tied)).max()),
        "negative": (here.counts[0], any_.counts[0]),
        "positive": (here.counts[2], any_.counts[2]),
        "smallest": (here.values[0], any_.values[0]),
        "nearby": lowest - here.loss,
        "down": land.loss(down) - here.loss,
    }


def closed_form(settings: Settings) -> list[float]:
    """How far the low-rank form is from its closed form, and losses and slopes of the best bias from theirs."""
    net, land = landscape(True, settings.d, settings.tokens)
    p, q = np.array(settings.points).T
    alone, rate = (np.vectorize(one)(p, q) for one in (_chain.alone, _chain.rate))
    apart = []
    with float64():
        for shape in SHAPES:
            point = own(_chain.blank(net) | low_rank(net, *shape[:2]) | {"b": shape[2]}, True)
            full = [land.over(_chain.weighted(land.data, *each)).loss(point) for each in settings.points]
            apart.append(full - np.asarray(_chain.reduced(*shape, jnp.asarray(p), jnp.asarray(q))))
        sloped = jax.jit(jax.vmap(jax.value_and_grad(_chain.profile)))
        none, slope = sloped(jnp.zeros(len(p)), p, q)
        best, flat = sloped(jnp.asarray(_chain.contrast(p, q)), p, q)
        apart += [none - alone, best - rate, flat, slope - _chain.ones(p, q) * _chain.ones(q, p) * (p + q - 1)]
    return [float(value) for value in np.abs(np.concatenate(apart))]


def check(subject: Subject) -> Evidence:
    settings: Settings = subject.data["settings"]
    d, points = settings.d, settings.points
    found = [at_point(settings, p, q) for p, q in points]
    sides = [(p + q > 1, one) for (p, q), one in zip(points, found, strict=True)]

    def all_of(name: str, over: bool | None = None) -> list[Any]:
        return [one[name] for side, one in sides if over is None or side == over]

    def both(name: str, over: bool) -> list[float]:
        """With all weights zero that may be, and with all random."""
        return [float(value) for pair in all_of(name, over) for value in pair]

    asked = [Asked(f"largest {name}", all_of(name), most=EXACT) for name in ("slope at θ_π", "slope at θ*")]
    asked += [Asked(f"error of the {name}", all_of(name), most=EXACT) for name in ("loss at θ_π", "loss at θ*")]
    for over, text in ((False, "p + q < 1"), (True, "p + q > 1")):
        minimum = settings.said and over
        negative, positive = (0, d + 1) if minimum else (d, 1 if settings.said else d + 1)
        for name, count in (("negative", negative), ("positive", positive)):
            asked.append(Asked(f"{name} eigenvalues, {text}", both(name, over), least=count, most=count))
        if minimum:
            asked.append(Asked(f"smallest eigenvalue, {text}", both("smallest", over), least=-EXACT))
            asked.append(Asked(f"loss nearby above θ_π, {text}", all_of("nearby", over), least=-EXACT))
        else:
            asked.append(Asked(f"smallest eigenvalue, {text}", both("smallest", over), most=-CLEARLY))
            asked.append(Asked(f"loss one step down, {text}", all_of("down", over), most=-EXACT))
    asked.append(Asked("error of the Hessian's formula", all_of("Hessian"), most=FORMULA))
    if settings.said:
        asked.append(Asked("error of the closed form", closed_form(settings), most=EXACT))
    domain = f"all strings of {settings.tokens + 1} bits, d = {d}, {len(points)} points (p, q)"
    shown = {
        "sum": [p + q for p, q in points],
        "smallest": [
            one["smallest"][0] / (_chain.ones(p, q) * _chain.ones(q, p))
            for (p, q), one in zip(points, found, strict=True)
        ],
        "slices": slices(settings),
    }
    return replace(decided(asked, domain=domain, seed=0, shown=shown), method="exhaustive")


def slices(settings: Settings) -> dict[str, Any]:
    """The loss above H(π) along the direction from θ_π that curves down most, or up least among e, for two chains."""
    net, land = landscape(settings.tied, settings.d, settings.tokens)
    along = np.linspace(-1.5, 1.5, 31)
    unit = np.ones(settings.d) / np.sqrt(settings.d)
    found: dict[str, Any] = {"along": along, "lines": []}
    for p, q in ((0.2, 0.3), (0.5, 0.8)):
        here = land.over(_chain.weighted(land.data, p, q))
        sign = 1.0 if p + q < 1 else -1.0  # which way of (e, a) leads down without tying
        start = own(_chain.unread(net, p, q, 0.0), settings.tied)
        moved = [start | own({"e": t * unit, "a": sign * t * unit}, settings.tied) for t in along]
        found["lines"].append({"p": p, "q": q, "above": [here.loss(point) - _chain.alone(p, q) for point in moved]})
    return found


def draw(shown: Mapping[str, Any]) -> Any:
    from vitrify.learn.figures import level, sheet

    figure, planes = sheet(1, 2, "Saying how often a 1 comes up: minimum or saddle?", 5.2, 3.8)
    left, right = planes[0]
    line = np.linspace(0.05, 1.95, 100)
    left.plot(line, np.minimum(2 * (line - 1), 0), color="C0", linewidth=1, label="theory, tied: min(2(p+q−1), 0)")
    left.plot(line, -np.abs(line - 1), color="C1", linewidth=1, label="theory, untied: −|p+q−1|")
    for (name, one), colour, mark in zip(shown.items(), ("C0", "C1"), ("o", "x"), strict=True):
        left.plot(one["sum"], one["smallest"], mark, color=colour, markersize=5, label=f"{name}, exact Hessian")
        for each, style in zip(one["slices"]["lines"], ("-", "--"), strict=True):
            label = f"{name}, p = {each['p']:g}, q = {each['q']:g}"
            wide = {"linewidth": 4, "alpha": 0.5} if name == "tied" else {}
            right.plot(one["slices"]["along"], each["above"], style, color=colour, label=label, **wide)
    left.axvline(1, color="black", linestyle=":", linewidth=1)
    left.set_xlabel("p + q")
    left.set_ylabel("smallest eigenvalue at θ_π, in units of π₀π₁")
    left.legend(fontsize=7)
    level(right, 0, "H(π): loss at θ_π")
    right.set_xlabel("distance from θ_π along e (tied), or along e and ±a (untied)")
    right.set_ylabel("loss above H(π) (nats per symbol)")
    right.set_ylim(-0.15, 0.3)
    right.legend(fontsize=7)
    return figure


CLAIM = Claim(row="L1", status="proved", subjects=subjects, paper=paper, check=check, sabotage=sabotage, draw=draw)
