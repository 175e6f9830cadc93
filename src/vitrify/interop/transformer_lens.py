r"""TransformerLens: weights in its own names and shapes, for versions 3 (`HookedTransformer`) and 4 (the bridge).

Version 4 divides scores by $\sqrt{d_{head}}$ whatever `use_attn_scale` says, and refuses a scale of 1. So scores are
divided by 2, which both versions can be told, and queries are twice as large: powers of two lose no bit.

Heads that see only earlier positions, or only later ones, get their mask from hooks of the loader, which are permanent:
TransformerLens has one mask for all heads. At a position that sees nothing the weights of such a head are 0, as here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vitrify.arrays import Floats
from vitrify.encoding import JsonObject
from vitrify.interop import huggingface
from vitrify.interop.equality import Precision, Run
from vitrify.interop.folders import description, read_json, tensors, write_tensors
from vitrify.interop.torch_folder import torch_run, travel
from vitrify.interop.uniform import HALVES, Uniform, obstacles, spread, write_queries
from vitrify.net.disentangle import together
from vitrify.net.folder import write_json
from vitrify.net.weights import Weights
from vitrify.optional import need

EXTRA = "transformer-lens"
SCALE = 2.0  # what both versions divide scores by


def refusal(weights: Weights) -> list[str]:
    """The features that TransformerLens has no way to represent."""
    reasons = obstacles(weights.architecture, hooks=True)
    if not reasons and any(head.rotary for block in weights.architecture.blocks for head in block.heads):
        places = weights.arrays["pos_embed.W_pos"]
        reasons = ["rotary heads beside a table of positions"] if np.any(np.asarray(places)) else []
    return reasons


def write(weights: Weights, folder: Path, precision: Precision) -> str:
    """Write `config.json`, `model.safetensors`, the tokenizer and the loader; the name of the layout."""
    uniform = spread(weights, hooks=True)
    about = {"format": "vitrify for TransformerLens", "transformer_lens": config(uniform), "masks": masks(uniform)}
    write_json(folder / "config.json", about | {"vitrify": description(together(weights))})
    huggingface.write_tokenizer(weights.architecture, weights.architecture.inputs, folder)
    write_tensors(folder / "model.safetensors", state(uniform), precision)
    write_queries(folder, together(weights), precision)
    travel("lens_loading.py", folder)
    return "HookedTransformer"


def config(uniform: Uniform) -> JsonObject:
    """The settings, as both versions take them."""
    net = uniform.net
    rotary = {"rotary_base": uniform.rotary, "rotary_dim": uniform.d_head, "rotary_adjacent_pairs": True}
    return {
        "n_layers": uniform.layers,
        "d_model": uniform.d_model,
        "d_head": uniform.d_head,
        "n_heads": uniform.heads,
        "d_mlp": uniform.units or None,
        "attn_only": not uniform.units,
        "n_ctx": net.positions,
        "d_vocab": len(net.inputs),
        "d_vocab_out": len(net.output.symbols),
        "act_fn": "relu",
        "normalization_type": "LN" if net.norm else None,
        "eps": net.eps,
        "use_attn_scale": True,
        "attn_scale": SCALE,
        "attention_dir": "causal" if uniform.causal else "bidirectional",
        "positional_embedding_type": "rotary" if uniform.rotary else "standard",
        **(rotary if uniform.rotary else {}),
    }


def masks(uniform: Uniform) -> JsonObject:
    """The heads that see only one side of a position, by block: their mask and window. The loader hides the rest."""
    heads = {str(turn): dict(enumerate(block.heads)) for turn, (_, block) in enumerate(uniform.net.turns)}
    return {
        turn: {str(at): {"mask": head.mask, "window": head.window} for at, head in own.items() if head.mask in HALVES}
        for turn, own in heads.items()
        if any(head.mask in HALVES for head in own.values())
    }


def state(uniform: Uniform) -> dict[str, Floats]:
    """The arrays by the names of TransformerLens."""
    tensors = {name: array for name, array in uniform.arrays.items() if not (uniform.rotary and "pos_embed" in name)}
    for name in tensors:
        if name.endswith(("W_Q", "b_Q")):
            tensors[name] = tensors[name] * SCALE
        if uniform.rotary and name.endswith(("W_Q", "b_Q", "W_K", "b_K")):  # pairs side by side
            half = uniform.d_head // 2
            tensors[name] = tensors[name][..., np.arange(uniform.d_head).reshape(2, half).T.ravel()]
    if not uniform.units:
        tensors = {name: array for name, array in tensors.items() if ".ln2." not in name}
    return tensors


def uniform_arrays(folder: Path) -> dict[str, Floats]:
    """The uniform arrays that a folder holds: `state`, backwards."""
    settings = read_json(folder / "config.json")["transformer_lens"]
    arrays = tensors(folder / "model.safetensors")
    scale = settings["attn_scale"]
    for name in arrays:
        if name.endswith(("W_Q", "b_Q")):
            arrays[name] = arrays[name] / scale
        if settings["positional_embedding_type"] == "rotary" and name.endswith(("W_Q", "b_Q", "W_K", "b_K")):
            half = settings["d_head"] // 2
            arrays[name] = arrays[name][..., np.arange(settings["d_head"]).reshape(half, 2).T.ravel()]
    kind = arrays["embed.W_E"].dtype
    arrays.setdefault("pos_embed.W_pos", np.zeros((settings["n_ctx"], settings["d_model"]), kind))
    return arrays


def runner(folder: Path, precision: Precision) -> Run:
    """The model that a folder holds, as a function of tokens."""
    torch = need("torch", EXTRA)
    need("transformer_lens", EXTRA)
    from vitrify.interop.lens_loading import load

    model = load(folder, getattr(torch, precision))
    return torch_run(lambda tokens: model(tokens, return_type="logits"))
