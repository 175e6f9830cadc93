r"""A transformer in the one shape that common libraries know: every block with the same heads, sizes and mask.

Blocks of a loop are written out, a residual stream that concatenates becomes one that adds, heads and units that a
block lacks are zero, queries and values get one width, and inverse temperatures are multiplied into the queries.
A mask or a window that a library has no word for is written into the scores: the stream gets one dimension for every
position, $e_i$ at position $i$, the keys of such a head hold $e_j$ and its queries the row $m_i$ with $m_{ij} =
r_{i-j}$ (the relative bias) where key $j$ is allowed and minus a penalty where it is not, so that $m_i \cdot e_j$ is
added to the score. Where every window is one position, two digits of about $\sqrt T$ values do instead of $T$: each
digit in which a key differs from the query costs the penalty.

A forbidden key gets a weight below $2^{-150}$, zero in float32, if the penalty is 128 more than the difference of any
two scores. That is not proved of a network: `export` compares answers, and deletes an export that differs. `spread`
makes this form. `gathered` gives back the network that was exported; where training changed what was zero, `as_large`
gives a network with the sizes of the export.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path

import numpy as np

from vitrify.arrays import Floats
from vitrify.errors import BuildRefused, FolderError
from vitrify.interop.folders import write_tensors
from vitrify.net.architecture import Architecture, Output
from vitrify.net.disentangle import together
from vitrify.net.positions import tabulated
from vitrify.net.sparse import DENSE_DENSITY, DENSE_ENTRIES, dense, from_entries
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights

PLACES = 2048  # more places than these are not given a dimension each
MAX_PARAMETERS = 1 << 28  # numbers of an export: libraries keep the zeros of mostly empty arrays
HALVES = {"strict": "is before them", "after": "comes after them"}
QUERIES = "queries.safetensors"


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


def obstacles(net: Architecture, *, hooks: bool = False) -> list[str]:
    """Return the features of a network that no padding with zeros can express, by name.

    With `hooks`, heads that see only one side of a position are none: a library can be told what they may not see.
    """
    if not isinstance(net, Transformer):
        return [f"{net.tag} architectures"]
    features = strange_inputs(net) + unknown_layers(net)
    heads = [head for block in net.blocks for head in block.heads]
    kinds = sorted({head.attention for head in heads} - {"softmax"})
    features += [f"{kind} attention" for kind in kinds]
    halves = {} if hooks else HALVES
    features += [f"heads that see only what {text}" for mask, text in halves.items() if _uses(heads, mask)]
    features += ["recurrent cells"] if any(block.cell for block in net.blocks) else []
    features += ["mixtures of experts"] if any(block.experts for block in net.blocks) else []
    features += ["norms of groups of dimensions"] if net.norm and net.groups else []
    coded = _coded(net)
    if coded and net.norm:
        features.append("windows or relative biases in a net with norms")
    if places(net) > PLACES:
        features.append(f"windows of several places among {net.positions} (at most {PLACES})")
    turns = {head.rotary for head in heads}
    if len(turns) > 1 or (any(turns) and (coded or len({block.d_head for block in net.blocks if block.heads}) > 1)):
        features.append("heads of which only some are rotary, or rotary ones of several kinds")
    numbers = _numbers(net)
    if numbers > MAX_PARAMETERS:
        features = [*features, f"room for {numbers:,} numbers with their zeros (at most {MAX_PARAMETERS:,})"]
    return features


def strange_inputs(net: Architecture) -> list[str]:
    """Inputs that are no tokens, by name."""
    return [] if net.reads == "tokens" else [f"inputs that are no tokens ({net.reads})"]


def unknown_layers(net: Architecture) -> list[str]:
    """Layers that only vitrify runs, by name."""
    segments = ["heads with segments"] if getattr(net, "segmented", False) else []
    return segments + (
        [] if getattr(net, "shared", True) else ["convolutions with weights of their own at each position"]
    )


def spread(weights: Weights, penalty: float = 2.0**14, *, hooks: bool = False) -> Uniform:
    """The same network with blocks that are alike; only for nets without obstacles, of which `hooks` removes some."""
    features = obstacles(weights.architecture, hooks=hooks)
    if features:
        raise BuildRefused("the uniform shape has no " + ", no ".join(features))
    weights = together(tabulated(weights))
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
    uniform = Uniform(net, **sizes, causal=not _sees_ahead(net), rotary=rotary, arrays=arrays)
    turns = net.turns or ((0, Block()),)
    for turn, (index, block) in enumerate(turns):
        arrays |= {
            f"blocks.{turn}.{key}": array for key, array in _block(weights, uniform, index, block, penalty).items()
        }
    if net.norm:
        arrays |= {f"ln_final.{key}": _dense(weights, f"ln_final.{key}") for key in ("w", "b")}
    return uniform


def _block(weights: Weights, uniform: Uniform, index: int, block: Block, penalty: float) -> dict[str, Floats]:
    """The arrays of one block, without the block's name."""
    net, name = uniform.net, f"blocks.{index}"
    heads, d_head, d_model, units = uniform.heads, uniform.d_head, uniform.d_model, uniform.units
    shapes: dict[str, tuple[int, ...]] = {f"attn.W_{letter}": (heads, d_model, d_head) for letter in "QKV"}
    shapes |= {f"attn.b_{letter}": (heads, d_head) for letter in "QKV"}
    shapes |= {"attn.W_O": (heads, d_head, d_model), "attn.b_O": (d_model,)}
    if units:
        shapes |= {"mlp.W_in": (d_model, units), "mlp.b_in": (units,), "mlp.W_out": (units, d_model)}
        shapes |= {"mlp.b_out": (d_model,)}
    shapes |= {f"{norm}.{key}": (d_model,) for norm in ("ln1", "ln2") for key in "wb" if net.norm}
    arrays = {  # the scale of a norm that nothing reads may be anything
        key: _padded(weights, f"{name}.{key}", shape, empty=float(key.endswith(".w"))) for key, shape in shapes.items()
    }
    if block.heads:
        beta = _dense(weights, f"{name}.attn.beta")
        arrays["attn.W_Q"][: len(beta)] *= beta[:, None, None]
        arrays["attn.b_Q"][: len(beta)] *= beta[:, None]
    if places(net):
        table = _dense(weights, f"{name}.attn.b_rel") if block.window else None
        own = d_head - places(net)
        for place, head in enumerate(block.heads):
            bias = None if table is None or head.window is None else table[place]
            rows = _mask(head, uniform.causal, bias, net, penalty)
            if rows is not None:
                arrays["attn.W_Q"][place, net.d_model :, own:] = rows
                arrays["attn.W_K"][place, net.d_model :, own:] = np.eye(places(net))
    return arrays


def _mask(head: Head, causal: bool, bias: Floats | None, net: Transformer, penalty: float) -> Floats | None:
    """Return what a head with a mask of its own adds to its scores, for every pair of dimensions of the code."""
    digits, length = _digits(net), net.positions
    if len(digits) == 2 and head.window == 1:
        scores = np.full((sum(digits), sum(digits)), -penalty)
        scores[: digits[0], digits[0] :] = scores[digits[0] :, : digits[0]] = 0.0
        np.fill_diagonal(scores, np.repeat([0.0, 0.0 if bias is None else bias[0]], digits))
        return scores
    offset = np.arange(length)[:, None] - np.arange(length)[None, :]
    if head.window is not None:
        inside = (offset >= 0) & (offset < head.window)
        added = np.zeros((length, length)) if bias is None else bias[np.clip(offset, 0, len(bias) - 1)]
        return np.where(inside, added, -penalty if not causal else np.where(offset >= 0, -penalty, 0.0))
    if head.mask == "causal" and not causal:
        return np.where(offset >= 0, 0.0, -penalty)
    return None


def _numbers(net: Transformer) -> int:
    """Return the approximate number of parameters of the uniform arrays."""
    sizes = [(len(block.heads), max(block.d_head, block.d_value), block.units) for block in net.blocks] or [(0, 0, 0)]
    heads, d_head, units = (max(size[part] for size in sizes) for part in range(3))
    width = net.width + places(net)
    table = len(net.inputs) + net.positions + len(net.output.symbols)
    return width * (table + len(net.turns) * (4 * heads * (d_head + places(net)) + 2 * units))


def places(net: Transformer) -> int:
    """Return the number of dimensions added for positions."""
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
    """Return whether some head attends to later positions."""
    heads = (head for block in net.blocks for head in block.heads)
    return any(head.mask == "after" or (head.mask == "none" and head.window is None) for head in heads)


def _coded(net: Transformer) -> bool:
    """Return whether some head needs its mask written into its scores."""
    ahead = _sees_ahead(net)
    heads = [head for block in net.blocks for head in block.heads]
    return any(head.window is not None or (ahead and head.mask == "causal") for head in heads)


def _dense(weights: Weights, name: str) -> Floats:
    return np.array(dense(weights.arrays[name]))


def _padded(weights: Weights, name: str, shape: tuple[int, ...], empty: float = 0.0) -> Floats:
    """An array in the corner of a larger one of zeros; where there is no such array, one filled with a number."""
    kind = next(iter(weights.arrays.values())).dtype
    if name not in weights.arrays:
        return np.full(shape, empty, kind)
    array, padded = _dense(weights, name), np.zeros(shape, kind)
    padded[tuple(slice(0, size) for size in array.shape)] = array
    return padded


def gathered(
    net: Transformer,
    arrays: Mapping[str, Floats],
    beta: Mapping[str, Sequence[float]],
    kind: str,
    queries: Mapping[str, Floats] | None = None,
) -> Weights:
    """The network of which these are uniform arrays, or larger ones around them, in its own precision.

    `queries` are those that no division by the inverse temperature gives back. Added dimensions are left out, changed
    or not; to know which, `imports.py` exports the result again and compares.
    """
    gathered_arrays: dict[str, Floats] = {}
    own = max((max(block.d_head, block.d_value) for block in net.blocks), default=0)
    added = places(net)
    for name, shape in net.shapes().items():
        part, _, last = name.rpartition(".")
        block = part.removesuffix(".attn")
        if last == "beta":
            gathered_arrays[name] = np.array(beta[block], dtype=kind)
            continue
        if last == "b_rel":
            rows = arrays[f"{block}.attn.W_Q"][: shape[0], net.d_model : net.d_model + added, own : own + added]
            windows = [head.window or 0 for head in net.blocks[int(block.rpartition(".")[2])].heads]
            table = [rows[:, added - 1, max(added - 1 - offset, 0)] for offset in range(shape[1])]
            inside = np.arange(shape[1]) < np.array(windows)[:, None]
            gathered_arrays[name] = np.where(inside, np.stack(table, axis=1), 0.0).astype(kind)
            continue
        if name not in arrays:
            raise FolderError(f"the folder does not hold {name}, which the network has")
        cut = arrays[name][tuple(slice(0, size) for size in shape)].astype(kind)
        if last in ("W_Q", "b_Q"):
            scale = np.array(beta[block], dtype=kind).reshape(-1, *(1,) * (len(shape) - 1))
            cut = (queries or {}).get(name, cut / np.where(scale == 0, 1, scale))
        gathered_arrays[name] = cut
    return Weights(net, {name: sparsified(array) for name, array in gathered_arrays.items()})


def write_queries(folder: Path, weights: Weights, precision: str) -> None:
    """Write the queries that rounding lost when their inverse temperature was multiplied in, if there are any.

    Only where the file keeps all other numbers as they are: what is rounded to float32 does not come back anyway.
    """
    lost = {}
    for name, array in weights.arrays.items():
        if name.endswith(("attn.W_Q", "attn.b_Q")) and str(array.dtype) == precision:
            own = np.asarray(dense(array))
            beta = np.asarray(weights.arrays[f"{name[:-3]}beta"]).reshape(-1, *(1,) * (own.ndim - 1))
            if not np.array_equal(own * beta / np.where(beta == 0, 1, beta), own):
                lost[name] = own
    if lost:
        write_tensors(folder / QUERIES, lost, precision)


def sparsified(array: Floats) -> Floats:
    """The form in which constructions keep an array: mostly empty large ones as non-zero entries."""
    if array.ndim < 2 or array.size <= DENSE_ENTRIES or np.count_nonzero(array) > DENSE_DENSITY * array.size:
        return np.ascontiguousarray(array)
    flat = array.reshape(-1, array.shape[-1])
    rows, columns = np.nonzero(flat)
    return from_entries(rows, columns, flat[rows, columns], array.shape)  # type: ignore[no-any-return]


def as_large(
    arrays: Mapping[str, Floats], inputs: Sequence[str], output: Output, *, pads: int, eps: float | None, causal: bool
) -> Weights:
    r"""A network of our architecture from uniform arrays as they are, norms and all (`eps` None: no norms).

    A bias of what all heads write becomes one more dimension of the first head's values, which is 1 at every place:
    the weights of a head sum to 1.
    """
    layers = sum(1 for name in arrays if name.endswith("attn.W_Q"))
    heads, d_model, d_head = arrays["blocks.0.attn.W_Q"].shape
    kind = arrays["embed.W_E"].dtype
    biased = any(arrays[f"blocks.{at}.attn.b_O"].any() for at in range(layers) if f"blocks.{at}.attn.b_O" in arrays)
    units = arrays["blocks.0.mlp.W_in"].shape[1] if "blocks.0.mlp.W_in" in arrays else 0
    block = Block((Head(mask="causal" if causal else "none"),) * heads, d_head, d_head + biased, units)
    positions = len(arrays["pos_embed.W_pos"])
    net = Transformer(
        inputs=tuple(inputs),
        output=output,
        max_length=positions - pads,
        d_model=d_model,
        blocks=(block,) * layers,
        pads=pads,
        norm=eps is not None,
        eps=eps or 0.0,
        name="imported transformer",
    )
    own_arrays = {name: array for name, array in arrays.items() if not name.endswith("b_O")}
    for at in range(layers):
        name = f"blocks.{at}.attn"
        own_arrays[f"{name}.beta"] = np.ones(heads, kind)
        if biased:
            wide = ((0, 0), (0, 0), (0, 1))
            own_arrays[f"{name}.W_V"] = np.pad(arrays[f"{name}.W_V"], wide)
            own_arrays[f"{name}.b_V"] = np.pad(arrays[f"{name}.b_V"], wide[1:])
            own_arrays[f"{name}.W_O"] = np.pad(arrays[f"{name}.W_O"], (wide[0], wide[2], wide[1]))
            own_arrays[f"{name}.b_V"][0, -1] = 1.0
            own_arrays[f"{name}.W_O"][0, -1] = arrays.get(f"{name}.b_O", 0.0)
    shapes = net.shapes()
    return Weights(net, {name: np.ascontiguousarray(own_arrays[name]) for name in own_arrays if name in shapes})
