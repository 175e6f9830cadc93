"""Back from the uniform shape: the network that was exported, or, if training moved what was zero, one as large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from vitrify.errors import FolderError
from vitrify.interop.folders import write_tensors
from vitrify.interop.uniform import Floats, places
from vitrify.net.architecture import Output
from vitrify.net.sparse import DENSE_DENSITY, DENSE_ENTRIES, dense, from_entries
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights

QUERIES = "queries.safetensors"


def gathered(
    net: Transformer,
    arrays: Mapping[str, Floats],
    beta: Mapping[str, Sequence[float]],
    kind: str,
    queries: Mapping[str, Floats] | None = None,
) -> Weights:
    """The network of which these are uniform arrays, or larger ones around them, in its own precision.

    `queries` are those that no division by the temperature gives back. What stands in added places is left out:
    whether it is what was put there, a second export tells.
    """
    found: dict[str, Floats] = {}
    own = max((max(block.d_head, block.d_value) for block in net.blocks), default=0)
    added = places(net)
    for name, shape in net.shapes().items():
        part, _, last = name.rpartition(".")
        block = part.removesuffix(".attn")
        if last == "beta":
            found[name] = np.array(beta[block], dtype=kind)
            continue
        if last == "b_rel":
            rows = arrays[f"{block}.attn.W_Q"][: shape[0], net.d_model : net.d_model + added, own : own + added]
            windows = [head.window or 0 for head in net.blocks[int(block.rpartition(".")[2])].heads]
            table = [rows[:, added - 1, max(added - 1 - offset, 0)] for offset in range(shape[1])]
            inside = np.arange(shape[1]) < np.array(windows)[:, None]
            found[name] = np.where(inside, np.stack(table, axis=1), 0.0).astype(kind)
            continue
        if name not in arrays:
            raise FolderError(f"the folder does not hold {name}, which the network has")
        cut = arrays[name][tuple(slice(0, size) for size in shape)].astype(kind)
        if last in ("W_Q", "b_Q"):
            scale = np.array(beta[block], dtype=kind).reshape(-1, *(1,) * (len(shape) - 1))
            cut = (queries or {}).get(name, cut / np.where(scale == 0, 1, scale))
        found[name] = cut
    return Weights(net, {name: sparsified(array) for name, array in found.items()})


def write_queries(folder: Path, weights: Weights, precision: str) -> None:
    """Write the queries that rounding lost when their temperature was multiplied in, if there are any.

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
    found = {name: array for name, array in arrays.items() if not name.endswith("b_O")}
    for at in range(layers):
        name = f"blocks.{at}.attn"
        found[f"{name}.beta"] = np.ones(heads, kind)
        if biased:
            wide = ((0, 0), (0, 0), (0, 1))
            found[f"{name}.W_V"] = np.pad(arrays[f"{name}.W_V"], wide)
            found[f"{name}.b_V"] = np.pad(arrays[f"{name}.b_V"], wide[1:])
            found[f"{name}.W_O"] = np.pad(arrays[f"{name}.W_O"], (wide[0], wide[2], wide[1]))
            found[f"{name}.b_V"][0, -1] = 1.0
            found[f"{name}.W_O"][0, -1] = arrays.get(f"{name}.b_O", 0.0)
    shapes = net.shapes()
    return Weights(net, {name: np.ascontiguousarray(found[name]) for name in found if name in shapes})
