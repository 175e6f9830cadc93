"""Specs of ours for the languages of FLaRe and the tasks of the Chomsky-hierarchy suite.

Languages and tasks are defined as in the code of A. Butoi et al., ICLR 2025, arXiv 2411.07107
(rycolab/neural-network-recognizers, with the strings in rycolab/flare), and of G. Delétang et al., ICLR 2023, arXiv
2207.02098 (google-deepmind/neural_networks_chomsky_hierarchy). Numbers are binary, the lowest bit first, unless a line
says otherwise.
Programs answer at the symbol `?`, which `vitrify score --append ?` puts behind an input once for each symbol of output.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.suite_numbers import (
    bracket_values,
    equation_solutions,
    number_outputs,
    number_strings,
    product_digits,
    root_circuit,
    root_strings,
    sum_digits,
)
from benchmarks.suite_parts import ASK, BITS, LENGTH, MODULUS, asked, at, never, one_of, where

from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.kinds import Spec
from vitrify.spec.logic.crasp import Crasp
from vitrify.spec.programs.expression import (
    Expr,
    Operand,
    aggregate,
    apply,
    before,
    choose,
    count,
    expression,
    indices,
    last,
    marked,
    select,
    tokens,
    upto,
    width,
)

STEPS = {"0": -1, "1": 0, "2": 1}  # moves on a cycle


@dataclass(frozen=True)
class Entry:
    """A language or task: its spec for inputs up to a length, and how `vitrify score` runs it.

    `longest` is the longest input that is built for; None for automata, which recurrent nets run at any length.
    `decode` stands for a chain of thought, whose net reads inputs of one length.
    """

    definition: str
    spec: Callable[[int], Spec]
    append: bool = False
    decode: bool = False
    longest: int | None = None


# Automata


def automaton(alphabet: Any, start: Hashable, step: Callable[[Any, str], Any], accepts: Callable[[Any], bool]) -> Spec:
    """Return the automaton of a step function, minimized."""
    return Automaton.explore(start, tuple(alphabet), step, accepts).minimized()


def even_pairs(_length: int) -> Spec:
    return automaton("01", "", lambda ends, bit: (ends or bit)[0] + bit, lambda ends: not ends or ends[0] == ends[-1])


def odd_pairs(_length: int) -> Spec:
    return automaton("01", "", lambda ends, bit: (ends or bit)[0] + bit, lambda ends: ends[:1] != ends[-1:])


def parity(_length: int) -> Spec:
    return automaton("01", 0, lambda odd, bit: odd ^ int(bit), bool)


def after_end(alphabet: str, start: Hashable, step: Callable[[Any, str], Any], value: Callable[[Any], Any]) -> Spec:
    """Return the automaton of strings that end in their value, a digit of Z₅."""

    def moved(state: Any, letter: str) -> Any:
        if isinstance(state, str):  # right or dead
            return "dead"
        kind, inner = state
        if kind == "end":
            return "right" if str(inner) == letter else "dead"
        new = value(inner) if letter == "=" else step(inner, letter)
        return "dead" if new is None else ("end" if letter == "=" else "run", new)

    return automaton((*alphabet, "="), ("run", start), moved, lambda state: state == "right")


def term(state: Any, letter: str, signs: Mapping[str, str]) -> Any:
    """Return the state (sum, factor, waiting for a digit) of an expression without brackets after a letter, or None."""
    total, factor, waiting = state
    sign = signs.get(letter)
    if waiting == (sign is not None):
        return None
    if sign is None:
        return total, factor * int(letter) % MODULUS, False
    if sign == "*":
        return total, factor, True
    return (total + factor) % MODULUS, 1 if sign == "+" else MODULUS - 1, True


def term_value(state: Any) -> int | None:
    total, factor, waiting = state
    return None if waiting else (total + factor) % MODULUS


EMPTY_TERM = (0, 1, True)


def arithmetic_strings(_length: int) -> Spec:
    """Return the automaton of expressions that are evaluated from left to right, `=`, and their values."""

    def step(state: Any, letter: str) -> Any:
        total, sign = state
        if (sign is None) != (letter in "+-*"):
            return None
        if sign is None:
            return total, letter
        digit = int(letter)
        return {"+": total + digit, "-": total - digit, "*": total * digit}[sign] % MODULUS, None

    return after_end("01234+-*", (0, "+"), step, lambda state: state[0] if state[1] is None else None)


def arithmetic_values(_length: int) -> Spec:
    """Return the automaton that goes to the state of an expression's value at the symbol ?."""

    def step(state: Any, letter: str) -> Any:
        if not isinstance(state, tuple):
            return "error"
        if letter == ASK:
            return "error" if term_value(state) is None else str(term_value(state))
        return term(state, letter, {"5": "+", "6": "-", "7": "*"}) or "error"

    name = lambda state: state if isinstance(state, str) else ",".join(map(str, state))  # noqa: E731
    return Automaton.explore(EMPTY_TERM, (*"01234567", ASK), step, lambda state: str(state) == "0", name)


def cycle_strings(_length: int) -> Spec:
    """Return the automaton of moves > < = that end in the position reached, on a cycle of five."""

    def step(state: Any, letter: str) -> Any:
        if isinstance(state, str) or letter in "01234":
            return "right" if not isinstance(state, str) and str(state) == letter else "wrong"
        return (state + {">": 1, "<": -1, "=": 0}[letter]) % MODULUS

    return automaton("><=01234", 0, step, lambda state: state == "right")


def cycle_positions(_length: int) -> Spec:
    step = lambda cell, move: (cell + STEPS[move]) % MODULUS  # noqa: E731
    return Automaton.explore(0, tuple(STEPS), step, lambda cell: cell == 0, str)


def dyck_2_3(_length: int) -> Spec:
    def step(stack: Any, letter: str) -> Any:
        side, kind = letter[0], letter[1]
        if stack is None or side == "(":
            return None if stack is None or len(stack) == 3 else stack + kind
        return stack[:-1] if stack[-1:] == kind else None

    return automaton(("(0", "(1", ")0", ")1"), "", step, lambda stack: stack == "")


def regex(expression: str) -> Callable[[int], Spec]:
    return lambda _length: Automaton.from_regex(expression, BITS)


def majority(length: int) -> Spec:
    """Return the counting program of strings with more 1s than 0s."""
    return Crasp.from_text(f'alphabet: 0 1 ?\nlength: {length + 1}\n#"1" > #"0"')


# Strings, whose parts a program compares


def marked_strings(source: Callable[[Expr], Expr], length: int) -> Spec:
    """Return the program of strings w # v, v of the length of w: symbol i of v is symbol `source` of w."""
    middle = where("#")
    wrong = (indices > middle) & (tokens != ASK) & (at(source(middle), tokens) != tokens)
    right = (count(tokens == "#") == 1) & never(wrong) & (2 * middle + 2 == LENGTH)
    return asked(right, (*BITS, "#"), length + 1)


def odd_places_first(index: Operand, size: Operand) -> Expr:
    """Return the source of each symbol if those at places 1, 3, … (from 1) come first."""
    odd = (expression(size) + 1) // 2
    return choose(expression(index) < odd, 2 * expression(index), 2 * (expression(index) - odd) + 1)


def unmarked_reversal(length: int) -> Spec:
    wrong = (tokens != ASK) & (at(LENGTH - 2 - indices, tokens) != tokens)
    return asked(never(wrong) & (LENGTH % 2 == 1), BITS, length + 1)


def missing_duplicate_strings(length: int) -> Spec:
    half = (LENGTH - 1) // 2
    other = at(choose(indices < half, indices + half, indices - half), tokens)
    fits = {("0", "0"), ("1", "1"), ("1", "_"), ("_", "1")}
    wrong = apply(lambda own, twin: (own, twin) not in fits, tokens, other) & (tokens != ASK)
    return asked((count(tokens == "_") == 1) & never(wrong) & (LENGTH % 2 == 1), (*BITS, "_"), length + 1)


def sorted_strings(length: int) -> Spec:
    middle, symbols = where("#"), "12345"
    right = count(tokens == "#") == 1
    for symbol in symbols:
        here = tokens == symbol
        right = right & (count(here & (indices < middle)) == count(here & (indices > middle)))
    previous = at(indices - 1, tokens)
    falling = apply(
        lambda left, own: own in symbols and left is not None and left in symbols and left > own, previous, tokens
    )
    return asked(right & never(falling & (indices > middle)), (*symbols, "#"), length + 1)


# Stacks


def stack_symbol(pushes: Mapping[str, str], pop: str, end: str, rank: Callable[[Expr], Expr]) -> tuple[Expr, ...]:
    """Return the symbol of a stack `rank` below its top at the symbol `end`, its height, and pops of an empty stack.

    A pop of an empty stack does nothing: its balance of pushes and pops is below all before it.
    """
    begun = indices < where(end)
    pushing = apply(lambda token: token in pushes, tokens) & begun
    balance = width(marked(pushing) & upto) - width(marked((tokens == pop) & begun) & upto)
    lowest = aggregate(select(balance, balance, "<=") & before, True, default=False)
    empty = (tokens == pop) & begun & (balance < 0) & ~lowest
    height = balance + width(marked(empty) & upto)
    final = at(where(end) - 1, height, 0)
    level = final - rank(where(end))
    symbol = last(select(choose(pushing, height, -1), choose(level > 0, level, -2)), tokens)
    return apply(lambda token: pushes.get(token, ""), symbol), final, empty


def stack_strings(length: int) -> Spec:
    """Return the program of strings s a # t: the actions a, POP and PUSH with a bit, turn s into t from its top."""
    symbol, height, empty = stack_symbol({"0": "0", "1": "1"}, "POP", "#", lambda middle: indices - middle - 1)
    pushed = at(indices - 1, tokens) == "PUSH"
    acted = (width(marked(one_of(("PUSH", "POP"))) & upto) > 0) & (indices < where("#"))
    strange = choose(pushed, ~one_of(BITS), one_of(BITS) & acted)
    wrong = (indices > where("#")) & (tokens != ASK) & (symbol != tokens)
    right = (count(tokens == "#") == 1) & never(strange) & never(empty) & never(wrong)
    return asked(right & (where("#") + 2 + height == LENGTH), (*BITS, "PUSH", "POP", "#"), length + 1)


def stack_outputs(length: int) -> Spec:
    """Return the program that prints a stack from its top, then 2, then zeros; 2 is pop, 3 and 4 push 0 and 1."""
    pushes = {"0": "0", "1": "1", "3": "0", "4": "1"}
    symbol, height, _ = stack_symbol(pushes, "2", ASK, lambda start: indices - start)
    past_top = indices - where(ASK) - height
    return asked(choose(past_top < 0, symbol, choose(past_top == 0, "2", "0")), (*pushes, "2"), 2 * length + 1)


# Words that are written anew behind their input


def rewritten(source: Callable[[Expr, Expr], Expr], outputs: int, length: int) -> Spec:
    """Return the program whose output i is the input at position `source(i, size)`."""
    size = where(ASK)
    return asked(at(source(indices - size, size), tokens), BITS, outputs * length + length)


def missing_symbol(length: int) -> Spec:
    hole, half = where("2"), where(ASK) // 2
    return asked(at(choose(hole < half, hole + half, hole - half), tokens), (*BITS, "2", "3"), length + 1)


def sorted_words(length: int) -> Spec:
    result, index, below = expression("4"), indices - where(ASK), count(one_of("0123"))
    for symbol in "3210":
        result = choose(index < below, symbol, result)
        below = below - count(tokens == symbol)
    return asked(result, "01234", 2 * length)


FLARE: Mapping[str, Entry] = {
    "even-pairs": Entry("first and last symbol are equal, or the string is empty", even_pairs),
    "repeat-01": Entry("(01)*", regex("(01)*")),
    "parity": Entry("an odd number of 1s", parity),
    "cycle-navigation": Entry("moves > < = on a cycle of 5, then the position reached", cycle_strings),
    "modular-arithmetic-simple": Entry(
        "expression of + - * over Z₅, from left to right, = its value", arithmetic_strings
    ),
    "dyck-2-3": Entry("two kinds of brackets, depth 3", dyck_2_3),
    "first": Entry("begins with 1", regex("1(0|1)*")),
    "majority": Entry("more 1s than 0s", majority, append=True, longest=500),
    "stack-manipulation": Entry(
        "a stack, PUSH bit and POP, #, the stack from its top", stack_strings, append=True, longest=40
    ),
    "marked-reversal": Entry(
        "w # w reversed", partial(marked_strings, lambda m: 2 * m - indices), append=True, longest=40
    ),
    "unmarked-reversal": Entry("w w reversed", unmarked_reversal, append=True, longest=40),
    "marked-copy": Entry("w # w", partial(marked_strings, lambda m: indices - m - 1), append=True, longest=40),
    "missing-duplicate-string": Entry(
        "w w with one 1 written as _", missing_duplicate_strings, append=True, longest=40
    ),
    "odds-first": Entry(
        "w # symbols of w at places 1, 3, …, then 2, 4, …",
        partial(marked_strings, lambda m: odd_places_first(indices - m - 1, m)),
        append=True,
        longest=40,
    ),
    "binary-addition": Entry("x + y = z", partial(number_strings, "+", sum_digits), append=True, longest=40),
    "binary-multiplication": Entry("x × y = z", partial(number_strings, "×", product_digits), append=True, longest=40),
    "compute-sqrt": Entry("x = z, z the root of x rounded down", root_strings, append=True, longest=40),
    "bucket-sort": Entry("w # w sorted, symbols 1 to 5", sorted_strings, append=True, longest=40),
}

CHOMSKY: Mapping[str, Entry] = {
    "even_pairs": Entry("1 if first and last symbol differ", odd_pairs),
    "modular_arithmetic": Entry("value of an expression; 5, 6, 7 are + - *", arithmetic_values, append=True),
    "parity_check": Entry("number of 1s modulo 2", parity),
    "cycle_navigation": Entry("position on a cycle of 5; 0, 1, 2 move by -1, 0, 1", cycle_positions),
    "stack_manipulation": Entry("the stack from its top, then 2 and zeros", stack_outputs, append=True, longest=21),
    "reverse_string": Entry(
        "the input reversed", partial(rewritten, lambda i, n: n - 1 - i, 1), append=True, longest=21
    ),
    "modular_arithmetic_brackets": Entry("value; 8 and 9 are brackets", bracket_values, append=True, longest=21),
    "solve_equation": Entry(
        "the x that solves it; 7 and 8 are brackets, 9 is x, 10 is =", equation_solutions, append=True, longest=21
    ),
    "duplicate_string": Entry(
        "the input twice", partial(rewritten, lambda i, n: choose(i < n, i, i - n), 2), append=True, longest=21
    ),
    "missing_duplicate_string": Entry(
        "the symbol of w w written as 2; 3 fills up odd lengths", missing_symbol, append=True, longest=21
    ),
    "odds_first": Entry(
        "symbols at indices 1, 3, …, then 0, 2, …",
        partial(rewritten, lambda i, n: choose(i < n // 2, 2 * i + 1, 2 * (i - n // 2)), 1),
        append=True,
        longest=21,
    ),
    "binary_addition": Entry(
        "the sum of `x 2 y`, then 2 and zeros", partial(number_outputs, sum_digits), append=True, longest=21
    ),
    "binary_multiplication": Entry(
        "the product of `x 2 y`, then 2 and zeros", partial(number_outputs, product_digits), append=True, longest=21
    ),
    "compute_sqrt": Entry("the root rounded down, highest bit first", root_circuit, decode=True, longest=21),
    "bucket_sort": Entry("the input sorted, symbols 0 to 4", sorted_words, append=True, longest=21),
}
