"""The judge and the nulls of the claim about hallucinated facts, on planted curves."""

from __future__ import annotations

import numpy as np

from vitrify.claims import facts_are_hallucinated_from_the_relation_before_they_are_learned as claim
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials import facts

RNG = np.random.default_rng


def planted() -> Measured:
    """Return eight members that lose the loss of the relation first, rest, and then lose that of the subject."""
    step = np.broadcast_to(np.linspace(0.0, 100.0, 401), (8, 401))
    when = 30.0 + np.arange(8)[:, None] / 10
    relation, subject = (np.log(n) / (1 + np.exp(3 * (step - at))) for n, at in ((4, when), (8, when + 40)))
    curves = {"loss": relation + subject, "relation": relation, "kl.uniform": step / 100, "accuracy": (step > 70) * 1.0}
    curves["kl.relation"] = relation + (np.log(8) - subject)
    return {**curves, "kl": relation + subject, "step": step, "level": np.full(8, np.log(8)), "drift": np.full(8, 1e-9)}


def test_planted_stages_hold_and_each_null_is_rejected_by_its_statement() -> None:
    (_, subject), measured = claim.subjects(), planted()
    assert set(claim.judge(subject, measured).statements.values()) == {"holds"}
    for key, null in claim.CLAIM.nulls.items():
        verdicts = claim.judge(subject, null(subject, measured, RNG(0))).statements
        assert verdicts[key] == "fails"


def test_a_loss_that_falls_steadily_begins_and_ends_as_measured() -> None:
    (_, subject), measured = claim.subjects(), planted()
    steady = facts.steady(subject, measured, RNG(0))["loss"]
    assert np.ptp(steady[:, 0]) < 1e-9
    assert (np.diff(steady) <= 0).all()
    np.testing.assert_allclose(steady[:, [0, -1]], measured["loss"][:, [0, -1]], atol=1e-6)


def test_losses_in_proportion_belong_to_one_prediction() -> None:
    """KL from p(a|r) as by summing over the answers of the relation."""
    (_, subject), measured = claim.subjects(), planted()
    null = facts.in_proportion(subject, measured, RNG(0))
    loss, relation = null["loss"][0, 120], null["relation"][0, 120]
    right, others = np.exp(-loss), (np.exp(-relation) - np.exp(-loss)) / 7
    predicted = np.array([right, *[others] * 7])
    np.testing.assert_allclose(null["kl.relation"][0, 120], (np.log(1 / 8) - np.log(predicted)).mean())
    np.testing.assert_allclose(relation / loss, np.log(4) / np.log(32))
