r"""Distances of two nets of one architecture: of their weights, modulo symmetries, and of their mechanisms.

The distance of weights (`distance`, `probe`) leaves out the symmetries that keep the function of a net unchanged. Heads
of one kind may be permuted, and of a head only $W_Q W_K^\top$ and $W_V W_O$ matter (with biases as a further row; of
rotary heads, one such product for each pair of numbers that turns). ReLU units may be permuted, and what a unit reads
multiplied by any $\alpha > 0$ if what it writes is divided by it; so may the channels of a convolutional net. Softmaxes
do not see what is added to all scores. A norm's scale and shift are folded into the matrices that read its output. The
basis of the residual stream is taken as it is, and so are the places of experts: in a construction its dimensions have
names, and experts read and write dimensions of their own.

Both nets are brought into a form that these symmetries leave alone, heads and units are matched by linear assignment
(channels by several, layer after layer, until none changes any more: what is found is then no less than the distance),
and every part (embedding, query-key and value-output products of each layer, its MLP …) gets the relative distance
$\|A - B\|_F / \|B\|_F$, with $B$ the reference. The distance of the nets is the root mean square of those of the parts.

A net that gets surer of its answers has larger weights and is otherwise the same. With `turned`, a part may also be
made larger or smaller as a whole: its distance is the least of $\|sA - B\|_F / \|B\|_F$ over $s \ge 0$, the sine of the
angle between the two, or 1 where that is beyond a right angle. So 0 is the same direction, and random nets are near 1.

The distance of mechanisms (`mechanism_probe`) needs no basis. A net that was trained from random weights has no reason
to use the same one; but whatever the basis, a head that does what another does attends to the same positions, and a
unit that does what another does is active on the same inputs. On the same sequences, with heads, units and experts of a
layer matched by linear assignment:

| part | how far one is from the other |
| --- | --- |
| a head | the total variation distance of its attention, averaged over positions |
| a unit, a channel | $1 - \rho$, $\rho \ge 0$ the correlation of activations; 1 where one never changes |
| a router | the share of positions whose expert is not the one that is matched with the reference's |

Every part is in [0, 1]; a layer has the mean over what the reference has there, and the nets the mean over layers.
Positions behind the last question of a sequence do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

from vitrify.arrays import Array, Arrays, Floats, Ints, Matrix, Tree
from vitrify.errors import InputError
from vitrify.learn.models.catalogue import Family
from vitrify.learn.program import Probe
from vitrify.learn.runs import Net
from vitrify.net.conv import Convolutional
from vitrify.net.sparse import dense
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Example, Sandbox

FREE = ("lm", "class", "recognizer", "transducer")  # answers that do not see what is added to all logits
STILL = 1e-6  # what changes less than this part of the largest activation does not change
SWEEPS = 20  # over the layers of a convolutional net, at most, to match its channels
Part = Literal["heads", "units", "experts"]
HOOKS: dict[Part, str] = {"heads": "attn.hook_pattern", "units": "hook_post", "experts": "moe.hook_expert"}
Pairs = dict[str, tuple[Floats, Floats]]  # what is compared of each part: ours, theirs


def distance(weights: Weights[Net], reference: Weights[Net], *, turned: bool = False) -> float:
    """The distance of a net to a reference of the same architecture."""
    if weights.architecture != reference.architecture:
        raise InputError("only nets of the same architecture have a distance")
    parts = distances(weights.architecture, weights.arrays, reference.arrays, turned=turned)
    return float(np.sqrt(np.mean(np.square(list(parts.values())))))


def probe(reference: Weights[Net], *, turned: bool = False) -> Probe:
    """A probe that measures the distance to a reference along a curve."""

    def measured(net: Net, arrays: Arrays, row: Example, seen: Arrays) -> Array:
        del row, seen
        return _by_numpy(lambda one: distance(Weights(net, one), reference, turned=turned), dict(arrays))

    return measured


def _by_numpy(measure: Callable[[Tree], float], member: Tree) -> Array:
    """Within a compiled program a number that NumPy measures of a tree of arrays; members of a batch one by one."""
    rank = jnp.ndim(jax.tree.leaves(member)[0])

    def each(batch: Tree) -> Array:
        first = jax.tree.leaves(batch)[0]
        front = np.shape(first)[: np.ndim(first) - rank]
        count = int(np.prod(front))
        flat = jax.tree.map(lambda array: np.asarray(array).reshape(count, *np.shape(array)[len(front) :]), batch)
        values = [measure(jax.tree.map(lambda array, at=at: array[at], flat)) for at in range(count)]
        return np.array(values, np.float32).reshape(front)

    return jax.pure_callback(each, np.float32(0.0), member, vmap_method="broadcast_all")


def distances(net: Net, arrays: Arrays, reference: Arrays, *, turned: bool = False) -> dict[str, float]:
    """The relative distance of every part, by name."""
    if isinstance(net, Convolutional) and not net.shared:
        raise InputError("distances of weights are not measured where convolutions do not share theirs")
    ours, theirs = (_folded(net, {n: _plain(a) for n, a in found.items()}) for found in (arrays, reference))
    found = _channels(ours, theirs) if isinstance(net, Convolutional) else _parts(net, ours, theirs)
    measure: Callable[[Floats, Floats], float] = _sine if turned else _relative
    return {name: measure(*pair) for name, pair in found.items()}


def _parts(net: Net, ours: Mapping[str, Floats], theirs: Mapping[str, Floats]) -> Pairs:
    """The parts of a net with a residual stream, or of a recurrent one."""
    pairs: Pairs = {}
    for index, block in enumerate(net.blocks if isinstance(net, Transformer) else ()):
        if block.heads:
            pairs |= _heads(net, block, f"blocks.{index}", ours, theirs)
    hidden = [name.removesuffix(".W_in") for name in theirs if name.endswith(".W_in")]
    hidden = [name for name in hidden if f"{name}.W_out" in theirs]
    pairs |= {name: _units(name, ours, theirs) for name in hidden}
    if "pos_embed.W_pos" in theirs:
        pairs["embed"] = _embedded(ours), _embedded(theirs)
    embeddings = [".embed.W_E", ".pos_embed.W_pos"] if "embed" in pairs else []
    done = (".attn.", *(f".{name}." for name in hidden), *embeddings)
    rest = [name for name in theirs if not any(part in f".{name}" for part in done)]
    for group in dict.fromkeys(name.rsplit(".", 1)[0] for name in rest):
        own = [name for name in rest if name.rsplit(".", 1)[0] == group]
        pairs[group] = _joined([ours[name] for name in own]), _joined([theirs[name] for name in own])
    return pairs


def _joined(arrays: list[Floats]) -> Floats:
    return np.concatenate([array.ravel() for array in arrays])


def _plain(array: Matrix) -> Floats:
    return np.asarray(dense(array), dtype=np.float64)


def _relative(ours: Floats, theirs: Floats) -> float:
    """The distance as a share of the reference's size, or of our own where that is nothing."""
    size = np.linalg.norm(theirs) or np.linalg.norm(ours)
    return float(np.linalg.norm(ours - theirs) / size) if size else 0.0


def _sine(ours: Floats, theirs: Floats) -> float:
    """The sine of the angle between two directions; 1 where there is none, or beyond a right angle."""
    sizes = np.linalg.norm(ours), np.linalg.norm(theirs)
    if not sizes[1]:
        return float(sizes[0] > 0)
    cosine = np.vdot(ours, theirs) / (sizes[0] * sizes[1]) if sizes[0] else 0.0
    return float(np.sqrt(1 - np.clip(cosine, 0, 1) ** 2))


def _folded(net: Net, arrays: dict[str, Floats]) -> dict[str, Floats]:
    """Norms taken into the matrices that read behind them, and what no softmax sees taken out."""
    folded = dict(arrays)
    if isinstance(net, Transformer) and net.norm:
        for index, block in enumerate(net.blocks):
            if block.heads and not block.cell:
                _fold(net, folded, f"blocks.{index}.ln1", 2 * index, f"blocks.{index}.attn", "QKV")
            if block.units and not block.experts:
                _fold(net, folded, f"blocks.{index}.ln2", 2 * index + 1, f"blocks.{index}.mlp", ["in"])
        _fold(net, folded, "ln_final", 2 * len(net.blocks), "unembed", "U")
    if net.output.kind in FREE and net.output.scores == "softmax":
        for name in ("unembed.W_U", "unembed.b_U"):
            folded[name] = folded[name] - folded[name].mean(axis=-1, keepdims=True)
    for name in [name for name in folded if name.endswith(("moe.router.W_out", "moe.router.b_out"))]:
        folded[name] = folded[name] - folded[name].mean(axis=-1, keepdims=True)  # only who leads, and how far, matters
    return folded


def _fold(net: Transformer, arrays: dict[str, Floats], norm: str, half: int, part: str, readers: Iterable[str]) -> None:
    """Matrices and biases as if they read the normalised numbers before their scale and shift."""
    groups = net.normed(half)
    if not groups:
        return
    dims = [dim for group in groups for dim in group]
    scale, shift = np.ones(net.widths[half]), np.zeros(net.widths[half])
    scale[dims], shift[dims] = arrays.pop(f"{norm}.w"), arrays.pop(f"{norm}.b")
    for reader in readers:
        matrix, bias = arrays[f"{part}.W_{reader}"], arrays[f"{part}.b_{reader}"]
        arrays[f"{part}.b_{reader}"] = bias + shift @ matrix
        matrix = scale[:, None] * matrix
        for group in groups:  # numbers of mean 0 do not see what is added to a whole column
            rows = list(group)
            matrix[..., rows, :] -= matrix[..., rows, :].mean(axis=-2, keepdims=True)
        arrays[f"{part}.W_{reader}"] = matrix


def _embedded(arrays: Mapping[str, Floats]) -> Floats:
    """Tokens and places as they differ from their means, and the sum of these: only sums of the two are read."""
    tokens, places = arrays["embed.W_E"], arrays["pos_embed.W_pos"]
    centers = tokens.mean(axis=0), places.mean(axis=0)
    return np.concatenate([tokens - centers[0], places - centers[1], (centers[0] + centers[1])[None]])


def _heads(
    net: Transformer, block: Block, name: str, ours: Mapping[str, Floats], theirs: Mapping[str, Floats]
) -> Pairs:
    """A layer's query-key and value-output products, heads matched with heads of their kind."""
    forms = [
        [_products(block.heads[place], name, place, each) for place in range(len(block.heads))]
        for each in (ours, theirs)
    ]
    sizes = [np.sqrt(sum(np.sum(form[side] ** 2) for form in forms[1])) or 1.0 for side in (0, 1)]
    match = list(range(len(block.heads)))
    for kind in dict.fromkeys(block.heads) if net.residual == "add" else ():
        places = [place for place, head in enumerate(block.heads) if head == kind]
        costs = [
            [sum(np.sum((forms[0][i][s] - forms[1][j][s]) ** 2) / sizes[s] ** 2 for s in (0, 1)) for i in places]
            for j in places
        ]
        for row, column in zip(*linear_sum_assignment(np.array(costs)), strict=True):
            match[places[row]] = places[column]
    pairs = [(forms[0][match[place]], forms[1][place]) for place in range(len(block.heads))]
    return {
        f"{name}.attn.{part}": (_joined([pair[0][side] for pair in pairs]), _joined([pair[1][side] for pair in pairs]))
        for side, part in enumerate(("qk", "ov"))
    }


def _products(head: Head, name: str, place: int, arrays: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """Return the query-key product and the value-output product of a head."""
    q, k, v = (
        np.concatenate([arrays[f"{name}.attn.W_{letter}"][place], arrays[f"{name}.attn.b_{letter}"][place][None]])
        for letter in "QKV"
    )
    q = q * arrays[f"{name}.attn.beta"][place]
    if head.rotary:
        half = q.shape[1] // 2
        turning = np.einsum("xc,yc->cxy", q[:, :half] + 1j * q[:, half:], (k[:, :half] + 1j * k[:, half:]).conj())
        scores = np.stack([turning.real, turning.imag])
    else:
        scores = q @ k.T
        if head.attention != "linear":  # what all keys have in common
            scores[:, -1] = 0.0
    if head.window is not None:
        by_offset = arrays[f"{name}.attn.b_rel"][place, : head.window]
        by_offset = by_offset if head.attention == "linear" else by_offset - by_offset.mean()
        scores = np.concatenate([scores.ravel(), by_offset])
    return scores, v @ arrays[f"{name}.attn.W_O"][place]


def _units(name: str, ours: Mapping[str, Floats], theirs: Mapping[str, Floats]) -> tuple[Floats, Floats]:
    """The units of an MLP, an expert or a router, each scaled so that what it reads and writes have one size."""
    forms = [_balanced(name, each) for each in (ours, theirs)]
    squares = [(form**2).sum(axis=1) for form in forms]
    costs = squares[1][:, None] + squares[0][None, :] - 2 * forms[1] @ forms[0].T
    _, match = linear_sum_assignment(costs)
    more = [part for part in (f"{name}.b_out", f"{name}.b_choice") if part in theirs]
    return _joined([forms[0][match], *(ours[part] for part in more)]), _joined(
        [forms[1], *(theirs[part] for part in more)]
    )


def _balanced(name: str, arrays: Mapping[str, Floats]) -> Floats:
    reads = np.concatenate([arrays[f"{name}.W_in"], arrays[f"{name}.b_in"][None]]).T
    writes = arrays[f"{name}.W_out"]
    sizes = [np.linalg.norm(each, axis=1, keepdims=True) for each in (reads, writes)]
    both = np.sqrt(sizes[0] * sizes[1])  # a unit that reads or writes nothing does nothing
    return np.concatenate([both * _unit(reads, sizes[0]), both * _unit(writes, sizes[1])], axis=1)


def _unit(rows: Floats, sizes: Floats) -> Floats:
    return rows / np.where(sizes > 0, sizes, 1.0)


def _channels(ours: Mapping[str, Floats], theirs: Mapping[str, Floats]) -> Pairs:
    """The layers of a net without a stream, from below, channels brought to size 1 and matched.

    A match of a layer's channels changes what the layers beside it are compared with, so layers are gone through again
    until no match changes.
    """
    names = [name for name in theirs if name.endswith((".W", ".W_in")) or name == "unembed.W_U"]
    mine, other = (_sized([_layer(name, each) for name in names]) for each in (ours, theirs))
    orders = [np.arange(len(layer)) for layer in other]
    for sweep in range(SWEEPS):
        before = [order.copy() for order in orders]
        for at in range(len(names) - 1):
            gains = np.einsum("oik,pik->op", other[at], _read(mine[at], orders[at - 1] if at else None))
            if sweep:
                gains = gains + np.einsum(
                    "oik,ojk->ij", other[at + 1][..., :-1, :], mine[at + 1][orders[at + 1]][..., :-1, :]
                )
            orders[at] = linear_sum_assignment(-gains)[1]
        if sweep and all(np.array_equal(old, new) for old, new in zip(before, orders, strict=True)):
            break
    return {
        name.rsplit(".", 1)[0]: (_read(mine[at], orders[at - 1] if at else None)[orders[at]].ravel(), other[at].ravel())
        for at, name in enumerate(names)
    }


def _layer(name: str, arrays: Mapping[str, Floats]) -> Floats:
    """A layer as [channel, what it reads and a bias, place in the kernel]; the bias stands at the first place."""
    matrix = arrays[name]
    matrix = matrix.reshape(*matrix.shape[:2], -1) if name.endswith(".W") else matrix.T[..., None]
    bias = np.zeros((len(matrix), 1, matrix.shape[2]))
    bias[:, 0, 0] = arrays[name.replace("W", "b")]
    return np.concatenate([matrix, bias], axis=1)


def _sized(layers: list[Floats]) -> list[Floats]:
    """Every channel of size 1, and what reads it larger instead; the last layer keeps its size."""
    scaled = list(layers)
    for at in range(len(scaled) - 1):
        sizes = np.sqrt((scaled[at] ** 2).sum(axis=(1, 2)))
        scaled[at] = scaled[at] / np.where(sizes > 0, sizes, 1.0)[:, None, None]
        scaled[at + 1] = scaled[at + 1] * np.append(sizes, 1.0)[None, :, None]
    return scaled


def _read(layer: Floats, order: Ints | None) -> Floats:
    """A layer that reads channels in another order."""
    return layer if order is None else layer[:, np.append(order, len(order))]


def mechanism_probe(reference: Weights[Net], family: Family, sandbox: Sandbox, only: Part | None = None) -> Probe:
    """A probe that measures how differently a member works from the reference, or its heads, units or experts alone.

    It is between 0 and 1, and 0 where the reference has no such part.
    """

    def measured(net: Net, arrays: Arrays, batch: Example, seen: Arrays) -> Array:
        del arrays
        reference_arrays = {name: jnp.asarray(dense(array), jnp.float32) for name, array in reference.arrays.items()}
        theirs: dict[str, Array] = {}
        family.logits(net, sandbox, reference_arrays, batch, theirs.__setitem__)
        costs = _costs(net, seen, {n: x for n, x in theirs.items() if only is None or n.endswith(HOOKS[only])}, batch)
        return _by_numpy(_matched, costs)

    return measured


def _costs(net: Net, ours: Arrays, theirs: Arrays, batch: Example) -> list[tuple[Array, Array]]:
    """For each part how far each of ours is from each of theirs [theirs, ours], and how much each counts."""
    counted = _counted(net, batch)
    costs = []
    for name, there in theirs.items():
        here = ours[name]
        if name.endswith(HOOKS["heads"]):
            each = jnp.abs(there[:, :, None] - here[:, None]).sum(axis=-1) / 2  # [batch, theirs, ours, query]
            cost = (each * counted[:, None, None]).sum(axis=(0, 3)) / counted.sum()
            costs.append((cost, jnp.ones(cost.shape[0])))
        elif name.endswith(HOOKS["experts"]):
            experts = len(net.turns[int(name.split(".")[1])][1].experts)
            one, two = (jax.nn.one_hot(x[..., 0], experts) * counted[..., None] for x in (there, here))
            met = jnp.einsum("btx,bty->xy", one, two) / counted.sum()
            share = met.sum(axis=1)
            costs.append((1 - met / jnp.maximum(share, 1e-9)[:, None], share))
        elif name.endswith(HOOKS["units"]):
            one, two = (_samples(x, counted) for x in (there, here))
            costs.append((1 - jnp.maximum(one.T @ two, 0.0), (one != 0).any(axis=0).astype(jnp.float32)))
    return costs


def _counted(net: Net, batch: Example) -> Array:
    """Return 1 for positions up to the last target with a weight, else 0: [batch, position]."""
    counted = jnp.cumsum(batch.weight[:, ::-1], axis=1)[:, ::-1] > 0
    pads = getattr(net, "pads", 0)
    counted = jnp.pad(counted, ((0, 0), (pads - 1, 0))) if pads else counted[:, 1:]
    return counted.astype(jnp.float32)


def _samples(fired: Array, counted: Array) -> Array:
    """Activations as columns of mean 0 and length 1, one for each unit; zeros for what does not change."""
    if fired.ndim == 4:  # maps of a convolution: [batch, channel, row, column]
        fired = jnp.moveaxis(fired, 1, -1)
    columns = fired.reshape(-1, fired.shape[-1])
    share = counted.reshape(-1, 1) if fired.ndim == 3 else jnp.ones((len(columns), 1))
    centered = share * (columns - (share * columns).sum(axis=0) / share.sum())
    size = jnp.sqrt((centered**2).sum(axis=0))
    return jnp.where(size > STILL * jnp.abs(columns).max(), centered / jnp.where(size > 0, size, 1.0), 0.0)


def _matched(costs: Sequence[tuple[Floats, Floats]]) -> float:
    """The mean over parts of the matched distances."""
    means = []
    for cost, share in costs:
        if share.sum() > 0:
            theirs, ours = linear_sum_assignment(cost * share[:, None])
            means.append(float((cost[theirs, ours] * share[theirs]).sum() / share.sum()))
    return float(np.mean(means)) if means else 0.0
