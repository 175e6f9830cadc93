r"""Layer norm as a kernel per direction, each one pass over the rows.

Forward, $y = u w + b$ with $u = (x - \bar x) / \sigma$ and $\sigma^2 = \overline{(x - \bar x)^2} + \epsilon$. Backward,
with $g = w\,\mathrm{d}y$: $\mathrm{d}x = (g - \bar g - u\,\overline{u g}) / \sigma$, and each program adds up
$u\,\mathrm{d}y$ and $\mathrm{d}y$ over its rows for the gradients of $w$ and $b$. The rows themselves are handed on:
what reads them beside the norm, as a residual stream does, has its gradient added in the same pass.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from vitrify.arrays import Array, Float
from vitrify.net.kernels.tiles import Axes, KernelOutput, Span, load, run, store, width

TILE = 1 << 12  # numbers of a program
MAX_ROWS = 64  # of a program
WARPS = 4

Rows = Float[Array, "row d"]
Vector = Float[Array, " d"]


def norm(x: Rows, w: Vector, b: Vector, eps: float, interpret: bool = False) -> tuple[Rows, Rows]:
    """Return the rows normalized, scaled and shifted, and the rows themselves."""
    both: tuple[Rows, Rows] = _norm(x, w, b, eps, interpret)
    return both


@partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def _norm(x: Rows, w: Vector, b: Vector, eps: float, interpret: bool) -> tuple[Rows, Rows]:
    return _forward(x, w, b, eps, interpret)[0]


def _shape(x: Rows) -> tuple[int, Span]:
    """The rows of a program, and the span of a row."""
    across = Span(0, width(x.shape[1]), x.shape[1])
    return max(1, min(MAX_ROWS, TILE // across.size)), across


def _unit(x: Array, across: Span, eps: float) -> tuple[Array, Array]:
    """The standardized rows and 1/σ; the sums leave out what is past the end of a row, where x is 0."""
    x = x.astype(jnp.float32)
    centered = x - x.sum(axis=1, keepdims=True) * (1 / across.limit)
    if across.size != across.limit:
        centered = jnp.where((across.entries < across.limit)[None, :], centered, 0.0)
    scale = jax.lax.rsqrt((centered * centered).sum(axis=1, keepdims=True) * (1 / across.limit) + eps)
    return centered * scale, scale


def _forward(x: Rows, w: Vector, b: Vector, eps: float, interpret: bool) -> tuple[tuple[Rows, Rows], tuple[Array, ...]]:
    count, across = _shape(x)

    def norm_forward(x_ref: Array, w_ref: Array, b_ref: Array, to: Array) -> None:
        rows = Span(pl.program_id(0) * count, count, x.shape[0])
        unit, _ = _unit(load(x_ref, rows, across), across, eps)
        scale, shift = (load(ref, across).astype(jnp.float32)[None, :] for ref in (w_ref, b_ref))
        store(to, unit * scale + shift, rows, across)

    programs = -(-x.shape[0] // count)
    axes: Axes = (programs * count, across.size)
    inputs: list[tuple[Array, Axes]] = [(x, axes), (w, axes[1:]), (b, axes[1:])]
    outputs = [KernelOutput(x.shape, x.dtype, axes)]
    [y] = run(norm_forward, {"rows": programs}, inputs, outputs, WARPS, interpret)
    return (y, x), (x, w)


def _backward(
    eps: float, interpret: bool, saved: tuple[Array, ...], slopes: tuple[Rows, Rows]
) -> tuple[Array, Array, Array]:
    (x, w), (dy, d_same) = saved, slopes
    count, across = _shape(x)

    def norm_backward(*refs: Array) -> None:
        x_ref, w_ref, d_ref, same_ref, dx_ref, dw_ref, db_ref = refs
        rows = Span(pl.program_id(0) * count, count, x.shape[0])
        unit, scale = _unit(load(x_ref, rows, across), across, eps)
        dy = load(d_ref, rows, across).astype(jnp.float32)
        g = dy * load(w_ref, across).astype(jnp.float32)[None, :]
        mean, along = (part.sum(axis=1, keepdims=True) * (1 / across.limit) for part in (g, unit * g))
        dx = (g - mean - unit * along) * scale + load(same_ref, rows, across).astype(jnp.float32)
        store(dx_ref, dx, rows, across)
        store(dw_ref, (unit * dy).sum(axis=0), across)
        store(db_ref, dy.sum(axis=0), across)

    programs = -(-x.shape[0] // count)
    axes: Axes = (programs * count, across.size)
    sums = KernelOutput((programs, x.shape[1]), jnp.float32, ("rows", across.size))
    outputs = [KernelOutput(x.shape, x.dtype, axes), sums, sums]
    inputs: list[tuple[Array, Axes]] = [(x, axes), (w, axes[1:]), (dy, axes), (d_same, axes)]
    dx, dw, db = run(norm_backward, {"rows": programs}, inputs, outputs, WARPS, interpret)
    return dx, dw.sum(axis=0).astype(w.dtype), db.sum(axis=0).astype(w.dtype)


_norm.defvjp(_forward, _backward)
