"""Types of arrays, the names of their axes, and the namespace (NumPy or JAX) of an array.

Axes, as shape strings name them:

    batch   independent sequences            pos     positions of one sequence, BOS first
    model   residual stream dimensions       head    attention heads of one block
    query   positions that attend            key     positions attended to
    unit    hidden units of one MLP          out     output symbols (next tokens or states)

The forward pass is written once for NumPy and JAX: it asks its arrays for their namespace and never imports JAX itself.

Shapes are written `Float[Array, "batch pos model"]`. jaxtyping takes 60 ms to import. So these are plain annotations,
unless jaxtyping was imported before this module: then they are jaxtyping's types, and a runtime type checker, as in our
tests, reports a wrong shape at the function that takes or returns it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING or "jaxtyping" not in sys.modules:
    from typing import Annotated as Bool  # a plain annotation: the shape is ignored
    from typing import Annotated as Float
    from typing import Annotated as Int
    from typing import Annotated as Num
else:
    from jaxtyping import Bool, Float, Int, Num

__all__ = ["Array", "Arrays", "Attention", "Bool", "Bools", "Float", "Floats", "Int", "Ints", "Logits", "Matrix"]
__all__ += ["Namespace", "Num", "Residual", "Tokens", "Tree", "namespace"]

Array: TypeAlias = Any  # a NumPy or JAX array: the two share no base class
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

Tokens: TypeAlias = Int[Array, "batch pos"]
Residual: TypeAlias = Float[Array, "batch pos model"]
Attention: TypeAlias = Float[Array, "batch head query key"]
Logits: TypeAlias = Float[Array, "batch pos out"]
Matrix: TypeAlias = Any  # a dense array, or a sparse one: a SciPy CSR array or a `Stack` of them (net/sparse.py)
Arrays: TypeAlias = Mapping[str, Matrix]
Tree: TypeAlias = Any  # arrays in dictionaries, tuples, lists and dataclasses that JAX knows: a pytree


class Namespace(Protocol):
    """NumPy or `jax.numpy`: functions that take and return arrays."""

    inf: float
    int32: type[np.int32]

    def __getattr__(self, name: str) -> Callable[..., Array]: ...


def namespace(array: Array) -> Namespace:
    """Return the module (`numpy` or `jax.numpy`) whose functions work on this array.

    >>> namespace(np.zeros(2)).__name__
    'numpy'
    """
    return cast(Namespace, np if isinstance(array, np.ndarray) else array.__array_namespace__())
