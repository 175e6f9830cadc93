"""Quantize a net with one attention layer (`quantized.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from vitrify.arrays import Array, Floats, Ints
from vitrify.bounds.quantized import OneLayer, signed
from vitrify.errors import InputError
from vitrify.net.architecture import Architecture
from vitrify.net.attention import allowed_keys
from vitrify.net.sparse import affine, dense, matmul_heads
from vitrify.net.transformer import Transformer
from vitrify.net.transformer_forward import forward
from vitrify.net.weights import Weights


def attention_block(weights: Weights[Architecture]) -> int:
    """Return the index of the block with the net's one attention layer; any other net is refused."""
    net = weights.architecture
    if not isinstance(net, Transformer):
        raise InputError(f"the net must be a transformer with one attention layer; it is {net.tag}")
    at = [index for index, block in net.turns if block.heads]
    if len(at) != 1:
        raise InputError(f"the net must have one attention layer; it has {len(at)}, to which the bound does not apply")
    if any(block.cell for block in net.blocks):
        raise InputError("the net must have attention only; it also has a recurrent cell")
    kinds = {head.attention for head in net.blocks[at[0]].heads}
    if kinds != {"softmax"}:
        raise InputError(f"a quantized layer attends by softmax, not by {', '.join(sorted(kinds - {'softmax'}))}")
    if net.norm:
        raise InputError("a quantized layer has no layer norm, but this net has one")
    if net.reads != "tokens":
        raise InputError("a quantized layer reads tokens; this net reads vectors")
    return at[0]


def quantize(weights: Weights, symbols: Sequence[str], length: int, bits: int) -> OneLayer:
    """Return the quantized layer of a net with one attention layer, for words of one length over some of its symbols.

    MLPs before and after the attention are computed at each position by itself, without rounding: they cost no message.
    The step of each table of numbers is its largest entry over $2^{p-1} - 1$.
    """
    index = attention_block(weights)
    net = weights.architecture
    if length > net.max_length:
        raise InputError(f"the net reads {net.max_length} symbols at most, not {length}")
    unknown = [symbol for symbol in symbols if symbol not in net.input_ids]
    if unknown:
        raise InputError(f"the net does not read {', '.join(map(repr, unknown))}")
    positions = net.pads + length
    ids = np.array([*(net.input_ids[symbol] for symbol in symbols), 0])
    seen: dict[str, Array] = {}
    forward(net, weights.prepared, np.repeat(ids[:, None], positions, axis=1), record=seen.__setitem__)
    stream: Floats = np.asarray(seen[f"blocks.{index}.hook_resid_pre"])  # of a symbol at a position, before attention
    name, block = f"blocks.{index}.attn", net.blocks[index]
    q, k, v = (
        np.moveaxis(affine(stream, weights.prepared[f"{name}.W_{x}"], weights.prepared[f"{name}.b_{x}"]), -2, 0)
        for x in "QKV"
    )
    q = (q * np.asarray(weights.arrays[f"{name}.beta"])[:, None, None, None])[:, :, -1]
    bias = np.array([_bias(weights, name, head, positions) for head in range(len(block.heads))])
    queries, query_step = _on_grid(q, bits)
    keys, key_step = _on_grid(np.moveaxis(k, 1, 2), bits)
    values, value_step = _on_grid(np.moveaxis(v, 1, 2), bits)
    finish_net = _rest(weights, index)

    def read(symbol: int, mixed: Ints) -> Floats:
        here = stream[symbol, -1][None]  # one by one: a product of matrices may round otherwise in a larger batch
        return np.concatenate([finish_net(here, row[None] * value_step[:, None]) for row in mixed])

    return OneLayer(
        symbols=(*symbols, net.inputs[0]),
        bits=bits,
        ask=positions - 1,
        queries=queries,
        keys=keys,
        values=values,
        scale=query_step * key_step,
        bias=bias,
        read=read,
        pads=net.pads,
    )


def _on_grid(numbers: Floats, bits: int) -> tuple[Ints, Floats]:
    """Return numbers [head, …] as integers of `bits` bits, and the step of each head."""
    largest = np.abs(numbers).reshape(len(numbers), -1).max(axis=1, initial=0.0)
    step = np.where(largest > 0, largest, 1.0) / max((1 << (bits - 1)) - 1, 1)
    return signed(numbers / step.reshape(-1, *[1] * (numbers.ndim - 1)), bits), step


def _bias(weights: Weights, name: str, number: int, length: int) -> Floats:
    """Return the bias of the last position's scores, by position; -inf where the head does not attend."""
    head = next(block for block in weights.architecture.blocks if block.heads).heads[number]
    last = np.array([length - 1])
    allowed = allowed_keys(head, last, np.arange(length))[0]
    offset = length - 1 - np.arange(length)
    bias = np.zeros(length)
    if head.window is not None:
        table = dense(weights.arrays[f"{name}.b_rel"])[number]
        bias = np.asarray(table)[np.clip(offset, 0, len(table) - 1)]
    return np.where(allowed, bias, -np.inf)


def _rest(weights: Weights, index: int) -> Callable[[Floats, Floats], Floats]:
    """Return a function from the residual stream and the mixed values to logits: the net without its attention."""
    net = weights.architecture
    block, width = net.blocks[index], net.widths[2 * index + 1]
    after = (replace(block, heads=(), d_head=0, d_value=0), *net.blocks[index + 1 :])
    later = replace(
        net,
        inputs=tuple(f"x{number}" for number in range(width)),
        max_length=1,
        min_length=0,
        d_model=width,
        blocks=after,
        pads=0,
        reads="vector",
    )
    arrays = {"embed.W_E": np.eye(width), "pos_embed.W_pos": np.zeros((1, width))}
    for name in later.shapes():
        if name not in arrays:
            head, _, tail = name.partition(".")
            number, _, inner = tail.partition(".")
            source = f"blocks.{int(number) + index}.{inner}" if head == "blocks" else name
            arrays[name] = weights.arrays[source]
    shallow = Weights(later, arrays)
    out = weights.prepared[f"blocks.{index}.attn.W_O"]

    def finish(x: Floats, z: Floats) -> Floats:
        if net.residual == "add":
            x = x + matmul_heads(z[:, None], out)[:, 0]
        else:
            x = np.concatenate([x, *(z[:, head] @ dense(out[head]) for head in range(z.shape[1]))], axis=-1)
        return np.asarray(forward(later, shallow.prepared, x))[:, -1]

    return finish
