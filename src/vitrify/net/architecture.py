"""The interface of all architectures: an output, named arrays of known shapes, one forward pass.

An architecture is a frozen, hashable value, so a compiled program can be keyed by it. A built net and a trained net
share it; only the arrays differ. Each kind of network is one entry of `ARCHITECTURES` and lives in its own file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal, Protocol

from typing_extensions import TypedDict, Unpack

from vitrify.arrays import Array, Arrays, Float, Int, Num
from vitrify.encoding import JsonObject, named_fields
from vitrify.errors import FolderError
from vitrify.parameters import Fault, NonNegative, Within, convert, sentences, shown

Reads = Literal["tokens", "vector", "rows", "image"]
OutputKind = Literal["lm", "recognizer", "transducer", "next", "class", "values"]
Scores = Literal["softmax", "log", "linear"]
Record = Callable[[str, Array], None]
Edit = Callable[[str, Array], Array]  # (name, input of a part) -> the value to use instead

Size = Annotated[int, Within(0, 1 << 40)]  # a count in an architecture, which may come from a file

# The tag of an architecture in config.json: the file and the value that describe it (imported when one is read).
ARCHITECTURES = {
    "transformer": ("transformer", "Transformer"),
    "recurrent": ("recurrent", "Recurrent"),
    "convolutional": ("conv", "Convolutional"),
}


@dataclass(frozen=True)
class Output:
    """The meaning of the logits.

    `lm`: next-token probabilities; `scores` says whether the logits go through a softmax, are log-probabilities
    already, or are weights that are divided by their sum; each probability is within `error` of the right one, where it
    is not 0. `recognizer`: the likeliest symbol is the automaton's state,
    `accepting` ones say yes. `transducer`: one symbol each. `next`: a symbol may come next iff its logit is positive.
    `class`: the likeliest symbol is the answer. `values`: the logits are the answer, real numbers named by `symbols`,
    each within `error` of the right one; of other kinds, `error` is 0.
    """

    kind: OutputKind
    symbols: tuple[str, ...]
    scores: Scores = "softmax"
    accepting: tuple[str, ...] = ()
    error: NonNegative = 0.0


class Options(TypedDict, total=False):
    """Options of a forward pass."""

    lengths: Int[Array, " batch"] | None  # of the sequences, leading BOS tokens included; later positions are hidden
    record: Record | None  # sees every activation, by name
    query_chunk: int | None  # bounds memory on long sequences


class Architecture(Protocol):
    """A network without its parameters."""

    tag: ClassVar[str]

    @property
    def name(self) -> str: ...

    @property
    def reads(self) -> Reads:
        """Symbols one after the other, a vector of numbers, a vector at every position, or an image."""

    @property
    def output(self) -> Output: ...

    @property
    def heads_per_layer(self) -> tuple[int, ...]: ...

    @property
    def units_per_layer(self) -> tuple[int, ...]: ...

    @property
    def width(self) -> int:
        """The width of what passes from layer to layer at one position."""

    @property
    def d_head(self) -> int: ...

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every array."""

    def activations(self, positions: int) -> int:
        """Return the number of activations held at once for one input; it decides the size of a batch."""

    def forward(
        self, arrays: Arrays, inputs: Num[Array, "batch ..."], **options: Unpack[Options]
    ) -> Float[Array, "batch ... out"]:
        """Logits of a batch: [batch, pos, out] where there are positions, else [batch, out]."""


class SequenceArchitecture(Architecture, Protocol):
    """A network that reads symbols one after the other; `pads` copies of BOS, the first of `inputs`, come first."""

    @property
    def inputs(self) -> tuple[str, ...]: ...

    @property
    def pads(self) -> int: ...

    @property
    def min_length(self) -> int:
        """The length of the shortest sequence that it accepts."""

    @property
    def max_length(self) -> int: ...

    @property
    def longest(self) -> int:
        """The length of the longest sequence that it reads: `max_length`, or more where no array depends on it."""

    @property
    def input_ids(self) -> dict[str, int]:
        """The token id of every input symbol but BOS."""

    @property
    def moments(self) -> tuple[str, ...]:
        """The names of the activations that pass from layer to layer: after embedding, and after each half layer."""

    @property
    def looks_ahead(self) -> bool:
        """True if an output may depend on later positions."""

    @property
    def soft(self) -> bool:
        """True if some head has softmax attention, so that outputs only approach the exact ones."""

    @property
    def cost(self) -> float:
        """The approximate number of multiplications for one position; it decides how many test cases are run."""


def layer_shapes(name: str, reads: int, units: int, writes: int) -> dict[str, tuple[int, ...]]:
    """Return name and shape of the arrays of one hidden layer: weights and biases of its units, then of its output."""
    first = {f"{name}.W_in": (reads, units), f"{name}.b_in": (units,)}
    return {**first, f"{name}.W_out": (units, writes), f"{name}.b_out": (writes,)}


def to_json(architecture: Any) -> JsonObject:
    """Return the architecture as plain JSON data."""
    return {"architecture": architecture.tag} | dict(_plain(architecture))


def _plain(value: Any) -> Any:
    """Return a dataclass as a dictionary of its named fields, and so on within it."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return (
        {each.name: _plain(getattr(value, each.name)) for each in named_fields(value)} if is_dataclass(value) else value
    )


def from_json(data: object) -> Any:
    """Return the architecture that `to_json` wrote; the error names each wrong field."""
    tag = data.get("architecture") if isinstance(data, dict) else data
    if not isinstance(data, dict) or not isinstance(tag, str) or tag not in ARCHITECTURES:
        known = ", ".join(map(repr, ARCHITECTURES))
        raise FolderError(f"this reader knows architecture {known}, not {shown(tag)}")
    module, value = ARCHITECTURES[tag]
    kind = getattr(import_module(f"vitrify.net.{module}"), value)
    faults: list[Fault] = []
    architecture = convert(kind, {key: data[key] for key in data if key != "architecture"}, ("net",), faults)
    if problems := sentences(faults) or _name_problems(architecture):
        raise FolderError(f"config.json does not describe a {tag}: " + "; ".join(problems))
    return architecture


def _name_problems(net: Any) -> list[str]:
    """Return what is wrong with the names of inputs and outputs; the first input may be called like another one."""
    output, inputs = net.output, getattr(net, "inputs", getattr(net, "symbols", ()))
    read = inputs[1:] if net.reads == "tokens" else inputs
    names = {"net.output.symbols": output.symbols, "net.output.accepting": output.accepting, "net.inputs": read}
    problems = [f"{key} must have different names" for key, some in names.items() if len(set(some)) < len(some)]
    if not output.symbols or (net.reads != "image" and not inputs):
        problems.append("net.inputs and net.output.symbols must not be empty")
    if not set(output.accepting) <= set(output.symbols):
        problems.append("net.output.accepting must be names in net.output.symbols")
    if output.error and output.kind not in ("values", "lm"):
        problems.append(f"net.output.error must be 0 where answers are no numbers, not {output.error:g}")
    if output.kind == "lm" and not output.error < 1 / 2:
        problems.append(f"net.output.error of a probability must be below 0.5, not {output.error:g}")
    if getattr(net, "min_length", 0) > getattr(net, "max_length", 0):
        problems.append(f"net.min_length must be at most net.max_length, {net.max_length}, not {net.min_length}")
    return problems
