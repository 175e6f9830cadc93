"""Shapes in annotations, checked whenever a test crosses a border of net, kit, certify, sandboxes or learn.

jaxtyping is imported before vitrify, so `Tokens`, `Float[Array, "batch pos model"]` and the like are its types (see
`vitrify/arrays.py`). Each module is searched once, when it has run: functions, methods and the constructors of
dataclasses whose annotations name a shape check it, axis by axis, the same letter being the same number in one call.
A named tuple whose fields have shapes, such as `Example`, is checked where a function takes or returns it; JAX makes
others of the same kind, of axes and of types.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import cache, wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, get_args, get_origin

import jaxtyping
from jaxtyping import AbstractArray, AbstractDtype, jaxtyped

ROOMS = ("vitrify.net.", "vitrify.kit.", "vitrify.certification.", "vitrify.sandboxes.", "vitrify.learn.")


ABSENT = object()  # an argument that is left out


class ShapeError(TypeError):
    """An argument or a result whose shape or type of numbers is not the declared one."""


def install() -> None:
    """Check the shapes of all modules of the rooms that are imported from now on."""
    sys.meta_path.insert(0, Finder())


class Finder(MetaPathFinder):
    """Modules of the rooms, found where they are, loaded with checks."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname.startswith(ROOMS) else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


class Loader(SourceFileLoader):
    """Runs a module, and then lets its functions check their shapes."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        for name, value in list(vars(module).items()):
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(value):
                setattr(module, name, checked(value))
            elif inspect.isclass(value) and not _is_record(value):
                _check_methods(value)


def _check_methods(owner: type) -> None:
    for name, value in list(vars(owner).items()):
        if name == "__init__" and is_dataclass(owner):
            setattr(owner, name, _checked_fields(owner, value))
        elif inspect.isfunction(value):
            setattr(owner, name, checked(value))
        elif isinstance(value, classmethod | staticmethod):
            setattr(owner, name, type(value)(checked(value.__func__)))


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its shapes checked at every call, or itself where its annotations name none.

    A call with arguments and a result of types and shapes that fitted before is not judged again.
    """
    hints = _hints(function)
    if not hints:
        return function
    parameters = inspect.signature(function).parameters.values()
    places = [  # the last places are never reached: their arguments are named
        (at if parameter.kind is not parameter.KEYWORD_ONLY else sys.maxsize, parameter.name)
        for at, parameter in enumerate(parameters)
        if parameter.name in hints
    ]
    fitting = set[tuple[object, ...]]()

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        count = len(args)
        values = [args[at] if at < count else named.get(name, ABSENT) for at, name in places]
        shapes = [_shape(value) for value in values]
        if (seen := (*shapes, "called")) not in fitting:
            with jaxtyped("context"):
                _judge_all(values)
            fitting.add(seen)
        result = function(*args, **named)
        if "return" in hints and (seen := (*shapes, _shape(result))) not in fitting:
            with jaxtyped("context"):
                if not _is_record(hints["return"]):  # a record may be longer or shorter than the one that was taken
                    _judge_all(values)
                _judge(result, hints["return"], f"{function.__qualname__}: the result")
            fitting.add(seen)
        return result

    def _judge_all(values: list[Any]) -> None:
        for (_, name), value in zip(places, values, strict=True):
            _judge(value, hints[name], f"{function.__qualname__}: {name}")

    return call


def _shape(value: Any) -> object:
    """What the judgement of a value depends on."""
    kind = type(value)
    if isinstance(value, tuple):
        return (kind, *map(_shape, value))
    return (kind, value.shape, value.dtype) if hasattr(kind, "shape") and hasattr(kind, "dtype") else kind


def _checked_fields(owner: type, make: Callable[..., None]) -> Callable[..., None]:
    """Return a dataclass's constructor, after which the fields are checked: it may convert what it is given."""
    hints = _hints(owner)
    fitting = set[tuple[object, ...]]()

    @wraps(make)
    def init(self: object, *args: Any, **named: Any) -> None:
        make(self, *args, **named)
        values = [getattr(self, name) for name in hints]
        if (shapes := tuple(map(_shape, values))) not in fitting:
            with jaxtyped("context"):
                for (name, hint), value in zip(hints.items(), values, strict=True):
                    _judge(value, hint, f"{owner.__qualname__}: {name}")
            fitting.add(shapes)

    return init if hints else make


def _hints(owner: Any) -> dict[str, Any]:
    """Return the annotations that name a shape, as types; names that only type checkers import are those of jaxtyping.

    They are read from its namespace: an attribute of it, such as `Array`, would import JAX.
    """
    module = vars(sys.modules.get(owner.__module__, jaxtyping))
    hints = {}
    for name, declared in inspect.get_annotations(owner).items():
        text: Any = getattr(declared, "__forward_arg__", declared)  # a named tuple has wrapped it
        words = re.findall(r"\w+", text) if isinstance(text, str) else ()
        if any(_is_shape(module.get(word, vars(jaxtyping).get(word))) for word in words):
            hints[name] = eval(text, {**vars(jaxtyping), **module})
    return hints


def _is_shape(value: Any) -> bool:
    return inspect.isclass(value) and (issubclass(value, AbstractArray | AbstractDtype) or _is_record(value))


def _is_record(value: Any) -> bool:
    """Whether a value is a class of named tuples with shapes."""
    return inspect.isclass(value) and issubclass(value, tuple) and hasattr(value, "_fields") and bool(_parts(value))


@cache
def _parts(record: type) -> dict[str, Any]:
    return _hints(record)


def _judge(value: object, hint: Any, place: str) -> None:
    if value is not ABSENT and not _fits(value, hint):
        given = (
            f"shape {value.shape} of {value.dtype}" if hasattr(value, "dtype") and hasattr(value, "shape") else value
        )
        raise ShapeError(f"{place} must be {hint}, is {given}")


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is of a type; what is neither a shape nor made of some is not judged."""
    if inspect.isclass(hint) and issubclass(hint, AbstractArray):
        return isinstance(value, hint)
    if _is_record(hint):
        fields = ((getattr(value, name, None), part) for name, part in _parts(hint).items())
        return all(field is None or _fits(field, part) for field, part in fields)
    parts = get_args(hint)
    if get_origin(hint) is tuple and Ellipsis not in parts and isinstance(value, tuple):
        return len(value) == len(parts) and all(map(_fits, value, parts))
    if type(None) in parts:
        return value is None or all(_fits(value, part) for part in parts if part is not type(None))
    return True
