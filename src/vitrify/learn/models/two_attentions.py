r"""Two attentions and nothing else: the first sees places only, the second compares tokens with what the first fetched.

Head $h$ of the first fetches $f^h_i = \sum_{j \le i} \mathrm{softmax}_j(A^h_{ij})\, s_j$ for one-hot tokens $s_j$; at
place $t$ the answer is $p = \sum_{i \le t} \mathrm{softmax}_i(q_t A\, k_i^\top)\, s_i$ with $q_t = s_t$ and $k_i =
(f^1_i, \dots, f^H_i)$, read as probabilities $(p + \varepsilon) / (1 + n\varepsilon)$ of $n$ symbols. The scores of
places start at zero and $A$ at a multiple of the identity for each head: so the first answer is near to how often each
symbol came up. With one head it is the part of a disentangled transformer that the theory of causal graphs follows
(Nichani, Damian and Lee 2024, arXiv 2402.14735). Where what was fetched asks too, $q_t = (s_t, f^1_t, \dots, f^H_t)$,
it is the model in which sub-n-grams are near-stationary (Varre, Yüce and Flammarion 2025, arXiv 2508.12837), without
value matrices and without tokens among the keys: these would tell at once how likely a symbol is to follow itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax.numpy as jnp

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Count, Family, NonNegative, Parameters, Positive, Sandbox, inputs_of, normal
from vitrify.net.transformer import Block, Transformer

PLACES, TOKENS = "blocks.0.attn.W_Q", "blocks.1.attn.W_Q"  # the arrays that hold the scores of places, and A
DISTANCES = "blocks.0.attn.b_rel"  # scores of places, where they depend on distances only


@dataclass(frozen=True)
class TwoAttentionsFamily(Family, small={"alike": -5.0, "scale": 0.1}):  # there is much to learn
    r"""`heads` fetch in the first layer; with `wide` what they fetched asks, too.

    `alike` is the initial value of the diagonals of $A$, between the present token and what each head fetched;
    `epsilon` is $\varepsilon$, `scale` the deviation of the first scores of places, and with `wide` that of $A$ too.
    With `relative` there is one number per head and distance instead of one per head and pair of places.
    """

    TRACED = ("alike", "scale")

    alike: float = 0.1
    epsilon: Positive = 1e-3
    scale: NonNegative = 0.0
    heads: Count = 1
    wide: bool = False
    relative: bool = False

    def architecture(self, sandbox: Sandbox) -> Transformer:
        symbols = inputs_of(sandbox)[1:]
        if sandbox.answers != symbols:
            raise InputError(f"two attentions answer with the symbols that they read: {sandbox.name} has others")
        count, places = len(symbols), sandbox.tokens
        known = 0 if self.relative else places
        fetch = (_start.head_of(sandbox, window=places if self.relative else None),) * self.heads
        first = Block(fetch, known or 1, count, d_out=count)
        second = Block((_start.head_of(sandbox),), count * self.heads, count, d_out=count)
        return _start.transformer(sandbox, "two attentions on", count + known, first, second, residual="concatenate")

    def first(self, net: Transformer, key: Array) -> Parameters:
        shapes, count = net.shapes(), len(net.output.symbols)
        looks = DISTANCES if self.relative else PLACES
        scale = {looks: self.scale, TOKENS: self.scale if self.wide else 0.0}
        arrays = normal(key, {name: shapes[name] for name in scale}, scale)
        like = self.alike * jnp.tile(jnp.eye(count), self.heads)  # the present token and what each head fetched
        arrays[TOKENS] = self._asking(net, arrays[TOKENS]).at[0, :count].add(like)
        return arrays if self.relative else arrays | {PLACES: _only(arrays[PLACES], count)}

    def _asking(self, net: Transformer, queries: Array) -> Array:
        """Queries of the second attention that read the token and, if it is wide, what was fetched; not the place."""
        masked = _only(queries, 0, len(net.output.symbols))
        return masked + _only(queries, net.d_model) if self.wide else masked

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        count, base, heads = len(net.output.symbols), net.d_model, self.heads
        kind = parameters[TOKENS].dtype
        stream = jnp.eye(base + count * heads, dtype=kind)  # after the first attention
        token, place, same = stream[:base, :count], stream[:base, count:base], jnp.eye(count, dtype=kind)
        if self.relative:
            looks = {DISTANCES: parameters[DISTANCES]}
        else:
            looks = {PLACES: _only(parameters[PLACES], count), "pos_embed.W_pos": place.T}
            looks["blocks.0.attn.W_K"] = jnp.broadcast_to(place, (heads, *place.shape))
        return _start.filled(
            net,
            {
                **looks,
                "embed.W_E": jnp.pad(token.T, ((1, 0), (0, 0))),  # BOS is never read
                "blocks.0.attn.W_V": jnp.broadcast_to(token, (heads, *token.shape)),
                "blocks.0.attn.W_O": jnp.broadcast_to(same, (heads, *same.shape)),
                TOKENS: self._asking(net, parameters[TOKENS]),
                "blocks.1.attn.W_K": stream[None, :, base:],
                "blocks.1.attn.W_V": stream[None, :, :count],
                "blocks.1.attn.W_O": same[None],
                "unembed.W_U": jnp.pad(same, ((len(stream), 0), (0, 0))),
            },
        )

    @property
    def outside(self) -> str:
        return "answers are the logarithms of what the net gives"

    def answered(self, sandbox: Sandbox, logits: Array) -> Array:
        """The logarithms of what the second attention finds."""
        return jnp.log(super().answered(sandbox, logits) + self.epsilon)


def _only(queries: Array, start: int, end: int | None = None) -> Array:
    """Queries that read these numbers of the stream only: [head, stream, query]."""
    return jnp.zeros_like(queries).at[:, start:end].set(queries[:, start:end])


MODEL = TwoAttentionsFamily
