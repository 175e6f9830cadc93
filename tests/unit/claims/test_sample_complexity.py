"""Sample complexity on random hierarchies: planted laws hold, rivals are rejected, and sizes are those of sets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from vitrify.arrays import Floats
from vitrify.claims import deep_cnns_need_classes_times_m_to_the_depth_strings_of_a_random_hierarchy as claim
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.sample_complexity import CNN, SHALLOW, ErrorCurve, Model, curves, growth, law, spread

Needed = Callable[[Model], float]  # strings for 10 % error


def by_star(model: Model) -> float:
    return 3.0 * model.star


def by_strings(model: Model) -> float:
    return 0.08 * model.strings


def planted(subject: Subject, deep: Needed, shallow: Needed, noise: float = 0.1, seed: int = 0) -> Measured:
    """Return measurements of nets whose errors are 10 % at a number of strings, with scatter between grammars."""
    rng = np.random.default_rng(seed)
    scatter: dict[tuple[str, Model], np.ndarray] = {}
    arrays = {}
    for name, trial in subject.trials.items():
        net, model = name.split(", ")[0], Model.of(trial.sandbox)
        pool = model.strings * (1 - 1 / model.m)
        rows = -pool * np.expm1(np.array(trial.axes["train_examples"]) * math.log1p(-1 / pool))
        own = scatter.setdefault((net, model), rng.normal(scale=noise, size=trial.shape[1]))
        needed = np.log((deep if net == CNN else shallow)(model)) + own
        steep = np.log(rows)[:, None] - needed
        arrays[f"{name}/rows"] = rows
        arrays[f"{name}/error"] = 0.7 / (1 + 6 * np.exp(2.5 * steep))
        arrays[f"{name}/stopped"] = np.full(trial.shape, 100.0)
    return arrays


@pytest.fixture(scope="module")
def large() -> Subject:
    (subject,) = claim.large()
    return subject


def verdicts(subject: Subject, arrays: Measured, *statements: str) -> dict[str, str]:
    return dict(claim.judge(replace(subject, statements=list(statements)), arrays).statements)


def test_planted_laws_hold(large: Subject) -> None:
    """Also where the shallow net needs a share of all strings, which are too many for the sizes of most models."""
    evidence = claim.judge(large, planted(large, by_star, by_strings))
    assert evidence.statements == dict.fromkeys(("law", "collapse", "shallow"), "holds")
    coefficients = [each.mean for each in evidence.criteria if each.name.startswith("coefficient")]
    assert coefficients == pytest.approx([1, 1], abs=0.05)
    assert evidence.figure is not None
    assert set(evidence.figure) == {CNN, SHALLOW}


@pytest.mark.parametrize("statement", ["law", "collapse", "shallow"])
def test_the_check_rejects_the_nearest_null_of_a_planted_law(large: Subject, statement: str) -> None:
    arrays, rng = planted(large, by_star, by_strings), np.random.default_rng(1)
    for _ in range(5):
        null = claim.CLAIM.nulls[statement](large, arrays, rng)
        assert verdicts(large, null, statement)[statement] != "holds"


def test_under_a_null_the_rival_is_exactly_true(large: Subject) -> None:
    """Means of ln P(10 %) are on the rival's line, but for the grammars that are drawn again."""
    arrays, rng = planted(large, by_star, by_strings, noise=1e-3), np.random.default_rng(2)
    deep = curves(large, claim.CLAIM.nulls["law"](large, arrays, rng), CNN)
    rival = [np.mean(curve.logs()) - math.log(model.classes * model.m) for model, curve in deep.items()]
    assert np.ptp(rival) < 0.01
    null = claim.CLAIM.nulls["shallow"](large, arrays, rng)
    factors = [np.mean(c.logs()) - math.log(model.star) for model, c in curves(large, null, SHALLOW).items()]
    assert np.ptp(factors) < 0.05
    assert growth(curves(large, null, SHALLOW)).value == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("deep", "statement"),
    [
        (lambda model: 3 * model.star * model.m**0.4, "law"),
        (lambda model: 3 * model.star * (1.3 if model.m == 4 else 0.8), "collapse"),
        (lambda model: 40 * model.star, "collapse"),  # beyond the largest size
    ],
)
def test_other_laws_do_not_hold(large: Subject, deep: Needed, statement: str) -> None:
    assert verdicts(large, planted(large, deep, by_strings), statement)[statement] != "holds"


def test_a_shallow_net_that_no_size_is_enough_for_needs_more_than_any_multiple(large: Subject) -> None:
    arrays = planted(large, by_star, lambda model: 1000.0 * model.star)
    assert verdicts(large, arrays, "shallow") == {"shallow": "holds"}
    unfitted = {name: np.full_like(a, -1) if name.endswith("stopped") else a for name, a in arrays.items()}
    assert verdicts(large, unfitted, "shallow", "law") == {"shallow": "undecided", "law": "undecided"}
    constant = planted(large, by_star, lambda model: 20.0 * model.star)
    assert verdicts(large, constant, "shallow")["shallow"] in ("fails", "undecided", "not reached")


def test_crossings_are_interpolated_or_known_from_one_side() -> None:
    rows = np.array([100.0, 200.0, 400.0])
    error = np.array([[0.5, 0.2, 0.0], [0.5, 0.4, 0.3], [0.05, 0.0, 0.0], [0.5, math.nan, 0.02]])
    low, high = ErrorCurve(rows, error, np.ones((4, 3), dtype=bool)).logs()
    assert np.exp(low) == pytest.approx([200 * 2**0.5, 400, 0, 200 * 2 ** (0.9 / 0.98)])
    assert np.exp(high) == pytest.approx([200 * 2**0.5, math.inf, 100, 200 * 2 ** (0.9 / 0.98)])


def test_a_model_that_is_not_reached_makes_the_slope_no_larger() -> None:
    """It counts as its largest size above the mean of ln P*, and makes the slope unknown below."""
    rows = np.logspace(0, 29, 30, base=2.0)
    models = [Model(4, 4, 4, L) for L in (3, 4, 5)]

    def curve(needed: float, last: int) -> ErrorCurve:
        error: Floats = np.where(rows < needed, 0.5, 0.0)[:last]
        return ErrorCurve(rows[:last], np.stack([error, error]), np.ones((2, last), dtype=bool))

    exact = growth({model: curve(model.star**1.5, 30) for model in models})
    assert exact.value == pytest.approx(1.5, abs=0.1)
    bounded = growth({model: curve(model.star**1.5, 16 if model.L == 5 else 30) for model in models})
    assert bounded.value < exact.value
    unknown = growth({model: curve(model.star**1.5, 8 if model.L == 3 else 30) for model in models})
    assert math.isnan(unknown.value)


def test_the_regression_tells_classes_from_productions() -> None:
    rows = 2.0 ** np.arange(2, 40, 0.5)
    models = [Model(*each) for each in ((4, 4, 4, 3), (8, 8, 8, 2), (8, 8, 4, 3), (16, 4, 16, 3), (16, 8, 4, 4))]
    own = {}
    for model in models:
        steep = np.log(rows) - math.log(5 * model.classes**2 * model.m ** (0.5 * model.L))
        error = 0.2 / (1 + np.exp(4 * steep))
        own[model] = ErrorCurve(rows, np.stack([error, error]), np.ones((2, len(rows)), dtype=bool))
    _, classes, productions = law(own).coefficients
    assert (classes.value, productions.value) == pytest.approx((2, 0.5), abs=0.01)
    assert spread(own, 0.1)[1] == 1
    assert spread(own, 0.3) == pytest.approx((math.nan, 0), nan_ok=True)


def test_training_sets_have_the_expected_number_of_different_strings() -> None:
    """Against sets that are drawn; what leaves too few strings for tests is refused."""
    model = Model(4, 4, 4, 2)
    assert (model.star, model.strings) == (64, 256)
    draws = model.draws(100)
    assert draws is not None
    rng = np.random.default_rng(0)
    different = [len(np.unique(rng.integers(192, size=draws))) for _ in range(400)]
    assert np.mean(different) == pytest.approx(100, abs=1)
    assert model.draws(0.9 * 256 - 64 + 1) is None
    assert model.draws(0.9 * 256 - 64 - 1) is not None


def test_trials_share_programs_and_judge_fresh_grammars(large: Subject) -> None:
    """All parts of a model have equal shapes, up to what is left over, and the grammars are those of the plan."""
    for name, trial in large.trials.items():
        assert [seed for _, seed in trial.axes["grammar,seed"]] == list(claim.PLAN.judged)
        assert (trial.sandbox.task, trial.sandbox.grammars) == (200, 8)
        assert len(trial.axes["train_examples"]) == 4 or name.endswith(("part 2", "part 3"))
    assert len({Model.of(t.sandbox) for name, t in large.trials.items() if name.startswith(CNN)}) == 19
