"""Mutation testing: break a net on purpose, many times, and count how often its check notices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic

import numpy as np

from vitrify.certification.checking import net_check
from vitrify.certification.evidence import Progress
from vitrify.net.architecture import Architecture
from vitrify.net.sparse import is_sparse, nonzeros
from vitrify.net.weights import A, Weights

FACTORS = (-1.0, 0.5, 1.5)  # of a weight in a mutant of one weight


@dataclass(frozen=True, eq=False)
class Mutant(Generic[A]):
    """A net with one thing broken; `what` says which, `kind` in which way."""

    what: str
    weights: Weights[A]
    kind: str


@dataclass(frozen=True)
class MutationTest:
    """Result of a mutation test: mutants tried and rejected, and each survivor with how far its answers moved."""

    tried: int
    rejected: int
    survivors: tuple[tuple[str, str], ...]
    seed: int

    @property
    def rate(self) -> float:
        """Return the share of the mutants that were rejected."""
        return self.rejected / self.tried if self.tried else 1.0


def mutants(weights: Weights[A], count: int, seed: int) -> Iterator[Mutant[A]]:
    """Yield random mutants: a non-zero row of an array zeroed, or the β of a head halved to less than its gap demands.

    Every non-zero row of every array, and every such inverse temperature, is equally likely. A row is the last axis of
    an array of two or three axes, and one entry of a vector. A net of zeros has no mutants.
    """
    rng = np.random.default_rng(seed)
    targets: list[tuple[str, int]] = []
    for name in sorted(weights.arrays):
        if not name.endswith(".beta"):
            targets += [(name, row) for row in _nonzero_rows(weights, name).tolist()]
    for head in weights.labels.heads:
        name = f"blocks.{head.block}.attn.beta"
        if head.beta_min is not None and weights.arrays[name][head.index] / 2 < head.beta_min:
            targets.append((name, head.index))
    for _ in range(count if targets else 0):
        name, row = targets[int(rng.integers(len(targets)))]
        if name.endswith(".beta"):
            halved = weights.arrays[name].copy()
            halved[row] /= 2
            yield Mutant(f"{name}[{row}] halved", weights.with_array(name, halved), "temperature")
        else:
            shape = weights.arrays[name].shape
            index = ", ".join(str(int(i)) for i in np.unravel_index(row, shape[:-1] if len(shape) > 1 else shape))
            yield Mutant(f"{name}[{index}] zeroed", weights.with_array(name, _zeroed(weights, name, row)), "zeroed")


def single_weight_mutants(weights: Weights[A], count: int, seed: int) -> Iterator[Mutant[A]]:
    """Yield different random mutants of one weight, which changes its sign, or loses or gains half of its size.

    Every weight that is not zero is equally likely; inverse temperatures are left alone.
    """
    rng = np.random.default_rng(seed)
    names = [name for name in sorted(weights.arrays) if not name.endswith(".beta")]
    ends = np.cumsum([nonzeros(weights.arrays[name]) for name in names])
    choices = len(FACTORS) * int(ends[-1]) if ends.size else 0
    for choice in rng.choice(choices, min(count, choices), replace=False).tolist() if choices else ():
        place, factor = choice // len(FACTORS), FACTORS[choice % len(FACTORS)]
        at = int(np.searchsorted(ends, place, side="right"))
        name, array = names[at], weights.arrays[names[at]].copy()
        number = place - int(ends[at - 1] if at else 0)  # of the weight in its array
        if is_sparse(array):
            row = int(np.searchsorted(array.indptr, number, side="right")) - 1
            index: tuple[int, ...] = (row, int(array.indices[number]))
            array.data[number] *= factor
        else:
            index = tuple(int(axis[number]) for axis in np.nonzero(array))
            array[index] *= factor
        what = f"{name}[{', '.join(map(str, index))}] times {factor:g}"
        yield Mutant(what, weights.with_array(name, array), "weight")


def mutation_test(
    weights: Weights[Architecture],
    spec: object,
    *,
    count: int = 200,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: float,
) -> MutationTest:
    """Check `count` mutants of a net against its spec, and return how many were rejected and which survived."""
    check = net_check(weights.architecture, spec, seed=seed, **settings)  # type: ignore[arg-type]
    survivors, tried = [], 0
    for tried, mutant in enumerate(mutants(weights, count, seed), start=1):
        evidence = check.run(mutant.weights, hardest_first=True)
        if evidence.verdict == "holds":
            largest = evidence.measured("largest error") or 0.0
            survivors.append((mutant.what, f"no answer on the whole domain moves by more than {largest:.3g}"))
        if progress:
            progress(tried, count)
    return MutationTest(tried, tried - len(survivors), tuple(survivors), seed)


def _nonzero_rows(weights: Weights[Architecture], name: str) -> np.ndarray:
    array = weights.arrays[name]
    if is_sparse(array):
        return np.flatnonzero(np.diff(array.indptr))
    return np.flatnonzero(np.asarray(array).reshape(-1, array.shape[-1] if array.ndim > 1 else 1).any(axis=1))


def _zeroed(weights: Weights[Architecture], name: str, row: int) -> np.ndarray:
    array = weights.arrays[name].copy()
    if is_sparse(array):
        array.data[array.indptr[row] : array.indptr[row + 1]] = 0.0
        array.eliminate_zeros()
    else:
        array.reshape(-1, array.shape[-1] if array.ndim > 1 else 1)[row] = 0.0
    return array  # type: ignore[no-any-return]
