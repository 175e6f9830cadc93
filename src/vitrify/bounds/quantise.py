"""From a net with one attention layer to a quantised layer (`quantised.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vitrify.bounds.quantised import Floats, Ints, OneLayer, signed
from vitrify.errors import InputError
from vitrify.net.attention import allowed_keys
from vitrify.net.sparse import affine, dense, matmul_heads
from vitrify.net.transformer import Transformer
from vitrify.net.transformer_forward import forward
from vitrify.net.weights import Weights


def attention_block(weights: Weights[Any]) -> int:
    """The block of the net's one attention layer; anything that is no such net is refused in a sentence."""
    net = weights.architecture
    if not isinstance(net, Transformer):
        raise InputError(f"this is about transformers with one attention layer; the net is {net.tag}")
    at = [index for index, block in net.turns if block.heads]
    if len(at) != 1:
        raise InputError(f"this is about nets with one attention layer; the net has {len(at)}, and the bound is silent")
    if any(block.cell for block in net.blocks):
        raise InputError("this is about attention alone; the net has a recurrent cell beside it")
    kinds = {head.attention for head in net.blocks[at[0]].heads}
    if kinds != {"softmax"}:
        raise InputError(f"a quantised layer attends by softmax, not by {', '.join(sorted(kinds - {'softmax'}))}")
    if net.norm:
        raise InputError("a quantised layer has no layer norm: this net has")
    if net.reads != "tokens":
        raise InputError("a quantised layer reads symbols; this net reads numbers")
    return at[0]


def quantise(weights: Weights[Any], symbols: Sequence[str], length: int, bits: int) -> OneLayer:
    """The quantised layer of a net with one attention layer, for words of one length over some of its symbols.

    Blocks of units before and after the attention are computed at each place by itself, without rounding: they cost no
    message. The step of each table of numbers is its largest entry over $2^{p-1} - 1$.
    """
    index = attention_block(weights)
    net: Transformer = weights.architecture
    if length > net.max_length:
        raise InputError(f"the net reads {net.max_length} symbols at most, not {length}")
    unknown = [symbol for symbol in symbols if symbol not in net.input_ids]
    if unknown:
        raise InputError(f"the net does not read {', '.join(map(repr, unknown))}")
    places = net.pads + length
    ids = np.array([*(net.input_ids[symbol] for symbol in symbols), 0])
    seen: dict[str, Any] = {}
    forward(net, weights.prepared, np.repeat(ids[:, None], places, axis=1), record=seen.__setitem__)
    stream: Floats = np.asarray(seen[f"blocks.{index}.hook_resid_pre"])  # what a symbol is at a place, by itself
    name, block = f"blocks.{index}.attn", net.blocks[index]
    q, k, v = (
        np.moveaxis(affine(stream, weights.prepared[f"{name}.W_{x}"], weights.prepared[f"{name}.b_{x}"]), -2, 0)
        for x in "QKV"
    )
    q = (q * np.asarray(weights.arrays[f"{name}.beta"])[:, None, None, None])[:, :, -1]
    bias = np.array([_bias(weights, name, head, places) for head in range(len(block.heads))])
    queries, query_step = _on_grid(q, bits)
    keys, key_step = _on_grid(np.moveaxis(k, 1, 2), bits)
    values, value_step = _on_grid(np.moveaxis(v, 1, 2), bits)
    rest = _rest(weights, index)

    def read(symbol: int, mixed: Ints) -> Floats:
        here = stream[symbol, -1][None]  # one by one: a product of matrices may round otherwise in a larger batch
        return np.concatenate([rest(here, row[None] * value_step[:, None]) for row in mixed])

    return OneLayer(
        symbols=(*symbols, net.inputs[0]),
        bits=bits,
        ask=places - 1,
        queries=queries,
        keys=keys,
        values=values,
        scale=query_step * key_step,
        bias=bias,
        read=read,
        pads=net.pads,
    )


def _on_grid(numbers: Floats, bits: int) -> tuple[Ints, Floats]:
    """Numbers [head, …] as integers of so many bits, and the step of each head."""
    largest = np.abs(numbers).reshape(len(numbers), -1).max(axis=1, initial=0.0)
    step = np.where(largest > 0, largest, 1.0) / max((1 << (bits - 1)) - 1, 1)
    return signed(numbers / step.reshape(-1, *[1] * (numbers.ndim - 1)), bits), step


def _bias(weights: Weights[Any], name: str, number: int, places: int) -> Floats:
    """What the last place adds to its scores, by place; -inf where the head does not look."""
    head = next(block for block in weights.architecture.blocks if block.heads).heads[number]
    last = np.array([places - 1])
    allowed = allowed_keys(head, last, np.arange(places))[0]
    offset = places - 1 - np.arange(places)
    bias = np.zeros(places)
    if head.window is not None:
        table = dense(weights.arrays[f"{name}.b_rel"])[number]
        bias = np.asarray(table)[np.clip(offset, 0, len(table) - 1)]
    return np.where(allowed, bias, -np.inf)


def _rest(weights: Weights[Any], index: int) -> Callable[[Floats, Floats], Floats]:
    """What a net makes of the stream and the mixed values of its heads: itself without attention, read as numbers."""
    net: Transformer = weights.architecture
    block, width = net.blocks[index], net.widths[2 * index + 1]
    after = (replace(block, heads=(), d_head=0, d_value=0), *net.blocks[index + 1 :])
    rest = replace(
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
    for wanted in rest.shapes():
        if wanted not in arrays:
            head, _, tail = wanted.partition(".")
            number, _, inner = tail.partition(".")
            source = f"blocks.{int(number) + index}.{inner}" if head == "blocks" else wanted
            arrays[wanted] = weights.arrays[source]
    shallow = Weights(rest, arrays)
    out = weights.prepared[f"blocks.{index}.attn.W_O"]

    def finish(x: Floats, z: Floats) -> Floats:
        if net.residual == "add":
            x = x + matmul_heads(z[:, None], out)[:, 0]
        else:
            x = np.concatenate([x, *(z[:, head] @ dense(out[head]) for head in range(z.shape[1]))], axis=-1)
        return np.asarray(forward(rest, shallow.prepared, x))[:, -1]

    return finish
