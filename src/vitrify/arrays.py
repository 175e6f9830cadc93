"""Array names used everywhere: one glossary of axes, one way to find an array's namespace.

Axes, by the letter that shape strings use:

    batch   independent sequences            pos     positions of one sequence, BOS first
    model   residual stream dimensions       head    attention heads of one block
    query   positions that attend            key     positions attended to
    unit    hidden units of one MLP          out     output symbols (next tokens or states)

The forward pass is written once for NumPy and JAX: it asks its arrays for their namespace and never imports JAX itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    Tokens: TypeAlias = Int[Any, "batch pos"]
    Residual: TypeAlias = Float[Any, "batch pos model"]
    Attention: TypeAlias = Float[Any, "batch head query key"]
    Logits: TypeAlias = Float[Any, "batch pos out"]
    Array: TypeAlias = Any  # a NumPy or JAX array: the two share no base class
    Matrix: TypeAlias = Any  # a NumPy or JAX array, or a SciPy sparse array
else:  # jaxtyping costs 60 ms to import; annotations are strings and never evaluated
    Tokens = Residual = Attention = Logits = Array = Matrix = Any


def namespace(array: Array) -> Any:
    """The module (`numpy` or `jax.numpy`) whose functions work on this array.

    >>> namespace(np.zeros(2)).__name__
    'numpy'
    """
    return np if isinstance(array, np.ndarray) else array.__array_namespace__()
