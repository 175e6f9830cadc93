"""Networks trained on short words of a task and tested on longer ones; null hypotheses about longer words.

Null hypotheses replace the accuracies [seed, length] at lengths beyond those of training, and redraw the seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials import programs
from vitrify.claims.trials.programs import TIMES, sandbox
from vitrify.claims.trials.trial import Trial, measured, recalled
from vitrify.encoding import JsonObject
from vitrify.learn.evaluation import accuracy_on
from vitrify.learn.models.catalogue import Family
from vitrify.learn.models.transformer import Positions, TransformerFamily
from vitrify.learn.recipe import Recipe

PER_LENGTH = 64  # test words of each length, on average
FEW_SEEDS = 5  # of trials that are reported and not judged

PAIRS = ("majority", "parity"), ("copy different letters", "copy repeated letters")

Words: TypeAlias = tuple[str, int, Family, Recipe]  # task, longest training word, architecture, training


def length_trial(task: str, longest: int, family: Family, recipe: Recipe, seeds: Sequence[int]) -> Trial:
    """Return the trial on words of up to `longest` letters; the probe `right` is the accuracy by length from 0 on."""
    most = TIMES * longest
    queries = sandbox(task, longest, 1, most)
    if isinstance(family, TransformerFamily):
        family = replace(family, max_positions=queries.tokens)
    probes = {"right": accuracy_on(family, queries, PER_LENGTH * most, by="length", bins=most + 1)}
    recipe = replace(recipe, evals_per_doubling=0, random_offset=True, test_examples=64)
    return Trial(sandbox(task, longest, 1, longest), family, recipe, seeds, probes=probes)


def family_name(family: Family) -> str:
    """Return the position encoding of a transformer, or the kind of cell of a recurrent net."""
    if isinstance(family, TransformerFamily):
        return family.positions
    return str(getattr(family, "kind", family.name)).upper()


def other_positions(words: Words, steps: int, *codes: Positions) -> list[Words]:
    """Return the same transformer with other ways to encode positions."""
    task, longest, family, recipe = words
    families = [replace(family, positions=code) for code in codes]  # type: ignore[call-arg]
    return [(task, longest, own, replace(recipe, steps=steps)) for own in families]


def subject(name: str, judged: Sequence[Words], others: Sequence[Words], seeds: Sequence[int]) -> Subject:
    """Return the subject with all trials; `others` are reported only and have fewer seeds."""
    data: JsonObject = {"judged": {}, "others": {}}
    trials = {}
    for part, drawn, listed in (("judged", seeds, judged), ("others", seeds[:FEW_SEEDS], others)):
        for task, longest, family, recipe in listed:
            kind = family_name(family)
            own = task if kind == "learned" else f"{task}, {kind}"
            data[part][own] = task, longest, kind
            trials[own] = length_trial(task, longest, family, recipe, drawn)
    return Subject(name, data=data, trials=trials)


def measure(subject: Subject) -> Measured:
    """Return the curves, and for each judged task: lengths of its program, its mistakes, and what guessing reaches."""
    arrays = dict(measured(subject))
    for name, (task, n, _) in subject.data["judged"].items():
        if name in subject.trials:
            short, root = (programs.shortest_program(task, n, most) for most in (n, TIMES * n))
            mistakes = [programs.wrong(task, n, root, at) for at in (1, n, 2 * n, TIMES * n)]
            arrays[f"{name}/program"] = np.array([programs.length(short), programs.length(root)])
            arrays |= {f"{name}/mistakes": np.array(mistakes), f"{name}/guess": np.array(programs.frequent(task, n))}
    return arrays


def final(subject: Subject, arrays: Measured, name: str) -> Array:
    """Return the accuracies [seed, length] of a task after training, for lengths from 0 on."""
    return recalled(subject, arrays)[name].final("right")


def pairs(subject: Subject) -> list[tuple[str, str]]:
    """Return the pairs of tasks with equal answers that are judged, first the one with a short program."""
    return [pair for pair in PAIRS if set(pair) <= set(subject.data["judged"])]


def between(shares: Array, low: int, high: int) -> Array:
    """Return the mean of shares [seed, length] over lengths from `low` to `high`, for every seed."""
    return np.nanmean(shares[:, low - 1 : high], axis=1)


def thirds(n: int) -> tuple[tuple[int, int], ...]:
    """Return the three ranges of lengths: up to n, up to 2n, and up to 4n."""
    return (1, n), (n + 1, 2 * n), (2 * n + 1, TIMES * n)


# Null hypotheses


def _redrawn(subject: Subject, arrays: Measured, rng: np.random.Generator) -> dict[str, tuple[int, Array]]:
    """Return the longest training word and the accuracies [seed, length] of redrawn seeds for each judged task."""
    judged = {name: n for name, (_, n, _) in subject.data["judged"].items()}
    shares = {name: final(subject, arrays, name) for name in judged}
    count = min(map(len, shares.values()))
    drawn = rng.integers(count, size=count)
    return {name: (n, shares[name][drawn]) for name, n in judged.items()}


def _with(arrays: Measured, shares: Mapping[str, Array]) -> Measured:
    """Return measurements with other accuracies [seed, length]."""
    right = {f"{name}/right": own[:, None] for name, own in shares.items()}
    return {**arrays, **right, **{f"{name}/lengths": np.ones(len(own), int) for name, own in shares.items()}}


def guessed(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which longer words get the answer that is the most frequent at their length."""
    null = {}
    for name, (n, shares) in _redrawn(subject, arrays, rng).items():
        right = arrays[f"{name}/guess"][n:]
        shares[:, n + 1 :] = rng.binomial(PER_LENGTH, right, size=(len(shares), len(right))) / PER_LENGTH
        null[name] = shares
    return _with(arrays, null)


def compounded(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which each further letter adds as many mistakes as a letter up to the trained length."""
    null = {}
    for name, (n, shares) in _redrawn(subject, arrays, rng).items():
        letter = np.nanmean(shares[:, 1 : n + 1], axis=1, keepdims=True) ** (2 / (n + 1))  # accuracy of one letter
        right = letter ** np.arange(n + 1, TIMES * n + 1)
        shares[:, n + 1 :] = rng.binomial(PER_LENGTH, right) / PER_LENGTH
        null[name] = shares
    return _with(arrays, null)


def exchanged(subject: Subject, arrays: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which the two tasks of a pair have each other's accuracies in a random half of the seeds.

    Accuracies are exchanged at the same length over the longest of training.
    """
    redrawn = _redrawn(subject, arrays, rng)
    for one, other in pairs(subject):
        (n, first), (m, second) = redrawn[one], redrawn[other]
        swap = rng.random((len(first), 1)) < 0.5
        at, there = (np.ceil(np.arange(TIMES * k + 1) * j / k).astype(int) for k, j in ((n, m), (m, n)))
        redrawn[one] = n, np.where(swap, second[:, at], first)
        redrawn[other] = m, np.where(swap, first[:, there], second)
    return _with(arrays, {name: own for name, (_, own) in redrawn.items()})
