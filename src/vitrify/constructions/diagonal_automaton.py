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

from vitrify.constructions.catalogue import BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.constructions.recurrent_automaton import recurrent_net
from vitrify.net.cells import Cell
from vitrify.net.recurrent import Recurrent
from vitrify.net.spaces import Integers
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton

Effect = tuple[int, int]  # a letter multiplies a side by the first number and adds the second
EFFECTS: tuple[Effect, ...] = ((1, 0), (-1, 0), (0, 1), (0, -1))
MAX_TRIES = 100_000  # partial choices of effects


def sizes(automaton: Automaton) -> DeclaredSizes:
    """Return a bound of the state, and all else exactly: every bit tells some of the n states apart."""
    states = len(automaton.reachable().states)
    return DeclaredSizes({"layers": 1, "heads": 0, "units": 0}, at_most={"d_model": max(1, states - 1)})


@construction(
    "diagonal",
    "bits that letters keep, flip or set, in a diagonal linear recurrence",
    sizes,
    certified=("every length", "every length"),
)
def diagonal(automaton: Automaton, *, max_length: MaxLength = 128) -> Weights[Recurrent]:
    """Return a diagonal recurrence of bits, each of which every letter keeps, flips or sets."""
    machine = automaton.reachable()
    bits_and_effects = _separating_bits(machine)
    sides = np.array([bit for bit, _ in bits_and_effects], dtype=float).T
    # [bit, input, scale and set]
    effects = np.array([[(0, 0), *effect] for _, effect in bits_and_effects], dtype=float)
    effects[:, 0, 1] = sides[machine.initial]
    arrays = {"blocks.0.rec.W_A": effects[:, :, 0].T, "blocks.0.rec.W_B": effects[:, :, 1].T, "unembed.W_U": sides.T}
    bits = Integers(tuple(f"bit {number}" for number in range(len(bits_and_effects))), -1.0, 1.0)
    cell = Cell("diagonal", len(bits_and_effects))
    source = "Sarrof 2024, arXiv 2405.17394, and Grazzi 2024, arXiv 2411.12537"
    return recurrent_net(machine, cell, arrays, [("sides", bits)], max_length, "diagonal", source)


def bits_of(machine: Automaton) -> Iterator[tuple[tuple[int, ...], tuple[Effect, ...]]]:
    """Yield all bits of a machine, as the sides of its states and the effects of its letters.

    All states must be reachable. The initial state is on side 1. Effects are chosen letter by letter; a choice is
    abandoned as soon as some state would have to be on both sides.
    """
    waiting: list[tuple[Effect, ...]] = [()]
    for _ in range(MAX_TRIES):
        if not waiting:
            return
        chosen = waiting.pop()
        sides = _sides(machine, chosen)
        if sides is not None and len(chosen) == len(machine.alphabet):
            yield tuple(sides[state] for state in range(len(machine.states))), chosen
        elif sides is not None:
            waiting += [(*chosen, effect) for effect in reversed(EFFECTS)]
    raise BuildRefused(
        f"no bits were found in {MAX_TRIES} tries: build this automaton with --construction linear-recurrence or elman"
    )


def _sides(machine: Automaton, effects: tuple[Effect, ...]) -> dict[int, int] | None:
    """Return the sides of the states that the first letters reach, or None if one is on both."""
    sides, order = {machine.initial: 1}, [machine.initial]
    for state in order:
        for (scale, put), target in zip(effects, machine.transitions[state], strict=False):
            side = scale * sides[state] + put
            if sides.setdefault(target, side) != side:
                return None
            if target not in order:
                order.append(target)
    return sides


def _separating_bits(machine: Automaton) -> list[tuple[tuple[int, ...], tuple[Effect, ...]]]:
    """Return bits that together distinguish all states, each splitting what those before it did not."""
    bits: list[tuple[tuple[int, ...], tuple[Effect, ...]]] = []
    groups = [0] * len(machine.states)
    for sides, effects in bits_of(machine):
        finer = [2 * group + (side > 0) for group, side in zip(groups, sides, strict=True)]
        if len(set(finer)) > len(set(groups)) or len(groups) == 1:
            bits.append((sides, effects))
            groups = [sorted(set(finer)).index(group) for group in finer]
        if len(set(groups)) == len(groups) and bits:
            return bits
    same = next((p, q) for p in range(len(groups)) for q in range(len(groups)) if p < q and groups[p] == groups[q])
    one, two = (machine.states[state] for state in same)
    raise BuildRefused(
        "a diagonal recurrence is built from bits that every letter keeps, flips or sets, but no such bit tells the "
        f"states {one!r} and {two!r} apart: build this automaton with --construction linear-recurrence or elman"
    )
