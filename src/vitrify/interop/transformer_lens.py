r"""TransformerLens: weights in its own names and shapes, for versions 3 (`HookedTransformer`) and 4 (the bridge).

Version 4 divides scores by $\sqrt{d_{head}}$ whatever `use_attn_scale` says, and refuses a scale of 1. So scores are
divided by 2, which both versions can be told, and queries are twice as large: powers of two lose no bit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from vitrify.interop.equality import Inputs, Precision, Run
from vitrify.interop.folders import description, read_json, tensors, write_json, write_tensors
from vitrify.interop.gathered import write_queries
from vitrify.interop.optional import need
from vitrify.interop.uniform import Floats, Uniform, obstacles, spread
from vitrify.net.disentangle import together
from vitrify.net.weights import Weights

EXTRA = "transformer-lens"
SCALE = 2.0  # what both versions divide scores by


def refusal(weights: Weights[Any]) -> list[str]:
    """The features that TransformerLens has no way to represent."""
    found = obstacles(weights.architecture)
    if not found and any(head.rotary for block in weights.architecture.blocks for head in block.heads):
        places = weights.arrays["pos_embed.W_pos"]
        found = ["rotary heads beside a table of positions"] if np.any(np.asarray(places)) else []
    return found


def write(weights: Weights[Any], folder: Path, precision: Precision) -> str:
    """Write `config.json`, `model.safetensors` and the loader; the name of the layout."""
    whole = spread(weights)
    about = {"format": "vitrify for TransformerLens", "transformer_lens": config(whole)}
    write_json(folder / "config.json", about | {"vitrify": description(together(weights))})
    write_tensors(folder / "model.safetensors", state(whole), precision)
    write_queries(folder, together(weights), precision)
    source = Path(__file__).with_name("lens_loading.py").read_text(encoding="utf-8")
    (folder / "lens_loading.py").write_text(source, encoding="utf-8")
    return "HookedTransformer"


def config(whole: Uniform) -> dict[str, Any]:
    """The settings, as both versions take them."""
    net = whole.net
    rotary = {"rotary_base": whole.rotary, "rotary_dim": whole.d_head, "rotary_adjacent_pairs": True}
    return {
        "n_layers": whole.layers,
        "d_model": whole.d_model,
        "d_head": whole.d_head,
        "n_heads": whole.heads,
        "d_mlp": whole.units or None,
        "attn_only": not whole.units,
        "n_ctx": net.positions,
        "d_vocab": len(net.inputs),
        "d_vocab_out": len(net.output.symbols),
        "act_fn": "relu",
        "normalization_type": "LN" if net.norm else None,
        "eps": net.eps,
        "use_attn_scale": True,
        "attn_scale": SCALE,
        "attention_dir": "causal" if whole.causal else "bidirectional",
        "positional_embedding_type": "rotary" if whole.rotary else "standard",
        **(rotary if whole.rotary else {}),
    }


def state(whole: Uniform) -> dict[str, Floats]:
    """The arrays by the names of TransformerLens."""
    found = {name: array for name, array in whole.arrays.items() if not (whole.rotary and "pos_embed" in name)}
    for name in found:
        if name.endswith(("W_Q", "b_Q")):
            found[name] = found[name] * SCALE
        if whole.rotary and name.endswith(("W_Q", "b_Q", "W_K", "b_K")):  # pairs side by side
            half = whole.d_head // 2
            found[name] = found[name][..., np.arange(whole.d_head).reshape(2, half).T.ravel()]
    if not whole.units:
        found = {name: array for name, array in found.items() if ".ln2." not in name}
    return found


def uniform_arrays(folder: Path) -> dict[str, Floats]:
    """The uniform arrays that a folder holds: `state`, backwards."""
    settings = read_json(folder / "config.json")["transformer_lens"]
    found = tensors(folder / "model.safetensors")
    scale = settings["attn_scale"]
    for name in found:
        if name.endswith(("W_Q", "b_Q")):
            found[name] = found[name] / scale
        if settings["positional_embedding_type"] == "rotary" and name.endswith(("W_Q", "b_Q", "W_K", "b_K")):
            half = settings["d_head"] // 2
            found[name] = found[name][..., np.arange(settings["d_head"]).reshape(half, 2).T.ravel()]
    kind = found["embed.W_E"].dtype
    found.setdefault("pos_embed.W_pos", np.zeros((settings["n_ctx"], settings["d_model"]), kind))
    return found


def runner(folder: Path, precision: Precision) -> Run:
    """The model that a folder holds, as a function of tokens."""
    torch = need("torch", EXTRA)
    need("transformer_lens", EXTRA)
    from vitrify.interop.lens_loading import load

    model = load(folder, getattr(torch, precision))

    def run(tokens: Inputs) -> Any:
        with torch.no_grad():
            return model(torch.from_numpy(tokens), return_type="logits").numpy()

    return run
