"""Built nets that compute the same with huge and tiny numbers: rescaled, shifted, and with large terms that cancel.

In exact arithmetic all changes but `mutated` leave the function of a net as it is, up to the rounding of the weights;
what float64 rounds on the way grows with the numbers. Spaces whose values change are relabelled as real numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from vitrify.arrays import Arrays, Floats
from vitrify.net.labels import Labels, SpaceLabel
from vitrify.net.spaces import Reals
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

EXPONENTS = (-12, -6, -3, 3, 6, 9, 12)  # of ten, by which numbers grow
SHIFTS = (1e3, 1e6, 1e10, 1e12)
READERS = ("attn.W_Q", "attn.W_K", "attn.W_V", "mlp.W_in")
WRITERS = ("attn.W_O", "mlp.W_out", "mlp.b_out")

Net = Weights[Transformer]
Change = Callable[[Net, np.random.Generator], Net]


def rescaled_net(weights: Net, seed: int) -> Net:
    """Return a net after one to three random changes."""
    rng = np.random.default_rng(seed)
    weights = weights.map(lambda array: np.array(dense(array), dtype=np.float64))
    for _ in range(int(rng.integers(1, 4))):
        weights = CHANGES[list(CHANGES)[int(rng.integers(len(CHANGES)))]](weights, rng)
    return weights


def _as_reals(labels: Labels, dim: int) -> Labels:
    """Label every space of a dimension as real numbers."""

    def relabelled(space: SpaceLabel) -> SpaceLabel:
        names = tuple(f"x{i}" for i in range(len(space.dims)))
        return replace(space, kind=Reals(names, -1e300, 1e300)) if dim in space.dims else space

    return replace(labels, spaces=tuple(relabelled(space) for space in labels.spaces))


def _some_dim(weights: Net, rng: np.random.Generator) -> int:
    return int(rng.integers(weights.architecture.d_model))


def _power(rng: np.random.Generator) -> float:
    """Return a factor, a power of two or no power of two."""
    ten = 10.0 ** int(rng.choice(EXPONENTS))
    return ten if rng.random() < 0.7 else float(2.0 ** np.round(np.log2(ten)))


def _eraser(arrays: Arrays, index: int, dim: int) -> int | None:
    """Return the unit of a block that takes a dimension away, if there is one."""
    if f"blocks.{index}.mlp.W_in" not in arrays:
        return None
    w_in, w_out = arrays[f"blocks.{index}.mlp.W_in"], arrays[f"blocks.{index}.mlp.W_out"]
    alone = (np.count_nonzero(w_in, axis=0) == 1) & (np.count_nonzero(w_out, axis=1) == 1)
    units = np.flatnonzero(alone & (w_in[dim] == 1) & (w_out[:, dim] == -1))
    return int(units[0]) if len(units) else None


def scaled(weights: Net, rng: np.random.Generator) -> Net:
    """Multiply one dimension by a factor wherever it is written, and divide where it is read."""
    dim, by, arrays = _some_dim(weights, rng), _power(rng), dict(weights.arrays)
    units = [_eraser(arrays, index, dim) for index in range(len(weights.architecture.blocks))]
    for name in arrays:
        rows, columns = name.endswith(READERS), name.endswith(WRITERS)
        if rows or columns or name in ("embed.W_E", "pos_embed.W_pos", "unembed.W_U"):
            arrays[name] = arrays[name].copy()
        if rows:
            arrays[name][..., dim, :] /= by
        elif columns or name in ("embed.W_E", "pos_embed.W_pos"):
            arrays[name][..., dim] *= by
    arrays["unembed.W_U"][dim] /= by
    for index, unit in enumerate(units):
        if unit is not None:  # it still takes away what is there
            prefix = f"blocks.{index}.mlp."
            arrays[prefix + "b_in"] = arrays[prefix + "b_in"].copy()
            arrays[prefix + "b_in"][unit] *= by
            arrays[prefix + "W_in"][dim, unit], arrays[prefix + "W_out"][unit, dim] = 1.0, -1.0
    return replace(weights, arrays=arrays, labels=_as_reals(weights.labels, dim))


def shifted(weights: Net, rng: np.random.Generator) -> Net:
    """Add a constant to one dimension of the position embedding, and take it away wherever it is read."""
    dim, by, arrays = _some_dim(weights, rng), float(rng.choice(SHIFTS)), dict(weights.arrays)
    arrays["pos_embed.W_pos"] = arrays["pos_embed.W_pos"].copy()
    arrays["pos_embed.W_pos"][:, dim] += by
    for index in range(len(weights.architecture.blocks)):
        unit = _eraser(arrays, index, dim)
        for reader in (name for name in READERS if f"blocks.{index}.{name}" in arrays):
            bias = f"blocks.{index}.{reader.replace('W_', 'b_')}"
            arrays[bias] = arrays[bias] - by * arrays[f"blocks.{index}.{reader}"][..., dim, :]
        if unit is not None:
            name = f"blocks.{index}.mlp.b_out"
            arrays[name] = arrays[name].copy()
            arrays[name][dim] -= by
            break
    else:
        arrays["unembed.b_U"] = arrays["unembed.b_U"] - by * arrays["unembed.W_U"][dim]
    return replace(weights, arrays=arrays, labels=_as_reals(weights.labels, dim))


def balanced(weights: Net, rng: np.random.Generator) -> Net:
    """Multiply the queries (or values) of all heads of a block by a factor, and divide keys (or outputs) by it."""
    blocks = [index for index, block in enumerate(weights.architecture.blocks) if block.heads]
    if not blocks:
        return weights
    prefix, by, arrays = f"blocks.{int(rng.choice(blocks))}.attn.", _power(rng), dict(weights.arrays)
    more, less = (("W_Q", "b_Q"), ("W_K", "b_K")) if rng.random() < 0.5 else (("W_V", "b_V"), ("W_O",))
    arrays |= {prefix + name: arrays[prefix + name] * by for name in more}
    arrays |= {prefix + name: arrays[prefix + name] / by for name in less}
    return replace(weights, arrays=arrays)


def _wider(array: Floats, axis: int, *added: Floats | float) -> Floats:
    """Return an array with two more entries along an axis."""
    shape = [*array.shape]
    shape[axis] = 1
    return np.concatenate([array, *(np.broadcast_to(part, shape) for part in added)], axis=axis)


def cancelling_values(weights: Net, rng: np.random.Generator) -> Net:
    """Give the heads of a block two large constant values that cancel in what they write."""
    blocks = [index for index, block in enumerate(weights.architecture.blocks) if block.heads]
    if not blocks:
        return weights
    index, arrays, net = int(rng.choice(blocks)), dict(weights.arrays), weights.architecture
    prefix, by = f"blocks.{index}.attn.", float(rng.choice(SHIFTS)) / 3
    used = np.abs(arrays[prefix + "W_O"]).max(axis=1, keepdims=True)
    arrays[prefix + "W_V"] = _wider(arrays[prefix + "W_V"], 2, 0.0, 0.0)
    arrays[prefix + "b_V"] = _wider(arrays[prefix + "b_V"], 1, by, by)
    arrays[prefix + "W_O"] = _wider(arrays[prefix + "W_O"], 1, used, -used)
    block = replace(net.blocks[index], d_value=net.blocks[index].d_value + 2)
    blocks_now = (*net.blocks[:index], block, *net.blocks[index + 1 :])
    return replace(weights, arrays=arrays, architecture=replace(net, blocks=blocks_now))


def cancelling_units(weights: Net, rng: np.random.Generator) -> Net:
    """Give an MLP two units with large constant outputs that cancel in a dimension that it writes."""
    blocks = [index for index, block in enumerate(weights.architecture.blocks) if block.units]
    if not blocks:
        return weights
    index, arrays, net = int(rng.choice(blocks)), dict(weights.arrays), weights.architecture
    prefix, by = f"blocks.{index}.mlp.", float(rng.choice(SHIFTS)) / 7
    written = np.flatnonzero(arrays[prefix + "W_out"].any(axis=0)).tolist()
    written = [dim for dim in written if _eraser(arrays, index, dim) is None]
    if not written:
        return weights
    row = np.zeros(net.d_model)
    row[int(rng.choice(written))] = by
    arrays[prefix + "W_in"] = _wider(arrays[prefix + "W_in"], 1, 0.0, 0.0)
    arrays[prefix + "b_in"] = _wider(arrays[prefix + "b_in"], 0, 1 / 3, 1 / 3)
    arrays[prefix + "W_out"] = _wider(arrays[prefix + "W_out"], 0, row, -row)
    block = replace(net.blocks[index], units=net.blocks[index].units + 2)
    blocks_now = (*net.blocks[:index], block, *net.blocks[index + 1 :])
    return replace(weights, arrays=arrays, architecture=replace(net, blocks=blocks_now))


def mutated(weights: Net, rng: np.random.Generator) -> Net:
    """Multiply one weight by a factor."""
    names = [name for name, array in sorted(weights.arrays.items()) if np.any(array)]
    name = str(rng.choice(names))
    array = weights.arrays[name].copy()
    at = int(rng.choice(np.flatnonzero(array)))
    array.flat[at] *= 10.0 ** int(rng.choice(EXPONENTS))
    return weights.with_array(name, array)


CHANGES: dict[str, Change] = {
    "scaled": scaled,
    "shifted": shifted,
    "balanced": balanced,
    "cancelling values": cancelling_values,
    "cancelling units": cancelling_units,
    "mutated": mutated,
}
