r"""Scenes on disk: `.scene.toml` files, read and written, with all problems told at once.

    image = [12, 12]        # rows, columns
    eps = 0.1               # how far a pixel of a feature may be from its template
    gamma = 0.2             # how much more than that, summed over the pixels, makes a feature absent
    background = 0.5        # what the generator paints between features; 0 unless said
    noise = 0.05            # and how much it adds or takes at random, at most eps; 0 unless said

    [features]              # name = list of variants, a variant is a grid of intensities
    cross = [[[0, 1, 0], [1, 1, 1], [0, 1, 0]]]
    bar = [[[1, 1, 1], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0], [1, 1, 1]]]

    [composites]            # features made of features: [part, rows down, columns right]
    flag = [["bar", 0, 0], ["cross", 3, 0]]

    [classes]               # name = the features that an image of the class has
    banner = ["flag"]
    mixed = ["cross", "bar"]

A place of a feature is its top left corner; that of a composite is the top left corner of the box around its parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.spec.files import refuse_any, refuse_suffix
from vitrify.spec.toml_files import Keys, read_toml

Found = Iterator[tuple[Keys, str]]
Template = tuple[str, int, NDArray[np.float64]]  # feature, number of the variant, intensities
Parts = frozenset[tuple[str, int, int]]  # base features with their offsets from the top left corner

SUFFIX = ".scene.toml"
NONE = "(none)"  # the answer for images of no class
KEYS = ("image", "eps", "gamma", "background", "noise", "features", "composites", "classes")
NEEDED = ("image", "eps", "gamma", "features", "classes")
PAIRS = 20  # pairs of templates that are too close, told one by one


def read_scene(path: Path) -> dict[str, Any]:
    """The plain data of a `.scene.toml` file, checked."""
    if not path.name.endswith(SUFFIX):
        raise refuse_suffix(path, SUFFIX)
    file = read_toml(path)
    refuse_any(file.problem(keys, message) for keys, message in scene_problems(file.data))
    return file.data


def scene_text(data: Mapping[str, Any]) -> str:
    """The text of a `.scene.toml` file with these plain data."""
    lines = [f"{key} = {json.dumps(data[key])}" for key in ("image", "eps", "gamma", "background", "noise")]
    for table in ("features", "composites", "classes"):
        if data[table]:
            lines += ["", f"[{table}]"]
            for name, entries in data[table].items():
                rows = [f"  {json.dumps(entry, ensure_ascii=False)},\n" for entry in entries]
                lines.append(f"{json.dumps(name, ensure_ascii=False)} = [\n{''.join(rows)}]")
    return "\n".join(lines) + "\n"


def scene_problems(data: Mapping[str, Any]) -> Found:
    """Every broken rule of plain scene data, and the keys of the value that breaks it."""
    for key in data:
        if key not in KEYS:
            yield (key,), f"{key!r} is not a part of a scene; the parts are {', '.join(KEYS)}"
    for key in NEEDED:
        if key not in data:
            yield (), f"{key} is missing"
    yield from _number_problems(data)
    tables = {name: data.get(name, {}) for name in ("features", "composites", "classes")}
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            yield (name,), f"{name} must be a table, name = [ … ]"
            tables[name] = {}
        elif name in data and not table and name != "composites":
            yield (name,), f"there must be at least one of the {name}"
    features, composites, classes = tables.values()
    yield from _feature_problems(data, features, composites)
    yield from _composite_problems(data, features, composites)
    yield from _class_problems(features, composites, classes)


def _number_problems(data: Mapping[str, Any]) -> Found:
    if "image" in data and image_of(data) is None:
        yield ("image",), f"image must be [rows, columns], two whole numbers from 1, got {data['image']!r}"
    bounds = {"eps": "at least 0", "gamma": "above 0", "background": "finite", "noise": "at least 0"}
    for key, wanted in bounds.items():
        value = data.get(key, 0.5)
        if not is_number(value) or (value < 0 and wanted == "at least 0") or (value <= 0 and wanted == "above 0"):
            yield (key,), f"{key} must be a number, {wanted}, got {value!r}"
    eps, noise = data.get("eps", -1), data.get("noise", 0)
    if is_number(eps) and is_number(noise) and noise > eps >= 0:
        yield ("noise",), f"noise must be at most eps = {eps}, or features vanish in it, got {noise}"


def is_number(value: object) -> bool:
    """Whether a value is a finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def image_of(data: Mapping[str, Any]) -> tuple[int, int] | None:
    """Rows and columns of the images, if they are given as they must be."""
    image = data.get("image")
    if isinstance(image, Sequence) and len(image) == 2 and all(type(n) is int and n > 0 for n in image):
        return image[0], image[1]
    return None


# Features


def _feature_problems(data: Mapping[str, Any], features: Mapping[str, Any], composites: Mapping[str, Any]) -> Found:
    sizes: dict[tuple[int, int], str] = {}
    templates: list[Template] = []
    for name, variants in features.items():
        keys = ("features", name)
        if message := _name_problem(name, "feature"):
            yield keys, message
        if not isinstance(variants, Sequence) or isinstance(variants, str) or not variants:
            yield keys, f"the feature {name!r} must have at least one variant: a list of grids"
            continue
        for place, grid in enumerate(variants):
            if message := _grid_problem(grid):
                yield keys, f"variant {place + 1} of the feature {name!r} {message}"
            else:
                sizes.setdefault((len(grid), len(grid[0])), f"variant {place + 1} of {name!r}")
                templates.append((name, place, np.array(grid, dtype=np.float64)))
    yield from _size_problems(data, sizes)
    if is_number(data.get("eps")) and is_number(data.get("gamma")) and len(sizes) == 1:
        parts = {part for name in composites for part, _, _ in _parts(composites, name)}
        yield from _closeness_problems(data["eps"], data["gamma"], templates, parts)


def _name_problem(name: str, what: str) -> str | None:
    if not name or not name.isprintable() or name != name.strip() or name == NONE:
        return f"a {what} has a printable name without blanks around it, and not {NONE!r}, got {name!r}"
    return None


def _grid_problem(grid: object) -> str | None:
    if not isinstance(grid, Sequence) or isinstance(grid, str) or not grid:
        return f"must be a grid, rows of numbers, got {grid!r}"
    for row in grid:
        if not isinstance(row, Sequence) or isinstance(row, str) or not row or not all(map(is_number, row)):
            return f"must have rows of finite numbers, got {row!r}"
    if len({len(row) for row in grid}) > 1:
        return f"must have rows of one length, got {', '.join(str(len(row)) for row in grid)}"
    return None


def _size_problems(data: Mapping[str, Any], sizes: Mapping[tuple[int, int], str]) -> Found:
    said = [f"{rows}×{columns} ({name})" for (rows, columns), name in sizes.items()]
    if len(said) > 1:
        yield ("features",), f"all variants of all features must have one size, got {', '.join(said)}"
    image = image_of(data)
    for (rows, columns), name in sizes.items():
        if image and (rows > image[0] or columns > image[1]):
            yield ("features",), f"{name} has {rows}×{columns} pixels, the image only {image[0]}×{image[1]}"


def _closeness_problems(eps: float, gamma: float, templates: list[Template], parts: set[str]) -> Found:
    """A clean copy of one template must not be half of another; and no patch may be a part of a composite twice."""
    grids = np.array([grid for _, _, grid in templates]).reshape(len(templates), -1)
    told = 0
    for first, (name, place, _) in enumerate(templates):
        apart = np.abs(grids[first + 1 :] - grids[first])
        most, excess = apart.max(axis=1), np.maximum(apart - eps, 0.0).sum(axis=1)
        own = np.array([name in parts and other == name for other, _, _ in templates[first + 1 :]], dtype=bool)
        twice = own & (most <= 2 * eps)
        for second in np.flatnonzero((most == 0) | twice | ((most > eps) & (excess < gamma))).tolist():
            told += 1
            other, where, _ = templates[first + 1 + second]
            pair = f"variant {place + 1} of {name!r} and variant {where + 1} of {other!r}"
            if most[second] == 0:
                message = f"{pair} are the same: keep one"
            elif twice[second]:
                message = f"{pair} differ by {most[second]:.6g}, so one patch can be both: 2·eps must be less"
            else:
                message = f"{pair} are {excess[second]:.6g} apart beyond eps, so each is half there: gamma must be less"
            if told <= PAIRS:
                yield ("features", other), message
    if told > PAIRS:
        yield ("features",), f"{told - PAIRS} more pairs of variants are too close"


# Composites


def _composite_problems(data: Mapping[str, Any], features: Mapping[str, Any], composites: Mapping[str, Any]) -> Found:
    good: dict[str, Sequence[Any]] = {}
    for name, parts in composites.items():
        keys = ("composites", name)
        if message := _name_problem(name, "composite"):
            yield keys, message
        if name in features:
            yield keys, f"{name!r} is a feature already: give the composite another name"
        if not isinstance(parts, Sequence) or isinstance(parts, str) or len(parts) < 2 or not all(map(_is_part, parts)):
            yield keys, f"the composite {name!r} must have two parts or more, each [name, rows down, columns right]"
            continue
        unknown = [part[0] for part in parts if part[0] not in features and part[0] not in composites]
        for part in dict.fromkeys(unknown):
            yield keys, f"the part {part!r} of {name!r} is neither a feature nor a composite"
        if not unknown:
            good[name] = parts
    size, image = _one_size(features), image_of(data)
    whole: dict[str, Parts] = {}
    for name in good:
        keys = ("composites", name)
        cycle = _cycle(name, composites)
        if cycle:
            yield keys, f"a composite can't be part of itself: {' → '.join(cycle)}"
        elif (parts := unfold(name, features, composites)) is not None and size:
            yield from ((keys, message) for message in _layout_problems(name, parts, size, image))
            same = next((other for other, known in whole.items() if known == parts), None)
            if same:
                yield keys, f"the composite {name!r} is the same as {same!r}: keep one"
            whole[name] = parts


def _is_part(part: object) -> bool:
    return (
        isinstance(part, Sequence)
        and len(part) == 3
        and isinstance(part[0], str)
        and all(type(n) is int for n in part[1:])
    )


def _parts(composites: Mapping[str, Any], name: str) -> list[tuple[str, int, int]]:
    """The parts of a composite that are written as they must be; none where there is no such composite."""
    parts = composites.get(name, ())
    return [tuple(part) for part in parts if _is_part(part)] if isinstance(parts, Sequence) else []


def _one_size(features: Mapping[str, Any]) -> tuple[int, int] | None:
    """The size of the variants, where it is known."""
    try:
        first = next(iter(features.values()))[0]
        return len(first), len(first[0])
    except (StopIteration, TypeError, IndexError, KeyError):
        return None


def _cycle(name: str, composites: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The way from a composite back to itself, if there is one."""
    waiting: list[tuple[str, ...]] = [(name,)]
    seen = set[str]()
    while waiting:
        way = waiting.pop()
        for inner, _, _ in _parts(composites, way[-1]):
            if inner == name:
                return (*way, name)
            if inner in composites and inner not in seen:
                seen.add(inner)
                waiting.append((*way, inner))
    return None


def unfold(name: str, features: Mapping[str, Any], composites: Mapping[str, Any]) -> Parts | None:
    """A feature as base features with offsets from the top left corner; None where something below it is wrong."""
    if name in features:
        return frozenset({(name, 0, 0)})
    found: list[tuple[str, int, int]] = []
    if _cycle(name, composites):
        return None
    for part, lower, further in _parts(composites, name):
        inner = unfold(part, features, composites)
        if inner is None:
            return None
        found += [(base, down + lower, right + further) for base, down, right in inner]
    if not found:
        return None
    top, left = min(down for _, down, _ in found), min(right for _, _, right in found)
    return frozenset((base, down - top, right - left) for base, down, right in found)


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


def _class_problems(features: Mapping[str, Any], composites: Mapping[str, Any], classes: Mapping[str, Any]) -> Found:
    known = {**features, **composites}
    good: dict[str, frozenset[str]] = {}
    for name, members in classes.items():
        keys = ("classes", name)
        if message := _name_problem(name, "class"):
            yield keys, message
        if not isinstance(members, Sequence) or isinstance(members, str) or not members:
            yield keys, f"the class {name!r} must have at least one feature: a list of names"
            continue
        for member in dict.fromkeys(map(str, members)):
            if member not in known:
                yield keys, f"the class {name!r} has {member!r}, which is neither a feature nor a composite"
        if len(set(map(str, members))) < len(members):
            yield keys, f"the class {name!r} lists a feature twice: list it once"
        if all(isinstance(member, str) and member in known for member in members):
            good[name] = frozenset(members)
    yield from _antichain_problems(good, features, composites)
    used = {str(m) for members in classes.values() if isinstance(members, Sequence) for m in members}
    used |= {part for name in composites for part, _, _ in _parts(composites, name)}
    for table, names in (("features", features), ("composites", composites)):
        for name in names:
            if name not in used and classes:
                yield (table, name), f"{name!r} is in no class and no composite: use it or leave it out"


def _antichain_problems(
    classes: Mapping[str, frozenset[str]], features: Mapping[str, Any], composites: Mapping[str, Any]
) -> Found:
    """No class may have all that another one has, or every image of the one would also be of the other."""
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
                yield (
                    ("classes", name),
                    f"an image of {name!r} has all that {other!r} asks for: add to {other!r} what {name!r} has not",
                )


def _within(few: Parts | None, many: Parts | None) -> bool:
    """Whether wherever many parts are present, few parts are, too: they are some of them, perhaps moved."""
    if few is None or many is None:
        return False
    base, down, right = min(few)
    moves = [(d - down, r - right) for other, d, r in many if other == base]
    return any(all((b, d + move, r + shift) in many for b, d, r in few) for move, shift in moves)
