"""Languages that counters recognise, as counting programs: majority, brackets, stateless counter machines, random."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from vitrify.errors import SpecError
from vitrify.spec.crasp import Crasp


def majority(letter: str, alphabet: Sequence[str], length: int) -> Crasp:
    """Whether a letter makes up more than half of the word."""
    return _crasp(alphabet, length, [f'2 * #"{letter}" > #true'], "majority")


def dyck1(length: int, opening: str = "(", closing: str = ")") -> Crasp:
    """Whether brackets of one kind are balanced."""
    return shuffle_dyck([(opening, closing)], length, "balanced brackets")


def shuffle_dyck(pairs: Sequence[tuple[str, str]], length: int, name: str = "shuffled brackets") -> Crasp:
    """Whether brackets of each kind, by themselves, are balanced: kinds may cross."""
    heights = [f'h{k} := #"{opening}" - #"{closing}"' for k, (opening, closing) in enumerate(pairs)]
    below = " | ".join(f"h{k} < 0" for k in range(len(pairs)))
    level = " & ".join(f"h{k} = 0" for k in range(len(pairs)))
    letters = [letter for pair in pairs for letter in pair]
    return _crasp(letters, length, [*heights, f"#({below}) = 0 & {level}"], name)


def stateless_counters(moves: Mapping[str, Sequence[int]], accepting: Collection[Sequence[bool]], length: int) -> Crasp:
    """A stateless counter machine: each letter adds a vector to the counters; which of them are zero decides.

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


def random_counting(seed: int, depth: int = 3, *, alphabet: Sequence[str] = "abc", length: int = 12) -> Crasp:
    """A random counting program whose counts, nested to a depth at most, decide: letter and place alone do not."""
    rng = random.Random(seed)
    words = np.indices((len(alphabet),) * min(length, 6)).reshape(min(length, 6), -1).T
    while True:
        maker = _Maker(rng, tuple(alphabet))
        result = maker.truth(depth, 3)
        made = _crasp(alphabet, length, [*maker.lines, result], f"random counting program {seed}")
        true = made.holds(words)
        shares = [true[words[:, t] == letter, t].mean() for t in range(words.shape[1]) for letter in set(words[:, t])]
        if any(0 < share < 1 for share in shares):
            return made


def _crasp(alphabet: Sequence[str], length: int, lines: Sequence[str], name: str) -> Crasp:
    return Crasp.from_text("\n".join([f"alphabet: {' '.join(alphabet)}", f"length: {length}", *lines]), name)


class _Maker:
    """Expressions, as text: counts nested to a `depth`, other operators to a `height` between two of them."""

    def __init__(self, rng: random.Random, alphabet: Sequence[str]) -> None:
        self.rng, self.alphabet = rng, alphabet
        self.lines: list[str] = []
        self.counts: list[tuple[int, str]] = []  # names, with the nesting that they have at most

    def truth(self, depth: int, height: int) -> str:
        rng = self.rng
        pick = rng.randrange(8) if height else 0
        if depth == 0 or pick == 0:
            leaf = f'"{rng.choice(self.alphabet)}"'
            return leaf if rng.random() < 0.8 else rng.choice(["MOD(1, 3)", "true", f"!{leaf}"])
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
        """A count, under a name that may be used again."""
        known = [name for nesting, name in self.counts if nesting <= depth]
        if known and self.rng.random() < 0.4:
            return self.rng.choice(known)
        text = f"#({self.truth(depth - 1, 2)})"
        name = f"n{len(self.lines)}"
        self.lines.append(f"{name} := {text}")
        self.counts.append((depth, name))
        return name
