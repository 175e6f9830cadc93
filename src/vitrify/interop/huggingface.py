"""What every folder for Hugging Face has, whatever its layout: a vocabulary, a tokenizer, generation settings.

Hugging Face knows one vocabulary for inputs and outputs: ours is the inputs in their order, then the output symbols
that are no inputs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vitrify.interop.equality import Precision
from vitrify.interop.folders import write_json
from vitrify.interop.uniform import strange_inputs
from vitrify.net.run import UNKNOWN
from vitrify.net.weights import Weights

EXTRA = "hf"
TAUGHT = ("lm", "class")  # outputs whose symbols may be read again


def vocabulary(net: Any) -> tuple[str, ...]:
    """All symbols, by number."""
    return (*net.inputs, *(symbol for symbol in net.output.symbols if symbol not in net.inputs))


def output_ids(net: Any) -> list[int]:
    """The number of every output symbol in the vocabulary."""
    number = {symbol: place for place, symbol in enumerate(vocabulary(net))}
    return [number[symbol] for symbol in net.output.symbols]


def refusal(weights: Weights[Any]) -> list[str]:
    """What no causal language model of Hugging Face can be."""
    net = weights.architecture
    found = strange_inputs(net)
    if net.output.scores == "linear":
        found.append("answers that are weights to be divided by their sum, not logits")
    return found


def sizes(net: Any, precision: Precision) -> dict[str, Any]:
    """The fields of `config.json` that both layouts have."""
    return {
        "vocab_size": len(vocabulary(net)),
        "bos_token_id": 0,
        "eos_token_id": ends(net) or None,
        "pad_token_id": 0,
        "dtype": precision,
        "tie_word_embeddings": False,
        "use_cache": False,
    }


def ends(net: Any) -> list[int]:
    """Symbols after which nothing is read: those that a net that writes says and can't read."""
    if net.output.kind not in TAUGHT:
        return []
    return [place for place, symbol in enumerate(vocabulary(net)) if symbol not in net.inputs]


def write_beside(weights: Weights[Any], folder: Path) -> None:
    """Write `generation_config.json`, `tokenizer.json` and `tokenizer_config.json`."""
    net = weights.architecture
    generation = {"bos_token_id": 0, "eos_token_id": ends(net) or None, "pad_token_id": 0, "use_cache": False}
    kept = {key: value for key, value in generation.items() if value is not None}
    write_json(folder / "generation_config.json", kept)
    write_json(folder / "tokenizer.json", _tokenizer(net))
    write_json(folder / "tokenizer_config.json", _tokenizer_config(net))


def _tokenizer(net: Any) -> dict[str, Any]:
    """Words between blanks are symbols; the beginning-of-sequence token is put in front as often as the net asks."""
    symbols = vocabulary(net)
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
    unknown = next((name for name in UNKNOWN if name in symbols), "<unk>")
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [special],
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


def _tokenizer_config(net: Any) -> dict[str, Any]:
    symbols = vocabulary(net)
    last = ends(net)
    found: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": net.inputs[0],
        "pad_token": net.inputs[0],
        "clean_up_tokenization_spaces": False,
        "padding_side": "right",
        "model_max_length": net.max_length + net.pads,
    }
    unknown = next((name for name in UNKNOWN if name in symbols), None)
    found |= {"unk_token": unknown} if unknown else {}
    return found | ({"eos_token": symbols[last[0]]} if last else {})
