"""What every network has, whatever its architecture: an output, named arrays of known shapes, one forward pass.

An architecture is a frozen, hashable value, so a compiled program can be keyed by it. A built net and a trained net
share it; only the arrays differ. Each kind of network is one entry of `ARCHITECTURES` and lives in its own file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from importlib import import_module
from types import UnionType
from typing import Any, ClassVar, Literal, Protocol, get_args, get_origin, get_type_hints

from vitrify.arrays import Array
from vitrify.errors import FolderError

Reads = Literal["tokens", "vector", "rows", "image"]
OutputKind = Literal["lm", "recogniser", "transducer", "next", "class", "values"]
Scores = Literal["softmax", "log", "linear"]
Record = Callable[[str, Any], None]
Edit = Callable[[str, Any], Any]  # what goes on in the place of what a part of a network reads, by name

# The tag of an architecture in config.json: the file and the value that describe it (imported when one is read).
ARCHITECTURES = {
    "transformer": ("transformer", "Transformer"),
    "recurrent": ("recurrent", "Recurrent"),
    "convolutional": ("conv", "Convolutional"),
}


@dataclass(frozen=True)
class Output:
    """How the logits are read.

    `lm`: next-token probabilities; `scores` says whether the logits go through a softmax, are log-probabilities
    already, or are weights that are divided by their sum. `recogniser`: the likeliest symbol is the automaton's state,
    `accepting` ones say yes. `transducer`: one symbol each. `next`: a symbol may come next iff its logit is positive.
    `class`: the likeliest symbol is the answer. `values`: the logits are the answer, real numbers named by `symbols`,
    each within `error` of the right one.
    """

    kind: OutputKind
    symbols: tuple[str, ...]
    scores: Scores = "softmax"
    accepting: tuple[str, ...] = ()
    error: float = 0.0


class Architecture(Protocol):
    """A network without its numbers."""

    tag: ClassVar[str]

    @property
    def name(self) -> str: ...

    @property
    def reads(self) -> Reads:
        """Symbols one after the other, a vector of numbers, a vector at every position, or an image."""
        ...

    @property
    def output(self) -> Output: ...

    @property
    def heads_per_layer(self) -> tuple[int, ...]: ...

    @property
    def units_per_layer(self) -> tuple[int, ...]: ...

    @property
    def width(self) -> int:
        """Numbers that go from one layer to the next, at one place."""
        ...

    @property
    def d_head(self) -> int: ...

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every array."""
        ...

    def activations(self, positions: int) -> int:
        """Numbers that a run holds at once for one input of so many positions: what decides the size of a batch."""
        ...

    def forward(
        self,
        arrays: Mapping[str, Any],
        inputs: Array,
        *,
        lengths: Array | None = None,
        record: Record | None = None,
        query_chunk: int | None = None,
    ) -> Array:
        """Logits of a batch: [batch, pos, out] where there are positions, else [batch, out]."""
        ...


class SequenceArchitecture(Architecture, Protocol):
    """A network that reads symbols one after the other: BOS, which is the first of `inputs`, `pads` times in front."""

    @property
    def inputs(self) -> tuple[str, ...]: ...

    @property
    def pads(self) -> int: ...

    @property
    def min_length(self) -> int:
        """The fewest tokens of a sequence that it answers."""
        ...

    @property
    def max_length(self) -> int: ...

    @property
    def input_ids(self) -> dict[str, int]:
        """The number of every symbol that may be given, BOS left out."""
        ...

    @property
    def moments(self) -> tuple[str, ...]:
        """The activations that hold what goes from layer to layer: after embedding, and after each half layer."""
        ...

    @property
    def looks_ahead(self) -> bool:
        """Whether an answer may depend on what comes after it."""
        ...

    @property
    def soft(self) -> bool:
        """Whether an exact answer is only approached: some head spreads its weight by a softmax."""
        ...

    @property
    def cost(self) -> float:
        """Multiplications for one position, roughly: what decides how many questions are affordable."""
        ...


def to_json(architecture: Any) -> dict[str, Any]:
    """The architecture as plain JSON data."""
    return {"architecture": architecture.tag} | asdict(architecture)


def from_json(data: Any) -> Any:
    """The architecture that `to_json` wrote; anything else is refused with the field that is wrong."""
    tag = data.get("architecture") if isinstance(data, dict) else data
    if not isinstance(data, dict) or tag not in ARCHITECTURES:
        raise FolderError(f"this reader knows architecture {', '.join(map(repr, ARCHITECTURES))}, not {tag!r}")
    module, value = ARCHITECTURES[tag]
    kind = getattr(import_module(f"vitrify.net.{module}"), value)
    return _read(kind, {key: data[key] for key in data if key != "architecture"}, "net", tag)


def _read(kind: Any, data: Any, place: str, tag: str) -> Any:
    """The value of a declared type that JSON data describe, part by part; `place` names the part in a complaint."""
    origin, options = get_origin(kind), get_args(kind)
    if origin is UnionType and isinstance(data, dict) and is_dataclass(options[0]):  # a part that may be missing
        kind = options[0]
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(data, dict):
        kinds = get_type_hints(kind)
        declared = {entry.name: entry.default for entry in fields(kind)}
        odd = [f"{place}.{name} is missing" for name in declared if declared[name] is MISSING and name not in data]
        odd += [f"{place}.{name} is not a field of it" for name in data if name not in declared]
        if odd:
            raise FolderError(f"config.json does not describe a {tag}: " + "; ".join(odd))
        return kind(**{name: _read(kinds[name], part, f"{place}.{name}", tag) for name, part in data.items()})
    if origin is tuple and isinstance(data, list | tuple):
        return tuple(_read(options[0], part, f"{place}.{index}", tag) for index, part in enumerate(data))
    types = (int, float) if kind is float else options or (kind,)
    if data in options if origin is Literal else origin is not tuple and type(data) in types:
        return data
    plain = kind.__name__ if isinstance(kind, type) else kind
    wanted = {Literal: f"one of {', '.join(map(str, options))}", tuple: "a list"}.get(origin, plain)
    raise FolderError(f"config.json does not describe a {tag}: {place} must be {wanted}, is {data!r}")
