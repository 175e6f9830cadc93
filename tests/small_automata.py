"""Small automata for tests, and facts about automata and groups found by brute force, without vitrify's algebra."""

from __future__ import annotations

from functools import cache
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from built import random_words
from vitrify.spec.automata.automaton import Automaton

Permutation = tuple[int, ...]


def full_transformations(n: int) -> Automaton:
    """All maps of n points: a cycle, a swap, and a letter that merges two points."""
    merge = [0 if q == 1 else q for q in range(n)]
    swap = [1, 0, *range(2, n)]
    table = tuple(((q + 1) % n, swap[q], merge[q]) for q in range(n))
    return Automaton(tuple(map(str, range(n))), ("cycle", "swap", "merge"), table, 0, frozenset({0}))


def corridors(n: int, start: int, moves: tuple[int, ...], names: list[int]) -> Automaton:
    """A corridor of n cells under other names, with letters that make these moves."""
    table = [[0] * len(moves) for _ in range(n)]
    for cell in range(n):
        for letter, move in enumerate(moves):
            table[names[cell]][letter] = names[min(max(cell + move, 0), n - 1)]
    letters = tuple("abcd"[: len(moves)])
    return Automaton(tuple(f"q{q}" for q in range(n)), letters, tuple(map(tuple, table)), names[start], frozenset({0}))


@cache
def minimal_automata(n: int) -> tuple[Automaton, ...]:
    """Every minimal automaton with n states over two letters, up to names."""
    found = []
    for flat in product(range(n), repeat=2 * n):
        table = tuple(zip(flat[::2], flat[1::2], strict=True))
        if _breadth_first(table) != list(range(n)):
            continue
        for bits in product((False, True), repeat=n):
            if _distinguished(table, bits):
                accepting = frozenset(q for q in range(n) if bits[q])
                found.append(Automaton(tuple(map(str, range(n))), ("a", "b"), table, 0, accepting))
    return tuple(found)


def _breadth_first(table: tuple[tuple[int, ...], ...], start: int = 0) -> list[int]:
    order = [start]
    for state in order:
        order += [target for target in dict.fromkeys(table[state]) if target not in order]
    return order


def _distinguished(table: tuple[tuple[int, ...], ...], accepting: tuple[bool, ...]) -> bool:
    """Whether all pairs of states are told apart by some word: table filling."""
    apart = {(p, q) for p in range(len(table)) for q in range(len(table)) if accepting[p] != accepting[q]}
    while True:
        more = {
            (p, q)
            for p in range(len(table))
            for q in range(len(table))
            if (p, q) not in apart and any(pair in apart for pair in zip(table[p], table[q], strict=True))
        }
        if not more:
            return len(apart) == len(table) * (len(table) - 1)
        apart |= more


def long_words(letters: int, length: int, seed: int, count: int = 10) -> NDArray[np.int64]:
    """Random words, and words that repeat a short random one behind another, which few traps swallow."""
    rng = np.random.default_rng(seed)
    periodic = []
    for _ in range(count):
        first = rng.integers(1, letters + 1, size=rng.integers(0, 4))
        short = rng.integers(1, letters + 1, size=rng.integers(1, 5))
        periodic.append(np.concatenate([first, np.tile(short, length)])[:length])
    return np.concatenate([random_words(letters, length, count, seed), np.array(periodic)])


def has_a_counter(automaton: Automaton) -> bool:
    """Whether some word moves some reachable states round in a cycle of two or more: breadth-first search on tuples."""
    reached = _breadth_first(automaton.transitions, automaton.initial)
    return any(_turns(automaton, p, reached) for p in range(2, len(reached) + 1))


def _turns(automaton: Automaton, length: int, states: list[int]) -> bool:
    for start in permutations(states, length):
        if start[0] != min(start):
            continue
        goal, seen, queue = start[1:] + start[:1], {start}, [start]
        for here in queue:
            for letter in range(len(automaton.alphabet)):
                after = tuple(automaton.transitions[q][letter] for q in here)
                if after == goal:
                    return True
                if len(set(after)) == length and after not in seen:
                    seen.add(after)
                    queue.append(after)
    return False


def compose(first: Permutation, second: Permutation) -> Permutation:
    """First one, then the other."""
    return tuple(second[x] for x in first)


def closure(generators: set[Permutation]) -> set[Permutation]:
    """Everything that some maps generate, by multiplying until nothing is new."""
    found = set(generators)
    while True:
        more = {compose(a, b) for a in found for b in generators} - found
        if not more:
            return found
        found |= more


def solvable_by_commutators(group: set[Permutation], one: Permutation) -> bool:
    """Whether closing all commutators of all elements, again and again, ends in the identity alone."""
    while True:
        inverse = {a: b for a in group for b in group if compose(a, b) == one}
        commutators = {compose(compose(inverse[a], inverse[b]), compose(a, b)) for a in group for b in group}
        smaller = closure(commutators | {one})
        if len(smaller) == len(group):
            return len(group) == 1
        group = smaller


def solvable_by_monoid(automaton: Automaton) -> bool:
    """Whether all groups inside the transition monoid are solvable: those of units around each idempotent."""
    machine = automaton.reachable()
    monoid = closure({tuple(range(len(machine.states))), *machine.maps().values()})
    seen: set[frozenset[int]] = set()
    for e in sorted(monoid):
        if compose(e, e) != e or frozenset(e) in seen:
            continue
        seen.add(frozenset(e))  # idempotents with one image have isomorphic groups
        local = {m for m in monoid if compose(compose(e, m), e) == m}
        units = {m for m in local if set(m) == set(e)}  # permutes the image, so some power of it is the idempotent
        if not solvable_by_commutators(units, e):
            return False
    return True
