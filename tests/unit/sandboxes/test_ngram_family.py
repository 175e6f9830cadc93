"""N-gram models without tables: logits by their definition, and only what n, the alphabet and the rank allow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from vitrify.sandboxes.ngram_family import NGramFamily

BOX = NGramFamily(4, 5, 3, length=7, n=3.0, used=4.0, rank=2.0, task=7)


def said(box: NGramFamily, past: list[int]) -> Any:
    return np.asarray(jax.jit(box._law())(np.array([past], np.int32)))[0]


def test_shared_logits_are_products_of_vectors_of_the_rank() -> None:
    drawn = np.asarray(jax.random.normal(jax.random.key(7, impl="threefry2x32"), (5 * 4 + 3, 3)))
    out, read = drawn[:5], drawn[5:].reshape(3, 6, 3)
    h = (read[0, 2] + read[1, 5])[:2]  # the last symbol is 2, before it stands nothing, and n = 3 looks no further
    wanted = out[:, :2] @ h / np.sqrt(2 * 2) / 0.5
    found = said(BOX, [2, 5, 1])
    np.testing.assert_allclose(found[:4], wanted[:4], rtol=1e-4, atol=1e-5)
    assert found[4] < -1e29
    past = np.pad(np.indices((5, 5)).reshape(2, -1).T, ((0, 0), (0, 1))).astype(np.int32)
    assert np.linalg.matrix_rank(np.asarray(jax.jit(replace(BOX, used=5)._law())(past)), 1e-3) == 2


@pytest.mark.parametrize("family", ["general", "shared"])
def test_only_the_last_symbols_count(family: str) -> None:
    box = replace(BOX, family=family)  # type: ignore[arg-type]
    np.testing.assert_array_equal(said(box, [2, 1, 0]), said(box, [2, 1, 3]))
    assert (said(box, [2, 1, 0])[:4] != said(box, [2, 0, 0])[:4]).all()
    longer = replace(box, n=4.0)
    assert (said(longer, [2, 1, 0])[:4] != said(longer, [2, 1, 3])[:4]).all()
    assert (said(box, [2, 1, 0])[:4] != said(replace(box, task=8), [2, 1, 0])[:4]).all()


def test_laws_of_their_own_are_normal_over_the_temperature() -> None:
    box = NGramFamily(4, 9, 1, family="general", length=5, n=4, used=9, rank=1, temperature=0.25)
    past = np.indices((9, 9, 9)).reshape(3, -1).T.astype(np.int32)
    logits = np.asarray(box._law()(past)) * 0.25
    assert abs(logits.mean()) < 0.05
    assert abs(logits.std() - 1) < 0.05
    assert np.abs(np.corrcoef(logits.T) - np.eye(9)).max() < 0.15
    assert len(np.unique(logits)) > 0.999 * logits.size
