"""Chains and their mirror images, and the statements about them on planted losses."""

from __future__ import annotations

import numpy as np

from vitrify.claims import tied_transformers_learn_a_markov_chain_only_if_p_plus_q_is_below_1 as claim
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials import chain_grid
from vitrify.claims.trials.chain_grid import BETTER, TIED


def planted() -> tuple[Subject, Measured]:
    """Return a subject of large scale, and measurements in which all statements are true."""
    (subject,) = claim.large()
    p, q = np.array(subject.data["chains"]).T
    left = np.zeros((3, len(p), 4))
    left[TIED, p + q > 1] = 1
    left[BETTER, (p + q > 1) & (p > q)] = 1
    floor = np.zeros_like(left)
    measured = {"floor": floor, "floor.unigram": floor + 0.1, "loss": 0.1 * left}
    says = np.stack([floor, floor + 1 - left], axis=-1)
    return subject, {**measured, "after": says, "curves": np.zeros((3, 4, 11))}


def test_each_cell_has_a_chain_and_pairs_are_mirror_images() -> None:
    chains = chain_grid.drawn(5, range(15))
    assert len(set(chains)) == 25
    assert {(int((p - 0.02) / 0.192), int((q - 0.02) / 0.192)) for p, q in chains} == set(np.ndindex(5, 5))
    first, second = chain_grid.pairs(chains, np.ones(25, bool))
    assert len(first) == 10
    assert all(chains[a] == chains[b][::-1] and chains[a][0] < chains[a][1] for a, b in zip(first, second, strict=True))


def test_all_statements_hold_as_planted_and_each_is_rejected_on_its_null() -> None:
    subject, measured = planted()
    assert set(claim.judge(subject, measured).statements.values()) == {"holds"}
    for key, null in claim.CLAIM.nulls.items():
        rng = np.random.default_rng(0)
        verdicts = [claim.judge(subject, null(subject, measured, rng)).statements[key] for _ in range(20)]
        assert "holds" not in verdicts, key
