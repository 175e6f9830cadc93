"""A folder of `vitrify export --to transformer-lens` as a model of TransformerLens 3 or 4: this file travels along.

    model = load("FOLDER")
    logits, cache = model.run_with_cache(tokens)       # cache["blocks.0.attn.hook_pattern"]

In 3.x this is a `HookedTransformer`, in 4.x a `TransformerBridge`. Tokens are numbers of the input symbols; the
beginning-of-sequence token, number 0, stands `pads` times in front (`vitrify.json` says how often).
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
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))["transformer_lens"]
    state = load_file(folder / "model.safetensors")
    dtype = dtype or state["embed.W_E"].dtype
    state = {name: array.to(dtype) for name, array in state.items()}
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig
    except ImportError:  # 4.x has the bridge only
        return _bridge(config, state, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that 4.x will have the bridge only
        model = HookedTransformer(HookedTransformerConfig(**config, dtype=dtype, device="cpu"))
    rest = {name: array for name, array in model.state_dict().items() if name not in state}  # masks
    model.load_state_dict({**rest, **state})
    return model.eval()


def _bridge(config: dict[str, Any], state: dict[str, torch.Tensor], dtype: torch.dtype) -> Any:
    from transformer_lens.config import TransformerBridgeConfig
    from transformer_lens.model_bridge import TransformerBridge
    from transformer_lens.utilities.tl_checkpoint_conversion import convert_tl_checkpoint

    settings = TransformerBridgeConfig(**config, dtype=dtype, device="cpu")
    model = TransformerBridge.boot_native(settings, dtype=dtype)
    model.load_state_dict(convert_tl_checkpoint(state, settings))
    return model.eval()
