r"""Equivalence of past-time formulas, decided for all words at once.

Finitely many formulas distinguish finitely many pasts: a *node* is a letter together with the truth value of every
temporal operator so far, and the next letter leads to the next node. A formula is then the set of nodes at which it is
true. Two formulas are equivalent iff their sets are equal, and an empty set means a formula that is never true. A new
operator splits the nodes at which it may be true or false. For each set the shortest known formula is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import TypeAlias

import numpy as np

from vitrify.arrays import Bools, Ints
from vitrify.errors import BuildRefused
from vitrify.spec.graphs import reached
from vitrify.spec.logic.ltl import Node

Fact: TypeAlias = int  # index of a set of nodes

MAX_NODES = 4096  # pasts that are distinguished
MAX_SYMBOLS = 20_000  # of a formula
SEARCHED_FACTS = 64  # whose pairs are tried for a shorter formula


class World:
    """All nodes that words over an alphabet reach, and the formulas (facts) about them."""

    def __init__(self, alphabet: tuple[str, ...]) -> None:
        size = len(alphabet)
        self.alphabet = alphabet
        self.start: Ints = np.arange(size)  # the node of each letter at the beginning
        self.step: Ints = np.tile(np.arange(size), (size, 1))  # the next node, by node and letter
        self.sets: list[Bools] = []
        self.nodes: list[Node] = []
        self.sizes: list[int] = []
        self._indices: dict[bytes, Fact] = {}
        self._new_values: Bools = np.zeros(0, dtype=bool)  # of the last split, by node
        self.true = self._fact(np.ones(size, dtype=bool), "true")
        self.false = self._fact(np.zeros(size, dtype=bool), "false")
        self.letters = [self._fact(row, "letter", word=w) for row, w in zip(np.eye(size) > 0, alphabet, strict=True)]

    def possible(self, fact: Fact) -> bool:
        """Return True if a fact is true somewhere in some word."""
        return bool(self.sets[fact].any())

    def negated(self, fact: Fact) -> Fact:
        """Return the negation."""
        return self._fact(~self.sets[fact], "not", fact)

    def both(self, *facts: Fact) -> Fact:
        """Return the conjunction."""
        return reduce(lambda x, y: self._fact(self.sets[x] & self.sets[y], "and", x, y), facts, self.true)

    def either(self, facts: Iterable[Fact]) -> Fact:
        """Return the disjunction."""
        return reduce(lambda x, y: self._fact(self.sets[x] | self.sets[y], "or", x, y), facts, self.false)

    def yesterday(self, fact: Fact) -> Fact:
        """Return the fact that it was true one position before."""
        self._split(np.zeros(len(self.step), dtype=bool), lambda before, _value, _here: self.sets[fact][before])
        return self._fact(self._new_values, "Y", fact)

    def once(self, fact: Fact) -> Fact:
        """Return the fact that it is or was true."""
        held = self.sets[fact]
        self._split(held, lambda _before, value, here: held[here] | value)
        once = self._fact(self._new_values, "O", fact)
        self._fact(~self.sets[once], "H", self.negated(fact))
        return once

    def since(self, left: Fact, right: Fact) -> Fact:
        """Return the fact that the right is or was true, and the left ever since."""
        if left == self.true:
            return self.once(right)
        x, y = self.sets[left], self.sets[right]
        fits = [
            f for f in self._shortest() if not (x & ~y & ~self.sets[f]).any() and not (self.sets[f] & ~x & ~y).any()
        ]
        left = min([left, *fits], key=lambda f: self.sizes[f])
        self._split(y, lambda _before, value, here: y[here] | (x[here] & value))
        return self._fact(self._new_values, "S", left, right)

    def short(self, fact: Fact) -> Fact:
        """Look for a shorter formula of a fact from one or two known facts; return the fact."""
        held = self.sets[fact]
        known = self._shortest()
        known += [self.negated(f) for f in known]
        wanted, bits = _bits(held), [(f, _bits(self.sets[f])) for f in known]
        above = [(f, other) for f, other in bits if wanted & other == wanted]
        below = [(f, other) for f, other in bits if wanted | other == wanted]
        for operator, some in (("and", above), ("or", below)):
            for i, (x, one) in enumerate(some):
                for y, other in some[:i]:
                    combined = one & other if operator == "and" else one | other
                    if combined == wanted and self.sizes[x] + self.sizes[y] + 1 < self.sizes[fact]:
                        self._fact(held, operator, x, y)
        for x in known:
            equal = self._indices.get((~(held ^ self.sets[x])).tobytes())
            if equal is not None and self.true not in (x, equal):
                self._fact(held, "iff", x, equal)
        return fact

    def _shortest(self) -> list[Fact]:
        return sorted(range(len(self.sets)), key=lambda f: self.sizes[f])[:SEARCHED_FACTS]

    def _fact(self, held: Bools, operator: str, *parts: Fact, word: str | None = None) -> Fact:
        """Return the fact of a set; a shorter formula replaces a longer one."""
        size = 1 + sum(self.sizes[part] for part in parts)
        node: Node = (operator, word) if word is not None else (operator, *(self.nodes[part] for part in parts))
        index = self._indices.setdefault(held.tobytes(), len(self.sets))
        if index == len(self.sets):
            if size > MAX_SYMBOLS:
                raise BuildRefused(f"a formula would have more than {MAX_SYMBOLS:,} symbols: take a smaller net")
            self.sets.append(held)
            self.nodes.append(node)
            self.sizes.append(size)
        elif size < self.sizes[index]:
            self.nodes[index], self.sizes[index] = node, size
        return index

    def _split(self, first: Bools, then: Callable[[Ints, Bools, Ints], Bools]) -> None:
        """Add one more truth value; nodes at which it may be both become two.

        `first` is the value at a node that begins a word; `then` computes the value from the node before and its value.
        """

        def follow(pair: tuple[int, bool]) -> list[tuple[int, bool]]:
            here = self.step[pair[0]]
            values = then(np.full(len(here), pair[0]), np.full(len(here), pair[1]), here)
            return list(zip(here.tolist(), values.tolist(), strict=True))

        starts = [(int(n), bool(first[n])) for n in self.start]
        refusal = f"the net distinguishes more than {MAX_NODES:,} pasts: take a smaller net"
        graph = reached(starts, follow, MAX_NODES, refusal)
        number = {pair: index for index, pair in enumerate(graph)}
        start = np.array([number[pair] for pair in starts])
        rows = [[number[pair] for pair in pairs] for pairs in graph.values()]
        origin = np.array([node for node, _ in graph])
        self.start, self.step = start, np.array(rows)
        self.sets = [held[origin] for held in self.sets]
        self._indices = {held.tobytes(): index for index, held in enumerate(self.sets)}
        self._new_values = np.array([value for _, value in graph])


def _bits(held: Bools) -> int:
    """Return a set of nodes as the binary digits of a number, which are quicker to compare."""
    return int.from_bytes(np.packbits(held).tobytes(), "big")
