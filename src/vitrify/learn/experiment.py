"""An experiment in words: `markov transformer p=0.2 lr=1e-3,3e-3 seed=0..7`, or the same as a TOML file.

A word `key=value` sets a parameter of the sandbox, the model or the recipe; several values separated by commas, or a
range of whole numbers `a..b`, make it an axis. Where two parts have a parameter of one name, `sandbox.`, `model.` or
`recipe.` in front tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, get_origin

from vitrify.learn.models.catalogue import Family, kind_of
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.plan import MAX_RUNS, Axes, MemberGroup, place_of, plan, refuse_runs, together
from vitrify.learn.recipe import Recipe
from vitrify.parameters import Parameterized, Within, arguments, described, key_values
from vitrify.sandboxes.catalogue import Sandbox, entry
from vitrify.sandboxes.catalogue import make as make_sandbox
from vitrify.spec.formats.data import read_data

MAX_DIGITS = 18  # of an end of a range; longer numbers are no seeds
RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")


@dataclass(frozen=True)
class SweepFile:
    """The shape of a file with a sweep: `set` is shared by all runs, `axes` are the values that make a grid."""

    sandbox: str
    model: str
    members: Annotated[int, Within(1, MAX_RUNS)] = 1
    set: Mapping[str, object] = field(default_factory=dict)
    axes: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    runs: tuple[Mapping[str, object], ...] = ({},)


@dataclass(frozen=True)
class Experiment:
    """A training experiment: its parts, the axes along which they vary, and the number of seeds of each combination."""

    sandbox: Sandbox
    family: Family
    recipe: Recipe
    axes: Axes = field(default_factory=dict)
    members: int = 1

    def groups(self) -> list[MemberGroup]:
        """The members as groups that share shapes."""
        return plan(self.sandbox, self.family, self.recipe, self.axes, self.members)


def in_words(sandbox: str, model: str, words: Sequence[str], members: int = 1) -> Experiment:
    """The experiment that a command line describes."""
    return experiment(sandbox, model, key_values(words), {}, members)


def kinds_of(sandbox: str, model: str) -> dict[str, type[Parameterized]]:
    """Return the classes whose fields are the parameters of an experiment, by the part they belong to."""
    return {"sandbox": entry(sandbox).make, "model": kind_of(model), "recipe": Recipe}


def experiment(sandbox: str, model: str, parameters: Mapping[str, object], axes: Axes, members: int = 1) -> Experiment:
    """An experiment from parameters by name; those with several values become axes."""
    kinds = kinds_of(sandbox, model)
    chosen: dict[str, dict[str, object]] = {part: {} for part in kinds}
    varied: dict[str, Sequence[object]] = dict(axes)
    for key, value in parameters.items():
        part, name = place_of(key, kinds)
        several = _several(kinds.get(part), name, value)
        if several is not None:
            varied[key] = several
        elif part:
            chosen[part][name] = value
        else:
            varied[key] = [value]
    for key, values in varied.items():  # what an axis sets need not be given beside it
        for each, value in together(key, values[0]) if len(values) else ():
            part, name = place_of(each, kinds)
            if part and name not in chosen[part]:
                chosen[part][name] = value
    return Experiment(
        make_sandbox(sandbox, chosen["sandbox"]),
        make_model(model, chosen["model"]),
        Recipe(**arguments(Recipe, chosen["recipe"], "training")),
        varied,
        members,
    )


def _several(kind: type[Parameterized] | None, name: str, value: object) -> list[object] | None:
    """The values of an axis, or None where there is one."""
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        return None
    declared = [parameter.type for parameter in (described(kind) if kind else ()) if parameter.name == name]
    span = RANGE.fullmatch(value)
    if span and str not in declared:
        first, last = (
            int(end) if len(end) < MAX_DIGITS else MAX_RUNS * (-1) ** (end[0] == "-") for end in span.groups()
        )
        refuse_runs(last + 1 - first)
        return list(range(first, last + 1))
    if "," in value and not any(get_origin(kind) is tuple for kind in declared):
        return [*value.split(",")]
    return None


def read_sweep(path: Path) -> list[Experiment]:
    """The experiments of a TOML file: a grid over its axes, or a list of runs that each change some parameters."""
    file = read_data(path).read(SweepFile)
    return [
        experiment(file.sandbox, file.model, {**file.set, **changes}, file.axes, file.members) for changes in file.runs
    ]
