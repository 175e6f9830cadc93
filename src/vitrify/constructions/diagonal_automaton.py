r"""Automata that are made of bits run on a diagonal linear recurrence with the eigenvalues 1, −1 and 0.

In the spirit of Sarrof, Veitsman & Hahn (2024, arXiv 2405.17394) and Grazzi et al. (2024, arXiv 2411.12537), who show
that diagonal state space models with positive eigenvalues can't do PARITY and those with the eigenvalue −1 can. A *bit*
is a division of the states in two sides, $\pm 1$, that every letter keeps (scale 1), flips (scale −1) or sets (scale 0
and the side driven in). Where some bits together tell all states apart, they are the state of the recurrence, and the
logit of a state is the product with its own row of sides: $b$ for the right one and at most $b - 2$ for any other.

| | formula |
| --- | --- |
| state | the number of bits $b$, $\lceil\log_2 n\rceil \le b \le n - 1$ (1 for one state) |
| eigenvalues | −1 wherever a letter flips, so parity takes one number |

Other automata are refused. All numbers are whole: nothing is rounded at any length.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.constructions.recurrent_automaton import LENGTH, recurrent_net
from vitrify.errors import BuildRefused
from vitrify.net.cells import Cell
from vitrify.net.recurrent import Recurrent
from vitrify.net.spaces import Integers
from vitrify.net.weights import Weights
from vitrify.spec.automaton import Automaton

Effect = tuple[int, int]  # a letter multiplies a side by the first number and adds the second
EFFECTS: tuple[Effect, ...] = ((1, 0), (-1, 0), (0, 1), (0, -1))
TRIED = 100_000  # choices of effects


def diagonal(automaton: Automaton, *, max_length: int = LENGTH) -> Weights[Recurrent]:
    """A diagonal recurrence of bits, each of which every letter keeps, flips or sets."""
    machine = automaton.reachable()
    found = _telling(machine)
    sides = np.array([bit for bit, _ in found], dtype=float).T
    effects = np.array([[(0, 0), *effect] for _, effect in found], dtype=float)  # [bit, input, scale and set]
    effects[:, 0, 1] = sides[machine.initial]
    arrays = {
        "blocks.0.rec.W_A": effects[:, :, 0].T,
        "blocks.0.rec.W_B": effects[:, :, 1].T,
        "unembed.W_U": sides.T,
    }
    bits = Integers(tuple(f"bit {number}" for number in range(len(found))), -1.0, 1.0)
    cell, source = Cell("diagonal", len(found)), "Sarrof 2024, arXiv 2405.17394, and Grazzi 2024, arXiv 2411.12537"
    return recurrent_net(machine, cell, arrays, [("sides", bits)], max_length, "diagonal", source)


def bits_of(machine: Automaton) -> Iterator[tuple[tuple[int, ...], tuple[Effect, ...]]]:
    """All bits of a machine whose states can be reached, by sides of the states and effects of the letters.

    The initial state is on side 1. Effects are chosen letter by letter, and given up as soon as some state would have
    to be on both sides.
    """
    waiting: list[tuple[Effect, ...]] = [()]
    for _ in range(TRIED):
        if not waiting:
            return
        chosen = waiting.pop()
        sides = _sides(machine, chosen)
        if sides is not None and len(chosen) == len(machine.alphabet):
            yield tuple(sides[state] for state in range(len(machine.states))), chosen
        elif sides is not None:
            waiting += [(*chosen, effect) for effect in reversed(EFFECTS)]
    raise BuildRefused(
        f"no bits were found in {TRIED} tries: build this automaton with --shape linear-recurrence or elman"
    )


def _sides(machine: Automaton, effects: tuple[Effect, ...]) -> dict[int, int] | None:
    """The sides of the states that the first letters reach, or None if one is on both."""
    sides, order = {machine.initial: 1}, [machine.initial]
    for state in order:
        for (scale, put), target in zip(effects, machine.transitions[state], strict=False):
            side = scale * sides[state] + put
            if sides.setdefault(target, side) != side:
                return None
            if target not in order:
                order.append(target)
    return sides


def _telling(machine: Automaton) -> list[tuple[tuple[int, ...], tuple[Effect, ...]]]:
    """Bits that tell all states apart, each one more than those before it."""
    kept: list[tuple[tuple[int, ...], tuple[Effect, ...]]] = []
    groups = [0] * len(machine.states)
    for sides, effects in bits_of(machine):
        finer = [2 * group + (side > 0) for group, side in zip(groups, sides, strict=True)]
        if len(set(finer)) > len(set(groups)) or len(groups) == 1:
            kept.append((sides, effects))
            groups = [sorted(set(finer)).index(group) for group in finer]
        if len(set(groups)) == len(groups) and kept:
            return kept
    same = next((p, q) for p in range(len(groups)) for q in range(len(groups)) if p < q and groups[p] == groups[q])
    one, two = (machine.states[state] for state in same)
    raise BuildRefused(
        "a diagonal recurrence is built from bits that every letter keeps, flips or sets, but no such bit tells the "
        f"states {one!r} and {two!r} apart: build this automaton with --shape linear-recurrence or elman"
    )


def _make(spec: object, settings: Settings) -> Weights[Recurrent]:
    assert isinstance(spec, Automaton)
    return diagonal(spec, max_length=settings.max_length or LENGTH)


CONSTRUCTIONS = (
    Construction(
        "diagonal",
        Automaton,
        "bits that letters keep, flip or set, in a diagonal linear recurrence",
        _make,
        choices=("max_length",),
    ),
)
