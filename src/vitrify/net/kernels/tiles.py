"""Tiles of arrays in kernels: reading and writing them, products of them, and the call of a kernel.

A tile has a power of two of entries along each axis, at least 16 in a product. An array need not be a multiple of it:
what a tile reads outside is 0, what it writes there is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jax.typing import DTypeLike

from vitrify.arrays import Array

MIN_TILE = 16  # entries of an axis in a matrix product

STAGES = 2  # loads of a loop are one step ahead

Axes = tuple[str | int, ...]  # of an array: the grid axis by which each instance takes one entry, or a padded size


class KernelOutput(NamedTuple):
    """An array that a kernel makes, and how the instances share it."""

    shape: tuple[int, ...]
    dtype: DTypeLike
    axes: Axes


@dataclass(frozen=True, eq=False)
class Span:
    """`size` entries of an axis from `start` on; the array ends at `limit`."""

    start: Array | int
    size: int
    limit: int

    @property
    def inside(self) -> Array | None:
        """A mask of the entries that belong to the array; None where all do."""
        ends = self.start + self.size if isinstance(self.start, int) else self.limit + self.limit % self.size
        return None if ends <= self.limit else self.entries < self.limit

    @property
    def entries(self) -> Array:
        """The indices of the entries."""
        return self.start + jnp.arange(self.size)


def width(size: int) -> int:
    """Return the entries of a tile that holds a whole axis."""
    return max(MIN_TILE, int(pl.next_power_of_2(size)))


def load(ref: Array, *at: Span | Array | int) -> Array:
    """Return the tile at some spans; an axis with a number instead has one entry and is left out."""
    mask = _mask(at)
    return triton.load(ref.at[_index(at)], mask=mask, other=None if mask is None else 0.0)


def store(ref: Array, value: Array, *at: Span | Array | int) -> None:
    """Write a tile, rounded to the numbers of the array."""
    triton.store(ref.at[_index(at)], value.astype(ref.dtype), mask=_mask(at))


def _index(at: Sequence[Span | Array | int]) -> tuple[Array | int, ...]:
    return tuple(pl.ds(each.start, each.size) if isinstance(each, Span) else jnp.int32(each) for each in at)


def _mask(at: Sequence[Span | Array | int]) -> Array | None:
    spans = [each for each in at if isinstance(each, Span)]
    sizes, mask = tuple(span.size for span in spans), None
    for axis, span in enumerate(spans):
        if span.inside is not None:
            part = jax.lax.broadcast_in_dim(span.inside, sizes, (axis,))
            mask = part if mask is None else mask & part
    return mask


def product(a: Array, b: Array, over_a: int, over_b: int) -> Array:
    """The product of two matrices over an axis of each, added up in float32."""
    return jax.lax.dot_general(a, b, (((over_a,), (over_b,)), ((), ())), preferred_element_type=jnp.float32)


def run(
    kernel: Callable[..., None],
    grid: Mapping[str, int],
    inputs: Sequence[tuple[Array, Axes]],
    outputs: Sequence[KernelOutput],
    warps: int,
    interpret: bool,
) -> list[Array]:
    """Run a kernel, one instance for each point of the grid, and return its outputs."""
    names = list(grid)

    def block(axes: Axes) -> pl.BlockSpec:
        shape = tuple(None if isinstance(axis, str) else axis for axis in axes)
        return pl.BlockSpec(shape, lambda *ids: tuple(ids[names.index(a)] if isinstance(a, str) else 0 for a in axes))

    shape = cast(Any, jax.ShapeDtypeStruct)
    arrays: list[Array] = pl.pallas_call(
        kernel,
        out_shape=[shape(each.shape, each.dtype) for each in outputs],
        grid=tuple(grid.values()),
        in_specs=[block(axes) for _, axes in inputs],
        out_specs=[block(each.axes) for each in outputs],
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=STAGES),
        interpret=interpret,
        name=kernel.__name__,
    )(*[array for array, _ in inputs])
    return arrays
