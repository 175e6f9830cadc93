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
Checked: The exact population loss in float64, as a sum over all bit strings: $d = 3$ with 4 tokens at quick scale, $d =
4$ with 6 tokens at large scale, on a grid of $(p, q)$ and four further points. Measured are loss and gradient at
$\theta_\pi$ (other weights zero except position vectors, or all random and small) and at $\theta_\star$; the Hessian
against its formula and the signs of its eigenvalues; the loss at 200 random points within a distance of 0.1 of a
minimum, and one step along the lowest eigenvector from a saddle; for tied weights of rank one, given by numbers $e$ and
$w$, the loss against its closed form in $(e, w, b)$.
Not checked: Larger widths and contexts, networks with LayerNorm, and more than one layer. A semidefinite Hessian and
random nearby points do not prove a local minimum. The authors' proofs were not read; the formulas were derived again.
Source: Makkuva et al. 2024, arXiv 2402.04161 [S]; for the rank-one form, Makkuva et al. 2024, arXiv 2406.03072 [S].
Saboteur: The network with untied weights is presented as the tied one, and the tied one as untied.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from vitrify.claims.catalogue import Claim, Figure, Figures, Subject, Subjects
from vitrify.claims.trials import minima
from vitrify.claims.trials.trial import Criterion, Domain, Evidence, Method, evidence
from vitrify.learn.figures import reference_line, sheet

MAX_ERROR, MAX_HESSIAN_ERROR = 1e-12, 1e-10  # of losses and gradients; of the Hessian
MIN_CURVE = 1e-3  # how far below zero an eigenvalue must be to be called negative
OFF_GRID = ((0.05, 0.05), (0.2, 0.3), (0.5, 0.8), (0.95, 0.95))  # further points (p, q)


def subjects() -> Subjects:
    yield from _subjects(3, 4, (0.1, 0.3, 0.5, 0.7, 0.9))


def large() -> Subjects:
    yield from _subjects(4, 6, tuple(number / 10 for number in range(1, 10)))


def _subjects(d: int, tokens: int, values: tuple[float, ...]) -> Subjects:
    """With and without tying, over all (p, q) off the line p + q = 1, those with p + q < 1 first."""
    grid = {(p, q) for p in values for q in values if abs(p + q - 1) > 1e-9} | set(OFF_GRID)
    points = sorted(grid, key=lambda point: (sum(point) > 1, point))
    count, bits = len(points) << (tokens + 1), tokens + 1
    settings = {"d": d, "points (p, q)": len(points)}
    domain = Domain("strings of bits", Method.EXHAUSTIVE, count, shortest=bits, longest=bits, settings=settings)
    for tied in (True, False):
        data = {"claimed": tied, "tied": tied, "d": d, "tokens": tokens, "points": points, "domain": domain}
        yield Subject("tied" if tied else "untied", data=data)


def sabotage(subject: Subject) -> Subject:
    return subject.with_data(tied=not subject.data["tied"])


def check(subject: Subject) -> Evidence:
    tied, d, tokens, points, claimed = (subject.data[name] for name in ("tied", "d", "tokens", "points", "claimed"))
    sizes = minima.ChainSizes(tied, d, tokens)
    measured = minima.measured(sizes, points)  # by name: [point], or [point, both kinds of weights]
    above = np.array([p + q > 1 for p, q in points])
    errors = {f"largest gradient entry at {point}": f"slope at {point}" for point in ("θ_π", "θ*")}
    errors |= {f"error of the loss at {point}": f"loss at {point}" for point in ("θ_π", "θ*")}
    criteria = [Criterion.judged(name, measured[what], at_most=MAX_ERROR) for name, what in errors.items()]
    for over, text in ((False, "p + q < 1"), (True, "p + q > 1")):
        own = {name: values[above == over].ravel() for name, values in measured.items()}
        minimum = claimed and over
        counts = {"negative": 0 if minimum else d, "positive": 1 if claimed and not over else d + 1}
        for name, count in counts.items():
            eigenvalues = f"{name} eigenvalues, {text}"
            criteria.append(Criterion.judged(eigenvalues, own[name], at_least=count, at_most=count))
        name, far = (
            ("nearby", "loss near θ_π above that at θ_π") if minimum else ("down", "change of loss one step down")
        )
        smallest, loss = (partial(Criterion.judged, f"{each}, {text}") for each in ("smallest eigenvalue", far))
        if minimum:
            criteria += [smallest(own["smallest"], at_least=-MAX_ERROR), loss(own[name], at_least=-MAX_ERROR)]
        else:
            criteria += [smallest(own["smallest"], at_most=-MIN_CURVE), loss(own[name], at_most=-MAX_ERROR)]
    formula = "error of the Hessian's formula"
    criteria.append(Criterion.judged(formula, measured["Hessian"], at_most=MAX_HESSIAN_ERROR))
    if claimed:
        closed = minima.closed_form_errors(minima.ChainSizes(True, d, tokens), points)
        criteria.append(Criterion.judged("error of the closed form", closed, at_most=MAX_ERROR))
    scale = np.array([minima.variance(p, q) for p, q in points])
    figure = {"sum": np.sum(points, axis=1), "smallest": measured["smallest"][:, 0] / scale}
    return evidence(subject, criteria, {**figure, "slices": minima.slices(sizes)})


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


CLAIM = Claim(subjects, check, sabotage, large, draw, id="L1", standing="theorem", budget_seconds=120)
