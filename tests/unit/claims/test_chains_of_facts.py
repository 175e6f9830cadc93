"""Where the last token of a chain of facts attends; plateau and transition on planted curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vitrify.claims import multi_hop_reasoning_is_learned_in_a_sharp_transition as claim
from vitrify.claims.multi_hop_reasoning_is_learned_in_a_sharp_transition import attention_to_chain
from vitrify.claims.protocol.measurements import Measured
from vitrify.sandboxes.catalogue import Example


def test_what_the_last_token_looks_at_is_the_end_of_one_step_and_all_of_the_next() -> None:
    shares = np.random.default_rng(0).dirichlet(np.ones(9), size=(2, 2, 1, 9))  # [block, row, head, query, token]
    seen = {f"blocks.{block}.attn.hook_pattern": shares[block - 1] for block in (1, 2)}
    row = Example(np.zeros((2, 9)), np.zeros((2, 10)), np.zeros((2, 10)), {"steps": np.array([[0, 3], [1, 2]])})
    ends = (shares[0, 0, 0, 8, 1] + shares[0, 1, 0, 8, 3]) / 2
    steps = (shares[1, 0, 0, 8, 6:8].sum() + shares[1, 1, 0, 8, 4:6].sum()) / 2
    assert attention_to_chain(1, None, None, row, seen) == pytest.approx(ends, rel=1e-5)
    assert attention_to_chain(2, None, None, row, seen) == pytest.approx(steps, rel=1e-5)


def planted() -> Measured:
    """Return networks of three layers that guess among two ends until step 1,000, and shallower ones that go on."""
    (subject,) = claim.subjects()
    measured: dict[str, Any] = {}
    for depth, trial in subject.trials.items():
        steps, seeds = np.array(trial.recipe.eval_steps()), len(trial.seeds)
        guessing = np.maximum(np.log(6 / (1 + steps)), np.log(2))
        solved = np.clip((steps - 1000) / 60, 0, 1) * (depth == "3")
        loss, accuracy = guessing * (1 - solved), 0.5 + 0.5 * solved
        curves = {"loss": loss, "accuracy": accuracy} | {name: accuracy for name in claim.TARGETS if depth == "3"}
        measured |= {f"{depth}/{name}": np.tile(curve, (seeds, 1)) for name, curve in curves.items()}
        measured[f"{depth}/lengths"] = np.full(seeds, len(steps))
    return measured


def test_a_plateau_and_a_sharp_transition_hold_and_steady_improvement_has_neither() -> None:
    (subject,), measured = claim.subjects(), planted()
    assert set(claim.judge(subject, measured).statements.values()) == {"holds"}
    rng = np.random.default_rng(0)
    steady = claim.judge(subject, claim.gradual(subject, measured, rng)).statements
    assert steady == {"plateau": "fails", "transition": "fails", "two layers": "holds", "one layer": "holds"}
    learned = claim.judge(subject, claim.learned_at_times(subject, measured, rng)).statements
    assert learned == {"plateau": "holds", "transition": "holds", "two layers": "fails", "one layer": "fails"}
