"""The kind of point that ignoring the input is, judged on planted measures, and the nulls of the claim."""

from __future__ import annotations

import numpy as np

from cases import each
from vitrify.claims import tied_weights_make_ignoring_the_input_a_local_minimum as claim
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials import minima


def planted(name: str) -> tuple[Subject, Measured]:
    """Return a subject of that name and measures without errors."""
    subject = next(each for each in claim.subjects() if each.name == name)
    sizes, chains = subject.data["sizes"], subject.data["chains"]
    over, tied = minima.above(chains), sizes.tied
    minimum, zero = over & tied, np.zeros(len(chains))
    both = {
        "negative": np.where(minimum, 0, sizes.d),
        "positive": np.where(~over & tied, 1, sizes.d + 1),
        "smallest": np.where(minimum, 0, -0.01),
    }
    arrays = {key: np.stack([each, each], axis=1).astype(float) for key, each in both.items()}
    arrays |= {f"{key} at {point}": zero for key in ("slope", "loss") for point in ("θ_π", "θ*")}
    arrays |= {"slope off θ_π": zero + 1e-9, "Hessian": zero, "slices": np.zeros((2, 31))}
    arrays |= {"nearby": np.where(minimum, 1e-9, -1e-6), "down": np.where(minimum, 0, -1e-6)}
    return subject, arrays | ({"closed form": np.zeros((7, len(chains)))} if tied else {})


def test_chains_are_on_the_side_of_their_number_and_not_too_near() -> None:
    for number in range(200):
        p, q = minima.chain(number)
        assert (p + q > 1) == bool(number % 2)
        assert minima.MIN_APART - 1e-9 <= abs(p + q - 1) <= minima.MAX_APART + 1e-9
        assert min(p, q, 1 - p, 1 - q) >= minima.MIN_PROBABILITY - 1e-9


@each("name", ["tied", "untied"])
def test_statements_hold_on_exact_measures_and_each_fails_on_its_null(name: str) -> None:
    subject, arrays = planted(name)
    stated = claim.judge(subject, arrays).statements
    assert set(stated.values()) == {"holds"}
    for key in stated:
        null = claim.CLAIM.nulls[key](subject, arrays, np.random.default_rng(0))
        failing = {each for each, verdict in claim.judge(subject, null).statements.items() if verdict != "holds"}
        assert failing == {key}
