r"""A corridor with walls runs on two attention layers, however long the corridor is.

In the spirit of Liu et al. (2023, arXiv 2210.10749), theorem 3, by a rule of our own. Let $s_t$ be the sum of the
moves, as if there were no walls, and $\tau(k)$ the last time before $t$ at which the sum was $s_t + k$. Walking back
from $t$, the sums fill a growing interval; when it spans all $S$ cells, its ends are the walls. So the cell is
$\arg\max_a \min(\tau(-a), \tau(S-1-a))$: the only $a$ for which both walls have been touched latest. The beginning is
as if $S - 1$ moves to the first wall and $q_0$ moves back had come before the word.

- Layer 1 counts $s_t$; an MLP writes the codes of $s_t + k$ and the imagined times, which are functions of $s_t$.
- Layer 2 has one head for each $k = \pm 1 \dots \pm(S-1)$, which finds the last position of code $s_t + k$. An MLP
  takes the $S$ minima, and the unembedding compares them.

| | formula |
| --- | --- |
| layers, heads | 2; $1 + (2S - 2)$ |
| units | $4T$ where letters move both ways, $2T$ where they move one way; then $2S$ |
| width | $(2S-1)B + 5S + 1$, one less under hard attention; $B$ bits for all sums |
"""

from __future__ import annotations

import numpy as np

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.constructions.log_depth import begin_symbol
from vitrify.errors import BuildRefused
from vitrify.kit.gadgets import minimum, steps
from vitrify.kit.heads import count, recent_match
from vitrify.kit.network import Affine, Builder, Network, Readout, Space
from vitrify.net.architecture import Output
from vitrify.net.spaces import Bits, Integers
from vitrify.net.transformer import AttentionKind
from vitrify.spec.automata import corridor
from vitrify.spec.automaton import Automaton


def gridworld(automaton: Automaton, *, attention: AttentionKind = "softmax", max_length: int = 128) -> Network:
    """A transformer of two attention layers whose output after every letter is the cell."""
    if max_length < 1:
        raise BuildRefused(f"--max-length must be at least 1, got {max_length}")
    machine = automaton.reachable()
    found = corridor(machine)
    if found is None:
        raise BuildRefused(
            "a gridworld is a corridor of two cells or more in which every letter moves one cell up or down and stops "
            "at the wall, or stays; this automaton is none: build it with --shape cascade or log-depth"
        )
    cells, moves = found
    size, start = len(cells), cells.index(machine.initial)
    net = Builder(
        name=f"gridworld of {size} cells, {attention}",
        inputs=(begin_symbol(automaton), *automaton.alphabet),
        max_length=max_length,
        attention=attention,
        pads=max_length if attention == "hard" else 1,
    )
    lowest, highest = max_length * min(0, *moves), max_length * max(0, *moves)
    step = net.embed("step", Integers(("s",), -1.0, 1.0), np.array([0, *moves], dtype=float)[:, None])
    total = count(net, Affine.copy(step), ("s",), float(highest), low=float(lowest), name="sum of moves")
    offsets = [k for k in range(1 - size, size) if k]
    sums = np.arange(lowest, highest + 1)
    kind = Bits(tuple(map(str, range(lowest - size + 1, highest + size))))
    here, *codes = (Space(f"code of s{k:+d}" if k else "code of s", kind) for k in (0, *offsets))
    imagined = Space("imagined times", Integers(tuple(f"{k:+d}" for k in offsets), -float(start + size), 0.0))
    outputs = [
        (space, kind.codes[sums + k - lowest + size - 1])
        for k, space in zip((0, *offsets), (here, *codes), strict=True)
    ]
    outputs.append((imagined, np.array([[imagined_time(s + k, size, start) for k in offsets] for s in sums.tolist()])))
    steps(net, total, sums.astype(float), outputs, name="codes of sums")
    key = Affine.of({here: np.eye(kind.size), net.bos: -kind.codes[[-lowest + size - 1]]})  # void at BOS
    times = {
        k: recent_match(net, code, key, net.index, name=f"last time at s{k:+d}")
        for k, code in zip(offsets, codes, strict=True)
    }
    lower, upper = [
        _times(net, times, imagined, [shift - a for a in range(size)], start + size + 1) for shift in (0, size - 1)
    ]
    labels = tuple(machine.states[cell] for cell in cells)
    both = Space("both walls touched", Integers(labels, -float(start + size), float((start + size + 1) * max_length)))
    minimum(net, lower, upper, both)
    return net.network(
        Output("recogniser", machine.states, accepting=machine.accepting_states),
        Readout(((both, np.eye(size)[list(cells)]),), np.zeros(size), {both: 0.25}),
        {
            "construction": "gridworld",
            "attention": attention,
            "cells": " ".join(labels),
            "source": "in the spirit of Liu et al. 2023, arXiv 2210.10749",
        },
        reuse=False,
    )


def imagined_time(total: int, size: int, start: int) -> int:
    """The last time, up to 0, of a sum before the word, if the first wall, then the other, had been touched."""
    if -start <= total <= 0:
        return total
    if 0 < total < size - start:
        return -2 * start - total
    return -(start + size)  # never


def _times(net: Builder, times: dict[int, Space], imagined: Space, offsets: list[int], scale: float) -> Affine:
    """The last time of each offset: real ones count more than any imagined one, so the order is that of times."""
    places = {k: place for place, k in enumerate(times)}
    parts = {net.index: np.zeros((1, len(offsets)))} | {imagined: np.zeros((imagined.size, len(offsets)))}
    for column, k in enumerate(offsets):
        if k == 0:
            parts[net.index][0, column] = scale
        else:
            parts[times[k]] = scale * np.eye(len(offsets))[[column]]
            parts[imagined][places[k], column] = 1.0
    return Affine.of(parts)


def sizes(cells: int, max_length: int) -> dict[str, int]:
    """What the formulas promise where letters move both ways."""
    return {"layers": 2, "attention_layers": 2, "heads": 2 * cells - 1, "units": 4 * max_length + 2 * cells}


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, Automaton)
    return gridworld(spec, attention=settings.attention, max_length=settings.max_length or 128)


CONSTRUCTIONS = (
    Construction(
        "gridworld", Automaton, "corridors with walls, in two attention layers", _make, unproved="may lead by nothing"
    ),
)
