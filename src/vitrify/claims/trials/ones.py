"""Accuracies by the length of a word of bits and its number of ones, and null hypotheses about both.

Nets are trained on words of up to T = `longest` bits with at most k = `ones` ones; the probe of a length is the
accuracy for each number of ones from 0 to 2k.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.trial import recalled


def up_to(data: Mapping[str, Any], right: Array) -> Array:
    """Return the accuracy [length, seed] at T, 2T and 4T bits with the numbers of ones of training."""
    at = [data["lengths"].index(times * data["longest"]) for times in (1, 2, 4)]
    return np.nanmean(right[:, at, : data["ones"] + 1], axis=2).T


def beyond(data: Mapping[str, Any], right: Array) -> Array:
    """Return the accuracy [seed] at T bits with more ones."""
    return np.nanmean(right[:, data["lengths"].index(data["longest"]), data["ones"] + 1 :], axis=1)


def _redrawn(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Iterator[tuple[str, Array]]:
    """Yield for each code the final accuracies [length, seed, ones] of redrawn seeds."""
    for code, nets in recalled(subject, arrays).items():
        right = np.stack([nets.final(str(length)) for length in subject.data["lengths"]])
        yield code, right[:, rng.integers(right.shape[1], size=right.shape[1])]


def _with(subject: Subject, arrays: Measured, code: str, right: Array) -> Measured:
    """Return measurements with other final accuracies [length, seed, ones] of a code."""
    last = {f"{code}/{length}": own[:, None] for length, own in zip(subject.data["lengths"], right, strict=True)}
    ends = {f"{code}/accuracy": arrays[f"{code}/accuracy"][:, -1:], f"{code}/lengths": np.ones(right.shape[1], int)}
    return {**arrays, **last, **ends}


def share_read(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which longer words are answered like words of T bits with the same share of ones."""
    data, ones = subject.data, np.arange(2 * subject.data["ones"] + 1)
    for code, right in _redrawn(subject, arrays, rng):
        base = data["lengths"].index(data["longest"])
        odd = np.where(ones % 2, right[base], 1 - right[base])  # share of the answers `odd`, [seed, ones]
        for at, length in enumerate(data["lengths"]):
            alike = np.stack([np.interp(ones * data["longest"] / length, ones, own) for own in odd])
            right[at] = np.where(ones % 2, alike, 1 - alike)
        arrays = _with(subject, arrays, code, right)
    return arrays


def harmless(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which more ones at T bits have the accuracy of fewer ones at 2T bits."""
    data = subject.data
    for code, right in _redrawn(subject, arrays, rng):
        base, twice = (data["lengths"].index(times * data["longest"]) for times in (1, 2))
        right[base, :, data["ones"] + 1 :] = right[twice, :, 1 : data["ones"] + 1]
        arrays = _with(subject, arrays, code, right)
    return arrays


def exchanged(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which half of the seeds have exchanged mean accuracies at 2T bits and at more ones."""
    data = subject.data
    for code, right in _redrawn(subject, arrays, rng):
        base, twice = (data["lengths"].index(times * data["longest"]) for times in (1, 2))
        more, longer = right[base, :, data["ones"] + 1 :], right[twice, :, : data["ones"] + 1]
        swap = rng.random(len(more)) < 0.5
        more[swap], longer[swap] = (np.nanmean(own, axis=1)[swap, None] for own in (longer, more))
        arrays = _with(subject, arrays, code, right)
    return arrays
