"""An experiment in words: `markov transformer p=0.2 lr=1e-3,3e-3 seed=0..7`, or the same as a TOML file.

A word `key=value` sets a parameter of the sandbox, the model or the recipe; several values separated by commas, or a
range of whole numbers `a..b`, make it an axis. Where two parts have a parameter of one name, `sandbox.`, `model.` or
`recipe.` in front tells them apart.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from vitrify.errors import InputError
from vitrify.learn.models.catalogue import Family, kind_of
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.plan import Group, place_of, plan, together
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes._parameters import build_value
from vitrify.sandboxes.catalogue import Sandbox, entry
from vitrify.sandboxes.catalogue import make as make_sandbox

RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
FILE_KEYS = ("sandbox", "model", "members", "set", "axes", "runs")


@dataclass(frozen=True)
class Experiment:
    """What is trained: the parts, the axes along which they vary, and how many seeds of each combination."""

    sandbox: Sandbox
    family: Family
    recipe: Recipe
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    members: int = 1

    def groups(self) -> list[Group]:
        """The members as groups that share shapes."""
        return plan(self.sandbox, self.family, self.recipe, self.axes, self.members)


def in_words(sandbox: str, model: str, words: Sequence[str], members: int = 1) -> Experiment:
    """The experiment that a command line describes."""
    odd = [word for word in words if "=" not in word]
    if odd:
        raise InputError(f"a parameter is given as key=value, not {odd[0]!r}")
    twice = [word for at, word in enumerate(words) if word.split("=")[0] in {w.split("=")[0] for w in words[:at]}]
    if twice:
        raise InputError(f"{twice[0].split('=')[0]!r} is given twice: for an axis separate its values by commas")
    given = dict(word.split("=", 1) for word in words)
    return experiment(sandbox, model, given, {}, members)


def experiment(
    sandbox: str, model: str, given: Mapping[str, Any], axes: Mapping[str, Sequence[Any]], members: int = 1
) -> Experiment:
    """An experiment from parameters by name; those with several values become axes."""
    kinds = {"sandbox": entry(sandbox).make, "model": kind_of(model), "recipe": Recipe}
    chosen: dict[str, dict[str, Any]] = {part: {} for part in kinds}
    varied: dict[str, Sequence[Any]] = dict(axes)
    for key, value in given.items():
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
        build_value(Recipe, chosen["recipe"], "training"),
        varied,
        members,
    )


def _several(kind: Any, name: str, value: Any) -> list[Any] | None:
    """The values of an axis, or None where there is one."""
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        return None
    span = RANGE.fullmatch(value)
    if span and (kind is None or get_type_hints(kind)[name] is not str):
        first, last = int(span[1]), int(span[2])
        return list(range(first, last + 1))
    if "," in value and (kind is None or get_origin(get_type_hints(kind)[name]) is not tuple):
        return value.split(",")
    return None


def read_sweep(path: Path) -> list[Experiment]:
    """The experiments of a TOML file: a grid over its axes, or a list of runs that each change some parameters."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}") from None
    problems = [f"unknown key {key!r}" for key in data if key not in FILE_KEYS]
    problems += [f"key {key!r} is missing" for key in ("sandbox", "model") if key not in data]
    problems += [f"axis {key!r} must be a list" for key, v in data.get("axes", {}).items() if not isinstance(v, list)]
    if problems:
        raise InputError(f"{path}: " + "; ".join(problems) + f" (a sweep has: {', '.join(FILE_KEYS)})")
    members, shared, axes = data.get("members", 1), data.get("set", {}), data.get("axes", {})
    return [
        experiment(data["sandbox"], data["model"], {**shared, **changes}, axes, members)
        for changes in data.get("runs", [{}])
    ]
