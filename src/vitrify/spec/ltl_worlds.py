r"""Facts about words: what formulas of past-time logic say, decided for all words at once.

What the past lets formulas tell apart is finite: a *node* is a letter together with what every operator so far says
there, and the next letter leads to the next node. A formula is then the set of nodes at which it is true, so two
formulas say the same iff their sets are equal, and a set without nodes can't happen. A new operator splits the nodes at
which it may be true or false. Of all formulas seen for one set, the shortest is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from vitrify.errors import BuildRefused
from vitrify.spec.ltl import Node

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]
Fact: TypeAlias = int  # the number of a set of nodes

MOST_NODES = 4096
MOST_SYMBOLS = 20_000
SEARCHED = 64  # known facts of which pairs are tried


class World:
    """All nodes that words over an alphabet reach, and the facts about them."""

    def __init__(self, alphabet: tuple[str, ...]) -> None:
        size = len(alphabet)
        self.alphabet = alphabet
        self.start: Ids = np.arange(size)  # the node of each letter at the beginning
        self.step: Ids = np.tile(np.arange(size), (size, 1))  # the next node, by node and letter
        self.sets: list[Flags] = []
        self.nodes: list[Node] = []
        self.sizes: list[int] = []
        self._places: dict[bytes, Fact] = {}
        self._said: Flags = np.zeros(0, dtype=bool)  # what the last split followed
        self.true = self._fact(np.ones(size, dtype=bool), "true")
        self.false = self._fact(np.zeros(size, dtype=bool), "false")
        self.letters = [self._fact(row, "letter", word=w) for row, w in zip(np.eye(size) > 0, alphabet, strict=True)]

    def possible(self, fact: Fact) -> bool:
        """Whether it is true somewhere in some word."""
        return bool(self.sets[fact].any())

    def negated(self, fact: Fact) -> Fact:
        """Not so."""
        return self._fact(~self.sets[fact], "not", fact)

    def both(self, *facts: Fact) -> Fact:
        """All of them."""
        return reduce(lambda x, y: self._fact(self.sets[x] & self.sets[y], "and", x, y), facts, self.true)

    def either(self, facts: Iterable[Fact]) -> Fact:
        """Some of them."""
        return reduce(lambda x, y: self._fact(self.sets[x] | self.sets[y], "or", x, y), facts, self.false)

    def yesterday(self, fact: Fact) -> Fact:
        """It was so one position before."""
        self._split(np.zeros(len(self.step), dtype=bool), lambda before, _said, _here: self.sets[fact][before])
        return self._fact(self._said, "Y", fact)

    def once(self, fact: Fact) -> Fact:
        """It is or was so."""
        held = self.sets[fact]
        self._split(held, lambda _before, said, here: held[here] | said)
        found = self._fact(self._said, "O", fact)
        self._fact(~self.sets[found], "H", self.negated(fact))
        return found

    def since(self, left: Fact, right: Fact) -> Fact:
        """The right is or was so, and ever since then the left."""
        if left == self.true:
            return self.once(right)
        x, y = self.sets[left], self.sets[right]
        fits = [
            f for f in self._shortest() if not (x & ~y & ~self.sets[f]).any() and not (self.sets[f] & ~x & ~y).any()
        ]
        left = min([left, *fits], key=lambda f: self.sizes[f])
        self._split(y, lambda _before, said, here: y[here] | (x[here] & said))
        return self._fact(self._said, "S", left, right)

    def short(self, fact: Fact) -> Fact:
        """The same, written as one known fact or as two of them if that is shorter."""
        wanted = self.sets[fact]
        known = self._shortest()
        known += [self.negated(f) for f in known]
        above = [f for f in known if not (wanted & ~self.sets[f]).any()]
        below = [f for f in known if not (self.sets[f] & ~wanted).any()]
        for operator, some in (("and", above), ("or", below)):
            for i, x in enumerate(some):
                for y in some[:i]:
                    made = self.sets[x] & self.sets[y] if operator == "and" else self.sets[x] | self.sets[y]
                    if self.sizes[x] + self.sizes[y] + 1 < self.sizes[fact] and (made == wanted).all():
                        self._fact(made, operator, x, y)
        for x in known:
            other = self._places.get((~(wanted ^ self.sets[x])).tobytes())
            if other is not None and self.true not in (x, other):
                self._fact(wanted, "iff", x, other)
        return fact

    def _shortest(self) -> list[Fact]:
        return sorted(range(len(self.sets)), key=lambda f: self.sizes[f])[:SEARCHED]

    def _fact(self, held: Flags, operator: str, *parts: Fact, word: str | None = None) -> Fact:
        """The fact of a set; a shorter way to write it replaces a longer one."""
        size = 1 + sum(self.sizes[part] for part in parts)
        node: Node = (operator, word) if word is not None else (operator, *(self.nodes[part] for part in parts))
        place = self._places.setdefault(held.tobytes(), len(self.sets))
        if place == len(self.sets):
            if size > MOST_SYMBOLS:
                raise BuildRefused(f"a formula would have more than {MOST_SYMBOLS:,} symbols: take a smaller net")
            self.sets.append(held)
            self.nodes.append(node)
            self.sizes.append(size)
        elif size < self.sizes[place]:
            self.nodes[place], self.sizes[place] = node, size
        return place

    def _split(self, first: Flags, then: Callable[[Ids, Flags, Ids], Flags]) -> None:
        """Follow one more truth value; nodes at which it may be both become two.

        `first` is the value at a node that begins a word, `then` the value that follows the node before and its value.
        """
        letters = range(len(self.alphabet))
        pairs = {(int(n), bool(first[n])): i for i, n in enumerate(self.start)}
        start = np.array([pairs[int(n), bool(first[n])] for n in self.start])
        reached, rows = list(pairs), []
        for node, said in reached:  # grows while it is walked
            here = self.step[node]
            values = then(np.full(len(here), node), np.full(len(here), said), here)
            row = []
            for letter in letters:
                pair = (int(here[letter]), bool(values[letter]))
                if pair not in pairs:
                    pairs[pair] = len(reached)
                    reached.append(pair)
                row.append(pairs[pair])
            rows.append(row)
            if len(reached) > MOST_NODES:
                raise BuildRefused(f"the net tells more than {MOST_NODES:,} pasts apart: take a smaller net")
        origin = np.array([node for node, _ in reached])
        self.start, self.step = start, np.array(rows)
        self.sets = [held[origin] for held in self.sets]
        self._places = {held.tobytes(): place for place, held in enumerate(self.sets)}
        self._said = np.array([said for _, said in reached])
