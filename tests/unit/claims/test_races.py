"""Races over the levels of a hierarchy: steps, factors and slopes of curves with a known law, and their nulls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from vitrify.arrays import Floats
from vitrify.claims.catalogue import Subject, claim_of, find
from vitrify.claims.protocol import judging
from vitrify.claims.protocol.measurements import Measurements
from vitrify.claims.trials import races
from vitrify.claims.trials.races import CNN, LCN, LOCAL, TF, Curve, Race, factor, minus, slope

PAGE = find("each_level_of_a_random_hierarchy_has_its_price_by_architecture")
CLAIM = claim_of(PAGE)
LEVELS = 4
STAIR = np.array([3.0, 1.5, 0.7, 0.3, 0.2])
MIDDLES = (STAIR[:-1] + STAIR[1:]) / 2 - STAIR[-1]


def staircase(rows: Floats, taken: Floats) -> Floats:
    """Return losses above the optimum that pass the middle of step l at taken[l] sequences, linearly in ln P."""
    at = np.log(np.concatenate([[taken[0] / 20], taken, [taken[-1] * 20]]))
    losses: Floats = np.interp(np.log(rows), at, [STAIR[0] - STAIR[-1], *MIDDLES, 0.0])
    return losses


def planted(subject: Subject, taken: dict[str, Any], scatter: float = 0.1, seed: int = 0) -> dict[str, Floats]:
    """Return measurements in which each racer takes its steps at given numbers of sequences, times a grammar's luck."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, Floats] = {}
    lucks: dict[int, Floats] = {}
    for name, trial in subject.trials.items():
        rates, grammars = len(trial.axes["lr"]), len(trial.axes["grammar,seed"])
        luck = lucks.setdefault(races.racer_of(name)[1], rng.normal(0, 3 * scatter, grammars))
        rows = np.array(trial.recipe.eval_steps()[1:]) * float(trial.recipe.batch)
        own = np.array(taken[name], dtype=float) * np.exp(luck[:, None] + rng.normal(0, scatter, (grammars, LEVELS)))
        best = np.array([staircase(rows, steps) for steps in own])
        worse = [1.0 + 0.5 * abs(at - rates // 2) for at in range(rates)]  # rates off the middle lose
        both = np.array([[np.interp(np.log(rows) - math.log(w), np.log(rows), each) for each in best] for w in worse])
        arrays |= {f"{name}/excess": both, f"{name}/validation": both}
        arrays[f"{name}/stairs"] = np.tile(STAIR, (grammars, 1))
    return arrays


def laws(
    subject: Subject, *, cnn: float = 1.0, tf: float = 2.0, sharing: float = 3.0, local: float = 2.0
) -> dict[str, Any]:
    """Return P_l by racer: powers of m per level, and factors of sharing at the last step and of a local mask."""
    taken = {}
    for name in subject.trials:
        net, m = races.racer_of(name)
        level = np.arange(1, LEVELS + 1)
        fast = 500.0 * m ** (cnn * (level - 1) + 1.0)
        slow = 500.0 * m ** (tf * (level - 1) + 1.0)
        extra = np.where(level == LEVELS, sharing, 1.0)
        taken[name] = {CNN: fast, LCN: fast * extra, TF: slow, LOCAL: slow / local}[net]
    return taken


@pytest.fixture(scope="module")
def subject() -> Subject:
    assert CLAIM.large
    (large,) = CLAIM.large()
    return large


def test_a_step_is_taken_where_the_curve_passes_the_middle() -> None:
    rows = 100.0 * 2 ** (np.arange(60) / 4)
    taken = np.array([300.0, 2_000.0, 30_000.0, 1e9])
    curve = Curve(rows, staircase(rows, taken)[None], staircase(rows, taken)[None], MIDDLES[None])
    low, high = curve.logs()
    assert np.allclose(np.exp(high[0, :3]), taken[:3], rtol=0.05)
    assert np.array_equal(low[0, :3], high[0, :3])
    assert (low[0, 3], high[0, 3]) == (math.log(rows[-1]), math.inf)  # not within these sequences


def test_an_end_of_the_grid_only_bounds_a_step_where_it_matters() -> None:
    rows = 100.0 * 2 ** (np.arange(60) / 4)
    taken = np.array([300.0, 2_000.0, 30_000.0, 1e5])
    best = staircase(rows, taken)
    for delay, bounded in ((1.1, False), (1.5, True)):  # a mark is a factor of 1.19
        later = staircase(rows, delay * taken)
        low, high = Curve(rows, best[None], later[None], MIDDLES[None]).logs()
        assert np.isinf(low).all() == bounded
        assert np.isfinite(high).all()


def test_slopes_and_factors_are_those_of_the_law(subject: Subject) -> None:
    race = Race.of(subject, planted(subject, laws(subject), scatter=0.0))
    for m in (3, 4):
        assert race.mean(slope(CNN, m, range(2, 5))).value == pytest.approx(1.0, abs=0.06)
        assert race.mean(slope(TF, m, range(2, 4))).value == pytest.approx(2.0, abs=0.06)
        growth = race.mean(minus(factor(TF, CNN, m, 3), factor(TF, CNN, m, 2))).exp()
        assert growth.value == pytest.approx(m, rel=0.08)
    assert race.power(CNN, 3, 10**9).value == pytest.approx(3.0, abs=0.1)
    assert race.power(TF, 3, 10**9).value == pytest.approx(5.0, abs=0.1)


def verdicts(subject: Subject, taken: dict[str, Any]) -> dict[str, str]:
    assert CLAIM.judge
    return dict(CLAIM.judge(subject, planted(subject, taken)).statements)


def test_planted_laws_are_judged_as_they_are(subject: Subject) -> None:
    published = verdicts(subject, laws(subject))
    told = {"transformer", "less", "doubling", "growth", "growth by m", "sharing", "locality"}
    assert {key for key, verdict in published.items() if verdict == "holds"} >= told
    even = verdicts(subject, laws(subject, cnn=1.4, tf=1.4, sharing=1.0, local=1.0))
    assert not any(even[key] == "holds" for key in told)
    between = verdicts(subject, laws(subject, cnn=1.4))
    assert between["doubling"] == "not reached"
    assert between["growth"] == "holds"
    assert between["growth by m"] == "not reached"


def test_every_null_is_rejected_where_the_published_law_is_true(subject: Subject) -> None:
    arrays = planted(subject, laws(subject))
    outcome = judging.judge(PAGE, CLAIM, "large", Measurements({subject.name: arrays}, ({"seconds": 0.0},)), draws=40)
    shares = outcome.rejections[subject.name]
    assert all(share >= 0.95 for share in shares.values()), shares
