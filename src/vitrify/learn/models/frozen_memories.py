r"""Two attentions among frozen random vectors, in which only three matrices are trained: each is an associative memory.

Tokens, places, answers and values are random vectors that stay what they are. The first head's keys, the second head's
keys and the second head's output are trained; as matrices $W = \sum_{ab} w_{ab}\, u_a v_b^\top$ they can be read as
memories of pairs: of neighbouring places, of a token with what the first head fetched from the same token, and of a
token with the answer of the same name. Source: Bietti, Cabannes, Bouchacourt, Jégou and Bottou 2023, arXiv 2306.00802.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Array, Count, Family, Natural, NonNegative, Parameters, Sandbox, normal
from vitrify.net.transformer import Block, Transformer

TRAINED = PLACES, MATCHES, OUTPUTS = "blocks.0.attn.W_K", "blocks.1.attn.W_K", "blocks.1.attn.W_O"
FROZEN = ("embed.W_E", "pos_embed.W_pos", "blocks.0.attn.W_V", "blocks.1.attn.W_V", "unembed.W_U")


@dataclass(frozen=True)
class FrozenMemoriesFamily(Family, small={"d_model": 16, "draw": 1, "scale": 0.1}):
    """Vectors of width `d_model`, drawn by `draw`; `scale` is the deviation of the first weights, in 1/d_model."""

    TRACED = ("draw", "scale")

    d_model: Count = 128
    draw: Natural = 0
    scale: NonNegative = 0.0

    def architecture(self, sandbox: Sandbox) -> Transformer:
        block = Block((_start.head_of(sandbox),), self.d_model, self.d_model)
        return _start.transformer(sandbox, "frozen memories on", self.d_model, block, block)

    def first(self, net: Transformer, key: Array) -> Parameters:
        shapes = {name: shape for name, shape in net.shapes().items() if name in TRAINED}
        return normal(key, shapes, dict.fromkeys(TRAINED, self.scale / self.d_model))

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        kind, shapes = parameters[PLACES].dtype, net.shapes()
        key = jax.random.key(jnp.asarray(self.draw, jnp.uint32), impl="threefry2x32")
        drawn = normal(key, {name: shapes[name] for name in FROZEN}, dict.fromkeys(FROZEN, self.d_model**-0.5))
        same = jnp.eye(self.d_model, dtype=kind)[None]
        fixed = {"blocks.0.attn.W_Q": same, "blocks.1.attn.W_Q": same, "blocks.0.attn.W_O": same}
        return _start.filled(
            net, fixed | {name: array.astype(kind) for name, array in drawn.items()} | dict(parameters)
        )


def recalled(arrays: Mapping[str, Array], queried: Array, back: int = 1) -> dict[str, Array]:
    r"""Return the fraction of their pairs that each of the three memories recalls, by largest product.

    `outputs`: token $v$ read by the second head, and answer $v$. `matches`: token $q$ and what the first head writes of
    token $q$, for the tokens in `queried` (booleans). `places`: each place and the one `back` before, among those up to
    it.
    """
    tokens, places = arrays["embed.W_E"][1:], arrays["pos_embed.W_pos"]
    written = tokens @ arrays["blocks.1.attn.W_V"][0] @ arrays[OUTPUTS][0] @ arrays["unembed.W_U"]  # [token, answer]
    fetched = tokens @ arrays["blocks.0.attn.W_V"][0] @ arrays["blocks.0.attn.W_O"][0]
    match = tokens @ arrays["blocks.1.attn.W_Q"][0] @ (fetched @ arrays[MATCHES][0]).T  # [present token, earlier token]
    near = places @ arrays["blocks.0.attn.W_Q"][0] @ (places @ arrays[PLACES][0]).T  # [place, place looked at]
    near = jnp.where(jnp.tri(len(near), dtype=bool), near, -jnp.inf)
    each, before = jnp.arange(len(tokens)), jnp.arange(len(near) - back)
    hits = (match.argmax(axis=1) == each) & queried
    return {
        "outputs": (written.argmax(axis=1) == each).mean(),
        "matches": hits.sum() / queried.sum(),
        "positions": (near[back:].argmax(axis=1) == before).mean(),
    }


MODEL = FrozenMemoriesFamily
