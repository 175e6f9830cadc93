"""The architecture of a transformer, without parameters: blocks of heads, recurrent cells, ReLU units, experts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from typing_extensions import Unpack

from vitrify.arrays import Array, Arrays, Int, Logits, Num
from vitrify.encoding import added, drawn
from vitrify.errors import FolderError
from vitrify.net.architecture import Edit, Options, Output, Reads, Size, layer_shapes
from vitrify.net.cells import Cell
from vitrify.net.experts import Expert, Gate, expert_shapes
from vitrify.net.positions import FLOAT64_BITS, MAX_DEGREE, PositionFormula, largest_root
from vitrify.parameters import NonNegative, Within

if TYPE_CHECKING:
    from vitrify.net.transformer_forward import Cache

AttentionKind = Literal["softmax", "sparsemax", "hard", "linear"]
Ties = Literal["left", "right", "average"]
Mask = Literal["none", "causal", "strict", "after"]
Residual = Literal["add", "concatenate"]
Groups = tuple[tuple[int, ...], ...]  # of dimensions

MAX_LOOPS = 1 << 10
QUERY_CHUNK = 1024  # longer sequences attend in chunks of queries


@dataclass(frozen=True)
class Head:
    r"""One attention head: its kind of attention, mask, window and segment.

    Scores are $s_{ij} = \beta\,q_i \cdot k_j + r_{i-j}$; `beta` and `r` are arrays of the block. Keys that the mask
    (`causal`: up to here; `strict`: before here; `after` here) or the window (offsets $0 \le i-j <$ window) exclude
    get weight 0, and a query with no key left gets the zero vector. `hard` shares the weight among the keys whose
    score is within `resolution` of the best: all of them (`average`), or only the `left`most or `right`most.
    `linear` takes scores as weights. A `rotary` head rotates the pairs $(x_c, x_{c+d/2})$ of its queries and keys at
    position $i$ by the angle $i\,b^{-2c/d}$, where $b$ is the value of `rotary` and $d$ the width of the head.

    With a `segment` of $n > 0$, the positions after the pads are cut into segments of $n$, from the first token on. A
    query then sees, of the keys that mask and window leave, only those of its own segment and the pads.
    """

    attention: AttentionKind = "softmax"
    mask: Mask = "causal"
    window: Size | None = None
    ties: Ties = "average"
    resolution: NonNegative = 0.0
    rotary: NonNegative = 0.0
    segment: Annotated[int, Within(0, 1 << 40)] = added(0)

    __repr__ = drawn


@dataclass(frozen=True)
class Block:
    """One layer: heads in parallel and a recurrent cell, then side by side an MLP of ReLU units and experts.

    Any may be absent. A net of blocks with cells and blocks with heads is a hybrid.
    """

    heads: tuple[Head, ...] = ()
    d_head: Size = 0
    d_value: Size = 0
    units: Size = 0
    d_out: Size = 0  # concatenating residual only: width that each head, the MLP and the experts append
    experts: tuple[Expert, ...] = ()
    router: Size = 0  # hidden units that choose the expert; without any the choice is linear
    cell: Cell | None = None
    gate: Gate | None = None  # of the experts

    def __post_init__(self) -> None:
        if self.gate and not 1 <= self.gate.top <= len(self.experts):
            raise FolderError(f"a gate activates 1 to {len(self.experts)} experts, not {self.gate.top}")
        if self.d_head % 2 and any(head.rotary for head in self.heads):
            raise FolderError(f"rotary heads turn pairs of numbers: their width must be even, not {self.d_head}")

    def __repr__(self) -> str:
        """Leave out an absent gate, so that digests from before gates existed stay the same."""
        shown = [entry.name for entry in fields(self) if entry.name != "gate" or self.gate]
        return f"Block({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    @property
    def window(self) -> int:
        """Width of the block's table of relative biases: the largest window of its heads."""
        return max((head.window or 0 for head in self.heads), default=0)

    @property
    def halves(self) -> int:
        """The number of parts that write after attention: the MLP, the experts."""
        return bool(self.units) + bool(self.experts)

    @property
    def busy(self) -> int:
        """The most hidden units active at one position: of the experts, one, or as many as the gate activates."""
        largest = sorted((expert.units for expert in self.experts), reverse=True)
        most = len(largest) if self.crowded else self.gate.top if self.gate else 1
        return self.units + self.router + sum(largest[:most])

    @property
    def crowded(self) -> bool:
        """True if experts choose sequences, so that an output depends on the other sequences of the batch."""
        return self.gate is not None and self.gate.by == "expert"


class TransformerOptions(Options, total=False):
    """Further options of a transformer's forward pass; see `transformer_forward.forward`."""

    cache: Cache | None
    starts: Int[Array, " batch"] | None
    edit: Edit | None


def _refuse_dims(dims: Sequence[int], width: int, what: str) -> None:
    if len(set(dims)) < len(dims) or not all(0 <= dim < width for dim in dims):
        raise FolderError(f"{what} must be different dimensions below {width}, not {dims}")


@dataclass(frozen=True)
class Transformer:
    r"""A transformer over `inputs`, the first of which is the beginning-of-sequence token (BOS), `pads` times in front.

    - `max_length` and `min_length` bound the tokens of a sequence, without the pads.
    - `norm` puts a layer norm before every attention, every MLP and the unembedding, with `eps` under the root.
      `groups` has, for each half layer and the unembedding, the groups of dimensions that are normalized separately;
      dimensions in no group are unchanged. Without `groups` the residual stream is one group.
    - `reads`: a net that reads a vector has no tokens: `inputs` name the numbers, which are the same at each of its
      `max_length` positions, and the output is that of the last. One that reads rows has a vector at each position.
    - The blocks run `loops` times over, with the same weights.
    - `formulas`: some dimensions are computed from the position (`positions.py`), and there is no table of positions.
    - With a `rounding` of $c > 0$ there is no table either. Such a net is tested up to `max_length`, and reads
      sequences as long as $c n^p u \le 1$ for their $n$ positions, where $u$ is the unit roundoff of the format in
      which it runs and $p$ is `rounding_power`.
    """

    tag: ClassVar[str] = "transformer"

    inputs: tuple[str, ...]
    output: Output
    max_length: Size
    d_model: Size
    blocks: tuple[Block, ...] = ()
    pads: Size = 1
    residual: Residual = "add"
    norm: bool = False
    eps: NonNegative = 0.0
    groups: tuple[Groups, ...] = ()
    reads: Reads = "tokens"
    min_length: Size = 0
    loops: Annotated[int, Within(1, MAX_LOOPS)] = 1
    formulas: tuple[PositionFormula, ...] = added(())
    rounding: Annotated[int, Within(0, 1 << FLOAT64_BITS)] = added(0)
    rounding_power: Annotated[int, Within(1, MAX_DEGREE)] = added(2)
    name: str = field(default="transformer", compare=False)

    __repr__ = drawn

    def __post_init__(self) -> None:
        if self.loops < 1 or (self.loops > 1 and self.residual == "concatenate"):
            raise FolderError("blocks run at least once, and only a residual that adds lets them run again")
        if self.groups and (not self.norm or len(self.groups) != len(self.widths)):
            raise FolderError(f"net.groups must be {len(self.widths)} lists of groups that a norm is for")
        for width, groups in zip(self.widths, self.groups, strict=False):
            _refuse_dims([dim for group in groups for dim in group], width, "groups")
        for index, block in enumerate(self.blocks):
            out = block.d_out if self.residual == "concatenate" else self.d_model
            for expert in block.experts:
                _refuse_dims(expert.reads, self.widths[2 * index + 1], "what an expert reads")
                _refuse_dims(expert.writes, out, "what an expert writes")
        self._refuse_formulas()

    def _refuse_formulas(self) -> None:
        """Refuse formulas of positions that do not fit, or are not exact at the longest sequence."""
        if self.tabled:
            return
        if self.reads != "tokens":
            raise FolderError(f"net.formulas are for nets that read tokens, not {self.reads}")
        _refuse_dims([formula.dim for formula in self.formulas], self.d_model, "dimensions of formulas")
        if self.max_length > self.exact_to(FLOAT64_BITS):
            raise FolderError(
                f"positions by formula are exact up to {self.exact_to(FLOAT64_BITS)} in float64, not {self.max_length}"
            )

    @cached_property
    def input_ids(self) -> dict[str, int]:
        """The token id of every input symbol but BOS."""
        return {symbol: number for number, symbol in enumerate(self.inputs) if number > 0}

    @property
    def turns(self) -> tuple[tuple[int, Block], ...]:
        """The blocks in the order in which they run, each with its number: all of them, `loops` times over."""
        return tuple(enumerate(self.blocks)) * self.loops

    @property
    def positions(self) -> int:
        """Rows of the position table: the longest sequence with its pads."""
        return self.max_length + self.pads

    @property
    def tabled(self) -> bool:
        """True if there is a table of positions, which bounds the length of a sequence."""
        return not (self.formulas or self.rounding)

    @property
    def longest(self) -> int:
        """The number of tokens of the longest sequence that it reads."""
        return self.exact_to(FLOAT64_BITS) if self.rounding else self.max_length

    def exact_to(self, bits: int) -> int:
        """Return the number of tokens up to which positions by formula are exact in a format of so many bits."""
        longest = min((formula.exact_to(bits) for formula in self.formulas), default=1 << bits)
        if not self.rounding:
            return longest
        return min(longest, largest_root((1 << bits) // self.rounding, self.rounding_power) - self.pads)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Residual width before each half layer (attention, MLP, attention, …) and at the end.

        It is constant when the residual adds, and grows when it concatenates.
        """
        widths = [self.d_model]
        for block in self.blocks:
            grow = block.d_out if self.residual == "concatenate" else 0
            widths.append(widths[-1] + grow * (len(block.heads) + (block.cell is not None)))
            widths.append(widths[-1] + grow * block.halves)
        return tuple(widths)

    def normed(self, half: int) -> Groups:
        """The groups of dimensions that are normalised before a half layer (the last one is the unembedding)."""
        if not self.norm:
            return ()
        return self.groups[half] if self.groups else (tuple(range(self.widths[half])),)

    @property
    def moments(self) -> tuple[str, ...]:
        """The activations that hold the residual stream: after embedding, and after each half layer."""
        if not self.blocks:
            return ("hook_resid_post",)
        halves = [f"blocks.{turn}.hook_resid_{half}" for turn in range(len(self.turns)) for half in ("pre", "mid")]
        return (*halves, f"blocks.{len(self.turns) - 1}.hook_resid_post")

    @property
    def width(self) -> int:
        """Residual width at the end."""
        return self.widths[-1]

    @property
    def heads_per_layer(self) -> tuple[int, ...]:
        """Heads of each block."""
        return tuple(len(block.heads) for block in self.blocks)

    @property
    def units_per_layer(self) -> tuple[int, ...]:
        """Hidden units of each block: those of its MLP, its router and all its experts."""
        return tuple(b.units + b.router + sum(expert.units for expert in b.experts) for b in self.blocks)

    @property
    def d_head(self) -> int:
        """The largest width of a query, key or value."""
        return max((max(block.d_head, block.d_value) for block in self.blocks), default=0)

    @property
    def looks_ahead(self) -> bool:
        """True if some head attends to later positions."""
        return any(head.mask in ("none", "after") for block in self.blocks for head in block.heads)

    @property
    def only_learned(self) -> bool:
        """True if some head is of a kind for trained nets only, which no certificate covers."""
        heads = (head for block in self.blocks for head in block.heads)
        return self.segmented or any(head.rotary or head.attention == "linear" for head in heads)

    @property
    def segmented(self) -> bool:
        """True if some head sees only the keys of its segment."""
        return any(head.segment for block in self.blocks for head in block.heads)

    @property
    def soft(self) -> bool:
        """True if some head has softmax attention."""
        return any(head.attention == "softmax" for block in self.blocks for head in block.heads)

    @property
    def cost(self) -> float:
        """The approximate number of multiplications for one position."""
        cost = 0.0
        for block in self.blocks:
            cost += len(block.heads) * (block.d_head + block.d_value) * (2 * self.d_model + self.max_length / 2)
            cost += block.busy * (min(self.d_model, 64) + 16) + len(block.experts)
            cost += block.cell.held(self.d_model) * min(self.d_model, 64) if block.cell else 0
        return self.loops * cost + self.width + len(self.output.symbols)

    def activations(self, positions: int) -> int:
        """Return the number of activations held at once for one sequence; long ones attend in chunks of queries."""
        busy = max((block.busy + len(block.experts) for block in self.blocks), default=0)
        held = max((block.cell.held(self.width) for block in self.blocks if block.cell), default=0)
        stream = 4 * self.width + 2 * busy + 4 * len(self.output.symbols) + held
        scores = 4 * max(self.heads_per_layer, default=0) * min(positions, QUERY_CHUNK)
        return positions * (stream + scores)

    def forward(self, arrays: Arrays, inputs: Num[Array, "batch ..."], **options: Unpack[TransformerOptions]) -> Logits:
        """The forward pass: logits [batch, pos, out]."""
        from vitrify.net.transformer_forward import forward

        return forward(self, arrays, inputs, **options)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every array; the names are those that interpretability tools use."""
        shapes: dict[str, tuple[int, ...]] = {"embed.W_E": (len(self.inputs), self.d_model)}
        if self.tabled:
            shapes["pos_embed.W_pos"] = (self.positions, self.d_model)
        for index, block in enumerate(self.blocks):
            at_attention, at_mlp, _ = self.widths[2 * index : 2 * index + 3]
            out = block.d_out if self.residual == "concatenate" else self.d_model
            heads, d_head, d_value, units = len(block.heads), block.d_head, block.d_value, block.units
            name = f"blocks.{index}"
            if heads:
                for letter, size in (("Q", d_head), ("K", d_head), ("V", d_value)):
                    shapes |= {f"{name}.attn.W_{letter}": (heads, at_attention, size)}
                    shapes |= {f"{name}.attn.b_{letter}": (heads, size)}
                shapes |= {f"{name}.attn.W_O": (heads, d_value, out), f"{name}.attn.beta": (heads,)}
                if block.window:
                    shapes[f"{name}.attn.b_rel"] = (heads, block.window)
            if block.cell:
                shapes |= {f"{name}.rec.{key}": shape for key, shape in block.cell.shapes(at_attention).items()}
                shapes[f"{name}.rec.W_C"] = (block.cell.state, out)
            if heads or block.cell:
                shapes |= self._norm_shapes(f"{name}.ln1", 2 * index)
            if units:
                shapes |= layer_shapes(f"{name}.mlp", at_mlp, units, out)
            if block.experts:
                layer = expert_shapes(block.experts, block.router, at_mlp, block.gate)
                shapes |= {f"{name}.moe.{key}": shape for key, shape in layer.items()}
            if block.halves:
                shapes |= self._norm_shapes(f"{name}.ln2", 2 * index + 1)
        last = self.widths[-1]
        shapes |= self._norm_shapes("ln_final", 2 * len(self.blocks))
        return shapes | {"unembed.W_U": (last, len(self.output.symbols)), "unembed.b_U": (len(self.output.symbols),)}

    def _norm_shapes(self, name: str, half: int) -> dict[str, tuple[int, ...]]:
        """A scale and a shift for every dimension that is normalised, group by group."""
        size = sum(len(group) for group in self.normed(half))
        return {f"{name}.w": (size,), f"{name}.b": (size,)} if size else {}
