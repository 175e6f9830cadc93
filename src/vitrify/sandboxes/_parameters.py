"""Values that are described by parameters: checked when they are made, from strings too, and written down as JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import jax
import numpy as np

from vitrify.errors import InputError


@dataclass(frozen=True)
class Choices:
    """A value whose fields are its parameters: a sandbox, a family of models, a recipe.

    Fields named in `TRACED` may be JAX values: members of one compiled program can differ in them. They are checked
    when they are plain numbers.
    """

    TRACED: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if any(isinstance(getattr(self, name), jax.core.Tracer) for name in self.TRACED):
            return
        problems = list(self.problems())
        if problems:
            raise InputError(f"no such {self.name}: " + "; ".join(problems))

    @property
    def name(self) -> str:
        """The name of the catalogue entry: the file it stands in."""
        return type(self).__module__.rsplit(".", 1)[-1]

    def problems(self) -> Iterator[str]:
        """All that is wrong with the parameters."""
        return iter(())

    def identity(self) -> dict[str, Any]:
        """The parameters as plain JSON data, for run identifiers; specs are named by their content."""
        return {entry.name: plain(getattr(self, entry.name)) for entry in fields(self)}


def later(default: Any) -> Any:
    """A parameter that was added when results were already kept: they are of its default, and stay what they are."""
    return field(default=default, metadata={"later": True})


def build_value(kind: type[Any], parameters: Mapping[str, Any], what: str) -> Any:
    """A frozen dataclass from parameters that may be strings; unknown, missing and ill-typed ones are refused."""
    hints, declared = get_type_hints(kind), {entry.name: entry for entry in fields(kind) if entry.init}
    problems = [f"unknown parameter {name!r}" for name in parameters if name not in declared]
    problems += [
        f"parameter {name!r} is missing"
        for name, entry in declared.items()
        if entry.default is MISSING and entry.default_factory is MISSING and name not in parameters
    ]
    values: dict[str, Any] = {}
    for name, value in parameters.items():
        if name in declared:
            try:
                values[name] = parsed(hints[name], value)
            except ValueError as error:
                problems.append(f"{name}={value}: {error}")
    if problems:
        known = ", ".join(f"{name}" for name in declared)
        raise InputError(f"{what}: " + "; ".join(problems) + f" (it has: {known})")
    return kind(**values)


def parsed(kind: Any, value: Any) -> Any:
    """A parameter of a declared type from a string (anything else is taken as it is, if it fits)."""
    options = get_args(kind)
    if get_origin(kind) is Literal:
        if value not in options:
            raise ValueError(f"must be one of {', '.join(map(str, options))}")
        return value
    if get_origin(kind) is Union or type(kind).__name__ == "UnionType":
        if value is None or value == "none":
            return None
        return parsed(next(option for option in options if option is not type(None)), value)
    if get_origin(kind) is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        return tuple(parsed(options[0], part) for part in parts)
    if kind is bool:
        if str(value).lower() not in ("true", "false", "1", "0", "yes", "no"):
            raise ValueError("must be true or false")
        return str(value).lower() in ("true", "1", "yes")
    if kind in (int, float):
        try:
            return kind(value)
        except (TypeError, ValueError):
            raise ValueError("must be a whole number" if kind is int else "must be a number") from None
    if isinstance(value, str) and kind is not str and hasattr(kind, "__mro__"):
        from vitrify.spec import find_spec  # a parameter that is a spec is given by its file, or a name

        found = find_spec(value)
        if not isinstance(found, kind):
            raise ValueError(f"must be of type {kind.__name__}, this is of type {type(found).__name__}")
        return found
    return value


def plain(value: Any) -> Any:
    """A parameter as JSON data: numbers, strings and lists as they are, everything else by its digest."""
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic | np.ndarray) or hasattr(value, "__array__"):
        return np.asarray(value).tolist()
    return f"{type(value).__name__}:{hashlib.sha256(_content(value).encode()).hexdigest()[:16]}"


def _content(value: Any) -> str:
    """All that a value holds, as text: the `repr` of a large spec is only a drawing of it."""
    if is_dataclass(value):
        return f"{type(value).__name__}({', '.join(_content(getattr(value, entry.name)) for entry in fields(value))})"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_content, value))}]"
    if isinstance(value, set | frozenset):
        return f"[{', '.join(sorted(map(_content, value)))}]"
    if isinstance(value, Mapping):
        return f"[{', '.join(f'{_content(key)}: {_content(part)}' for key, part in value.items())}]"
    return str(value.tolist()) if isinstance(value, np.ndarray) else repr(value)
