r"""Two attentions and nothing else: the first sees places only, the second compares tokens with what the first fetched.

$h_i = \sum_{j \le i} \mathrm{softmax}_j(A^1_{ij})\, s_j$ for one-hot tokens $s_j$; at place $t$ the answer is
$f = \sum_{i \le t} \mathrm{softmax}_i(s_t A^2 h_i^\top)\, s_i$, read as probabilities
$(f + \varepsilon) / (1 + k \varepsilon)$ of $k$ symbols. $A^1$ starts at zero and $A^2$ at a multiple of the identity;
they are what the queries read of the place and of the token. It is the part of a disentangled transformer that the
theory of causal graphs follows. Source: Nichani, Damian and Lee 2024, arXiv 2402.14735.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import jax.numpy as jnp

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Family, Parameters, answers_of, inputs_of, normal, too_small
from vitrify.net.architecture import Record
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.sandboxes.catalogue import Row, Sandbox

PLACES, TOKENS = "blocks.0.attn.W_Q", "blocks.1.attn.W_Q"  # the arrays that hold A1 and A2


@dataclass(frozen=True)
class TwoAttentionsFamily(Family):
    r"""`alike` is what $A^2$ has on its diagonal at first, `least` is $\varepsilon$, `scale` the deviation of $A^1$."""

    TRACED: ClassVar[tuple[str, ...]] = ("alike", "scale")
    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType({"alike": -5.0, "scale": 0.1})  # there is much to learn

    alike: float = 0.1
    least: float = 1e-3
    scale: float = 0.0

    def problems(self) -> Iterator[str]:
        yield from too_small(self, scale=0)
        if not self.least > 0:
            yield f"least must be positive, not {self.least:g}: a token that is not there has probability least"

    def architecture(self, sandbox: Sandbox) -> Transformer:
        inputs = inputs_of(sandbox)
        if sandbox.answers != sandbox.symbols:
            raise InputError(f"two attentions answer with the symbols that they read: {sandbox.name} has others")
        count, places = len(sandbox.symbols), sandbox.tokens
        head = (Head(mask="none" if sandbox.bidirectional else "causal"),)
        return Transformer(
            inputs=inputs,
            output=answers_of(sandbox),
            max_length=places,
            d_model=count + places,
            blocks=(Block(head, places, count, d_out=count), Block(head, count, count, d_out=count)),
            pads=0,
            residual="concatenate",
            name=f"two attentions on {sandbox.name}",
        )

    def first(self, net: Transformer, key: Array) -> Parameters:
        shapes = net.shapes()
        drawn = normal(key, {PLACES: shapes[PLACES]}, {PLACES: self.scale})[PLACES]
        stream, count = shapes[TOKENS][1:]
        like = self.alike * jnp.eye(stream, count)[None]
        return {PLACES: _only(drawn, count), TOKENS: like}

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        count, places = len(net.output.symbols), net.max_length
        kind = parameters[PLACES].dtype
        token, place = jnp.split(jnp.eye(count + places, dtype=kind), [count], axis=1)  # what of the stream is which
        after = jnp.pad(jnp.eye(count, dtype=kind), ((count + places, 0), (0, 0)))  # what the first head appended
        last = jnp.pad(jnp.eye(count, dtype=kind), ((2 * count + places, 0), (0, 0)))
        early = jnp.pad(token, ((0, count), (0, 0)))  # the token in the wider stream
        return _start.filled(
            net,
            {
                "embed.W_E": jnp.pad(token.T, ((1, 0), (0, 0))),  # BOS is never read
                "pos_embed.W_pos": place.T,
                PLACES: _only(parameters[PLACES], count),
                "blocks.0.attn.W_K": place[None],
                "blocks.0.attn.W_V": token[None],
                "blocks.0.attn.W_O": jnp.eye(count, dtype=kind)[None],
                TOKENS: _only(parameters[TOKENS], 0, count),
                "blocks.1.attn.W_K": after[None],
                "blocks.1.attn.W_V": early[None],
                "blocks.1.attn.W_O": jnp.eye(count, dtype=kind)[None],
                "unembed.W_U": last,
            },
        )

    def logits(
        self, net: Any, sandbox: Sandbox, arrays: Mapping[str, Array], row: Row, record: Record | None = None
    ) -> Array:
        """The logarithms of what the second attention finds."""
        return jnp.log(super().logits(net, sandbox, arrays, row, record) + self.least)


def _only(queries: Array, start: int, end: int | None = None) -> Array:
    """Queries that read these numbers of the stream only: [head, stream, query]."""
    return jnp.zeros_like(queries).at[:, start:end].set(queries[:, start:end])


MODEL = TwoAttentionsFamily
