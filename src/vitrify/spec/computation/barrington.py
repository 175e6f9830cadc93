r"""Barrington's theorem: a formula of depth $D$ is a product of at most $4^D$ permutations of five points.

An *instruction* is a variable and two permutations, one for each of its values. A program *computes $c$ if $\varphi$*
for a cycle $c$ of five points if the product of its permutations, the first applied first, is $c$ where the formula is
true and the identity $e$ where it is false. Programs $P_c(\varphi)$ are made by induction over the formula, for every
5-cycle $c$:

| formula | program that computes $c$ |
| --- | --- |
| variable $x$ | the instruction $(x, c, e)$ |
| $\neg\varphi$ | $P_{c^{-1}}(\varphi)$, where the last permutations are followed by $c$ |
| $\varphi \land \psi$ | $P_\sigma(\varphi) P_\tau(\psi) P_{\sigma^{-1}}(\varphi) P_{\tau^{-1}}(\psi)$ |
| $\varphi \lor \psi$ | that of $\neg(\neg\varphi \land \neg\psi)$ |

Here $\sigma$ and $\tau$ are 5-cycles with $\sigma\tau\sigma^{-1}\tau^{-1} = c$; if a part is false, the rest cancels.
Any two 5-cycles are conjugate, so there are such for every $c$. A conjunction takes twice the instructions of its
parts, a negation none more. Source: Barrington 1989 [K].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import permutations
from typing import NamedTuple

from vitrify.spec.automata.groups import Permutation, cycles, inverse, then
from vitrify.spec.tasks.formula_value import Node

IDENTITY: Permutation = (0, 1, 2, 3, 4)
CYCLE: Permutation = (1, 2, 3, 4, 0)  # what the program of a whole formula computes if it is true


class Instruction(NamedTuple):
    """A variable, and the permutation for each of its values."""

    variable: str
    if_one: Permutation
    if_zero: Permutation


def program(node: Node, cycle: Permutation = CYCLE) -> tuple[Instruction, ...]:
    """Return the instructions of a formula.

    >>> a, b = ("variable", "a"), ("variable", "b")
    >>> len(program(("or", ("and", a, ("not", b)), ("and", ("not", a), b))))
    16
    """
    operator, *parts = node
    if operator == "variable":
        return (Instruction(parts[0], cycle, IDENTITY),)
    if operator == "not":
        *others, last = program(parts[0], inverse(cycle))
        return (*others, last._replace(if_one=then(last.if_one, cycle), if_zero=then(last.if_zero, cycle)))
    if operator == "or":
        return program(("not", ("and", *(("not", part) for part in parts))), cycle)
    left, right = commutator(cycle)
    both = zip(parts * 2, (left, right, inverse(left), inverse(right)), strict=True)
    return tuple(instruction for part, each in both for instruction in program(part, each))


@cache
def commutator(cycle: Permutation) -> tuple[Permutation, Permutation]:
    """Return two 5-cycles $\\sigma, \\tau$ such that $\\sigma\\tau\\sigma^{-1}\\tau^{-1}$ is a given one."""
    every = [each for each in permutations(range(5)) if len(cycles(each)) == 1]
    return next((s, t) for s in every for t in every if product([s, t, inverse(s), inverse(t)]) == cycle)


def product(word: Sequence[Permutation]) -> Permutation:
    """Return the product of permutations, the first applied first."""
    result = IDENTITY
    for each in word:
        result = then(result, each)
    return result


def chosen(instructions: Sequence[Instruction], values: Mapping[str, bool]) -> list[Permutation]:
    """Return the permutation that each instruction chooses under an assignment."""
    return [each.if_one if values[each.variable] else each.if_zero for each in instructions]
