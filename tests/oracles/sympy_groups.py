"""Groups by SymPy's Schreier–Sims algorithm, which knows nothing of ours: orders, derived series, solvability."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy.combinatorics import Permutation as SympyPermutation
from sympy.combinatorics import PermutationGroup

from small_automata import closure, compose
from vitrify.spec.automata.automaton import Automaton

Permutation = tuple[int, ...]


def sympy_group(degree: int, generators: Iterable[Permutation]) -> Any:
    """The group that permutations of so many points generate."""
    listed = [SympyPermutation(list(images)) for images in generators]
    return PermutationGroup(listed or [SympyPermutation(list(range(degree)))])


def derived_orders(degree: int, generators: Iterable[Permutation]) -> list[int]:
    """The orders of the groups of the derived series, down to the first that is its own derived group."""
    return [int(group.order()) for group in sympy_group(degree, generators).derived_series()]


def groups_inside(automaton: Automaton) -> list[Any]:
    """The maximal groups inside the transition monoid: the units around its idempotents, one for each image."""
    machine = automaton.reachable()
    monoid = closure({tuple(range(len(machine.states))), *machine.maps().values()})
    found: dict[frozenset[int], Any] = {}
    for e in sorted(monoid):
        image = sorted(set(e))
        if compose(e, e) != e or frozenset(image) in found:
            continue
        units = [m for m in monoid if compose(compose(e, m), e) == m and set(m) == set(e)]
        moved = {tuple(image.index(m[point]) for point in image) for m in units}
        found[frozenset(image)] = sympy_group(len(image), moved)
    return list(found.values())
