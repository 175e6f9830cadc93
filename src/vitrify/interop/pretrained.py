"""Hugging Face folders of language models: what they are, and their answers to tokens that the user names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vitrify.arrays import Ints
from vitrify.errors import InputError
from vitrify.optional import need

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PretrainedConfig

UNBOUNDED = 1 << 30  # tokens that a model reads which names no limit
TOKENIZERS = ("tokenizer.json", "vocab.json", "tokenizer.model", "vocab.txt")  # files of them


def config_of(path: Path) -> PretrainedConfig:
    """Return the configuration of a model; it may have no weights."""
    try:
        return need("transformers", "hf").AutoConfig.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} must be a Hugging Face folder with a config.json: {_first(error)}") from None


def pretrained(path: Path) -> nn.Module:
    """Return a causal language model in float32."""
    transformers, torch = need("transformers", "hf"), need("torch", "torch")
    try:
        return transformers.AutoModelForCausalLM.from_pretrained(path, local_files_only=True, dtype=torch.float32)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} must hold a causal language model: {_first(error)}") from None


def tokens_of_folder(name: str, symbols: Sequence[str], answers: Sequence[str]) -> tuple[Callable[[Ints], Tensor], int]:
    """Return a Hugging Face model as a function of our tokens, with the most of these that it reads.

    Token 0 is its beginning of a sequence, the next ones are the symbols; the logits are those of the answers. Each is
    one token of its tokenizer or, without one, the number of a token.
    """
    path, torch = Path(name), need("torch", "torch")
    config = config_of(path)
    module, text = pretrained(path).eval(), _tokenizer(path)
    begin = getattr(config, "bos_token_id", None)
    begin = getattr(text, "bos_token_id", None) if begin is None else begin
    if begin is None:
        raise InputError(f"{path} has no token for the beginning of a sequence: set bos_token_id in its config.json")
    ids = [[_token(text, symbol, config.vocab_size, path) for symbol in names] for names in (symbols, answers)]
    inputs, outputs = torch.as_tensor([begin, *ids[0]]), torch.as_tensor(ids[1])

    def logits(tokens: Ints) -> Tensor:
        with torch.no_grad():
            output: Tensor = module(inputs[torch.as_tensor(np.asarray(tokens), dtype=torch.int64)]).logits[..., outputs]
            return output

    return logits, int(getattr(config, "max_position_embeddings", None) or UNBOUNDED)


def _tokenizer(path: Path) -> Any:
    if not any((path / each).exists() for each in TOKENIZERS):
        return None
    try:
        return need("transformers", "hf").AutoTokenizer.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError) as error:
        raise InputError(f"the tokenizer of {path} can't be read: {_first(error)}") from None


def _token(text: Any, symbol: str, size: int, path: Path) -> int:
    """Return the token of a symbol; one that is several tokens is refused."""
    if text is None:
        if symbol.isdecimal() and int(symbol) < size:
            return int(symbol)
        raise InputError(f"{path} has no tokenizer: name tokens by their numbers, below {size}, not {symbol!r}")
    vocabulary: dict[str, int] = text.get_vocab()
    try:
        ids = [vocabulary[symbol]] if symbol in vocabulary else text.encode(symbol, add_special_tokens=False)
    except Exception:  # of the library in which the tokenizer is written: it does not know a word
        ids = []
    if len(ids) != 1 or ids[0] == text.unk_token_id:
        raise InputError(f"{symbol!r} is not one token of {path}: name symbols that its tokenizer has")
    return int(ids[0])


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
