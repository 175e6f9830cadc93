"""Who does what in mixtures of experts: against counts by hand, and on a built net of which all is known."""

from __future__ import annotations

from collections import Counter
from math import log
from typing import Any

import jax
import numpy as np
import pytest

from vitrify.constructions.knowledge import knowledge
from vitrify.kit import assemble
from vitrify.learn.models.built import BuiltFamily
from vitrify.learn.routing import agreement, information, load, purity, survey
from vitrify.net.sparse import dense
from vitrify.sandboxes.knowledge import KnowledgeSandbox


def by_hand(pairs: list[tuple[int, int]]) -> tuple[float, float, float, float]:
    """Information, agreement, purity and load of a list of (task, expert), one pair at a time."""
    size, both = len(pairs), Counter(pairs)
    task, expert = Counter(t for t, _ in pairs), Counter(e for _, e in pairs)
    shared = sum(n / size * log(n * size / (task[t] * expert[e])) for (t, e), n in both.items())
    own, theirs = (-sum(n / size * log(n / size) for n in count.values()) for count in (task, expert))
    main = sum(max(n for (_, f), n in both.items() if f == e) for e in expert)
    return shared / own, 2 * shared / (own + theirs), main / size, 3 * max(expert.values()) / size


def test_measures_are_their_definitions() -> None:
    rng = np.random.default_rng(0)
    tables, wanted = [], []
    for _ in range(5):
        pairs = [(int(t), int((t * (rng.random() < 0.6) + rng.integers(2)) % 3)) for t in rng.integers(4, size=60)]
        table = np.zeros((4, 3))
        for pair in pairs:
            table[pair] += 1
        tables.append(table)
        wanted.append(by_hand(pairs))
    found = np.stack([measure(np.stack(tables)) for measure in (information, agreement, purity, load)], axis=1)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_what_is_certain_and_what_is_not() -> None:
    """Two experts for each task tell it, and are not its partition; one expert for all tells nothing."""
    twice = np.repeat(np.eye(3), 2, axis=1)
    assert information(twice) == pytest.approx(1)
    assert agreement(twice) == pytest.approx(2 * log(3) / (log(3) + log(6)))
    assert (purity(twice), load(twice)) == (pytest.approx(1), pytest.approx(1))
    assert agreement(np.eye(3)[[2, 0, 1]]) == pytest.approx(1)
    lazy = np.eye(4)[:, :1] * 0 + np.array([1.0, 0, 0, 0])
    assert (information(lazy), load(lazy), purity(lazy)) == (0, 4, 0.25)


@pytest.mark.slow
def test_a_survey_of_a_built_net_finds_one_expert_for_each_task() -> None:
    """All is answered; without its expert a task is left to the first value, and no other task is."""
    sandbox = KnowledgeSandbox(tasks=3, templates=2, keys=4, pooled=True)
    weights = assemble(knowledge(sandbox.known), arithmetic="float32")
    family, (queries, drawn) = BuiltFamily(start=weights), sandbox.every()
    assert drawn.all()
    probe = survey(family, sandbox, queries)
    arrays: Any = {name: np.asarray(dense(array), np.float32) for name, array in weights.arrays.items()}
    seen = np.asarray(jax.jit(lambda given: probe(weights.architecture, given, queries, {}))(arrays))
    task, answer = np.asarray(queries.latent["task"]), np.asarray(queries.targets).max(axis=1)
    np.testing.assert_array_equal(seen[:, :3], np.eye(3)[task])
    assert seen[:, 3].all()
    for expert in range(3):
        np.testing.assert_array_equal(seen[:, 4 + expert], (task != expert) | (answer == 0))
