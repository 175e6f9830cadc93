"""The forward pass of a transformer, one function for NumPy and JAX arrays."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from vitrify.arrays import Array, Arrays, Attention, Bool, Float, Int, Logits, Matrix, Num, Residual, namespace
from vitrify.net.architecture import Edit, Record
from vitrify.net.attention import allowed_keys, turned, weigh
from vitrify.net.cells import State, states
from vitrify.net.experts import mixture
from vitrify.net.positions import rows_by_formula
from vitrify.net.sparse import affine, matmul, matmul_heads, rows
from vitrify.net.transformer import Block, Head, Transformer


def forward(
    net: Transformer,
    arrays: Arrays,
    inputs: Num[Array, "batch ..."],
    *,
    lengths: Int[Array, " batch"] | None = None,
    record: Record | None = None,
    query_chunk: int | None = None,
    cache: Cache | None = None,
    starts: Int[Array, " batch"] | None = None,
    edit: Edit | None = None,
) -> Logits:
    r"""Logits at every position of a batch of token ids, whose first `pads` columns are the BOS token.

    $x^0 = W_E[\text{tokens}] + W_{pos}$, or $x^0 = vW_E + W_{pos}$ where the inputs are vectors $v$, the same or its
    own at each position; positions by formula stand in the place of $W_{pos}$. The blocks run in order, `loops` times
    over. Each adds (or appends) its heads' outputs $\sum_j w_{ij} (x_j W_V + b_V) W_O$ and the state of its recurrent
    cell, $h W_C$ (see `cells.py`), and then the MLP output $\mathrm{relu}(x W_{in} + b_{in}) W_{out} + b_{out}$ and
    that of its experts (see `experts.py`). The logits are $x W_U + b_U$.

    - `lengths` [batch], pads included: sequences are padded on the right; hides the padding from heads that see later
      positions.
    - `record(name, value)` is called with every activation; each pass of a loop counts as a block of its own.
    - `query_chunk` bounds memory on long sequences.
    - `cache` holds keys, values and states of earlier calls: the inputs continue theirs, logits are of the new ones.
    - `starts` [batch]: the first row of the position table for each sequence, by default 0; indices past the end of the
      table take its last row.
    - `edit(name, value)` is called with the input of every part (queries, keys, values, pre-activations, the inputs of
      cells, routers and experts, logits) and returns the value to use instead.
    """
    xp = namespace(inputs)
    vector = net.reads == "vector"
    start = 0 if cache is None else cache.positions
    positions = start + xp.arange(net.max_length if vector else inputs.shape[1])
    root = Part(arrays, "", record, edit=edit)
    if net.reads == "tokens":
        embedded = rows(root["embed.W_E"], inputs)
    else:
        embedded = matmul(inputs, root["embed.W_E"])
        embedded = embedded[:, None] if vector else embedded
    position_rows = positions if starts is None else xp.minimum(starts[:, None] + positions, net.positions - 1)
    if not net.tabled:
        last = start + inputs.shape[1] if starts is None else net.positions
        positional = rows_by_formula(net, position_rows, last - net.pads, embedded.dtype)
    else:
        positional = rows(root["pos_embed.W_pos"], position_rows)
    root.record("hook_embed", embedded)
    root.record("hook_pos_embed", positional)
    x = embedded + positional
    if routines := _routines(root, x):
        x = routines.stored(x)
    visible = None if lengths is None else positions[None, :] < lengths[:, None]
    if not net.blocks:
        root.record("hook_resid_post", x)
    for turn, (index, block) in enumerate(net.turns):
        part = Part(arrays, f"blocks.{index}.", record, f"blocks.{turn}.", cache, edit)
        part.record("hook_resid_pre", x)
        if block.heads or block.cell:
            normalized, x = normed(net, part, "ln1", x, 2 * index)
            outputs = _attention(net, block, part, normalized, positions, visible, query_chunk) if block.heads else []
            if block.cell:
                h = states(block.cell, part, part.edited("rec.hook_in", normalized))
                part.record("hook_state", h)
                outputs.append(matmul(h, part["rec.W_C"]))
            x = _join(net, x, outputs)
        part.record("hook_resid_mid", x)
        if block.halves:
            normalized, x = normed(net, part, "ln2", x, 2 * index + 1)
            outputs = [mlp(part, normalized)] if block.units else []
            if block.experts:
                width = block.d_out if net.residual == "concatenate" else net.d_model
                outputs.append(mixture(block.experts, block.router, block.gate, part, normalized, width))
            x = _join(net, x, outputs)
        part.record("hook_resid_post", x)
    normalized, x = normed(net, root, "ln_final", x, 2 * len(net.blocks))
    logits = root.edited("hook_logits", affine(normalized, root["unembed.W_U"], root["unembed.b_U"]))
    root.record("hook_logits", logits)
    if cache is not None:
        cache.positions += inputs.shape[1]
    return logits


class Cache:
    """Keys, values and states of the positions read so far, by block; for causal nets."""

    def __init__(self) -> None:
        self.positions = 0
        self._held: dict[str, State] = {}

    def rows(self, index: Array) -> Cache:
        """Return a cache of some sequences of the batch, by index; one may come several times."""
        chosen = Cache()
        chosen.positions = self.positions
        for name, held in self._held.items():
            chosen._held[name] = tuple(part[index] for part in held) if isinstance(held, tuple) else held[index]
        return chosen

    def joined(self, name: str, fresh: Array) -> Array:
        """Append a fresh part [batch, head, pos, …] to the array of a name, and return the result."""
        if name in self._held:
            fresh = namespace(fresh).concatenate([self._held[name], fresh], axis=2)
        self._held[name] = fresh
        return fresh

    def state(self, name: str, initial: State) -> State:
        """Return the state of a name, or the initial one if there is none."""
        return self._held.get(name, initial)

    def set_state(self, name: str, value: State) -> None:
        """Replace the state of a name."""
        self._held[name] = value


class Part:
    """The arrays below one name prefix, with callbacks and cache, where each pass of a loop has a name of its own."""

    def __init__(
        self,
        arrays: Arrays,
        prefix: str,
        record: Record | None,
        shown: str | None = None,
        cache: Cache | None = None,
        edit: Edit | None = None,
    ) -> None:
        self.arrays, self.prefix, self._record, self._edit = arrays, prefix, record, edit
        self.shown, self._cache = prefix if shown is None else shown, cache

    def joined(self, name: str, fresh: Array) -> Array:
        """Append an array to what the cache holds under its name, if there is a cache."""
        return fresh if self._cache is None else self._cache.joined(self.shown + name, fresh)

    def state(self, name: str, initial: State) -> State:
        """Return the cached state, or the initial one if there is none."""
        return initial if self._cache is None else self._cache.state(self.shown + name, initial)

    def set_state(self, name: str, value: State) -> None:
        """Store a state in the cache, if there is one."""
        if self._cache is not None:
            self._cache.set_state(self.shown + name, value)

    @property
    def caching(self) -> bool:
        return self._cache is not None

    @property
    def recording(self) -> bool:
        return self._record is not None

    @property
    def editing(self) -> bool:
        return self._edit is not None

    def edited(self, name: str, value: Array) -> Array:
        """Return the value that `edit` gives for a value; without `edit`, the value itself."""
        return value if self._edit is None else self._edit(self.shown + name, value)

    def __getitem__(self, name: str) -> Matrix:
        return self.arrays[self.prefix + name]

    def record(self, name: str, value: Array) -> None:
        if self._record is not None:
            self._record(self.shown + name, value)


def _routines(part: Part, x: Array) -> ModuleType | None:
    """Return the routines of compiled programs; None for NumPy arrays, and where activations are recorded or edited."""
    if isinstance(x, np.ndarray) or part.recording or part.editing:
        return None
    from vitrify.net import routines

    return routines


def _join(net: Transformer, x: Residual, outputs: list[Array]) -> Float[Array, "batch pos joined"]:
    """Return the residual stream with outputs added to it, or appended."""
    if net.residual == "concatenate":
        return namespace(x).concatenate([x, *outputs], axis=-1)
    return sum(outputs, start=x)


def _attention(
    net: Transformer,
    block: Block,
    part: Part,
    x: Residual,
    positions: Int[Array, " pos"],
    visible: Bool[Array, "batch key"] | None,
    query_chunk: int | None,
) -> list[Array]:
    """Return the output of every head; heads of one kind are computed together."""
    xp = namespace(x)
    recording = part.recording
    routines = None if part.caching or visible is not None else _routines(part, x)
    by_kernel = routines is not None and routines.attends(block, x)
    bias = part["attn.b_rel"] if block.window else None
    kinds: dict[Head, list[int]] = {}
    for place, head in enumerate(block.heads):
        kinds.setdefault(head, []).append(place)
    weights = [(part[f"attn.W_{letter}"], part[f"attn.b_{letter}"]) for letter in "QKV"]
    beta = part["attn.beta"]
    if by_kernel:
        weights[0] = (weights[0][0] * beta[:, None, None], weights[0][1] * beta[:, None])
        shifts = xp.stack([shift for _, shift in weights])
        qkv = matmul(x, xp.concatenate([matrix for matrix, _ in weights])).reshape(*x.shape[:2], *shifts.shape)
    else:
        q, k, v = (
            part.edited(f"attn.hook_{letter}", affine(x, *weight))
            for letter, weight in zip("qkv", weights, strict=True)
        )
        q = q * beta[:, None]  # all [batch, pos, head, …]
    patterns: list[Array] = [None] * len(block.heads)
    mixed: list[Array] = [None] * len(block.heads)
    for head, members in kinds.items():
        index = slice(None) if len(kinds) == 1 else xp.asarray(members)
        rel = bias[index] if bias is not None and head.window is not None else None
        read: Array = None
        if routines and by_kernel:
            read = routines.attend(head, qkv[:, :, :, index], shifts[:, index], rel)
        else:
            each = (turned(head, q[:, :, index], positions), turned(head, k[:, :, index], positions), v[:, :, index])
            read = routines.fused(head, *each) if routines else None
        pattern: Array = None
        if read is None:
            queries, keys, values = (xp.moveaxis(each, 2, 1) for each in each)  # [batch, head, pos, …]
            keys, values = part.joined(f"k.{members[0]}", keys), part.joined(f"v.{members[0]}", values)
            pattern, read = _head(head, queries, keys, values, rel, visible, query_chunk, recording, net.pads)
            read = xp.moveaxis(read, 1, 2)
        for place, member in enumerate(members):
            mixed[member] = read[:, :, place]
            patterns[member] = pattern[:, place] if pattern is not None else None
    z = read if len(kinds) == 1 else xp.stack(mixed, axis=2)
    if recording:
        part.record("attn.hook_pattern", xp.stack(patterns, axis=1))
        part.record("attn.hook_z", z)
    if net.residual == "add":
        outputs = [matmul_heads(z, part["attn.W_O"])]
        part.record("hook_attn_out", outputs[0])
    else:
        outputs = [matmul(z[:, :, place], part["attn.W_O"][place]) for place in range(len(block.heads))]
        part.record("hook_attn_out", outputs)
    return outputs


def _head(
    head: Head,
    q: Float[Array, "batch head query d"],
    k: Float[Array, "batch head key d"],
    v: Float[Array, "batch head key value"],
    bias: Float[Array, "head window"] | None,
    visible: Bool[Array, "batch key"] | None,
    query_chunk: int | None,
    recording: bool,
    pads: int,
) -> tuple[Attention | None, Float[Array, "batch head query value"]]:
    """Return the attention weights (if recorded) and the mixed values of heads of one kind."""
    xp = namespace(q)
    length, before = q.shape[2], k.shape[2] - q.shape[2]
    step = query_chunk or length
    patterns, mixed = [], []
    for start in range(0, length, step):
        queries, keys = before + xp.arange(start, min(start + step, length)), xp.arange(before + length)
        allowed = allowed_keys(head, queries, keys, pads)[None, None]
        if visible is not None:
            allowed = allowed & visible[:, None, None, :]
        scores = q[:, :, start : start + step] @ xp.swapaxes(k, -1, -2)
        if bias is not None:
            offset = xp.clip(queries[:, None] - keys[None, :], 0, bias.shape[1] - 1)
            scores = scores + bias[:, offset]
        pattern = weigh(head, scores, allowed)
        patterns.append(pattern if recording else None)
        mixed.append(pattern @ v)
    if len(mixed) == 1:
        return patterns[0], mixed[0]
    return xp.concatenate(patterns, axis=2) if recording else None, xp.concatenate(mixed, axis=2)


def mlp(part: Part, x: Float[Array, "*lead model"]) -> Float[Array, "*lead out"]:
    """Return the output of one hidden layer of ReLU units."""
    if routines := _routines(part, x):
        out = routines.mlp(x, part["mlp.W_in"], part["mlp.b_in"], part["mlp.W_out"], part["mlp.b_out"])
        if out is not None:
            return out
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


def normed(net: Transformer, part: Part, name: str, x: Residual, half: int) -> tuple[Residual, Residual]:
    """Return x with layer norm applied to each group of dimensions, and x itself for those who read it un-normalized.

    Dimensions in no group are unchanged. A group whose values are all equal becomes its shift.
    """
    groups = net.normed(half)
    if not groups:
        return x, x
    xp, width = namespace(x), x.shape[-1]
    if groups == (tuple(range(width)),) and (routines := _routines(part, x)):
        both: tuple[Residual, Residual] | None = routines.norm(x, part[f"{name}.w"], part[f"{name}.b"], net.eps)
        if both is not None:
            return both
    parts, dims = [], []
    for size in sorted({len(group) for group in groups}):  # groups of one size are done together
        alike = [dim for group in groups if len(group) == size for dim in group]
        split = _picked(x, alike)
        if len(alike) > size:  # several groups; a reshape would cost a compiled program more than it seems
            split = split.reshape(*x.shape[:-1], -1, size)
        centered = split - split.mean(axis=-1, keepdims=True)
        variance = (centered * centered).mean(axis=-1, keepdims=True) + net.eps
        if not net.eps:  # no root of 0: it has no finite gradient
            variance = xp.where(variance > 0, variance, 1.0)
        root = xp.sqrt(variance)
        unit = centered * (1 / root) if net.eps else centered / root  # quicker, or exact where the root is
        parts.append(unit.reshape(*x.shape[:-1], -1))
        dims += alike
    order = [dim for group in groups for dim in group]
    at = {dim: place for place, dim in enumerate(dims)}
    normed = _picked(parts[0] if len(parts) == 1 else xp.concatenate(parts, axis=-1), [at[dim] for dim in order])
    part.record(f"{name}.hook_normalized", normed)
    normed = normed * part[f"{name}.w"] + part[f"{name}.b"]
    place = {dim: number for number, dim in enumerate(order)}
    if len(order) == width:
        return _picked(normed, [place[dim] for dim in range(width)]), x
    columns = [len(order) + dim if dim not in place else place[dim] for dim in range(width)]
    return _picked(xp.concatenate([normed, x], axis=-1), columns), x


def _picked(x: Residual, dims: list[int]) -> Float[Array, "batch pos dim"]:
    """Return x at some dimensions; x itself if these are all, in order."""
    return x if dims == list(range(x.shape[-1])) else x[..., namespace(x).asarray(dims)]
