"""Hierarchical convolutional nets: filters that do not overlap, layer on layer, until one place is left.

Their layers see the levels of a tree whose nodes have as many children as a filter has places, such as those of the
random hierarchy model (Cagnetta et al. 2024, arXiv 2307.02129).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.encoding import added
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Array, Example, Family, Parameters, Sandbox, answers_of, inputs_of
from vitrify.net.conv import Convolution, Convolutional
from vitrify.parameters import Count, Natural, Within


@dataclass(frozen=True)
class HierarchicalFamily(Family, small={"channels": 8}):
    r"""Filters of `s` places and `channels` channels, in $\lceil\log_s n\rceil$ layers for sequences of $n$ tokens.

    It answers the last question only. A sequence is filled up with empty places behind to $s^L$, so that a last token
    that is to be guessed leaves the place where it would stand. `order` is a seed of an order to read the places in:
    filters then see what does not stand together. Unless `shared`, a filter has weights of its own at each place: a
    locally connected net.
    """

    TRACED = ("scale",)

    s: Annotated[int, Within(2)] = 2
    channels: Count = 64
    order: Natural | None = None
    scale: float = 1.0
    shared: bool = added(True)

    def architecture(self, sandbox: Sandbox) -> Convolutional:
        symbols, layers = inputs_of(sandbox)[1:], 1  # an empty place stands for nothing, not for BOS
        while self.s**layers < sandbox.tokens:
            layers += 1
        return Convolutional(
            planes=len(symbols),
            rows=1,
            columns=self.s**layers,
            output=answers_of(sandbox),
            convolutions=(Convolution(self.channels, (1, self.s), (1, self.s), shared=self.shared),) * layers,
            pixels="symbols",
            symbols=symbols,
            name=f"hierarchical net on {sandbox.name}",
        )

    def first(self, net: Convolutional, key: Array) -> Parameters:
        return _start.first(net.shapes(), key, self.scale, 1)

    def inputs(self, net: Convolutional, sandbox: Sandbox, batch: Example) -> Array:
        planes = jnp.swapaxes(jax.nn.one_hot(batch.tokens, net.planes), 1, 2)[:, :, None]
        planes = jnp.pad(planes, ((0, 0), (0, 0), (0, 0), (0, net.columns - sandbox.tokens)))
        if self.order is None:
            return planes
        return planes[..., np.random.default_rng(self.order).permutation(net.columns)]


MODEL = HierarchicalFamily
