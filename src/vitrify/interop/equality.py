r"""Does an exported network say what ours says? The largest difference on the inputs that a certificate is about.

The inputs are those that `vitrify certify` asks about: all short words, words that exercise the listed parts, random
long ones (or the points of nets that read numbers), evenly thinned to some hundred of each kind. A network without a
spec is asked about random inputs. With our answers $a$ and theirs $b$ in one precision, the difference is
$\max |a - b| / \max(1, \max |a|)$: rounding moves large answers by more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from vitrify.arrays import Array
from vitrify.certification import net_check
from vitrify.certification.checks.points import PointCheck
from vitrify.certification.checks.words import WordCheck
from vitrify.encoding import JsonObject
from vitrify.errors import BuildRefused
from vitrify.interop.folders import blank
from vitrify.net.architecture import Architecture, SequenceArchitecture
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.report import wording

Precision = Literal["float32", "float64"]
Inputs = Array  # tokens with the pads in front, or numbers
Run = Callable[[Inputs], Array]

LIMITS: dict[Precision, float] = {"float32": 1e-5, "float64": 1e-12}
WORK = 1e8  # multiplications that the choice of inputs is made for
ROWS = 256  # inputs of one kind and length
FULL_LENGTH_WORDS = 2  # words of full length, if all others are shorter


@dataclass(frozen=True)
class Difference:
    """Both networks in one precision: their difference, relative and absolute, and theirs from our float64 answers."""

    precision: Precision
    difference: float
    absolute: float
    from_float64: float

    @property
    def small(self) -> bool:
        """True if two orders of summation may explain the difference; NaN is never explained."""
        return self.difference <= LIMITS[self.precision]


@dataclass(frozen=True)
class Equality:
    """The report that stands beside an export."""

    target: str
    layout: str
    stored: Precision
    rows: tuple[Difference, ...]
    inputs: int
    answers: int
    asked: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """The report as plain JSON data."""
        return {"format": "vitrify equality report", **asdict(self), "limits": dict(LIMITS)}


@dataclass(frozen=True)
class ComparedInputs:
    """Inputs, batch by batch, and where they come from."""

    batches: tuple[Inputs, ...]
    names: tuple[str, ...]


def asked(weights: Weights[SequenceArchitecture], spec: object | None, seed: int = 0) -> ComparedInputs:
    """The inputs on which an export is compared."""
    net = weights.architecture
    crowded = any(getattr(block, "crowded", False) for block in getattr(net, "blocks", ()))
    if spec is None or crowded or getattr(net, "only_learned", False):
        return ComparedInputs(_random(net, np.random.default_rng(seed)), (f"random inputs (seed {seed})",))
    check = net_check(net, spec, seed=seed, work=WORK)
    if isinstance(check, WordCheck):
        words = [_thinned(part) for batch in check.batches for part in batch.words if part.shape[1] + net.pads]
        names = [f"{wording.domain(batch.domain)}, thinned" for batch in check.batches]
        if check.oracle.language is None and max(part.shape[1] for part in words) < net.max_length:
            words.append(
                np.random.default_rng(seed).integers(1, len(net.inputs), size=(FULL_LENGTH_WORDS, net.max_length))
            )
            names.append(f"{FULL_LENGTH_WORDS} random words of length {net.max_length}")
        padded = [np.concatenate([np.zeros((len(part), net.pads), np.int64), part], axis=1) for part in words]
        return ComparedInputs(tuple(padded), tuple(names))
    assert isinstance(check, PointCheck)
    points = [part for part in check.batches if len(part.inputs)]
    return ComparedInputs(
        tuple(_thinned(part.inputs) for part in points),
        tuple(f"{wording.domain(part.domain)}, thinned" for part in points),
    )


def compared(weights: Weights[Architecture], run: Run, batches: Sequence[Inputs], precision: Precision) -> Difference:
    """Our forward pass and another one, both in one precision."""
    net, dtype = weights.architecture, np.dtype(precision)
    ours = weights.map(lambda array: dense(array).astype(dtype))
    largest, exact = 0.0, 0.0
    size = 1.0
    for inputs in batches:
        batch = inputs if inputs.dtype.kind == "i" else inputs.astype(dtype)
        mine, theirs = np.asarray(net.forward(ours.arrays, batch)), run(batch)
        if theirs.shape != mine.shape or theirs.dtype != dtype:
            raise BuildRefused(
                f"the exported net answers {theirs.dtype} of shape {theirs.shape}, ours {dtype} of shape {mine.shape}"
            )
        right = np.asarray(net.forward(weights.prepared, inputs))
        largest = max(largest, _distance(mine, theirs))
        exact = max(exact, _distance(right, theirs))
        size = max(size, float(np.abs(right).max(initial=0)))
    return Difference(precision, largest / size, largest, exact)


def _distance(one: Array, two: Array) -> float:
    """The largest difference of two arrays, infinite where one of them is not finite."""
    off = np.abs(one.astype(np.float64) - two.astype(np.float64)).max(initial=0)
    return float(off) if np.isfinite(off) else float("inf")


def _thinned(rows: Inputs) -> Inputs:
    """At most so many rows, evenly spaced, the first and the last among them."""
    if len(rows) <= ROWS:
        return rows
    return rows[np.linspace(0, len(rows) - 1, ROWS).round().astype(np.int64)]


def _random(net: SequenceArchitecture, rng: np.random.Generator) -> tuple[Inputs, ...]:
    """Random inputs of the kind that a network reads."""
    if net.reads == "tokens":
        lengths = sorted({max(net.min_length, net.max_length // 2), net.max_length})
        high = max(len(net.inputs), 2)
        words = [rng.integers(1, high, size=(64, length if len(net.inputs) > 1 else 0)) for length in lengths]
        pads = np.zeros((64, net.pads), dtype=np.int64)
        return tuple(np.concatenate([pads, part], axis=1) for part in words if part.shape[1] + net.pads)
    return (rng.uniform(0 if net.reads == "image" else -1, 1, size=(64, *blank(net).shape[1:])),)
