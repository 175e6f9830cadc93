"""Torch modules and Hugging Face folders, as models to diagnose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vitrify.errors import InputError
from vitrify.interop.optional import need
from vitrify.learn.recipe import Recipe

USUAL = Recipe()  # the same clipping, warm-up and moments as for JAX


class TorchModel:
    """A module whose call gives logits, trained by Adam."""

    def __init__(self, module: Any, rate: float, device: str = "cpu") -> None:
        torch = need("torch", "torch")
        self.torch, self.device = torch, device
        self.module = module.to(device)
        self.trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        if not self.trained:
            raise InputError("the module has no parameters to train: none of them requires a gradient")
        self.rate, self.steps = rate, 0
        self.optimiser = torch.optim.AdamW(
            self.trained, lr=rate, betas=(USUAL.beta1, USUAL.beta2), weight_decay=USUAL.weight_decay
        )

    def logits(self, tokens: Any) -> Any:
        """What the module says, when it is not training."""
        self.module.eval()
        with self.torch.no_grad():
            return self.module(self._told(tokens))

    def step(self, tokens: Any, targets: Any, weights: Any) -> float:
        """One step of Adam."""
        torch = self.torch
        self.module.train()
        found = self.module(self._told(tokens))
        logits = getattr(found, "logits", found).float()
        each = torch.nn.functional.cross_entropy(logits.flatten(0, 1), self._told(targets).flatten(), reduction="none")
        weight = torch.as_tensor(weights, device=self.device).flatten()
        loss = (each * weight).sum() / weight.sum()
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trained, USUAL.clip)
        self.steps += 1
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate * min(self.steps / USUAL.warmup, 1.0)
        self.optimiser.step()
        return float(loss.detach())

    def _told(self, numbers: Any) -> Any:
        return self.torch.as_tensor(np.asarray(numbers), dtype=self.torch.int64, device=self.device)


class Named:
    """A language model that knows nothing of our tokens: each is a random one of its own, and it is only asked."""

    def __init__(self, module: Any, names: Any, device: str) -> None:
        self.torch, self.module, self.device = need("torch", "torch"), module.to(device).eval(), device
        self.names = self.torch.as_tensor(names, dtype=self.torch.int64, device=device)

    def logits(self, tokens: Any) -> Any:
        """The logits of our tokens among its own."""
        with self.torch.no_grad():
            own = self.names[self.torch.as_tensor(np.asarray(tokens), dtype=self.torch.int64, device=self.device)]
            return self.module(own).logits[..., self.names]


def folder(path: Path, device: str) -> tuple[Callable[[int, int, int], Any], bool, int]:
    """A Hugging Face folder as a factory, whether it has weights and so is asked, and the longest row that it reads.

    One that has only a configuration is an architecture, and is trained from the start in the task's vocabulary.
    """
    transformers, torch = need("transformers", "hf"), need("torch", "torch")
    try:
        config = transformers.AutoConfig.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} must be a Hugging Face folder with a config.json: {_first(error)}") from None
    longest = int(getattr(config, "max_position_embeddings", None) or 1 << 30)
    if not any(path.glob("*.safetensors")) and not any(path.glob("*.bin")):
        return _from_config(transformers, config), False, 1 << 30
    try:
        module = transformers.AutoModelForCausalLM.from_pretrained(path, local_files_only=True, dtype=torch.float32)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} must hold a causal language model: {_first(error)}") from None

    def make(vocabulary: int, length: int, seed: int) -> Named:
        del length
        begin = config.bos_token_id if config.bos_token_id in range(config.vocab_size) else None
        free = np.setdiff1d(np.arange(config.vocab_size), [] if begin is None else [begin])
        if len(free) < vocabulary:
            raise InputError(f"the model has {config.vocab_size} tokens, and the task takes {vocabulary}")
        names = np.random.default_rng(seed).choice(free, size=vocabulary, replace=False)
        names[0] = names[0] if begin is None else begin
        return Named(module, names, device)

    return make, True, longest


def _from_config(transformers: Any, config: Any) -> Callable[[int, int, int], Any]:
    def make(vocabulary: int, length: int, seed: int) -> Any:
        del seed  # torch's own generator has it
        own = type(config).from_dict(config.to_dict())
        own.vocab_size = vocabulary
        own.bos_token_id = own.eos_token_id = own.pad_token_id = None
        if getattr(own, "max_position_embeddings", None):
            own.max_position_embeddings = length
        return transformers.AutoModelForCausalLM.from_config(own)

    return make


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
