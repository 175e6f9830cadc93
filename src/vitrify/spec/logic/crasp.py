r"""Counting programs, in the manner of C-RASP: `.crasp` files, their meaning, and the equivalent RASP program.

    // balanced brackets
    alphabet: ( )
    length: 100
    height := #"(" - #")"
    #(height < 0) = 0 & height = 0

Every expression has a value at each position of a word. Truth values are letters (true where they occur, in double
quotes or bare), `true`, `false`, `MOD(r, m)` (position mod m is r, positions counted from 0), `AT(p, q, …)` (the
position is one of these), combinations by `!`, `&`, `|`, `->` and `<->`, and comparisons of counts by `= != < <= > >=`.
Counts are whole numbers, `#φ` (the number of positions up to and including this one where φ is true), and combinations
by `+`, `-`, `*` with a constant, `min`, `max` and `condition ? yes : no`. `!` binds looser than comparisons and tighter
than `&`; `#` applies to the operand right after it. A line `name := expression` defines a name; the last line is the
result, a truth value. Lines that begin with `//` are comments.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import ClassVar, TypeAlias

import numpy as np

from vitrify.arrays import Array, Bools, Ints
from vitrify.spec.formats.headed import Headed
from vitrify.spec.formats.text import SpecError, in_file, lines_in
from vitrify.spec.kinds import Kind, Meaning, PrefixStates
from vitrify.spec.logic.crasp_text import Steps, parse, references, text_of
from vitrify.spec.logic.truth import CONNECTIVES, leaf_holds, logic_expression, next_position, truths
from vitrify.spec.programs.expression import Expr, apply, choose, count, expression, indices
from vitrify.spec.programs.program import Program

State: TypeAlias = tuple[int, tuple[int, ...], bool | None]  # of the words before a position


@dataclass(frozen=True)
class Crasp(Headed):
    """A counting program for words over an alphabet, up to a length: steps, each of which reads earlier ones."""

    steps: Steps
    alphabet: tuple[str, ...]
    length: int
    name: str = field(default="counting program", compare=False)
    lines: tuple[int, ...] = field(default=(), compare=False, repr=False)  # of the text, by step, where there is one
    suffix: ClassVar[str] = ".crasp"

    @classmethod
    def _parsed(cls, text: str, file: str | None, name: str) -> Crasp:
        steps, lines, alphabet, length = parse(lines_in(text, "//"), file)
        spec = cls(steps, alphabet, length, name, lines)
        with in_file(file):
            spec.program  # noqa: B018  # problems are reported here, with their lines
        return spec

    def to_text(self) -> str:
        return f"alphabet: {' '.join(self.alphabet)}\nlength: {self.length}\n{text_of(self.steps, self.alphabet)}"

    @classmethod
    def samples(cls) -> dict[str, Crasp]:
        text = "alphabet: a b\nlength: 12\n#(#a < #b) = 0 & 2 * #a = #true & MOD(1, 2)"
        return {"balance": cls.from_text(text)}

    def meanings(self) -> dict[str, Meaning]:
        """Return the task: at which positions the result is true."""
        return truths(self.alphabet, self.holds, PrefixStates((0, (), None), self._step))

    def _step(self, state: State, letter: str) -> State:
        """Return the state after one more letter: the next position for `MOD` and `AT`, the counts, the result."""
        position, counts, _ = state
        values = self._values(np.array([[self.alphabet.index(letter)]]), position, counts)
        after = tuple(int(value[0, 0]) for step, value in zip(self.steps, values, strict=True) if step[0] == "#")
        return next_position(position, self.steps), after, bool(values[-1][0, 0])

    @cached_property
    def depth(self) -> int:
        """Nesting depth of counts."""
        depths: list[int] = []
        for step in self.steps:
            depths.append(max((depths[i] for i in references(step)), default=0) + (step[0] == "#"))
        return depths[-1]

    @property
    def counts(self) -> int:
        """Number of different counts, without `#true`, which is the position plus one."""
        return sum(step[0] == "#" and self.steps[int(step[1])] != ("true",) for step in self.steps)

    def holds(self, words: Ints) -> Bools:
        """Return where the result is true [word, position], by definition: counts are running sums."""
        return np.asarray(self._values(words, 0, ())[-1], dtype=bool)

    def _values(self, words: Ints, start: int, counts: Sequence[int]) -> list[Array]:
        """Return the value of every step [word, position]; the first position is `start`, after some counts."""
        values: list[Array] = []
        before = iter(counts)
        for operator, *data in self.steps:
            value: Array = leaf_holds(str(operator), data, words, self.alphabet, start)
            if operator == "number":
                value = np.full(words.shape, int(data[0]), dtype=np.int64)
            elif operator == "#":
                value = np.cumsum(values[int(data[0])], axis=1, dtype=np.int64) + next(before, 0)
            elif value is None:
                value = np.asarray(MEANINGS[str(operator)](*(values[int(part)] for part in data)))
            values.append(value)
        return values

    @cached_property
    def program(self) -> Program:
        """Equivalent program of selections: each count is the width of one selection.

        The count of all positions is the position, from 1.
        """
        expressions: list[Expr] = []
        for step in self.steps:
            expressions.append(_expression(str(step[0]), step[1:], [expressions[i] for i in references(step)]))
        # the line of equal expressions is the first one
        lines = dict(reversed([*zip(expressions, self.lines, strict=False)]))
        return Program(expressions[-1], self.alphabet, self.length, causal=True, name=self.name, lines=lines)


MEANINGS: dict[str, Callable[..., Array]] = CONNECTIVES | {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "+": np.add,
    "-": np.subtract,
    "neg": np.negative,
    "*": np.multiply,
    "min": lambda *parts: reduce(np.minimum, parts),
    "max": lambda *parts: reduce(np.maximum, parts),
    "if": np.where,
}


def _expression(operator: str, data: tuple[str | int, ...], inner: list[Expr]) -> Expr:
    if operator == "number":
        return expression(data[0])
    if operator == "#":
        return indices + 1 if inner[0] is expression(True) else count(inner[0])
    if operator == "if":
        return choose(*inner)
    if operator in ("min", "max"):
        return reduce(lambda a, b: apply(operator, a, b), inner)
    plain = logic_expression(operator, data, inner)
    return apply({"=": "=="}.get(operator, operator), *inner) if plain is None else plain


def majority(letter: str, alphabet: Sequence[str], length: int) -> Crasp:
    """Return the program that is true where a letter makes up more than half of the word so far."""
    return _crasp(alphabet, length, [f'2 * #"{letter}" > #true'], "majority")


def dyck1(length: int, opening: str = "(", closing: str = ")") -> Crasp:
    """Return the program that is true where brackets of one kind are balanced."""
    return shuffle_dyck([(opening, closing)], length, "balanced brackets")


def shuffle_dyck(pairs: Sequence[tuple[str, str]], length: int, name: str = "shuffled brackets") -> Crasp:
    """Return the program that is true where the brackets of each kind, by themselves, are balanced: kinds may cross."""
    heights = [f'h{k} := #"{opening}" - #"{closing}"' for k, (opening, closing) in enumerate(pairs)]
    below = " | ".join(f"h{k} < 0" for k in range(len(pairs)))
    level = " & ".join(f"h{k} = 0" for k in range(len(pairs)))
    letters = [letter for pair in pairs for letter in pair]
    return _crasp(letters, length, [*heights, f"#({below}) = 0 & {level}"], name)


def stateless_counters(moves: Mapping[str, Sequence[int]], accepting: Collection[Sequence[bool]], length: int) -> Crasp:
    """Return a stateless counter machine: each letter adds a vector to the counters; zero tests decide.

    A word is accepted if the pattern of zero tests (true: the counter is zero) is one of the accepting ones.
    """
    size = len(next(iter(moves.values()), ()))
    wrong = [letter for letter, vector in moves.items() if len(vector) != size]
    wrong += ["".join("=≠"[not zero] for zero in pattern) for pattern in accepting if len(pattern) != size]
    if wrong or not size:
        raise SpecError([f"every move and every pattern must speak about the same counters; see {', '.join(wrong)}"])
    counters = [
        f"c{k} := " + (" + ".join(f'{v[k]} * #"{letter}"' for letter, v in moves.items() if v[k]) or "0")
        for k in range(size)
    ]
    patterns = [" & ".join(f"c{k} {'=' if zero else '!='} 0" for k, zero in enumerate(p)) for p in accepting]
    return _crasp(tuple(moves), length, [*counters, " | ".join(patterns) or "false"], "stateless counters")


def random_counting(
    seed: int,
    depth: int = 3,
    *,
    alphabet: Sequence[str] = "abc",
    length: int = 12,
    predicates: Sequence[str] = ("MOD(1, 3)",),
) -> Crasp:
    """Return a random counting program that depends on its counts, not on letter and position alone.

    `predicates` are the leaves that may speak about the position.
    """
    rng = random.Random(seed)
    words = np.indices((len(alphabet),) * min(length, 6)).reshape(min(length, 6), -1).T
    while True:
        maker = _Maker(rng, tuple(alphabet), predicates)
        result = maker.truth(depth, 3)
        spec = _crasp(alphabet, length, [*maker.lines, result], f"random counting program {seed}")
        true = spec.holds(words)
        shares = [true[words[:, t] == letter, t].mean() for t in range(words.shape[1]) for letter in set(words[:, t])]
        if any(0 < share < 1 for share in shares):
            return spec


def _crasp(alphabet: Sequence[str], length: int, lines: Sequence[str], name: str) -> Crasp:
    return Crasp.from_text("\n".join([f"alphabet: {' '.join(alphabet)}", f"length: {length}", *lines]), name)


class _Maker:
    """Generator of expressions as text: counts nested up to `depth`, other operators up to `height` in between."""

    def __init__(self, rng: random.Random, alphabet: Sequence[str], predicates: Sequence[str]) -> None:
        self.rng, self.alphabet, self.predicates = rng, alphabet, predicates
        self.lines: list[str] = []
        self.counts: list[tuple[int, str]] = []  # names, each with its largest nesting

    def truth(self, depth: int, height: int) -> str:
        rng = self.rng
        pick = rng.randrange(8) if height else 0
        if depth == 0 or pick == 0:
            leaf = f'"{rng.choice(self.alphabet)}"'
            return leaf if rng.random() < 0.8 else rng.choice([*self.predicates, "true", f"!{leaf}"])
        if pick < 5:
            sign = rng.choice(["=", "!=", "<", "<=", ">", ">="])
            return f"({self.number(depth, height - 1)} {sign} {self.number(depth, height - 1)})"
        if pick == 5:
            return f"!({self.truth(depth, height - 1)})"
        sign = rng.choice(["&", "|", "->", "<->"])
        return f"({self.truth(depth, height - 1)} {sign} {self.truth(depth, height - 1)})"

    def number(self, depth: int, height: int) -> str:
        rng = self.rng
        pick = rng.randrange(12) if height > 0 else rng.randrange(5)
        if pick == 0:
            return str(rng.randrange(4))
        if pick < 5:
            return self.count(depth)
        a, b = self.number(depth, height - 1), self.number(depth, height - 1)
        if pick < 8:
            return f"({a} {rng.choice('+-')} {b})"
        if pick == 8:
            return f"{rng.choice([-2, -1, 2, 3])} * ({a})"
        if pick == 9:
            return f"(({self.truth(depth, height - 1)}) ? {a} : {b})"
        return f"{rng.choice(['min', 'max'])}({a}, {b})"

    def count(self, depth: int) -> str:
        """Return a count, under a name that may be used again."""
        known = [name for nesting, name in self.counts if nesting <= depth]
        if known and self.rng.random() < 0.4:
            return self.rng.choice(known)
        text = f"#({self.truth(depth - 1, 2)})"
        name = f"n{len(self.lines)}"
        self.lines.append(f"{name} := {text}")
        self.counts.append((depth, name))
        return name


KIND = Kind(Crasp, {".crasp": "counting program"})
