r"""A mixture of experts: a router scores the experts, and at each position the best one, or the best few, are active.

The router is linear, $s = x W_{out} + b_{out}$, or has one hidden layer of ReLU units in front. An expert is one
hidden layer, $\mathrm{relu}(x_R W_{in} + b_{in}) W_{out} + b_{out}$, that reads some dimensions $R$ of the residual
stream and writes some others: its arrays are only as large as what it does, and do not change when dimensions are
added for other experts.

Without a gate the best expert writes, unscaled, and the choice has no gradient: for built nets. With a gate the `top`
best by $s + b$ are active, each times its gate $g_e$, the softmax of $s$ over all experts (`all`) or over the chosen
ones (`chosen`): the router learns by the gradient through it. The shift $b$ changes the choice, not the gates.

Or experts choose (Zhou et al. 2022, arXiv 2202.09368): among the $B$ sequences of a batch, at each position by
itself, each of the $E$ experts takes the $\lceil \mathrm{top} \cdot B / E \rceil$ whose softmax of $s$ over experts
is largest for it. Loads are equal by construction, and a sequence may have no expert, or several. `moe.hook_expert`
then records the expert with the largest gate, and 0 for a sequence that has none. The choice depends on no later token,
but on the other sequences of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from vitrify.arrays import Array, Float, Residual, namespace
from vitrify.errors import FolderError
from vitrify.net.architecture import Size, layer_shapes
from vitrify.net.sparse import affine

if TYPE_CHECKING:
    from vitrify.net.transformer_forward import Part


@dataclass(frozen=True)
class Expert:
    """One expert: the dimensions that it reads, its hidden units, the dimensions that it writes."""

    reads: tuple[int, ...]
    units: Size
    writes: tuple[int, ...]


@dataclass(frozen=True)
class Gate:
    """The number of active experts at a position, the experts in the softmax of the gates, and who chooses.

    With `by="expert"`, experts choose sequences: `top` are active at a position on average, and `over` must be "all".
    """

    top: Size = 1
    over: Literal["all", "chosen"] = "all"
    by: Literal["token", "expert"] = "token"

    def __post_init__(self) -> None:
        if self.by == "expert" and self.over == "chosen":
            raise FolderError("where experts choose, some sequences have none: gates must be over all experts")

    def __repr__(self) -> str:
        """Return the repr, with `by` only where experts choose: nets from before this field keep their digests."""
        choosing = f", by={self.by!r}" if self.by != "token" else ""
        return f"Gate(top={self.top!r}, over={self.over!r}{choosing})"

    def room(self, rows: int, experts: int) -> int:
        """Return the number of sequences that each expert takes, where experts choose."""
        return min(rows, -(-self.top * rows // experts))


def expert_shapes(
    experts: tuple[Expert, ...], router: int, width: int, gate: Gate | None = None
) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every array of the layer; `router` is the number of the router's hidden units."""
    shapes: dict[str, tuple[int, ...]] = {}
    if router:
        shapes |= {"router.W_in": (width, router), "router.b_in": (router,)}
    shapes |= {"router.W_out": (router or width, len(experts)), "router.b_out": (len(experts),)}
    if gate and gate.by == "token":
        shapes["router.b_choice"] = (len(experts),)
    for number, expert in enumerate(experts):
        shapes |= layer_shapes(f"experts.{number}", len(expert.reads), expert.units, len(expert.writes))
    return shapes


def mixture(
    experts: tuple[Expert, ...], router: int, gate: Gate | None, part: Part, x: Residual, width: int
) -> Float[Array, "batch pos out"]:
    """Return the output of the chosen experts; of equal scores the first wins."""
    xp = namespace(x)
    seen = part.edited("moe.router.hook_in", x)
    if router:
        seen = xp.maximum(affine(seen, part["moe.router.W_in"], part["moe.router.b_in"]), 0)
        part.record("moe.router.hook_post", seen)
    scores = affine(seen, part["moe.router.W_out"], part["moe.router.b_out"])
    part.record("moe.hook_scores", scores)
    flat = x.reshape(-1, x.shape[-1])
    out = xp.zeros((len(flat), width), dtype=x.dtype)
    if gate is None:
        chosen = scores.argmax(axis=-1)
        part.record("moe.hook_expert", chosen[..., None])
        choice = chosen.reshape(-1)
        if part.editing:
            return _edited(experts, part, x, chosen[..., None] == xp.arange(len(experts)), width)
        for number, expert in enumerate(experts):
            out = _work(expert, number, part, flat, choice == number, out)
    else:
        gates = _gates(gate, part, scores).reshape(len(flat), -1)
        alike = {Expert(tuple(range(flat.shape[1])), experts[0].units, tuple(range(width)))}
        if xp is not np and set(experts) == alike:  # all have one size, and read and write all of the residual stream
            out = _work_together(experts, part, flat, gates)
        else:
            for number, expert in enumerate(experts):
                own = gates[:, number]
                out = out + own[:, None] * _work(expert, number, part, flat, own > 0, xp.zeros_like(out))
    out = out.reshape(*x.shape[:-1], width)
    part.record("hook_moe_out", out)
    return out


def _edited(experts: tuple[Expert, ...], part: Part, x: Residual, works: Array, width: int) -> Residual:
    """Return the same with `edit` applied to the choice [batch, pos, expert] and to each expert's input and output."""
    xp = namespace(x)
    works = part.edited("moe.hook_works", works)
    outputs = []
    for number, expert in enumerate(experts):
        name = f"moe.experts.{number}"
        flat = part.edited(f"{name}.hook_in", x).reshape(-1, x.shape[-1])
        none = xp.zeros((len(flat), width), dtype=x.dtype)
        written = _work(expert, number, part, flat, works[..., number].reshape(-1), none)
        outputs.append(part.edited(f"{name}.hook_out", written.reshape(*x.shape[:-1], width)))
    out = sum(outputs, start=xp.zeros((*x.shape[:-1], width), dtype=x.dtype))
    part.record("hook_moe_out", out)
    return out


def _gates(gate: Gate, part: Part, scores: Array) -> Array:
    """Return the gate of every expert [batch, pos, expert]: 0 for inactive ones."""
    xp = namespace(scores)
    shifted = scores - scores.max(axis=-1, keepdims=True)
    if gate.by == "expert":
        gates = xp.exp(shifted)
        gates = gates / gates.sum(axis=-1, keepdims=True)
        rank = xp.argsort(xp.argsort(-gates, axis=0, stable=True), axis=0)  # of equal ones the first wins
        taken = rank < gate.room(*gates.shape[::2])
        gates = xp.where(taken, gates, 0.0)
        part.record("moe.hook_expert", gates.argmax(axis=-1)[..., None])
    else:
        choice_scores = scores + part["moe.router.b_choice"]
        part.record("moe.hook_choice", choice_scores)
        rank = _rank(choice_scores)
        part.record("moe.hook_expert", xp.argsort(rank, axis=-1)[..., : gate.top])
        best = rank < gate.top
        in_softmax = best if gate.over == "chosen" else xp.ones_like(best)
        gates = xp.where(in_softmax, xp.exp(shifted), 0.0)
        gates = xp.where(best, gates / gates.sum(axis=-1, keepdims=True), 0.0)
    part.record("moe.hook_gates", gates)
    return gates


def _rank(scores: Array) -> Array:
    """Return the rank of each expert at its position, the best first; of equal ones the first wins."""
    count = scores.shape[-1]
    earlier = np.tri(count, k=-1, dtype=bool)  # counting who is better is quicker than sorting a few
    mine, theirs = scores[..., :, None], scores[..., None, :]
    rank: Array = ((theirs > mine) | ((theirs == mine) & earlier)).sum(axis=-1)
    return rank


def _work_together(experts: tuple[Expert, ...], part: Part, flat: Array, gates: Array) -> Array:
    r"""$\sum_e g_e\,(\mathrm{relu}(x W_e + b_e) W'_e + b'_e)$ as one wide layer, whose units are scaled by the gates.

    A compiled program runs all experts anyway, and a few large products are quicker than many small ones.
    """
    xp = namespace(flat)
    names = [f"moe.experts.{number}" for number in range(len(experts))]
    inner, bias = (xp.concatenate([part[f"{name}.{own}"] for name in names], axis=-1) for own in ("W_in", "b_in"))
    outer = xp.concatenate([part[f"{name}.W_out"] for name in names])
    hidden = xp.maximum(affine(flat, inner, bias), 0).reshape(*gates.shape, -1) * gates[..., None]
    return hidden.reshape(len(flat), -1) @ outer + gates @ xp.stack([part[f"{name}.b_out"] for name in names])


def _work(expert: Expert, number: int, part: Part, flat: Array, chosen: Array, out: Array) -> Array:
    """Return `out` with the rows of one expert filled in.

    NumPy runs the expert on its rows only. A compiled program can't know how many they are: it runs all of them.
    """
    name = f"moe.experts.{number}"
    reads, writes = np.array(expert.reads, dtype=np.int64), np.array(expert.writes, dtype=np.int64)
    everything = np.array_equal(reads, np.arange(flat.shape[1]))  # picking costs time, above all in gradients
    xp = namespace(flat)
    rows = None
    if xp is np:
        rows = np.flatnonzero(chosen)
        if not len(rows):
            return out
        flat = flat[rows]
    hidden = xp.maximum(affine(flat if everything else flat[:, reads], part[f"{name}.W_in"], part[f"{name}.b_in"]), 0)
    written = affine(hidden, part[f"{name}.W_out"], part[f"{name}.b_out"])
    if rows is not None:
        out[np.ix_(rows, writes)] = written
        return out
    if np.array_equal(writes, np.arange(out.shape[1])):
        return xp.where(chosen[:, None], written, out)
    source = np.full(out.shape[1], len(writes))  # the column that each dimension takes; the last one is zero
    source[writes] = np.arange(len(writes))
    padded = xp.concatenate([written, xp.zeros((len(flat), 1), dtype=written.dtype)], axis=1)
    return xp.where(chosen[:, None], padded[:, source], out)
