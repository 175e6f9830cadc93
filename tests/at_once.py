"""Rows of sandboxes and answers of families as one program: JAX compiles for every operation that stands alone."""

from __future__ import annotations

from typing import Any

import jax

from vitrify.learn.models.catalogue import Family
from vitrify.sandboxes.catalogue import Example, Sandbox, Split
from vitrify.sandboxes.catalogue import examples as drawn_rows


def rows(sandbox: Sandbox, seed: int, split: Split, start: int, count: int) -> Example:
    found: Example = jax.jit(lambda: drawn_rows(sandbox, seed, split, start, count))()
    return found


def logits(family: Family, net: Any, sandbox: Sandbox, arrays: dict[str, Any], row: Example) -> Any:
    return jax.jit(lambda arrays, row: family.logits(net, sandbox, arrays, row))(arrays, row)


def first(family: Family, net: Any, seed: int) -> dict[str, Any]:
    """The first values of all that is trained."""
    found: dict[str, Any] = jax.jit(lambda: family.first(net, jax.random.key(seed)))()
    return found
