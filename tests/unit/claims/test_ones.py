"""Planted accuracies of parity nets: the statements hold on them, and not on their nulls."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases import each
from vitrify.claims import parity_generalizes_to_longer_words_but_not_to_more_ones as claim
from vitrify.claims.trials import ones

(SUBJECT,) = claim.large()
K = SUBJECT.data["ones"]


def planted(more: float) -> dict[str, Any]:
    """Nets that are right up to k ones at every length, and with accuracy `more` beyond."""
    arrays: dict[str, Any] = {}
    rng = np.random.default_rng(0)
    for code, trial in SUBJECT.trials.items():
        arrays |= {f"{code}/accuracy": np.ones((16, 2)), f"{code}/lengths": np.full(16, 2)}
        for length in SUBJECT.data["lengths"]:
            right = np.ones((len(trial.seeds), 2, 2 * K + 1))
            right[..., K + 1 :] = more
            arrays[f"{code}/{length}"] = right - 0.01 * rng.random(right.shape)
    return arrays


def test_statements_hold_where_they_are_planted() -> None:
    assert claim.judge(SUBJECT, planted(0.5)).statements == dict.fromkeys(claim.PLAN.statements, "holds")
    verdicts = claim.judge(SUBJECT, planted(1.0)).statements
    assert [verdicts[key] for key in ("longer", "longest", "ones")] == ["holds", "holds", "fails"]
    assert verdicts["apart"] != "holds"


@each("statement", list(claim.PLAN.statements))
def test_nulls_are_rejected(statement: str) -> None:
    null, rng = claim.NULLS[statement], np.random.default_rng(1)
    verdicts = [claim.judge(SUBJECT, null(SUBJECT, planted(0.5), rng)).statements[statement] for _ in range(20)]
    assert "holds" not in verdicts


def test_a_net_that_reads_the_share_of_ones_mistakes_two_ones_for_one() -> None:
    null = ones.share_read(SUBJECT, planted(0.5), np.random.default_rng(0))
    twice = null["none/80"][:, -1].mean(axis=0)
    np.testing.assert_allclose(twice[:5], [1.0, 0.5, 0.0, 0.5, 1.0], atol=0.02)
    np.testing.assert_allclose(null["none/40"][:, -1, : K + 1], 1.0, atol=0.011)
