r"""Entangle a network: other weights with the same function, in which no part can be recognized, and the renaming.

The residual stream is rotated by a random orthogonal matrix, after noise dimensions were added that all parts write to
and none reads. Heads and units are permuted; queries and keys change basis ($W_Q A$, $W_K A^{-\top}$), values too
($W_V B$, $B^{-1} W_O$); a ReLU unit is scaled on the way in and back on the way out; a constant moves from positions to
tokens. *Decoys* are heads and units that read everything and write noise only. What is written to the stream is the
old one turned, so that edges carry what they carried: the circuit is the old one under new names.

A norm sees means and variances: its dimensions are turned among themselves, around the line on which all are equal, if
no other norm sees only some of them and its scales are all equal; else they only change places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vitrify.arrays import Array, Floats, Ints
from vitrify.errors import BuildRefused
from vitrify.mechanisms.parts import Edge, NetWiring, wiring
from vitrify.net.labels import Labels
from vitrify.net.sparse import dense
from vitrify.net.transformer import Block, Transformer
from vitrify.net.weights import Weights

NOISE_DIMS = 6
DECOY_HEADS, DECOY_UNITS = 1, 3  # of every block that has any
MAX_SCALE = 2.0  # factor by which numbers are scaled
TIE = 1e-6  # margin of an expert over the next one, where their scores are equal
DECOY_SCALE = 0.5  # size of the weights of decoys


@dataclass(frozen=True, eq=False)
class Entangled:
    """An entangled network as parts, the new name of every node that was there before, and the rotation of the stream.

    `turn` [old or noise dimension, new dimension] is orthogonal.
    """

    wired: NetWiring
    renamed: Mapping[str, str]
    turn: Floats

    def edge(self, edge: Edge) -> Edge:
        """The new names of an edge."""
        source, port = edge
        node = max((name for name in self.renamed if port == name or port.startswith(f"{name}.")), key=len)
        return self.renamed[source], self.renamed[node] + port[len(node) :]


def entangle(wired: NetWiring, seed: int) -> Entangled:
    """Return another network with the same function, and the renaming; the same seed gives the same network."""
    net = wired.weights.architecture
    kinds = {block.cell.kind for block in net.blocks if block.cell} - {"diagonal"}
    if kinds or any(head.rotary for block in net.blocks for head in block.heads):
        raise BuildRefused(f"cells of kind {', '.join(kinds)} and rotary heads have no such symmetries")
    made = _Turned(wired, np.random.default_rng(seed))
    weights = Weights(made.net, made.arrays, Labels(), {"name": "an entangled network"})
    groups = dict(sorted(made.groups.items()))
    return Entangled(wiring(weights, groups=groups), made.renamed, made.turn)


class _Turned:
    """The arrays of the entangled network, part by part."""

    def __init__(self, wired: NetWiring, rng: np.random.Generator) -> None:
        self.wired, self.rng = wired, rng
        self.old: Transformer = wired.weights.architecture
        self.noise = 0 if self.old.norm and not self.old.groups else NOISE_DIMS
        self.width = self.old.d_model + self.noise
        self.turn, places = _rotation(wired, self.width, rng)
        self.renamed = {node.name: node.name for node in wired.nodes}
        self.groups: dict[str, tuple[int, ...]] = {}
        self.arrays: dict[str, Array] = {}
        blocks = [self.block(index, block) for index, block in enumerate(self.old.blocks)]
        halves = (tuple(tuple(places[dim] for dim in group) for group in some) for some in self.old.groups)
        self.net = replace(
            self.old, d_model=self.width, blocks=tuple(blocks), groups=tuple(halves), name="an entangled network"
        )
        self.ends()
        self.norms(places)

    # ---- from the old stream to the new one
    def array(self, name: str) -> Floats:
        return np.array(dense(self.wired.weights.arrays[name]), dtype=float)

    def random(self, *shape: int) -> Floats:
        return np.asarray(
            DECOY_SCALE * self.rng.standard_normal(shape) / np.sqrt(max(shape[-2] if len(shape) > 1 else 1, 1))
        )

    def written(self, rows: Floats) -> Floats:
        """Translate writes to the old residual stream [..., old dims] to the new one: add noise, then rotate."""
        noise = self.random(*rows.shape[:-1], self.noise)
        return np.asarray(np.concatenate([rows, noise], axis=-1) @ self.turn)

    def read(self, matrix: Floats) -> Floats:
        """Translate a matrix that reads the old residual stream [old dims, …] to the new one; it ignores noise."""
        silent = np.zeros((self.noise, *matrix.shape[1:]))
        return np.tensordot(self.turn.T, np.concatenate([matrix, silent]), axes=(1, 0))

    def ends(self) -> None:
        """Embedding, places and unembedding; a constant moves from one to the other."""
        moved = self.rng.standard_normal(self.width)
        self.arrays["embed.W_E"] = self.written(self.array("embed.W_E")) + moved
        self.arrays["pos_embed.W_pos"] = self.written(self.array("pos_embed.W_pos")) - moved
        self.arrays["unembed.W_U"] = self.read(self.array("unembed.W_U"))
        self.arrays["unembed.b_U"] = self.array("unembed.b_U")

    # ---- blocks
    def block(self, index: int, block: Block) -> Block:
        if block.heads:
            block = self.heads(index, block)
        if block.cell:
            self.cell(index, block.cell.state)
        if block.units:
            block = self.units(index, block)
        if block.experts:
            block = self.experts(index, block)
        return block

    def turns(self, index: int) -> list[int]:
        """The numbers that a block has in a run."""
        return [turn for turn, (own, _) in enumerate(self.old.turns) if own == index]

    def heads(self, index: int, block: Block) -> Block:
        name, count = f"blocks.{index}.attn", len(block.heads)
        decoys = DECOY_HEADS if self.noise else 0
        order = self.rng.permutation(count + decoys)  # the old number of each new head; from `count` on, decoys
        beta = self.array(f"{name}.beta")
        old = {key: self.array(f"{name}.{key}") for key in ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V", "W_O")}
        made: dict[str, list[Floats]] = {key: [] for key in old}
        for number in order.tolist():
            if number < count:
                own = {key: array[number] for key, array in old.items()}
                own["W_Q"], own["b_Q"] = own["W_Q"] * beta[number], own["b_Q"] * beta[number]
                own |= {key: self.read(own[key]) for key in ("W_Q", "W_K", "W_V")}
                own["W_O"] = self.written(own["W_O"])
            else:
                own = self.decoy(block)
            for (left, right), size in ((("Q", "K"), block.d_head), (("V", "O"), block.d_value)):
                there, back = _basis(size, self.rng)
                own[f"W_{left}"], own[f"b_{left}"] = own[f"W_{left}"] @ there, own[f"b_{left}"] @ there
                if right == "K":
                    own["W_K"], own["b_K"] = own["W_K"] @ back.T, own["b_K"] @ back.T
                else:
                    own["W_O"] = back @ own["W_O"]
            for key, array in own.items():
                made[key].append(array)
        self.arrays |= {f"{name}.{key}": np.stack(arrays) for key, arrays in made.items()}
        self.arrays[f"{name}.beta"] = np.ones(len(order))
        models = [number if number < count else int(self.rng.integers(count)) for number in order.tolist()]
        if block.window:
            self.arrays[f"{name}.b_rel"] = self.array(f"{name}.b_rel")[models]
        for turn in self.turns(index):
            for new, number in enumerate(order.tolist()):
                if number < count:
                    self.renamed[f"blocks.{turn}.attn.head.{number}"] = f"blocks.{turn}.attn.head.{new}"
        return replace(block, heads=tuple(block.heads[number] for number in models))

    def decoy(self, block: Block) -> dict[str, Floats]:
        """A head that reads everything and writes noise."""
        sizes = {"Q": block.d_head, "K": block.d_head, "V": block.d_value}
        own = {f"W_{letter}": self.random(self.width, size) for letter, size in sizes.items()}
        own |= {f"b_{letter}": self.random(size) for letter, size in sizes.items()}
        return own | {"W_O": self.written(np.zeros((block.d_value, self.old.d_model)))}

    def cell(self, index: int, state: int) -> None:
        """A diagonal cell: its numbers change places and sizes."""
        name, order = f"blocks.{index}.rec", self.rng.permutation(state)
        sizes = _sizes(state, self.rng)
        self.arrays[f"{name}.W_A"] = self.read(self.array(f"{name}.W_A")[:, order])
        self.arrays[f"{name}.W_B"] = self.read(self.array(f"{name}.W_B")[:, order]) * sizes
        self.arrays[f"{name}.W_C"] = self.written(self.array(f"{name}.W_C")[order]) / sizes[:, None]

    def units(self, index: int, block: Block) -> Block:
        name, decoys = f"blocks.{index}.mlp", DECOY_UNITS if self.noise else 0
        inward, bias = self.read(self.array(f"{name}.W_in")), self.array(f"{name}.b_in")
        outward = self.written(self.array(f"{name}.W_out"))
        inward = np.concatenate([inward, self.random(self.width, decoys)], axis=1)
        bias = np.concatenate([bias, self.random(decoys)])
        outward = np.concatenate([outward, self.written(np.zeros((decoys, self.old.d_model)))])
        order, sizes = self.rng.permutation(block.units + decoys), _sizes(block.units + decoys, self.rng)
        self.arrays[f"{name}.W_in"] = inward[:, order] * sizes
        self.arrays[f"{name}.b_in"] = bias[order] * sizes
        self.arrays[f"{name}.W_out"] = outward[order] / sizes[:, None]
        self.arrays[f"{name}.b_out"] = self.written(self.array(f"{name}.b_out")[None])[0]
        self.regroup(index, np.argsort(order), tuple(range(block.units, block.units + decoys)))
        return replace(block, units=block.units + decoys)

    def regroup(self, index: int, where: Ints, decoys: Sequence[int]) -> None:
        """The groups of a block's units under new numbers and names; decoys are a group of their own."""
        turns = self.turns(index)
        own = [node for node in self.wired.nodes if node.kind == "units" and node.block == turns[0]]
        whole = f"blocks.{turns[0]}.mlp"
        if [node.name for node in own] == [whole]:  # one node for the layer, decoys included
            self.groups |= {f"blocks.{turn}.mlp": tuple(range(len(where))) for turn in turns}
            return
        members = [node.units for node in own] + ([tuple(decoys)] if decoys else [])
        numbers = self.rng.permutation(len(members)).tolist()
        for turn in turns:
            for place, (number, units) in enumerate(zip(numbers, members, strict=True)):
                new = f"blocks.{turn}.mlp.group.{number}"
                self.groups[new] = tuple(sorted(int(where[unit]) for unit in units))
                if place < len(own):
                    self.renamed[own[place].name.replace(whole, f"blocks.{turn}.mlp", 1)] = new

    def experts(self, index: int, block: Block) -> Block:
        """Experts read and write all of the stream, in another order; units of experts and router as those of MLPs."""
        name, count, whole = f"blocks.{index}.moe", len(block.experts), tuple(range(self.width))
        order = self.rng.permutation(count).tolist()
        if block.router:
            hidden, sizes = self.rng.permutation(block.router), _sizes(block.router, self.rng)
            self.arrays[f"{name}.router.W_in"] = self.read(self.array(f"{name}.router.W_in")[:, hidden]) * sizes
            self.arrays[f"{name}.router.b_in"] = self.array(f"{name}.router.b_in")[hidden] * sizes
            scores = self.array(f"{name}.router.W_out")[hidden] / sizes[:, None]
        else:
            scores = self.read(self.array(f"{name}.router.W_out"))
        self.arrays[f"{name}.router.W_out"] = scores[:, order]
        early = TIE * np.arange(count)  # of equal scores the first wins, whatever rounding and the new order do
        self.arrays[f"{name}.router.b_out"] = (self.array(f"{name}.router.b_out") - early)[order]
        made = []
        one = np.eye(self.old.d_model)
        for new, number in enumerate(order):
            expert, before, after = block.experts[number], f"{name}.experts.{number}", f"{name}.experts.{new}"
            units, sizes = self.rng.permutation(expert.units), _sizes(expert.units, self.rng)
            inward = self.read(one[:, [*expert.reads]] @ self.array(f"{before}.W_in"))
            outward = self.written(self.array(f"{before}.W_out") @ one[[*expert.writes]])
            self.arrays[f"{after}.W_in"] = inward[:, units] * sizes
            self.arrays[f"{after}.b_in"] = self.array(f"{before}.b_in")[units] * sizes
            self.arrays[f"{after}.W_out"] = outward[units] / sizes[:, None]
            self.arrays[f"{after}.b_out"] = self.written(self.array(f"{before}.b_out")[None] @ one[[*expert.writes]])[0]
            made.append(replace(expert, reads=whole, writes=whole))
            for turn in self.turns(index):
                self.renamed[f"blocks.{turn}.moe.expert.{number}"] = f"blocks.{turn}.moe.expert.{new}"
        return replace(block, experts=tuple(made))

    def norms(self, places: Sequence[int]) -> None:
        """Scales and shifts go where their dimensions go: groups stay in order, and their dimensions too."""
        names = [f"blocks.{half // 2}.ln{half % 2 + 1}" for half in range(2 * len(self.old.blocks))] + ["ln_final"]
        for half, name in enumerate(names):
            if f"{name}.w" in self.wired.weights.arrays:
                self.arrays |= {f"{name}.{key}": self.array(f"{name}.{key}") for key in "wb"}
                if not self.old.groups:  # the whole stream in its new order
                    back = np.argsort(places[: self.old.widths[half]])
                    self.arrays |= {f"{name}.{key}": self.array(f"{name}.{key}")[back] for key in "wb"}


def _rotation(wired: NetWiring, width: int, rng: np.random.Generator) -> tuple[Floats, list[int]]:
    """A random orthogonal matrix that norms do not notice, and the new place of every dimension."""
    net = wired.weights.architecture
    halves = [net.normed(half) for half in range(len(net.widths))]
    groups = sorted({group for some in halves for group in some})
    turn = np.zeros((width, width))
    normed = {dim for group in groups for dim in group}
    free = [dim for dim in range(width) if dim not in normed]
    turn[np.ix_(free, free)] = _orthogonal(len(free), rng)
    members = [dim for group in groups for dim in group]
    plain = len(members) == len(normed) and _plain(wired)
    for group in groups if plain else ():
        turn[np.ix_(group, group)] = _around(len(group), rng)
    for dim in normed if not plain else ():
        turn[dim, dim] = 1.0
    order = rng.permutation(width)
    return turn[:, order], np.argsort(order).tolist()


def _plain(wired: NetWiring) -> bool:
    """Return whether all norms scale by 1 and shift by 0."""
    arrays = wired.weights.arrays
    names = [name for name in arrays if ".ln" in f".{name}" and name.endswith((".w", ".b"))]
    return all(np.all(np.asarray(arrays[name]) == (1.0 if name.endswith(".w") else 0.0)) for name in names)


def _orthogonal(size: int, rng: np.random.Generator) -> Floats:
    """A random orthogonal matrix, each as likely as any other."""
    turn, upper = np.linalg.qr(rng.standard_normal((size, size)))
    return np.asarray(turn * np.sign(np.diag(upper)))


def _around(size: int, rng: np.random.Generator) -> Floats:
    """A random orthogonal matrix that leaves vectors of equal numbers as they are."""
    basis, _ = np.linalg.qr(np.concatenate([np.ones((size, 1)), rng.standard_normal((size, size - 1))], axis=1))
    inner = np.eye(size)
    inner[1:, 1:] = _orthogonal(size - 1, rng)
    return np.asarray(basis @ inner @ basis.T)


def _sizes(count: int, rng: np.random.Generator) -> Floats:
    """Random scales, none far from 1."""
    return np.asarray(MAX_SCALE ** rng.uniform(-1, 1, count))


def _basis(size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """A random change of basis and the way back, well conditioned."""
    left, sizes, right = _orthogonal(size, rng), _sizes(size, rng), _orthogonal(size, rng)
    return (left * sizes) @ right, (right.T / sizes) @ left.T
