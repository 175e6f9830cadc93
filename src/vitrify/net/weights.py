"""A network: its architecture, its arrays, and the labels of its parts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, overload

import numpy as np
from typing_extensions import TypeIs, TypeVar

from vitrify.arrays import Arrays, Floats, Matrix
from vitrify.encoding import JsonMapping
from vitrify.errors import FolderError
from vitrify.net.architecture import Architecture, SequenceArchitecture
from vitrify.net.labels import Labels
from vitrify.net.sparse import is_sparse, nonzeros, prepare, prepare_heads
from vitrify.net.transformer import Transformer

if TYPE_CHECKING:
    from vitrify.net.sparse_forward import SparseForward

A = TypeVar("A", bound=Architecture, default=Transformer, covariant=True)
K = TypeVar("K", bound=Architecture)


@dataclass(frozen=True, eq=False)
class Weights(Generic[A]):
    """A network: named arrays with their architecture and labels; built and trained nets have the same type.

    Large, mostly empty matrices are SciPy CSR arrays, or stacks of them; all others are dense. `about` records the
    origin of the net.
    """

    architecture: A
    arrays: Arrays
    labels: Labels = field(default_factory=Labels)
    about: JsonMapping = field(default_factory=dict)

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

    def __reduce__(self) -> tuple[object, ...]:
        return Weights, (self.architecture, dict(self.arrays), self.labels, dict(self.about))

    @overload
    def __call__(self, tokens: Sequence[str]) -> Floats: ...

    @overload
    def __call__(self, tokens: Sequence[list[str] | tuple[str, ...]]) -> list[Floats]: ...

    def __call__(self, tokens: Sequence[str] | Sequence[list[str] | tuple[str, ...]]) -> Floats | list[Floats]:
        """Return the logits [position, output symbol] of a sequence, or a list of them for a list of sequences.

        A sequence is a list of tokens, or a string of one-letter tokens; in a batch, each one is a list. Position 0 is
        before the first token, position t after t tokens. The columns are `net.architecture.output.symbols`.
        """
        from vitrify.net.inference import encode_input, logits_of_inputs

        one = all(isinstance(token, str) for token in tokens)
        sequences: Any = [tokens] if one else tokens
        logits = list(logits_of_inputs(self, [encode_input(self, sequence) for sequence in sequences]))
        return logits[0] if one else logits

    def __repr__(self) -> str:
        net, size = self.architecture, self.sizes
        return (
            f"Weights({net.name!r}, layers={size.layers}, heads={size.heads}, d_model={size.d_model}, "
            f"units={size.units}, nonzero={size.nonzero})"
        )

    def _repr_html_(self) -> str:
        from vitrify.net.display import weights_card

        return weights_card(self)

    @cached_property
    def prepared(self) -> Arrays:
        """The arrays in the form in which NumPy runs fastest."""
        # These are multiplied by `matmul`, W_O by `matmul_heads`; all others are used as they are.
        multiplied = ("W_Q", "W_K", "W_V", "W_A", "W_B", "W_C", "W_in", "W_out", "W_U")
        ready = {name: prepare(array) if name.endswith(multiplied) else array for name, array in self.arrays.items()}
        return ready | {name: prepare_heads(array) for name, array in self.arrays.items() if name.endswith("W_O")}

    @cached_property
    def by_position(self) -> SparseForward | None:
        """The forward pass on sparse matrices, where all heads attend by position alone; else None."""
        from vitrify.net.sparse_forward import SparseForward

        return SparseForward.of(self.architecture, self.arrays)

    def map(self, convert: Callable[[Matrix], Matrix]) -> Weights[A]:
        """Return the same net with every array converted, for example to JAX or to another precision."""
        return replace(self, arrays={name: convert(array) for name, array in self.arrays.items()})

    def with_array(self, name: str, array: Matrix) -> Weights[A]:
        """The same net with one array replaced: how mutants and ablations are made."""
        return replace(self, arrays={**self.arrays, name: array})

    @cached_property
    def sizes(self) -> Sizes:
        """Depth, heads, width, units and parameters, measured on the arrays."""
        heads, units = self.architecture.heads_per_layer, self.architecture.units_per_layer
        arrays = self.arrays.values()
        entries = [array.data if is_sparse(array) else np.asarray(array) for array in arrays]
        return Sizes(
            layers=len(units),
            attention_layers=sum(1 for count in heads if count),
            heads=sum(heads),
            heads_per_layer=heads,
            d_model=self.architecture.width,
            d_head=self.architecture.d_head,
            units=sum(units),
            units_per_layer=units,
            nonzero=sum(nonzeros(array) for array in arrays),
            dense=sum(int(np.prod(array.shape)) for array in arrays),
            max_abs=max((float(np.abs(values).max()) for values in entries if values.size), default=0.0),
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of architecture and arrays: equal for equal nets, to the bit."""
        unnamed: object = replace(self.architecture, name="")  # type: ignore[type-var]  # every architecture is one
        sha = hashlib.sha256(repr(unnamed).encode())
        for name in sorted(self.arrays):
            array = self.arrays[name]
            parts = (array.data, array.indices, array.indptr) if is_sparse(array) else (np.asarray(array),)
            for part in parts:
                sha.update(f"{name}{part.dtype}{part.shape}".encode())
                sha.update(np.ascontiguousarray(part).tobytes())
        return sha.hexdigest()


def has_architecture(weights: Weights[Architecture], kind: type[K]) -> TypeIs[Weights[K]]:
    """Return true if a net has a kind of architecture; narrows its type."""
    return isinstance(weights.architecture, kind)


def has_positions(weights: Weights[Architecture]) -> TypeIs[Weights[SequenceArchitecture]]:
    """Return true if a net has outputs at positions, as transformers and recurrent nets do; narrows its type."""
    return hasattr(weights.architecture, "max_length")


def has_bounded_length(weights: Weights[Architecture]) -> bool:
    """Return whether the arrays of a built net that reads words were made for its maximum length.

    They were if they have a table of positions, or a softmax that must be sharp enough to select among that many keys.
    A recurrent net, and a transformer without both, has the same arrays at every length.
    """
    net, arrays = weights.architecture, weights.arrays
    if net.reads != "tokens" or not has_positions(weights):
        return False
    positions = arrays.get("pos_embed.W_pos")
    selects = weights.architecture.soft and any(head.gap is not None for head in weights.labels.heads)
    return selects or (positions is not None and nonzeros(positions) > 0)


@dataclass(frozen=True)
class Sizes:
    """Measured sizes of a net (`net.sizes`); a construction declares formulas for them.

    `dense` counts all parameters, `nonzero` those that are not zero; `max_abs` is the largest absolute parameter.
    """

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
