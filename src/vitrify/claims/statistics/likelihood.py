r"""Likelihood of a normal linear model whose values are known up to an interval, with a random intercept per unit.

With $a = (low - \eta)/\sigma$ and $b = (high - \eta)/\sigma$, a value contributes $L = \log(\Phi(b) - \Phi(a))$, and an
exact one its density. $L$ is concave in $\eta$, so the posterior of a unit's intercept has one mode.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vitrify.arrays import Array, Bools, Floats, Ints
from vitrify.intervals import CONFIDENCE

NARROW = 1e-4  # intervals below this many sigmas count as their midpoint's density times their width
STEP = 1e-4  # of the differences of the gradient
NEWTON_STEPS = 25
DROP = 20.0  # of the log-posterior of an intercept where its integral ends
REACH_STEPS = 40
MAX_INTERCEPT = 1e3  # in units of tau
MIN_SIGMA = 1e-4  # of the spread of the values


class Fit(NamedTuple):
    """Coefficients and their standard errors, both NaN where unknown, the t quantile of 95 %, and the deviations."""

    values: Floats
    errors: Floats
    quantile: float
    sigma: float
    sigma_unit: float


def fit(ends: Floats, design: Floats, labels: Array | None, min_sigma: float | None, nodes: int) -> Fit:
    """Return the maximum likelihood fit of values between ends [2, value] to a design [value, column]."""
    from scipy.special import stdtrit

    informed = np.isfinite(ends).any(axis=0)
    ends, design = ends[:, informed], design[informed]
    groups = None if labels is None else np.unique(labels[informed], return_inverse=True)[1]
    columns = design.shape[1]
    sure = identified(ends, design) if informed.any() else np.zeros(columns, dtype=bool)
    if not sure.any():
        unknown = np.full(columns, math.nan)
        return Fit(unknown, unknown, math.nan, math.nan, math.nan)
    middle, width = _middle_and_width(ends)
    scale = max(float(middle.std()), width) or 1.0  # of y; a column is in units of its largest entry
    column_scale = np.where(np.any(design, axis=0), np.abs(design).max(axis=0), 1.0)
    floor = max(width / math.sqrt(12) if min_sigma is None else min_sigma, MIN_SIGMA * scale) / scale
    likelihood = Likelihood(ends / scale, design / column_scale, groups, nodes)
    found, free = _maximum(likelihood, middle / scale, floor, sure)
    errors = np.full(len(found), math.nan)
    errors[free] = _errors(likelihood.information(found)[np.ix_(free, free)])
    count, freedom = likelihood.replication()
    shrunk = math.sqrt(count / freedom) if freedom > 0 else math.nan
    return Fit(
        np.where(sure, found[:columns], math.nan) * scale / column_scale,
        errors[:columns] * shrunk * scale / column_scale,
        float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) if freedom > 0 else math.nan,
        math.exp(found[columns]) * scale,
        float(found[-1]) * scale if groups is not None else 0.0,
    )


def _middle_and_width(ends: Floats) -> tuple[Floats, float]:
    """Return the middles of intervals, of half-lines the end, and the median width of the finite intervals."""
    finite = np.isfinite(ends).all(axis=0)
    middle = np.where(finite, 0.0, np.where(np.isfinite(ends[0]), ends[0], ends[1]))
    middle[finite] = ends[:, finite].mean(axis=0)
    return middle, float(np.median(ends[1, finite] - ends[0, finite])) if finite.any() else 0.0


def _maximum(likelihood: Likelihood, middle: Floats, floor: float, sure: Bools) -> tuple[Floats, Bools]:
    """Return the parameters of the greatest likelihood, and which of them are neither unknown nor at a limit."""
    from scipy.optimize import minimize

    columns = len(sure)
    first = np.linalg.lstsq(likelihood.design, middle)[0]
    residual = max(float((middle - likelihood.design @ first).std()), 2 * floor)
    start, limits = [*first, math.log(residual)], [(-1e6, 1e6)] * columns + [(math.log(floor), math.log(1e3))]
    if likelihood.groups is not None:
        start, limits = [*start, residual], [*limits, (1e-3 * residual, 1e3)]  # at tau = 0 the slope vanishes
    result = minimize(
        likelihood.negative,
        np.array(start),
        jac=True,
        method="L-BFGS-B",
        bounds=limits,
        options={"ftol": 1e-14, "gtol": 1e-8, "maxiter": 1000},
    )
    found = np.asarray(result.x, dtype=float)
    free = found > np.array(limits)[:, 0] + 1e-6
    free[:columns] &= sure
    return found, free


def _errors(information: Floats) -> Floats:
    """Return the standard errors, or NaN where the information is not clearly positive definite."""
    eigenvalues, vectors = np.linalg.eigh(information)
    if eigenvalues[0] <= 1e-9 * abs(eigenvalues[-1]):
        return np.full(len(information), math.nan)
    return np.asarray(np.sqrt((vectors**2 / eigenvalues).sum(axis=1)))


def identified(ends: Floats, design: Floats) -> Bools:
    """Return which coefficients no direction of growth leaves as likely or makes likelier, by linear programs."""
    from scipy.optimize import linprog

    up, down = np.isinf(ends[1]), np.isinf(ends[0])
    # A known low end forbids a decrease, a known high one an increase.
    rows = np.concatenate([-design[~down], design[~up]])
    if design.shape[1] == 1:
        return np.array([rows.min() < 0 < rows.max()])
    sure = np.ones(design.shape[1], dtype=bool)
    for j, unit in enumerate(np.eye(design.shape[1])):
        for gain in (unit, -unit):
            growth = linprog(-gain, A_ub=rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1)).fun
            sure[j] &= growth is not None and -growth < 1e-7
    return sure


class Likelihood:
    """The likelihood as a function of the coefficients, log sigma and, with groups, the intercepts' deviation tau."""

    def __init__(self, ends: Floats, design: Floats, groups: Ints | None, nodes: int) -> None:
        self.low, self.high = ends[0][:, None], ends[1][:, None]
        self.design, self.groups = design, groups
        self.exact = self.low == self.high
        points, weights = np.polynomial.legendre.leggauss(nodes // 2)
        self.points, self.weights = (points + 1) / 2, weights / 2  # of [0, 1]
        if groups is not None:
            self.member = (groups == np.arange(groups.max() + 1)[:, None]).astype(float)  # [unit, value]

    def negative(self, parameters: Floats) -> tuple[float, Floats]:
        """Return minus the log-likelihood and its gradient."""
        columns = self.design.shape[1]
        eta, sigma = (self.design @ parameters[:columns])[:, None], math.exp(parameters[columns])
        if self.groups is None:
            value, by_eta, by_log_sigma, _ = self.terms(eta, sigma)
            return -float(value.sum()), -np.append(self.design.T @ by_eta[:, 0], by_log_sigma.sum())
        tau = float(parameters[-1])
        mode = self.mode(eta, sigma, tau)
        reach = self.reach(mode, eta, sigma, tau)
        below, above = reach[:, :1], reach[:, 1:]
        u = mode + np.concatenate([-below * self.points, above * self.points], axis=1)  # [unit, node]
        weights = np.concatenate([below * self.weights, above * self.weights], axis=1)
        value, by_eta, by_log_sigma, _ = self.terms(eta + tau * u[self.groups], sigma)
        joint = self.member @ value - u**2 / 2 + np.log(weights / math.sqrt(2 * math.pi))
        top = joint.max(axis=1, keepdims=True)
        marginal = top + np.log(np.exp(joint - top).sum(axis=1, keepdims=True))
        weight = np.exp(joint - marginal)[self.groups]  # posterior of the nodes, for every value
        gradient = [
            *(self.design.T @ (weight * by_eta).sum(axis=1)),
            (weight * by_log_sigma).sum(),
            (weight * by_eta * u[self.groups]).sum(),
        ]
        return -float(marginal.sum()), -np.array(gradient)

    def mode(self, eta: Floats, sigma: float, tau: float) -> Floats:
        """Return the posterior mode of every unit's intercept, in units of tau."""
        low, high = np.full((2, len(self.member), 1), [[[-MAX_INTERCEPT]], [[MAX_INTERCEPT]]])
        u = np.zeros_like(low)
        for _ in range(NEWTON_STEPS):  # bracketed: the slope falls everywhere
            _, by_eta, _, curvature = self.terms(eta + tau * u[self.groups], sigma)
            slope = tau * (self.member @ by_eta) - u
            bend = 1 - tau**2 * (self.member @ curvature)
            low, high = np.where(slope > 0, u, low), np.where(slope > 0, high, u)
            new = u + slope / bend
            new = np.where((new < low) | (new > high), (low + high) / 2, new)
            done = np.abs(new - u).max() < 1e-9
            u = new
            if done:
                break
        return u

    def reach(self, mode: Floats, eta: Floats, sigma: float, tau: float) -> Floats:
        """Return how far below and above the mode the log-posterior falls by `DROP`, or a little farther [unit, side].

        The prior alone falls by that much within sqrt(2 DROP). Newton's method on a convex function from beyond its
        root stays beyond. At least one standard deviation of the mode's curvature, where rounding hides the fall.
        """
        sides = np.array([-1.0, 1.0])
        value, _, _, curvature = self.terms(eta + tau * mode[self.groups], sigma)
        top, least = self.member @ value - mode**2 / 2, 1 / np.sqrt(1 - tau**2 * (self.member @ curvature))
        distance = np.full((len(mode), 2), math.sqrt(2 * DROP))
        for _ in range(REACH_STEPS):
            u = mode + sides * distance
            value, by_eta, _, _ = self.terms(eta + tau * u[self.groups], sigma)
            excess = top - (self.member @ value - u**2 / 2) - DROP
            step = excess / (sides * (u - tau * (self.member @ by_eta)))
            before, distance = distance, np.maximum(distance - np.where(excess > 0, step, 0), least)
            if np.all(distance > 0.9 * before):
                break
        return distance

    def terms(self, eta: Floats, sigma: float) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the log-probability of every value, its derivatives by eta and log sigma, and the second by eta."""
        from scipy.special import log_ndtr

        a, b = (self.low - eta) / sigma, (self.high - eta) / sigma
        with np.errstate(invalid="ignore", divide="ignore"):
            narrow = (b - a) < NARROW
            flip = a > 0  # the lower tail is the accurate one
            below, above = log_ndtr(np.where(flip, -b, a)), log_ndtr(np.where(flip, -a, b))
            value = np.where(narrow, 0.0, above + np.log(-np.expm1(below - above)))
            at_a, at_b = (np.exp(-0.5 * (z**2 + math.log(2 * math.pi)) - value) for z in (a, b))
            z = (a + b) / 2
            width = np.where(self.exact, 1.0, self.high - self.low)
            density = -0.5 * (z**2 + math.log(2 * math.pi)) + np.log(width / sigma)
        change = at_a - at_b
        moment = np.where(np.isinf(a), 0.0, a) * at_a - np.where(np.isinf(b), 0.0, b) * at_b
        return (
            np.where(narrow, density, value),
            np.where(narrow, z, change) / sigma,
            np.where(narrow, z**2 - 1, moment),
            np.where(narrow, -1.0, moment - change**2) / sigma**2,
        )

    def information(self, parameters: Floats) -> Floats:
        """Return the observed information: central differences of the gradient."""
        steps = STEP * np.eye(len(parameters))
        rows = [self.negative(parameters + step)[1] - self.negative(parameters - step)[1] for step in steps]
        matrix = np.array(rows) / (2 * STEP)
        return np.asarray((matrix + matrix.T) / 2)

    def replication(self) -> tuple[int, int]:
        """Return the number of independent values or units, and its degrees of freedom."""
        count, columns = self.design.shape
        if self.groups is None:
            return count, count - columns
        centered = self.design - (self.member.T / self.member.sum(axis=1)) @ (self.member @ self.design)
        return len(self.member), len(self.member) - (columns - int(np.linalg.matrix_rank(centered, tol=1e-9)))
