r"""Runs in which some edges carry what they carry in another run.

The port of a cut edge sees $xW + (a' - a)MW$: the writer's activation $a$ of this run is replaced by $a'$, that of a
donor, on this path and on no other. Everything else is the network's own forward pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.mechanisms.parts import Edge, Floats, Port, Wiring, Writer
from vitrify.net.transformer_forward import Part, normed

Ids = NDArray[np.int64]
Activities = Mapping[str, Any]  # the activation of every writer [word, pos, …], by its node


def activities(wired: Wiring, tokens: Ids) -> dict[str, Any]:
    """What every writer says on some words."""
    run = _Run(wired, {}, {})
    run.logits(tokens)
    return {node: np.array(run.activity(writer, len(tokens))) for node, writer in wired.writers.items()}


def patched(wired: Wiring, tokens: Ids, cut: Iterable[Edge], donors: Activities) -> Floats:
    """Logits [word, pos, out] of a run in which every cut edge carries what the donors say."""
    cuts: dict[str, list[str]] = {}
    for source, port in cut:
        cuts.setdefault(port, []).append(source)
    return _Run(wired, cuts, donors).logits(tokens)


class _Run:
    """One forward pass: what was seen so far, and what is changed on the way."""

    def __init__(self, wired: Wiring, cuts: Mapping[str, list[str]], donors: Activities) -> None:
        self.wired, self.cuts, self.donors = wired, cuts, donors
        self.seen: dict[str, Any] = {}
        self.ports: dict[str, list[Port]] = {}
        for name in cuts:
            port = wired.ports[name]
            self.ports.setdefault(port.hook, []).append(port)

    def logits(self, tokens: Ids) -> Floats:
        net = self.wired.weights.architecture
        self.words = len(tokens)
        prepared = self.wired.weights.prepared
        return np.asarray(net.forward(prepared, tokens, record=self.seen.__setitem__, edit=self.edit))

    def activity(self, writer: Writer, words: int) -> Any:
        """What a writer says in this run."""
        value = self.seen[writer.hook]
        value = value if value.ndim > 2 else np.broadcast_to(value, (words, *value.shape))
        return value[writer.slot]

    def edit(self, name: str, value: Any) -> Any:
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

    def change(self, port: Port) -> Any:
        """What the donors make of a port's sight."""
        net = self.wired.weights.architecture
        sources = self.cuts[port.name]
        turned = {s: self.donors[s] - self.activity(self.wired.writers[s], self.words) for s in sources}
        if not net.normed(port.half):
            return sum(turned[s] @ self.wired.path((s, port.name)) for s in sources)
        x = self.seen[net.moments[port.moment]]
        moved = x + sum(turned[s] @ self.wired.writers[s].matrix for s in sources)
        return (self._normed(port, moved) - self._normed(port, x)) @ port.matrix

    def _normed(self, port: Port, x: Any) -> Any:
        last = port.node == "output"
        part = Part(self.wired.weights.prepared, "" if last else f"blocks.{port.half // 2}.", None)
        name = "ln_final" if last else f"ln{port.half % 2 + 1}"
        return normed(self.wired.weights.architecture, part, name, x, port.half)
