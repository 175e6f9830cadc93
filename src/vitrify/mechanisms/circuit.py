r"""The true circuit of a network: the edges that some answer depends on.

An edge is *true* if replacing what it carries by what it carries on a donor changes an answer to some question of the
domain. The circuit is *exact* if replacing what all other edges carry, at once, changes none. Edges whose port sees
nothing of what the writer writes ($MW = 0$) need no run: they carry nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.mechanisms.domain import WORDS, Questions, differs, joined, questions
from vitrify.mechanisms.parts import Edge, Floats, Wiring
from vitrify.mechanisms.patching import activities, patched

SEARCHES = 6  # further draws of questions in which an edge may show that it matters


@dataclass(frozen=True)
class Circuit:
    """The true edges with the share of answers that each changes, and what remains unchanged without all others."""

    edges: tuple[Edge, ...]
    effects: tuple[float, ...]
    kept: float  # share of answers that stay when all other edges carry what donors say

    @property
    def exact(self) -> bool:
        """Whether nothing but these edges matters."""
        return self.kept == 1.0


class Judge:
    """A network and its questions: which answers change when edges are cut."""

    def __init__(self, wired: Wiring, domain: Sequence[Questions]) -> None:
        self.wired, self.domain = wired, tuple(domain)
        self.output = wired.weights.architecture.output
        self.ready: list[tuple[Questions, dict[str, Any], Floats]] = []
        for part in domain:
            said = activities(wired, part.tokens)
            clean = patched(wired, part.tokens, (), {})
            self.ready.append((part, part.given(said), clean[part.pairs[:, 0]]))

    def changes(self, cut: Iterable[Edge]) -> Iterator[tuple[Questions, NDArray[np.bool_], NDArray[np.bool_]]]:
        """For words of each length: which answers [pair, pos] change when edges are cut, and which are asked for."""
        cut = tuple(cut)
        for part, given, clean in self.ready:
            words = part.pairs[:, 0]
            where = part.asked[words]
            found = differs(self.output, clean, patched(self.wired, part.tokens[words], cut, given))
            yield part, found & where, where

    def changed(self, cut: Iterable[Edge]) -> float:
        """The share of answers that change when edges are cut, over all pairs of word and donor."""
        found = [(int(changed.sum()), int(asked.sum())) for _, changed, asked in self.changes(cut)]
        return sum(changed for changed, _ in found) / sum(asked for _, asked in found)

    def kept(self, circuit: Iterable[Edge]) -> float:
        """The share of answers that stay when all edges but those of a circuit are cut: its faithfulness."""
        return 1.0 - self.changed(sorted(set(self.wired.edges) - set(circuit)))


def judged(wired: Wiring, spec: object, seed: int = 0, *, words: int = WORDS, searches: int = SEARCHES) -> Judge:
    """A judge whose domain shows of every edge that it matters, where one of some more draws of questions does."""
    net = wired.weights.architecture
    judge = Judge(wired, questions(net, spec, seed, words))
    silent = [edge for edge in wired.composed if judge.changed((edge,)) == 0]
    witnesses: list[Questions] = []
    for draw in range(1, searches + 1):
        if not silent:
            break
        other = Judge(wired, questions(net, spec, seed + 1000 * draw, words))
        for edge in tuple(silent):
            shown = [(part, np.flatnonzero(changed.any(axis=1))[:1]) for part, changed, _ in other.changes((edge,))]
            if any(len(pairs) for _, pairs in shown):
                silent.remove(edge)
                witnesses += [part.only(pairs) for part, pairs in shown if len(pairs)]
    return Judge(wired, joined((*judge.domain, *witnesses))) if witnesses else judge


def true_circuit(judge: Judge) -> Circuit:
    """The circuit, edge by edge."""
    effects = {edge: judge.changed((edge,)) for edge in judge.wired.composed}
    true = tuple(edge for edge, effect in effects.items() if effect > 0)
    return Circuit(true, tuple(effects[edge] for edge in true), judge.kept(true))
