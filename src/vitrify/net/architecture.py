"""What a transformer looks like, without its numbers: blocks of attention heads and ReLU units.

An architecture is a frozen, hashable value, so a compiled program can be keyed by it. A built net and a trained net
share it; only the arrays differ.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, Literal, get_args, get_origin, get_type_hints

from vitrify.errors import FolderError

AttentionKind = Literal["softmax", "sparsemax", "hard"]
Ties = Literal["left", "right", "average"]
Mask = Literal["none", "causal", "strict"]
Residual = Literal["add", "concatenate"]
OutputKind = Literal["lm", "recogniser", "transducer", "next"]


@dataclass(frozen=True)
class Head:
    r"""How one head turns scores into weights.

    Scores are $s_{ij} = \beta\,q_i \cdot k_j + r_{i-j}$; `beta` and `r` are arrays of the block. Keys that the mask
    or the window (offsets $0 \le i-j <$ window) exclude get weight 0, and a query with no key left gets the zero
    vector. `hard` shares the weight among the keys whose score is within `resolution` of the best: all of them
    (`average`), or only the `left`most or `right`most.
    """

    attention: AttentionKind = "softmax"
    mask: Mask = "causal"
    window: int | None = None
    ties: Ties = "average"
    resolution: float = 0.0


@dataclass(frozen=True)
class Block:
    """One layer: heads in parallel, then an MLP of ReLU units; either may be absent."""

    heads: tuple[Head, ...] = ()
    d_head: int = 0
    d_value: int = 0
    units: int = 0
    d_out: int = 0  # concatenating residual only: width that each head and the MLP append

    @property
    def window(self) -> int:
        """Width of the block's table of relative biases: the largest window of its heads."""
        return max((head.window or 0 for head in self.heads), default=0)


@dataclass(frozen=True)
class Output:
    """How the logits are read.

    `lm`: next-token log-probabilities, normalised by a softmax unless `normalised` says that they already are.
    `recogniser`: the likeliest symbol is the automaton's state, `accepting` ones say yes. `transducer`: one symbol
    each. `next`: a symbol may come next iff its logit is positive.
    """

    kind: OutputKind
    symbols: tuple[str, ...]
    normalised: bool = False
    accepting: tuple[str, ...] = ()


@dataclass(frozen=True)
class Transformer:
    """A transformer over `inputs`, the first of which is the beginning-of-sequence token (BOS), put first `pads` times.

    `max_length` counts the tokens of a sequence without the pads. `norm` puts a layer norm before every attention,
    every MLP and the unembedding, with `eps` under the root.
    """

    inputs: tuple[str, ...]
    output: Output
    max_length: int
    d_model: int
    blocks: tuple[Block, ...] = ()
    pads: int = 1
    residual: Residual = "add"
    norm: bool = False
    eps: float = 0.0
    name: str = field(default="transformer", compare=False)

    @cached_property
    def input_ids(self) -> dict[str, int]:
        """The number of every symbol that may be given, BOS left out."""
        return {symbol: number for number, symbol in enumerate(self.inputs) if number > 0}

    @property
    def positions(self) -> int:
        """Rows of the position table: the longest sequence with its pads."""
        return self.max_length + self.pads

    @property
    def widths(self) -> tuple[int, ...]:
        """Residual width before each half layer (attention, MLP, attention, …) and at the end.

        It is constant when the residual adds, and grows when it concatenates.
        """
        widths = [self.d_model]
        for block in self.blocks:
            grow = block.d_out if self.residual == "concatenate" else 0
            widths.append(widths[-1] + grow * len(block.heads))
            widths.append(widths[-1] + (grow if block.units else 0))
        return tuple(widths)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every array; the names are those that interpretability tools use."""
        shapes: dict[str, tuple[int, ...]] = {
            "embed.W_E": (len(self.inputs), self.d_model),
            "pos_embed.W_pos": (self.positions, self.d_model),
        }
        for index, block in enumerate(self.blocks):
            at_attention, at_mlp, _ = self.widths[2 * index : 2 * index + 3]
            out = block.d_out if self.residual == "concatenate" else self.d_model
            heads, d_head, d_value, units = len(block.heads), block.d_head, block.d_value, block.units
            name = f"blocks.{index}"
            if heads:
                shapes |= {
                    f"{name}.attn.W_Q": (heads, at_attention, d_head),
                    f"{name}.attn.b_Q": (heads, d_head),
                    f"{name}.attn.W_K": (heads, at_attention, d_head),
                    f"{name}.attn.b_K": (heads, d_head),
                    f"{name}.attn.W_V": (heads, at_attention, d_value),
                    f"{name}.attn.b_V": (heads, d_value),
                    f"{name}.attn.W_O": (heads, d_value, out),
                    f"{name}.attn.beta": (heads,),
                }
                if block.window:
                    shapes[f"{name}.attn.b_rel"] = (heads, block.window)
                if self.norm:
                    shapes |= {f"{name}.ln1.w": (at_attention,), f"{name}.ln1.b": (at_attention,)}
            if units:
                shapes |= {
                    f"{name}.mlp.W_in": (at_mlp, units),
                    f"{name}.mlp.b_in": (units,),
                    f"{name}.mlp.W_out": (units, out),
                    f"{name}.mlp.b_out": (out,),
                }
                if self.norm:
                    shapes |= {f"{name}.ln2.w": (at_mlp,), f"{name}.ln2.b": (at_mlp,)}
        last = self.widths[-1]
        if self.norm:
            shapes |= {"ln_final.w": (last,), "ln_final.b": (last,)}
        return shapes | {"unembed.W_U": (last, len(self.output.symbols)), "unembed.b_U": (len(self.output.symbols),)}


def to_json(architecture: Transformer) -> dict[str, Any]:
    """The architecture as plain JSON data."""
    return {"architecture": "transformer"} | asdict(architecture)


def from_json(data: Any) -> Transformer:
    """The architecture that `to_json` wrote; anything else is refused with the field that is wrong."""
    if not isinstance(data, dict) or data.get("architecture") != "transformer":
        given = data.get("architecture") if isinstance(data, dict) else data
        raise FolderError(f"this reader knows architecture 'transformer', not {given!r}")
    net: Transformer = _read(Transformer, {key: data[key] for key in data if key != "architecture"}, "net")
    return net


def _read(kind: Any, data: Any, place: str) -> Any:
    """The value of a declared type that JSON data describe, part by part; `place` names the part in a complaint."""
    origin, options = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind) and isinstance(data, dict):
        kinds = get_type_hints(kind)
        declared = {entry.name: entry.default for entry in fields(kind)}
        odd = [f"{place}.{name} is missing" for name in declared if declared[name] is MISSING and name not in data]
        odd += [f"{place}.{name} is not a field of it" for name in data if name not in declared]
        if odd:
            raise FolderError("config.json does not describe a transformer: " + "; ".join(odd))
        return kind(**{name: _read(kinds[name], part, f"{place}.{name}") for name, part in data.items()})
    if origin is tuple and isinstance(data, list | tuple):
        return tuple(_read(options[0], part, f"{place}.{index}") for index, part in enumerate(data))
    types = (int, float) if kind is float else options or (kind,)
    if data in options if origin is Literal else origin is not tuple and type(data) in types:
        return data
    plain = kind.__name__ if isinstance(kind, type) else kind
    wanted = {Literal: f"one of {', '.join(map(str, options))}", tuple: "a list"}.get(origin, plain)
    raise FolderError(f"config.json does not describe a transformer: {place} must be {wanted}, is {data!r}")
