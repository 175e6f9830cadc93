"""A network of vitrify as a causal language model of Hugging Face transformers: this file travels with exports.

Its vocabulary is that of the inputs, with the output symbols that are no inputs behind them. What is no answer has the
logit -1e9. There is no key-value cache: every step of `generate` reads the whole sequence again.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from .torch_module import VitrifyModule

NEVER = -1e9


class VitrifyConfig(PretrainedConfig):  # type: ignore[misc]
    """The description of the network, and the numbers of its answers in the vocabulary."""

    model_type = "vitrify"

    def __init__(self, vitrify: dict[str, Any] | None = None, output_ids: list[int] | None = None, **rest: Any) -> None:
        self.vitrify, self.output_ids = vitrify or {}, output_ids or []
        super().__init__(**rest)


class VitrifyForCausalLM(PreTrainedModel, GenerationMixin):  # type: ignore[misc]
    """Logits over the whole vocabulary at every position."""

    config_class = VitrifyConfig
    base_model_prefix = "network"

    def __init__(self, config: VitrifyConfig) -> None:
        super().__init__(config)
        self.network = VitrifyModule(config.vitrify)
        self.post_init()

    def _init_weights(self, module: torch.nn.Module) -> None:
        """Nothing is drawn: all weights come from the file."""

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **_: Any,
    ) -> CausalLMOutput:
        """Logits, and with labels the mean loss of each next token."""
        lengths = None
        if attention_mask is not None:
            if bool((attention_mask[:, 1:] > attention_mask[:, :-1]).any()):
                raise ValueError("this network counts places from the left: fill short rows on the right")
            lengths = attention_mask.sum(-1)
            input_ids = input_ids * attention_mask  # what fills a row up is no input symbol
        answers = self.network(input_ids, lengths)
        logits = answers.new_full((*answers.shape[:-1], self.config.vocab_size), NEVER)
        logits[..., self.config.output_ids] = answers
        loss = None
        if labels is not None:
            loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return CausalLMOutput(loss=loss, logits=logits)

    def prepare_inputs_for_generation(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **_: Any
    ) -> dict[str, Any]:
        """The whole sequence, every time."""
        return {"input_ids": input_ids, "attention_mask": attention_mask}
