"""Estimates over units of replication against SciPy, brute force, and simulations with planted truths."""

from __future__ import annotations

import subprocess
import sys
from typing import Literal

import numpy as np
import pytest
import scipy.stats

from vitrify.arrays import Floats, Ints
from vitrify.claims.catalogue import listing
from vitrify.claims.statistics.crossings import crossing_interval, interval_regression
from vitrify.claims.statistics.estimates import IntervalEstimate, bootstrap, mean, paired, share
from vitrify.claims.statistics.hypotheses import equivalence, holm, mcnemar
from vitrify.claims.statistics.likelihood import Likelihood
from vitrify.claims.statistics.slopes import mixed_slope, slope_over
from vitrify.claims.statistics.survival import kaplan_meier, log_rank
from vitrify.errors import InputError

VALUES = np.random.default_rng(0).lognormal(size=12)
OTHERS = np.random.default_rng(1).lognormal(size=12)
UNITS, LEVELS, SLOPE = 8, 4, 2.0


def test_an_estimate_without_an_interval_decides_nothing() -> None:
    for unknown in (mean([3.0]), mean([]), share(0, 0), bootstrap([2.0], np.mean), IntervalEstimate(1.0)):
        assert not unknown.known
        assert not any((unknown.contains(unknown.value), unknown.above(-1e9), unknown.below(1e9)))
    known = IntervalEstimate(0.0, (-1.0, 2.0))
    assert (known.contains(2.0), known.contains(2.1), known.above(-1.0), known.above(-1.1)) == (
        True,
        False,
        False,
        True,
    )
    assert (known.below(2.0), known.below(2.1)) == (False, True)
    np.testing.assert_allclose(np.hstack(known.exp()), np.exp([0.0, -1.0, 2.0]))


def test_means_shares_and_equivalence_are_those_of_scipy() -> None:
    theirs = scipy.stats.ttest_1samp(VALUES, 0)
    np.testing.assert_allclose(np.hstack(mean(VALUES).interval), np.hstack(theirs.confidence_interval(0.95)))
    np.testing.assert_allclose(
        np.hstack(paired(VALUES, OTHERS).interval),
        np.hstack(scipy.stats.ttest_rel(VALUES, OTHERS).confidence_interval(0.95)),
    )
    np.testing.assert_allclose(share(16, 17).interval, scipy.stats.binomtest(16, 17).proportion_ci(0.95, "exact"))
    with pytest.raises(InputError, match="two values of every unit"):
        paired(VALUES, OTHERS[:3])
    low, high = VALUES.mean() - 0.6, VALUES.mean() + 2
    ours = equivalence(VALUES, (low, high))
    beyond = scipy.stats.ttest_1samp(VALUES, low, alternative="greater").pvalue
    tests = [beyond, scipy.stats.ttest_1samp(VALUES, high, alternative="less").pvalue]
    assert ours.p_value == pytest.approx(max(tests), rel=1e-9)
    np.testing.assert_allclose(np.hstack(ours.interval), np.hstack(theirs.confidence_interval(0.9)))
    for margin in np.linspace(0.1, 6, 60):  # the interval and the p value say the same
        tried = equivalence(VALUES, margin)
        assert tried.equivalent == (tried.p_value < 0.05)
    assert equivalence([1.0, 1.0, 1.0], 2.0).equivalent
    assert not equivalence([1.0, 1.0, 1.0], 0.5).equivalent


def test_the_bootstrap_is_that_of_scipy_draw_for_draw() -> None:
    methods: tuple[tuple[bool, Literal["BCa", "percentile"]], ...] = ((True, "BCa"), (False, "percentile"))
    for bca, method in methods:
        ours = bootstrap(VALUES, np.mean, bca=bca)
        theirs = scipy.stats.bootstrap(
            [list(VALUES)],
            lambda sample, axis: np.mean(sample, axis=axis),
            n_resamples=10_000,
            method=method,
            rng=np.random.default_rng(0),
        ).confidence_interval
        np.testing.assert_allclose(ours.interval, theirs, rtol=1e-12)
        fast = bootstrap(VALUES, lambda samples: samples.mean(axis=-1), bca=bca, vectorized=True)
        np.testing.assert_allclose(fast.interval, ours.interval, rtol=1e-12)
    assert bootstrap(VALUES, np.mean) == bootstrap(VALUES, np.mean)
    pairs = np.stack([VALUES, OTHERS], axis=1)  # a unit may be a row
    ratio = bootstrap(pairs, lambda s: s[:, :, 0].mean(axis=1) / s[:, :, 1].mean(axis=1), vectorized=True)
    assert ratio == bootstrap(pairs, lambda s: s[:, 0].mean() / s[:, 1].mean())


def test_draws_on_which_a_statistic_is_undefined_widen_the_interval() -> None:
    def undefined_below(least: float) -> IntervalEstimate:
        return bootstrap(VALUES, lambda s: s.mean() if s.mean() > least else np.nan, bca=False)

    plain = bootstrap(VALUES, np.mean, bca=False)
    rare, often = undefined_below(plain.interval[0] - 0.05), undefined_below(plain.interval[0] + 0.05)
    assert rare.interval[0] == plain.interval[0]  # the lowest draws are still the lowest
    assert rare.interval[1] > plain.interval[1]  # and might have been the highest
    assert not often.known  # the lower end could be anywhere
    assert bootstrap([1.0, 1.0, 1.0], np.mean).interval == (1.0, 1.0)  # no acceleration: percentiles
    assert not bootstrap(VALUES, lambda _: np.nan).known


def test_crossings_lie_between_marks_or_are_censored() -> None:
    marks = np.array([1.0, 2.0, 4.0, 8.0])
    nan = np.nan
    curves = np.array(
        [[[9, 5, 1, 0], [9, 9, 9, 9], [1, 0, 0, 0]], [[9, 2, 9, 1], [9, nan, 1, 0], [nan, nan, nan, nan]]]
    )
    low, high = crossing_interval(marks, curves, 2.0)
    np.testing.assert_array_equal(low, [[2, 8, 0], [1, 1, 0]])
    np.testing.assert_array_equal(high, [[4, np.inf, 1], [2, 4, np.inf]])
    levels = np.array([[5.0, 9.0, 0.0], [1.0, 0.0, 1.0]])
    for place in np.ndindex(2, 3):  # one level for each curve, one curve at a time
        at_once = [end[place] for end in crossing_interval(marks, curves, levels)]
        assert [float(end) for end in crossing_interval(marks, curves[place], levels[place])] == at_once
    logs = crossing_interval(np.log(marks), curves, 2.0, start=-np.inf)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(logs, np.log([low, high]))


def binned(y: Floats, width: float, least: float, most: float) -> tuple[Floats, Floats]:
    """Return the bins of values, censored below `least` and above `most`, which are ends of bins."""
    low = np.floor(y / width) * width
    high = low + width
    low, high = np.where(y < least, -np.inf, low), np.where(y < least, least, high)
    return np.where(y >= most, most, low), np.where(y >= most, np.inf, high)


def test_without_censoring_the_regression_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=20)
    y = 3 * x + 2 + rng.normal(size=20) * 0.3
    line, t = scipy.stats.linregress(x, y), scipy.stats.t.ppf(0.975, 18)
    intercept, slope = interval_regression(y, y, np.stack([np.ones(20), x], axis=1)).coefficients
    for ours, value, error in ((slope, line.slope, line.stderr), (intercept, line.intercept, line.intercept_stderr)):
        np.testing.assert_allclose(np.hstack(ours), [value, value - t * error, value + t * error], rtol=1e-6)
    # balanced random intercepts: the units' means have Student's interval
    groups = np.repeat(np.arange(UNITS), LEVELS)
    values = rng.normal(size=UNITS)[groups] + rng.normal(size=groups.size) * 0.2
    (center,) = interval_regression(values, values, np.ones(groups.size), groups).coefficients
    np.testing.assert_allclose(
        np.hstack(center), np.hstack(mean(values.reshape(UNITS, LEVELS).mean(axis=1))), rtol=1e-4
    )


def test_an_intercept_with_every_kind_of_censoring_is_fitted_as_by_scipy() -> None:
    y = np.random.default_rng(3).normal(1, 2, 60)
    low, high = binned(y, 1.0, -1.0, 3.0)
    low[:5] = high[:5] = y[:5]
    inner = np.isfinite(low) & np.isfinite(high) & (low < high)
    data = scipy.stats.CensoredData(
        uncensored=y[:5], interval=np.stack([low, high], 1)[inner], right=low[np.isinf(high)], left=high[np.isinf(low)]
    )
    ours = interval_regression(low, high, np.ones(60))
    np.testing.assert_allclose([ours.coefficients[0].value, ours.sigma], scipy.stats.norm.fit(data), rtol=2e-4)
    narrow = interval_regression(y - 1e-7, y + 1e-7, np.ones(60))
    np.testing.assert_allclose(np.hstack(narrow.coefficients[0]), np.hstack(mean(y)), rtol=1e-5)


@pytest.mark.parametrize(("sigma", "tau"), [(0.7, 1.5), (0.1, 3.0), (1.0, 1e-3)])
def test_the_marginal_likelihood_is_the_integral_over_intercepts(sigma: float, tau: float) -> None:
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(3), 5)
    y = rng.normal(size=15) + 2 * rng.normal(size=3)[groups]
    low, high = binned(y, 1 / 4, -1.0, 2.0)
    low[6], high[6] = y[6], y[6]
    likelihood, point = Likelihood(np.stack([low, high]), np.ones((15, 1)), groups, 80), [0.3, np.log(sigma), tau]
    u, total = np.linspace(-12, 12, 200_001), 0.0
    for unit in range(3):
        log = scipy.stats.norm.logpdf(u)
        for a, b in zip(low[groups == unit], high[groups == unit], strict=True):
            normal = scipy.stats.norm(0.3 + tau * u, sigma)
            upper = a > 0.3 + tau * u
            with np.errstate(divide="ignore"):
                chance = np.where(upper, normal.sf(a) - normal.sf(b), normal.cdf(b) - normal.cdf(a))
                log = log + (normal.logpdf(a) if a == b else np.log(chance))
        total += log.max() + np.log(np.trapezoid(np.exp(log - log.max()), u))
    value, gradient = likelihood.negative(np.array(point))
    assert value == pytest.approx(-total, abs=1e-5)
    steps = 1e-5 * np.eye(3)
    numeric = [(likelihood.negative(point + s)[0] - likelihood.negative(point - s)[0]) / 2e-5 for s in steps]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-3)
    coarse = Likelihood(np.stack([low, high]), np.ones((15, 1)), groups, 24).negative(np.array(point))
    assert coarse[0] == pytest.approx(value, abs=5e-4)  # the usual number of nodes


def simulated(rng: np.random.Generator, tau: float, sigma: float) -> tuple[Floats, Floats, Floats, Ints]:
    """Return censored crossings of units at levels 1 to 4: about half of the last level come after the last mark."""
    units, levels = np.repeat(np.arange(UNITS), LEVELS), np.tile(np.arange(1.0, LEVELS + 1), UNITS)
    y = SLOPE * levels + tau * rng.normal(size=UNITS)[units] + sigma * rng.normal(size=units.size)
    return (*binned(y, 0.25, -100.0, SLOPE * LEVELS), np.stack([np.ones(units.size), levels], axis=1), units)


@pytest.mark.parametrize(("tau", "sigma"), [(0.4, 0.3), (0.0, 0.3), (1.0, 0.1)])
@pytest.mark.slow
def test_the_regression_finds_planted_slopes_and_their_intervals_cover(tau: float, sigma: float) -> None:
    rng = np.random.default_rng(5)
    fits, naive = [], []
    for _ in range(200):
        low, high, design, units = simulated(rng, tau, sigma)
        fits.append(interval_regression(low, high, design, units))
        observed = np.where(np.isinf(high), low, (low + high) / 2)
        if len(fits) % 4 == 0:
            naive.append(interval_regression(observed, observed, design, units).coefficients[1].value)
    for column, truth in enumerate((0.0, SLOPE)):
        found = [fit.coefficients[column] for fit in fits]
        values = np.array([each.value for each in found])
        assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(200) + 0.003
        assert 0.92 <= np.mean([each.contains(truth) for each in found]) <= 1.0
        spread = np.mean([(each.interval[1] - each.interval[0]) / 2 for each in found]) / values.std()
        assert spread < 3.2  # Student's quantile of 7 is 2.4
    assert np.mean([fit.sigma for fit in fits]) == pytest.approx(sigma, abs=0.04)
    assert np.mean([fit.sigma_unit for fit in fits]) == pytest.approx(tau, abs=0.12)
    assert np.mean(naive) < SLOPE - 0.02  # the last mark in the place of what was not seen


def test_the_regression_commutes_with_order_shift_and_scale() -> None:
    low, high, design, units = simulated(np.random.default_rng(6), 0.4, 0.3)
    first = interval_regression(low, high, design, units)
    order = np.random.default_rng(7).permutation(len(low))
    shuffled = interval_regression(low[order], high[order], design[order], units[order])
    moved = interval_regression(100 * low + 7, 100 * high + 7, design, units)
    for j, shift in ((0, 7), (1, 0)):
        np.testing.assert_allclose(
            np.hstack(shuffled.coefficients[j]), np.hstack(first.coefficients[j]), rtol=1e-4, atol=1e-5
        )
        wanted = 100 * np.hstack(first.coefficients[j]) + shift
        np.testing.assert_allclose(np.hstack(moved.coefficients[j]), wanted, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose([moved.sigma, moved.sigma_unit], [100 * first.sigma, 100 * first.sigma_unit], rtol=1e-3)
    assert interval_regression(low, high, design, units) == first


def test_what_censoring_leaves_open_has_no_interval() -> None:
    inf = np.inf
    low, high = [1, 1.2, 0.9, 5, 5, 5], [1.2, 1.4, 1.1, inf, inf, inf]
    first, last = interval_regression(low, high, np.repeat(np.eye(2), 3, axis=0)).coefficients
    assert first.contains(1.15)
    assert np.isnan(last.value)
    assert not last.known
    both = interval_regression(low, high, np.stack([np.ones(6), [0, 0, 0, 1, 1, 1]], 1), [0, 1, 2] * 2).coefficients
    assert [each.known for each in both] == [True, False]
    for below, above in (
        ([5] * 4, [inf] * 4),
        ([-inf] * 4, [inf] * 4),
        ([-inf, -inf, 1, 1], [1, 1, inf, inf]),
        ([], []),
    ):
        assert not interval_regression(below, above, np.ones(len(below))).coefficients[0].known
    collinear = interval_regression([1, 2, 3], [1, 2, 3], [[1, 2], [1, 2], [1, 2]]).coefficients
    assert not any(each.known for each in collinear)
    (shared,) = interval_regression([1] * 8, [1.2] * 8, np.ones(8)).coefficients  # all units in one interval
    assert shared.value == pytest.approx(1.1)
    assert 0.05 < shared.interval[1] - shared.interval[0] < 0.2
    with pytest.raises(InputError, match="low <= high"):
        interval_regression([2.0], [1.0], [1.0])


def test_slopes_within_units_do_not_see_the_units_own_levels() -> None:
    rng = np.random.default_rng(8)
    units, x = np.repeat(np.arange(10), 5), np.tile(np.arange(5.0), 10) + np.repeat(np.arange(10), 5)
    y = 2 * x - 30 * units + rng.normal(size=50) * 0.1
    trend = mixed_slope(x, y, units)
    dummies = np.concatenate([x[:, None], units[:, None] == np.arange(10)], axis=1)
    assert trend.slope.value == pytest.approx(np.linalg.lstsq(dummies, y)[0][0])
    assert trend.slope.contains(2.0)
    assert trend.quadratic.contains(0.0)
    bent = mixed_slope(x, y + 0.1 * x**2, units)
    square = np.concatenate([x[:, None] ** 2, dummies], axis=1)
    assert bent.quadratic.value == pytest.approx(np.linalg.lstsq(square, y + 0.1 * x**2)[0][0])
    assert bent.quadratic.contains(0.1)
    assert bent.quadratic.above(0.05)
    order = rng.permutation(50)
    np.testing.assert_allclose(np.hstack(mixed_slope(x[order], y[order], units[order]).slope), np.hstack(trend.slope))
    assert not mixed_slope([1, 2], [1, 2], [0, 1]).slope.known  # one x for each unit
    assert not mixed_slope([1, 2, 1, 2], [1, 2, 2, 4], [0, 0, 1, 1]).quadratic.known


def test_slopes_within_units_cover_the_planted_one() -> None:
    rng, x, units = np.random.default_rng(9), np.tile(np.arange(4.0), 16), np.repeat(np.arange(16), 4)
    covered = []
    for _ in range(100):
        slopes = 2 + 0.2 * rng.normal(size=16)
        covered.append(mixed_slope(x, slopes[units] * x + rng.normal(size=64) * 0.1, units).slope.contains(2.0))
    assert 0.85 <= np.mean(covered) <= 0.99


def test_a_slope_over_groups_is_least_squares_with_units_drawn_within_groups() -> None:
    rng = np.random.default_rng(10)
    groups = [2 * x + rng.normal(size=n) for x, n in ((1, 9), (2, 12), (4, 30))]
    trend, x = slope_over([1, 2, 4], groups), np.repeat([1, 2, 4], [9, 12, 30])
    assert trend.slope.value == pytest.approx(scipy.stats.linregress(x, np.concatenate(groups)).slope)
    assert trend.quadratic.value == pytest.approx(np.polyfit(x, np.concatenate(groups), 2)[0])
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    error = np.sqrt(
        sum(np.sum(weights[x == place] ** 2) * np.var(g) for place, g in zip((1, 2, 4), groups, strict=True))
    )
    assert trend.slope.interval[1] - trend.slope.interval[0] == pytest.approx(2 * 1.96 * error, rel=0.05)
    assert not slope_over([1, 2], groups[:2]).quadratic.known
    assert not slope_over([1, 2], [[1.0], [2.0, 3.0]]).slope.known


def test_p_values_are_those_of_naive_versions() -> None:
    rng = np.random.default_rng(11)
    for _ in range(20):
        p = rng.uniform(size=6).round(1)
        naive, largest = {}, 0.0
        for rank, index in enumerate(sorted(range(6), key=lambda i: (p[i], i))):
            largest = max(largest, min(1.0, p[index] * (6 - rank)))
            naive[index] = largest
        np.testing.assert_allclose(holm(p), [naive[i] for i in range(6)])
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    for b, c in ((0, 0), (0, 6), (3, 9), (5, 5)):
        assert mcnemar(b, c) == pytest.approx(scipy.stats.binomtest(b, b + c).pvalue if b + c else 1.0)


def test_survival_is_that_of_scipy() -> None:
    rng = np.random.default_rng(12)
    times, others = rng.integers(1, 12, 30).astype(float), rng.integers(3, 16, 25).astype(float)
    seen, too = rng.uniform(size=30) < 0.7, rng.uniform(size=25) < 0.6
    censored = [scipy.stats.CensoredData.right_censored(t, ~s) for t, s in ((times, seen), (others, too))]
    ours, theirs = kaplan_meier(times, seen), scipy.stats.ecdf(censored[0]).sf
    np.testing.assert_allclose(ours.survival, theirs.evaluate(ours.times))
    assert ours.events.sum() == seen.sum()
    assert log_rank(times, seen, others, too) == pytest.approx(scipy.stats.logrank(censored[0], censored[1]).pvalue)
    assert log_rank(times, seen, times, seen) == pytest.approx(1.0)
    assert np.isnan(log_rank([1], [False], [2], [False]))


def test_statistics_are_no_claims_and_import_neither_scipy_nor_jax() -> None:
    assert "statistics" not in {page.name for page in listing()}
    names = "estimates crossings hypotheses likelihood slopes survival"
    program = (
        f"import importlib, sys\nfor name in '{names}'.split():\n"
        "    importlib.import_module(f'vitrify.claims.statistics.{name}')\n"
        "assert not {'scipy', 'jax'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
