"""Second samplers of all sandboxes: what `Sandbox.draw` is tested against, by class."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np


@singledispatch
def reference(sandbox: Any, rng: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Return tokens [count, n] and targets [count, n + 1] of a sandbox, drawn by plain NumPy."""
    raise NotImplementedError(f"write a second sampler for {type(sandbox).__name__} in tests/oracles ({rng}, {count})")


@singledispatch
def written(sandbox: Any, rng: np.random.Generator, count: int) -> Any:
    """Return the words of documents [count, length], before any of them is masked."""
    raise NotImplementedError(f"write a second sampler for {type(sandbox).__name__} in tests/oracles ({rng}, {count})")


def drawn(rng: np.random.Generator, p: Any) -> Any:
    """Return one symbol per row of probabilities [row, symbol]."""
    return (rng.random((len(p), 1)) >= np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
