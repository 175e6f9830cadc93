"""The layout for Hugging Face that any network that reads tokens has: its own code travels in the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vitrify.interop import huggingface
from vitrify.interop.equality import Inputs, Precision, Run
from vitrify.interop.folders import description, write_json, write_tensors
from vitrify.interop.optional import need
from vitrify.interop.torch_folder import arrays, travel
from vitrify.net.weights import Weights

EXTRA = huggingface.EXTRA
PREFIX = "network."


def refusal(weights: Weights[Any]) -> list[str]:
    """What no causal language model of Hugging Face can be."""
    return huggingface.refusal(weights)


def write(weights: Weights[Any], folder: Path, precision: Precision) -> str:
    """Write the folder; the name of the layout."""
    net = weights.architecture
    config = {
        "model_type": "vitrify",
        "architectures": ["VitrifyForCausalLM"],
        "auto_map": {
            "AutoConfig": "modeling_vitrify.VitrifyConfig",
            "AutoModelForCausalLM": "modeling_vitrify.VitrifyForCausalLM",
        },
        **huggingface.sizes(net, precision),
        "hidden_size": net.width,
        "num_hidden_layers": max(1, len(net.units_per_layer)),
        "num_attention_heads": max(1, *net.heads_per_layer, 1),
        "output_ids": huggingface.output_ids(net),
        "vitrify": description(weights),
    }
    write_json(folder / "config.json", config)
    own = {PREFIX + name: array for name, array in arrays(weights).items()}
    write_tensors(folder / "model.safetensors", own, precision)
    huggingface.write_beside(weights, folder)
    travel("torch_module.py", folder)
    travel("hf_model.py", folder, "modeling_vitrify.py")
    return "custom code"


def runner(folder: Path, precision: Precision) -> Run:
    """The model that a folder holds, as a function of tokens; its code is the one of this room."""
    need("transformers", EXTRA)
    from vitrify.interop.hf_model import VitrifyForCausalLM

    return loaded(VitrifyForCausalLM, folder, precision)


def loaded(kind: Any, folder: Path, precision: Precision) -> Run:
    """A model of Hugging Face, loaded from a folder and nowhere else; answers in the order of our output symbols."""
    torch = need("torch", EXTRA)
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        model = kind.from_pretrained(folder, local_files_only=True, dtype=getattr(torch, precision)).eval()
    finally:
        if shown:
            logging.enable_progress_bar()
    columns = getattr(model.config, "output_ids", None) or list(range(model.config.vocab_size))

    def run(tokens: Inputs) -> Any:
        given = torch.from_numpy(tokens)
        with torch.no_grad():
            return model(given, attention_mask=torch.ones_like(given)).logits[..., columns].numpy()

    return run
