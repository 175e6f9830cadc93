r"""A transformer in the one shape that common libraries know: every block with the same heads, sizes and mask.

Blocks of a loop are written out, a stream of parts becomes one sum, heads and units that a block lacks are zero,
queries and values get one width, and temperatures are multiplied into the queries. A mask or a window that a library
has no word for is written into the scores: the stream gets one dimension for every place, $e_i$ at place $i$, the keys
of such a head hold $e_j$ and its queries the row $m_i$ with $m_{ij} = r_{i-j}$ (the relative bias) where key $j$ is
allowed and a penalty where it is not, so that $m_i \cdot e_j$ is added to the score. Where all windows hold the own
place only, two digits of about $\sqrt T$ values do instead of $T$: a key that differs in a digit pays. A penalty of 128
more than all scores leaves weights below $2^{-150}$: zero in float32.

`spread` goes there; `gathered.py` comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import BuildRefused
from vitrify.net.disentangle import together
from vitrify.net.sparse import dense
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights

Floats = NDArray[Any]

PLACES = 2048  # more places than these are not given a dimension each
MOST = 1 << 28  # numbers of an export: libraries keep the zeros of mostly empty arrays
HALVES = {"strict": "is before them", "after": "comes after them"}


@dataclass(frozen=True)
class Uniform:
    """A transformer whose blocks are alike; `arrays` have the names and shapes that TransformerLens gives them."""

    net: Transformer  # what it was made of, with a residual that adds
    layers: int
    heads: int
    d_head: int
    d_model: int
    units: int
    causal: bool
    rotary: float
    arrays: Mapping[str, Floats]


def obstacles(net: Any) -> list[str]:
    """What no arrangement of zeros can make of a network: each feature by name."""
    if not isinstance(net, Transformer):
        return [f"{net.tag} architectures"]
    found = strange_inputs(net)
    heads = [head for block in net.blocks for head in block.heads]
    kinds = sorted({head.attention for head in heads} - {"softmax"})
    found += [f"{kind} attention" for kind in kinds]
    found += [f"heads that see only what {text}" for mask, text in HALVES.items() if _uses(heads, mask)]
    found += ["recurrent cells"] if any(block.cell for block in net.blocks) else []
    found += ["mixtures of experts"] if any(block.experts for block in net.blocks) else []
    found += ["norms of groups of dimensions"] if net.norm and net.groups else []
    coded = _coded(net)
    if coded and net.norm:
        found.append("windows or relative biases in a net with norms")
    if places(net) > PLACES:
        found.append(f"windows of several places among {net.positions} (at most {PLACES})")
    turns = {head.rotary for head in heads}
    if len(turns) > 1 or (any(turns) and (coded or len({block.d_head for block in net.blocks if block.heads}) > 1)):
        found.append("heads of which only some are rotary, or rotary ones of several kinds")
    numbers = _numbers(net)
    return found if numbers <= MOST else [*found, f"room for {numbers:,} numbers with their zeros (at most {MOST:,})"]


def strange_inputs(net: Any) -> list[str]:
    """Inputs that are no tokens, by name."""
    return [] if net.reads == "tokens" else [f"inputs that are no tokens ({net.reads})"]


def spread(weights: Weights, penalty: float = 2.0**14) -> Uniform:
    """The same network with blocks that are alike; only for nets without obstacles."""
    found = obstacles(weights.architecture)
    if found:
        raise BuildRefused("the uniform shape has no " + ", no ".join(found))
    weights = together(weights)
    net = weights.architecture
    blocks = [block for _, block in net.turns]
    added = places(net)
    own = max((max(block.d_head, block.d_value) for block in blocks), default=0)
    sizes = {
        "layers": max(1, len(blocks)),
        "heads": max(1, *(len(block.heads) for block in blocks), 1),
        "d_head": max(1, own + added),
        "d_model": net.d_model + added,
        "units": max((block.units for block in blocks), default=0),
    }
    arrays = {
        "embed.W_E": _padded(weights, "embed.W_E", (len(net.inputs), sizes["d_model"])),
        "pos_embed.W_pos": _padded(weights, "pos_embed.W_pos", (net.positions, sizes["d_model"])),
        "unembed.W_U": _padded(weights, "unembed.W_U", (sizes["d_model"], len(net.output.symbols))),
        "unembed.b_U": _dense(weights, "unembed.b_U"),
    }
    if added:
        arrays["pos_embed.W_pos"][:, net.d_model :] = _code(net)
    rotary = max((head.rotary for block in blocks for head in block.heads), default=0.0)
    whole = Uniform(net, **sizes, causal=not _sees_ahead(net), rotary=rotary, arrays=arrays)
    turns = net.turns or ((0, Block()),)
    for turn, (index, block) in enumerate(turns):
        arrays |= {
            f"blocks.{turn}.{key}": array for key, array in _block(weights, whole, index, block, penalty).items()
        }
    if net.norm:
        arrays |= {f"ln_final.{key}": _dense(weights, f"ln_final.{key}") for key in ("w", "b")}
    return whole


def _block(weights: Weights, whole: Uniform, index: int, block: Block, penalty: float) -> dict[str, Floats]:
    """The arrays of one block, without the block's name."""
    net, name = whole.net, f"blocks.{index}"
    heads, d_head, d_model = whole.heads, whole.d_head, whole.d_model
    found: dict[str, Floats] = {}
    for letter in "QKV":
        found[f"attn.W_{letter}"] = _padded(weights, f"{name}.attn.W_{letter}", (heads, d_model, d_head))
        found[f"attn.b_{letter}"] = _padded(weights, f"{name}.attn.b_{letter}", (heads, d_head))
    found["attn.W_O"] = _padded(weights, f"{name}.attn.W_O", (heads, d_head, d_model))
    found["attn.b_O"] = np.zeros(d_model, found["attn.W_O"].dtype)
    if block.heads:
        beta = _dense(weights, f"{name}.attn.beta")
        found["attn.W_Q"][: len(beta)] *= beta[:, None, None]
        found["attn.b_Q"][: len(beta)] *= beta[:, None]
    if places(net):
        table = _dense(weights, f"{name}.attn.b_rel") if block.window else None
        own = d_head - places(net)
        for place, head in enumerate(block.heads):
            bias = None if table is None or head.window is None else table[place]
            rows = _mask(head, whole.causal, bias, net, penalty)
            if rows is not None:
                found["attn.W_Q"][place, net.d_model :, own:] = rows
                found["attn.W_K"][place, net.d_model :, own:] = np.eye(places(net))
    if whole.units:
        found["mlp.W_in"] = _padded(weights, f"{name}.mlp.W_in", (d_model, whole.units))
        found["mlp.b_in"] = _padded(weights, f"{name}.mlp.b_in", (whole.units,))
        found["mlp.W_out"] = _padded(weights, f"{name}.mlp.W_out", (whole.units, d_model))
        found["mlp.b_out"] = _padded(weights, f"{name}.mlp.b_out", (d_model,))
    if net.norm:
        for norm in ("ln1", "ln2"):  # one that nothing reads may be anything
            found[f"{norm}.w"] = _padded(weights, f"{name}.{norm}.w", (d_model,), empty=1.0)
            found[f"{norm}.b"] = _padded(weights, f"{name}.{norm}.b", (d_model,))
    return found


def _mask(head: Head, causal: bool, bias: Floats | None, net: Transformer, penalty: float) -> Floats | None:
    """What a head that has a mask of its own adds to its scores, for every pair of dimensions of the code."""
    digits, length = _digits(net), net.positions
    if len(digits) == 2 and head.window == 1:
        found = np.full((sum(digits), sum(digits)), -penalty)
        found[: digits[0], digits[0] :] = found[digits[0] :, : digits[0]] = 0.0
        np.fill_diagonal(found, np.repeat([0.0, 0.0 if bias is None else bias[0]], digits))
        return found
    offset = np.arange(length)[:, None] - np.arange(length)[None, :]
    if head.window is not None:
        inside = (offset >= 0) & (offset < head.window)
        added = np.zeros((length, length)) if bias is None else bias[np.clip(offset, 0, len(bias) - 1)]
        return np.where(inside, added, -penalty if not causal else np.where(offset >= 0, -penalty, 0.0))
    if head.mask == "causal" and not causal:
        return np.where(offset >= 0, 0.0, -penalty)
    return None


def _numbers(net: Transformer) -> int:
    """How many numbers the uniform arrays have, roughly."""
    sizes = [(len(block.heads), max(block.d_head, block.d_value), block.units) for block in net.blocks] or [(0, 0, 0)]
    heads, d_head, units = (max(size[part] for size in sizes) for part in range(3))
    width = net.width + places(net)
    table = len(net.inputs) + net.positions + len(net.output.symbols)
    return width * (table + len(net.turns) * (4 * heads * (d_head + places(net)) + 2 * units))


def places(net: Transformer) -> int:
    """How many dimensions are added for places."""
    return sum(_digits(net))


def _digits(net: Transformer) -> tuple[int, ...]:
    """The sizes of the digits that places are written in: one with a value for every place, or two, or none at all."""
    if not _coded(net):
        return ()
    heads = [head for block in net.blocks for head in block.heads]
    if all(head.window in (None, 1) for head in heads) and (not _sees_ahead(net) or not _uses(heads, "causal")):
        low = ceil(sqrt(net.positions))
        return (-(-net.positions // low), low)
    return (net.positions,)


def _code(net: Transformer) -> Floats:
    """The digits of every place [place, dimension], each as a one among zeros."""
    digits, place = _digits(net), np.arange(net.positions)
    if len(digits) == 1:
        return np.eye(net.positions)
    return np.concatenate([np.eye(digits[0])[place // digits[1]], np.eye(digits[1])[place % digits[1]]], axis=1)


def _uses(heads: list[Head], mask: str) -> bool:
    return any(head.mask == mask for head in heads)


def _sees_ahead(net: Transformer) -> bool:
    """Whether a library must let heads look ahead: some head has no mask, and no window either."""
    return any(head.mask == "none" and head.window is None for block in net.blocks for head in block.heads)


def _coded(net: Transformer) -> bool:
    """Whether some head needs its mask written into its scores."""
    ahead = _sees_ahead(net)
    heads = [head for block in net.blocks for head in block.heads]
    return any(head.window is not None or (ahead and head.mask != "none") for head in heads)


def _dense(weights: Weights, name: str) -> Floats:
    return np.array(dense(weights.arrays[name]))


def _padded(weights: Weights, name: str, shape: tuple[int, ...], empty: float = 0.0) -> Floats:
    """An array in the corner of a larger one of zeros; where there is no such array, one filled with a number."""
    kind = next(iter(weights.arrays.values())).dtype
    if name not in weights.arrays:
        return np.full(shape, empty, kind)
    array, found = _dense(weights, name), np.zeros(shape, kind)
    found[tuple(slice(0, size) for size in array.shape)] = array
    return found
