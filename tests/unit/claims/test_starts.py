"""The judge and the nulls of the claim about starts of training, on planted curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vitrify.claims import training_preserves_constructions_but_finds_only_induction as claim
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials import starts
from vitrify.claims.trials.problems import JUDGED_SEED, LARGE
from vitrify.claims.trials.starts import StartSettings


def planted() -> Measured:
    """Return eight seeds that keep the built net, regain the function after noise, and find other nets but once."""
    (subject,) = claim.subjects()
    settings: StartSettings = subject.data["settings"]
    steps = len(settings.recipe.eval_steps())
    arrays: dict[str, Any] = {}
    for problem in subject.trials:
        ends = []  # excess, turn and kind at the beginning and at the end
        for noise, scratch, _ in settings.starts.values():
            kind = 0.2 if problem == "induction" else 0.9
            begin = (1.0, 1.0, 1.0) if scratch else (3 * noise, noise, 0.0)
            ends.append((begin, (0.01, 0.99, kind) if scratch else (0.001, max(0.9 * noise, 0.05), 0.01)))
        way = np.linspace(0, 1, steps)
        for at, name in enumerate(("excess", "turn", "kind")):
            curves = np.array([begin[at] + (end[at] - begin[at]) * way for begin, end in ends])
            arrays[f"{problem}/{name}"] = np.repeat(curves[:, None], 8, axis=1)
    return arrays


def test_planted_starts_hold_and_each_null_is_rejected_by_its_statement() -> None:
    (subject,), measured = claim.subjects(), planted()
    assert claim.judge(subject, measured).statements == dict.fromkeys(claim.PLAN.statements, "holds")
    for name, null in claim.CLAIM.nulls.items():
        before = {each: array.copy() for each, array in measured.items()}
        assert claim.judge(subject, null(subject, measured, np.random.default_rng(1))).statements[name] == "fails"
        assert all((measured[each] == array).all() for each, array in before.items())


def test_noise_that_never_costs_the_function_is_not_repaired() -> None:
    (subject,), measured = claim.subjects(), planted()
    settings: StartSettings = subject.data["settings"]
    left = starts.repaired(starts.curves(measured, "grammar", settings), settings)
    assert len(left) == 8 * sum(3 * noise > starts.MAX_EXCESS for noise in settings.noises)
    np.testing.assert_allclose(left, 0.9)


def test_without_problems_that_are_solved_from_scratch_nothing_is_said_of_the_way() -> None:
    (subject,), measured = claim.subjects(), dict(planted())
    for problem in subject.trials:
        measured[f"{problem}/excess"] = measured[f"{problem}/excess"] + 0.2
    verdicts = claim.judge(subject, measured).statements
    assert {verdicts[key] for key in ("another way", "same way", "not repaired")} == {"undecided"}


@pytest.mark.parametrize("problem", ["n-gram", "hierarchy"])
def test_the_judged_problems_are_drawn_anew(problem: str) -> None:
    assert JUDGED_SEED in LARGE[problem].args  # type: ignore[attr-defined]
    assert JUDGED_SEED not in claim.PLAN.explored
