"""Edges by definition: every reader adds up its own stream, from what each part wrote in this run or in the donor's.

Slow, one word at a time, no linear shortcuts; shares nothing with the package but the names of arrays and nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Said = dict[str, Any]  # what every node adds to the stream [pos, model]; of a router, the expert it chooses [pos]


def run(weights: Any, groups: dict[str, tuple[int, ...]], tokens: Any, cut: Any = (), donor: Said | None = None) -> Any:
    """Logits [pos, out] of one word, and what every node said; cut edges carry what the donor said."""
    net = weights.architecture
    arrays = {name: np.asarray(a.toarray() if hasattr(a, "toarray") else a) for name, a in weights.arrays.items()}
    cut, donor, said, constant = set(cut), donor or {}, {}, np.zeros((len(tokens), net.d_model))
    said["embed"] = np.array([arrays["embed.W_E"][token] for token in tokens])
    said["pos"] = arrays["pos_embed.W_pos"][: len(tokens)].copy()

    def stream(port: str, writers: list[str], norm: str, half: int) -> Any:
        x = constant.copy()
        for writer in writers:
            x = x + (donor[writer] if (writer, port) in cut else said[writer])
        x, at = x.copy(), 0
        for group in net.normed(half):
            part = x[:, list(group)]
            part = part - part.mean(axis=1, keepdims=True)
            spread = np.sqrt((part**2).mean(axis=1, keepdims=True) + net.eps)
            part = np.divide(part, spread, out=np.zeros_like(part), where=spread > 0)
            own = slice(at, at + len(group))
            x[:, list(group)] = part * arrays[f"{norm}.w"][own] + arrays[f"{norm}.b"][own]
            at += len(group)
        return x

    writers = ["embed", "pos"]
    for turn, (index, block) in enumerate(net.turns):
        own, at = f"blocks.{index}", f"blocks.{turn}"
        before, added = list(writers), {}
        for place, head in enumerate(block.heads):
            name = f"{at}.attn.head.{place}"
            q, k, v = (
                stream(f"{name}.{letter.lower()}", before, f"{own}.ln1", 2 * index)
                @ arrays[f"{own}.attn.W_{letter}"][place]
                + arrays[f"{own}.attn.b_{letter}"][place]
                for letter in "QKV"
            )
            scores = arrays[f"{own}.attn.beta"][place] * (q @ k.T)
            bias = arrays[f"{own}.attn.b_rel"][place] if block.window else None
            added[name] = np.array([_weights(head, scores[i], i, bias) @ v for i in range(len(tokens))])
            added[name] = added[name] @ arrays[f"{own}.attn.W_O"][place]
        if block.cell:
            seen = stream(f"{at}.rec", before, f"{own}.ln1", 2 * index)
            h, states = np.zeros(block.cell.state), []
            for row in seen:
                h = h * (row @ arrays[f"{own}.rec.W_A"]) + row @ arrays[f"{own}.rec.W_B"]
                states.append(h)
            added[f"{at}.rec"] = np.array(states) @ arrays[f"{own}.rec.W_C"]
        said |= added
        writers += added
        before, added = list(writers), {}
        if block.units:
            for name in [name for name in groups if name.startswith(f"{at}.mlp")]:
                units = list(groups[name])
                pre = stream(name, before, f"{own}.ln2", 2 * index + 1) @ arrays[f"{own}.mlp.W_in"][:, units]
                post = np.maximum(pre + arrays[f"{own}.mlp.b_in"][units], 0)
                added[name] = post @ arrays[f"{own}.mlp.W_out"][units]
        if block.experts:
            router = f"{at}.moe.router"
            seen = stream(router, before, f"{own}.ln2", 2 * index + 1)
            if block.router:
                seen = np.maximum(seen @ arrays[f"{own}.moe.router.W_in"] + arrays[f"{own}.moe.router.b_in"], 0)
            scores = seen @ arrays[f"{own}.moe.router.W_out"] + arrays[f"{own}.moe.router.b_out"]
            said[router] = scores.argmax(axis=1)
            for number, expert in enumerate(block.experts):
                name, own_arrays = f"{at}.moe.expert.{number}", f"{own}.moe.experts.{number}"
                chosen = donor[router] if (router, f"{name}.gate") in cut else said[router]
                seen = stream(name, before, f"{own}.ln2", 2 * index + 1)[:, list(expert.reads)]
                hidden = np.maximum(seen @ arrays[f"{own_arrays}.W_in"] + arrays[f"{own_arrays}.b_in"], 0)
                out = np.zeros_like(constant)
                out[:, list(expert.writes)] = hidden @ arrays[f"{own_arrays}.W_out"] + arrays[f"{own_arrays}.b_out"]
                added[name] = out * (chosen == number)[:, None]
        if block.units:
            constant = constant + arrays[f"{own}.mlp.b_out"]
        said |= added
        writers += added
    x = stream("output", writers, "ln_final", 2 * len(net.blocks))
    return x @ arrays["unembed.W_U"] + arrays["unembed.b_U"], said


def _weights(head: Any, scores: Any, query: int, bias: Any) -> Any:
    """The attention of one query, key by key."""
    keys = []
    for key in range(len(scores)):
        back = query - key
        seen = {"none": True, "causal": back >= 0, "strict": back > 0, "after": back < 0}[head.mask]
        if seen and (head.window is None or 0 <= back < head.window):
            keys.append(key)
    found = np.zeros(len(scores))
    if not keys:
        return found
    own = np.array([scores[k] + (bias[query - k] if bias is not None and head.window is not None else 0) for k in keys])
    if head.attention == "softmax":
        found[keys] = np.exp(own - own.max()) / np.exp(own - own.max()).sum()
        return found
    assert (head.attention, head.ties) == ("hard", "average")
    tied = own >= own.max() - head.resolution
    found[keys] = tied / tied.sum()
    return found
