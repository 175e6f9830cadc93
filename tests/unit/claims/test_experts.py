"""The judge and the nulls of the claim about router losses, on planted routings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vitrify.claims import only_a_supervised_router_loss_gives_each_task_its_own_expert as claim
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.experts import BUILT, ROUTER, Routing, key


def planted() -> Measured:
    """Return eight seeds whose experts are those of the tasks with the router loss, and else any."""
    (subject,), rng = claim.subjects(), np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for size in subject.data["grid"]:
        for loss in (*claim.ALL_LOSSES, BUILT):
            own, members = loss in (ROUTER, BUILT), 1 if loss == BUILT else 8
            right = np.eye(*size)
            counts = np.stack([24 * right if own else rng.uniform(1, 2, size) for _ in range(members)])
            kept = np.full(members, 1.0 if own else 0.4)
            lost = np.stack([0.9 * right.T if own else rng.uniform(0, 0.5, size[::-1]) for _ in range(members)])
            fields = {"counts": counts, "lost": lost, "trained": np.ones(members), "held": kept}
            arrays |= {f"{key(size, loss)}/{name}": array for name, array in fields.items()}
    return arrays


def test_an_expert_of_its_own_for_each_task_holds_and_each_null_is_rejected_by_its_statement() -> None:
    (subject,), measured = claim.subjects(), planted()
    assert set(claim.judge(subject, measured).statements.values()) == {"holds"}
    for name, null in claim.CLAIM.nulls.items():
        before = {each: array.copy() for each, array in measured.items()}
        assert claim.judge(subject, null(subject, measured, np.random.default_rng(1))).statements[name] == "fails"
        assert all((measured[each] == array).all() for each, array in before.items())


def test_two_tasks_of_sixteen_that_share_an_expert_are_seen_though_the_information_is_high() -> None:
    counts = np.eye(16)[None]
    counts[:, 3] = counts[:, 5]
    shared = Routing(counts, np.ones(1), np.ones(1), np.zeros((1, 16, 16))).numbers()
    assert shared["agreement"] > claim.MIN_ROUTER
    assert shared["apart"] == pytest.approx(14 / 16)


def test_the_worst_other_expert_of_a_task_is_found_where_the_mean_hides_it() -> None:
    lost = np.eye(16)[None] + np.roll(np.eye(16), 1, axis=1)
    own, others = Routing(np.eye(16)[None], np.ones(1), np.ones(1), lost / 2).isolation()
    assert own == others == pytest.approx(0.5)
