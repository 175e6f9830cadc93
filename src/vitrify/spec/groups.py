r"""Small permutation groups, element by element: order, derived series, abelian factors, and the names people use.

A permutation is the tuple of the images of $0, 1, \dots$; products are read from left to right, first factor first, as
words are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import TypeVar

from vitrify.errors import BuildRefused

Permutation = tuple[int, ...]
"""The images of the points 0, 1, …"""

E = TypeVar("E", bound=Hashable)
MOST_ELEMENTS = 50_000


def then(first: Permutation, second: Permutation) -> Permutation:
    """First one, then the other."""
    return tuple(second[point] for point in first)


def inverse(permutation: Permutation) -> Permutation:
    """What undoes a permutation."""
    back = [0] * len(permutation)
    for point, image in enumerate(permutation):
        back[image] = point
    return tuple(back)


def cycles(permutation: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The cycles of a permutation, each from its least point on, fixed points among them.

    >>> cycles((1, 0, 2))
    ((0, 1), (2,))
    """
    found: list[tuple[int, ...]] = []
    seen: set[int] = set()
    for start in range(len(permutation)):
        cycle, point = [], start
        while point not in seen:
            seen.add(point)
            cycle.append(point)
            point = permutation[point]
        found += [tuple(cycle)] if cycle else []
    return tuple(found)


@dataclass(frozen=True)
class Group:
    """The group that some permutations of one set of points generate.

    >>> Group(3, ((1, 0, 2), (1, 2, 0))).name
    'S3'
    """

    degree: int
    generators: tuple[Permutation, ...]

    @property
    def identity(self) -> Permutation:
        return tuple(range(self.degree))

    @cached_property
    def elements(self) -> tuple[Permutation, ...]:
        """All elements in order of discovery, the identity first."""
        found = {self.identity: None}
        queue = [self.identity]
        for element in queue:  # grows while it is walked
            for generator in self.generators:
                after = then(element, generator)
                if after not in found:
                    found[after] = None
                    queue.append(after)
            if len(queue) > MOST_ELEMENTS:
                raise BuildRefused(
                    f"a group of permutations of {self.degree} points has more than {MOST_ELEMENTS} elements, too many "
                    "to list: use --shape log-depth, which needs no decomposition"
                )
        return tuple(found)

    @property
    def order(self) -> int:
        return len(self.elements)

    @property
    def is_abelian(self) -> bool:
        return all(then(a, b) == then(b, a) for a in self.generators for b in self.generators)

    @cached_property
    def derived(self) -> Group:
        """The subgroup of all products of commutators: the smallest normal one that has those of the generators."""
        generators = {
            then(then(inverse(a), inverse(b)), then(a, b)): None for a in self.generators for b in self.generators
        }
        while True:
            found = Group(self.degree, tuple(g for g in generators if g != self.identity))
            inside = set(found.elements)
            moved = [then(then(inverse(a), g), a) for g in generators for a in self.generators]
            fresh = [g for g in moved if g not in inside]
            if not fresh:
                return found
            generators |= dict.fromkeys(fresh)

    @cached_property
    def derived_series(self) -> tuple[Group, ...]:
        """The group, its derived subgroup, that one's, … down to the first that is its own."""
        series = [self]
        while series[-1].derived.order < series[-1].order:
            series.append(series[-1].derived)
        return tuple(series)

    @property
    def is_solvable(self) -> bool:
        """Whether the derived series ends in the trivial group."""
        return self.derived_series[-1].order == 1

    @property
    def derived_length(self) -> int:
        """How many abelian factors the derived series has."""
        return len(self.derived_series) - 1

    @property
    def composition_length(self) -> int:
        """How many cyclic factors of prime order a solvable group is made of: the prime factors of its order."""
        left, found, prime = self.order, 0, 2
        while left > 1:
            while left % prime == 0:
                left, found = left // prime, found + 1
            prime += 1
        return found

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """The abelian factors of the derived series of a solvable group, from the top."""
        return tuple(Factor.of(*pair) for pair in zip(self.derived_series, self.derived_series[1:], strict=False))

    @cached_property
    def name(self) -> str:
        """The usual name of a small group, or its order.

        >>> Group(4, ((1, 2, 3, 0), (3, 2, 1, 0))).name, Group(4, ((1, 0, 3, 2), (2, 3, 0, 1))).name
        ('D4', 'Z2×Z2')
        """
        if self.order == 1:
            return "trivial"
        if self.is_abelian:
            (factor,) = self.factors
            return "×".join(f"Z{n}" for n in sorted(factor.orders))
        return _symmetric(self) or _dihedral(self) or f"order {self.order}"


def _symmetric(group: Group) -> str | None:
    """Sn or An, for n of 3 to 8, told by how many elements of each order there are."""
    for n in range(3, 9):
        for letter, size in (("S", factorial(n)), ("A", factorial(n) // 2)):
            if group.order == size > 3:
                swaps = Group(n, ((1, 0, *range(2, n)), (*range(1, n), 0)))
                model = swaps if letter == "S" else swaps.derived
                if _orders(model) == _orders(group):
                    return f"{letter}{n}"
    return None


def _dihedral(group: Group) -> str | None:
    r"""Dn, the symmetries of a polygon: a cyclic half, and outside a $g$ with $gxg = x^{-1}$ for its generator."""
    n = group.order // 2
    for turn in group.elements:
        powers = _powers(turn, then, group.identity)
        if 2 * len(powers) == group.order and n > 2:
            inside = set(powers)
            flip = next(g for g in group.elements if g not in inside)
            return f"D{n}" if then(then(flip, turn), flip) == inverse(turn) else None
    return None


def _orders(group: Group) -> dict[int, int]:
    """How many elements have each order."""
    found: dict[int, int] = {}
    for element in group.elements:
        order = len(_powers(element, then, group.identity))
        found[order] = found.get(order, 0) + 1
    return found


@dataclass(frozen=True, eq=False)
class Factor:
    r"""An abelian factor $G/N$ of a group: a product of cyclic groups.

    `orders` are theirs, `lifts` are elements of $G$ above their generators, and `exponents` tells for every element
    of $G$ which powers of the lifts it agrees with up to $N$.
    """

    orders: tuple[int, ...]
    lifts: tuple[Permutation, ...]
    exponents: dict[Permutation, tuple[int, ...]]

    @classmethod
    def of(cls, group: Group, normal: Group) -> Factor:
        """The factor of a group by a normal subgroup that has all its commutators."""
        coset: dict[Permutation, Permutation] = {}
        for element in group.elements:
            if element not in coset:
                coset |= dict.fromkeys((then(n, element) for n in normal.elements), element)
        heads = tuple(dict.fromkeys(coset.values()))
        generators, exponents = basis(heads, lambda a, b: coset[then(a, b)])
        return cls(
            tuple(order for _, order in generators),
            tuple(lift for lift, _ in generators),
            {element: exponents[head] for element, head in coset.items()},
        )

    def element(self, exponents: Iterable[int]) -> Permutation:
        """The product of these powers of the lifts."""
        made: Permutation | None = None
        for lift, exponent in zip(self.lifts, exponents, strict=True):
            for _ in range(exponent):
                made = lift if made is None else then(made, lift)
        return tuple(range(len(self.lifts[0]))) if made is None else made


def basis(elements: Sequence[E], times: Callable[[E, E], E]) -> tuple[list[tuple[E, int]], dict[E, tuple[int, ...]]]:
    """Generators of an abelian group, with orders whose product is the group's, and every element's exponents.

    The first of the `elements` is the identity. Take an element of the largest order, then again and again one of the
    largest order among those whose powers meet the subgroup so far only in the identity: in a finite abelian group
    this ends in a basis.
    """
    found: list[tuple[E, int]] = []
    span: dict[E, tuple[int, ...]] = {elements[0]: ()}
    while len(span) < len(elements):
        best: list[E] = []
        for element in elements:
            powers = _powers(element, times, elements[0])
            if len(powers) > len(best) and not any(power in span for power in powers[1:]):
                best = powers
        found.append((best[1], len(best)))
        span = {times(h, power): (*e, k) for h, e in span.items() for k, power in enumerate(best)}
    return found, span


def _powers(element: E, times: Callable[[E, E], E], identity: E) -> list[E]:
    powers, power = [identity], element
    while power != identity:
        powers.append(power)
        power = times(power, element)
    return powers
