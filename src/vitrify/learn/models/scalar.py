r"""One-layer transformers that read a bit as a number; their loss on a binary Markov chain has been analyzed.

A bit $x_n$ is embedded as $x_n e + p_n$, with a vector $e$ and a learned position vector. One head and ReLU units (by
default $4d$) follow, without norms and biases. The logit of a 1 is $\langle a, z_n\rangle + b$, that of a 0 is 0. Tied
weights means $a = e$. Source: Makkuva et al. 2024, arXiv 2402.04161.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from vitrify.errors import InputError
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Array, Family, Parameters, Sandbox, inputs_of, normal
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.parameters import Count, NonNegative, Probability

TRAINED = ("W_pos", "W_Q", "W_K", "W_V", "W_O", "W_in", "W_out")


def low_rank(net: Transformer, e: Array | float, w: Array | float) -> Parameters:
    r"""Return the weights of rank one that trained networks of this kind approach; they have two parameters.

    The stream holds $e\,\alpha\,(x - 1/2)$, with a number $e$ and a unit vector $\alpha$ of equal entries; all units
    read with $|w|\,\alpha$ and write $w\,\alpha$, up to a factor. With tied weights and $e > 0$ the logit after $x$ is
    $e^2 (1 + 2w|w|)\,x - e^2/2$.
    """
    units = net.blocks[0].units
    alpha = jnp.full(net.d_model, net.d_model**-0.5)
    each = jnp.ones((units, 1)) * (4 / units) ** 0.5
    return {
        "e": e * alpha,
        "pos_embed.W_pos": jnp.ones((net.positions, 1)) * (-e / 2 * alpha),
        "blocks.0.mlp.W_in": (each * (abs(w) * alpha)).T,
        "blocks.0.mlp.W_out": each * (w * alpha),
    }


@dataclass(frozen=True)
class ScalarFamily(Family, small={"d_model": 4, "scale": 0.2}):
    r"""One head and `units` ReLU units (4 d_model, if not given) in `d_model` dimensions.

    The logit is read by $\text{tied}\,e + (1 - \text{tied})\,a$: `tied` = 1 ties the weights, 0 does not. It is a
    number so that members of both kinds share one compiled program. Initial weights are normal with standard deviation
    `scale`, or `scale`$/\sqrt 2$ for $W_O$ and $W_{out}$, and $b = 0$. The weights of `low_rank` with the numbers `e`
    and `w` are added to them; they leave $a$ as it is.
    """

    TRACED = ("tied", "scale", "e", "w")

    d_model: Count = 8
    units: Count | None = None
    tied: Probability = 1.0
    scale: NonNegative = 0.02
    e: float = 0.0
    w: float = 0.0

    def architecture(self, sandbox: Sandbox) -> Transformer:
        if len(inputs_of(sandbox)) != 3 or sandbox.answers != sandbox.symbols:
            raise InputError(f"the sandbox must have two symbols, and answers with both: {sandbox.name} has others")
        units = 4 * self.d_model if self.units is None else self.units
        block = Block((Head(),), self.d_model, self.d_model, units)
        return _start.transformer(sandbox, "one layer that reads bits as numbers, on", self.d_model, block)

    def first(self, net: Transformer, key: Array) -> Parameters:
        shapes = {name: shape for name, shape in net.shapes().items() if name.endswith(TRAINED)}
        shapes |= {"e": (self.d_model,), "a": (self.d_model,)}
        writes = {name: np.float32(np.sqrt(0.5)) for name in shapes if name.endswith(("W_O", "W_out"))}
        arrays = normal(key, shapes, {name: self.scale * writes.get(name, np.float32(1)) for name in shapes})
        for name, form in low_rank(net, self.e, self.w).items():
            arrays[name] += form
        return arrays | {"b": jnp.zeros(())}

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        arrays = dict(parameters)
        e, a, b = (arrays.pop(name) for name in ("e", "a", "b"))
        nothing, read = jnp.zeros_like(e), self.tied * e + (1 - self.tied) * a
        arrays["embed.W_E"] = jnp.stack([nothing, nothing, e])
        arrays["unembed.W_U"] = jnp.stack([nothing, read.astype(e.dtype)], axis=1)
        arrays["unembed.b_U"] = jnp.stack([jnp.zeros_like(b), b])
        return _start.filled(net, arrays, self.d_model**-0.5)


MODEL = ScalarFamily
