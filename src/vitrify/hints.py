"""Type hints taken apart: their extras, alternatives and containers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin


def metadata(hint: object) -> tuple[object, ...]:
    """Return the extras of an `Annotated` type."""
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def bare(hint: object) -> object:
    """Return a type without its `Annotated`."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def options(hint: object) -> tuple[object, ...]:
    """Return the alternatives of a union, each with its extras, and without None; of any other type none."""
    base, extras = bare(hint), metadata(hint)
    alternatives = get_args(base) if get_origin(base) in (Union, UnionType) else ()
    return tuple(Annotated[(each, *extras)] if extras else each for each in alternatives if each is not NoneType)


def container(hint: object) -> tuple[type, ...]:
    """Return the type of JSON data whose parts a value is made of, object or list; none for values without parts."""
    base = bare(hint)
    table = get_origin(base) is Mapping or is_dataclass(base)
    return (Mapping,) if table else (list,) if get_origin(base) is tuple else ()


def class_of(base: object) -> Any:
    """Return the class of a type with arguments."""
    return get_origin(base) or base


def accepts(hint: object, data: object) -> bool:
    """Return whether JSON data have the form of a type; what is inside of dataclasses is left to their readers.

    >>> accepts(tuple[int, ...] | None, [1, 2]), accepts(Mapping[str, float], {"a": "b"}), accepts(Literal["<="], "=")
    (True, False, False)
    """
    base, parts = bare(hint), get_args(bare(hint))
    if get_origin(base) in (Union, UnionType):
        return any(accepts(each, data) for each in parts)
    if get_origin(base) is Literal:
        return isinstance(data, str | int | None) and data in parts
    kind = class_of(base)
    if kind is tuple:
        items = parts[:1] * len(data) if isinstance(data, list | tuple) and parts[1:] == (...,) else parts
        return isinstance(data, list | tuple) and (
            not parts or (len(items) == len(data) and all(map(accepts, items, data)))
        )
    if kind in (Mapping, dict):
        values = parts[1:] or (Any,)
        return isinstance(data, Mapping) and all(accepts(values[0], part) for part in data.values())
    if is_dataclass(kind):
        return isinstance(data, (kind if isinstance(kind, type) else object, Mapping))
    if kind in (int, float):
        return isinstance(data, int if kind is int else int | float) and not isinstance(data, bool)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return isinstance(data, kind) or data in [each.value for each in kind]
    return kind is Any or not isinstance(kind, type) or isinstance(data, kind)
