r"""Soften a construction: finite temperatures and noise on every weight, with the answers and the circuit preserved.

A construction is exact because its softmaxes are saturated and most products of weights are zero. Both show its circuit
to anybody who looks. The softened network has

- the inverse temperatures $\beta$ (and relative biases) of its heads times `heat` $\le 1$;
- noise on all weights, $W_{ij} + \sigma N_{ij} s_j / (r_i \sqrt{n})$ with $N$ standard normal, where $n$ is the number
  of inputs, $r_i$ the root mean square of input $i$ on the domain, and $s_j$ that of output $j$ (both at least the
  mean over all inputs or outputs). So every edge carries something, and each part gets noise of $\sigma$ its size.

Softness is as large as it can be, in the steps of `HEATS` and `NOISES`, such that `interchange` holds: the network
answers as the construction does under its interventions. It was searched once and is recorded in `softness.json`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from vitrify.arrays import Array, Floats, Ints
from vitrify.errors import InputError
from vitrify.mechanisms.circuit import Judge
from vitrify.mechanisms.interchange import interchange, wide_tolerance
from vitrify.mechanisms.parts import Edge, NetWiring, wiring
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

RECORDED = Path(__file__).parent / "recorded" / "softness.json"
HEATS = (0.02, 0.1, 0.3, 0.5, 0.7, 1.0)  # smaller is softer
NOISES = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)
SIZED = (
    "hook_q",
    "hook_k",
    "hook_v",
    "hook_z",
    "_resid_pre",
    "_resid_mid",
    "_resid_post",
    "hook_pre",
    "hook_post",
    "hook_logits",
)
TINY = 1e-9  # size of what is zero throughout
# What gets noise: the inputs that it reads (none: one-hot), and what it writes; * is the block.
FIRST, LAST = "first", "last"  # moments of the residual stream
NOISY = {
    "embed.W_E": ("", FIRST),
    "pos_embed.W_pos": ("", FIRST),
    "attn.W_Q": ("*.hook_resid_pre", "*.attn.hook_q"),
    "attn.W_K": ("*.hook_resid_pre", "*.attn.hook_k"),
    "attn.W_V": ("*.hook_resid_pre", "*.attn.hook_v"),
    "attn.W_O": ("*.attn.hook_z", "*.hook_resid_mid"),
    "mlp.W_in": ("*.hook_resid_mid", "*.mlp.hook_pre"),
    "mlp.W_out": ("*.mlp.hook_post", "*.hook_resid_post"),
    "unembed.W_U": (LAST, "hook_logits"),
}


@dataclass(frozen=True)
class Softness:
    """By what β is multiplied, the noise of weights relative to their size, and the seed of the noise."""

    heat: float
    noise: float
    seed: int


def softened(weights: Weights[Transformer], tokens: Sequence[Ints], softness: Softness) -> Weights[Transformer]:
    """Return the softened network; activations on the tokens say how large noise is. Same arguments, same bytes."""
    net, rng = weights.architecture, np.random.default_rng(softness.seed)
    arrays = {name: np.array(dense(array), dtype=float) for name, array in weights.arrays.items()}
    size = _sizes(weights, tokens)
    for name, array in arrays.items():
        block, own = name.split(".attn.")[0].split(".mlp.")[0], ".".join(name.split(".")[-2:])
        if own in ("attn.beta", "attn.b_rel"):
            array *= softness.heat
        elif own in NOISY:
            reads, writes = (each.replace("*", block) for each in NOISY[own])
            noise = rng.standard_normal(array.shape) * np.expand_dims(size[writes], -2)
            if reads:  # else one-hot
                noise /= np.expand_dims(size[reads], -1) * np.sqrt(array.shape[-2])
            array += softness.noise * noise
    return Weights(net, arrays, weights.labels, {"name": f"a softened {net.name}"})


def _sizes(weights: Weights[Transformer], tokens: Sequence[Ints]) -> dict[str, Floats]:
    """Return the root mean square of all activations and inputs of parts, by name; at least the mean of their hook."""
    squares: dict[str, list[Floats]] = {}

    def see(name: str, value: Array) -> Array:
        if name.endswith(SIZED):
            lead = value.ndim - 1 - name.endswith(SIZED[:4])  # heads have sizes of their own
            squares.setdefault(name, []).append(np.mean(np.square(value), axis=tuple(range(lead))))
        return value

    for each in tokens:
        weights.architecture.forward(weights.prepared, each, record=see, edit=see)
    means = {name: np.sqrt(np.mean(values, axis=0)) for name, values in squares.items()}
    means |= {FIRST: means[weights.architecture.moments[0]], LAST: means[weights.architecture.moments[-1]]}
    return {name: np.maximum(size, size.mean() + TINY) for name, size in means.items() if size.size}


def soft_judge(reference: Judge, circuit: Sequence[Edge], softness: Softness) -> Judge:
    """Return the judge of the softened network, with the nodes and the domain of the construction."""
    tokens = [part.tokens for part in reference.domain]
    weights = softened(reference.wired.weights, tokens, softness)
    return another_judge(reference, weights, wide_tolerance(reference, circuit))


def another_judge(reference: Judge, weights: Weights[Transformer], tolerance: float) -> Judge:
    """Return the judge of another network with the nodes and the domain of a construction."""
    return Judge(wiring(weights, groups=groups_of(reference.wired)), reference.domain, tolerance)


def groups_of(wired: NetWiring) -> dict[str, tuple[int, ...]]:
    """Return the units of each node that consists of units."""
    return {node.name: node.units for node in wired.nodes if node.kind == "units"}


def softest(reference: Judge, circuit: Sequence[Edge]) -> Softness | None:
    """Return the largest softness for which `interchange` holds: first of noise, then of heat."""
    heat = next((heat for heat in HEATS if _same(reference, circuit, Softness(heat, 0.0, 0))), None)
    tries = (Softness(warmer, noise, 0) for noise in NOISES for warmer in dict.fromkeys((heat or 1.0, 1.0)))
    return None if heat is None else next((each for each in tries if _same(reference, circuit, each)), None)


def _same(reference: Judge, circuit: Sequence[Edge], softness: Softness) -> bool:
    return interchange(reference, soft_judge(reference, circuit, softness), circuit, stop_early=True).holds


@cache
def recorded() -> dict[str, Softness]:
    """Return the recorded softness of every network that has a softened rendering."""
    data = json.loads(RECORDED.read_text(encoding="utf-8"))
    return {name: Softness(*values) for name, values in data.items()}


def softness_of(name: str) -> Softness:
    """Return the recorded softness of a network."""
    if name not in recorded():
        raise InputError(f"there is no softened rendering of {name!r}: its answers do not survive any noise")
    return recorded()[name]
