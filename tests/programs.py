"""Random programs for tests, and the library at any size."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

from vitrify.spec.programs import families as library
from vitrify.spec.programs.expression import (
    Expr,
    Pairs,
    Selector,
    after,
    aggregate,
    apply,
    before,
    choose,
    count,
    everywhere,
    expression,
    first,
    indices,
    last,
    marked,
    max_of,
    mean,
    min_of,
    parts,
    select,
    sum_of,
    tokens,
    upto,
    width,
)
from vitrify.spec.programs.program import Program, program


def random_program(
    seed: int, *, letters: int = 3, length: int = 6, causal: bool | None = None, every_part: bool = False
) -> Program:
    """A small program, any part of which may look at any other; with `every_part` all constructs of the language.

    Then some parts have names, and some programs an answer for the empty word.
    """
    rng = random.Random(seed)
    alphabet = tuple("abcd"[:letters])
    looks = rng.random() < 0.5 if causal is None else causal
    maker = (_EveryPart if every_part else _Maker)(rng, alphabet)
    root = maker.number(3) if rng.random() < 0.5 else maker.flag(3)
    if not every_part:
        return program(root, alphabet, length, causal=looks, name=f"random {seed}")
    names = {node: rng.choice(["x", "x1", "index", "for", "mean", "é 2"]) for node in parts(root) if rng.random() < 0.3}
    bare = program(root, alphabet, length, causal=looks, names=names)
    domain = bare.values[bare.root]
    whole = rng.random() < 0.5 and not any(isinstance(value, Fraction) for value in domain)
    return program(root, alphabet, length, causal=looks, names=names, empty=rng.choice(domain) if whole else None)


class _Maker:
    """Expressions of a bounded depth; numbers stay small, so that tables do."""

    def __init__(self, rng: random.Random, alphabet: Sequence[str]) -> None:
        self.rng, self.alphabet = rng, alphabet

    def number(self, depth: int) -> Expr:
        pick = self.rng.randrange(9) if depth else self.rng.randrange(2)
        if pick == 0:
            return indices
        if pick == 1:
            return apply(
                dict(zip(self.alphabet, self.rng.sample(range(5), len(self.alphabet)), strict=True)).get, tokens
            )
        a, b = self.number(depth - 1), self.number(depth - 1)
        if pick == 2:
            return (a + b) % 5
        if pick == 3:
            return a - b
        if pick == 4:
            return apply(self.rng.choice(["min", "max"]), a, b)
        if pick == 5:
            return choose(self.flag(depth - 1), a, b)
        if pick == 6:
            return apply(lambda x, y: (x * y + 1) % 3, a % 4, b % 4)
        if pick == 7:
            return width(self.selector(depth - 1))
        return self.rng.choice([first, last])(self.selector(depth - 1), a % 7, self.rng.randrange(3))

    def flag(self, depth: int) -> Expr:
        pick = self.rng.randrange(7) if depth else 0
        if pick == 0:
            return apply("==", tokens, self.rng.choice(self.alphabet))
        if pick == 1:
            return apply(self.rng.choice(["<", "<=", "==", "!="]), self.number(depth - 1), self.number(depth - 1))
        if pick == 2:
            return apply(self.rng.choice(["and", "or"]), *(self.flag(depth - 1) for _ in range(self.rng.randint(2, 3))))
        if pick == 3:
            return ~self.flag(depth - 1)
        if pick == 4:
            return apply(">=", count(self.flag(depth - 1)), self.rng.randrange(4))
        if pick == 5:
            return aggregate(everywhere & select(indices, indices - 1), self.flag(depth - 1), False)
        return apply(">", mean(self.selector(depth - 1), self.flag(depth - 1)), 0) | self.flag(depth - 1)

    def selector(self, depth: int) -> Selector:
        pick = self.rng.randrange(7) if depth else self.rng.randrange(3)
        if pick == 0:
            return self.rng.choice([everywhere, before, upto, after])
        if pick == 1:
            return select(tokens, tokens, self.rng.choice(["==", "!="]))
        if pick == 2:
            return marked(self.flag(0))
        if pick == 3:
            relation = self.rng.choice(["==", "<", ">=", "!="])
            return select(self.number(depth - 1) % 5, self.number(depth - 1) % 5, relation)
        if pick == 4:
            return self.selector(depth - 1) & self.selector(depth - 1)
        if pick == 5:
            return self.selector(0) | self.selector(0)
        return ~self.selector(depth - 1)


class _EveryPart(_Maker):
    """Also constants of all kinds, tables, relations, sums and extremes of selected numbers, and defaults."""

    def number(self, depth: int) -> Expr:
        pick = self.rng.randrange(16)
        constant = self.rng.choice([0, 3, -2, -7])
        if pick < 8 or not depth:
            return super().number(depth)
        if pick == 8:
            return expression(constant)
        if pick == 9:
            return choose(self.flag(depth - 1), -self.number(depth - 1), expression(constant)) % 4
        if pick == 10:
            return sum_of(self.selector(depth - 1), self.number(0) - 1)
        if pick == 11:
            return abs(self.number(depth - 1)) // 2
        if pick == 12:
            letter = self.rng.choice([last, first, aggregate])(indices_of_this, tokens, "none \\ of 'a\"")
            return apply(lambda value: -len(value), letter)
        if pick == 13:
            return apply("min", self.number(depth - 1), constant, self.number(0))
        default = self.rng.choice([constant, Fraction(-1, 2), None])
        values = self.number(depth - 1)
        node = self.rng.choice([min_of, max_of])(self.selector(depth - 1), values, default)
        return apply(lambda value: 9 if value is None or value == Fraction(-1, 2) else value, node)

    def selector(self, depth: int) -> Selector:
        if self.rng.random() < 0.3:
            flags = self.rng.sample([(a, b) for a in self.alphabet for b in self.alphabet], self.rng.randrange(4))
            return select(tokens, tokens, Pairs(flags))
        return super().selector(depth)


indices_of_this = select(indices, indices)


def usual_programs(letters: int, length: int) -> list[Program]:
    """Every program of the library, for an alphabet of a size and words to a length."""
    abc = tuple(f"w{i:02}" for i in range(letters))
    pairs = [(f"({i}", f"){i}") for i in range(max(letters // 2, 1))]
    brackets = tuple(bracket for pair in pairs for bracket in pair)
    sums = tuple(f"{a}+{b}" for a in range(10) for b in range(10))[: max(letters, 4)]
    made: list[tuple[str, Expr, tuple[str, ...], bool]] = [
        ("length", library.length, abc, False),
        ("reverse", library.reverse(), abc, False),
        ("histogram", library.histogram(), abc, False),
        ("running count", library.running_count(abc[0]), abc, True),
        ("count", library.counted(abc[0]), abc, False),
        ("shift", library.shift(1), abc, True),
        ("detect", library.detect([abc[0], abc[1], abc[0]]), abc, True),
        ("fraction of previous", library.fraction_of_previous(abc[0]), abc, True),
        ("pair balance", library.pair_balance(abc[0], abc[1]), abc, True),
        ("sort", library.sort(abc), abc, False),
        ("sort unique", library.sort_unique(abc), abc, False),
        ("sort by frequency", library.sort_by_frequency(), abc, False),
        ("most frequent", library.most_frequent(), abc, False),
        ("dyck1", library.dyck1(), ("(", ")", *abc[2:]), True),
        ("shuffle dyck", library.shuffle_dyck(pairs), brackets, True),
        ("dyck", library.dyck(pairs, 8), brackets, True),
        ("last marked", library.last_marked(abc[0]), abc, True),
        ("induction", library.induction(), abc, True),
        ("copy", library.copy_after(abc[0]), abc, True),
        ("addition", library.addition(10), sums, True),
    ]
    return [program(root, alphabet, length, causal=causal, name=name) for name, root, alphabet, causal in made]


def three_arguments(letters: int, length: int) -> Program:
    """A function of three expressions without any rule behind it: the letter, the place and the length of the word."""
    abc = tuple(f"w{i:02}" for i in range(letters))

    def scrambled(letter: str, place: int, size: int) -> int:
        return random.Random(f"{letter} {place} {size}").randrange(5)

    return program(apply(scrambled, tokens, indices, library.length), abc, length, name="three arguments")


def diamonds(number: int) -> Program:
    """Maps one after the other, each of which reads the one before it twice: the result is from 0 to 6."""
    node: Expr = width(select(tokens, tokens)) % 7
    for _ in range(number):
        node = apply("max", (node + node) % 7, node)
    return program(node, ("a", "b"), 6, name=f"{number} diamonds")
