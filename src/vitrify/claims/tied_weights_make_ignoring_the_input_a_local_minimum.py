r"""With tied weights and p + q > 1, ignoring the input is a local minimum of the loss; without tying it is a saddle.

Statement: A one-layer transformer predicts a Markov chain of bits with $P(1 \mid 0) = p$ and $P(0 \mid 1) = q$. It
embeds the bit $x_n$ as $x_n e$ plus a position vector, and its logit is $\langle a, z_n \rangle + b$; tied weights
means $a = e$. Let $\theta_\pi$ be any point with $e = a = 0$ and output $\pi_1 = p/(p+q)$. For all $p + q \ne 1$ the
gradient at $\theta_\pi$ is zero and the loss is the entropy $H(\pi)$ of a single bit; at another point $\theta_\star$
the gradient is zero and the loss is the entropy rate. With tied weights and $p + q > 1$ a $\theta_\pi$ is a local
minimum, otherwise a saddle. Where all weights but $b$ are zero, the Hessian at $\theta_\pi$ has $d + 1$ positive and no
negative eigenvalues in the first case ($d$ is the width), and $d$ negative ones in the second.
Why: At $e = a = 0$ the logit is $b$ whatever the other weights are, so only derivatives by $b$, $e$ and $a$ matter.
Since $E[(\pi_1 - x_{n+1})\,x_n] = \pi_0 \pi_1 (p + q - 1)$, the Hessian in $(b, e)$ of tied weights is $\pi_0 \pi_1
[[1, \bar u], [\bar u, \overline{uu^\top} + 2 (p+q-1) I]]$ when attention and MLP are zero; $u$ are the position
vectors, $\bar u$ is their mean. Without tying, $p + q - 1$ stands off the diagonal, between $a$ and $e$, so the matrix
is indefinite whatever its sign.
Not checked: Larger widths and contexts, networks with LayerNorm, and more than one layer. A semidefinite Hessian and
random nearby points do not prove a local minimum. The authors' proofs were not read; the formulas were derived again.
Source: Makkuva et al. 2024, arXiv 2402.04161 [S]; for the rank-one form, Makkuva et al. 2024, arXiv 2406.03072 [S].
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.protocol.planning import Axis, Plan, Statement
from vitrify.claims.trials import minima
from vitrify.claims.trials.minima import KINDS, MAX_ERROR, MIN_CURVE, above
from vitrify.claims.trials.trial import Criterion, Domain, Evidence, Measured, Method, evidence
from vitrify.learn import bit_chain
from vitrify.learn.figures import reference_line, sheet

MAX_HESSIAN_ERROR = 1e-10
RIVAL_BORDER, RIVAL_MINIMA, RIVAL_FACTOR = 0.1, 1.3, 0.99  # shift of the border; p + q of minima; of p + q - 1
AT = "θ_π, with zero and with random weights,"
PLAN = Plan(
    version=1,
    question="Is ignoring the input a local minimum of the loss with tied weights, and a saddle without?",
    statements={
        "stationary": Statement(
            "at θ_π and at θ* the gradient is zero, and the loss is H(π) and the entropy rate",
            f"largest entry of the gradient and error of the loss ≤ {MAX_ERROR:g}",
            f"θ_π is only nearly stationary: it has the gradient of a point at the distance {minima.OFF:g}",
        ),
        "tied": Statement(
            "with tied weights θ_π is a local minimum if p + q > 1, and a saddle if p + q < 1",
            f"{AT} has no negative and d + 1 positive eigenvalues if p + q > 1, else d negative ones ≤ −{MIN_CURVE:g} "
            f"and 1 positive; {minima.POINTS} points within {minima.MAX_DISTANCE:g} are not lower, or a step goes down",
            f"the border between minimum and saddle is p + q = {1 - RIVAL_BORDER:g} or {1 + RIVAL_BORDER:g}",
        ),
        "untied": Statement(
            "without tying θ_π is a saddle on both sides of p + q = 1",
            f"{AT} has d negative eigenvalues ≤ −{MIN_CURVE:g} and d + 1 positive ones; a step goes down",
            f"it is a minimum if p + q > {RIVAL_MINIMA:g}",
        ),
        "Hessian": Statement(
            "the Hessian at θ_π is that of the formula, where other weights than b and positions are zero",
            f"largest error of an entry ≤ {MAX_HESSIAN_ERROR:g}",
            f"the term with p + q − 1 has the factor {RIVAL_FACTOR:g}",
        ),
        "closed form": Statement(
            "the loss of tied weights of rank one has its closed form in e, w and b",
            f"error of losses at {len(minima.LOW_RANK)} points, and of values and slopes at the best b ≤ {MAX_ERROR:g}",
            "the hidden units add the square of w whatever its sign",
        ),
    },
    units="chain (p, q), drawn by its number, with positions and weights of its own",
    judged=range(100, 164),
    explored=range(32),
    stopping="nothing is trained",
    scale={
        "d_model": Axis("4", "any"),
        "tokens": Axis("6", "any"),
        "chains": Axis("64, drawn", "all"),
    },
    chosen="Most chains are near p + q = 1, where a rival border differs.",
)


def subjects() -> Subjects:
    yield from _subjects(3, 4, PLAN.explored[:12])


def large() -> Subjects:
    yield from _subjects(4, 6, PLAN.judged)


def _subjects(d: int, tokens: int, numbers: Sequence[int]) -> Subjects:
    """With and without tying, on the same chains."""
    chains, bits = tuple(map(minima.chain, numbers)), tokens + 1
    count, settings = len(chains) << bits, {"d": d, "chains": len(chains)}
    domain = Domain("strings of bits", Method.EXHAUSTIVE, count, shortest=bits, longest=bits, settings=settings)
    for tied in (True, False):
        data = {"sizes": minima.ChainSizes(tied, d, tokens), "numbers": tuple(numbers), "chains": chains}
        yield Subject("tied" if tied else "untied", data=data | {"domain": domain})


def measure(subject: Subject) -> Measured:
    sizes, numbers, chains = (subject.data[name] for name in ("sizes", "numbers", "chains"))
    closed = {"closed form": minima.closed_form_errors(sizes, chains)} if sizes.tied else {}
    return {**minima.measured(sizes, numbers, chains), "slices": minima.slices(sizes), **closed}


def judge(subject: Subject, measured: Measured) -> Evidence:
    sizes, chains, judged = subject.data["sizes"], subject.data["chains"], Criterion.judged
    least = partial(judged, at_most=MAX_ERROR)
    names = {f"largest gradient entry at {point}": f"slope at {point}" for point in ("θ_π", "θ*")}
    names |= {f"error of the loss at {point}": f"loss at {point}" for point in ("θ_π", "θ*")}
    criteria = [least(name, measured[what], statement="stationary") for name, what in names.items()]
    criteria += [each for over in (False, True) for each in minima.kind_criteria(sizes, measured, chains, over)]
    errors, name = measured["Hessian"], "error of the Hessian's formula"
    criteria.append(judged(name, errors, at_most=MAX_HESSIAN_ERROR, statement="Hessian"))
    if sizes.tied:
        criteria.append(least("error of the closed form", measured["closed form"].ravel(), statement="closed form"))
    scale = np.array([minima.variance(*chain) for chain in chains])
    lines = [{"p": p, "q": q, "above": each} for (p, q), each in zip(minima.SLICED, measured["slices"], strict=True)]
    slices = {"along": minima.ALONG, "lines": lines}
    figure = {"sum": np.sum(chains, axis=1), "smallest": measured["smallest"][:, 0] / scale, "slices": slices}
    return evidence(subject, criteria, figure)


def nearly_stationary(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return gradients at θ_π that are those near it, of chains drawn anew."""
    slopes = rng.choice(measured["slope off θ_π"], size=len(subject.data["chains"]))
    return {**measured, "slope at θ_π": slopes}


def border_elsewhere(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measures in which chains between p + q = 1 and another border are as drawn ones of the other side."""
    chains = subject.data["chains"]
    over, moved = above(chains), above(chains, 1 + rng.choice([-1, 1]) * RIVAL_BORDER)
    chosen = np.arange(len(chains))
    for side in (False, True):
        chosen[(moved == side) & (over != side)] = rng.choice(np.flatnonzero(over == side))
    return {**measured, **{name: measured[name][chosen] for name in KINDS}}


def minima_far_above(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measures in which chains with p + q far above 1 have a minimum, up to rounding."""
    planted = dict.fromkeys(KINDS, 0.0) | {"positive": subject.data["sizes"].d + 1.0}
    changed = {name: measured[name].copy() for name in KINDS}
    for name, value in planted.items():
        changed[name][above(subject.data["chains"], RIVAL_MINIMA)] = value
    rounding = 1e-16 * rng.normal(size=changed["smallest"].shape)
    return {**measured, **changed, "smallest": changed["smallest"] + rounding}


def other_factor(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return errors of the Hessian where p + q - 1 has another factor, beside those of rounding, drawn anew."""
    terms = np.array([minima.variance(p, q) * abs(p + q - 1) for p, q in subject.data["chains"]])
    errors = (1 - RIVAL_FACTOR) * (1 + subject.data["sizes"].tied) * terms
    return {**measured, "Hessian": errors + rng.choice(measured["Hessian"], size=len(errors))}


def squared(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return errors of the closed form where the hidden units add the square of w, beside those of rounding."""
    errors, (p, q) = measured["closed form"].copy(), np.array(subject.data["chains"]).T
    rng.shuffle(errors, axis=1)
    for at, (e, w, b) in enumerate(minima.LOW_RANK):
        errors[at] += abs(bit_chain.reduced(e, w, b, p, q) - bit_chain.reduced(e, abs(w), b, p, q))
    return {**measured, "closed form": errors}


def draw(figures: Figures) -> Figure:
    figure, ((left, right),) = sheet(1, 2, "Ignoring the input: minimum or saddle?", 5.2, 3.8)
    line = np.linspace(0.05, 1.95, 100)
    left.plot(line, np.minimum(2 * (line - 1), 0), color="C0", linewidth=1, label="theory, tied: min(2(p+q−1), 0)")
    left.plot(line, -np.abs(line - 1), color="C1", linewidth=1, label="theory, untied: −|p+q−1|")
    for (name, data), color, mark in zip(figures.items(), ("C0", "C1"), ("o", "x"), strict=True):
        left.plot(data["sum"], data["smallest"], mark, color=color, markersize=5, label=f"{name}, exact Hessian")
        for each, style in zip(data["slices"]["lines"], ("-", "--"), strict=True):
            label = f"{name}, p = {each['p']:g}, q = {each['q']:g}"
            wide = {"linewidth": 4, "alpha": 0.5} if name == "tied" else {}
            right.plot(data["slices"]["along"], each["above"], style, color=color, label=label, **wide)
    left.axvline(1, color="black", linestyle=":", linewidth=1)
    left.set(xlabel="p + q", ylabel="smallest eigenvalue at θ_π, in units of π₀π₁")
    reference_line(right, 0, "H(π): loss at θ_π")
    right.set(xlabel="distance from θ_π along e (tied), or along e and ±a (untied)", ylim=(-0.15, 0.3))
    right.set_ylabel("loss above H(π) (nats per symbol)")
    for axes in (left, right):
        axes.legend(fontsize=7)
    return figure


NULL_FUNCTIONS = nearly_stationary, border_elsewhere, minima_far_above, other_factor, squared
NULLS = dict(zip(PLAN.statements, NULL_FUNCTIONS, strict=True))
CLAIM = Claim.planned(
    PLAN, subjects, judge, NULLS, large, draw, measure, id="L1", standing="theorem", budget_seconds=120
)
