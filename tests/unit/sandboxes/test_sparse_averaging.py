"""Sparse averaging: means as the task spec has them, and targets that average to them."""

from __future__ import annotations

import numpy as np
import pytest

from exact_rows import drawn, foretold
from vitrify.errors import InputError
from vitrify.sandboxes.sparse_averaging import SparseAveragingSandbox
from vitrify.spec.tasks.sparse_averaging import SparseAveraging as Task


def test_means_are_those_of_the_task() -> None:
    sandbox = SparseAveragingSandbox(length=7, sparsity=3, dimensions=2)
    found = drawn(sandbox, 100)
    best = np.exp(foretold(sandbox, found))
    task = Task(7, 3, 2)
    assert found.soft is not None
    for number, row in enumerate(found.tokens):
        means = np.array(task.answers([sandbox.symbols[token] for token in row]))
        assert np.allclose(found.latent["mean"][number], means, atol=1e-6)
        assert np.allclose(best[number, 1:] @ task.vectors, means, atol=1e-6)
    assert np.allclose(found.soft, best, atol=1e-6)
    assert np.take_along_axis(best, found.targets[..., None], axis=-1).min() > 0.2  # one of the three at least
    assert (found.weight == np.array([0] + [1] * 7)).all()


def test_symbols_and_targets_are_as_likely_as_they_should_be() -> None:
    sandbox = SparseAveragingSandbox(length=4, sparsity=2, dimensions=1)
    found = drawn(sandbox, 20_000)
    counts = np.bincount(found.tokens.ravel(), minlength=12)
    assert np.abs(counts / (80_000 / 12) - 1).max() < 5 / np.sqrt(80_000 / 12)
    assert found.soft is not None
    mixed = found.soft[:, 1:, 0] == 0.5
    assert abs(found.targets[:, 1:][mixed].mean() - 0.5) < 5 * 0.5 / np.sqrt(mixed.sum())


def test_bad_parameters_are_all_named() -> None:
    with pytest.raises(InputError, match="dimensions must be a whole number of at least 1, not 0"):
        SparseAveragingSandbox(length=3, sparsity=4, dimensions=0)
    with pytest.raises(InputError, match="sparsity must be at most length = 3"):
        SparseAveragingSandbox(length=3, sparsity=4)
    with pytest.raises(InputError, match="make more than 65,536 symbols"):
        SparseAveragingSandbox(length=40, sparsity=4)
