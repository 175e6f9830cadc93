r"""Patched runs in JAX: the share to which each edge is patched is a number, and all results have gradients.

An edge with share $\alpha$ carries $(1 - \alpha)\,a + \alpha a'$ instead of $a$, where $a'$ is the donor's activation.
So $\alpha \in \{0, 1\}$ is the patched run of `circuit.py`, and edge pruning learns $\alpha$. The gradient by $\alpha$
at 0 is the score of attribution patching.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array, Arrays, Floats, namespace
from vitrify.mechanisms.domain import TIE, PatchDomain
from vitrify.mechanisms.parts import Edge, NetWiring, Port, Writer
from vitrify.net.architecture import Output
from vitrify.net.sparse import dense
from vitrify.net.transformer_forward import Part, normed

Activities = Mapping[str, Array]
# Programs run a few times only: most of their time would be spent on making them quick.
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
TINY = 1e-9  # least weight of a symbol of which a logarithm is taken


@dataclass(frozen=True, eq=False)
class CutRuns:
    """Patched runs of the networks with some nodes and edges, whatever their arrays: compiled programs are shared."""

    wired: NetWiring
    edges: tuple[Edge, ...]

    @cached_property
    def _key(self) -> object:
        return self.wired.weights.architecture, self.edges, tuple((n.name, n.units) for n in self.wired.nodes)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CutRuns) and self._key == other._key

    @cached_property
    def sources(self) -> dict[str, list[tuple[int, str]]]:
        """The edges into each port: the number of the edge, its source."""
        into: dict[str, list[tuple[int, str]]] = {}
        for number, (source, port) in enumerate(self.edges):
            into.setdefault(port, []).append((number, source))
        return into

    def __call__(
        self,
        arrays: Arrays,
        tokens: Array,
        shares: Array,
        donors: Activities,
        clean: Activities | None = None,
    ) -> tuple[Array, dict[str, Array]]:
        """Return the logits [pair, pos, out] with shares [edge] or [pair, edge], and the activations of all writers.

        With `clean` activations c, an edge carries a + share (a' - c) instead.
        """
        run = _Run(self, arrays, jnp.atleast_2d(shares), donors, clean)
        net = self.wired.weights.architecture
        logits = net.forward(arrays, jnp.asarray(tokens), record=run.record, edit=run.edit)
        return logits, {node: run.activity(writer, len(tokens)) for node, writer in self.wired.writers.items()}

    def clean(self, arrays: Arrays, tokens: Array) -> dict[str, Array]:
        """Return the activations of all writers where nothing is patched."""
        return CutRuns(self.wired, ())(arrays, tokens, jnp.zeros(0), {})[1]


class _Run:
    """One forward pass, in which JAX sees every activation."""

    def __init__(
        self, runs: CutRuns, arrays: Arrays, shares: Array, donors: Activities, clean: Activities | None
    ) -> None:
        self.runs, self.arrays, self.shares, self.donors, self.clean = runs, arrays, shares, donors, clean
        self.wired, self.net = runs.wired, runs.wired.weights.architecture
        self.seen: dict[str, Array] = {}
        self.moves: dict[str, Array] = {}  # what each donor changes in the residual stream
        self.ports: dict[str, list[Port]] = {}
        for port in self.wired.ports.values():
            self.ports.setdefault(port.hook, []).append(port)

    def record(self, name: str, value: Array) -> None:
        self.seen[name] = value

    def activity(self, writer: Writer, words: int) -> Array:
        value = self.seen[writer.hook]
        value = value if value.ndim > 2 else jnp.broadcast_to(value, (words, *value.shape))
        return value[writer.slot]

    def matrix(self, part: Writer | Port, x: Array) -> Array:
        return x if part.array is None else x @ self.arrays[part.array[0]][part.array[1]]

    def move(self, source: str) -> Array:
        """Return by how much the donors change what a node adds to the residual stream."""
        if source not in self.moves:
            writer = self.wired.writers[source]
            before = self.clean[source] if self.clean else self.activity(writer, len(self.donors[source]))
            change = jnp.asarray(self.donors[source]) - before
            self.moves[source] = self.matrix(writer, change)
        return self.moves[source]

    def edit(self, name: str, value: Array) -> Array:
        if name.endswith(("hook_out", "hook_works")):
            self.seen[name] = value
        for port in self.ports.get(name, ()):
            into = self.runs.sources.get(port.name, [])
            if into and port.name.endswith(".gate"):
                other = jnp.asarray(self.donors[into[0][1]])[port.slot]  # a choice: it has no gradient
                patched = jnp.where(self.shares[:, into[0][0], None] > 0.5, other, value[port.slot])
                value = value.at[port.slot].set(patched)
            elif into:
                value = value.at[port.slot].add(self.change(port, into))
        return value

    def change(self, port: Port, into: Sequence[tuple[int, str]]) -> Array:
        """Return by how much the patched edges change the input of a port."""
        shift = sum(self.shares[:, number, None, None] * self.move(source) for number, source in into)
        if not self.net.normed(port.half):
            return self.matrix(port, shift)
        x = self.seen[self.net.moments[port.moment]]
        return self.matrix(port, self.normed(port, x + shift) - self.normed(port, x))

    def normed(self, port: Port, x: Array) -> Array:
        last = port.node == "output"
        part = Part(self.arrays, "" if last else f"blocks.{port.half // 2}.", None)
        return normed(self.net, part, "ln_final" if last else f"ln{port.half % 2 + 1}", x, port.half)[0]


def in_jax(wired: NetWiring, dtype: type = np.float64) -> dict[str, Array]:
    """Return the arrays of a network as JAX arrays."""
    return {name: jnp.asarray(np.asarray(dense(array)), dtype) for name, array in wired.weights.arrays.items()}


def contrast(output: Output, logits: Floats) -> Floats:
    r"""Return how strongly the answers of a clean run are preferred, as weights $u$ of logits: $m = u \cdot \ell$.

    Symbols: the mean logit of those that share the largest one, less the mean of all. Next words: the sum of logits,
    each with its sign. Numbers: their sum.
    """
    if output.kind == "values":
        return np.ones_like(logits)
    if output.kind == "next":
        return np.sign(logits)
    best = (logits >= logits.max(axis=-1, keepdims=True) - TIE).astype(float)
    return np.asarray(best / best.sum(axis=-1, keepdims=True) - 1 / logits.shape[-1])


def distance(output: Output, clean: Array, logits: Array, scale: float | Array) -> Array:
    """Return how far the answers of a run are from those of a clean one [pair, pos]; logits are divided by `scale`.

    Probabilities and symbols: the Kullback–Leibler divergence. Next words: the sum of those of all symbols. Numbers:
    the squared distance.
    """
    xp = namespace(logits)
    if output.kind == "values":
        return xp.square((clean - logits) / scale).sum(axis=-1)
    if output.kind == "next":
        p, q = clean / scale, logits / scale
        yes, no = xp.logaddexp(0, -q) - xp.logaddexp(0, -p), xp.logaddexp(0, q) - xp.logaddexp(0, p)
        share = xp.exp(-xp.logaddexp(0, -p))
        return (share * yes + (1 - share) * no).sum(axis=-1)
    if output.kind == "lm" and output.scores == "linear":
        clean, logits = (xp.log(xp.maximum(each, TINY)) for each in (clean, logits))
    pair = [each if output.kind == "lm" else each / scale for each in (clean, logits)]
    tops = [each - each.max(axis=-1, keepdims=True) for each in pair]
    p, q = (each - xp.log(xp.exp(each).sum(axis=-1, keepdims=True)) for each in tops)
    return (xp.exp(p) * (p - q)).sum(axis=-1)


def scale_of(output: Output, part: PatchDomain, logits: Array) -> float:
    """Return the size of logits, of those that count: their standard deviation within a position."""
    counted = np.asarray(logits)[part.mask[part.pairs[:, 0]]]
    spread = np.std(counted, axis=None if output.kind in ("next", "values") else -1).mean()
    return float(max(spread, 1e-9))
