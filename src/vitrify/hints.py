"""Type hints taken apart: their extras, alternatives and containers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin


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
