r"""One head on one-hot tokens, and nothing else: $f(Z) = W_V Z\,\mathrm{softmax}((W_K Z)^\top W_Q Z)$.

There is no residual stream, norm, position code, bias or readout: the logits at a place are the mixed values of the
tokens there. The same head can be had with some of it off, as theories of stages ask for. Laid out as a transformer,
the stream holds the tokens, the head appends what it reads, and only that is read out. Source: Li, Li, Risteski 2023,
arXiv 2303.04245.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Family, Parameters, answers_of, inputs_of, normal, too_small
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.sandboxes.catalogue import Sandbox

EMBED, VALUES = "embed.W_E", "blocks.0.attn.W_V"
SCORES = ("blocks.0.attn.W_Q", "blocks.0.attn.W_K")


@dataclass(frozen=True)
class OneHotHeadFamily(Family):
    r"""What is trained is `all` ($W_V$, $W_K$, $W_Q$), or a part of it.

    `values` has uniform attention; `attention` keeps $W_V$ where it starts; `embedding` has uniform attention too, and
    $W_V = W_E^\top W_E$ for the embedding $W_E$, which it trains. $W_K$ and $W_Q$ map to `d_head` dimensions and $W_E$
    to `d_embed`, as many as there are tokens if not given. All numbers start normal with the standard deviation
    `scale`, or `scores` for $W_K$ and $W_Q$.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("scale", "scores")
    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType({"d_head": 4, "scores": 0.3})

    learns: Literal["all", "values", "attention", "embedding"] = "all"
    d_head: int | None = None
    d_embed: int | None = None
    scale: float = 0.02
    scores: float = 0.02

    def problems(self) -> Iterator[str]:
        yield from too_small(self, scale=0, scores=0)
        for name in ("d_head", "d_embed"):
            if (size := getattr(self, name)) is not None and size < 1:
                yield f"{name} must be at least 1, not {size}"

    def architecture(self, sandbox: Sandbox) -> Transformer:
        symbols = inputs_of(sandbox)
        if not set(sandbox.answers) <= set(symbols):
            raise InputError(f"this head answers with symbols that it reads: {sandbox.name} has others")
        embeds = self.learns == "embedding"
        width = (self.d_embed or len(symbols)) if embeds else len(symbols)
        out = width if embeds else len(sandbox.answers)
        keys = (self.d_head or len(symbols)) if self.learns in ("all", "attention") else 1
        head = Head(mask="none" if sandbox.bidirectional else "causal")
        return Transformer(
            inputs=symbols,
            output=answers_of(sandbox),
            max_length=sandbox.tokens,
            d_model=width,
            blocks=(Block((head,), keys, out, d_out=out),),
            pads=0,
            residual="concatenate",
            name=f"one-hot head on {sandbox.name}",
        )

    def first(self, net: Transformer, key: Array) -> Parameters:
        names = {"all": (VALUES, *SCORES), "attention": (VALUES, *SCORES), "values": (VALUES,), "embedding": (EMBED,)}
        shapes, start = net.shapes(), dict.fromkeys(SCORES, self.scores)
        trained = {name: shapes[name] for name in names[self.learns]}
        return normal(key, trained, {name: start.get(name, self.scale) for name in trained})

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        found, shapes = dict(parameters), net.shapes()
        kind, out = next(iter(found.values())).dtype, shapes["blocks.0.attn.W_O"][-1]
        whole = jnp.eye(out, dtype=kind)
        if self.learns == "embedding":
            places = jnp.asarray([net.inputs.index(answer) for answer in net.output.symbols])
            found[VALUES], read = whole[None], found[EMBED][places].T
        else:
            found[EMBED], read = jnp.eye(len(net.inputs), dtype=kind), whole
        if self.learns == "attention":
            found[VALUES] = jax.lax.stop_gradient(found[VALUES])
        found["blocks.0.attn.W_O"] = whole[None]
        found["unembed.W_U"] = jnp.concatenate([jnp.zeros((net.d_model, read.shape[1]), kind), read])
        return _start.filled(net, found)


MODEL = OneHotHeadFamily
