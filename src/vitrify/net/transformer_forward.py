"""The one forward pass of a transformer, for NumPy and JAX arrays alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vitrify.arrays import Array, Logits, Residual, namespace
from vitrify.net.architecture import Edit, Record
from vitrify.net.attention import allowed_keys, fused, turned, weigh
from vitrify.net.cells import states
from vitrify.net.experts import mixture
from vitrify.net.sparse import affine, matmul, matmul_heads, rows
from vitrify.net.transformer import Block, Head, Transformer


def forward(
    net: Transformer,
    arrays: Mapping[str, Any],
    inputs: Array,
    *,
    lengths: Array | None = None,
    record: Record | None = None,
    query_chunk: int | None = None,
    cache: Cache | None = None,
    starts: Array | None = None,
    edit: Edit | None = None,
) -> Logits:
    r"""Logits at every position of a batch of token ids, whose first `pads` columns are the BOS token.

    $x^0 = W_E[\text{tokens}] + W_{pos}$, or $x^0 = vW_E + W_{pos}$ where the inputs are vectors $v$, the same or its
    own at each position; the blocks run one after the other, `loops` times over; each adds
    (or appends) its heads' outputs $\sum_j w_{ij} (x_j W_V + b_V) W_O$ and what its cell (see `cells.py`) keeps of the
    rows so far, $h W_C$, and then its MLP's
    $\mathrm{relu}(x W_{in} + b_{in}) W_{out} + b_{out}$ and that of its experts (see `experts.py`); logits
    $= x W_U + b_U$. Rows shorter than the batch are padded on the right: `lengths` (pads included) hides the padding
    from heads that look ahead. `record(name, value)` sees every activation, each turn of a loop as a block of its own;
    `query_chunk` bounds memory on long sequences. With a `cache` the inputs continue those of the calls before with
    the same cache, whose keys, values and states it holds; the logits are those of the new positions. `starts` [batch]
    are the rows of the position table from which each sequence takes its places, 0 if not given; what lies behind the
    table is its last row. `edit(name, value)` sees what every part reads (queries, keys, values, what units see before
    their ReLU, what cells, routers and experts are given, logits) and gives back what goes on in its place.
    """
    xp = namespace(inputs)
    vector = net.reads == "vector"
    start = 0 if cache is None else cache.positions
    positions = start + xp.arange(net.max_length if vector else inputs.shape[1])
    whole = Part(arrays, "", record, edit=edit)
    if net.reads == "tokens":
        embedded = rows(whole["embed.W_E"], inputs)
    else:
        embedded = matmul(inputs, whole["embed.W_E"])
        embedded = embedded[:, None] if vector else embedded
    places = positions if starts is None else xp.minimum(starts[:, None] + positions, net.positions - 1)
    placed = rows(whole["pos_embed.W_pos"], places)
    whole.record("hook_embed", embedded)
    whole.record("hook_pos_embed", placed)
    x = embedded + placed
    visible = None if lengths is None else positions[None, :] < lengths[:, None]
    if not net.blocks:
        whole.record("hook_resid_post", x)
    for turn, (index, block) in enumerate(net.turns):
        part = Part(arrays, f"blocks.{index}.", record, f"blocks.{turn}.", cache, edit)
        part.record("hook_resid_pre", x)
        if block.heads or block.cell:
            seen = normed(net, part, "ln1", x, 2 * index)
            outputs = _attention(net, block, part, seen, positions, visible, query_chunk) if block.heads else []
            if block.cell:
                h = states(block.cell, part, part.edited("rec.hook_in", seen))
                part.record("hook_state", h)
                outputs.append(matmul(h, part["rec.W_C"]))
            x = _join(net, x, outputs)
        part.record("hook_resid_mid", x)
        if block.halves:
            seen = normed(net, part, "ln2", x, 2 * index + 1)
            outputs = [mlp(part, seen)] if block.units else []
            if block.experts:
                width = block.d_out if net.residual == "concatenate" else net.d_model
                outputs.append(mixture(block.experts, block.router, block.gate, part, seen, width))
            x = _join(net, x, outputs)
        part.record("hook_resid_post", x)
    seen = normed(net, whole, "ln_final", x, 2 * len(net.blocks))
    logits = whole.edited("hook_logits", affine(seen, whole["unembed.W_U"], whole["unembed.b_U"]))
    whole.record("hook_logits", logits)
    if cache is not None:
        cache.positions += inputs.shape[1]
    return logits


class Cache:
    """Keys, values and states of the positions that were read before, by block; for nets that look back only."""

    def __init__(self) -> None:
        self.positions = 0
        self._held: dict[str, Any] = {}

    def joined(self, name: str, fresh: Array) -> Array:
        """What was held under a name, and the fresh part [batch, head, pos, …] behind it; both are held from now on."""
        if name in self._held:
            fresh = namespace(fresh).concatenate([self._held[name], fresh], axis=2)
        self._held[name] = fresh
        return fresh

    def kept(self, name: str, first: Any) -> Any:
        """What was kept under a name, or what stands there first."""
        return self._held.get(name, first)

    def keep(self, name: str, value: Any) -> None:
        """Keep a value under a name instead of what was there."""
        self._held[name] = value


class Part:
    """The arrays of one name prefix, and the record and the cache, where the same part of a loop has other names."""

    def __init__(
        self,
        arrays: Mapping[str, Any],
        prefix: str,
        record: Record | None,
        shown: str | None = None,
        cache: Cache | None = None,
        edit: Edit | None = None,
    ) -> None:
        self.arrays, self.prefix, self._record, self._edit = arrays, prefix, record, edit
        self.shown, self._cache = prefix if shown is None else shown, cache

    def joined(self, name: str, fresh: Array) -> Array:
        """An array behind what a cache holds of it, if there is a cache."""
        return fresh if self._cache is None else self._cache.joined(self.shown + name, fresh)

    def kept(self, name: str, first: Any) -> Any:
        """The state that a cache keeps, if there is one, else the first one."""
        return first if self._cache is None else self._cache.kept(self.shown + name, first)

    def keep(self, name: str, value: Any) -> None:
        """Give a state to the cache, if there is one."""
        if self._cache is not None:
            self._cache.keep(self.shown + name, value)

    @property
    def caching(self) -> bool:
        return self._cache is not None

    @property
    def recording(self) -> bool:
        return self._record is not None

    @property
    def editing(self) -> bool:
        return self._edit is not None

    def edited(self, name: str, value: Any) -> Any:
        """What goes on in the place of a value: itself, unless somebody edits."""
        return value if self._edit is None else self._edit(self.shown + name, value)

    def __getitem__(self, name: str) -> Any:
        return self.arrays[self.prefix + name]

    def record(self, name: str, value: Any) -> None:
        if self._record is not None:
            self._record(self.shown + name, value)


def _join(net: Transformer, x: Residual, outputs: list[Any]) -> Residual:
    """The residual stream after some outputs: their sum with it, or side by side with it."""
    if net.residual == "concatenate":
        return namespace(x).concatenate([x, *outputs], axis=-1)
    return sum(outputs, start=x)


def _attention(
    net: Transformer,
    block: Block,
    part: Part,
    x: Residual,
    positions: Array,
    visible: Array | None,
    query_chunk: int | None,
) -> list[Any]:
    """The output of every head; heads of one kind are computed together."""
    xp = namespace(x)
    q, k, v = (
        part.edited(f"attn.hook_{letter.lower()}", affine(x, part[f"attn.W_{letter}"], part[f"attn.b_{letter}"]))
        for letter in "QKV"
    )
    q = q * part["attn.beta"][:, None]  # all [batch, pos, head, …]
    bias = part["attn.b_rel"] if block.window else None
    keep = part.recording
    kinds = _alike(block.heads)
    patterns: list[Any] = [None] * len(block.heads)
    mixed: list[Any] = [None] * len(block.heads)
    for head, members in kinds:
        index = slice(None) if len(kinds) == 1 else xp.asarray(members)
        rel = bias[index] if bias is not None and head.window is not None else None
        own = (turned(head, q[:, :, index], positions), turned(head, k[:, :, index], positions), v[:, :, index])
        read: Any = None if keep or visible is not None or part.caching else fused(head, *own)
        pattern: Any = None
        if read is None:
            queries, keys, values = (xp.moveaxis(each, 2, 1) for each in own)  # [batch, head, pos, …]
            keys, values = part.joined(f"k.{members[0]}", keys), part.joined(f"v.{members[0]}", values)
            pattern, read = _head(head, queries, keys, values, rel, visible, query_chunk, keep)
            read = xp.moveaxis(read, 1, 2)
        for place, member in enumerate(members):
            mixed[member] = read[:, :, place]
            patterns[member] = pattern[:, place] if pattern is not None else None
    z = read if len(kinds) == 1 else xp.stack(mixed, axis=2)
    if keep:
        part.record("attn.hook_pattern", xp.stack(patterns, axis=1))
        part.record("attn.hook_z", z)
    if net.residual == "add":
        outputs = [matmul_heads(z, part["attn.W_O"])]
        part.record("hook_attn_out", outputs[0])
    else:
        outputs = [matmul(z[:, :, place], part["attn.W_O"][place]) for place in range(len(block.heads))]
        part.record("hook_attn_out", outputs)
    return outputs


def _alike(heads: tuple[Head, ...]) -> list[tuple[Head, list[int]]]:
    """The heads grouped by kind, with their places in the block."""
    groups: dict[Head, list[int]] = {}
    for place, head in enumerate(heads):
        groups.setdefault(head, []).append(place)
    return list(groups.items())


def _head(
    head: Head,
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    visible: Array | None,
    query_chunk: int | None,
    keep: bool,
) -> tuple[Array, Array]:
    """Weights [batch, head, query, key] (if kept) and mixed values [batch, head, query, value] of heads of one kind."""
    xp = namespace(q)
    length, before = q.shape[2], k.shape[2] - q.shape[2]
    step = query_chunk or length
    patterns, mixed = [], []
    for start in range(0, length, step):
        queries, keys = before + xp.arange(start, min(start + step, length)), xp.arange(before + length)
        allowed = allowed_keys(head, queries, keys)[None, None]
        if visible is not None:
            allowed = allowed & visible[:, None, None, :]
        scores = q[:, :, start : start + step] @ xp.swapaxes(k, -1, -2)
        if bias is not None:
            offset = xp.clip(queries[:, None] - keys[None, :], 0, bias.shape[1] - 1)
            scores = scores + bias[:, offset]
        pattern = weigh(head, scores, allowed)
        patterns.append(pattern if keep else None)
        mixed.append(pattern @ v)
    if len(mixed) == 1:
        return patterns[0], mixed[0]
    return xp.concatenate(patterns, axis=2) if keep else None, xp.concatenate(mixed, axis=2)


def mlp(part: Part, x: Residual) -> Residual:
    """One hidden layer of ReLU units."""
    pre = part.edited("mlp.hook_pre", affine(x, part["mlp.W_in"], part["mlp.b_in"]))
    part.record("mlp.hook_pre", pre)
    if isinstance(pre, np.ndarray) and not part.recording:
        post = np.maximum(pre, 0, out=pre)
    else:
        post = namespace(x).maximum(pre, 0)
    part.record("mlp.hook_post", post)
    out = affine(post, part["mlp.W_out"], part["mlp.b_out"])
    part.record("hook_mlp_out", out)
    return out


def normed(net: Transformer, part: Part, name: str, x: Residual, half: int) -> Residual:
    """Every group of dimensions with mean 0 and variance 1, then scaled and shifted; all others as they are.

    A group whose numbers are all equal becomes its shift.
    """
    groups = net.normed(half)
    if not groups:
        return x
    xp, width = namespace(x), x.shape[-1]
    found, dims = [], []
    for size in sorted({len(group) for group in groups}):  # groups of one size are done together
        alike = [dim for group in groups if len(group) == size for dim in group]
        split = _picked(x, alike)
        if len(alike) > size:  # several groups; a reshape would cost a compiled program more than it seems
            split = split.reshape(*x.shape[:-1], -1, size)
        centred = split - split.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True) + net.eps
        if not net.eps:  # no root of 0: it has no finite gradient
            variance = xp.where(variance > 0, variance, 1.0)
        root = xp.sqrt(variance)
        unit = centred * (1 / root) if net.eps else centred / root  # quicker, or exact where the root is
        found.append(unit.reshape(*x.shape[:-1], -1))
        dims += alike
    order = [dim for group in groups for dim in group]
    at = {dim: place for place, dim in enumerate(dims)}
    normed = _picked(found[0] if len(found) == 1 else xp.concatenate(found, axis=-1), [at[dim] for dim in order])
    part.record(f"{name}.hook_normalized", normed)
    normed = normed * part[f"{name}.w"] + part[f"{name}.b"]
    place = {dim: number for number, dim in enumerate(order)}
    if len(order) == width:
        return _picked(normed, [place[dim] for dim in range(width)])
    columns = [len(order) + dim if dim not in place else place[dim] for dim in range(width)]
    return _picked(xp.concatenate([normed, x], axis=-1), columns)


def _picked(x: Residual, dims: list[int]) -> Residual:
    """Some dimensions; all of them in order need no picking."""
    return x if dims == list(range(x.shape[-1])) else x[..., namespace(x).asarray(dims)]
