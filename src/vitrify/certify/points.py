"""Examinations of nets that read numbers: vectors or images, at points that the oracle chooses."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.evidence import Evidence, Progress
from vitrify.certify.words import too_soft
from vitrify.errors import FolderError
from vitrify.net.architecture import Architecture
from vitrify.net.conv import Convolutional
from vitrify.net.run import outputs
from vitrify.net.weights import Weights
from vitrify.spec.grammar import Grammar
from vitrify.spec.scene import Scene

Floats = NDArray[np.float64]
STEP = 256  # inputs between two reports of progress


@dataclass(frozen=True, eq=False)
class Questions:
    """Inputs [case, …] that are asked about together; `method` says what a right answer to all of them means."""

    name: str
    inputs: Floats
    method: Literal["exhaustive", "sampled"] = "sampled"


class PointOracle(Protocol):
    """The right answers of a net that reads numbers."""

    def questions(self, rng: np.random.Generator) -> list[Questions]:
        """What to ask, the easiest to understand first."""
        ...

    def errors(self, inputs: Floats, outputs: Floats) -> Floats:
        """Distance of each answer from the right one, [case]."""
        ...

    def right(self, point: Floats) -> Floats:
        """The right answer to one input: numbers, or 1 for the right symbol and 0 for the rest."""
        ...

    def tolerance(self) -> float:
        """The largest distance that still counts as right."""
        ...

    def witness(self, point: Floats, output: Floats) -> dict[str, object]:
        """One wrong answer in words a person understands."""
        ...


@dataclass(frozen=True, eq=False)
class PointExamination:
    """The questions for one network and spec, prepared once and put to any number of variants of the net."""

    net: Architecture
    spec: object
    seed: int = 0
    oracle: PointOracle = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "oracle", point_oracle_for(self.spec, self.net))

    @cached_property
    def questions(self) -> list[Questions]:
        """What is asked."""
        return self.oracle.questions(np.random.default_rng(self.seed))

    def run(self, weights: Weights[Any], progress: Progress | None = None, *, hardest_first: bool = False) -> Evidence:
        """Examine a net; stops at the first wrong answer, which becomes the witness."""
        start = time.perf_counter()
        total = sum(len(asked.inputs) for asked in self.questions)
        worst, done, witness = 0.0, 0, too_soft(weights)
        for asked in self.questions[::-1] if hardest_first else self.questions:
            for at in range(0, len(asked.inputs) if witness is None else 0, STEP):
                inputs = asked.inputs[at : at + STEP]
                found = outputs(weights, inputs)
                errors = self.oracle.errors(inputs, found)
                worst, done = max(worst, float(errors.max())), done + len(inputs)
                if progress:
                    progress(done, total)
                wrong = np.flatnonzero(~(errors <= self.oracle.tolerance()))
                if len(wrong):
                    witness = self.oracle.witness(inputs[wrong[0]], found[wrong[0]])
                    break
        return Evidence(
            verdict="holds" if witness is None else "fails",
            method="+".join(dict.fromkeys(asked.method for asked in self.questions)),
            domain="; ".join(asked.name for asked in self.questions),
            cases=done,
            witness=witness,
            declared={"largest error": self.oracle.tolerance()},
            measured={"largest error": worst},
            seed=self.seed,
            seconds=time.perf_counter() - start,
            of=(weights, self.spec, done),
        )


def point_oracle_for(spec: object, net: Architecture) -> PointOracle:
    """The oracle of a spec for a network that was built from it and reads numbers."""
    from vitrify.certify.classes import hierarchy_oracle, scene_oracle
    from vitrify.certify.graphs import ConnectivityOracle
    from vitrify.certify.maxout import MaxoutOracle
    from vitrify.spec.connectivity import Connectivity
    from vitrify.spec.maxout import Maxout

    if isinstance(spec, Connectivity):
        return ConnectivityOracle(spec, net)
    if isinstance(spec, Maxout):
        return MaxoutOracle(spec, net)
    if isinstance(net, Convolutional) and isinstance(spec, Scene):
        return scene_oracle(spec, net)
    if isinstance(net, Convolutional) and isinstance(spec, Grammar):
        return hierarchy_oracle(spec, net)
    raise FolderError(f"there is no oracle for a spec of type {type(spec).__name__} and a net that reads {net.reads}")
