r"""Reader and writer of `.scene.toml` files; all problems are reported at once.

    image = [12, 12]        # rows, columns
    eps = 0.1               # how far a pixel of a feature may be from its template
    gamma = 0.2             # how much more than that, summed over the pixels, makes a feature absent
    background = 0.5        # intensity between features; by default 0
    noise = 0.05            # random deviation of the background, at most eps; by default 0

    [features]              # name = list of variants, a variant is a grid of intensities
    cross = [[[0, 1, 0], [1, 1, 1], [0, 1, 0]]]
    bar = [[[1, 1, 1], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0], [1, 1, 1]]]

    [composites]            # features made of features: [part, rows down, columns right]
    flag = [["bar", 0, 0], ["cross", 3, 0]]

    [classes]               # name = the features that an image of the class has
    banner = ["flag"]
    mixed = ["cross", "bar"]

The location of a feature is its top left corner; that of a composite is the top left corner of its bounding box.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from math import isfinite
from pathlib import Path
from typing import Annotated

import numpy as np

from vitrify.arrays import Floats
from vitrify.encoding import JsonObject
from vitrify.parameters import Count, Fault, Help, NonNegative, Positive, Within, described, read, sentences
from vitrify.spec.formats.data import json_text, read_data
from vitrify.spec.formats.text import refuse_any

Features = Mapping[str, tuple[object, ...] | None]  # by name; None where the entry is invalid
Composites = Mapping[str, tuple[tuple[str, int, int], ...] | None]
Classes = Mapping[str, tuple[str, ...] | None]
Size = tuple[int, int]
Variants = Annotated[tuple[object, ...], Within(1)]
Places = Annotated[tuple[tuple[str, int, int], ...], Within(2)]
Members = Annotated[tuple[str, ...], Within(1)]
Template = tuple[str, int, Floats]  # feature, number of the variant, intensities
Parts = frozenset[tuple[str, int, int]]  # base features with their offsets from the top left corner

SUFFIX = ".scene.toml"
NONE = "(none)"  # the answer for images of no class
MAX_FLOAT = sys.float_info.max
MAX_REPORTED_PAIRS = 20  # of templates that are too close


@dataclass(frozen=True)
class SceneFile:
    """Fields of a `.scene.toml` file; the grids are checked as arrays."""

    image: Annotated[tuple[Count, Count], Help("rows, columns")]
    eps: NonNegative
    gamma: Positive
    features: Annotated[Mapping[str, Variants], Within(1), Help("a list of variants by name")]
    classes: Annotated[Mapping[str, Members], Within(1), Help("a list of features by name")]
    composites: Annotated[Mapping[str, Places], Help("[part, rows down, columns right]")] = field(default_factory=dict)
    background: Annotated[float, Within()] = 0.0
    noise: NonNegative = 0.0


def read_scene(path: Path) -> JsonObject:
    """Return the checked plain data of a `.scene.toml` file."""
    file = read_data(path, SUFFIX)
    refuse_any(file.problem(*fault) for fault in scene_problems(file.data))
    data: JsonObject = file.data
    return data


def scene_text(data: JsonObject) -> str:
    """Return the text of a `.scene.toml` file with these plain data."""
    lines = [f"{key} = {json_text(data[key])}" for key in ("image", "eps", "gamma", "background", "noise")]
    for table in ("features", "composites", "classes"):
        if data[table]:
            lines += ["", f"[{table}]"]
            for name, entries in data[table].items():
                rows = [f"  {json_text(entry)},\n" for entry in entries]
                lines.append(f"{json_text(name)} = [\n{''.join(rows)}]")
    return "\n".join(lines) + "\n"


def scene_problems(data: JsonObject) -> Iterator[Fault]:
    """Yield every problem of plain scene data, with the keys of its value."""
    faults: list[Fault] = []
    values = read(described(SceneFile), data, faults)
    yield from zip((keys for keys, _ in faults), sentences(faults), strict=True)
    wrong = {keys[:size] for keys, _ in faults for size in (1, 2)}
    image, eps, gamma = (None if (key,) in wrong else values.get(key) for key in ("image", "eps", "gamma"))
    if ("noise",) not in wrong and eps is not None and values.get("noise", 0.0) > eps:
        yield ("noise",), f"noise must be at most eps = {eps}, or features vanish in it, got {values['noise']}"
    tables = {name: values.get(name) or {} for name in ("features", "composites", "classes")}
    for table, what in (("features", "feature"), ("composites", "composite"), ("classes", "class")):
        tables[table] = {name: None if (table, name) in wrong else entries for name, entries in tables[table].items()}
        for name in tables[table]:
            if not name or not name.isprintable() or name != name.strip() or name == NONE:
                message = f"a {what} has a printable name without blanks around it, and not {NONE!r}, got {name!r}"
                yield (table, name), message
    features, composites, classes = tables.values()
    templates: list[Template] = []
    yield from _grid_problems(features, templates)
    size = (len(templates[0][2]), len(templates[0][2][0])) if templates else None
    yield from _size_problems(image, templates)
    if eps is not None and gamma is not None and len({grid.shape for _, _, grid in templates}) == 1:
        parts = {part for name in composites for part, _, _ in composites[name] or ()}
        yield from _closeness_problems(eps, gamma, templates, parts)
    yield from _composite_problems(image, size, features, composites)
    yield from _class_problems(features, composites, classes)


# Features


def _grid_problems(features: Features, templates: list[Template]) -> Iterator[Fault]:
    """Yield the problems of the grids; valid ones are appended to `templates`."""
    for name, variants in features.items():
        for index, grid in enumerate(variants or ()):
            if message := _grid_problem(grid):
                yield ("features", name, str(index)), f"variant {index + 1} of the feature {name!r} {message}"
            else:
                templates.append((name, index, np.array(grid, dtype=np.float64)))


def _grid_problem(grid: object) -> str | None:
    if not isinstance(grid, Sequence) or isinstance(grid, str) or not grid:
        return f"must be a grid, rows of numbers, got {grid!r}"
    for row in grid:
        if not isinstance(row, Sequence) or isinstance(row, str) or not row or not all(map(_finite, row)):
            return f"must have rows of finite numbers, got {row!r}"
    if len({len(row) for row in grid}) > 1:
        return f"must have rows of one length, got {', '.join(str(len(row)) for row in grid)}"
    return None


def _finite(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and (isfinite(value) if isinstance(value, float) else abs(value) <= MAX_FLOAT)  # type: ignore[arg-type]


def _size_problems(image: Size | None, templates: list[Template]) -> Iterator[Fault]:
    sizes: dict[Size, str] = {}
    for name, index, grid in templates:
        sizes.setdefault((len(grid), len(grid[0])), f"variant {index + 1} of {name!r}")
    if len(sizes) > 1:
        listed = ", ".join(f"{rows}×{columns} ({name})" for (rows, columns), name in sizes.items())
        yield ("features",), f"all variants of all features must have one size, got {listed}"
    for (rows, columns), name in sizes.items():
        if image and (rows > image[0] or columns > image[1]):
            yield ("features",), f"{name} has {rows}×{columns} pixels, the image only {image[0]}×{image[1]}"


def _closeness_problems(eps: float, gamma: float, templates: list[Template], parts: set[str]) -> Iterator[Fault]:
    """Yield pairs of templates that violate the gap condition, or could be the same part of a composite."""
    grids = np.array([grid for _, _, grid in templates]).reshape(len(templates), -1)
    reported = 0
    for first, (name, index, _) in enumerate(templates):
        apart = np.abs(grids[first + 1 :] - grids[first])
        most, excess = apart.max(axis=1), np.maximum(apart - eps, 0.0).sum(axis=1)
        own = np.array([name in parts and other == name for other, _, _ in templates[first + 1 :]], dtype=bool)
        twice = own & (most <= 2 * eps)
        for second in np.flatnonzero((most == 0) | twice | ((most > eps) & (excess < gamma))).tolist():
            reported += 1
            other, where, _ = templates[first + 1 + second]
            pair = f"variant {index + 1} of {name!r} and variant {where + 1} of {other!r}"
            if most[second] == 0:
                message = f"{pair} are the same: keep one"
            elif twice[second]:
                message = f"{pair} differ by {most[second]:.6g}, so one patch can be both: 2·eps must be less"
            else:
                message = f"{pair} are {excess[second]:.6g} apart beyond eps, so each is half there: gamma must be less"
            if reported <= MAX_REPORTED_PAIRS:
                yield ("features", other), message
    if reported > MAX_REPORTED_PAIRS:
        yield ("features",), f"{reported - MAX_REPORTED_PAIRS} more pairs of variants are too close"


# Composites


def _composite_problems(
    image: Size | None, size: Size | None, features: Features, composites: Composites
) -> Iterator[Fault]:
    good: list[str] = []
    for name, parts in composites.items():
        keys = ("composites", name)
        if name in features:
            yield keys, f"{name!r} is a feature already: give the composite another name"
        unknown = [part for part, _, _ in parts or () if part not in features and part not in composites]
        for part in dict.fromkeys(unknown):
            yield keys, f"the part {part!r} of {name!r} is neither a feature nor a composite"
        good += [] if unknown or parts is None else [name]
    unfolded_by_name: dict[str, Parts] = {}
    for name in good:
        keys = ("composites", name)
        cycle = _cycle(name, composites)
        if cycle:
            yield keys, f"a composite can't be part of itself: {' → '.join(cycle)}"
        elif (unfolded := unfold(name, features, composites)) is not None and size:
            yield from ((keys, message) for message in _layout_problems(name, unfolded, size, image))
            same = next((other for other, known in unfolded_by_name.items() if known == unfolded), None)
            if same:
                yield keys, f"the composite {name!r} is the same as {same!r}: keep one"
            unfolded_by_name[name] = unfolded


def _cycle(name: str, composites: Composites) -> tuple[str, ...] | None:
    """Return a cycle of composites from one back to itself, if there is one."""
    waiting: list[tuple[str, ...]] = [(name,)]
    seen = set[str]()
    while waiting:
        way = waiting.pop()
        for inner, _, _ in composites.get(way[-1]) or ():
            if inner == name:
                return (*way, name)
            if inner in composites and inner not in seen:
                seen.add(inner)
                waiting.append((*way, inner))
    return None


def unfold(name: str, features: Features, composites: Composites) -> Parts | None:
    """Return a feature as base features with offsets from the top left corner; None if a part is invalid."""
    if name in features:
        return frozenset({(name, 0, 0)})
    parts: list[tuple[str, int, int]] = []
    if _cycle(name, composites):
        return None
    for part, lower, further in composites.get(name) or ():
        inner = unfold(part, features, composites)
        if inner is None:
            return None
        parts += [(base, down + lower, right + further) for base, down, right in inner]
    if not parts:
        return None
    top, left = min(down for _, down, _ in parts), min(right for _, _, right in parts)
    return frozenset((base, down - top, right - left) for base, down, right in parts)


def _layout_problems(name: str, parts: Parts, size: tuple[int, int], image: tuple[int, int] | None) -> Iterator[str]:
    for (one, top, left), (two, down, right) in combinations(sorted(parts), 2):
        if abs(top - down) < size[0] and abs(left - right) < size[1]:
            far = f"{size[0]} rows or {size[1]} columns"
            yield f"the parts {one!r} and {two!r} of {name!r} overlap: put their corners {far} apart"
    rows = max(down for _, down, _ in parts) + size[0]
    columns = max(right for _, _, right in parts) + size[1]
    if image and (rows > image[0] or columns > image[1]):
        yield f"the composite {name!r} takes {rows}×{columns} pixels, the image has only {image[0]}×{image[1]}"


# Classes


def _class_problems(features: Features, composites: Composites, classes: Classes) -> Iterator[Fault]:
    known = {**features, **composites}
    good: dict[str, frozenset[str]] = {}
    for name, members in classes.items():
        keys = ("classes", name)
        unknown = [member for member in dict.fromkeys(members or ()) if member not in known]
        for member in unknown:
            yield keys, f"the class {name!r} has {member!r}, which is neither a feature nor a composite"
        if members and len(set(members)) < len(members):
            yield keys, f"the class {name!r} lists a feature twice: list it once"
        if members and not unknown:
            good[name] = frozenset(members)
    yield from _antichain_problems(good, features, composites)
    used = {member for members in classes.values() for member in members or ()}
    used |= {part for parts in composites.values() for part, _, _ in parts or ()}
    unclear = None in (*classes.values(), *composites.values())
    for table, names in (("features", features), ("composites", composites)):
        for name in names:
            if name not in used and classes and not unclear:
                yield (table, name), f"{name!r} is in no class and no composite: use it or leave it out"


def _antichain_problems(
    classes: Mapping[str, frozenset[str]], features: Features, composites: Composites
) -> Iterator[Fault]:
    """Yield classes that contain all features of another one: their images would be of both classes."""
    unfolded = {name: unfold(name, features, composites) for members in classes.values() for name in members}
    for name, members in classes.items():
        for inner, outer in permutations(sorted(members), 2):
            if _within(unfolded[inner], unfolded[outer]):
                yield ("classes", name), f"the class {name!r} has {inner!r} twice: it is a part of {outer!r}"
        for other, fewer in classes.items():
            if name == other or (members == fewer and name < other):
                continue
            missing = [f for f in fewer if not any(_within(unfolded[f], unfolded[m]) for m in members)]
            if not missing:
                message = (
                    f"an image of {name!r} has all that {other!r} asks for: add to {other!r} what {name!r} has not"
                )
                yield ("classes", name), message


def _within(few: Parts | None, many: Parts | None) -> bool:
    """Return True if the parts `few` are always present where `many` are: a subset, perhaps shifted."""
    if few is None or many is None:
        return False
    base, down, right = min(few)
    moves = [(d - down, r - right) for other, d, r in many if other == base]
    return any(all((b, d + move, r + shift) in many for b, d, r in few) for move, shift in moves)
