"""Checks of nets that read numbers (vectors, images or graphs), at points that the oracle chooses."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.checks.words import meaningless_tolerance, tested, too_soft
from vitrify.certification.evidence import LARGEST_ERROR, Domain, Evidence, Method, Progress, Quantity
from vitrify.certification.oracles.catalogue import registered
from vitrify.errors import FolderError
from vitrify.net.architecture import Architecture
from vitrify.net.inference import outputs
from vitrify.net.weights import Weights

STEP = 256  # inputs that are run between two reports of progress


@dataclass(frozen=True, eq=False)
class PointBatch:
    """Inputs [case, …] of one kind that are run together: all that there are, or some."""

    kind: str
    inputs: Floats
    method: Method = Method.SAMPLED

    @property
    def domain(self) -> Domain:
        """Return the domain of these inputs, as evidence records it."""
        return Domain(self.kind, self.method, len(self.inputs))


class PointOracle(ABC):
    """The right answers of a net that reads numbers, by default numbers whose largest difference is the distance."""

    net: Architecture

    @abstractmethod
    def cases(self, rng: np.random.Generator) -> list[PointBatch]:
        """Return the inputs to check, the easiest to understand first."""

    @abstractmethod
    def right(self, point: Floats) -> Floats:
        """Return the right answer to one input: numbers, or 1 for the right symbol and 0 for the rest."""

    @abstractmethod
    def witness(self, point: Floats, output: Floats) -> dict[str, object]:
        """Return one wrong answer in words a person understands."""

    def tolerance(self) -> float:
        """Return the largest distance that still counts as right."""
        return self.net.output.error

    def errors(self, inputs: Floats, outputs: Floats) -> Floats:
        """Return the distance of each answer from the right one, [case]; infinite where there is no number."""
        far = np.abs(outputs - np.stack(list(map(self.right, inputs)))).reshape(len(inputs), -1).max(axis=1)
        return np.where(np.isfinite(far), far, np.inf)


@dataclass(frozen=True, eq=False)
class PointCheck:
    """The check of one network against its spec, prepared once and run on any number of variants of the net."""

    net: Architecture
    spec: object
    seed: int = 0
    oracle: PointOracle = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "oracle", point_oracle_for(self.spec, self.net))

    @cached_property
    def batches(self) -> list[PointBatch]:
        """Return the inputs to check, in batches."""
        return self.oracle.cases(np.random.default_rng(self.seed))

    def run(
        self, weights: Weights[Architecture], progress: Progress | None = None, *, hardest_first: bool = False
    ) -> Evidence:
        """Check a net; stops at the first wrong answer, which becomes the witness."""
        start = time.perf_counter()
        total = sum(len(batch.inputs) for batch in self.batches)
        worst, done, witness = 0.0, 0, too_soft(weights)
        for batch in self.batches[::-1] if hardest_first else self.batches:
            for at in range(0, len(batch.inputs) if witness is None else 0, STEP):
                inputs = batch.inputs[at : at + STEP]
                answers = outputs(weights, inputs)
                errors = self.oracle.errors(inputs, answers)
                worst, done = max(worst, float(errors.max())), done + len(inputs)
                if progress:
                    progress(done, total)
                wrong = np.flatnonzero(~(errors <= self.oracle.tolerance()))
                if len(wrong):
                    witness = self.oracle.witness(inputs[wrong[0]], answers[wrong[0]])
                    break
        if witness is None and self.net.output.kind == "values":
            points = np.concatenate([batch.inputs[:STEP] for batch in self.batches])
            witness = meaningless_tolerance(np.stack(list(map(self.oracle.right, points))), self.oracle.tolerance())
        quantity = Quantity(LARGEST_ERROR, worst, self.oracle.tolerance(), "<=")
        return tested(self, weights, done, (quantity,), witness, time.perf_counter() - start)


def point_oracle_for(spec: object, net: Architecture) -> PointOracle:
    """Return the oracle of a spec for a network that was built from it and reads numbers."""
    maker = registered(spec, net)
    if maker is None:
        raise FolderError(
            f"there is no oracle for a spec of type {type(spec).__name__} and a net that reads {net.reads} and gives "
            f"{net.output.kind!r} answers"
        )
    made: PointOracle = maker(spec, net)
    return made
