"""Products with matrices that are mostly zero: dense, on the non-zero rows only, or sparse, whichever is cheaper.

Weights keep large, mostly empty matrices as SciPy CSR arrays, and such arrays [head, in, out] as a `Stack` of them.
Before a run each is put into the form in which its product is cheapest; `matmul`, `matmul_heads` and `rows` then hide
the difference from the forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from vitrify.arrays import Array, Matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DENSE_ENTRIES = 1 << 20  # below 8 MiB a dense array is always the simplest form
SMALL_ENTRIES = 1 << 16  # below 512 KiB no product is worth preparing
MAX_LOOKUP_ROWS = 1024  # of a product that may stand for a look-up
DENSE_DENSITY = 0.02  # a BLAS product beats a CSR product above about this share of non-zeros


@dataclass(frozen=True, eq=False)
class Stack:
    """A mostly empty array [head, in, out]: the matrices of the heads, one below the other, as one CSR array.

    It looks like a CSR array to all that only goes through its non-zero entries.
    """

    heads: int
    csr: csr_array[np.float64]

    ndim = 3

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.heads, self.csr.shape[0] // self.heads, self.csr.shape[1]

    def __getattr__(self, name: str) -> Array:
        """The arrays of the entries and what counts them, as they are in the one CSR array."""
        if name not in ("data", "dtype", "indices", "indptr", "count_nonzero", "eliminate_zeros"):
            raise AttributeError(name)
        return getattr(self.csr, name)

    def __getitem__(self, head: int) -> csr_array[np.float64]:
        """Return the matrix of one head."""
        rows = self.shape[1]
        return self.csr[head * rows : (head + 1) * rows]

    def __abs__(self) -> Stack:
        return Stack(self.heads, abs(self.csr))

    def tocsr(self) -> Stack:
        return self

    def toarray(self) -> Array:
        return self.csr.toarray().reshape(self.shape)

    def astype(self, kind: DTypeLike) -> Stack:
        return Stack(self.heads, self.csr.astype(kind))  # type: ignore[arg-type]  # a csr_array again

    def copy(self) -> Stack:
        return Stack(self.heads, self.csr.copy())

    def beside(self) -> csr_array[np.float64]:
        """The matrices side by side, [in, head * out], as one CSR array."""
        from scipy.sparse import coo_array

        heads, rows, out = self.shape
        entries = self.csr.tocoo()
        head, row = np.divmod(entries.row.astype(np.int64), rows)
        return coo_array((entries.data, (row, head * out + entries.col)), shape=(rows, heads * out)).tocsr()


def is_sparse(matrix: Matrix) -> bool:
    """Return true for a SciPy sparse array or a stack of them, without importing SciPy."""
    return hasattr(matrix, "tocsr")


def dense(matrix: Matrix) -> Array:
    """Return the same entries as a dense array."""
    return matrix.toarray() if is_sparse(matrix) else matrix


def nonzeros(matrix: Matrix) -> int:
    """Return the number of entries that differ from zero."""
    return int(matrix.count_nonzero()) if is_sparse(matrix) else int(np.count_nonzero(matrix))


def from_entries(rows: Array, columns: Array, values: Array, shape: tuple[int, ...]) -> Matrix:
    """Return the matrix with these entries (those at one index are added up) and zeros elsewhere.

    Dense where that is small or well filled, else CSR with sorted indices and no explicit zeros. With three axes, rows
    count through the first two.
    """
    flat = (int(np.prod(shape[:-1])), shape[-1])
    size = flat[0] * flat[1]
    if size <= DENSE_ENTRIES or len(values) > DENSE_DENSITY * size:
        matrix = np.zeros(flat)
        np.add.at(matrix, (rows, columns), values)
        return matrix.reshape(shape)
    from scipy.sparse import coo_array

    csr = coo_array((values, (rows, columns)), shape=flat).tocsr()
    csr.sum_duplicates()
    csr.eliminate_zeros()
    return csr if len(shape) == 2 else Stack(shape[0], csr)


@dataclass(frozen=True, eq=False)
class OnRows:
    """A matrix whose non-zero rows are few: only they are stored and multiplied; `heads` matrices lie side by side."""

    index: Array
    block: Matrix
    heads: int | None = None


def prepare(matrix: Matrix) -> Matrix | OnRows:
    """Return the form of a matrix [in, out] or a stack [head, in, out] in which `matmul` is cheapest."""
    if not is_sparse(matrix):
        if matrix.ndim < 2 or matrix.size < min(SMALL_ENTRIES, DENSE_ENTRIES):
            return matrix
        index = np.flatnonzero(matrix.any(axis=(0, -1) if matrix.ndim == 3 else -1))
        block = np.take(matrix, index, axis=-2)
        if matrix.ndim == 3:
            return OnRows(index, *_beside(block))
        if np.count_nonzero(matrix) >= DENSE_DENSITY * len(index) * matrix.shape[1]:
            return OnRows(index, np.ascontiguousarray(block))
        from scipy.sparse import csr_array

        return csr_array(matrix)
    heads = matrix.heads if isinstance(matrix, Stack) else None
    csr = matrix.beside() if isinstance(matrix, Stack) else matrix.tocsr()
    index = np.flatnonzero(np.diff(csr.indptr))
    if csr.nnz >= DENSE_DENSITY * len(index) * csr.shape[1]:
        return OnRows(index, csr[index].toarray(), heads)
    return OnRows(index, csr[index], heads) if heads else csr


def prepare_heads(stack: Matrix) -> Matrix:
    """Return the form of a stack [head, in, out] in which `matmul_heads` is cheapest."""
    if isinstance(stack, Stack) or stack.size < min(SMALL_ENTRIES, DENSE_ENTRIES):
        return stack
    if np.count_nonzero(stack) >= DENSE_DENSITY * stack.size:
        return stack
    from scipy.sparse import csr_array

    return Stack(stack.shape[0], csr_array(stack.reshape(-1, stack.shape[-1])))


def _beside(stack: Array) -> tuple[Array, int]:
    """Return a dense stack [head, in, out] as [in, head * out], and the number of heads."""
    heads, width, out = stack.shape
    return stack.transpose(1, 0, 2).reshape(width, heads * out), heads


def matmul(x: Array, matrix: Matrix | OnRows) -> Array:
    """`x @ matrix` over the last axis of x; a stack of matrices [head, in, out] gives [..., head, out].

    The leading axes are made one first: products of two matrices, in any memory order, are what BLAS is fast at.
    """
    flat = x.reshape(prod(x.shape[:-1]), x.shape[-1])  # also where there are no columns
    heads = None
    if isinstance(matrix, Stack):
        heads, matrix = matrix.heads, matrix.beside()
    elif not isinstance(matrix, OnRows) and not is_sparse(matrix) and matrix.ndim == 3:
        matrix, heads = _beside(matrix)
    if isinstance(matrix, OnRows):
        flat, matrix, heads = flat[:, matrix.index], matrix.block, matrix.heads
        if not heads:  # stored column by column, so that a sparse product that follows reads it without a copy
            return (matrix.T @ flat.T).T.reshape(*x.shape[:-1], matrix.shape[1])
    out = (heads, matrix.shape[1] // heads) if heads else (matrix.shape[1],)
    return (flat @ matrix).reshape(*x.shape[:-1], *out)


def matmul_heads(x: Array, stack: Matrix) -> Array:
    """Return the sum over heads of `x[..., head, :] @ stack[head]`, as one product."""
    heads, width, out = stack.shape
    flat = x.reshape(-1, heads * width)
    matrix = stack.csr if isinstance(stack, Stack) else stack.reshape(heads * width, out)
    return (flat @ matrix).reshape(*x.shape[:-2], out)


def affine(x: Array, matrix: Matrix | OnRows, bias: Array) -> Array:
    """`x @ matrix + bias`; NumPy adds in place, which halves the time of a wide layer."""
    product = matmul(x, matrix)
    if isinstance(product, np.ndarray):
        product += bias
        return product
    return product + bias


def rows(matrix: Matrix, index: Array) -> Array:
    """Return the rows of a matrix, by an integer array of any shape.

    Numbers of two bytes come by a product with one-hot rows, which is exact: to add up the gradients of a look-up, a
    GPU has no quick instruction for such numbers.
    """
    if is_sparse(matrix):
        return matrix[index.ravel()].toarray().reshape(*index.shape, matrix.shape[1])
    if not isinstance(matrix, np.ndarray) and matrix.dtype.itemsize == 2 and matrix.shape[0] <= MAX_LOOKUP_ROWS:
        return (index[..., None] == np.arange(matrix.shape[0])).astype(matrix.dtype) @ matrix
    return matrix[index]
