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

PLACES, TOKENS = "blocks.0.attn.W_Q", "blocks.1.attn.W_Q"  # the arrays that hold the scores of places, and A
DISTANCES = "blocks.0.attn.b_rel"  # scores of places, where they depend on distances only


@dataclass(frozen=True)
class TwoAttentionsFamily(Family):
    r"""`heads` fetch in the first layer; with `wide` what they fetched asks, too.

    `alike` is what $A$ has on its diagonals at first, between the present token and what each head fetched; `least` is
    $\varepsilon$, `scale` the deviation of the first scores of places, and with `wide` that of $A$ too. With `relative`
    there is one number per head and distance instead of one per head and pair of places.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("alike", "scale")
    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType({"alike": -5.0, "scale": 0.1})  # there is much to learn

    alike: float = 0.1
    least: float = 1e-3
    scale: float = 0.0
    heads: int = 1
    wide: bool = False
    relative: bool = False

    def problems(self) -> Iterator[str]:
        yield from too_small(self, scale=0, heads=1)
        if not self.least > 0:
            yield f"least must be positive, not {self.least:g}: a token that is not there has probability least"

    def architecture(self, sandbox: Sandbox) -> Transformer:
        inputs = inputs_of(sandbox)
        if sandbox.answers != sandbox.symbols:
            raise InputError(f"two attentions answer with the symbols that they read: {sandbox.name} has others")
        count, places = len(sandbox.symbols), sandbox.tokens
        head = Head(mask="none" if sandbox.bidirectional else "causal")
        first = Head(mask=head.mask, window=places) if self.relative else head
        known = 0 if self.relative else places
        return Transformer(
            inputs=inputs,
            output=answers_of(sandbox),
            max_length=places,
            d_model=count + known,
            blocks=(
                Block((first,) * self.heads, known or 1, count, d_out=count),
                Block((head,), count * self.heads, count, d_out=count),
            ),
            pads=0,
            residual="concatenate",
            name=f"two attentions on {sandbox.name}",
        )

    def first(self, net: Transformer, key: Array) -> Parameters:
        shapes, count = net.shapes(), len(net.output.symbols)
        looks = DISTANCES if self.relative else PLACES
        scale = {looks: self.scale, TOKENS: self.scale if self.wide else 0.0}
        found = normal(key, {name: shapes[name] for name in scale}, scale)
        like = self.alike * jnp.tile(jnp.eye(count), self.heads)  # the present token and what each head fetched
        found[TOKENS] = self._asking(net, found[TOKENS]).at[0, :count].add(like)
        return found if self.relative else found | {PLACES: _only(found[PLACES], count)}

    def _asking(self, net: Transformer, queries: Array) -> Array:
        """Queries of the second attention that read the token and, if it is wide, what was fetched; not the place."""
        found = _only(queries, 0, len(net.output.symbols))
        return found + _only(queries, net.d_model) if self.wide else found

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

    def logits(
        self, net: Any, sandbox: Sandbox, arrays: Mapping[str, Array], row: Row, record: Record | None = None
    ) -> Array:
        """The logarithms of what the second attention finds."""
        return jnp.log(super().logits(net, sandbox, arrays, row, record) + self.least)


def _only(queries: Array, start: int, end: int | None = None) -> Array:
    """Queries that read these numbers of the stream only: [head, stream, query]."""
    return jnp.zeros_like(queries).at[:, start:end].set(queries[:, start:end])


MODEL = TwoAttentionsFamily
