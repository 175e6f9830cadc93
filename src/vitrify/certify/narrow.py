"""Running a net in a narrower format: the one forward pass, on arrays that round the result of every operation.

Products of matrices and sums go one term after the other, each product and each partial sum rounded, so this is what
hardware without wider accumulators computes. Numbers are kept in float64, where one operation on numbers of 24 bits
and one rounding give what the narrower format gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.certify.formats import Format
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights

ACCUMULATES = (np.add, np.multiply)


class Narrow(np.ndarray):
    """An array whose numbers are all of one format, and so is all that is computed from it."""

    format: Format | None = None

    def __array_finalize__(self, made_from: Any) -> None:
        self.format = getattr(made_from, "format", None)

    def __array_function__(self, function: Any, types: Any, given: Any, named: Any) -> Any:
        """Functions that only move numbers about; what they are made of comes back to `__array_ufunc__`."""
        return self._again(super().__array_function__(function, types, given, named))

    def __array_ufunc__(self, ufunc: Any, method: Any, *given: Any, **kwargs: Any) -> Any:
        function, named = ufunc, kwargs
        out = named.pop("out", None)
        plain = [np.asarray(x) for x in given] if method == "__call__" else [np.asarray(given[0]), *given[1:]]
        with np.errstate(all="ignore"):
            if function is np.matmul:
                found = self._product(*plain)
            elif method in ("reduce", "accumulate") and function in ACCUMULATES:
                found = self._summed(function, method, plain[0], **named)
            else:
                found = getattr(function, method)(*plain, **named)
                found = self._rounded(found)
        if out is not None:
            out[0][...] = found
            return out[0]
        return self._again(found)

    def _rounded(self, numbers: Any) -> Any:
        if self.format is None or np.asarray(numbers).dtype != np.float64:
            return numbers
        return self.format.stored(numbers)

    def _product(self, left: Any, right: Any) -> Any:
        total = self._rounded(left[..., :, :1] * right[..., :1, :])
        for k in range(1, left.shape[-1]):
            total = self._rounded(total + self._rounded(left[..., :, k : k + 1] * right[..., k : k + 1, :]))
        return total

    def _summed(self, function: Any, method: str, x: Any, axis: Any = 0, **named: Any) -> Any:
        if x.dtype == bool or axis is None or isinstance(axis, tuple):
            return self._rounded(getattr(function, method)(x, axis=axis, **named))
        parts = np.moveaxis(x, axis, 0)
        partial = [parts[0]]
        for part in parts[1:]:
            partial.append(self._rounded(function(partial[-1], part)))
        if method == "accumulate":
            return np.moveaxis(np.stack(partial), 0, axis)
        return np.expand_dims(partial[-1], axis) if named.get("keepdims") else partial[-1]

    def _again(self, found: Any) -> Any:
        if isinstance(found, tuple | list):
            return type(found)(self._again(one) for one in found)
        if not isinstance(found, np.ndarray) or found.dtype != np.float64:
            return np.asarray(found) if isinstance(found, Narrow) else found
        made = found.view(Narrow)
        made.format = self.format
        return made


def narrowed(weights: Weights[Any], kind: Format) -> Weights[Any]:
    """The same net with its weights in a format; a run of it computes in that format."""

    def one(array: Any) -> Any:
        made = kind.stored(dense(array)).view(Narrow)
        made.format = kind
        return made

    return weights.map(one)
