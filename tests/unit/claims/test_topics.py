"""The judge and the nulls of the claim about topics, on planted measurements."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.claims import topics_are_learned_by_values_first_and_then_by_attention as claim
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials import topics


def planted() -> Measured:
    """Return eight seeds with the predicted gaps, whose attention learns after the values have half grown."""
    subject, *_ = claim.subjects()
    c = topics.closed_form(subject.trials["values"].sandbox, 5)
    arrays: dict[str, Any] = {"optimum/exact": np.array(c), "optimum/words": np.array([5]), "optimum/c": np.array([c])}
    arrays["optimum/gaps"] = np.array([c])
    for part in ("values", "embedding"):
        arrays |= {f"{part}/gaps": np.full(8, c), f"{part}/ranked": np.ones(8)}
        arrays |= {f"{part}/halves": np.zeros((30, 30)), f"{part}/blocks": np.zeros((6, 6))}
    for part in ("attention", "all"):
        steps = np.array(subject.trials[part].recipe.eval_steps())
        way = steps / steps[-1]
        ratio = 1 + 3 * np.clip(2 * way - 1, 0, 1)
        kinds = np.stack([ratio, ratio, np.ones(len(steps))], axis=-1)
        norms = np.stack([1 + 40 * way] * 3, axis=-1)
        arrays |= {f"{part}/attention": np.tile(kinds, (8, 1, 1)), f"{part}/norms": np.tile(norms, (8, 1, 1))}
    return arrays


def test_planted_topics_hold_and_each_null_is_rejected_by_its_statement() -> None:
    subject, *_ = claim.subjects()
    measured = planted()
    assert set(claim.judge(subject, measured).statements.values()) == {"holds"}
    for name, null in claim.CLAIM.nulls.items():
        assert claim.judge(subject, null(subject, measured, np.random.default_rng(0))).statements[name] == "fails"


def test_attention_that_follows_the_norm_is_small_when_the_norm_is_fourfold_and_yet_not_later() -> None:
    subject, *_ = claim.subjects()
    together = claim.CLAIM.nulls["order"](subject, planted(), np.random.default_rng(0))
    figure = {"steps": subject.trials["all"].recipe.eval_steps()}
    curves = {name: np.moveaxis(together[f"all/{name}"], -1, 0) for name in ("attention", "norms")}
    paced = topics.paced({**figure, **curves}, claim.GROWTH)
    assert paced["grown"].all()
    assert (paced["early"] < 1.2).all()
    np.testing.assert_allclose(paced["later"], 1.0)
