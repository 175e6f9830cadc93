r"""A layer of ReLU units as a kernel: the hidden activations stay on the chip.

Forward, a program takes some rows $x$ and adds up $\mathrm{relu}(x W_{in} + b_{in}) W_{out}$ over chunks of the units.
Backward, the hidden activations are computed again: one kernel for the gradient of $x$, by rows; one for those of the
matrices, in which a program takes a chunk of the units and goes through a share of the rows. Seven products instead of
five, but the activations, four times as wide as the rows as a rule, never go through the device's memory: at widths up
to 64 it is memory that takes the time.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from vitrify.arrays import Array, Float
from vitrify.net.kernels.tiles import Axes, KernelOutput, Span, load, product, run, store, width

ROWS = 128  # of a program
SUMMED_ROWS = 128  # of a step of the program that sums the gradients of matrices
SHARE = 1024  # rows whose gradients one program sums
CHUNK = 64  # units
WARPS = 4


class ReluLayer(NamedTuple):
    """The input [row, model] and the parameters of the layer."""

    x: Float[Array, "row model"]
    W_in: Float[Array, "model unit"]
    b_in: Float[Array, " unit"]
    W_out: Float[Array, "unit out"]
    b_out: Float[Array, " out"]

    @property
    def chunks(self) -> list[Span]:
        units = self.b_in.shape[0]
        return [Span(start, CHUNK, units) for start in range(0, units, CHUNK)]

    @property
    def model(self) -> Span:
        return Span(0, width(self.x.shape[1]), self.x.shape[1])

    @property
    def out(self) -> Span:
        return Span(0, width(self.b_out.shape[0]), self.b_out.shape[0])

    def shared(self, *rows: Array) -> list[tuple[Array, Axes]]:
        """All inputs, and further arrays [row, …]; every program sees all of them."""
        units = -(-self.b_in.shape[0] // CHUNK) * CHUNK
        model, out, length = self.model.size, self.out.size, padded(self.x.shape[0])
        axes: list[Axes] = [(length, model), (model, units), (units,), (units, out), (out,)]
        return [*zip(self, axes, strict=True), *((array, (length, width(array.shape[1]))) for array in rows)]


class Refs(NamedTuple):
    """The same as a program sees it: references, past whose ends there is padding."""

    x: Array
    W_in: Array
    b_in: Array
    W_out: Array
    b_out: Array


def padded(rows: int) -> int:
    """Return the rows of all programs together."""
    return -(-rows // SHARE) * SHARE if rows > SHARE else -(-rows // ROWS) * ROWS


def _rows() -> Array:
    return pl.program_id(0) * ROWS


def _pre(layer: ReluLayer, refs: Refs, x: Array, chunk: Span) -> Array:
    """The pre-activations of a chunk of units."""
    return product(x, load(refs.W_in, layer.model, chunk), 1, 0) + load(refs.b_in, chunk).astype(jnp.float32)[None, :]


def _d_pre(layer: ReluLayer, refs: Refs, pre: Array, d_out: Array, chunk: Span) -> Array:
    """The gradient of pre-activations; at 0 the slope of a ReLU is ½, as it is elsewhere."""
    slope = jnp.where(pre > 0, 1.0, jnp.where(pre == 0, 0.5, 0.0))
    return product(d_out, load(refs.W_out, chunk, layer.out), 1, 1) * slope


def mlp(layer: ReluLayer, interpret: bool = False) -> Float[Array, "row out"]:
    """Return the output of the layer."""
    return _mlp(layer, interpret)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def _mlp(layer: ReluLayer, interpret: bool) -> Float[Array, "row out"]:
    return _forward(layer, interpret)[0]


def _forward(layer: ReluLayer, interpret: bool) -> tuple[Array, ReluLayer]:
    def mlp_forward(*args: Array) -> None:
        *inputs, to = args
        refs, rows = Refs(*inputs), Span(_rows(), ROWS, layer.x.shape[0])
        x = load(refs.x, rows, layer.model)
        total = jnp.zeros((ROWS, layer.out.size), jnp.float32)
        for chunk in layer.chunks:
            hidden = jnp.maximum(_pre(layer, refs, x, chunk), 0.0).astype(x.dtype)
            total += product(hidden, load(refs.W_out, chunk, layer.out), 1, 0)
        store(to, total + load(refs.b_out, layer.out).astype(jnp.float32)[None, :], rows, layer.out)

    rows, out = layer.x.shape[0], layer.b_out.shape[0]
    outputs = [KernelOutput((rows, out), layer.x.dtype, (padded(rows), layer.out.size))]
    grid = {"rows": -(-rows // ROWS)}
    return run(mlp_forward, grid, layer.shared(), outputs, WARPS, interpret)[0], layer


def _backward(interpret: bool, layer: ReluLayer, d_out: Array) -> tuple[ReluLayer]:
    def mlp_backward(*args: Array) -> None:
        *inputs, d_ref, to = args
        refs, rows = Refs(*inputs), Span(_rows(), ROWS, layer.x.shape[0])
        x, d_rows = load(refs.x, rows, layer.model), load(d_ref, rows, layer.out)
        total = jnp.zeros((ROWS, layer.model.size), jnp.float32)
        for chunk in layer.chunks:
            d_pre = _d_pre(layer, refs, _pre(layer, refs, x, chunk), d_rows, chunk).astype(x.dtype)
            total += product(d_pre, load(refs.W_in, layer.model, chunk), 1, 1)
        store(to, total, rows, layer.model)

    rows = layer.x.shape[0]
    inputs, grid = layer.shared(d_out), {"rows": -(-rows // ROWS)}
    outputs = [KernelOutput(layer.x.shape, layer.x.dtype, (padded(rows), layer.model.size))]
    [dx] = run(mlp_backward, grid, inputs, outputs, WARPS, interpret)
    dW_in, db_in, dW_out = _matrix_gradients(layer, d_out, interpret)
    db_out = d_out.astype(jnp.float32).sum(axis=0).astype(layer.b_out.dtype)
    return (ReluLayer(dx, dW_in, db_in, dW_out, db_out),)


def _matrix_gradients(layer: ReluLayer, d_out: Array, interpret: bool) -> list[Array]:
    """Return the gradients of W_in, b_in and W_out."""
    rows, units = layer.x.shape[0], layer.b_in.shape[0]
    share = min(SHARE, padded(rows))
    grid = {"share": -(-rows // share), "chunk": len(layer.chunks)}

    def mlp_matrix_gradients(*args: Array) -> None:
        *inputs, d_ref, in_ref, bias_ref, out_ref = args
        refs, first, chunk = Refs(*inputs), pl.program_id(0) * share, Span(pl.program_id(1) * CHUNK, CHUNK, units)

        def add(step: Array, totals: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            some = Span(first + step * SUMMED_ROWS, SUMMED_ROWS, rows)
            x, d_rows = load(refs.x, some, layer.model), load(d_ref, some, layer.out)
            pre = _pre(layer, refs, x, chunk)
            hidden = jnp.maximum(pre, 0.0).astype(x.dtype)
            d_pre = _d_pre(layer, refs, pre, d_rows, chunk)
            d_in, d_bias, d_second = totals
            d_in += product(x, d_pre.astype(x.dtype), 0, 0)
            return d_in, d_bias + d_pre.sum(axis=0), d_second + product(hidden, d_rows, 0, 0)

        zeros = [jnp.zeros(s, jnp.float32) for s in ((layer.model.size, CHUNK), (CHUNK,), (CHUNK, layer.out.size))]
        d_in, d_bias, d_second = jax.lax.fori_loop(0, share // SUMMED_ROWS, add, tuple(zeros))
        store(in_ref, d_in, layer.model, chunk)
        store(bias_ref, d_bias, chunk)
        store(out_ref, d_second, chunk, layer.out)

    wide = len(layer.chunks) * CHUNK
    model, out = layer.model, layer.out
    shapes: list[tuple[tuple[int, ...], Axes]] = [
        ((model.limit, units), (model.size, wide)),
        ((units,), (wide,)),
        ((units, out.limit), (wide, out.size)),
    ]
    outputs = [KernelOutput((grid["share"], *shape), jnp.float32, ("share", *axes)) for shape, axes in shapes]
    sums = run(mlp_matrix_gradients, grid, layer.shared(d_out), outputs, WARPS, interpret)
    return [each.sum(axis=0).astype(old.dtype) for each, old in zip(sums, layer[1:4], strict=True)]


_mlp.defvjp(_forward, _backward)
