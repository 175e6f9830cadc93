"""Run a net in a narrower format: the same forward pass, on arrays that round the result of every operation.

Products of matrices and sums go one term after the other, each product and each partial sum rounded, so this is what
hardware without wider accumulators computes. Numbers are kept in float64, where one operation on numbers of 24 bits
and one rounding give what the narrower format gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from vitrify.arrays import Array, Matrix
from vitrify.certification.precision.formats import Format
from vitrify.net.sparse import dense
from vitrify.net.weights import A, Weights

ACCUMULATES = (np.add, np.multiply)


class Narrow(np.ndarray):
    """Array that rounds its numbers, and the result of every operation on them, to one format."""

    format: Format | None = None

    def __array_finalize__(self, made_from: object) -> None:
        self.format = getattr(made_from, "format", None)

    def __array_function__(
        self, function: Callable[..., object], types: Iterable[type], inputs: Iterable[Any], named: Mapping[str, Any]
    ) -> Any:
        """Call a NumPy function; the operations that it consists of come back to `__array_ufunc__`."""
        return self._rewrapped(super().__array_function__(function, types, inputs, named))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        function, named = ufunc, kwargs
        out = named.pop("out", None)
        plain = [np.asarray(x) for x in inputs] if method == "__call__" else [np.asarray(inputs[0]), *inputs[1:]]
        with np.errstate(all="ignore"):
            if function is np.matmul:
                numbers = self._product(*plain)
            elif method in ("reduce", "accumulate") and function in ACCUMULATES:
                numbers = self._summed(function, method, plain[0], **named)
            else:
                numbers = getattr(function, method)(*plain, **named)
                numbers = self._rounded(numbers)
        if out is not None:
            out[0][...] = numbers
            return out[0]
        return self._rewrapped(numbers)

    def _rounded(self, numbers: Array) -> Array:
        if self.format is None or np.asarray(numbers).dtype != np.float64:
            return numbers
        return self.format.stored(numbers)

    def _product(self, left: Array, right: Array) -> Array:
        if not left.shape[-1]:
            return np.matmul(left, right)
        total = self._rounded(left[..., :, :1] * right[..., :1, :])
        for k in range(1, left.shape[-1]):
            total = self._rounded(total + self._rounded(left[..., :, k : k + 1] * right[..., k : k + 1, :]))
        return total

    def _summed(
        self, function: np.ufunc, method: str, x: Array, axis: int | tuple[int, ...] | None = 0, **named: Any
    ) -> Array:
        if x.dtype == bool or axis is None or isinstance(axis, tuple):
            return self._rounded(getattr(function, method)(x, axis=axis, **named))
        parts = np.moveaxis(x, axis, 0)
        partial = [parts[0]]
        for part in parts[1:]:
            partial.append(self._rounded(function(partial[-1], part)))
        if method == "accumulate":
            return np.moveaxis(np.stack(partial), 0, axis)
        return np.expand_dims(partial[-1], axis) if named.get("keepdims") else partial[-1]

    def _rewrapped(self, numbers: Any) -> Any:
        if isinstance(numbers, tuple | list):
            return type(numbers)(self._rewrapped(one) for one in numbers)
        if not isinstance(numbers, np.ndarray) or numbers.dtype != np.float64:
            return np.asarray(numbers) if isinstance(numbers, Narrow) else numbers
        array = numbers.view(Narrow)
        array.format = self.format
        return array


def narrowed(weights: Weights[A], kind: Format) -> Weights[A]:
    """Return the net with its weights in a format; a run of it computes in that format."""

    def one(array: Matrix) -> Narrow:
        narrow = kind.stored(dense(array)).view(Narrow)
        narrow.format = kind
        return narrow

    return weights.map(one)
