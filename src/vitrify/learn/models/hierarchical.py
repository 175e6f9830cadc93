"""Hierarchical convolutional nets: filters that do not overlap, layer on layer, until one place is left.

Their layers see the levels of a tree whose nodes have as many children as a filter has places, such as those of the
random hierarchy model (Cagnetta et al. 2024, arXiv 2307.02129).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Family, Parameters, answers_of, inputs_of, too_small
from vitrify.net.architecture import Record
from vitrify.net.conv import Convolution, Convolutional
from vitrify.sandboxes.catalogue import Row, Sandbox


@dataclass(frozen=True)
class HierarchicalFamily(Family):
    r"""Filters of `s` places and `channels` channels, in $\lceil\log_s n\rceil$ layers for rows of $n$ tokens.

    It answers the last question only. A row is filled up with empty places behind to $s^L$, so that a last token that
    is to be guessed leaves the place where it would stand. `order` is a seed of an order to read the places in: filters
    then see what does not stand together.
    """

    TRACED: ClassVar[tuple[str, ...]] = ("scale",)
    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType({"channels": 8})

    s: int = 2
    channels: int = 64
    order: int | None = None
    scale: float = 1.0

    def problems(self) -> Iterator[str]:
        yield from too_small(self, s=2, channels=1)
        if self.order is not None and self.order < 0:
            yield f"order must be a seed from 0, not {self.order}"

    def architecture(self, sandbox: Sandbox) -> Convolutional:
        symbols, layers = inputs_of(sandbox)[1:], 1  # an empty place stands for nothing, not for BOS
        while self.s**layers < sandbox.tokens:
            layers += 1
        return Convolutional(
            planes=len(symbols),
            rows=1,
            columns=self.s**layers,
            output=answers_of(sandbox),
            convolutions=(Convolution(self.channels, (1, self.s), (1, self.s)),) * layers,
            pixels="symbols",
            symbols=symbols,
            name=f"hierarchical net on {sandbox.name}",
        )

    def first(self, net: Convolutional, key: Array) -> Parameters:
        return _start.first(net.shapes(), key, self.scale, 1)

    def inputs(self, net: Convolutional, sandbox: Sandbox, row: Row) -> Array:
        planes = jnp.swapaxes(jax.nn.one_hot(row.tokens, net.planes), 1, 2)[:, :, None]
        planes = jnp.pad(planes, ((0, 0), (0, 0), (0, 0), (0, net.columns - sandbox.tokens)))
        if self.order is None:
            return planes
        return planes[..., np.random.default_rng(self.order).permutation(net.columns)]

    def logits(
        self,
        net: Convolutional,
        sandbox: Sandbox,
        arrays: Mapping[str, Array],
        row: Row,
        record: Record | None = None,
    ) -> Array:
        planes = self.inputs(net, sandbox, row).astype(arrays["unembed.W_U"].dtype)
        return net.forward(arrays, planes, record=record)[:, None]


MODEL = HierarchicalFamily
