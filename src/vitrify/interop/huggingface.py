"""Folders for Hugging Face: what all of them have, and the layout of any network that reads tokens, with its own code.

Hugging Face knows one vocabulary for inputs and outputs: ours is the inputs in their order, then the output symbols
that are no inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vitrify.encoding import JsonObject
from vitrify.interop.equality import Precision, Run
from vitrify.interop.folders import description, write_tensors
from vitrify.interop.torch_folder import arrays, torch_run, travel
from vitrify.interop.uniform import strange_inputs, unknown_layers
from vitrify.net.architecture import Architecture, SequenceArchitecture
from vitrify.net.folder import write_json
from vitrify.net.inference import UNKNOWN
from vitrify.net.weights import Weights
from vitrify.optional import need

if TYPE_CHECKING:
    from transformers import PreTrainedModel

EXTRA = "hf"
PREFIX = "network."
PAD = "<pad>"  # not the beginning: libraries hide what they take for padding
TAUGHT = ("lm", "class")  # outputs whose symbols may be read again


def vocabulary(net: SequenceArchitecture) -> tuple[str, ...]:
    """All symbols, by number: those of the inputs, other answers, and one that fills up short rows of a batch."""
    symbols = (*net.inputs, *(symbol for symbol in net.output.symbols if symbol not in net.inputs))
    return (*symbols, next(pad for pad in (PAD, f"{PAD}_", f"{PAD}__") if pad not in symbols))


def output_ids(net: SequenceArchitecture) -> list[int]:
    """The number of every output symbol in the vocabulary."""
    number = {symbol: place for place, symbol in enumerate(vocabulary(net))}
    return [number[symbol] for symbol in net.output.symbols]


def refusal(weights: Weights[Architecture]) -> list[str]:
    """Return the features that no causal language model of Hugging Face has, or an empty list."""
    net = weights.architecture
    reasons = strange_inputs(net) + unknown_layers(net)
    if net.output.scores == "linear":
        reasons.append("answers that are weights to be divided by their sum, not logits")
    return reasons


def sizes(net: SequenceArchitecture, precision: Precision) -> JsonObject:
    """The fields of `config.json` that both layouts have."""
    return {
        "vocab_size": len(vocabulary(net)),
        "bos_token_id": 0,
        "eos_token_id": ends(net) or None,
        "pad_token_id": len(vocabulary(net)) - 1,
        "dtype": precision,
        "tie_word_embeddings": False,
        "use_cache": False,
    }


def ends(net: SequenceArchitecture) -> list[int]:
    """Symbols after which nothing is read: those that a net that writes says and can't read."""
    if net.output.kind not in TAUGHT:
        return []
    return [place for place, symbol in enumerate(vocabulary(net)[:-1]) if symbol not in net.inputs]


def write_beside(weights: Weights[SequenceArchitecture], folder: Path) -> None:
    """Write `generation_config.json`, `tokenizer.json` and `tokenizer_config.json`."""
    net = weights.architecture
    symbols = vocabulary(net)
    ids = {"bos_token_id": 0, "eos_token_id": ends(net) or None, "pad_token_id": len(symbols) - 1}
    settings = {key: value for key, value in ids.items() if value is not None} | {"use_cache": False}
    write_json(folder / "generation_config.json", settings)
    write_tokenizer(net, symbols, folder)


def write_tokenizer(net: SequenceArchitecture, symbols: Sequence[str], folder: Path) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json` for some symbols, by number."""
    write_json(folder / "tokenizer.json", _tokenizer(net, symbols))
    write_json(folder / "tokenizer_config.json", _tokenizer_config(net, symbols))


def _tokenizer(net: SequenceArchitecture, symbols: Sequence[str]) -> JsonObject:
    """Words between blanks are symbols; the beginning-of-sequence token is put in front as often as the net asks."""
    first = net.inputs[0]
    special = {"id": 0, "content": first, "single_word": False, "lstrip": False, "rstrip": False}
    special |= {"normalized": False, "special": True}
    beginning = [{"SpecialToken": {"id": first, "type_id": 0}}] * net.pads
    template = {
        "type": "TemplateProcessing",
        "single": [*beginning, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [*beginning, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {first: {"id": first, "ids": [0], "tokens": [first]}},
    }
    unknown, pad = next((name for name in UNKNOWN if name in symbols), "<unk>"), _pad(symbols)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [special, *([special | {"id": len(symbols) - 1, "content": pad}] if pad != first else [])],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": template if net.pads else None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {symbol: place for place, symbol in enumerate(symbols)},
            "unk_token": unknown,
        },
    }


def _pad(symbols: Sequence[str]) -> str:
    """Return the symbol that fills up short rows: the last one, or the beginning where there is none."""
    return symbols[-1] if symbols[-1].startswith(PAD) else symbols[0]


def _tokenizer_config(net: SequenceArchitecture, symbols: Sequence[str]) -> JsonObject:
    last = ends(net)
    config: JsonObject = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": net.inputs[0],
        "pad_token": _pad(symbols),
        "clean_up_tokenization_spaces": False,
        "padding_side": "right",
        "model_max_length": net.max_length + net.pads,
    }
    unknown = next((name for name in UNKNOWN if name in symbols), None)
    config |= {"unk_token": unknown} if unknown else {}
    return config | ({"eos_token": symbols[last[0]]} if last and last[0] < len(symbols) else {})


def write(weights: Weights[SequenceArchitecture], folder: Path, precision: Precision) -> str:
    """Write the folder; the name of the layout."""
    net = weights.architecture
    config = {
        "model_type": "vitrify",
        "architectures": ["VitrifyForCausalLM"],
        "auto_map": {
            "AutoConfig": "modeling_vitrify.VitrifyConfig",
            "AutoModelForCausalLM": "modeling_vitrify.VitrifyForCausalLM",
        },
        **sizes(net, precision),
        "hidden_size": net.width,
        "num_hidden_layers": max(1, len(net.units_per_layer)),
        "num_attention_heads": max(1, *net.heads_per_layer, 1),
        "output_ids": output_ids(net),
        "vitrify": description(weights),
    }
    write_json(folder / "config.json", config)
    own = {PREFIX + name: array for name, array in arrays(weights).items()}
    write_tensors(folder / "model.safetensors", own, precision)
    write_beside(weights, folder)
    travel("torch_module.py", folder)
    travel("hf_model.py", folder, "modeling_vitrify.py")
    return "custom code"


def runner(folder: Path, precision: Precision) -> Run:
    """The model that a folder holds, as a function of tokens; its code is the one of this room."""
    need("transformers", EXTRA)
    from vitrify.interop.hf_model import VitrifyForCausalLM

    return loaded(VitrifyForCausalLM, folder, precision)


def loaded(kind: type[PreTrainedModel], folder: Path, precision: Precision) -> Run:
    """A model of Hugging Face, loaded from a folder and nowhere else; answers in the order of our output symbols."""
    torch, logging = need("torch", EXTRA), need("transformers.utils.logging", EXTRA)
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        model = kind.from_pretrained(folder, local_files_only=True, dtype=getattr(torch, precision)).eval()
    finally:
        if shown:
            logging.enable_progress_bar()
    columns = getattr(model.config, "output_ids", None) or list(range(model.config.vocab_size))
    return torch_run(lambda tokens: model(tokens, attention_mask=torch.ones_like(tokens)).logits[..., columns])
