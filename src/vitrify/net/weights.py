"""The value that everything turns on: an architecture, its arrays, and the names of its parts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Generic

import numpy as np
from typing_extensions import TypeVar

from vitrify.arrays import Matrix
from vitrify.errors import FolderError
from vitrify.net.architecture import Architecture
from vitrify.net.labels import Labels
from vitrify.net.sparse import is_sparse, nonzeros, prepare, prepare_heads
from vitrify.net.transformer import Transformer

A = TypeVar("A", bound=Architecture, default=Transformer)


@dataclass(frozen=True, eq=False)
class Weights(Generic[A]):
    """Plain named arrays with their layout and labels; a built net and a trained net are the same type.

    Large, mostly empty matrices are SciPy CSR arrays, or stacks of them; all others are dense. `about` says where the
    net comes from.
    """

    architecture: A
    arrays: Mapping[str, Matrix]
    labels: Labels = field(default_factory=Labels)
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        arrays = {name: array.tocsr() if is_sparse(array) else array for name, array in self.arrays.items()}
        object.__setattr__(self, "arrays", MappingProxyType(arrays))
        object.__setattr__(self, "about", MappingProxyType(dict(self.about)))
        wanted = self.architecture.shapes()
        problems = [f"{name} is missing" for name in wanted if name not in self.arrays]
        problems += [f"{name} is not part of this architecture" for name in self.arrays if name not in wanted]
        problems += [
            f"{name} must have shape {wanted[name]}, has {tuple(array.shape)}"
            for name, array in self.arrays.items()
            if name in wanted and tuple(array.shape) != wanted[name]
        ]
        if problems:
            raise FolderError("the arrays do not fit the architecture: " + "; ".join(problems[:8]))

    def __repr__(self) -> str:
        net, size = self.architecture, Ledger.of(self)
        return (
            f"Weights({net.name!r}, layers={size.layers}, heads={size.heads}, d_model={size.d_model}, "
            f"units={size.units}, nonzero={size.nonzero})"
        )

    def _repr_html_(self) -> str:
        from vitrify.net.display import weights_card

        return weights_card(self)

    @cached_property
    def prepared(self) -> Mapping[str, Any]:
        """The arrays in the form in which a NumPy run is cheapest."""
        # These are multiplied by `matmul`, W_O by `matmul_heads`; all others are used as they are.
        multiplied = ("W_Q", "W_K", "W_V", "W_A", "W_B", "W_C", "W_in", "W_out", "W_U")
        ready = {name: prepare(array) if name.endswith(multiplied) else array for name, array in self.arrays.items()}
        return ready | {name: prepare_heads(array) for name, array in self.arrays.items() if name.endswith("W_O")}

    def map(self, convert: Callable[[Matrix], Any]) -> Weights[A]:
        """The same net with every array converted, for example to JAX or to another precision."""
        return replace(self, arrays={name: convert(array) for name, array in self.arrays.items()})

    def with_array(self, name: str, array: Matrix) -> Weights[A]:
        """The same net with one array replaced: how mutations and ablations are made."""
        return replace(self, arrays={**self.arrays, name: array})

    @cached_property
    def digest(self) -> str:
        """SHA-256 of architecture and arrays: equal for equal nets, to the bit."""
        unnamed: Any = replace(self.architecture, name="")  # type: ignore[type-var]  # every architecture is one
        sha = hashlib.sha256(repr(unnamed).encode())
        for name in sorted(self.arrays):
            array = self.arrays[name]
            parts = (array.data, array.indices, array.indptr) if is_sparse(array) else (np.asarray(array),)
            for part in parts:
                sha.update(f"{name}{part.dtype}{part.shape}".encode())
                sha.update(np.ascontiguousarray(part).tobytes())
        return sha.hexdigest()


@dataclass(frozen=True)
class Ledger:
    """Measured sizes of a net: what a size formula is compared with."""

    layers: int
    attention_layers: int
    heads: int
    heads_per_layer: tuple[int, ...]
    d_model: int
    d_head: int
    units: int
    units_per_layer: tuple[int, ...]
    nonzero: int
    dense: int
    max_abs: float

    @classmethod
    def of(cls, weights: Weights[Any]) -> Ledger:
        """Measure a net."""
        net, arrays = weights.architecture, weights.arrays
        heads, units = net.heads_per_layer, net.units_per_layer
        return cls(
            layers=len(units),
            attention_layers=sum(1 for count in heads if count),
            heads=sum(heads),
            heads_per_layer=heads,
            d_model=net.width,
            d_head=net.d_head,
            units=sum(units),
            units_per_layer=units,
            nonzero=sum(nonzeros(array) for array in arrays.values()),
            dense=sum(int(np.prod(array.shape)) for array in arrays.values()),
            max_abs=max((_largest(array) for array in arrays.values()), default=0.0),
        )


def _largest(array: Matrix) -> float:
    values = array.data if is_sparse(array) else np.asarray(array)
    return float(np.abs(values).max()) if values.size else 0.0
