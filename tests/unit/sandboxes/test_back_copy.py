"""Back-copying: rows and the optimum by the rule itself, and predictors by counts over long rows."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from vitrify.errors import InputError
from vitrify.sandboxes.back_copy import BackCopy
from vitrify.sandboxes.catalogue import Example, examples


def drawn(sandbox: BackCopy, count: int) -> Example:
    found: Example = jax.tree.map(np.asarray, jax.jit(lambda: examples(sandbox, 0, "test", 0, count))())
    return found


def test_a_trigger_is_followed_by_what_stood_before_it() -> None:
    sandbox = BackCopy(vocabulary=7, triggers=2, length=30)
    found = drawn(sandbox, 300).targets
    assert sandbox.trigger.sum() == 2
    is_one = sandbox.trigger[found]
    assert is_one.any()
    assert not is_one[:, 0].any()
    assert not (is_one[:, 1:] & is_one[:, :-1]).any()
    before, last, following = found[:, :-2], found[:, 1:-1], found[:, 2:]
    assert (following == before)[is_one[:, 1:-1]].all()
    counts: Any = np.zeros((7, 7))
    np.add.at(counts, (last[~is_one[:, 1:-1]], following[~is_one[:, 1:-1]]), 1)
    usual = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    noise = np.sqrt(0.25 / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    assert (np.abs(usual - sandbox.table)[~sandbox.trigger] < 5 * noise[~sandbox.trigger]).all()


def test_predictions_are_the_rule_and_its_means() -> None:
    sandbox = BackCopy(vocabulary=5, triggers=1, length=7, task=2)
    trigger = int(np.flatnonzero(sandbox.trigger)[0])
    a, b = [token for token in range(5) if token != trigger][:2]
    tokens = np.array([a, b, trigger, b, a, trigger])
    row = Example(tokens, np.append(tokens, 0), np.ones(7), {})
    best = np.exp(sandbox.optimal(row))
    expected = [sandbox.first, *sandbox.table[[a, b]], np.eye(5)[b], *sandbox.table[[b, a]], np.eye(5)[a]]
    np.testing.assert_allclose(best, expected, atol=1e-6)
    long = drawn(BackCopy(vocabulary=5, triggers=1, length=2000, task=2), 40).targets
    counts: Any = np.zeros((5, 5))
    np.add.at(counts, (long[:, :-1], long[:, 1:]), 1)
    np.testing.assert_allclose(np.exp(sandbox.unigram(row))[1], counts.sum(axis=0) / counts.sum(), atol=0.01)
    means = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(sandbox.bigram(row))[1:], means[tokens], atol=0.02)
    np.testing.assert_allclose(np.exp(sandbox.usual(row))[1:], sandbox.table[tokens], atol=1e-6)


def test_all_that_is_wrong_is_said() -> None:
    wrong = (
        ({"vocabulary": 1}, "vocabulary must be a whole number from 2 to 255, not 1"),
        ({"vocabulary": 300}, "vocabulary must be a whole number from 2 to 255, not 300"),
        ({"vocabulary": 4, "triggers": 4}, "triggers must be below vocabulary = 4, not 4"),
        (
            {"alpha": 0.0, "task": -1, "length": 1},
            "length must be .* at least 2, not 1; alpha must be a number above 0, not 0.0; task must be .* at least 0",
        ),
    )
    for parameters, message in wrong:
        with pytest.raises(InputError, match=message):
            BackCopy(**parameters)
