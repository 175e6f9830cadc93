r"""Transformers whose MLPs are mixtures of experts: at each position a router chooses the best `top` of them.

Three losses can be added to the cross-entropy, each with a coefficient. Let $p_e$ be the softmax of the router's
scores $h_e$. Bars are means over positions, weighted as their targets are; losses are summed over layers:

| name | loss |
| --- | --- |
| `balance_loss` | $E \sum_e f_e\,\overline{p_e}$, $f_e$ the fraction choosing $e$ (Fedus et al., arXiv 2101.03961) |
| `z_loss` | $\overline{(\log\sum_e \exp h_e)^2}$ (Zoph et al., arXiv 2202.08906) |
| `task_loss` | $-\overline{\log p_{t \bmod E}}$, $t$ the latent `task_latent` of the example: one expert a task |

`shift_rate` balances without a loss (Wang et al., arXiv 2408.15664): experts are chosen by $h_e + b_e$, and each step
moves $b_e$ by the rate, up where $f_e < 1/E$ and down where $f_e > 1/E$. Neither gradient nor optimizer changes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

import jax
import jax.numpy as jnp

from vitrify.errors import InputError
from vitrify.learn.models.catalogue import Array, Count, Example, Natural, NonNegative, Parameters, Sandbox, Share
from vitrify.learn.models.transformer import OverTransformer, Positions, head_conflicts
from vitrify.net.experts import Expert, Gate
from vitrify.net.transformer import Transformer

EACH = ("W_in", "b_in", "W_out", "b_out")  # arrays of an expert
INACTIVE_SCORE = -1e9  # of experts that are not active: the router never chooses them


@dataclass(frozen=True)
class ExpertsFamily(
    OverTransformer,
    small={"layers": 1, "heads": 2, "d_model": 8, "units": 4, "experts": 3, "top": 2, "balance_loss": 0.01},
):
    """`layers` blocks of `heads` heads and of `experts` experts with `units` ReLU units each (4 d_model, if not given).

    The outputs of the `top` best experts are weighted by a softmax `over` all experts or the chosen ones. With
    `by="expert"` each expert chooses sequences of the batch instead, equally many. Only the first experts, the fraction
    `active_experts` of them, are used: so members of one program may differ in their number of experts.
    """

    INSTEAD = MappingProxyType({"units": 0})
    TRACED = ("scale", "balance_loss", "z_loss", "task_loss", "shift_rate", "active_experts")

    layers: Count = 2
    heads: Natural = 2
    d_model: Count = 32
    experts: Count = 4
    top: Count = 1
    over: Literal["all", "chosen"] = "all"
    by: Literal["token", "expert"] = "token"
    units: Natural | None = None
    positions: Positions = "learned"
    norm: bool = True
    pads: Natural = 1
    balance_loss: NonNegative = 0.0
    z_loss: NonNegative = 0.0
    task_loss: NonNegative = 0.0
    task_latent: str = "task"
    shift_rate: NonNegative = 0.0
    active_experts: Share = 1.0
    scale: float = 1.0

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from head_conflicts(self.d_model, self.heads, None, self.positions)
        if self.top > self.experts:
            yield "top", f"must be at most the number of experts, {self.experts}, not {self.top}"
        if self.over == "chosen" and self.top == 1:
            yield "over", "must be all, or top 2: a softmax over one chosen expert is 1 and teaches the router nothing"
        if round(self.active_experts * self.experts) < self.top:
            yield "active_experts", f"must leave at least {self.top} experts, not {self.active_experts:g} of them"
        if self.by == "expert" and (self.over == "chosen" or self.shift_rate or self.active_experts != 1):
            yield ("by", "= expert needs over=all, shift_rate=0 and active_experts=1")

    def suits(self, sandbox: Sandbox) -> None:
        if self.task_loss and self.task_latent not in _latents(sandbox):
            raise InputError(
                f"a task_loss needs examples with the latent {self.task_latent!r}, which {sandbox.name} does not have"
            )

    def architecture(self, sandbox: Sandbox) -> Transformer:
        self.suits(sandbox)
        net = self.plain.architecture(sandbox)
        dims = tuple(range(self.d_model))
        expert = Expert(dims, 4 * self.d_model if self.units is None else self.units, dims)
        gate = Gate(self.top, self.over, self.by)
        blocks = tuple(replace(block, experts=(expert,) * self.experts, gate=gate) for block in net.blocks)
        return replace(net, blocks=blocks, name=f"experts on {sandbox.name}")

    def first(self, net: Transformer, key: Array) -> Parameters:
        """Arrays of the experts of a layer are one, with the expert in front: there are fewer to train."""
        arrays = self.plain.first(net, key)
        for stacked, parts in self._stacked().items():
            arrays[stacked] = jnp.stack([arrays.pop(part) for part in parts])
        return arrays

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        arrays = dict(parameters)
        for stacked, parts in self._stacked().items():
            arrays |= zip(parts, arrays.pop(stacked), strict=True)
        for layer in range(self.layers):
            name = f"blocks.{layer}.moe.router.b_out"
            arrays[name] = jnp.where(self._at_work, arrays[name], jnp.asarray(INACTIVE_SCORE, arrays[name].dtype))
        return self.plain.arrays(net, arrays)

    def _stacked(self) -> dict[str, list[str]]:
        """The names of arrays of all experts of a layer, and those of each of them."""
        own = [(f"blocks.{layer}.moe.experts", name) for layer in range(self.layers) for name in EACH]
        return {f"{part}.{name}": [f"{part}.{e}.{name}" for e in range(self.experts)] for part, name in own}

    @property
    def _count(self) -> Array:
        return jnp.round(jnp.asarray(self.active_experts) * self.experts)

    @property
    def _at_work(self) -> Array:
        """True for the active experts [expert]."""
        return jnp.arange(self.experts) < self._count

    @property
    def watched(self) -> tuple[str, ...]:
        names = ("hook_scores", "hook_gates")
        return tuple(f"blocks.{layer}.moe.{name}" for layer in range(self.layers) for name in names)

    def penalty(self, seen: Mapping[str, Array], batch: Example) -> Array:
        total = jnp.float32(0.0)
        for layer in range(self.layers):
            scores, weight, share = self._routed(layer, seen, batch)
            logs = jax.nn.log_softmax(scores)
            total += self.balance_loss * self._count * (share * (jnp.exp(logs) * weight).sum(axis=(0, 1))).sum()
            total += self.z_loss * (jax.nn.logsumexp(scores, axis=-1, keepdims=True) ** 2 * weight).sum()
            if self.task_latent in batch.latent:
                own = jax.nn.one_hot(batch.latent[self.task_latent] % self._count.astype(jnp.int32), self.experts)[
                    :, None
                ]
                total -= self.task_loss * (own * logs * weight).sum()
        return total

    def moved(self, parameters: Mapping[str, Array], seen: Mapping[str, Array], batch: Example) -> Parameters:
        if self.by == "expert":
            return {}
        biases = {}
        for layer in range(self.layers):
            name = f"blocks.{layer}.moe.router.b_choice"
            _, _, share = self._routed(layer, seen, batch)
            biases[name] = parameters[name] + self.shift_rate * jnp.sign(1 / self._count - share) * self._at_work
        return biases

    def _routed(self, layer: int, seen: Mapping[str, Array], batch: Example) -> tuple[Array, Array, Array]:
        """Scores [batch, question, expert], how much each question counts, and the share of each expert in choices."""
        scores, gates = (
            seen[f"blocks.{layer}.moe.{name}"][:, max(self.pads - 1, 0) :].astype(jnp.float32)
            for name in ("hook_scores", "hook_gates")
        )
        weight = batch.weight[:, -scores.shape[1] :, None]
        weight = weight / weight.sum()
        return scores, weight, ((gates > 0) * weight).sum(axis=(0, 1)) / self.top  # shares have no gradient


@lru_cache(maxsize=16)
def _latents(sandbox: Sandbox) -> frozenset[str]:
    """Return the names of a sandbox's latent variables."""
    return frozenset(jax.eval_shape(sandbox.draw, jax.random.key(0, impl="threefry2x32")).latent)


MODEL = ExpertsFamily
