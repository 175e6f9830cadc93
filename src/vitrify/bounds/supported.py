"""Checks before a bound of a net is computed: a plain transformer with one kind of attention, and a valid length."""

from __future__ import annotations

from vitrify.arrays import Floats
from vitrify.errors import BuildRefused, InputError
from vitrify.net.architecture import Architecture
from vitrify.net.positions import tabulated
from vitrify.net.sparse import dense
from vitrify.net.transformer import AttentionKind, Transformer
from vitrify.net.weights import Weights


def plain_arrays(weights: Weights[Architecture], attention: AttentionKind, purpose: str) -> dict[str, Floats]:
    """Return the dense arrays; refuse whatever else changes the forward pass, from layer norms to loops.

    `purpose` follows "only … attention over tokens" in the message, as in "has such a bound".
    """
    net = weights.architecture
    if not isinstance(net, Transformer):
        raise BuildRefused(f"only {attention} attention over tokens {purpose}; this net is {net.tag}")
    kinds = {head.attention for block in net.blocks for head in block.heads}
    odd = [f"{kind} attention" for kind in sorted(kinds - {attention})] + ["a layer norm"] * net.norm
    odd += ["heads with segments"] * net.segmented + ["experts"] * any(block.experts for block in net.blocks)
    odd += ["recurrent cells"] * any(block.cell for block in net.blocks) + [
        "blocks that run again (unroll them first)"
    ] * (net.loops > 1)
    odd += ["rotary heads"] * any(head.rotary for block in net.blocks for head in block.heads)
    odd += ["vectors as input"] * (net.reads != "tokens") + ["a growing residual stream"] * (net.residual != "add")
    if odd:
        raise BuildRefused(f"only {attention} attention over tokens {purpose}; this net has {', '.join(odd)}")
    return {name: dense(array) for name, array in tabulated(weights).arrays.items()}


def refuse_length(net: Transformer, length: int) -> None:
    """Raise an InputError unless the net reads words of this length."""
    if not 1 <= length <= net.max_length:
        raise InputError(f"the net reads words of 1 to {net.max_length} letters, not {length}")
