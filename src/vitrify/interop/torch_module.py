"""A network of vitrify as a plain `torch.nn.Module`: this file travels with exports, and needs PyTorch and no more.

The module is driven by a description, as it stands in a config file under `vitrify`: the architecture (`net`), the
shapes of all arrays and the names of all activations (`hooks`). Its parameters have the names of the arrays
(`blocks.0.attn.W_Q`), and every activation passes a module of its own whose name interpretability tools know
(`blocks.0.attn.hook_pattern`): `register_forward_hook` sees and changes it.

    model = load("FOLDER")
    logits, cache = model.run_with_cache(tokens)       # cache["blocks.0.attn.hook_pattern"]

Tokens are numbers of the input symbols, the first of which is the beginning-of-sequence token: it stands `pads` times
in front.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

Description = Mapping[str, Any]
Change = Callable[[Tensor], Any]  # a tensor in the place of the one that was given, or None
Names = tuple[str, str]  # how the arrays of a block begin, and its activations: a loop has more of these


class Hook(nn.Module):  # type: ignore[misc]
    """A point that an activation passes; only a hook changes it."""

    def forward(self, x: Tensor) -> Tensor:
        """The activation."""
        return x


class Named(nn.Module):  # type: ignore[misc]
    """Parameters, hooks and further parts by name."""

    def at(self, path: list[str]) -> Named:
        """The part of a part of … of these names, made where there is none."""
        if not path:
            return self
        if path[0] not in self._modules:
            self.add_module(path[0], Named())
        module: Named = self._modules[path[0]].at(path[1:])
        return module


class VitrifyModule(Named):
    """The forward pass of any architecture of vitrify: transformers, hybrids, recurrent and convolutional nets."""

    def __init__(self, about: Description, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.net, self.hook_names = dict(about["net"]), tuple(about["hooks"])
        for name, shape in about["shapes"].items():
            *path, last = name.split(".")
            self.at(path).register_parameter(last, nn.Parameter(torch.zeros(*shape, dtype=dtype)))
        for name in self.hook_names:
            *path, last = name.split(".")
            self.at(path).add_module(last, Hook())

    def array(self, name: str) -> Tensor:
        """The array of that name."""
        return self.get_parameter(name)

    def seen(self, name: str, x: Tensor) -> Tensor:
        """The activation of that name, as hooks leave it."""
        return self.get_submodule(name)(x)

    def forward(self, inputs: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Logits [batch, pos, out], or [batch, out] of images; `lengths` hides filling behind short rows of tokens."""
        return ARCHITECTURES[self.net["architecture"]](self, self.net, inputs, lengths)

    @contextmanager
    def hooked(self, changes: Mapping[str, Change]) -> Iterator[None]:
        """For a while, let functions see activations by name; what they return, if anything, takes their place."""
        handles = [
            self.get_submodule(name).register_forward_hook(lambda _module, _args, out, change=change: change(out))
            for name, change in changes.items()
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def run_with_hooks(self, inputs: Tensor, changes: Mapping[str, Change]) -> Tensor:
        """Logits of a run in which functions change activations by name."""
        with self.hooked(changes):
            logits: Tensor = self(inputs)
        return logits

    def run_with_cache(self, inputs: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """Logits and every activation by name."""
        cache: dict[str, Tensor] = {}
        keep = {name: partial(cache.__setitem__, name) for name in self.hook_names}
        return self.run_with_hooks(inputs, keep), cache


def load(folder: str | Path, dtype: torch.dtype | None = None) -> VitrifyModule:
    """The module that a folder of `vitrify export --to torch` holds, in the precision of its file unless said."""
    from safetensors.torch import load_file

    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    arrays = load_file(Path(folder) / "model.safetensors")
    model = VitrifyModule(config["vitrify"])
    model.load_state_dict(arrays, assign=True)
    loaded: VitrifyModule = (model.to(dtype) if dtype else model).eval()
    return loaded


# Transformers


def _transformer(model: VitrifyModule, net: Description, inputs: Tensor, lengths: Tensor | None) -> Tensor:
    embed, places = model.array("embed.W_E"), model.array("pos_embed.W_pos")
    if net["reads"] == "tokens":
        embedded = embed[inputs]
    else:
        embedded = inputs.to(embed.dtype) @ embed
        embedded = embedded[:, None] if net["reads"] == "vector" else embedded
    length = net["max_length"] if net["reads"] == "vector" else inputs.shape[1]
    visible = None if lengths is None else torch.arange(length, device=embed.device)[None, :] < lengths[:, None]
    x = model.seen("hook_embed", embedded) + model.seen("hook_pos_embed", places[:length][None])
    x = x if net["blocks"] else model.seen("hook_resid_post", x)
    for turn, (index, block) in enumerate(list(enumerate(net["blocks"])) * net["loops"]):
        own, at = f"blocks.{index}.", f"blocks.{turn}."
        x = model.seen(at + "hook_resid_pre", x)
        if block["heads"] or block["cell"]:
            row = _normed(model, net, x, 2 * index, own + "ln1", at + "ln1")
            outputs = _attention(model, net, block, (own, at), row, visible) if block["heads"] else []
            if block["cell"]:
                states = model.seen(at + "hook_state", _states(model, block["cell"], own, row))
                outputs.append(states @ model.array(own + "rec.W_C"))
            x = _joined(net, x, outputs)
        x = model.seen(at + "hook_resid_mid", x)
        if block["units"] or block["experts"]:
            row = _normed(model, net, x, 2 * index + 1, own + "ln2", at + "ln2")
            outputs = [_units(model, own, at, row)] if block["units"] else []
            if block["experts"]:
                width = block["d_out"] if net["residual"] == "concatenate" else net["d_model"]
                outputs.append(_experts(model, block, own, at, row, width))
            x = _joined(net, x, outputs)
        x = model.seen(at + "hook_resid_post", x)
    row = _normed(model, net, x, 2 * len(net["blocks"]), "ln_final", "ln_final")
    return model.seen("hook_logits", row @ model.array("unembed.W_U") + model.array("unembed.b_U"))


def _joined(net: Description, x: Tensor, outputs: list[Tensor]) -> Tensor:
    return torch.cat([x, *outputs], dim=-1) if net["residual"] == "concatenate" else sum(outputs, start=x)


def _attention(
    model: VitrifyModule, net: Description, block: Description, names: Names, x: Tensor, visible: Tensor | None
) -> list[Tensor]:
    own, at = names

    def read(letter: str) -> Tensor:  # [batch, head, pos, …]
        product = torch.einsum("bpd,hdk->bhpk", x, model.array(f"{own}attn.W_{letter}"))
        return product + model.array(f"{own}attn.b_{letter}")[:, None]

    q, k, v = read("Q") * model.array(own + "attn.beta")[:, None, None], read("K"), read("V")
    positions = torch.arange(x.shape[1], device=x.device)
    offset = positions[:, None] - positions[None, :]
    patterns = []
    for place, head in enumerate(block["heads"]):
        query, key = (_turned(head, each[:, place], positions) for each in (q, k))
        scores = query @ key.transpose(-1, -2)
        if head["window"] is not None:
            table = model.array(own + "attn.b_rel")[place]
            scores = scores + table[offset.clamp(0, table.shape[0] - 1)]
        allowed = _allowed(head, offset).expand(scores.shape)
        allowed = allowed if visible is None else allowed & visible[:, None, :]
        patterns.append(_weights(head, scores, allowed))
    pattern = model.seen(at + "attn.hook_pattern", torch.stack(patterns, dim=1))
    z = model.seen(at + "attn.hook_z", (pattern @ v).transpose(1, 2))  # [batch, pos, head, value]
    out = model.array(own + "attn.W_O")
    if net["residual"] == "add":
        return [model.seen(at + "hook_attn_out", z.flatten(2) @ out.flatten(0, 1))]
    heads = model.seen(at + "hook_attn_out", torch.einsum("bphk,hkd->bphd", z, out).flatten(2))
    return list(heads.split(out.shape[-1], dim=-1))


def _turned(head: Description, x: Tensor, positions: Tensor) -> Tensor:
    if not head["rotary"]:
        return x
    half = x.shape[-1] // 2
    speeds = head["rotary"] ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)
    angles = positions[:, None] * speeds
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    left, right = x[..., :half], x[..., half:]
    return torch.cat([left * cos - right * sin, left * sin + right * cos], dim=-1)


def _allowed(head: Description, offset: Tensor) -> Tensor:
    allowed = torch.ones_like(offset, dtype=torch.bool)
    if head["mask"] == "after":
        allowed = offset < 0
    elif head["mask"] != "none":
        allowed = offset >= (1 if head["mask"] == "strict" else 0)
    if head["window"] is not None:
        allowed = allowed & (offset >= 0) & (offset < head["window"])
    return allowed


def _weights(head: Description, scores: Tensor, allowed: Tensor) -> Tensor:
    """The attention weights [..., query, key]; a query without any allowed key gets 0."""
    none = torch.zeros_like(scores)
    if head["attention"] == "linear":
        return torch.where(allowed, scores, none)
    best = torch.where(allowed, scores, torch.full_like(scores, torch.finfo(scores.dtype).min)).amax(-1, keepdim=True)
    if head["attention"] == "softmax":
        exponentials = torch.where(allowed, torch.exp(torch.where(allowed, scores - best, none)), none)
        total = exponentials.sum(-1, keepdim=True)
        return exponentials / torch.where(total > 0, total, torch.ones_like(total))
    if head["attention"] == "sparsemax":
        shifted = torch.where(allowed, scores - best, torch.full_like(scores, -2.0))
        ordered = shifted.sort(dim=-1, descending=True).values
        total = ordered.cumsum(-1)
        rank = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype, device=scores.device)
        size = (1 + rank * ordered > total).sum(-1, keepdim=True).clamp(min=1)
        tau = (total.gather(-1, size - 1) - 1) / size.to(scores.dtype)
        return torch.where(allowed, (shifted - tau).clamp(min=0), none)
    tied = allowed & (scores >= best - head["resolution"])
    if head["ties"] == "left":
        tied = tied & (tied.to(scores.dtype).cumsum(-1) == 1)
    elif head["ties"] == "right":
        tied = tied & (tied.to(scores.dtype).flip(-1).cumsum(-1).flip(-1) == 1)
    exponentials = tied.to(scores.dtype)
    return exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1)


def _units(model: VitrifyModule, own: str, at: str, x: Tensor) -> Tensor:
    pre = model.seen(at + "mlp.hook_pre", x @ model.array(own + "mlp.W_in") + model.array(own + "mlp.b_in"))
    post = model.seen(at + "mlp.hook_post", torch.relu(pre))
    out = post @ model.array(own + "mlp.W_out") + model.array(own + "mlp.b_out")
    return model.seen(at + "hook_mlp_out", out)


def _normed(model: VitrifyModule, net: Description, x: Tensor, half: int, own: str, at: str) -> Tensor:
    """The stream before a half layer, its groups of dimensions (or all of it) normalised where the net has norms."""
    groups = list(map(list, net["groups"][half])) if net["groups"] else [list(range(x.shape[-1]))]
    if not net["norm"] or not groups:
        return x
    parts = []
    for group in groups:
        own_part = x if len(group) == x.shape[-1] and group == sorted(group) else x[..., group]
        centered = own_part - own_part.mean(-1, keepdim=True)
        variance = (centered * centered).mean(-1, keepdim=True) + net["eps"]
        if not net["eps"]:
            variance = torch.where(variance > 0, variance, torch.ones_like(variance))
        parts.append(centered / variance.sqrt())
    normed = model.seen(at + ".hook_normalized", torch.cat(parts, dim=-1))
    normed = normed * model.array(own + ".w") + model.array(own + ".b")
    place = {dim: number for number, dim in enumerate(dim for group in groups for dim in group)}
    columns = [place.get(dim, len(place) + dim) for dim in range(x.shape[-1])]
    return normed if columns == list(range(x.shape[-1])) else torch.cat([normed, x], dim=-1)[..., columns]


# Mixtures of experts


def _experts(model: VitrifyModule, block: Description, own: str, at: str, x: Tensor, width: int) -> Tensor:
    row, gate = x, block["gate"]
    if block["router"]:
        row = x @ model.array(own + "moe.router.W_in") + model.array(own + "moe.router.b_in")
        row = model.seen(at + "moe.router.hook_post", torch.relu(row))
    scores = row @ model.array(own + "moe.router.W_out") + model.array(own + "moe.router.b_out")
    scores = model.seen(at + "moe.hook_scores", scores)
    if gate:
        factors = model.seen(at + "moe.hook_gates", _gates(model, gate, (own, at), scores))
    else:
        chosen = model.seen(at + "moe.hook_expert", scores.argmax(-1, keepdim=True))
        factors = nn.functional.one_hot(chosen[..., 0], scores.shape[-1]).to(x.dtype)
    out = torch.zeros(*x.shape[:-1], width, dtype=x.dtype, device=x.device)
    for number, expert in enumerate(block["experts"]):
        name = f"{own}moe.experts.{number}."
        hidden = torch.relu(x[..., list(expert["reads"])] @ model.array(name + "W_in") + model.array(name + "b_in"))
        written = hidden @ model.array(name + "W_out") + model.array(name + "b_out")
        written = torch.cat([written, torch.zeros_like(x[..., :1])], dim=-1)
        source = {dim: place for place, dim in enumerate(expert["writes"])}
        columns = [source.get(dim, len(source)) for dim in range(width)]  # the last one is zero
        own_factor = factors[..., number, None]
        out = out + torch.where(own_factor > 0, own_factor * written[..., columns], torch.zeros_like(out))
    return model.seen(at + "hook_moe_out", out)


def _gates(model: VitrifyModule, gate: Description, names: Names, scores: Tensor) -> Tensor:
    own, at = names
    shares = torch.exp(scores - scores.amax(-1, keepdim=True))
    none = torch.zeros_like(shares)
    if gate["by"] == "expert":  # each takes the rows of the batch that suit it best, at each position
        shares = shares / shares.sum(-1, keepdim=True)
        room = min(shares.shape[0], -(-gate["top"] * shares.shape[0] // shares.shape[2]))
        order = torch.argsort(torch.argsort(-shares, dim=0, stable=True), dim=0, stable=True)
        shares = torch.where(order < room, shares, none)
        model.seen(at + "moe.hook_expert", shares.argmax(-1, keepdim=True))
        return shares
    wanted = model.seen(at + "moe.hook_choice", scores + model.array(own + "moe.router.b_choice"))
    mine, theirs = wanted[..., :, None], wanted[..., None, :]
    earlier = torch.ones_like(mine * theirs, dtype=torch.bool).tril(-1)
    rank = ((theirs > mine) | ((theirs == mine) & earlier)).sum(-1)
    model.seen(at + "moe.hook_expert", rank.argsort(-1)[..., : gate["top"]])
    best = rank < gate["top"]
    counted = torch.where(best, shares, none) if gate["over"] == "chosen" else shares
    return torch.where(best, counted / counted.sum(-1, keepdim=True), none)


# Recurrent cells


def _states(model: VitrifyModule, cell: Description, own: str, x: Tensor) -> Tensor:
    """The states [batch, pos, state] of a cell that rows [batch, pos, read] drive, one position after the other."""
    kind, w_a = cell["kind"], model.array(own + "rec.W_A")
    driven = x @ model.array(own + "rec.W_B")
    if kind == "lstm":
        driven = driven + model.array(own + "rec.b")
    scale = x @ w_a if kind in ("diagonal", "positive", "signed") else driven
    if kind in ("positive", "signed"):
        scale = scale + model.array(own + "rec.b")
        scale = _sigmoid(scale) if kind == "positive" else torch.tanh(scale)
    turns = torch.einsum("bpr,frs->bpfs", x, w_a) if kind == "householder" else driven[:, :, None]
    stepped = torch.jit.script(_stepped) if torch.jit.is_tracing() else _stepped  # a loop of any length in a graph
    return stepped(kind, w_a, x, driven, scale, turns, cell["state"])


def _stepped(kind: str, w_a: Tensor, x: Tensor, driven: Tensor, scale: Tensor, turns: Tensor, size: int) -> Tensor:
    h = torch.zeros_like(driven[:, 0, :size])
    c, states = h, []
    for t in range(driven.shape[1]):
        if kind == "lstm":
            gates = torch.matmul(h, w_a) + driven[:, t]
            i, f = _sigmoid(gates[:, :size]), _sigmoid(gates[:, size : 2 * size])
            c = f * c + i * torch.tanh(gates[:, 2 * size : 3 * size])
            h = _sigmoid(gates[:, 3 * size :]) * torch.tanh(c)
        elif kind == "diagonal" or kind == "positive" or kind == "signed":
            h = h * scale[:, t] + driven[:, t]
        elif kind == "householder":
            for factor in range(turns.shape[2]):
                v = turns[:, t, factor]
                h = h - (h * v).sum(-1, keepdim=True) * v
            h = h + driven[:, t]
        elif kind == "full":
            h = (x[:, t, :, None] * torch.einsum("bs,rst->brt", h, w_a)).sum(1) + driven[:, t]
        elif kind == "relu":
            h = torch.relu(torch.matmul(h, w_a) + driven[:, t])
        else:
            h = torch.matmul(h, w_a) + driven[:, t]
        states.append(h)
    return torch.stack(states, dim=1)


def _sigmoid(x: Tensor) -> Tensor:
    return (1 + torch.tanh(x / 2)) / 2


def _recurrent(model: VitrifyModule, net: Description, inputs: Tensor, lengths: Tensor | None) -> Tensor:
    del lengths  # a state knows nothing of what comes after it
    x = model.seen("hook_embed", model.array("embed.W_E")[inputs])
    y = model.seen("blocks.0.hook_state", _states(model, net["cell"], "blocks.0.", x))
    if net["units"]:
        y = _units(model, "blocks.0.", "blocks.0.", y)
    return model.seen("hook_logits", y @ model.array("unembed.W_U") + model.array("unembed.b_U"))


# Convolutional nets


def _convolutional(model: VitrifyModule, net: Description, inputs: Tensor, lengths: Tensor | None) -> Tensor:
    del lengths  # images have one size
    x = inputs.to(model.array("unembed.W_U").dtype)
    for index, layer in enumerate(net["convolutions"]):
        kernel, bias = model.array(f"conv.{index}.W"), model.array(f"conv.{index}.b")
        stride, pad = tuple(layer["stride"]), tuple(layer["pad"])
        x = model.seen(f"conv.{index}.hook_pre", nn.functional.conv2d(x, kernel, bias, stride=stride, padding=pad))
        x = model.seen(f"conv.{index}.hook_post", torch.relu(x))
    x = model.seen("hook_pooled", x.sum(dim=(2, 3)))
    for index in range(len(net["dense"])):
        pre = x @ model.array(f"dense.{index}.W_in") + model.array(f"dense.{index}.b_in")
        x = model.seen(f"dense.{index}.hook_post", torch.relu(model.seen(f"dense.{index}.hook_pre", pre)))
    return x @ model.array("unembed.W_U") + model.array("unembed.b_U")


ARCHITECTURES = {"transformer": _transformer, "recurrent": _recurrent, "convolutional": _convolutional}
