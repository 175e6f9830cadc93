"""Mutation testing: break a net on purpose and see whether its examination notices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitrify.certify.evidence import Progress
from vitrify.certify.examine import examination
from vitrify.net.sparse import is_sparse
from vitrify.net.weights import Weights


@dataclass(frozen=True, eq=False)
class Mutation:
    """A net with one thing broken."""

    what: str
    weights: Weights[Any]


@dataclass(frozen=True)
class Campaign:
    """How many mutations were tried and rejected, and which survived, each with the reason why it does no harm."""

    tried: int
    rejected: int
    survivors: tuple[tuple[str, str], ...]
    seed: int

    @property
    def rate(self) -> float:
        return self.rejected / self.tried if self.tried else 1.0


def mutations(weights: Weights[Any], count: int, seed: int) -> Iterator[Mutation]:
    """Random mutations: a non-zero row of an array set to zero, or a temperature halved below what its gap demands.

    Every non-zero row of every array, and every such temperature, is equally likely. A row is the last axis of an
    array of two or three axes, and one number of a vector. A net of zeros has no mutations.
    """
    rng = np.random.default_rng(seed)
    targets: list[tuple[str, int]] = []
    for name in sorted(weights.arrays):
        if not name.endswith(".beta"):
            targets += [(name, row) for row in _nonzero_rows(weights, name).tolist()]
    soft = [
        h for h in weights.labels.heads if h.beta_min is not None and _beta(weights, h.block)[h.place] / 2 < h.beta_min
    ]
    targets += [(f"blocks.{head.block}.attn.beta", head.place) for head in soft]
    for _ in range(count if targets else 0):
        name, row = targets[int(rng.integers(len(targets)))]
        if name.endswith(".beta"):
            yield Mutation(f"{name}[{row}] halved", weights.with_array(name, _halved(weights, name, row)))
        else:
            yield Mutation(
                f"{name}[{_place(weights, name, row)}] zeroed", weights.with_array(name, _zeroed(weights, name, row))
            )


def campaign(
    weights: Weights[Any],
    spec: object,
    *,
    count: int = 200,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: float,
) -> Campaign:
    """Put `count` mutations of a net to its examination."""
    questions = examination(weights.architecture, spec, seed=seed, **settings)  # type: ignore[arg-type]
    survivors, tried = [], 0
    for tried, mutation in enumerate(mutations(weights, count, seed), start=1):
        evidence = questions.run(mutation.weights, hardest_first=True)
        if evidence.verdict == "holds":
            survivors.append((mutation.what, _reason(evidence.measured)))
        if progress:
            progress(tried, count)
    return Campaign(tried, tried - len(survivors), tuple(survivors), seed)


def _reason(measured: object) -> str:
    assert isinstance(measured, dict) or hasattr(measured, "get")
    error = measured.get("largest error", 0.0)
    return f"no answer on the whole domain moves by more than {error:.3g}"


def _beta(weights: Weights[Any], block: int) -> np.ndarray:
    return np.asarray(weights.arrays[f"blocks.{block}.attn.beta"])


def _nonzero_rows(weights: Weights[Any], name: str) -> np.ndarray:
    array = weights.arrays[name]
    if is_sparse(array):
        return np.flatnonzero(np.diff(array.indptr))
    return np.flatnonzero(np.asarray(array).reshape(-1, array.shape[-1] if array.ndim > 1 else 1).any(axis=1))


def _place(weights: Weights[Any], name: str, row: int) -> str:
    shape = weights.arrays[name].shape
    return ", ".join(str(int(i)) for i in np.unravel_index(row, shape[:-1] if len(shape) > 1 else shape))


def _zeroed(weights: Weights[Any], name: str, row: int) -> np.ndarray:
    array = weights.arrays[name].copy()
    if is_sparse(array):
        array.data[array.indptr[row] : array.indptr[row + 1]] = 0.0
        array.eliminate_zeros()
        return array  # type: ignore[no-any-return]
    array.reshape(-1, array.shape[-1] if array.ndim > 1 else 1)[row] = 0.0
    return array  # type: ignore[no-any-return]


def _halved(weights: Weights[Any], name: str, place: int) -> np.ndarray:
    array: np.ndarray = weights.arrays[name].copy()
    array[place] /= 2
    return array
