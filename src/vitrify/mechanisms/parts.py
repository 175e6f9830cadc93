r"""The parts of a transformer that write to the residual stream and read from it, as linear maps at named activations.

A *writer* adds $aM$ to the residual stream, where $a$ is an activation: the embedding of a token or a position, the
output of a head, of ReLU units or of an expert, a cell's state. A *port* is where a part reads: the queries, keys
and values of a head, the inputs of a group of units, of an expert, a router or a cell, the logits. It sees $xW$, with
a norm of $x$ before where the network has one. So the path from a writer to a port is the one matrix $MW$.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import EllipsisType
from typing import Literal

import numpy as np

from vitrify.arrays import Floats, Ints
from vitrify.errors import BuildRefused
from vitrify.net.architecture import Architecture
from vitrify.net.labels import Labels
from vitrify.net.positions import tabulated
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

NodeKind = Literal["embedding", "positions", "head", "units", "expert", "router", "cell", "output"]
Grain = Literal["units", "layers"]
Edge = tuple[str, str]  # from a node to a port

PORTS = (".q", ".k", ".v", ".gate")  # how names of ports end, beside the name of the node
NOTHING = 1e-12  # of what two matrices could make: a product below this is zero


@dataclass(frozen=True)
class CircuitNode:
    """One part: its block (each turn of a loop is a block of its own), its index in it, the units that it is."""

    name: str
    kind: NodeKind
    block: int | None = None
    index: int | None = None
    units: tuple[int, ...] = ()
    about: str = ""


Slot = tuple[EllipsisType | slice | int | Ints, ...]  # index into an activation or an array
ArrayPart = tuple[str, Slot] | None  # the array that a matrix is a part of, and which part; None for the identity


@dataclass(frozen=True, eq=False)
class Writer:
    """Output of a node to the residual stream: the activation `hook` at `slot`, times the matrix; from a moment on.

    `span` are rows of which everything that it may add is made.
    """

    node: str
    moment: int
    hook: str
    slot: Slot
    matrix: Floats
    span: Floats
    array: ArrayPart


@dataclass(frozen=True, eq=False)
class Port:
    """Where a node reads the stream: through the matrix, as `slot` of the activation `hook`, before a half layer.

    `sight` has columns for everything that it may see of the stream.
    """

    name: str
    node: str
    moment: int  # of a run, in which each turn of a loop counts
    half: int  # of the architecture
    hook: str
    slot: Slot
    matrix: Floats
    sight: Floats
    array: ArrayPart


@dataclass(frozen=True, eq=False)
class NetWiring:
    """A transformer as nodes, writers and ports; the edges are all pairs of which one can reach the other."""

    weights: Weights[Transformer]
    nodes: tuple[CircuitNode, ...]
    writers: Mapping[str, Writer]
    ports: Mapping[str, Port]

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """All pairs in which the writer stands before the port, whether the port sees what is written or not."""
        edges = [
            (writer.node, port.name)
            for port in self.ports.values()
            for writer in self.writers.values()
            if self._before(writer, port)
        ]
        return tuple(edges)

    def _before(self, writer: Writer, port: Port) -> bool:
        gate, router = port.name.endswith(".gate"), writer.hook.endswith("hook_works")
        if gate or router:
            return gate and router and port.hook == writer.hook
        return writer.moment <= port.moment

    @cached_property
    def composed(self) -> tuple[Edge, ...]:
        """The edges whose port sees what the writer writes: all others carry nothing, whatever is read."""
        return tuple(edge for edge in self.edges if self._sees(edge))

    def path(self, edge: Edge) -> Floats:
        """The matrix from a writer's activation to what a port sees of it, without norms."""
        if edge not in self._paths:
            self._paths[edge] = self.writers[edge[0]].matrix @ self.ports[edge[1]].matrix
        return self._paths[edge]

    @cached_property
    def _paths(self) -> dict[Edge, Floats]:
        return {}

    def _sees(self, edge: Edge) -> bool:
        writer, port = self.writers[edge[0]].span, self.ports[edge[1]].sight
        if port.size == 0 or writer.size == 0:
            return port.size == writer.size  # a gate hears its router
        groups = self.weights.architecture.normed(self.ports[edge[1]].half)
        if not groups:
            most = np.linalg.norm(writer, axis=1).max() * np.linalg.norm(port, axis=0).max()
            return bool(np.abs(writer @ port).max() > NOTHING * most)
        read = np.abs(port).max(axis=1) > 0
        for group in groups:  # who reads one number of a norm reads all of them
            read[list(group)] |= read[list(group)].any()
        return bool((np.abs(writer).max(axis=0) > 0)[read].any())


def node_of(port: str) -> str:
    """Return the node that a port belongs to."""
    return next((port.removesuffix(end) for end in PORTS if port.endswith(end)), port)


def wiring(weights: Weights, grain: Grain = "units", groups: Mapping[str, Sequence[int]] | None = None) -> NetWiring:
    """The parts of a network that reads tokens and whose residual adds.

    Units are one node for each group that labels name (`units`), or all of a block together (`layers`); `groups` says
    instead which units of which block are nodes.
    """
    weights = tabulated(weights)
    net = weights.architecture
    problems = obstacles(net)
    if problems:
        raise BuildRefused(f"{net.name!r} has no circuit of heads and units: it has {', '.join(problems)}")
    built = _Parts(weights, grain, groups)
    return NetWiring(weights, tuple(built.nodes), built.writers, built.ports)


def obstacles(net: Architecture) -> list[str]:
    """Return the reasons why a network has no circuit of heads and units; empty if there is none."""
    if not isinstance(net, Transformer):
        return [f"a {net.tag} architecture"]
    problems = [] if net.reads == "tokens" else [f"inputs that are no tokens ({net.reads})"]
    problems += ["a stream of parts"] if net.residual != "add" else []
    return problems + (["gates of experts"] if any(block.gate for block in net.blocks) else [])


class _Parts:
    """Nodes, writers and ports, collected block by block."""

    def __init__(self, weights: Weights, grain: Grain, groups: Mapping[str, Sequence[int]] | None) -> None:
        self.weights, self.grain, self.groups = weights, grain, groups
        self.labels: Labels = weights.labels
        self.nodes: list[CircuitNode] = []
        self.writers: dict[str, Writer] = {}
        self.ports: dict[str, Port] = {}
        net = weights.architecture
        every = (Ellipsis,)
        self.nodes.append(CircuitNode("embed", "embedding", about="the row of each token"))
        self.writes("embed", 0, "hook_embed", every, None, self.array("embed.W_E"))
        self.nodes.append(CircuitNode("pos", "positions", about="the embedding of each position"))
        self.writes("pos", 0, "hook_pos_embed", every, None, self.array("pos_embed.W_pos"))
        for turn, (index, block) in enumerate(net.turns):
            if block.heads:
                self.heads(turn, index)
            if block.cell:
                self.cell(turn, index, block.cell.kind)
            if block.units:
                self.units(turn, index)
            if block.experts:
                self.experts(turn, index)
        self.nodes.append(CircuitNode("output", "output", about=f"the logits of {len(net.output.symbols)} symbols"))
        self.reads("output", "output", 2 * len(net.turns), "hook_logits", every, ("unembed.W_U", every))

    def array(self, name: str) -> Floats:
        return np.asarray(dense(self.weights.arrays[name]), dtype=float)

    def matrix(self, array: ArrayPart) -> Floats:
        return np.eye(self.weights.architecture.d_model) if array is None else self.array(array[0])[array[1]]

    def writes(
        self, node: str, moment: int, hook: str, slot: Slot, array: ArrayPart, span: Floats | None = None
    ) -> None:
        matrix = self.matrix(array)
        self.writers[node] = Writer(node, moment, hook, slot, matrix, matrix if span is None else span, array)

    def reads(
        self, name: str, node: str, moment: int, hook: str, slot: Slot, array: ArrayPart, sight: Floats | None = None
    ) -> None:
        net, matrix = self.weights.architecture, self.matrix(array)
        half = moment % (2 * len(net.blocks)) if node != "output" else 2 * len(net.blocks)
        sees = matrix if sight is None else sight
        self.ports[name] = Port(name, node, moment, half, hook, slot, matrix, sees, array)

    def heads(self, turn: int, index: int) -> None:
        at, own = f"blocks.{turn}", f"blocks.{index}.attn"
        names = {(label.block, label.index): label.name for label in self.labels.heads}
        for place in range(len(self.array(f"{own}.W_O"))):
            name = f"{at}.attn.head.{place}"
            self.nodes.append(CircuitNode(name, "head", turn, place, about=names.get((index, place), "")))
            slot = (Ellipsis, place, slice(None))
            self.writes(name, 2 * turn + 1, f"{at}.attn.hook_z", slot, (f"{own}.W_O", (place,)))
            for letter in "QKV":
                port = f"{name}.{letter.lower()}"
                array = (f"{own}.W_{letter}", (place,))
                self.reads(port, name, 2 * turn, f"{at}.attn.hook_{letter.lower()}", slot, array)

    def cell(self, turn: int, index: int, kind: str) -> None:
        name = f"blocks.{turn}.rec"
        self.nodes.append(CircuitNode(name, "cell", turn, about="recurrent cell"))
        out = (f"blocks.{index}.rec.W_C", (Ellipsis,))
        self.writes(name, 2 * turn + 1, f"blocks.{turn}.hook_state", (Ellipsis,), out)
        sight = None  # of other kinds: all of it
        if kind == "diagonal":
            sight = np.hstack([self.array(f"blocks.{index}.rec.W_{letter}") for letter in "AB"])
        self.reads(name, name, 2 * turn, f"{name}.hook_in", (Ellipsis,), None, sight)

    def units(self, turn: int, index: int) -> None:
        at, own = f"blocks.{turn}.mlp", f"blocks.{index}.mlp"
        for name, units, about in self._grouped(at, index, len(self.array(f"{own}.W_out"))):
            self.nodes.append(CircuitNode(name, "units", turn, units=units, about=about))
            members = np.array(units, dtype=np.int64)
            slot = (Ellipsis, members)
            self.writes(name, 2 * turn + 2, f"{at}.hook_post", slot, (f"{own}.W_out", (members,)))
            self.reads(name, name, 2 * turn + 1, f"{at}.hook_pre", slot, (f"{own}.W_in", slot))

    def _grouped(self, at: str, index: int, count: int) -> Iterator[tuple[str, tuple[int, ...], str]]:
        """The groups of a block's units: name, members, description."""
        if self.groups is not None:
            for name, units in self.groups.items():
                if name.startswith(f"{at}.") or name == at:
                    yield name, tuple(units), ""
            return
        if self.grain == "layers":
            yield at, tuple(range(count)), f"{count} units"
            return
        labels = [label for label in self.labels.units if (label.block, label.part) == (index, "mlp")]
        for number, label in enumerate(labels):
            if label.stop > label.start:
                yield f"{at}.group.{number}", tuple(range(label.start, label.stop)), label.name
        rest = set(range(count)) - {unit for label in labels for unit in range(label.start, label.stop)}
        if rest:
            yield f"{at}.group.{len(labels)}", tuple(sorted(rest)), "units without a name"

    def experts(self, turn: int, index: int) -> None:
        at, own = f"blocks.{turn}.moe", f"blocks.{index}.moe"
        block = self.weights.architecture.blocks[index]
        names = {label.part: label.name for label in self.labels.units if label.block == index}
        every, nothing, one = (Ellipsis,), np.zeros((0, 0)), np.eye(self.weights.architecture.d_model)
        router = f"{at}.router"
        self.nodes.append(CircuitNode(router, "router", turn, about=names.get("moe.router", "says which expert works")))
        self.writes(router, 2 * turn + 1, f"{at}.hook_works", every, None, nothing)
        sight = self.array(f"{own}.router.{'W_in' if block.router else 'W_out'}")
        self.reads(router, router, 2 * turn + 1, f"{at}.router.hook_in", every, None, sight)
        for number, expert in enumerate(block.experts):
            name, arrays = f"{at}.expert.{number}", f"{own}.experts.{number}"
            self.nodes.append(CircuitNode(name, "expert", turn, number, about=names.get(f"moe.experts.{number}", "")))
            span = (
                np.vstack([self.array(f"{arrays}.W_out"), self.array(f"{arrays}.b_out")[None]]) @ one[[*expert.writes]]
            )
            self.writes(name, 2 * turn + 2, f"{at}.experts.{number}.hook_out", every, None, span)
            sight = one[:, [*expert.reads]] @ self.array(f"{arrays}.W_in")
            self.reads(name, name, 2 * turn + 1, f"{at}.experts.{number}.hook_in", every, None, sight)
            self.reads(f"{name}.gate", name, 2 * turn + 1, f"{at}.hook_works", (Ellipsis, number), None, nothing)
