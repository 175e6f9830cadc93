"""Recall: answers as the task spec has them, and questions where the law of their gaps puts them."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from exact_rows import asked, drawn, foretold, share, told
from vitrify.errors import InputError
from vitrify.sandboxes.recall import RecallSandbox
from vitrify.spec.tasks.recall import Recall as Task


@pytest.mark.parametrize("filler", ["random", "blank"])
def test_answers_are_those_of_the_task(filler: str) -> None:
    """The pairs and the questions alone, without what stands between, are a word of the task."""
    sandbox = RecallSandbox(vocabulary=21, pairs=5, length=31, filler=filler)  # type: ignore[arg-type]
    found = drawn(sandbox, 300)
    best = foretold(sandbox, found)
    task = Task(keys=9, values=11, pairs=5, queries=5, fused=False)
    fillers = set()
    for number, (word, answers) in enumerate(asked(sandbox, found)):
        assert len(answers) == 5
        kept = [*range(10), *(t - 1 for t in answers)]
        right = told(task.answers([word[i] for i in kept]))
        assert {kept[t - 1] + 1: answer for t, answer in right.items()} == answers
        assert [sandbox.answers[best[number, t].argmax()] for t in answers] == [*answers.values()]
        assert all(t % 2 for t in answers)
        assert len({word[i] for i in range(0, 10, 2)}) == 5
        fillers |= {word[i] for i in range(10, 31) if i + 1 not in answers}
    assert fillers == ({"_"} if filler == "blank" else {*sandbox.symbols})


def test_places_are_drawn_one_after_the_other_without_return() -> None:
    sandbox = RecallSandbox(vocabulary=8, pairs=2, length=13, power=0.2, filler="blank")
    p = np.arange(1, 5) ** -0.8
    orders = [*permutations(range(4), 2)]
    expected = [p[a] / p.sum() * p[b] / (p.sum() - p[a]) for a, b in orders]
    places = (drawn(sandbox, 40_000).latent["position"] - 4) // 2
    assert share([(places == order).all(axis=1).sum() for order in orders], expected) > 1e-6


def test_whoever_knows_only_the_values_pays_for_the_key() -> None:
    sandbox = RecallSandbox(vocabulary=256, pairs=4, length=64)
    found = drawn(sandbox, 64)
    import jax

    guess = np.asarray(jax.jit(jax.vmap(sandbox.told))(found))
    right = np.take_along_axis(guess, found.targets[..., None], axis=-1)[..., 0][found.weight > 0]
    assert right.min() >= np.log(1 / 4) - 1e-5
    assert right.mean() < np.log(1 / 4) + 0.1


def test_bad_parameters_are_all_named() -> None:
    with pytest.raises(InputError, match=r"vocabulary must be .*; pairs must be .* at least 1.*; power must be"):
        RecallSandbox(vocabulary=3, pairs=0, power=0.0)
    with pytest.raises(
        InputError,
        match="pairs must be at most keys = 1, as their keys differ, not 2; length must be at least 4",
    ):
        RecallSandbox(vocabulary=4, pairs=2, length=7)
