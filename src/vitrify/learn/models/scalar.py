r"""One-layer transformers that read a bit as a number: the smallest ones whose loss on a chain of bits has been solved.

A bit $x_n$ enters as $x_n e + p_n$, a multiple of one vector beside a learned place; one head and $4d$ ReLU units
follow, without norms and biases; the logit of a 1 is $\langle a, z_n\rangle + b$. Weight tying makes $a = e$. Source:
Makkuva et al. 2024, arXiv 2402.04161.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.errors import InputError
from vitrify.learn.models import _start
from vitrify.learn.models.catalogue import Family, Parameters, answers_of, inputs_of, normal, too_small
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.sandboxes.catalogue import Sandbox

TRAINED = ("W_pos", "W_Q", "W_K", "W_V", "W_O", "W_in", "W_out")


def low_rank(net: Transformer, e: Any, w: Any) -> Parameters:
    r"""The form that trained networks of this kind come near to, which has two numbers.

    Tokens are $e\,\alpha\,(x - 1/2)$, with a unit vector $\alpha$ of equal numbers, and all units read with
    $|w|\,\alpha$ and write $w\,\alpha$, up to a factor. With tied weights and $e > 0$ the logit after $x$ is
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
class ScalarFamily(Family):
    r"""One head and `units` ReLU units (4 d_model, if not given) in `d_model` dimensions.

    The logit is read by $\text{tied}\,e + (1 - \text{tied})\,a$: 1 ties the weights, and then $a$ does nothing; 0 does
    not; it is a number so that both can be members of one program. First weights are normal with the standard deviation
    `scale`, of what head and units write with $\sqrt 2$ smaller, and b = 0. To them the low-rank form with the numbers
    `e` and `w` is added (see `low_rank`).
    """

    TRACED: ClassVar[tuple[str, ...]] = ("tied", "scale", "e", "w")
    SMALL: ClassVar[Mapping[str, Any]] = MappingProxyType({"d_model": 4, "scale": 0.2})

    d_model: int = 8
    units: int | None = None
    tied: float = 1.0
    scale: float = 0.02
    e: float = 0.0
    w: float = 0.0

    def problems(self) -> Iterator[str]:
        yield from too_small(self, d_model=1, scale=0)
        if not 0 <= self.tied <= 1:
            yield f"tied must lie in [0, 1], not {self.tied:g}"

    def architecture(self, sandbox: Sandbox) -> Transformer:
        inputs = inputs_of(sandbox)
        if len(sandbox.symbols) != 2 or sandbox.answers != sandbox.symbols:
            raise InputError(f"a bit is one of two symbols, read and answered alike: {sandbox.name} has others")
        units = 4 * self.d_model if self.units is None else self.units
        return Transformer(
            inputs=inputs,
            output=answers_of(sandbox),
            max_length=sandbox.tokens,
            d_model=self.d_model,
            blocks=(Block((Head(),), self.d_model, self.d_model, units),),
            pads=0,
            name=f"one layer that reads bits as numbers, on {sandbox.name}",
        )

    def first(self, net: Transformer, key: Array) -> Parameters:
        shapes = {name: shape for name, shape in net.shapes().items() if name.endswith(TRAINED)}
        shapes |= {"e": (self.d_model,), "a": (self.d_model,)}
        writes = {name: np.float32(np.sqrt(0.5)) for name in shapes if name.endswith(("W_O", "W_out"))}
        found = normal(key, shapes, {name: self.scale * writes.get(name, np.float32(1)) for name in shapes})
        for name, form in low_rank(net, self.e, self.w).items():
            found[name] += form
        return found | {"b": jnp.zeros(())}

    def arrays(self, net: Transformer, parameters: Mapping[str, Array]) -> dict[str, Array]:
        found = dict(parameters)
        e, a, b = (found.pop(name) for name in ("e", "a", "b"))
        nothing, read = jnp.zeros_like(e), self.tied * e + (1 - self.tied) * a
        found["embed.W_E"] = jnp.stack([nothing, nothing, e])
        found["unembed.W_U"] = jnp.stack([nothing, read.astype(e.dtype)], axis=1)
        found["unembed.b_U"] = jnp.stack([jnp.zeros_like(b), b])
        return _start.filled(net, found, self.d_model**-0.5)


MODEL = ScalarFamily
