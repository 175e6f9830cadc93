r"""A mixture of experts: a router scores the experts, and at each position the best one, or the best few, work.

The router is linear, $s = x W_{out} + b_{out}$, or has one hidden layer of ReLU units in front. An expert is one hidden
layer, $\mathrm{relu}(x_R W_{in} + b_{in}) W_{out} + b_{out}$, that reads some dimensions $R$ of the residual stream
and writes some others: its arrays are only as large as what it does, and do not change when dimensions are added for
other experts.

Without a gate the best expert writes as it is, and the choice has no slope: for built nets. With a gate the `top` best
by $s + b$ work, each times its gate $g_e$, the softmax of $s$ over all experts (`all`) or over the chosen ones
(`chosen`): that is what gradients teach the router by. The shift $b$ decides who works and not how much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from vitrify.arrays import Array, Residual, namespace
from vitrify.net.sparse import affine

if TYPE_CHECKING:
    from vitrify.net.transformer_forward import Part


@dataclass(frozen=True)
class Expert:
    """One expert: the dimensions that it reads, its hidden units, the dimensions that it writes."""

    reads: tuple[int, ...]
    units: int
    writes: tuple[int, ...]


@dataclass(frozen=True)
class Gate:
    """How many experts work at a position, and over which of them the softmax of their gates goes."""

    top: int = 1
    over: Literal["all", "chosen"] = "all"


def expert_shapes(
    experts: tuple[Expert, ...], router: int, width: int, gate: Gate | None = None
) -> dict[str, tuple[int, ...]]:
    """Name and shape of every array of the layer; `router` counts the router's hidden units."""
    shapes: dict[str, tuple[int, ...]] = {}
    if router:
        shapes |= {"router.W_in": (width, router), "router.b_in": (router,)}
    shapes |= {"router.W_out": (router or width, len(experts)), "router.b_out": (len(experts),)}
    if gate:
        shapes["router.b_choice"] = (len(experts),)
    for number, expert in enumerate(experts):
        shapes |= {
            f"experts.{number}.W_in": (len(expert.reads), expert.units),
            f"experts.{number}.b_in": (expert.units,),
            f"experts.{number}.W_out": (expert.units, len(expert.writes)),
            f"experts.{number}.b_out": (len(expert.writes),),
        }
    return shapes


def mixture(
    experts: tuple[Expert, ...], router: int, gate: Gate | None, part: Part, x: Residual, width: int
) -> Residual:
    """What the chosen experts write [batch, pos, width]; of equal scores the first wins."""
    xp = namespace(x)
    seen = x
    if router:
        seen = xp.maximum(affine(x, part["moe.router.W_in"], part["moe.router.b_in"]), 0)
        part.record("moe.router.hook_post", seen)
    scores = affine(seen, part["moe.router.W_out"], part["moe.router.b_out"])
    part.record("moe.hook_scores", scores)
    flat = x.reshape(-1, x.shape[-1])
    out = xp.zeros((len(flat), width), dtype=x.dtype)
    if gate is None:
        chosen = scores.argmax(axis=-1)
        part.record("moe.hook_expert", chosen[..., None])
        choice = chosen.reshape(-1)
        for number, expert in enumerate(experts):
            out = _work(expert, number, part, flat, choice == number, out)
    else:
        gates = _gates(gate, part, scores).reshape(len(flat), -1)
        for number, expert in enumerate(experts):
            own = gates[:, number]
            out = out + own[:, None] * _work(expert, number, part, flat, own > 0, xp.zeros_like(out))
    out = out.reshape(*x.shape[:-1], width)
    part.record("hook_moe_out", out)
    return out


def _gates(gate: Gate, part: Part, scores: Array) -> Array:
    """The factor of every expert [batch, pos, expert]: 0 for all but the `top` best; of equal ones the first win."""
    xp = namespace(scores)
    wanted = scores + part["moe.router.b_choice"]
    part.record("moe.hook_choice", wanted)
    count = scores.shape[-1]
    earlier = np.tri(count, k=-1, dtype=bool)  # counting who is better is quicker than sorting a few
    mine, theirs = wanted[..., :, None], wanted[..., None, :]
    rank = ((theirs > mine) | ((theirs == mine) & earlier)).sum(axis=-1)
    part.record("moe.hook_expert", xp.argsort(rank, axis=-1)[..., : gate.top])
    best = rank < gate.top
    counted = best if gate.over == "chosen" else xp.ones_like(best)
    shifted = scores - scores.max(axis=-1, keepdims=True)
    found = xp.where(counted, xp.exp(shifted), 0.0)
    found = xp.where(best, found / found.sum(axis=-1, keepdims=True), 0.0)
    part.record("moe.hook_gates", found)
    return found


def _work(expert: Expert, number: int, part: Part, flat: Array, chosen: Array, out: Array) -> Array:
    """The output with one expert's rows filled in.

    NumPy runs the expert on its own rows. A compiled program can't know how many they are: it runs all of them.
    """
    name = f"moe.experts.{number}"
    reads, writes = np.array(expert.reads, dtype=np.int64), np.array(expert.writes, dtype=np.int64)
    everything = np.array_equal(reads, np.arange(flat.shape[1]))  # picking costs time, above all in gradients
    xp = namespace(flat)
    own = None
    if xp is np:
        own = np.flatnonzero(chosen)
        if not len(own):
            return out
        flat = flat[own]
    hidden = xp.maximum(affine(flat if everything else flat[:, reads], part[f"{name}.W_in"], part[f"{name}.b_in"]), 0)
    written = affine(hidden, part[f"{name}.W_out"], part[f"{name}.b_out"])
    if own is not None:
        out[np.ix_(own, writes)] = written
        return out
    if np.array_equal(writes, np.arange(out.shape[1])):
        return xp.where(chosen[:, None], written, out)
    source = np.full(out.shape[1], len(writes))  # the column that each dimension takes; the last one is zero
    source[writes] = np.arange(len(writes))
    padded = xp.concatenate([written, xp.zeros((len(flat), 1), dtype=written.dtype)], axis=1)
    return xp.where(chosen[:, None], padded[:, source], out)
