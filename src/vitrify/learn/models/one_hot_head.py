r"""One head on one-hot tokens, and nothing else: $f(Z) = W_V Z\,\mathrm{softmax}((W_K Z)^\top W_Q Z)$.

There is no residual stream, norm, position code, bias or readout: the logits at a position are the attention-weighted
mean of $W_V z$ over all tokens $z$. Parts of the head can be frozen, for theories that treat one stage of training at a
time. Laid out as a transformer, the stream holds the tokens, the head appends what it reads, and only that is read out.
Source: Li, Li, Risteski 2023, arXiv 2303.04245.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from vitrify.errors import InputError
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Array, Count, Family, NonNegative, Parameters, Sandbox, inputs_of, normal
from vitrify.net.transformer import Block, Transformer

EMBED, VALUES = "embed.W_E", "blocks.0.attn.W_V"
SCORES = ("blocks.0.attn.W_Q", "blocks.0.attn.W_K")


@dataclass(frozen=True)
class OneHotHeadFamily(Family, small={"d_head": 4, "scores": 0.3}):
    r"""A head on one-hot tokens; trained is `all` of $W_V$, $W_K$, $W_Q$, or a part of it.

    `values` has uniform attention; `attention` keeps $W_V$ where it starts; `embedding` has uniform attention too, and
    $W_V = W_E^\top W_E$ for the embedding $W_E$, which it trains. $W_K$ and $W_Q$ map to `d_head` dimensions and $W_E$
    to `d_embed`, as many as there are tokens if not given. All numbers start normal with the standard deviation
    `scale`, or `scores` for $W_K$ and $W_Q$.
    """

    TRACED = ("scale", "scores")

    learns: Literal["all", "values", "attention", "embedding"] = "all"
    d_head: Count | None = None
    d_embed: Count | None = None
    scale: NonNegative = 0.02
    scores: NonNegative = 0.02

    def architecture(self, sandbox: Sandbox) -> Transformer:
        symbols = inputs_of(sandbox)
        if not set(sandbox.answers) <= set(symbols):
            raise InputError(f"this head answers with symbols that it reads: {sandbox.name} has others")
        embeds = self.learns == "embedding"
        width = (self.d_embed or len(symbols)) if embeds else len(symbols)
        out = width if embeds else len(sandbox.answers)
        keys = (self.d_head or len(symbols)) if self.learns in ("all", "attention") else 1
        block = Block((_start.head_of(sandbox),), keys, out, d_out=out)
        return _start.transformer(sandbox, "one-hot head on", width, block, residual="concatenate")

    def first(self, net: Transformer, key: Array) -> Parameters:
        names = {"all": (VALUES, *SCORES), "attention": (VALUES, *SCORES), "values": (VALUES,), "embedding": (EMBED,)}
        shapes, start = net.shapes(), dict.fromkeys(SCORES, self.scores)
        trained = {name: shapes[name] for name in names[self.learns]}
        return normal(key, trained, {name: start.get(name, self.scale) for name in trained})

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        arrays, shapes = dict(parameters), net.shapes()
        kind, out = next(iter(arrays.values())).dtype, shapes["blocks.0.attn.W_O"][-1]
        identity = jnp.eye(out, dtype=kind)
        if self.learns == "embedding":
            places = jnp.asarray([net.inputs.index(answer) for answer in net.output.symbols])
            arrays[VALUES], read = identity[None], arrays[EMBED][places].T
        else:
            arrays[EMBED], read = jnp.eye(len(net.inputs), dtype=kind), identity
        if self.learns == "attention":
            arrays[VALUES] = jax.lax.stop_gradient(arrays[VALUES])
        arrays["blocks.0.attn.W_O"] = identity[None]
        arrays["unembed.W_U"] = jnp.concatenate([jnp.zeros((net.d_model, read.shape[1]), kind), read])
        return _start.filled(net, arrays)


MODEL = OneHotHeadFamily
