"""Transformers: layers of heads and ReLU units, with the choices of position code, norm and tying that papers vary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from vitrify.encoding import added
from vitrify.errors import InputError
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Array, Family, Parameters, Sandbox, answers_of, inputs_of
from vitrify.net.transformer import Block, Transformer
from vitrify.parameters import Count, Natural, Within, later

Positions = Literal["learned", "none", "rotary", "relative", "alibi"]
ROTARY_BASE = 10_000.0
STEEPEST = 8.0  # of the slopes of ALiBi: 2^-1 to 2^-8 for 8 heads
FIXED = ("beta",)  # an inverse temperature is a choice, no parameter


@dataclass(frozen=True)
class TransformerFamily(Family, small={"layers": 1, "heads": 2, "d_model": 8, "units": 8}):
    """`layers` blocks of `heads` heads and `units` ReLU units (4 d_model, if not given; 0 leaves attention only).

    `positions`: a learned vector per place, none, a rotation of queries and keys (`rotary`), a learned number per
    distance (`relative`), or a fixed penalty for distance, $2^{-8h/\\text{heads}}$ per place in head $h$ (`alibi`:
    Press, Smith, Lewis 2021, arXiv 2108.12409). There is room for at least `max_positions` tokens. With `segments` of s
    above 1, the heads of layer l see BOS and, of the tokens, those up to here in the same segment of s^l: a causal mask
    that follows the levels of a tree whose nodes have s children. With `causal`, heads see their own and earlier
    positions only, also where the sandbox asks about the last token alone. `tied` reads the answers with the embedding
    of the symbols. `scale` multiplies the standard deviation of the initial weights, which is
    $1/\\sqrt{\\text{fan-in}}$, and for what a block writes a factor $1/\\sqrt{2\\,\\text{layers}\\,\\text{loops}}$
    smaller; embeddings have 1/√d_model. `gain` multiplies the learned numbers of distances, so Adam moves them that
    much faster than the rest; they must become large before a softmax changes.
    """

    TRACED = ("scale", "gain")

    layers: Count = 2
    heads: Natural = 2
    d_model: Count = 32
    d_head: Count | None = None
    units: Natural | None = None
    positions: Positions = "learned"
    attention: Literal["softmax", "sparsemax", "linear"] = "softmax"
    norm: bool = True
    tied: bool = False
    biases: bool = True
    loops: Count = 1
    pads: Natural = 1
    max_positions: Annotated[int, Within(0)] = later(0)
    scale: float = 1.0
    gain: float = 1.0
    segments: Annotated[int, Within(0)] = added(0)
    causal: bool = added(False)

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from head_conflicts(self.d_model, self.heads, self.d_head, self.positions)

    @property
    def size(self) -> int:
        """Width of one head."""
        return self.d_head or self.d_model // max(self.heads, 1)

    def architecture(self, sandbox: Sandbox) -> Transformer:
        if self.tied and sandbox.answers != sandbox.symbols:
            raise InputError(f"a tied transformer answers with the symbols that it reads: {sandbox.name} has others")
        longest = max(sandbox.tokens, self.max_positions)
        window = longest + self.pads if self.positions in ("relative", "alibi") else None
        rotary = ROTARY_BASE if self.positions == "rotary" else 0.0
        head = _start.head_of(sandbox, attention=self.attention, window=window, rotary=rotary)
        units = 4 * self.d_model if self.units is None else self.units
        head = replace(head, mask="causal") if self.causal else head
        heads = [head] * self.layers
        if self.segments:
            heads = [replace(head, mask="causal", segment=self.segments ** (layer + 1)) for layer in range(self.layers)]
        return Transformer(
            inputs=inputs_of(sandbox),
            output=answers_of(sandbox),
            max_length=longest,
            d_model=self.d_model,
            blocks=tuple(Block((each,) * self.heads, self.size, self.size, units) for each in heads),
            pads=self.pads,
            norm=self.norm,
            eps=1e-5 if self.norm else 0.0,
            loops=self.loops,
            name=f"transformer on {sandbox.name}",
        )

    def trained(self, net: Transformer) -> dict[str, tuple[int, ...]]:
        """Name and shape of every array that is trained."""
        dropped = set(FIXED) | (set() if self.biases else {"b_Q", "b_K", "b_V", "b_in", "b_out"})
        dropped |= {"b_rel"} if self.positions == "alibi" else set()
        fixed = {"pos_embed.W_pos"} if self.positions != "learned" else set()
        fixed |= {"unembed.W_U"} if self.tied else set()
        shapes = net.shapes().items()
        return {name: shape for name, shape in shapes if name not in fixed and name.split(".")[-1] not in dropped}

    def first(self, net: Transformer, key: Array) -> Parameters:
        return _start.first(self.trained(net), key, self.scale, self.layers * self.loops, net)

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        arrays = dict(parameters)
        for name in [name for name in arrays if name.endswith("b_rel")]:
            arrays[name] = arrays[name] * jnp.asarray(self.gain, arrays[name].dtype)
        if self.positions == "alibi":
            kind = next(iter(arrays.values())).dtype
            tables = {name: shape for name, shape in net.shapes().items() if name.endswith("b_rel")}
            arrays |= {name: sloped(heads, window, kind) for name, (heads, window) in tables.items()}
        if self.tied:  # BOS is read, and never an answer
            arrays["unembed.W_U"] = arrays["embed.W_E"][1:].T
        return _start.filled(net, arrays, self.size**-0.5)


def sloped(heads: int, window: int, kind: DTypeLike = np.float32) -> Array:
    """Return the ALiBi biases of the scores [head, distance]: lower for more distant keys."""
    slopes = 2.0 ** (-STEEPEST * (np.arange(heads) + 1) / heads)
    return jnp.asarray(-slopes[:, None] * np.arange(window), kind)


class OverTransformer(Family):
    """A family whose nets are those of a transformer with some parts exchanged; fields of one name are the same."""

    INSTEAD: ClassVar[Mapping[str, object]] = MappingProxyType({})  # sizes of the transformer that are no fields here

    @cached_property
    def plain(self) -> TransformerFamily:
        """The transformer."""
        names = [entry.name for entry in fields(TransformerFamily) if hasattr(self, entry.name)]
        return TransformerFamily(**{name: getattr(self, name) for name in names} | dict(self.INSTEAD))

    def first(self, net: Transformer, key: Array) -> Parameters:
        return self.plain.first(net, key)

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        return self.plain.arrays(net, parameters)


def head_conflicts(d_model: int, heads: int, d_head: int | None, positions: Positions) -> Iterator[tuple[str, str]]:
    """Return what is wrong with the width of heads."""
    if d_head is None and heads > 0 and d_model % heads:
        yield "d_model", f"{d_model} must be a multiple of heads {heads}, or give d_head"
    size = d_head or d_model // max(heads, 1)
    if positions == "rotary" and heads > 0 and size % 2:
        yield "d_head", f"must be even, as rotary positions turn pairs of numbers, not {size}"


MODEL = TransformerFamily
