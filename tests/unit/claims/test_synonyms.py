"""Numbers of sequences and sensitivities that are planted: the statements hold on them, and not on their nulls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cases import each
from vitrify.claims import deep_cnns_learn_the_random_hierarchy_one_level_per_layer as claim
from vitrify.claims.trials.synonyms import crossings, rescaled

(SUBJECT,) = claim.large()
SIZES = np.array(claim.TIMES)


def falling(at: Any, high: float, low: float) -> Any:
    """A curve over sizes, steep at `at` in units of P*: [size, …]."""
    return low + (high - low) / (1 + (SIZES[:, None] / at) ** 8)


def planted(level: float) -> dict[str, Any]:
    """Nets that need 1.5 n_c m^L sequences, times `level` with a level more than three."""
    arrays: dict[str, Any] = {}
    rng = np.random.default_rng(0)
    for name, (_, _, L) in zip(SUBJECT.trials, SUBJECT.data["models"], strict=True):
        at = 1.5 * level ** (L - 3) * np.exp(0.02 * rng.normal(size=16))
        moves = np.repeat(falling(at, 0.95, 0.7)[..., None, None], L, axis=2).repeat(L + 1, axis=3)
        for height in range(L):
            moves[:, :, height, height + 1 :] = falling(at, 0.9, 0.1)[..., None]
        arrays |= {f"{name}/accuracy": 1 - falling(at, 0.8, 0.0)[..., None]}
        arrays |= {f"{name}/moves": moves, f"{name}/built": np.zeros(L + 1)}
    return arrays


def test_crossings_and_rescaled_curves_are_of_sizes() -> None:
    curves = falling(np.array([1.0, 2.0]), 1.0, 0.0)
    np.testing.assert_allclose(crossings(claim.TIMES, curves, 0.5), [1.0, 2.0])
    assert np.isnan(crossings(claim.TIMES, curves, -1.0)).all()
    np.testing.assert_allclose(crossings(claim.TIMES, rescaled(claim.TIMES, curves, 0.5), 0.5), [2.0, 4.0])


def test_all_statements_hold_where_they_are_planted() -> None:
    assert claim.judge(SUBJECT, planted(1.0)).statements == dict.fromkeys(claim.PLAN.statements, "holds")
    slower = claim.judge(SUBJECT, planted(0.5)).statements
    assert slower == {**dict.fromkeys(claim.PLAN.statements, "holds"), "levels": "not reached"}


@each("statement", list(claim.PLAN.statements))
def test_nulls_are_rejected(statement: str) -> None:
    null, rng = claim.NULLS[statement], np.random.default_rng(1)
    verdicts = [claim.judge(SUBJECT, null(SUBJECT, planted(1.0), rng)).statements[statement] for _ in range(20)]
    assert "holds" not in verdicts


@pytest.mark.filterwarnings("error")
def test_nets_that_learn_nothing_are_undecided() -> None:
    arrays = {name: np.zeros_like(array) if "accuracy" in name else array for name, array in planted(1.0).items()}
    verdicts = claim.judge(SUBJECT, arrays).statements
    assert [verdicts[key] for key in ("productions", "levels", "enough")] == ["undecided", "undecided", "fails"]
