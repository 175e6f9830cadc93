"""Products with mostly empty matrices: every form gives the dense product."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from cases import each
from vitrify.net import sparse
from vitrify.net.sparse import (
    OnRows,
    Stack,
    dense,
    is_sparse,
    matmul,
    matmul_heads,
    nonzeros,
    prepare,
    prepare_heads,
    rows,
)


def thin(shape: tuple[int, ...], density: float, seed: int = 0) -> np.ndarray:
    """A matrix whose non-zeros fall on a third of its rows, at the given density there."""
    rng = np.random.default_rng(seed)
    full = rng.normal(size=shape) * (rng.random(shape) < density)
    full[..., rng.random(shape[-2]) < 2 / 3, :] = 0
    return full


@pytest.fixture(params=[1, 1 << 20], ids=["all large", "all small"])
def _entries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "DENSE_ENTRIES", request.param)


@pytest.fixture(params=[0.0, 0.5, 2.0], ids=["all dense", "by density", "all sparse"])
def _density(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "DENSE_DENSITY", request.param)


@pytest.mark.usefixtures("_entries", "_density")
@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("leading", [(), (4,), (2, 3)])
def test_every_form_multiplies_alike(density: float, leading: tuple[int, ...]) -> None:
    matrix = thin((9, 5), density)
    x = np.random.default_rng(1).normal(size=(*leading, 9))
    for form in (matrix, csr_array(matrix), prepare(matrix), prepare(csr_array(matrix))):
        if leading or not is_sparse(form):
            np.testing.assert_allclose(matmul(x, form), x @ matrix, atol=1e-12)


@pytest.mark.usefixtures("_entries")
@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
def test_stacks_multiply_head_by_head(density: float) -> None:
    stack = thin((3, 9, 2), density)
    x = np.random.default_rng(1).normal(size=(2, 4, 9))
    wanted = np.stack([x @ matrix for matrix in stack], axis=-2)
    assert wanted.shape == (2, 4, 3, 2)
    for form in (stack, prepare(stack)):
        np.testing.assert_allclose(matmul(x, form), wanted, atol=1e-12)


def test_small_matrices_and_vectors_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, vector = thin((4, 4), 0.5), np.zeros(20)
    assert prepare(matrix) is matrix
    monkeypatch.setattr(sparse, "DENSE_ENTRIES", 16)
    assert prepare(vector) is vector
    assert isinstance(prepare(matrix), OnRows)


def test_a_large_matrix_keeps_only_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "DENSE_ENTRIES", 1)
    stack = np.zeros((2, 6, 3))
    stack[0, 4, 1] = stack[1, 2, 2] = 7
    prepared = prepare(stack)
    assert isinstance(prepared, OnRows)
    assert prepared.index.tolist() == [2, 4]
    assert prepared.heads == 2
    np.testing.assert_array_equal(prepared.block, np.concatenate([stack[0, [2, 4]], stack[1, [2, 4]]], axis=1))


def test_a_sparse_matrix_is_densified_only_where_it_is_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.zeros((100, 10))
    matrix[7, :5] = 1  # half of its one row
    monkeypatch.setattr(sparse, "DENSE_DENSITY", 0.5)
    prepared = prepare(csr_array(matrix))
    assert isinstance(prepared, OnRows)
    assert prepared.block.shape == (1, 10)
    monkeypatch.setattr(sparse, "DENSE_DENSITY", 0.51)
    assert is_sparse(prepare(csr_array(matrix)))


@each("shape", [(), (3,), (2, 4), (2, 0)])
def test_rows_of_any_shape(shape: tuple[int, ...]) -> None:
    matrix = thin((6, 3), 0.5)
    index = np.random.default_rng(2).integers(6, size=shape)
    for form in (matrix, csr_array(matrix)):
        got = rows(form, index)
        assert got.shape == (*shape, 3)
        np.testing.assert_array_equal(got, matrix[index])


def test_counting_and_filling() -> None:
    matrix = np.array([[0.0, 2.0], [0.0, 0.0]])
    stored_zero = csr_array(coo_array(([2.0, 0.0], ([0, 1], [1, 0])), shape=(2, 2)))
    assert stored_zero.nnz == 2
    for form in (matrix, csr_array(matrix), stored_zero):
        assert nonzeros(form) == 1
        np.testing.assert_array_equal(dense(form), matrix)
    assert is_sparse(stored_zero)
    assert not is_sparse(matrix)


def test_entries_are_added_up_and_stored_in_the_form_that_suits_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, columns = np.array([2, 0, 2, 1, 1]), np.array([1, 3, 1, 0, 0])
    values = np.array([1.0, 4.0, 2.0, 5.0, -5.0])
    small = sparse.from_entries(rows, columns, values, (3, 4))
    assert small.tolist() == [[0, 0, 0, 4], [0, 0, 0, 0], [0, 3, 0, 0]]
    monkeypatch.setattr(sparse, "DENSE_ENTRIES", 0)
    monkeypatch.setattr(sparse, "DENSE_DENSITY", 5 / 12)
    large = sparse.from_entries(rows, columns, values, (3, 4))
    assert (large.nnz, large.indices.tolist(), large.data.tolist()) == (2, [3, 1], [4.0, 3.0])
    np.testing.assert_array_equal(large.toarray(), small)
    monkeypatch.setattr(sparse, "DENSE_DENSITY", 0.41)
    assert not sparse.is_sparse(sparse.from_entries(rows, columns, values, (3, 4)))


def test_an_empty_stack_of_heads_is_multiplied_sparsely_and_right() -> None:
    rng = np.random.default_rng(0)
    stack = np.zeros((4, 64, 512))
    stack[rng.integers(0, 4, 200), rng.integers(0, 64, 200), rng.integers(0, 512, 200)] = rng.normal(size=200)
    x = rng.normal(size=(2, 3, 4, 64))
    ready = prepare_heads(stack)
    assert isinstance(ready, Stack)
    wanted = np.einsum("bphi,hio->bpo", x, stack)
    np.testing.assert_allclose(matmul_heads(x, ready), wanted, atol=1e-12)
    np.testing.assert_allclose(matmul_heads(x, prepare_heads(stack + 1.0)), wanted + x.sum((-2, -1))[..., None])
    assert prepare_heads(stack[:, :2, :2]).shape == (4, 2, 2)
