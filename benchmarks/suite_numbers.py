"""Specs for numbers and for expressions with brackets: sums, products, roots, values and equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.suite_parts import ASK, BITS, MODULUS, asked, at, never, one_of, where

from vitrify.spec.computation.circuit import Circuit, Gates
from vitrify.spec.kinds import Spec
from vitrify.spec.programs.expression import (
    Expr,
    apply,
    before,
    choose,
    count,
    expression,
    first,
    indices,
    last,
    marked,
    select,
    tokens,
    upto,
    width,
)

# Numbers: position i of a program holds digit i


def operand(start: Expr, end: Expr) -> Expr:
    """Return the bit i of the number that is written from `start` to before `end`, at position i."""
    position = start + indices
    return choose(position < end, apply(lambda bit: int(bit == "1"), at(position, tokens)), 0)


def product_columns(left: Expr, right: Expr, digits: int) -> Expr:
    """Return the sums of the columns of a written product; the right number has at most so many digits."""
    total = expression(0)
    for shift in range(digits):
        bit = first(select(indices, shift), right, default=0)
        total = total + bit * at(indices - shift, left, 0)
    return total


def carried(columns: Expr, most: int) -> Expr:
    """Return the digits of a number from sums of columns of at most `most`: carries are saved, then looked ahead."""
    while most > 2:
        width_ = most.bit_length()
        parts = [columns % 2] + [at(indices - place, columns // 2**place % 2, 0) for place in range(1, width_)]
        columns, most = sum(parts[1:], parts[0]), width_
    carry = last(marked(columns != 1) & before, columns == 2, default=False)
    return (columns + choose(carry, 1, 0)) % 2


def number_strings(operator: str, digits: Callable[[Expr, Expr, int], Expr], length: int) -> Spec:
    """Return the program of strings x op y = z, numbers with any number of leading zeros (at their ends)."""
    sign, equals, end = where(operator), where("="), where(ASK)
    left, right = operand(expression(0), sign), operand(sign + 1, equals)
    wrong = digits(left, right, length) != operand(equals + 1, end)
    shape = (count(tokens == operator) == 1) & (count(tokens == "=") == 1) & (sign > 0)
    filled = (equals > sign + 1) & (end > equals + 1)
    return asked(shape & filled & never(wrong), (*BITS, operator, "="), length + 1)


def number_outputs(digits: Callable[[Expr, Expr, int], Expr], length: int) -> Spec:
    """Return the program that prints the result for `x 2 y`, without leading zeros, then 2, then zeros."""
    sign, end = where("2"), where(ASK)
    result = digits(operand(expression(0), sign), operand(sign + 1, end), length)
    top = apply("max", last(marked(result == 1), indices, default=0), 0)
    index = indices - end
    digit = at(index, result, 0)
    written = apply(lambda bit, past: str(bit) if past < 0 else "2" if past == 0 else "0", digit, index - top - 1)
    return asked(written, (*BITS, "2"), 2 * length + 1)


def sum_digits(left: Expr, right: Expr, _length: int) -> Expr:
    return carried(left + right, 2)


def product_digits(left: Expr, right: Expr, length: int) -> Expr:
    """Return the digits of a product: shifts of the longer number are added, as one has at most half of the digits."""
    swapped = last(marked(left == 1), indices, default=0) < last(marked(right == 1), indices, default=0)
    long, short = choose(swapped, right, left), choose(swapped, left, right)
    half = length // 2
    return carried(product_columns(long, short, half), half)


def root_strings(length: int) -> Spec:
    """Return the program of strings x = z with z² ≤ x ≤ z² + 2z."""
    equals, end = where("="), where(ASK)
    number, root = operand(expression(0), equals), operand(equals + 1, end)
    columns = product_columns(root, root, length - 2)
    low, high = carried(columns, length - 2), carried(columns + at(indices - 1, root, 0), length - 1)
    above = last(marked(low != number), low == 1, default=False)
    below = last(marked(high != number), high == 0, default=False)
    shape = (count(tokens == "=") == 1) & (equals > 0) & (end > equals + 1)
    return asked(shape & ~above & ~below, (*BITS, "="), length + 1)


def root_circuit(length: int) -> Circuit:
    """Return the circuit of a number's root, both with the highest bit first, bit by bit as by hand."""
    gates = Gates([f"x{place}" for place in range(length)])
    bits = [0] * (length % 2) + [*gates.literals]
    rest: list[int] = []  # lowest bit first
    root: list[int] = []  # highest bit first
    for high, low in zip(bits[::2], bits[1::2], strict=True):
        rest = [low, high, *rest]
        trial = [1, 0, *reversed(root)]  # 4 · root + 1
        size = max(len(rest), len(trial))
        carry, difference = 1, []
        for place in range(size):
            own = rest[place] if place < len(rest) else 0
            digit, carry = gates.sum(own, (trial[place] if place < len(trial) else 0) ^ 1, carry)
            difference.append(digit)
        old = rest + [0] * (size - len(rest))
        pairs = zip(difference, old, strict=True)
        chosen = [
            gates.disjunction(gates.conjunction(carry, new), gates.conjunction(carry ^ 1, own)) for new, own in pairs
        ]
        root.append(carry)
        rest = chosen[: len(root) + 1]  # a rest is at most twice the root
    return gates.circuit([(f"r{place}", literal) for place, literal in enumerate(root)])


# Expressions with brackets


def evaluated(leaves: Mapping[str, int], signs: str, combine: Callable[[int, str, int], int], depth: int) -> Expr:
    """Return, at every digit and closing bracket, the value of the expression that ends there.

    Every operation has brackets of its own; they are nested at most `depth` deep. `signs` are the operators, the second
    one the minus, and two brackets.
    """
    operators, opens, closes = tuple(signs[:-2]), signs[-2], signs[-1]
    minus = operators[1]
    previous = at(indices - 1, tokens)
    operator = one_of(operators) & apply(lambda token: token in leaves or token == closes, previous)
    negated = apply(lambda token, sign: token == minus and not sign, previous, at(indices - 1, operator, False))
    height = width(marked(tokens == opens) & upto) - width(marked(tokens == closes) & upto)
    inside = choose(tokens == closes, height + 1, -1)
    opening = last(select(choose(tokens == opens, height, -2), inside) & before, indices, default=-1)
    sign = last(select(choose(operator, height, -2), inside) & before, indices, default=-1)
    sign = choose(sign > opening, sign, -1)
    symbol = at(sign, tokens, "")

    def leaf(token: str, negative: bool) -> int:
        value = leaves.get(token, -1)
        return combine(leaves["0"], minus, value) if negative and token in leaves else value

    value = apply(leaf, tokens, negated)
    at_leaf = value
    for _ in range(depth):
        left, right = at(sign - 1, value, -1), at(indices - 1, value, -1)
        joined = apply(
            lambda a, op, b: -1 if b < 0 or (op and a < 0) else combine(a, op, b) if op else b, left, symbol, right
        )
        value = choose(tokens == closes, joined, at_leaf)
    return value


def depth_of(length: int) -> int:
    """Return how deep brackets are nested in an expression of a length: every level takes four more symbols."""
    return max(1, (length + 1) // 4)


def _calculate(a: int, sign: str, b: int) -> int:
    return {"5": a + b, "6": a - b, "7": a * b}.get(sign, 0) % MODULUS


def bracket_values(length: int) -> Spec:
    value = evaluated({str(digit): digit for digit in range(MODULUS)}, "56789", _calculate, depth_of(length))
    return asked(at(indices - 1, value, 0), tuple(map(str, range(10))), length + 1)


def _linear(a: int, sign: str, b: int) -> int:
    """Add or subtract polynomials p + qx, written as 5p + q."""
    (p, q), (r, s) = divmod(a, MODULUS), divmod(b, MODULUS)
    sign_ = 1 if sign == "5" else -1
    return (p + sign_ * r) % MODULUS * MODULUS + (q + sign_ * s) % MODULUS


def equation_solutions(length: int) -> Spec:
    """Return the program of the x that solves an equation of + and -; 7 and 8 are brackets, 9 is x and 10 is =."""
    leaves = {"9": 1} | {str(digit): digit * MODULUS for digit in range(MODULUS)}
    value = evaluated(leaves, "5678", _linear, depth_of(length - 2))
    left, right = at(where("10") - 1, value, -1), at(where("10") + 1, tokens)

    def solution(line: int, digit: Any) -> str:
        p, q = divmod(line, MODULUS)
        roots = [x for x in range(MODULUS) if str((p + q * x) % MODULUS) == digit]
        return str(roots[0]) if len(roots) == 1 else "none"

    return asked(apply(solution, left, right), tuple(map(str, range(11))), length + 1)
