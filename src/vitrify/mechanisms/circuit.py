r"""The true circuit of a network: the edges that some answer depends on.

An edge is *true* if replacing what it carries by what it carries on a donor changes some answer of the domain. The
circuit is *exact* if replacing what all other edges carry, at once, changes none. Edges whose port reads nothing of
what the writer writes ($MW = 0$) need no run: they carry nothing.

A writer adds $aM$ to the residual stream $x$, where $a$ is its activation; a port reads $xW$ (after a norm, if it has
one). The port of a cut edge reads $xW + (a' - a)MW$ instead: $a$ is replaced by $a'$, the activation on a donor, on
this path and on no other. Everything else is the network's own forward pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Array, Bools, Floats, Ints
from vitrify.mechanisms.domain import MAX_WORDS_PER_LENGTH, PatchDomain, differs, joined, patch_domain, usual_tolerance
from vitrify.mechanisms.parts import Edge, NetWiring, Port, Writer
from vitrify.net.transformer_forward import Part, normed

Activities = Mapping[str, Array]  # the activation of every writer [word, pos, …], by its node
MAX_DRAWS = 6  # of further words, to find one on which an edge matters


@dataclass(frozen=True)
class TrueCircuit:
    """The true edges, the share of answers that each changes, and the faithfulness of the circuit."""

    edges: tuple[Edge, ...]
    effects: tuple[float, ...]
    faithfulness: float  # share of answers that stay when all other edges are patched

    @property
    def exact(self) -> bool:
        """Return whether no other edge matters."""
        return self.faithfulness == 1.0


class Judge:
    """Measures which answers of a network change when edges are cut, on a domain of words and donors.

    `tolerance` is how much an answer may move without being another one; by default, that of the kind of output.
    """

    def __init__(self, wired: NetWiring, domain: Sequence[PatchDomain], tolerance: float | None = None) -> None:
        self.wired, self.domain = wired, tuple(domain)
        self.output = wired.weights.architecture.output
        self.tolerance = usual_tolerance(self.output) if tolerance is None else tolerance
        self._recalled: dict[tuple[Edge, ...], list[Floats]] = {}
        # for words of each length: activations on the donors, and the logits without cuts [pair, pos, …]
        self.ready: list[tuple[PatchDomain, dict[str, Array], Floats]] = []
        for part in domain:
            activations = activities(wired, part.tokens)
            clean = patched(wired, part.tokens, (), {})
            self.ready.append((part, part.donor_activations(activations), clean[part.pairs[:, 0]]))

    def changes(self, cut: Iterable[Edge]) -> Iterator[tuple[PatchDomain, Bools, Bools]]:
        """Yield, for words of each length, which answers [pair, pos] change when edges are cut, and which count."""
        for (part, _, clean), logits in zip(self.ready, self.logits(cut), strict=True):
            where = part.mask[part.pairs[:, 0]]
            yield part, differs(self.output, clean, logits, self.tolerance) & where, where

    def logits(self, cut: Iterable[Edge]) -> Iterator[Floats]:
        """Yield the logits [pair, pos, out] for words of each length when edges are cut."""
        cut = tuple(cut)
        for part, donors, clean in self.ready:
            yield patched(self.wired, part.tokens[part.pairs[:, 0]], cut, donors) if cut else clean

    def recalled(self, cut: tuple[Edge, ...]) -> list[Floats]:
        """Return the logits for words of each length, and run the network at the first call only."""
        if cut not in self._recalled:
            self._recalled[cut] = list(self.logits(cut))
        return self._recalled[cut]

    def changed(self, cut: Iterable[Edge]) -> float:
        """Return the share of answers that change when edges are cut, over all pairs of word and donor."""
        counts = [(int(changed.sum()), int(counted.sum())) for _, changed, counted in self.changes(cut)]
        return sum(changed for changed, _ in counts) / sum(total for _, total in counts)

    def faithfulness(self, circuit: Iterable[Edge]) -> float:
        """Return the share of answers that stay when all edges but those of a circuit are cut."""
        return 1.0 - self.changed(sorted(set(self.wired.edges) - set(circuit)))


def judged(
    wired: NetWiring, spec: object, seed: int = 0, *, words: int = MAX_WORDS_PER_LENGTH, draws: int = MAX_DRAWS
) -> Judge:
    """Return a judge whose domain has, for every edge that matters, a word that shows it, if `draws` draws find one."""
    net = wired.weights.architecture
    judge = Judge(wired, patch_domain(net, spec, seed, words))
    silent = [edge for edge in wired.composed if judge.changed((edge,)) == 0]
    witnesses: list[PatchDomain] = []
    for draw in range(1, draws + 1):
        if not silent:
            break
        other = Judge(wired, patch_domain(net, spec, seed + 1000 * draw, words))
        for edge in tuple(silent):
            shown = [(part, np.flatnonzero(changed.any(axis=1))[:1]) for part, changed, _ in other.changes((edge,))]
            if any(len(pairs) for _, pairs in shown):
                silent.remove(edge)
                witnesses += [part.only(pairs) for part, pairs in shown if len(pairs)]
    return Judge(wired, joined((*judge.domain, *witnesses))) if witnesses else judge


def true_circuit(judge: Judge) -> TrueCircuit:
    """Cut every edge by itself, and return the circuit of those that change an answer."""
    effects = {edge: judge.changed((edge,)) for edge in judge.wired.composed}
    true = tuple(edge for edge, effect in effects.items() if effect > 0)
    return TrueCircuit(true, tuple(effects[edge] for edge in true), judge.faithfulness(true))


def activities(wired: NetWiring, tokens: Ints) -> dict[str, Array]:
    """Return the activation of every writer on some words."""
    run = _PatchedRun(wired, {}, {})
    run.logits(tokens)
    return {node: np.array(run.activity(writer, len(tokens))) for node, writer in wired.writers.items()}


def patched(wired: NetWiring, tokens: Ints, cut: Iterable[Edge], donors: Activities) -> Floats:
    """Return the logits [word, pos, out] of a run in which every cut edge carries the activation of the donors."""
    cuts: dict[str, list[str]] = {}
    for source, port in cut:
        cuts.setdefault(port, []).append(source)
    return _PatchedRun(wired, cuts, donors).logits(tokens)


class _PatchedRun:
    """One forward pass in which edges are patched; `seen` holds its activations so far."""

    def __init__(self, wired: NetWiring, cuts: Mapping[str, list[str]], donors: Activities) -> None:
        self.wired, self.cuts, self.donors = wired, cuts, donors
        self.seen: dict[str, Array] = {}
        self.ports: dict[str, list[Port]] = {}
        for name in cuts:
            port = wired.ports[name]
            self.ports.setdefault(port.hook, []).append(port)

    def logits(self, tokens: Ints) -> Floats:
        net = self.wired.weights.architecture
        self.words = len(tokens)
        prepared = self.wired.weights.prepared
        return np.asarray(net.forward(prepared, tokens, record=self.seen.__setitem__, edit=self.edit))

    def activity(self, writer: Writer, words: int) -> Array:
        """Return the activation of a writer in this run."""
        value = self.seen[writer.hook]
        value = value if value.ndim > 2 else np.broadcast_to(value, (words, *value.shape))
        return value[writer.slot]

    def edit(self, name: str, value: Array) -> Array:
        if name.endswith(("hook_out", "hook_works")):
            self.seen[name] = value
        ports = self.ports.get(name, ())
        if ports:
            value = value.copy()
        for port in ports:
            if port.name.endswith(".gate"):
                (router,) = self.cuts[port.name]
                value[port.slot] = self.donors[router][port.slot]
            else:
                value[port.slot] += self.change(port)
        return value

    def change(self, port: Port) -> Array:
        """Return by how much the donors change the input of a port."""
        net = self.wired.weights.architecture
        sources = self.cuts[port.name]
        turned = {s: self.donors[s] - self.activity(self.wired.writers[s], self.words) for s in sources}
        if not net.normed(port.half):
            return sum(turned[s] @ self.wired.path((s, port.name)) for s in sources)
        x = self.seen[net.moments[port.moment]]
        moved = x + sum(turned[s] @ self.wired.writers[s].matrix for s in sources)
        return (self._normed(port, moved) - self._normed(port, x)) @ port.matrix

    def _normed(self, port: Port, x: Array) -> Array:
        last = port.node == "output"
        part = Part(self.wired.weights.prepared, "" if last else f"blocks.{port.half // 2}.", None)
        name = "ln_final" if last else f"ln{port.half % 2 + 1}"
        return normed(self.wired.weights.architecture, part, name, x, port.half)[0]
