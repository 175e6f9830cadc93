r"""Transformers whose MLPs are mixtures of experts: a router lets the best few of several work at each position.

Losses that can be added to the cross-entropy, each times a number of its own. With $p_e$ the softmax of the router's
scores $h_e$, means taken over positions (which count like the questions that they answer) and sums over layers:

| name | loss |
| --- | --- |
| `balance_loss` | $E \sum_e f_e\,\overline{p_e}$, $f_e$ the share of $e$ in choices (Fedus et al., arXiv 2101.03961) |
| `z_loss` | $\overline{(\log\sum_e \exp h_e)^2}$ (Zoph et al., arXiv 2202.08906) |
| `task_loss` | $-\overline{\log p_{t \bmod E}}$ for the row's task $t$ (or what else is `told`): one expert each |

`shift_rate` balances without a loss (Wang et al., arXiv 2408.15664): the choice is among $h_e + b_e$, and after each
step $b_e$ moves by the rate, up where $f_e < 1/E$ and down where $f_e > 1/E$. No gradient and no optimiser moves it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
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

EACH = ("W_in", "b_in", "W_out", "b_out")  # arrays of an expert
NEVER = -1e9  # the score of an expert that does not work


@dataclass(frozen=True)
class ExpertsFamily(Family):
    """`layers` blocks of `heads` heads and of `experts` experts with `units` ReLU units each (4 d_model, if not given).

    The `top` best experts work, times gates that are a softmax over `all` experts or over the `chosen` ones; or experts
    choose `by` themselves, each as many rows of a batch. Of all experts a share is `working`, the first ones: members
    of one program may then differ in their number.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("scale", "balance_loss", "z_loss", "task_loss", "shift_rate", "working")
    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"layers": 1, "heads": 2, "d_model": 8, "units": 4, "experts": 3, "top": 2, "balance_loss": 0.01}
    )

    layers: int = 2
    heads: int = 2
    d_model: int = 32
    experts: int = 4
    top: int = 1
    over: Literal["all", "chosen"] = "all"
    by: Literal["token", "expert"] = "token"
    units: int | None = None
    positions: Positions = "learned"
    norm: bool = True
    pads: int = 1
    balance_loss: float = 0.0
    z_loss: float = 0.0
    task_loss: float = 0.0
    told: str = "task"
    shift_rate: float = 0.0
    working: float = 1.0
    scale: float = 1.0

    def problems(self) -> Iterator[str]:
        yield from too_small(self, layers=1, heads=0, d_model=1, experts=1, pads=0, balance_loss=0, z_loss=0)
        yield from too_small(self, task_loss=0, shift_rate=0)
        yield from head_problems(self.d_model, self.heads, None, self.positions)
        if not 1 <= self.top <= self.experts:
            yield f"top must be from 1 to {self.experts}, the number of experts, not {self.top}"
        if self.over == "chosen" and self.top == 1:
            yield "a softmax over one chosen expert is 1 and teaches the router nothing: take over=all or top=2"
        if not (0 < self.working <= 1 and round(self.working * self.experts) >= self.top):
            yield f"working must be at most 1, and leave {self.top} of the experts, not {self.working:g}"
        if self.by == "expert" and (self.over == "chosen" or self.shift_rate or self.working != 1):
            yield "where experts choose, gates go over all of them, loads need no shift_rate, and all are working"

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

    def suits(self, sandbox: Sandbox) -> None:
        if self.task_loss and self.told not in _latents(sandbox):
            raise InputError(f"a task_loss needs rows that tell their {self.told}, and those of {sandbox.name} do not")

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
        found = self.plain.first(net, key)
        for whole, parts in self._stacked().items():
            found[whole] = jnp.stack([found.pop(part) for part in parts])
        return found

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        found = dict(parameters)
        for whole, parts in self._stacked().items():
            found |= zip(parts, found.pop(whole), strict=True)
        for layer in range(self.layers):
            name = f"blocks.{layer}.moe.router.b_out"
            found[name] = jnp.where(self._at_work, found[name], jnp.asarray(NEVER, found[name].dtype))
        return self.plain.arrays(net, found)

    def _stacked(self) -> dict[str, list[str]]:
        """The names of arrays of all experts of a layer, and those of each of them."""
        own = [(f"blocks.{layer}.moe.experts", name) for layer in range(self.layers) for name in EACH]
        return {f"{part}.{name}": [f"{part}.{e}.{name}" for e in range(self.experts)] for part, name in own}

    @property
    def _count(self) -> Array:
        return jnp.round(jnp.asarray(self.working) * self.experts)

    @property
    def _at_work(self) -> Array:
        """Which experts may work [expert]."""
        return jnp.arange(self.experts) < self._count

    @property
    def watched(self) -> tuple[str, ...]:
        names = ("hook_scores", "hook_gates")
        return tuple(f"blocks.{layer}.moe.{name}" for layer in range(self.layers) for name in names)

    def penalty(self, seen: Mapping[str, Array], row: Row) -> Array:
        total = jnp.float32(0.0)
        for layer in range(self.layers):
            scores, weight, share = self._routed(layer, seen, row)
            logs = jax.nn.log_softmax(scores)
            total += self.balance_loss * self._count * (share * (jnp.exp(logs) * weight).sum(axis=(0, 1))).sum()
            total += self.z_loss * (jax.nn.logsumexp(scores, axis=-1, keepdims=True) ** 2 * weight).sum()
            if self.told in row.latent:
                own = jax.nn.one_hot(row.latent[self.told] % self._count.astype(jnp.int32), self.experts)[:, None]
                total -= self.task_loss * (own * logs * weight).sum()
        return total

    def moved(self, parameters: Mapping[str, Array], seen: Mapping[str, Array], row: Row) -> Parameters:
        if self.by == "expert":
            return {}
        found = {}
        for layer in range(self.layers):
            name = f"blocks.{layer}.moe.router.b_choice"
            _, _, share = self._routed(layer, seen, row)
            found[name] = parameters[name] + self.shift_rate * jnp.sign(1 / self._count - share) * self._at_work
        return found

    def _routed(self, layer: int, seen: Mapping[str, Array], row: Row) -> tuple[Array, Array, Array]:
        """Scores [batch, question, expert], how much each question counts, and the share of each expert in choices."""
        scores, gates = (
            seen[f"blocks.{layer}.moe.{name}"][:, max(self.pads - 1, 0) :].astype(jnp.float32)
            for name in ("hook_scores", "hook_gates")
        )
        weight = row.weight[:, -scores.shape[1] :, None]
        weight = weight / weight.sum()
        return scores, weight, ((gates > 0) * weight).sum(axis=(0, 1)) / self.top  # shares have no gradient


@lru_cache(maxsize=16)
def _latents(sandbox: Sandbox) -> frozenset[str]:
    """What the rows of a sandbox tell beside their tokens."""
    return frozenset(jax.eval_shape(sandbox.draw, jax.random.key(0, impl="threefry2x32")).latent)


MODEL = ExpertsFamily
