"""Hierarchical convolutional nets: filters that do not overlap, layer on layer, until one place is left.

Their layers see the levels of a tree whose nodes have as many children as a filter has places, such as those of the
random hierarchy model (Cagnetta et al. 2024, arXiv 2307.02129).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.encoding import added
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Array, Example, Family, Parameters, Sandbox, answers_of, inputs_of, normal
from vitrify.net.conv import Convolution, Convolutional
from vitrify.parameters import Count, Natural, Within


@dataclass(frozen=True)
class HierarchicalFamily(Family, small={"channels": 8}):
    r"""Filters of `s` places and `channels` channels, in $\lceil\log_s n\rceil$ layers for sequences of $n$ tokens.

    It answers the last question only. A sequence is filled up with empty places behind to $s^L$, so that a last token
    that is to be guessed leaves the place where it would stand. `order` is a seed of an order to read the places in:
    filters then see what does not stand together. Unless `shared`, a filter has weights of its own at each place: a
    locally connected net. `dense` layers of as many units may follow: with filters as long as a sequence (`s`), they
    are the further hidden layers of a fully connected net.

    With `mean_field`, trained numbers begin with standard deviation `scale`. Weights are these over
    $\sqrt{\text{fan-in} / 2}$, those of the readout these over the width, and biases are these: with SGD and a rate
    proportional to the width, features are learned at the same pace at every width.
    """

    TRACED = ("scale",)

    s: Annotated[int, Within(2)] = 2
    channels: Count = 64
    order: Natural | None = None
    scale: float = 1.0
    shared: bool = added(True)
    dense: Annotated[int, Within(0)] = added(0)
    mean_field: bool = added(False)

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
            dense=(self.channels,) * self.dense,
            pixels="symbols",
            symbols=symbols,
            name=f"hierarchical net on {sandbox.name}",
        )

    def first(self, net: Convolutional, key: Array) -> Parameters:
        if not self.mean_field:
            return _start.first(net.shapes(), key, self.scale, 1)
        deviations = {name: 0.0 if name.split(".")[-1].startswith("b") else self.scale for name in net.shapes()}
        return normal(key, net.shapes(), deviations)

    def arrays(self, net: Convolutional, parameters: Mapping[str, Array]) -> dict[str, Array]:
        if not self.mean_field:
            return dict(parameters)
        return {name: array * _mean_field(name, net.shapes()[name]) for name, array in parameters.items()}

    @property
    def outside(self) -> str | None:
        return None if self.order is None else "symbols are permuted before they are read"

    def inputs(self, net: Convolutional, sandbox: Sandbox, batch: Example) -> Array:
        planes = jnp.swapaxes(jax.nn.one_hot(batch.tokens, net.planes), 1, 2)[:, :, None]
        planes = jnp.pad(planes, ((0, 0), (0, 0), (0, 0), (0, net.columns - sandbox.tokens)))
        if self.order is None:
            return planes
        return planes[..., np.random.default_rng(self.order).permutation(net.columns)]


def _mean_field(name: str, shape: tuple[int, ...]) -> float:
    """Return by what trained numbers are multiplied; the first layer reads one symbol at each place, not all planes."""
    if name.split(".")[-1].startswith("b"):
        return 1.0
    if name == "unembed.W_U":
        return 1 / shape[0]
    fan = shape[0] if name.endswith("W_in") else prod(shape[-2:] if name == "conv.0.W" else shape[-3:])
    return float(np.sqrt(2 / fan))


MODEL = HierarchicalFamily
