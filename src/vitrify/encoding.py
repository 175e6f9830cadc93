"""JSON data: one rule for what Python values become, and for numbers that JSON does not have.

| value | JSON |
| --- | --- |
| `nan`, `inf`, `-inf` | the strings `"NaN"`, `"Infinity"`, `"-Infinity"` |
| NumPy and JAX numbers and arrays | numbers and nested lists |
| tuples, sets, mappings, enum members | lists, sorted lists, objects with string keys, their values |
| frozen dataclasses with `to_json` | what that returns |
| anything else | refused with a `TypeError` |

`decoded` is the way back for the first line, `parsed` the way back from text. A string that reads `NaN` is therefore
always a number here.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Set
from dataclasses import Field, field, fields, is_dataclass
from enum import Enum
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]  # what `json` reads of an object; its values are judged where they are used
JsonMapping: TypeAlias = Mapping[str, Any]  # the same, to be read only
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def encoded(value: object, digits: int | None = None) -> Json:
    """Return a value as JSON data; floats are rounded to so many significant digits where `digits` is given.

    >>> encoded({"margin": float("nan"), "positions": (1, 2)})
    {'margin': 'NaN', 'positions': [1, 2]}
    """
    if isinstance(value, Enum):
        return encoded(value.value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return float(value) if digits is None else float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {str(encoded(key)): encoded(part, digits) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [encoded(part, digits) for part in value]
    if isinstance(value, Set):
        return [encoded(part, digits) for part in sorted(value)]
    if hasattr(value, "to_json"):
        return encoded(value.to_json(), digits)
    if hasattr(value, "tolist"):
        return encoded(value.tolist(), digits)
    raise TypeError(f"a value of type {type(value).__name__} has no form in JSON: {value!r}")


def decoded(data: Json) -> Json:
    """Return JSON data with the three strings for numbers that JSON lacks turned back into floats.

    >>> decoded({"margin": "-Infinity"})
    {'margin': -inf}
    """
    if isinstance(data, str):
        return NON_FINITE.get(data, data)
    if isinstance(data, list):
        return [decoded(part) for part in data]
    if isinstance(data, dict):
        return {key: decoded(part) for key, part in data.items()}
    return data


def canonical(value: object) -> str:
    """Return the one text of a value: sorted keys, one space of indentation, an end of line; for files and digests."""
    return json.dumps(encoded(value), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def line(value: object) -> str:
    """Return a value as JSON on one line, without spaces, keys in their order."""
    try:
        return _plain_line(value)
    except (TypeError, ValueError):  # something in it is not plain JSON data
        return _plain_line(encoded(value))


def parsed(text: str | bytes) -> Any:
    """Return the data of a JSON text that `canonical` or `line` wrote."""
    data: Json = json.loads(text)
    text = text if isinstance(text, bytes) else text.encode()
    return decoded(data) if b"NaN" in text or b"Infinity" in text else data


def added(default: Any) -> Any:
    """Declare a field that runs and nets recorded before it lack: at its default, nothing that names the value has it.

    Identities of runs, digests, `config.json` and evidence from before the field stay what they were.
    """
    return field(default=default, metadata={"later": True, "added": True})


def named_fields(value: Any) -> list[Field[Any]]:
    """Return the fields of a dataclass, without those that were `added` and have their default."""
    return [
        each for each in fields(value) if not (each.metadata.get("added") and getattr(value, each.name) == each.default)
    ]


def drawn(value: object) -> str:
    """Return the `repr` of a dataclass, of its named fields."""
    shown = (f"{each.name}={getattr(value, each.name)!r}" for each in named_fields(value))
    return f"{type(value).__name__}({', '.join(shown)})"


_plain_line = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def recorded_name(value: object) -> str:
    """Return the name of a value's class in digests and recorded evidence: `RECORDED` where it was renamed."""
    kind = type(value)
    return str(vars(kind).get("RECORDED", kind.__name__))


def content(value: object) -> str:
    """Return all that a value holds, as text for a digest: the `repr` of a large spec is only a drawing of it."""
    if is_dataclass(value):
        return (
            f"{recorded_name(value)}({', '.join(content(getattr(value, each.name)) for each in named_fields(value))})"
        )
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(content, value))}]"
    if isinstance(value, set | frozenset):
        return f"[{', '.join(sorted(map(content, value)))}]"
    if isinstance(value, Mapping):
        return f"[{', '.join(f'{content(key)}: {content(part)}' for key, part in value.items())}]"
    numpy = sys.modules.get("numpy")
    return str(value.tolist()) if numpy and isinstance(value, numpy.ndarray) else repr(value)
