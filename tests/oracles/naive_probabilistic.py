"""Probabilistic machines and automata by their paths, one after the other: no two paths are ever added up before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product

Rule = tuple[Fraction, str, str, str, str]  # probability, written, move, next state, emitted


def machine_paths(
    rules: Mapping[tuple[str, str], Sequence[Rule]], start: str, halt: Sequence[str], blank: str, steps: int
) -> Iterator[tuple[Fraction, str, bool]]:
    """Every path of a number of steps, or until it halts, on a tape that is a string with a marked place.

    Its probability, what it emitted, and whether it halted; every symbol is one character.
    """
    paths = [(Fraction(1), start, "", blank, "")]
    for _ in range(steps):
        longer = []
        for chance, state, left, right, emitted in paths:
            for p, written, move, to, more in rules[state, right[0]]:
                before, after = left, written + right[1:]
                if move == "R":
                    before, after = before + after[0], after[1:] or blank
                elif move == "L":
                    before, after = before[:-1], (before[-1] if before else blank) + after
                if to in halt:
                    yield chance * p, emitted + more, True
                else:
                    longer.append((chance * p, to, before, after, emitted + more))
        paths = longer
    for chance, *_, emitted in paths:
        yield chance, emitted, False


def machine_masses(
    rules: Mapping[tuple[str, str], Sequence[Rule]], start: str, halt: Sequence[str], blank: str, steps: int
) -> tuple[dict[str, Fraction], Fraction]:
    """The probabilities of all strings, and of the paths that have not halted."""
    strings: dict[str, Fraction] = defaultdict(Fraction)
    running = Fraction(0)
    for chance, emitted, halted in machine_paths(rules, start, halt, blank, steps):
        if halted:
            strings[emitted] += chance
        else:
            running += chance
    return dict(strings), running


def string_probability(
    initial: Mapping[str, Fraction],
    moves: Mapping[tuple[str, str, str], Fraction],
    final: Mapping[str, Fraction],
    string: Sequence[str],
) -> Fraction:
    """The probability of a string, summed over all sequences of states."""
    states = sorted({*initial, *final, *(q for q, _, _ in moves), *(r for _, _, r in moves)})
    total = Fraction(0)
    for way in product(states, repeat=len(string) + 1):
        chance = initial.get(way[0], Fraction(0)) * final.get(way[-1], Fraction(0))
        for letter, q, r in zip(string, way, way[1:], strict=False):
            chance *= moves.get((q, letter, r), Fraction(0))
        total += chance
    return total
