"""A folder of `vitrify export --to transformer-lens` as a model of TransformerLens 3 or 4: this file travels along.

    model = load("FOLDER")
    logits, cache = model.run_with_cache("a b c")       # cache["blocks.0.attn.hook_pattern"]
    model.to_str_tokens("a b c")                        # ["<s>", "a", "b", "c"]
    model.head_labels                                   # {"L0H0": "select: reverse"}
    model.output_symbols                                # what the logits are of

In 3.x this is a `HookedTransformer`, in 4.x a `TransformerBridge`. A text is symbols between blanks; the tokenizer puts
the beginning-of-sequence token in front as often as the network asks (`vitrify.json` says how often). Tokens may be
given as numbers, too.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import torch


def load(folder: str | Path, dtype: torch.dtype | None = None) -> Any:
    """The model, in the precision of its file unless said."""
    from safetensors.torch import load_file

    folder = Path(folder)
    about = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config = about["transformer_lens"]
    state = load_file(folder / "model.safetensors")
    dtype = dtype or state["embed.W_E"].dtype
    state = {name: array.to(dtype) for name, array in state.items()}
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig
    except ImportError:  # 4.x has the bridge only
        model = _bridge(config, state, dtype)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that 4.x will have the bridge only
            model = HookedTransformer(HookedTransformerConfig(**config, dtype=dtype, device="cpu"))
        rest = {name: array for name, array in model.state_dict().items() if name not in state}  # masks
        model.load_state_dict({**rest, **state})
    for block, heads in about.get("masks", {}).items():
        _hide(model, f"blocks.{block}.attn", config["n_heads"], heads)
    net = about["vitrify"]["net"]
    _give_words(model, folder, net)
    model.output_symbols = tuple(net["output"]["symbols"])
    model.head_labels = head_labels(folder)
    return model.eval()


def head_labels(folder: str | Path) -> dict[str, str]:
    """The names of the heads, by the names that TransformerLens gives them: L0H1 is head 1 of block 0."""
    path = Path(folder) / "labels.json"
    labels = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"heads": []}
    return {f"L{head['block']}H{head['index']}": head["name"] for head in labels["heads"]}


def _hide(model: Any, name: str, count: int, heads: dict[str, dict[str, Any]]) -> None:
    """Hide from some heads of a block what their masks do not show, for good."""

    def allowed(queries: int, keys: int) -> torch.Tensor:
        offset = torch.arange(keys)[keys - queries :, None] - torch.arange(keys)
        seen = torch.ones(count, queries, keys, dtype=torch.bool)
        for head, rule in heads.items():
            seen[int(head)] = offset > 0 if rule["mask"] == "strict" else offset < 0
            if rule["window"] is not None:
                seen[int(head)] &= (offset >= 0) & (offset < rule["window"])
        return seen

    def mask(scores: torch.Tensor, hook: Any) -> torch.Tensor:
        del hook
        seen = allowed(*scores.shape[-2:])
        nothing = ~seen.any(-1, keepdim=True)  # such a row keeps its scores: a softmax of nothing has no gradient
        return scores.masked_fill(~(seen | nothing).to(scores.device), float("-inf"))

    def clear(pattern: torch.Tensor, hook: Any) -> torch.Tensor:
        del hook
        return pattern * allowed(*pattern.shape[-2:]).any(-1, keepdim=True).to(pattern)

    points = dict(model.hook_dict)
    points[f"{name}.hook_attn_scores"].add_perma_hook(mask)
    points[f"{name}.hook_pattern"].add_perma_hook(clear)


def _give_words(model: Any, folder: Path, net: dict[str, Any]) -> None:
    """Give the model its tokenizer."""
    from transformers import PreTrainedTokenizerFast

    if not (folder / "tokenizer.json").is_file():
        return
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    named = {key: settings[key] for key in ("bos_token", "pad_token", "padding_side", "model_max_length")}
    model.tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **named)
    model.cfg.tokenizer_prepends_bos = bool(net["pads"])
    model.cfg.default_prepend_bos = bool(net["pads"])


def _bridge(config: dict[str, Any], state: dict[str, torch.Tensor], dtype: torch.dtype) -> Any:
    from transformer_lens.config import TransformerBridgeConfig
    from transformer_lens.model_bridge import TransformerBridge
    from transformer_lens.utilities.tl_checkpoint_conversion import convert_tl_checkpoint

    settings = TransformerBridgeConfig(**config, dtype=dtype, device="cpu")
    model = TransformerBridge.boot_native(settings, dtype=dtype)
    model.load_state_dict(convert_tl_checkpoint(state, settings))
    return model
