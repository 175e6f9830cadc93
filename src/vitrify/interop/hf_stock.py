r"""The layout of GPT-2 for Hugging Face: no code of ours is needed to load it, and every tool can read GPT-2.

GPT-2 has layer norms everywhere and no bias on its logits. A net without norms fits all the same:

- one more dimension $u$ holds 1 at every place; the shift of a symbol's logit stands in its row of `lm_head`;
- one more dimension holds minus the sum of all others, so that every row of the stream has mean 0;
- with $\varepsilon = 2^{80}$ the norm divides by $\sqrt{\mathrm{var} + \varepsilon} = 2^{40}$, exactly as long as the
  variance is no more than a rounding error of $\varepsilon$, and its scale $2^{40}$ multiplies it back: both lose no
  bit.

What is left of the norm is the subtraction of a mean that is zero up to rounding.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from vitrify.arrays import Floats
from vitrify.interop import huggingface
from vitrify.interop.equality import Precision, Run
from vitrify.interop.folders import description, read_json, tensors, write_tensors
from vitrify.interop.uniform import Uniform, obstacles, spread, write_queries
from vitrify.net.disentangle import together
from vitrify.net.folder import write_json
from vitrify.net.weights import Weights
from vitrify.optional import need

EXTRA = huggingface.EXTRA
EPSILON, SCALE = 2.0**80, 2.0**40
NEVER = -1e9  # the logit of what is no answer
NAMES = {  # of arrays of a block that are alike, ours and those of GPT-2
    **{f"mlp.{kind}_in": f"mlp.c_fc.{name}" for kind, name in (("W", "weight"), ("b", "bias"))},
    **{f"mlp.{kind}_out": f"mlp.c_proj.{name}" for kind, name in (("W", "weight"), ("b", "bias"))},
    **{f"ln{i}.{name[0]}": f"ln_{i}.{name}" for i in (1, 2) for name in ("weight", "bias")},
    "attn.b_O": "attn.c_proj.bias",
}
PENALTY = 2.0**9  # what is forbidden scores so much less; more would make the rounding of means count


def refusal(weights: Weights) -> list[str]:
    """Return the features of a network that GPT-2 does not have, or an empty list."""
    reasons = huggingface.refusal(weights)
    reasons += [reason for reason in obstacles(weights.architecture) if reason not in reasons]
    if not reasons:
        net = weights.architecture
        reasons += ["layer norms"] if net.norm else []
        reasons += ["rotary heads"] if any(head.rotary for block in net.blocks for head in block.heads) else []
        reasons += ["heads that look ahead"] if net.looks_ahead else []
    return reasons


def write(weights: Weights, folder: Path, precision: Precision) -> str:
    """Write the folder; the name of the layout."""
    uniform = spread(weights, PENALTY)
    net = uniform.net
    heads, d_head = sizes(uniform)
    config = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        **huggingface.sizes(net, precision),
        "n_embd": heads * d_head,
        "n_head": heads,
        "n_layer": uniform.layers,
        "n_inner": max(1, uniform.units),
        "n_positions": net.positions,
        "activation_function": "relu",
        "layer_norm_epsilon": EPSILON,
        "scale_attn_weights": False,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "output_ids": huggingface.output_ids(net),
        "vitrify": description(together(weights)),
    }
    write_json(folder / "config.json", config)
    write_tensors(folder / "model.safetensors", state(uniform), precision)
    write_queries(folder, together(weights), precision)
    huggingface.write_beside(weights, folder)
    return "GPT-2"


def sizes(uniform: Uniform) -> tuple[int, int]:
    """Heads and their width: together as wide as the stream, which has two dimensions more than ours."""
    d_head = max(uniform.d_head, -(-(uniform.d_model + 2) // uniform.heads))
    return uniform.heads, d_head


def state(uniform: Uniform) -> dict[str, Floats]:
    """The arrays by the names of GPT-2; its matrices multiply rows from the right, as ours do."""
    net, own = uniform.net, uniform.arrays
    heads, d_head = sizes(uniform)
    width, one = heads * d_head, uniform.d_model

    def stream(array: Floats, ones: float = 0.0) -> Floats:
        """Widen an array that writes to the residual stream (last axis), so that the mean of every row stays 0."""
        wide = np.zeros((*array.shape[:-1], width), array.dtype)
        wide[..., :one] = array
        wide[..., one] = ones
        wide[..., one + 1] = -wide[..., : one + 1].sum(axis=-1)
        return wide

    def read(array: Floats) -> Floats:
        """Widen an array that reads the residual stream (first axis)."""
        tall = np.zeros((width, *array.shape[1:]), array.dtype)
        tall[:one] = array
        return tall

    ids = huggingface.output_ids(net)
    symbols = len(huggingface.vocabulary(net))
    embedded = np.zeros((symbols, uniform.d_model), own["embed.W_E"].dtype)
    embedded[: len(net.inputs)] = own["embed.W_E"]
    answers = np.zeros((symbols, width), embedded.dtype)
    answers[:, one] = NEVER
    answers[ids, :one] = own["unembed.W_U"].T
    answers[ids, one] = own["unembed.b_U"]
    found = {
        "transformer.wte.weight": stream(embedded),
        "transformer.wpe.weight": stream(own["pos_embed.W_pos"], 1.0),
        "lm_head.weight": answers,
        **_norm("transformer.ln_f", width, embedded.dtype),
    }
    for layer in range(uniform.layers):
        at, to = f"blocks.{layer}", f"transformer.h.{layer}"
        three, bias = np.zeros((3, heads, width, d_head), embedded.dtype), np.zeros((3, heads, d_head), embedded.dtype)
        for number, letter in enumerate("QKV"):
            three[number, :, :one, : uniform.d_head] = own[f"{at}.attn.W_{letter}"]
            bias[number, :, : uniform.d_head] = own[f"{at}.attn.b_{letter}"]
        out = np.zeros((heads, d_head, width), embedded.dtype)
        out[:, : uniform.d_head] = stream(own[f"{at}.attn.W_O"])
        units = max(1, uniform.units)

        def mlp(name: str, *shape: int, at: str = at) -> Floats:
            return own.get(f"{at}.mlp.{name}", np.zeros(shape, embedded.dtype))

        found |= {
            f"{to}.attn.c_attn.weight": three.transpose(2, 0, 1, 3).reshape(width, 3 * width),
            f"{to}.attn.c_attn.bias": bias.reshape(3 * width),
            f"{to}.attn.c_proj.weight": out.reshape(width, width),
            f"{to}.attn.c_proj.bias": np.zeros(width, embedded.dtype),
            f"{to}.mlp.c_fc.weight": read(mlp("W_in", one, units)),
            f"{to}.mlp.c_fc.bias": mlp("b_in", units),
            f"{to}.mlp.c_proj.weight": stream(mlp("W_out", units, one)),
            f"{to}.mlp.c_proj.bias": stream(mlp("b_out", one)),
            **_norm(f"{to}.ln_1", width, embedded.dtype),
            **_norm(f"{to}.ln_2", width, embedded.dtype),
        }
    return found


def _norm(name: str, width: int, kind: DTypeLike) -> dict[str, Floats]:
    return {f"{name}.weight": np.full(width, SCALE, kind), f"{name}.bias": np.zeros(width, kind)}


def uniform_arrays(folder: Path) -> dict[str, Floats]:
    """The arrays of any GPT-2 in the shapes of TransformerLens; queries get the scale of the scores."""
    own = {name.removeprefix("transformer."): array for name, array in tensors(folder / "model.safetensors").items()}
    config = read_json(folder / "config.json")
    heads, width = config["n_head"], config["n_embd"]
    d_head = width // heads
    answers = own.get("lm_head.weight", own["wte.weight"])[config.get("output_ids") or slice(None)]
    arrays = {
        "embed.W_E": own["wte.weight"],
        "pos_embed.W_pos": own["wpe.weight"],
        "unembed.W_U": answers.T,
        "unembed.b_U": np.zeros(len(answers), answers.dtype),
        "ln_final.w": own["ln_f.weight"],
        "ln_final.b": own["ln_f.bias"],
    }
    scale = d_head**-0.5 if config.get("scale_attn_weights", True) else 1.0
    for layer in range(config["n_layer"]):
        at, to = f"blocks.{layer}", f"h.{layer}"
        three = own[f"{to}.attn.c_attn.weight"].reshape(width, 3, heads, d_head).transpose(1, 2, 0, 3)
        bias = own[f"{to}.attn.c_attn.bias"].reshape(3, heads, d_head)
        for number, letter in enumerate("QKV"):
            factor = scale if letter == "Q" else 1.0
            arrays[f"{at}.attn.W_{letter}"] = three[number] * factor
            arrays[f"{at}.attn.b_{letter}"] = bias[number] * factor
        arrays |= {f"{at}.{ours}": own[f"{to}.{theirs}"] for ours, theirs in NAMES.items()}
        arrays[f"{at}.attn.W_O"] = own[f"{to}.attn.c_proj.weight"].reshape(heads, d_head, width)
    return arrays


def runner(folder: Path, precision: Precision) -> Run:
    """The model that a folder holds, as a function of tokens."""
    return huggingface.loaded(need("transformers", EXTRA).GPT2LMHeadModel, folder, precision)
