"""Medleys against the tasks that they are made of."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from cases import each
from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import examples, make
from vitrify.sandboxes.copying import CopyingSandbox
from vitrify.sandboxes.medley import Medley
from vitrify.sandboxes.modular import Modular
from vitrify.sandboxes.regular import Regular
from vitrify.spec.automata.families import cyclic

TASKS = CopyingSandbox(states=5, shortest=1, longest=3), Regular(cyclic(2), 5, "states")


def test_rows_and_best_answers_are_those_of_the_task_and_behind_them_stands_nothing() -> None:
    medley = Medley(TASKS)

    @jax.jit
    def both(key: Any) -> Any:
        def one(number: Any) -> Any:
            row = medley.at({"task": number}).draw(key)
            chosen = medley.at({"task": number})
            return row, chosen.optimal(row), chosen.uniform(row)

        own = [task.draw(key) for task in TASKS]
        best = [task.optimal(row) for task, row in zip(TASKS, own, strict=True)]
        return jax.vmap(one)(np.array([0.0, 1.0], np.float32)), own, best

    (found, told, uniform), own, best = jax.device_get(both(jax.random.key(3)))
    assert medley.tokens == 7
    assert len(medley.symbols) == 8  # five letters, the separator and the blank of copying, and the medley's own
    for at, task in enumerate(TASKS):
        n = task.tokens
        assert np.array_equal(found.tokens[at], np.pad(own[at].tokens, (0, 7 - n), constant_values=7))
        assert np.array_equal(found.targets[at][: n + 1], own[at].targets)
        assert np.array_equal(found.weight[at], np.pad(own[at].weight, (0, 7 - n)))
        count = len(task.answers)
        assert np.array_equal(told[at][: n + 1, :count], best[at])
        assert (told[at][: n + 1, count:] < -1e9).all()
        assert np.allclose(np.exp(uniform[at][: n + 1, :count]), 1 / count)


def test_splits_are_those_of_the_tasks() -> None:
    """Of a task that keeps questions from training, other splits draw the others."""
    modular = Modular(modulus=5, fraction=0.4)
    medley = Medley((modular,))
    for split in ("train", "test"):
        found = jax.device_get(jax.jit(lambda split=split: examples(medley, 0, split, 0, 64))())
        allowed = {tuple(question) for question in modular.of(split).questions.tolist()}
        assert {tuple(row) for row in found.tokens[:, ::2].tolist()} <= allowed


@each(
    ("parameters", "message"),
    [
        ({"task": 2.0}, "task must be from 0 to 1, not 2"),
        ({"tasks": ()}, "tasks must not be empty"),
        ({"tasks": (make("match"),)}, "token by token, match is not"),
        ({"tasks": (make("scenes"),)}, "token by token, scenes is not"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Medley(**parameters)
