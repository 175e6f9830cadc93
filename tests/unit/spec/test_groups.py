"""Permutation groups: orders, names, derived series and factors, against brute force and SymPy."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy.combinatorics import Permutation as Sympy

from cases import each
from examples import examples
from oracles.sympy_groups import derived_orders, sympy_group
from small_automata import closure, compose, solvable_by_commutators
from vitrify.errors import BuildRefused
from vitrify.spec.automata.groups import Permutation, PermutationGroup, basis, inverse, then

# generators, order, name, derived length (None: not solvable), composition length of the solvable ones
GROUPS: dict[str, tuple[list[Permutation], int, str, int | None, int]] = {
    "trivial": ([(0, 1, 2)], 1, "trivial", 0, 0),
    "swap": ([(1, 0, 2)], 2, "Z2", 1, 1),
    "turn": ([(1, 2, 0)], 3, "Z3", 1, 1),
    "Z4": ([(1, 2, 3, 0)], 4, "Z4", 1, 2),
    "Klein": ([(1, 0, 3, 2), (2, 3, 0, 1)], 4, "Z2×Z2", 1, 2),
    "Z6 on 5 points": ([(1, 0, 3, 4, 2)], 6, "Z6", 1, 2),
    "Z2 × Z4": ([(1, 0, 2, 3, 4, 5), (0, 1, 3, 4, 5, 2)], 8, "Z2×Z4", 1, 3),
    "S3": ([(1, 0, 2), (1, 2, 0)], 6, "S3", 2, 2),
    "D4": ([(1, 2, 3, 0), (3, 2, 1, 0)], 8, "D4", 2, 3),
    "Q8": ([(1, 2, 3, 0, 5, 6, 7, 4), (4, 7, 6, 5, 2, 1, 0, 3)], 8, "order 8", 2, 3),
    "D5": ([(1, 2, 3, 4, 0), (4, 3, 2, 1, 0)], 10, "D5", 2, 2),
    "A4": ([(1, 2, 0, 3), (0, 2, 3, 1)], 12, "A4", 2, 3),
    "D6": ([(1, 2, 3, 4, 5, 0), (5, 4, 3, 2, 1, 0)], 12, "D6", 2, 3),
    "Frobenius 20": ([(1, 2, 3, 4, 0), (0, 2, 4, 1, 3)], 20, "order 20", 2, 3),
    "S4": ([(1, 0, 2, 3), (1, 2, 3, 0)], 24, "S4", 3, 4),
    "S3 wr Z2": ([(1, 0, 2, 3, 4, 5), (1, 2, 0, 3, 4, 5), (3, 4, 5, 0, 1, 2)], 72, "order 72", 3, 5),
    "A5": ([(1, 2, 0, 3, 4), (1, 2, 3, 4, 0)], 60, "A5", None, 0),
    "S5": ([(1, 0, 2, 3, 4), (1, 2, 3, 4, 0)], 120, "S5", None, 0),
    "A5 × Z2": ([(1, 2, 0, 3, 4, 5, 6), (1, 2, 3, 4, 0, 5, 6), (0, 1, 2, 3, 4, 6, 5)], 120, "order 120", None, 0),
    "A6": ([(1, 2, 0, 3, 4, 5), (0, 2, 3, 4, 5, 1)], 360, "A6", None, 0),
}


def group(name: str) -> PermutationGroup:
    generators = GROUPS[name][0]
    return PermutationGroup(len(generators[0]), tuple(generators))


@each("name", GROUPS)
def test_order_name_and_series(name: str) -> None:
    generators, order, called, derived, composition = GROUPS[name]
    found = group(name)
    assert found.order == order == len(closure({found.identity, *generators}))
    assert found.name == called
    assert found.is_solvable == (derived is not None)
    if derived is not None:
        assert found.derived_length == derived
        assert sum(sympy.factorint(found.order).values()) == composition


@each("name", [name for name in GROUPS if GROUPS[name][1] <= 120])
def test_solvability_agrees_with_brute_force(name: str) -> None:
    found = group(name)
    assert found.is_solvable == solvable_by_commutators(set(found.elements), found.identity)
    commutators = {
        compose(compose(inverse(a), inverse(b)), compose(a, b)) for a in found.elements for b in found.elements
    }
    assert set(found.derived.elements) == closure({found.identity, *commutators})


def check_by_sympy(found: PermutationGroup) -> None:
    known = sympy_group(found.degree, found.generators)
    assert found.order == known.order()
    assert found.is_abelian == known.is_abelian
    assert found.is_solvable == known.is_solvable
    assert [part.order for part in found.derived_series] == derived_orders(found.degree, found.generators)
    inside = known.derived_subgroup()
    assert all(inside.contains(Sympy(list(element))) for element in found.derived.elements)


@each("name", GROUPS)
def test_order_and_derived_series_agree_with_sympy(name: str) -> None:
    check_by_sympy(group(name))


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.permutations(range(n)), min_size=1, max_size=3)))
@settings(max_examples=examples(60), deadline=None)
def test_random_groups_agree_with_sympy(generators: list[list[int]]) -> None:
    check_by_sympy(PermutationGroup(len(generators[0]), tuple(map(tuple, generators))))


@each("name", [name for name in GROUPS if GROUPS[name][3] is not None])
def test_factors_are_homomorphisms_onto_cyclic_groups(name: str) -> None:
    found = group(name)
    for factor, whole, part in zip(found.factors, found.derived_series, found.derived_series[1:], strict=False):
        assert prod(factor.orders) * part.order == whole.order
        for a, b in product(whole.elements, repeat=2):
            added = tuple(
                (x + y) % n for x, y, n in zip(factor.exponents[a], factor.exponents[b], factor.orders, strict=True)
            )
            assert factor.exponents[then(a, b)] == added
        kernel = {a for a in whole.elements if not any(factor.exponents[a])}
        assert kernel == set(part.elements)
        for exponents in product(*map(range, factor.orders)):
            assert factor.exponents[factor.element(exponents)] == exponents


def test_a_basis_of_an_abelian_group() -> None:
    """Residues modulo (4, 6), which need no more than two generators."""
    elements = list(product(range(4), range(6)))

    def times(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return (a[0] + b[0]) % 4, (a[1] + b[1]) % 6

    generators, exponents = basis(elements, times)
    assert sorted(order for _, order in generators) == [2, 12]
    for element, powers in exponents.items():
        total = (0, 0)
        for (generator, _), power in zip(generators, powers, strict=True):
            for _ in range(power):
                total = times(total, generator)
        assert total == element


def test_a_group_that_is_too_large_is_refused() -> None:
    with pytest.raises(BuildRefused, match=r"permutations of 9 points has more than 50000 elements.*log-depth"):
        _ = PermutationGroup(9, ((1, 0, *range(2, 9)), (*range(1, 9), 0))).order
