"""The choice of routine in compiled programs: which code computes a part, by its shape, its dtype and the device.

The first line that fits is taken; each part of a net is chosen for itself.

| part | where | routine |
| --- | --- | --- |
| softmax attention | GPU, up to 256 positions, heads 8 to 64 wide, not rotary, no segment | `kernels/attention.py` |
| | GPU, 16-bit, heads of a multiple of 8 up to 128, causal or no mask, no window or segment | cuDNN's |
| | causal or no mask, no window or segment | blocks of queries, each with the keys up to its last position |
| | else, and all other kinds of attention | that of `transformer_forward.py` |
| ReLU layer | GPU, inputs and outputs up to 64 wide, up to 512 units | `kernels/mlp.py` |
| | else | two matrix products |
| layer norm of all dimensions | GPU, up to 1024 of them | `kernels/norm.py` |
| | else | that of `transformer_forward.py` |

NumPy arrays, recorded or edited activations, caches and padded sequences take the path of `transformer_forward.py`.
"""

from __future__ import annotations

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, Float, Residual
from vitrify.net.transformer import Block, Head

MAX_KERNEL_POSITIONS = 256
MIN_KERNEL_HEAD, MAX_KERNEL_HEAD = 8, 64  # dimensions
MAX_CUDNN_HEAD = 128
MAX_KERNEL_WIDTH, MAX_KERNEL_UNITS = 64, 512  # of a ReLU layer; wider ones gain nothing
MAX_NORM_WIDTH = 1024
QUERY_PIECES = 4  # blocks of queries under a causal mask
MIN_CUT_POSITIONS = {True: 64, False: 256}  # shortest sequence whose queries are cut; key: on a GPU?


def _on_gpu() -> bool:
    return jax.default_backend() == "gpu"


def _interpreted() -> bool:
    """True where a kernel runs step by step, for tests: anywhere but on a GPU."""
    return jax.default_backend() != "gpu"


def attends(block: Block, x: Residual) -> bool:
    """Return True if a kernel computes all heads of a block."""
    return (
        _on_gpu()
        and x.shape[1] <= MAX_KERNEL_POSITIONS
        and x.dtype.itemsize <= 4
        and MIN_KERNEL_HEAD <= block.d_head == block.d_value <= MAX_KERNEL_HEAD
        and all(head.attention == "softmax" and not head.rotary and not head.segment for head in block.heads)
    )


def attend(
    head: Head,
    products: Float[Array, "batch pos 3 head d"],
    biases: Float[Array, "3 head d"],
    relative: Float[Array, "head window"] | None,
) -> Float[Array, "batch pos head d"]:
    """Return the output of heads of one kind (one mask and window) in a block that `attends` accepts.

    `products` are queries, keys and values before their biases are added.
    """
    from vitrify.net.kernels import attention

    length = products.shape[1]
    scores = None if relative is None else by_offset(relative, length)
    return attention.attend(attention.Inputs(products, biases, scores), attention.Tiling(head, length, _interpreted()))


def fused(
    head: Head,
    q: Float[Array, "batch pos head d"],
    k: Float[Array, "batch pos head d"],
    v: Float[Array, "batch pos head value"],
) -> Float[Array, "batch pos head value"] | None:
    """Return the output of softmax heads with a causal mask or none, without window, segment or biases; else None."""
    plain = head.attention == "softmax" and head.window is None and not head.segment
    if not plain or head.mask not in ("causal", "none"):
        return None
    causal, length = head.mask == "causal", q.shape[1]
    if length != k.shape[1]:
        return None
    fits = q.shape[-1] % 8 == 0 and q.shape[-1] <= MAX_CUDNN_HEAD and v.shape == q.shape
    if fits and _on_gpu() and q.dtype.itemsize == 2:
        return jax.nn.dot_product_attention(q, k, v, scale=1.0, is_causal=causal, implementation="cudnn")
    step = -(-length // QUERY_PIECES) if causal and length >= MIN_CUT_POSITIONS[_on_gpu()] else length
    pieces = []
    for start in range(0, length, step):
        end = min(start + step, length)
        keys = end if causal else length
        scores = jnp.einsum("bqhd,bkhd->bhqk", q[:, start:end], k[:, :keys])
        if causal:
            scores = jnp.where(np.arange(start, end)[:, None] >= np.arange(keys), scores, -jnp.inf)
        pieces.append(jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v[:, :keys]))
    return pieces[0] if len(pieces) == 1 else jnp.concatenate(pieces, axis=1)


def by_offset(relative: Float[Array, "head window"], length: int) -> Float[Array, "head query key"]:
    """Return the biases of scores from those of offsets $i - j$; 0 where the offset is outside the window.

    Each row of the matrix is the vector of biases, shifted by one. Copy a vector of 2L numbers L times end to end, and
    cut that into rows of 2L - 1: each row starts one number earlier in the vector than the row above. The gradient is
    then a sum over rows instead of a scatter.
    """
    heads, window = relative.shape[0], min(relative.shape[1], length)
    zeros = jnp.zeros_like(relative, shape=(heads, length))
    line = jnp.concatenate([zeros[:, window:], jnp.flip(relative[:, :window], axis=1), zeros], axis=1)
    lines = jnp.broadcast_to(line[:, None], (heads, length, 2 * length)).reshape(heads, -1)
    return lines[:, : length * (2 * length - 1)].reshape(heads, length, -1)[:, :, length - 1 :]


def mlp(
    x: Float[Array, "*lead model"],
    W_in: Float[Array, "model unit"],
    b_in: Float[Array, " unit"],
    W_out: Float[Array, "unit out"],
    b_out: Float[Array, " out"],
) -> Float[Array, "*lead out"] | None:
    """Return the output of a ReLU layer; None where two matrix products are better."""
    out = b_out.shape[0]
    fits = max(x.shape[-1], out) <= MAX_KERNEL_WIDTH and W_in.shape[1] <= MAX_KERNEL_UNITS
    if not fits or not _on_gpu() or x.dtype.itemsize > 4:
        return None
    from vitrify.net.kernels import mlp

    layer = mlp.ReluLayer(x.reshape(-1, x.shape[-1]), W_in, b_in, W_out, b_out)
    return mlp.mlp(layer, _interpreted()).reshape(*x.shape[:-1], out)


def norm(
    x: Float[Array, "*lead d"], w: Float[Array, " d"], b: Float[Array, " d"], eps: float
) -> tuple[Array, Array] | None:
    """Return the layer norm of x, and x itself for what reads it beside the norm; None where there is no kernel for it.

    A gradient that comes to x from there is added in the same pass as that of the norm.
    """
    if not _on_gpu() or x.shape[-1] > MAX_NORM_WIDTH or x.dtype.itemsize > 4:
        return None
    from vitrify.net.kernels import norm

    y, same = norm.norm(x.reshape(-1, x.shape[-1]), w, b, eps, _interpreted())
    return y.reshape(x.shape), same.reshape(x.shape)


def stored(x: Array) -> Array:
    """The same array, which a GPU program stores once instead of computing it again for everything that reads it."""
    return cast(Any, jax.lax).optimization_barrier(x) if _on_gpu() else x
