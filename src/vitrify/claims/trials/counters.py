"""Answers of parity nets by the number of ones, beyond the numbers of training, and null hypotheses about them.

A trial "NET, k = K" is trained on words with at most K ones. Its probes are accuracies [seed, ones] on words with 0 to
3K ones: `SAME` on words as long as the longest of training, `LONGER` on words of twice that length.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.trial import recalled

SAME, LONGER = "T", "2T"
TRANSFORMERS = ("none", "learned")  # by their position encoding


def largest(name: str) -> int:
    """Return the largest number of ones in the training words of a trial."""
    return int(name.rpartition(" ")[2])


def odd(accuracy: Array) -> Array:
    """Return the share of answers `odd` [seed, ones] that accuracies come from, or the other way round."""
    ones = np.arange(accuracy.shape[-1])
    return np.where(ones % 2, accuracy, 1 - accuracy)


right = odd  # the same map: it is its own inverse


def one_answer(shares: Array, k: int) -> Array:
    """Return the share of the more frequent answer among words with k + 2 ones or more, by seed."""
    beyond = shares[:, k + 2 :].mean(axis=1)
    return np.maximum(beyond, 1 - beyond)


def last_answer(shares: Array, k: int) -> Array:
    """Return the share of the right answer for k ones among words with k + 2 ones or more, by seed."""
    beyond = shares[:, k + 2 :].mean(axis=1)
    return beyond if k % 2 else 1 - beyond


def _transformers(subject: Subject, measured: Measured, rng: np.random.Generator) -> Iterator[tuple[str, Array, Array]]:
    """Yield for each trial of transformers its name, redrawn seeds, and their shares of `odd` at T bits."""
    for name, nets in recalled(subject, measured).items():
        if name.startswith(TRANSFORMERS):
            drawn = rng.integers(len(nets.final(SAME)), size=len(nets.final(SAME)))
            yield name, drawn, odd(nets.final(SAME)[drawn])


def _with(measured: Measured, name: str, drawn: Array, shares: Array, what: str = SAME) -> Measured:
    """Return measurements with other final shares of `odd` of redrawn seeds."""
    ends = {
        key: array[drawn][:, -1:] for key, array in measured.items() if key.startswith(f"{name}/") and array.ndim > 1
    }
    lengths = {f"{name}/lengths": np.ones(len(drawn), int)}
    return {**measured, **ends, **lengths, f"{name}/{what}": right(shares)[:, None]}


def random_answers(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which every number of ones beyond k has an answer of its own, drawn for each seed."""
    for name, drawn, shares in _transformers(subject, measured, rng):
        k = largest(name)
        shares[:, k + 1 :] = rng.random(shares[:, k + 1 :].shape) < _share_odd(k)
        measured = _with(measured, name, drawn, shares)
    return measured


def random_answer(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which all numbers of ones beyond k have one answer, drawn for each seed."""
    for name, drawn, shares in _transformers(subject, measured, rng):
        k = largest(name)
        shares[:, k + 1 :] = rng.random((len(shares), 1)) < _share_odd(k)
        measured = _with(measured, name, drawn, shares)
    return measured


def _share_odd(k: int) -> float:
    """Return how frequent the answer `odd` is among 0 to k ones."""
    return ((k + 1) // 2) / (k + 1)


def share_read(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which words of 2T bits are answered like words of T bits with half as many ones."""
    for name, drawn, shares in _transformers(subject, measured, rng):
        ones = np.arange(shares.shape[1])
        half = np.stack([np.interp(ones / 2, ones, own) for own in shares])
        measured = _with(measured, name, drawn, half, LONGER)
    return measured


def saturating(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which recurrences answer as a transformer with the same k does."""
    nets = recalled(subject, measured)
    shares = {largest(name): drawn for name, _, drawn in _transformers(subject, measured, rng)}
    for name in nets:
        if not name.startswith(TRANSFORMERS):
            seeds = len(nets[name].final(SAME))
            measured = _with(measured, name, rng.integers(seeds, size=seeds), shares[largest(name)])
    return measured


NULL_FUNCTIONS = random_answers, random_answer, share_read, saturating
