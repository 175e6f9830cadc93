"""Plan of the members that train together: seeds and hyper-parameters that share shapes are one compiled program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from itertools import chain, product
from math import prod
from typing import Annotated, Any, TypeAlias

from vitrify import __version__
from vitrify.arrays import Array
from vitrify.encoding import JsonObject
from vitrify.errors import InputError
from vitrify.learn.models.catalogue import Family
from vitrify.learn.recipe import Recipe
from vitrify.limits import MAX_SEED
from vitrify.parameters import Fault, Parameterized, Within, convert, described, sentences
from vitrify.sandboxes.catalogue import Sandbox
from vitrify.spec import find_spec

SEEDS = ("seed", "data_seed")  # of the initial weights; of the examples, by default the same
MAX_RUNS = 1 << 14  # of one experiment: each has a folder of its own
INTEGERS = (*SEEDS, "train_examples")  # values of members that are integers; all others are floats

Axes: TypeAlias = Mapping[str, Sequence[object]]  # the values of each parameter that varies
Values: TypeAlias = Mapping[str, Array]  # numbers, by the name of a parameter


@dataclass(frozen=True)
class MemberGroup:
    """Members of one shape: what they share, and the values in which they may differ, one dictionary each."""

    sandbox: Sandbox
    family: Family
    recipe: Recipe
    members: tuple[Values, ...]

    def identities(self) -> list[JsonObject]:
        """Return the identity of each member, as JSON data: equal for equal runs, whatever group they are in."""
        shared = [(part, part.identity()) for part in (self.sandbox, self.family, self.recipe)]
        return [
            {
                "sandbox": {"name": self.sandbox.name, **_changed(shared[0], member)},
                "model": {"name": self.family.name, **_changed(shared[1], member)},
                "recipe": _changed(shared[2], member),
                "seed": int(member["seed"]),
                "data_seed": int(member["data_seed"]),
                "version": __version__,
            }
            for member in self.members
        ]


def _changed(part: tuple[Parameterized, JsonObject], member: Values) -> JsonObject:
    kind, values = part
    own = {name: member[name] for name in kind.TRACED}
    return values | {
        name: value if value is None else int(value) if name in INTEGERS else float(value)
        for name, value in own.items()
    }


def plan(sandbox: Sandbox, family: Family, recipe: Recipe, axes: Axes, members: int = 1) -> list[MemberGroup]:
    """All combinations of the axes, `members` seeds of each, as groups that share shapes.

    An axis is named after a parameter of the sandbox, the model or the recipe; where two have the same name,
    `sandbox.`, `model.` or `recipe.` in front tells them apart. `seed` may be an axis itself. Parameters that go
    together are one axis, `p,q`, each of whose values has a part for each of them.
    """
    parts: dict[str, Parameterized] = {"sandbox": sandbox, "model": family, "recipe": recipe}
    if not any("seed" in axis.split(",") for axis in axes):
        axes = {**axes, "seed": range(members)}
    refuse_runs(prod(len(values) for values in axes.values()))
    axes = dict(sorted(axes.items(), key=lambda item: item[0] == "seed"))  # seeds vary fastest
    grids = [[_placed(parts, axis, value) for value in axes[axis]] for axis in axes]
    empty = [axis for axis, grid in zip(axes, grids, strict=True) if not grid]
    if empty:
        raise InputError(f"an axis needs at least one value, {', '.join(empty)} has none")
    groups: dict[tuple[Any, ...], list[dict[str, Array]]] = {}
    for values in product(*grids):
        fixed: dict[str, dict[str, Array]] = {name: {} for name in ("", *parts)}
        for part, name, value in chain.from_iterable(values):
            fixed[part][name] = value
        seeds = fixed.pop("")
        settings: dict[str, Any] = {name: replace(part, **fixed[name]) for name, part in parts.items()}
        settings["model"].suits(settings["sandbox"])
        member = {name: getattr(part, name) for part in settings.values() for name in part.TRACED}
        member["seed"] = seeds["seed"]
        member["data_seed"] = seeds.get("data_seed", seeds["seed"])
        shapes = [
            replace(part, **{field: getattr(parts[name], field) for field in part.TRACED})
            for name, part in settings.items()
        ]
        missing = tuple(name for name, value in member.items() if value is None)
        groups.setdefault((*shapes, missing), []).append(member)
    return [MemberGroup(source, model, training, tuple(own)) for (source, model, training, _), own in groups.items()]


def refuse_runs(count: int) -> None:
    """Refuse more runs than one experiment may have, before any of them is made."""
    if count > MAX_RUNS:
        raise InputError(f"an experiment may have at most {MAX_RUNS:,} runs, not {count:,}: divide it")


def place_of(axis: str, kinds: Mapping[str, Parameterized | type[Parameterized]]) -> tuple[str, str]:
    """The part that a parameter belongs to, and the name it has there; seeds belong to no part."""
    if axis in SEEDS:
        return "", axis
    known = {part: [entry.name for entry in fields(kind)] for part, kind in kinds.items()}
    front, _, rest = axis.partition(".")
    if rest and rest in known.get(front, []):
        return front, rest
    owners = [part for part, names in known.items() if axis in names]
    if len(owners) == 1:
        return owners[0], axis
    if owners:
        choices = " or ".join(f"{part}.{axis}" for part in owners)
        raise InputError(f"{axis!r} is a parameter of {' and '.join(owners)}: say {choices}")
    near = get_close_matches(axis, [name for names in known.values() for name in names], n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else ""
    listed = "; ".join(f"{part}: {', '.join(names)}" for part, names in known.items())
    raise InputError(f"there is no parameter {axis!r}: {hint or listed}")


def together(axis: str, value: object) -> list[tuple[str, object]]:
    """The parameters that an axis sets, each with its part of one of the axis's values.

    >>> together("p,q", (0.2, 0.3))
    [('p', 0.2), ('q', 0.3)]
    """
    names = axis.split(",")
    if len(names) == 1:
        return [(axis, value)]
    if not isinstance(value, list | tuple) or len(value) != len(names):
        raise InputError(f"a value of the axis {axis!r} has a part for each of {len(names)} parameters, not {value}")
    return list(zip(names, value, strict=True))


def _placed(parts: Mapping[str, Parameterized], axis: str, value: object) -> list[tuple[str, str, object]]:
    """Return the parameters that a value of an axis sets: part, name and value of each."""
    placed = [(place_of(name, parts), one) for name, one in together(axis, value)]
    return [(*place, _value(parts, place, one)) for place, one in placed]


def _value(parts: Mapping[str, Parameterized], place: tuple[str, str], value: object) -> object:
    part, name = place
    if not part:
        faults: list[Fault] = []
        seed = convert(Annotated[int, Within(0, MAX_SEED)], value, (name,), faults, text=True)
        if faults:
            raise InputError("; ".join(sentences(faults)))
        return seed
    hint = next(parameter.hint for parameter in described(type(parts[part])) if parameter.name == name)
    faults = []
    converted = convert(hint, value, (name,), faults, text=True, find=find_spec)
    if faults:
        raise InputError(f"{part}: " + "; ".join(sentences(faults)))
    return converted
