r"""Sensitivity of activations to synonyms: how far they move when a hidden symbol has another production.

A layer has found the symbols of a height if it does not tell their productions apart (synonyms), but the symbols. With
the activations $f_k$ of layer $k$, sequences $x$, the same sequences $x'$ with all productions of height $h$ exchanged
for other ones of the same symbols, and $x''$ with all symbols of height $h$ exchanged for other symbols, it moves $$
\frac{E\,|f_k(x) - f_k(x')|^2}{E\,|f_k(x) - f_k(x'')|^2}, $$ which is 0 where it has found the symbols, and about 1
where it sees nothing but what stands below. In the spirit of Cagnetta et al. 2024, arXiv 2307.02129.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.learn.measure import TEST_SEED
from vitrify.sandboxes.catalogue import Example, examples
from vitrify.sandboxes.hierarchy import HierarchySandbox

Layers = Callable[[Mapping[str, Array], Example], list[Array]]  # arrays, a batch -> the activations of each layer


def moved(box: HierarchySandbox, layers: Layers, count: int = 256) -> Callable[[Mapping[str, Array], float], Array]:
    """A compiled function of a net's arrays and the grammar it was trained on: how far layers move [height, layer]."""

    def one(arrays: Mapping[str, Array], grammar: Array) -> Array:
        own = replace(box, grammar=grammar)
        batch = examples(own, TEST_SEED, "probe", 0, count)
        here, shifts = layers(arrays, batch), []
        for height in range(1, box.L + 1):
            keys = jax.random.split(jax.random.key(height, impl="threefry2x32"), count)
            other = [
                layers(arrays, jax.vmap(lambda r, key, h=height, act=act: act(r, key, h))(batch, keys))
                for act in (own.synonyms, own.others)
            ]
            shifts.append([_far(a, b) / jnp.maximum(_far(a, c), 1e-12) for a, b, c in zip(here, *other, strict=True)])
        return jnp.array(shifts)

    compiled = jax.jit(one)
    return lambda arrays, grammar: np.asarray(compiled(arrays, jnp.float32(grammar)))


def _far(one: Array, other: Array) -> Array:
    return jnp.square(one - other).mean()
