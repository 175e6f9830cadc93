r"""Two attentions among frozen random vectors, in which only three matrices are trained: each is an associative memory.

Tokens, places, answers and values are random vectors that stay what they are. The first head's keys, the second head's
keys and the second head's output are trained; as matrices $W = \sum_{ab} w_{ab}\, u_a v_b^\top$ they can be read as
memories of pairs: of neighbouring places, of a token with what the first head fetched from the same token, and of a
token with the answer that is called like it. Source: Bietti, Cabannes, Bouchacourt, Jégou and Bottou 2023,
arXiv 2306.00802.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from vitrify.arrays import Array
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Family, Parameters, answers_of, inputs_of, normal, too_small
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.sandboxes.catalogue import Sandbox

TRAINED = PLACES, MATCHES, OUTPUTS = "blocks.0.attn.W_K", "blocks.1.attn.W_K", "blocks.1.attn.W_O"
FROZEN = ("embed.W_E", "pos_embed.W_pos", "blocks.0.attn.W_V", "blocks.1.attn.W_V", "unembed.W_U")


@dataclass(frozen=True)
class FrozenMemoriesFamily(Family):
    """Vectors of width `d_model`, drawn by `draw`; `scale` is the deviation of the first weights, in 1/d_model."""

    TRACED: ClassVar[tuple[str, ...]] = ("draw", "scale")
    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType({"d_model": 16, "draw": 1, "scale": 0.1})

    d_model: int = 128
    draw: int = 0
    scale: float = 0.0

    def problems(self) -> Iterator[str]:
        yield from too_small(self, d_model=1, draw=0, scale=0)

    def architecture(self, sandbox: Sandbox) -> Transformer:
        head = Head(mask="none" if sandbox.bidirectional else "causal")
        return Transformer(
            inputs=inputs_of(sandbox),
            output=answers_of(sandbox),
            max_length=sandbox.tokens,
            d_model=self.d_model,
            blocks=(Block((head,), self.d_model, self.d_model),) * 2,
            pads=0,
            name=f"frozen memories on {sandbox.name}",
        )

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


def recalled(arrays: Mapping[str, Array], asked: Array, back: int = 1) -> dict[str, Array]:
    r"""Which part of their pairs the three memories hold: those with the largest product of all.

    `outputs`: token $v$ read by the second head, and answer $v$. `matches`: token $q$ and what the first head writes of
    token $q$, for the tokens in `asked` (booleans). `places`: each place and the one `back` before, among those up to
    it.
    """
    tokens, places = arrays["embed.W_E"][1:], arrays["pos_embed.W_pos"]
    written = tokens @ arrays["blocks.1.attn.W_V"][0] @ arrays[OUTPUTS][0] @ arrays["unembed.W_U"]  # [token, answer]
    fetched = tokens @ arrays["blocks.0.attn.W_V"][0] @ arrays["blocks.0.attn.W_O"][0]
    match = tokens @ arrays["blocks.1.attn.W_Q"][0] @ (fetched @ arrays[MATCHES][0]).T  # [present token, earlier token]
    near = places @ arrays["blocks.0.attn.W_Q"][0] @ (places @ arrays[PLACES][0]).T  # [place, place looked at]
    near = jnp.where(jnp.tri(len(near), dtype=bool), near, -jnp.inf)
    each, before = jnp.arange(len(tokens)), jnp.arange(len(near) - back)
    hits = (match.argmax(axis=1) == each) & asked
    return {
        "outputs": (written.argmax(axis=1) == each).mean(),
        "matches": hits.sum() / asked.sum(),
        "places": (near[back:].argmax(axis=1) == before).mean(),
    }


MODEL = FrozenMemoriesFamily
