r"""The cell in a corridor with walls is computed by two attention layers, however long the corridor is.

In the spirit of Liu et al. (2023, arXiv 2210.10749), theorem 3, by a rule of our own. The corridor has $S$ cells, words
have at most $T$ letters. Let $s_t$ be the sum of the moves, as if there were no walls, and $\tau(k)$ the last time up
to $t$ at which the sum was $s_t + k$. Going back from $t$, the sums fill a growing interval. When it has $S$ values,
they are the $S$ cells, and its ends are the walls. So the cell is $\arg\max_a \min(\tau(-a), \tau(S-1-a))$: the $a$ for
which both ends were reached most recently. Before the word we imagine $S - 1$ moves from the last cell
to cell 0, then $q_0$ moves to the initial cell $q_0$.

- Layer 1 counts $s_t$; an MLP writes the codes of $s_t + k$ and the imagined times, which are functions of $s_t$.
- Layer 2 has one head for each $k = \pm 1 \dots \pm(S-1)$, which finds the last position of code $s_t + k$. An MLP
  takes the $S$ minima, and the unembedding compares them.

| | formula |
| --- | --- |
| layers, heads | 2; $1 + (2S - 2)$ |
| units | layer 1: $4T$ if letters move both ways, $2T$ if one way; layer 2: $2S$ |
| width | $(2S-1)B + 5S + 1$, one less under hard attention; $B$ bits for all sums |
"""

from __future__ import annotations

import numpy as np

from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.constructions.log_depth import begin_symbol
from vitrify.kit.gadgets.extremes import minimum
from vitrify.kit.gadgets.steps import steps
from vitrify.kit.heads.average import count
from vitrify.kit.heads.match import recent_match
from vitrify.kit.network import Affine, AttentionKind, Bits, Builder, Integers, Network, Output, Readout, Space
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import corridor


def sizes(automaton: Automaton, *, max_length: int, attention: AttentionKind) -> DeclaredSizes:
    """Return all sizes: `sums` is $T$ for each direction in which some letter moves."""
    cells, moves = _corridor(automaton.reachable())
    size, sums = len(cells), max_length * (max(0, *moves) - min(0, *moves))
    bits = max(2, (sums + 2 * size - 2).bit_length())
    width = (2 * size - 1) * bits + 5 * size + (attention != "hard")
    return DeclaredSizes.of_layers((1, 2 * size - 2), (2 * sums, 2 * size), width)


@construction("gridworld", "corridors with walls, in two attention layers", sizes, unproved="may have no margin")
def gridworld(automaton: Automaton, *, attention: Attention = "softmax", max_length: MaxLength = 128) -> Network:
    """Return a transformer of two attention layers whose output after every letter is the cell."""
    machine = automaton.reachable()
    cells, moves = _corridor(machine)
    size, start = len(cells), cells.index(machine.initial)
    name = f"gridworld of {size} cells, {attention}"
    net = Builder(
        name,
        (begin_symbol(automaton), *automaton.alphabet),
        max_length,
        attention,
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
    key = Affine.of({here: np.eye(kind.size), net.bos: -kind.codes[[-lowest + size - 1]]})  # zero key at BOS
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
    output = Output("recognizer", machine.states, accepting=machine.accepting_states)
    readout = Readout(((both, np.eye(size)[list(cells)]),), np.zeros(size), {both: 0.25})
    source = "in the spirit of Liu et al. 2023, arXiv 2210.10749"
    return net.network(output, readout, "gridworld", {"cells": " ".join(labels)}, source=source, reuse=False)


def _corridor(machine: Automaton) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the cells in order and the moves of the letters; refuse an automaton that is no corridor."""
    cells_and_moves = corridor(machine)
    if cells_and_moves is None:
        raise BuildRefused(
            "a gridworld is a corridor of two cells or more in which every letter moves one cell up or down and stops "
            "at the wall, or stays; this automaton is not one: build it with --construction cascade or log-depth"
        )
    return cells_and_moves


def imagined_time(total: int, size: int, start: int) -> int:
    """Return the last time, up to 0, at which the imagined word before the word has a sum."""
    if -start <= total <= 0:
        return total
    if 0 < total < size - start:
        return -2 * start - total
    return -(start + size)  # never


def _times(net: Builder, times: dict[int, Space], imagined: Space, offsets: list[int], scale: float) -> Affine:
    """Return the last time of each offset; real times are scaled above all imagined ones, which keeps the order."""
    indices = {k: index for index, k in enumerate(times)}
    parts = {net.index: np.zeros((1, len(offsets)))} | {imagined: np.zeros((imagined.size, len(offsets)))}
    for column, k in enumerate(offsets):
        if k == 0:
            parts[net.index][0, column] = scale
        else:
            parts[times[k]] = scale * np.eye(len(offsets))[[column]]
            parts[imagined][indices[k], column] = 1.0
    return Affine.of(parts)
