r"""Automata that count modulo numbers run on a linear recurrence of whole numbers with complex eigenvalues.

In the spirit of Grazzi et al. (2025, arXiv 2411.12537): with real eigenvalues a linear recurrence of finite precision
can't count modulo 3. Let the letters of an automaton commute and permute its states. Their group is then a product of
cyclic groups, and each letter adds a number to the exponent of each factor. A factor of order $q$ is the companion
matrix $C$ of the cyclotomic polynomial $\Phi_q$, of degree $\varphi(q)$: its eigenvalues are the primitive roots of 1,
so $C^q = I$ and no earlier power is, and its entries are whole numbers. A letter of exponent $e$ is $C^e$, and the
states are $v_s = e_1 C^s$.

The logit of $t$ is $v_s U_t = c_q(s - t)$, Ramanujan's sum $\sum_{\gcd(a, q) = 1} \cos(2\pi a(s - t)/q)$, which follows
the same recurrence: $\varphi(q)$ for $t = s$, and at most $\varphi(q) - 1$ else. Logits of several factors are added.

| | formula |
| --- | --- |
| state | $\sum_q \varphi(q)$ over the cyclic factors; $p - 1$ numbers modulo a prime $p$ |
| modulo 3 | $C = \begin{pmatrix} 0 & 1 \\ -1 & -1 \end{pmatrix}$, two numbers, three states |

All numbers are whole and repeat: nothing is rounded at any length. Other automata are refused.
"""

from __future__ import annotations

from functools import cache, reduce
from math import cos, gcd, pi

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.catalogue import BuildRefused, DeclaredSizes, MaxLength, construction
from vitrify.constructions.commutative import group_counters
from vitrify.constructions.recurrent_automaton import recurrent_net
from vitrify.net.cells import Cell
from vitrify.net.recurrent import Recurrent
from vitrify.net.spaces import Integers
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.groups import commute


def totient(order: int) -> int:
    """Return the number of primitive roots of 1 of an order, the degree of its cyclotomic polynomial."""
    return sum(gcd(order, power) == 1 for power in range(order))


def sizes(automaton: Automaton) -> DeclaredSizes:
    """Return all sizes: a factor of order q takes φ(q) numbers."""
    counters, _ = group_counters(_need_cycles(automaton))
    return DeclaredSizes.of_layers((0,), (0,), max(1, sum(totient(counter.period) for counter in counters)))


@construction(
    "cyclotomic",
    "counting modulo numbers, in a linear recurrence of whole numbers",
    sizes,
    certified=("every length", "every length"),
)
def cyclotomic(automaton: Automaton, *, max_length: MaxLength = 128) -> Weights[Recurrent]:
    """Return a linear recurrence whose transitions are powers of companion matrices of cyclotomic polynomials."""
    machine = _need_cycles(automaton)
    counters, states = group_counters(machine)
    orders = [counter.period for counter in counters]
    size, letters = max(1, sum(map(totient, orders))), len(machine.alphabet)
    transitions, drives = np.zeros((letters + 1, size, size)), np.zeros((letters + 1, size))
    readout, at = np.zeros((size, len(states))), 0
    for number, (counter, order) in enumerate(zip(counters, orders, strict=True)):
        part = slice(at, at := at + totient(order))
        for letter, exponent in enumerate(counter.weights, start=1):
            transitions[letter, part, part] = np.linalg.matrix_power(companion(order), exponent)
        drives[0, part] = np.eye(totient(order))[0]
        for remainders, state in states.items():
            readout[part, state] = [ramanujan_sum(order, power - remainders[number]) for power in range(totient(order))]
    arrays = {"blocks.0.rec.W_A": transitions, "blocks.0.rec.W_B": drives, "unembed.W_U": readout}
    largest = max((float(np.abs(_powers(order)).max()) for order in orders), default=0.0)
    names = [f"mod {order}: {power}" for order in orders for power in range(totient(order))] or ["nothing"]
    spaces = [("remainders", Integers(tuple(names), -largest, largest))]
    source = "Grazzi et al. 2025, arXiv 2411.12537"
    return recurrent_net(machine, Cell("full", size), arrays, spaces, max_length, "cyclotomic", source)


def _need_cycles(automaton: Automaton) -> Automaton:
    """Return the reachable part of an automaton whose letters commute and permute its states; refuse others."""
    machine = automaton.reachable()
    maps = machine.maps()
    merging = next((letter for letter, images in maps.items() if len(set(images)) < len(images)), None)
    if merging is not None or not commute(maps.values()):
        what = f"the letter {merging!r} merges states" if merging is not None else "the order of its letters matters"
        raise BuildRefused(
            f"counts modulo numbers are sums of letters that permute the states, but {what}: "
            "build this automaton with --construction linear-recurrence or elman"
        )
    return machine


@cache
def companion(order: int) -> Floats:
    """Return the companion matrix of a cyclotomic polynomial: unit vectors follow each other, in rows.

    >>> companion(3).tolist()
    [[0.0, 1.0], [-1.0, -1.0]]
    """
    degree = totient(order)
    matrix = np.eye(degree, k=1)
    matrix[-1] = [-coefficient for coefficient in cyclotomic_polynomial(order)[:-1]]
    return matrix


@cache
def cyclotomic_polynomial(order: int) -> tuple[int, ...]:
    r"""Return the coefficients of $\Phi_q$, that of $x^0$ first: $x^q - 1$ divided by $\Phi_d$ for all divisors $d$.

    >>> [cyclotomic_polynomial(order) for order in (1, 3, 6)]
    [(-1, 1), (1, 1, 1), (1, -1, 1)]
    """
    divisors = [cyclotomic_polynomial(divisor) for divisor in range(1, order) if order % divisor == 0]
    return reduce(_quotient, divisors, (-1, *[0] * (order - 1), 1))


def _quotient(polynomial: tuple[int, ...], divisor: tuple[int, ...]) -> tuple[int, ...]:
    """Return the quotient of two polynomials of whole coefficients, where the divisor's highest one is 1."""
    rest, result = list(polynomial), list[int]()
    while len(rest) >= len(divisor):
        result.append(rest[-1])
        shift = len(rest) - len(divisor)
        rest = [c - result[-1] * (divisor[i - shift] if i >= shift else 0) for i, c in enumerate(rest)][:-1]
    return tuple(result[::-1])


def ramanujan_sum(order: int, difference: int) -> int:
    """Return the sum of a power of all primitive roots of 1 of an order, a whole number.

    >>> [ramanujan_sum(3, difference) for difference in range(3)]
    [2, -1, -1]
    """
    return round(sum(cos(2 * pi * power * difference / order) for power in range(order) if gcd(order, power) == 1))


def _powers(order: int) -> Floats:
    """Return the first rows of all powers of a companion matrix, the states of a counter."""
    return np.array([np.linalg.matrix_power(companion(order), power)[0] for power in range(order)])
