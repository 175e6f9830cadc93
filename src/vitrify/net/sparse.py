"""Products with matrices that are mostly zero: dense, on the non-zero rows only, or sparse, whichever is cheaper.

Weights keep large, mostly empty matrices as SciPy CSR arrays. Before a run each matrix is put into the form in which
its product is cheapest; `matmul` and `rows` then hide the difference from the forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Array, Matrix

DENSE_ENTRIES = 1 << 20  # below 8 MiB a dense array is always the simplest form
SMALL_ENTRIES = 1 << 16  # below 512 KiB no product is worth preparing
DENSE_DENSITY = 0.02  # a BLAS product beats a CSR product above about this share of non-zeros


def is_sparse(matrix: Matrix) -> bool:
    """Whether this is a SciPy sparse array (asked without importing SciPy)."""
    return hasattr(matrix, "tocsr")


def dense(matrix: Matrix) -> Array:
    """The same numbers as a dense array."""
    return matrix.toarray() if is_sparse(matrix) else matrix


def nonzeros(matrix: Matrix) -> int:
    """How many entries differ from zero."""
    return int(matrix.count_nonzero()) if is_sparse(matrix) else int(np.count_nonzero(matrix))


def from_entries(rows: Array, columns: Array, values: Array, shape: tuple[int, int]) -> Matrix:
    """The matrix with these entries (those at one place are added up) and zeros elsewhere.

    Dense where that is small or well filled, else CSR with sorted indices and no explicit zeros.
    """
    size = shape[0] * shape[1]
    if size <= DENSE_ENTRIES or len(values) > DENSE_DENSITY * size:
        matrix = np.zeros(shape)
        np.add.at(matrix, (rows, columns), values)
        return matrix
    from scipy.sparse import coo_array

    csr = coo_array((values, (rows, columns)), shape=shape).tocsr()
    csr.sum_duplicates()
    csr.eliminate_zeros()
    return csr


@dataclass(frozen=True, eq=False)
class OnRows:
    """A matrix whose non-zero rows are few: only they are stored and multiplied."""

    index: Array
    block: Array


def prepare(matrix: Matrix) -> Matrix | OnRows:
    """The form of a [in, out] matrix in which `matmul` is cheapest."""
    if not is_sparse(matrix):
        if matrix.ndim < 2 or matrix.size < min(SMALL_ENTRIES, DENSE_ENTRIES):
            return matrix
        index = np.flatnonzero(matrix.any(axis=(0, -1) if matrix.ndim == 3 else -1))
        if matrix.ndim == 3 or np.count_nonzero(matrix) >= DENSE_DENSITY * len(index) * matrix.shape[1]:
            return OnRows(index, np.ascontiguousarray(np.take(matrix, index, axis=-2)))
        from scipy.sparse import csr_array

        return csr_array(matrix)
    csr = matrix.tocsr()
    index = np.flatnonzero(np.diff(csr.indptr))
    if csr.nnz >= DENSE_DENSITY * len(index) * csr.shape[1]:
        return OnRows(index, csr[index].toarray())
    return csr


def matmul(x: Array, matrix: Matrix | OnRows) -> Array:
    """`x @ matrix` over the last axis of x; a stack of matrices [head, in, out] gives [..., head, out].

    The leading axes are made one first: products of two matrices, in any memory order, are what BLAS is fast at.
    """
    flat = x.reshape(-1, x.shape[-1])
    if isinstance(matrix, OnRows):
        flat, matrix = flat[:, matrix.index], matrix.block
        if matrix.ndim == 2:  # stored column by column, so that a sparse product that follows reads it without a copy
            return (matrix.T @ flat.T).T.reshape(*x.shape[:-1], matrix.shape[1])
    if is_sparse(matrix) or matrix.ndim == 2:
        return (flat @ matrix).reshape(*x.shape[:-1], matrix.shape[1])
    heads, width, out = matrix.shape
    return (flat @ matrix.transpose(1, 0, 2).reshape(width, heads * out)).reshape(*x.shape[:-1], heads, out)


def affine(x: Array, matrix: Matrix | OnRows, bias: Array) -> Array:
    """`x @ matrix + bias`; NumPy adds in place, which halves the time of a wide layer."""
    product = matmul(x, matrix)
    if isinstance(product, np.ndarray):
        product += bias
        return product
    return product + bias


def rows(matrix: Matrix, index: Array) -> Array:
    """The rows of a matrix, by an integer array of any shape."""
    if is_sparse(matrix):
        return matrix[index.ravel()].toarray().reshape(*index.shape, matrix.shape[1])
    return matrix[index]
