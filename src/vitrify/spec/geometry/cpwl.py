r"""Continuous piecewise linear functions of several variables (CPWL) on a box: `.cpwl.toml` files.

A file has the `box`, an interval for each variable, and one of three descriptions: an expression of maxima and minima,

    box = [[-1, 1], [-1, 1]]
    function = "max(min(x1 + x2, 1 - x1), 0.5*x2)"

the values at the vertices of a triangulation of the box (simplices are lists of indices of vertices, from 0),

    box = [[0, 1], [0, 1]]
    vertices = [[0, 0], [1, 0], [0, 1], [1, 1]]
    values = [0, 1, 1, 0]
    simplices = [[0, 1, 2], [1, 2, 3]]

or the values on a regular grid, the last variable running fastest, between which Kuhn's triangulation interpolates:

    box = [[0, 1], [0, 1]]
    cells = [1, 1]
    values = [0, 1, 1, 0]

Each is a class in a file beside this one. Their networks are those of a maxout network, `maxout()`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Annotated, ClassVar, Self, TypeAlias

import numpy as np

from vitrify.arrays import Floats
from vitrify.parameters import Fault, Help, Parameterized, Within, described, read, sentences
from vitrify.spec.formats.data import json_text, read_data
from vitrify.spec.formats.text import SpecError, refuse_any
from vitrify.spec.geometry.maxout import Maxout
from vitrify.spec.kinds import Kind, Spec

MAX_INPUTS = 8  # variables
MAX_NUMBER = 1e12  # size of a number in a file
Number: TypeAlias = Annotated[float, Within(-MAX_NUMBER, MAX_NUMBER)]
Numbers: TypeAlias = tuple[Number, ...]
Box: TypeAlias = Annotated[tuple[tuple[Number, Number], ...], Within(1, MAX_INPUTS), Help("an interval per variable")]
CLASSES = {
    "function": ("max_min", "MaxMin"),
    "simplices": ("triangulation", "Triangulation"),
    "cells": ("grid", "GridFunction"),
}


@dataclass(frozen=True, kw_only=True)
class Cpwl(Parameterized, Spec):
    """A continuous piecewise linear function on a box."""

    suffix: ClassVar[str] = ".cpwl.toml"
    output_names: ClassVar[tuple[str, ...]] = ("y1",)
    SAMPLES: ClassVar[dict[str, dict[str, object]]] = {}  # the fields of small instances, by name

    box: Box

    @classmethod
    def refusal(cls, faults: Sequence[Fault]) -> SpecError:
        return SpecError(sentences(faults))

    def conflicts(self) -> Iterator[tuple[str, str]]:
        for number, (low, high) in enumerate(self.box, start=1):
            if not low < high:
                yield "box", f"must have intervals from a smaller to a larger number, but interval {number} is not one"

    @abstractmethod
    def __call__(self, x: Floats) -> Floats:
        """Return the values [batch, 1] at points [batch, input] of the box."""

    @abstractmethod
    def maxout(self) -> Maxout:
        """Return a maxout network that computes the function on the box; refuse what would be too large."""

    @abstractmethod
    def corners(self) -> Floats:
        """Return points [point, input] between which the function bends: vertices, or corners of the box."""

    @property
    def inputs(self) -> int:
        return len(self.box)

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(f"x{number + 1}" for number in range(self.inputs))

    @property
    def low(self) -> Floats:
        return np.array(self.box)[:, 0]

    @property
    def high(self) -> Floats:
        return np.array(self.box)[:, 1]

    @property
    def radius(self) -> float:
        """The largest coordinate of the box, up to its sign."""
        return float(np.abs(np.array(self.box)).max())

    @property
    def box_corners(self) -> Floats:
        return np.array(list(product(*self.box)))

    # Files

    @classmethod
    def samples(cls) -> dict[str, Cpwl]:
        return {name: kind(**values) for kind in _classes() for name, values in kind.SAMPLES.items()}  # type: ignore[arg-type]

    @classmethod
    def read(cls, path: str | Path) -> Self:
        file = read_data(Path(path), cls.suffix)
        chosen = [key for key in CLASSES if key in file.data]
        if len(chosen) != 1:
            refuse_any([file.problem((), "the file must give a function, simplices or cells: one of the three")])
        kind = _class(chosen[0])
        faults: list[Fault] = []
        values = read(described(kind), file.data, faults)
        refuse_any(file.problems(faults))
        spec = object.__new__(kind)  # unchecked, so that faults can be reported with their keys
        for parameter in described(kind):
            object.__setattr__(spec, parameter.name, values.get(parameter.name, parameter.default))
        refuse_any(file.problems(spec.faults()))
        return spec  # type: ignore[return-value]  # of the class that the file's keys name

    def to_text(self) -> str:
        return "".join(f"{each.name} = {json_text(getattr(self, each.name))}\n" for each in fields(self))


def _class(key: str) -> type[Cpwl]:
    module, name = CLASSES[key]
    kind: type[Cpwl] = getattr(import_module(f"vitrify.spec.geometry.{module}"), name)
    return kind


def _classes() -> list[type[Cpwl]]:
    return [_class(key) for key in CLASSES]


KIND = Kind(Cpwl, {".cpwl.toml": "continuous piecewise linear function"})  # type: ignore[type-abstract]
