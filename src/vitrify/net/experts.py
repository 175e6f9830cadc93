r"""A mixture of experts: a router scores the experts, and the best one alone works at each position (top-1 routing).

The router is linear, $s = x W_{out} + b_{out}$, or has one hidden layer of ReLU units in front. An expert is one hidden
layer, $\mathrm{relu}(x_R W_{in} + b_{in}) W_{out} + b_{out}$, that reads some dimensions $R$ of the residual stream
and writes some others: its arrays are only as large as what it does, and do not change when dimensions are added for
other experts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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


def expert_shapes(experts: tuple[Expert, ...], router: int, width: int) -> dict[str, tuple[int, ...]]:
    """Name and shape of every array of the layer; `router` counts the router's hidden units."""
    shapes: dict[str, tuple[int, ...]] = {}
    if router:
        shapes |= {"router.W_in": (width, router), "router.b_in": (router,)}
    shapes |= {"router.W_out": (router or width, len(experts)), "router.b_out": (len(experts),)}
    for number, expert in enumerate(experts):
        shapes |= {
            f"experts.{number}.W_in": (len(expert.reads), expert.units),
            f"experts.{number}.b_in": (expert.units,),
            f"experts.{number}.W_out": (expert.units, len(expert.writes)),
            f"experts.{number}.b_out": (len(expert.writes),),
        }
    return shapes


def mixture(experts: tuple[Expert, ...], router: int, part: Part, x: Residual, width: int) -> Residual:
    """What the chosen experts write [batch, pos, width]; of equal scores the first wins."""
    xp = namespace(x)
    seen = x
    if router:
        seen = xp.maximum(affine(x, part["moe.router.W_in"], part["moe.router.b_in"]), 0)
        part.record("moe.router.hook_post", seen)
    scores = affine(seen, part["moe.router.W_out"], part["moe.router.b_out"])
    part.record("moe.hook_scores", scores)
    chosen = scores.argmax(axis=-1)
    part.record("moe.hook_expert", chosen[..., None])
    flat, choice = x.reshape(-1, x.shape[-1]), chosen.reshape(-1)
    out = xp.zeros((len(flat), width), dtype=x.dtype)
    for number, expert in enumerate(experts):
        out = _work(expert, number, part, flat, choice, out)
    out = out.reshape(*x.shape[:-1], width)
    part.record("hook_moe_out", out)
    return out


def _work(expert: Expert, number: int, part: Part, flat: Array, choice: Array, out: Array) -> Array:
    """The output with one expert's rows filled in.

    NumPy runs the expert on its own rows. A compiled program can't know how many they are: it runs all of them.
    """
    name = f"moe.experts.{number}"
    reads, writes = np.array(expert.reads, dtype=np.int64), np.array(expert.writes, dtype=np.int64)
    xp = namespace(flat)
    own = None
    if xp is np:
        own = np.flatnonzero(choice == number)
        if not len(own):
            return out
        flat = flat[own]
    hidden = xp.maximum(affine(flat[:, reads], part[f"{name}.W_in"], part[f"{name}.b_in"]), 0)
    written = affine(hidden, part[f"{name}.W_out"], part[f"{name}.b_out"])
    if own is not None:
        out[np.ix_(own, writes)] = written
        return out
    source = np.full(out.shape[1], len(writes))  # the column that each dimension takes; the last one is zero
    source[writes] = np.arange(len(writes))
    padded = xp.concatenate([written, xp.zeros((len(flat), 1), dtype=written.dtype)], axis=1)
    return xp.where((choice == number)[:, None], padded[:, source], out)
