r"""Transformers whose MLPs are mixtures of experts: a router lets the best few of several work at each position.

Losses that can be added to the cross-entropy, each times a number of its own. With $p_e$ the softmax of the router's
scores $h_e$, means taken over positions (which count like the questions that they answer) and sums over layers:

| name | loss |
| --- | --- |
| `balance_loss` | $E \sum_e f_e\,\overline{p_e}$, $f_e$ the share of $e$ in choices (Fedus et al., arXiv 2101.03961) |
| `z_loss` | $\overline{(\log\sum_e \exp h_e)^2}$ (Zoph et al., arXiv 2202.08906) |
| `task_loss` | $-\overline{\log p_{t \bmod E}}$ for the row's task $t$: one expert per task |

`shifts` balances without a loss (Wang et al., arXiv 2408.15664): the choice is among $h_e + b_e$, and $b_e$ moves
against the sign of $f_e - 1/E$. That sign is given to the optimiser as the gradient of $b$, times a small number, so
with Adam a step is about the learning rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.learn.models.catalogue import Family, Parameters, too_small
from vitrify.learn.models.transformer import Positions, TransformerFamily, head_problems
from vitrify.net.experts import Expert, Gate
from vitrify.net.transformer import Transformer
from vitrify.sandboxes.catalogue import Row, Sandbox

NUDGE = 1e-3  # the gradient of a shift: too small to weigh in the norm that gradients are clipped by


@dataclass(frozen=True)
class ExpertsFamily(Family):
    """`layers` blocks of `heads` heads and of `experts` experts with `units` ReLU units each (4 d_model, if not given).

    The `top` best experts work, times gates that are a softmax over `all` experts or over the `chosen` ones.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("scale", "balance_loss", "z_loss")
    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"layers": 1, "heads": 2, "d_model": 8, "units": 4, "experts": 3, "top": 2, "balance_loss": 0.01}
    )

    layers: int = 2
    heads: int = 2
    d_model: int = 32
    experts: int = 4
    top: int = 1
    over: Literal["all", "chosen"] = "all"
    units: int | None = None
    positions: Positions = "learned"
    norm: bool = True
    pads: int = 1
    shifts: bool = False
    balance_loss: float = 0.0
    z_loss: float = 0.0
    task_loss: float = 0.0
    scale: float = 1.0

    def problems(self) -> Iterator[str]:
        yield from too_small(self, layers=1, heads=0, d_model=1, experts=1, pads=0, balance_loss=0, z_loss=0)
        yield from too_small(self, task_loss=0)
        yield from head_problems(self.d_model, self.heads, None, self.positions)
        if not 1 <= self.top <= self.experts:
            yield f"top must be from 1 to {self.experts}, the number of experts, not {self.top}"
        if self.over == "chosen" and self.top == 1:
            yield "a softmax over one chosen expert is 1 and teaches the router nothing: take over=all or top=2"

    @cached_property
    def plain(self) -> TransformerFamily:
        """The same layers without experts."""
        return TransformerFamily(
            layers=self.layers,
            heads=self.heads,
            d_model=self.d_model,
            units=0,
            positions=self.positions,
            norm=self.norm,
            pads=self.pads,
            scale=self.scale,
        )

    def architecture(self, sandbox: Sandbox) -> Transformer:
        told = jax.eval_shape(sandbox.draw, jax.random.key(0, impl="threefry2x32")).latent
        if self.task_loss and "task" not in told:
            raise InputError(f"a task_loss needs rows that tell their task, and those of {sandbox.name} do not")
        net = self.plain.architecture(sandbox)
        dims = tuple(range(self.d_model))
        expert = Expert(dims, 4 * self.d_model if self.units is None else self.units, dims)
        gate = Gate(self.top, self.over)
        blocks = tuple(replace(block, experts=(expert,) * self.experts, gate=gate) for block in net.blocks)
        return replace(net, blocks=blocks, name=f"experts on {sandbox.name}")

    def first(self, net: Transformer, key: Array) -> Parameters:
        found = self.plain.first(net, key)
        dropped = () if self.shifts else ("b_choice",)
        return {name: array for name, array in found.items() if name.split(".")[-1] not in dropped}

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        return self.plain.arrays(net, parameters)

    @property
    def watched(self) -> tuple[str, ...]:
        names = ("hook_scores", "hook_choice", "hook_gates")
        return tuple(f"blocks.{layer}.moe.{name}" for layer in range(self.layers) for name in names)

    def penalty(self, seen: Mapping[str, Array], row: Row) -> Array:
        total = jnp.float32(0.0)
        for layer in range(self.layers):
            scores, wanted, gates = (
                seen[f"blocks.{layer}.moe.{name}"][:, max(self.pads - 1, 0) :].astype(jnp.float32)
                for name in ("hook_scores", "hook_choice", "hook_gates")
            )
            weight = row.weight[:, -scores.shape[1] :, None]
            weight = weight / weight.sum()
            logs = jax.nn.log_softmax(scores)
            share = ((gates > 0) * weight).sum(axis=(0, 1)) / self.top  # of each expert, without a gradient
            total += self.balance_loss * self.experts * (share * (jnp.exp(logs) * weight).sum(axis=(0, 1))).sum()
            total += self.z_loss * (jax.nn.logsumexp(scores, axis=-1, keepdims=True) ** 2 * weight).sum()
            if self.task_loss:
                own = jax.nn.one_hot(row.latent["task"] % self.experts, self.experts)[:, None]
                total -= self.task_loss * (own * logs * weight).sum()
            if self.shifts:
                shift = (wanted - scores)[0, 0]  # its value is no loss, only its gradient counts
                pull = (jnp.sign(share - 1 / self.experts) * shift).sum()
                total += NUDGE * (pull - jax.lax.stop_gradient(pull))
        return total


MODEL = ExpertsFamily
