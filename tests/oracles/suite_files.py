"""Samples of FLaRe languages and Chomsky-hierarchy tasks in the layouts of their files, without vitrify.

Every language has a test of membership and a sampler of members; strings outside of it are edited members and random
strings. Every task has a sampler of an input of a length with its output, as numbers of symbols.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

Words = list[str]


def bits(rng: random.Random, size: int) -> Words:
    return [rng.choice("01") for _ in range(size)]


def binary(number: int, size: int = 1) -> Words:
    """Return a number with the lowest bit first, filled up with zeros."""
    return list(format(number, "b")[::-1].ljust(size, "0"))


def number(word: Words) -> int | None:
    return int("".join(word)[::-1], 2) if word and set(word) <= {"0", "1"} else None


def split(word: Words, *signs: str) -> list[Words] | None:
    """Return the parts of a word between signs that occur once each and in this order; None for other words."""
    if any(word.count(sign) != 1 for sign in signs):
        return None
    places = [-1, *map(word.index, signs), len(word)]
    if places != sorted(places):
        return None
    return [word[a + 1 : b] for a, b in pairwise(places)]


# Languages of FLaRe: membership


def stack_after(word: Words) -> Words | None:
    """Return the stack after bits and then POP and PUSH with a bit, the top first; None if an action is impossible."""
    text = " ".join(word).replace("PUSH ", "PUSH")
    begin = [symbol for symbol in text.split(" ") if symbol]
    stack: Words = []
    for number, symbol in enumerate(begin):
        if symbol == "POP" and stack:
            stack.pop()
        elif symbol in ("PUSH0", "PUSH1"):
            stack.append(symbol[-1])
        elif symbol in ("0", "1") and set(begin[:number]) <= {"0", "1"}:
            stack.append(symbol)
        else:
            return None
    return stack[::-1]


def value_of(word: Words) -> int:
    """Return the value of an expression from left to right, modulo 5."""
    text = "(" * (len(word) // 2) + word[0]
    for sign, digit in zip(word[1::2], word[2::2], strict=True):
        text += f"{sign}{digit})"
    return int(eval(text)) % 5


def evaluates(word: Words) -> bool:
    parts = split(word, "=")
    if not parts or len(parts[1]) != 1 or parts[1][0] not in "01234":
        return False
    left = parts[0]
    ordered = all((symbol in "01234") == (place % 2 == 0) for place, symbol in enumerate(left))
    return len(left) % 2 == 1 and ordered and value_of(left) == int(parts[1][0])


BRACKETS = {"(0": "(", ")0": ")", "(1": "[", ")1": "]"}


def nested(word: Words, depth: int = 3) -> bool:
    text, rounds = "".join(map(BRACKETS.__getitem__, word)), 0
    deepest = level = 0
    for symbol in text:
        level += 1 if symbol in "([" else -1
        deepest = max(deepest, level)
    while ("()" in text or "[]" in text) and rounds <= len(word):
        text, rounds = text.replace("()", "").replace("[]", ""), rounds + 1
    return not text and deepest <= depth


def moved(word: Words) -> int:
    return (word.count(">") - word.count("<")) % 5


def cycle(word: Words) -> bool:
    return bool(word) and not set(word[:-1]) & set("01234") and word[-1] == str(moved(word[:-1]))


def pair(word: Words, change: Callable[[Words], Words]) -> bool:
    parts = split(word, "#")
    return parts is not None and change(parts[0]) == parts[1]


def odd_first(word: Words) -> Words:
    return word[::2] + word[1::2]


def missing(word: Words) -> bool:
    half = len(word) // 2
    filled = ["1" if symbol == "_" else symbol for symbol in word]
    return word.count("_") == 1 and filled == 2 * filled[:half]


def sums(word: Words, sign: str, result: Callable[[int, int], int]) -> bool:
    parts = split(word, sign, "=")
    values = [number(part) for part in parts or []]
    return bool(parts) and None not in values and result(values[0], values[1]) == values[2]  # type: ignore[arg-type]


def root(word: Words) -> bool:
    parts = split(word, "=")
    values = [number(part) for part in parts or []]
    return bool(parts) and None not in values and math.isqrt(values[0] or 0) == values[1]


# Languages of FLaRe: members of about a size


def some_cycle(rng: random.Random, size: int) -> Words:
    moves = rng.choices("><=", k=max(0, size - 1))
    return [*moves, str(moved(moves))]


def some_expression(rng: random.Random, size: int) -> Words:
    word = [rng.choice("01234")]
    for _ in range(max(0, size - 3) // 2):
        word += [rng.choice("+-*"), rng.choice("01234")]
    return [*word, "=", str(value_of(word))]


def some_brackets(rng: random.Random, size: int, depth: int = 3) -> Words:
    word: Words = []
    stack: Words = []
    for left in range(size // 2 * 2, 0, -1):
        if stack and (len(stack) == left or len(stack) == depth or rng.random() < 0.5):
            word.append(stack.pop())
        else:
            opening, closing = rng.choice((("(0", ")0"), ("(1", ")1")))
            word.append(opening)
            stack.append(closing)
    return word


def some_stack(rng: random.Random, size: int) -> Words:
    word = bits(rng, rng.randint(0, size // 3))
    for _ in range(rng.randint(0, size // 6)):
        word += rng.choice((["POP"] if stack_after(word) else [], ["PUSH", rng.choice("01")]))
    return [*word, "#", *(stack_after(word) or [])]


def some_pair(change: Callable[[Words], Words], symbols: str = "01") -> Callable[[random.Random, int], Words]:
    def some(rng: random.Random, size: int) -> Words:
        word = rng.choices(symbols, k=max(0, size - 1) // 2)
        return [*word, "#", *change(word)]

    return some


def some_missing(rng: random.Random, size: int) -> Words:
    word = bits(rng, max(1, size // 2))
    word[rng.randrange(len(word))] = "1"
    hole = rng.choice([place for place, bit in enumerate(2 * word) if bit == "1"])
    return ["_" if place == hole else bit for place, bit in enumerate(2 * word)]


def some_sum(sign: str, result: Callable[[int, int], int]) -> Callable[[random.Random, int], Words]:
    def some(rng: random.Random, size: int) -> Words:
        half = max(1, (size - 2) // 4)
        left, right = bits(rng, rng.randint(1, half)), bits(rng, rng.randint(1, half))
        value = result(number(left) or 0, number(right) or 0)
        fill = max(1, size - 2 - len(left) - len(right)) if rng.random() < 0.3 else 1
        return [*left, sign, *right, "=", *binary(value, fill)]

    return some


def some_root(rng: random.Random, size: int) -> Words:
    word = bits(rng, max(1, (size - 1) * 2 // 3))
    return [*word, "=", *binary(math.isqrt(number(word) or 0))]


def accepted(rng: random.Random, size: int, member: Callable[[Words], bool]) -> Words:
    """Return a random string of bits that is a member, of this length or the nearest that has one."""
    while True:
        for _ in range(64):
            if member(word := bits(rng, size)):
                return word
        size = max(1, size - 1)


Member = Callable[[Words], bool]
LANGUAGES: dict[str, tuple[list[str], Member, Callable[[random.Random, int], Words]]] = {}


def language(name: str, alphabet: str | list[str], member: Member, some: object = None) -> None:
    sampler = some or (lambda rng, size: accepted(rng, size, member))
    LANGUAGES[name] = (list(alphabet), member, sampler)  # type: ignore[assignment]


language("even-pairs", "01", lambda w: not w or w[0] == w[-1])
language("repeat-01", "01", lambda w: w == ["0", "1"] * (len(w) // 2), lambda _, size: ["0", "1"] * (size // 2))
language("parity", "01", lambda w: w.count("1") % 2 == 1)
language("cycle-navigation", "><=01234", cycle, some_cycle)
language("modular-arithmetic-simple", "01234+-*=", evaluates, some_expression)
language("dyck-2-3", [*BRACKETS], nested, some_brackets)
language("first", "01", lambda w: w[:1] == ["1"])
language("majority", "01", lambda w: w.count("1") > w.count("0"))
language(
    "stack-manipulation", ["0", "1", "POP", "PUSH", "#"], lambda w: (parts := split(w, "#")) is not None
    and stack_after(parts[0]) == parts[1], some_stack,
)  # fmt: skip
language("marked-reversal", "01#", lambda w: pair(w, lambda u: u[::-1]), some_pair(lambda u: u[::-1]))
language(
    "unmarked-reversal", "01", lambda w: len(w) % 2 == 0 and w == w[::-1],
    lambda rng, size: (half := bits(rng, size // 2)) + half[::-1],
)  # fmt: skip
language("marked-copy", "01#", lambda w: pair(w, lambda u: u), some_pair(lambda u: u))
language("missing-duplicate-string", "01_", missing, some_missing)
language("odds-first", "01#", lambda w: pair(w, odd_first), some_pair(odd_first))
language("binary-addition", "01+=", lambda w: sums(w, "+", int.__add__), some_sum("+", int.__add__))
language("binary-multiplication", "01×=", lambda w: sums(w, "×", int.__mul__), some_sum("×", int.__mul__))
language("compute-sqrt", "01=", root, some_root)
language("bucket-sort", "12345#", lambda w: pair(w, sorted), some_pair(sorted, "12345"))


def strings(name: str, rng: random.Random, count: int, longest: int) -> list[tuple[Words, bool]]:
    """Return strings up to a length with their labels: members, edited members, and random strings."""
    alphabet, member, some = LANGUAGES[name]
    words: list[Words] = [[]]
    while len(words) < count:
        word = some(rng, rng.randint(1, longest))
        kind = rng.random()
        if kind > 0.75:
            word = rng.choices(alphabet, k=rng.randint(1, longest))
        elif kind > 0.4:
            for _ in range(rng.randint(1, 2)):
                place = rng.randrange(len(word) + 1)
                word = word[:place] + rng.choices(alphabet, k=rng.randint(0, 1)) + word[place + rng.randint(0, 1) :]
        if len(word) <= longest:
            words.append(word)
    return [(word, member(word)) for word in words]


def write_language(folder: Path, name: str, count: int, longest: int, seed: int = 0) -> list[tuple[Words, bool]]:
    """Write the folder of a language with two splits, and return all strings with their labels."""
    rows: list[tuple[Words, bool]] = []
    for split_seed, part in enumerate((folder / name, folder / name / "datasets" / "validation")):
        part.mkdir(parents=True, exist_ok=True)
        found = strings(name, random.Random(f"{name} {seed} {split_seed}"), count, longest)
        (part / "main.tok").write_text("".join(f"{' '.join(word)}\n" for word, _ in found), encoding="utf-8")
        (part / "labels.txt").write_text("".join(f"{int(label)}\n" for _, label in found), encoding="utf-8")
        rows += found
    return rows


# Tasks of the Chomsky-hierarchy suite

Numbers = list[int]


def draw(rng: random.Random, symbols: int, size: int) -> Numbers:
    return [rng.randrange(symbols) for _ in range(size)]


def task_expression(rng: random.Random, size: int) -> tuple[Numbers, Numbers]:
    word = [rng.randrange(5, 8) if place % 2 else rng.randrange(5) for place in range(size)]
    return word, [eval("".join("01234+-*"[symbol] for symbol in word)) % 5]


def task_stack(rng: random.Random, size: int) -> tuple[Numbers, Numbers]:
    cut = rng.randint(1, size)
    word = draw(rng, 2, cut) + [2 + symbol for symbol in draw(rng, 3, size - cut)]
    stack: Numbers = []
    for symbol in word:
        stack = stack[:-1] if symbol == 2 else [*stack, symbol % 3 if symbol > 2 else symbol]
    return word, [*stack[::-1], 2, *[0] * (size - len(stack))]


def brackets(rng: random.Random, size: int, signs: int = 3) -> str:
    """Return an expression of a length in which every operation has brackets."""
    digit = str(rng.randrange(5))
    if size < 5:
        return {1: digit, 2: f"-{digit}", 3: f"({digit})", 4: f"(-{digit})"}[size]
    left = rng.randint(1, size - 4)
    return f"({brackets(rng, left, signs)}{'+-*'[rng.randrange(signs)]}{brackets(rng, size - 3 - left, signs)})"


def symbols_of(text: str, symbols: str) -> Numbers:
    return [symbols.index(symbol) for symbol in text]


def task_brackets(rng: random.Random, size: int) -> tuple[Numbers, Numbers]:
    text = brackets(rng, size)
    return symbols_of(text, "01234+-*()"), [eval(text) % 5]


def task_equation(rng: random.Random, size: int) -> tuple[Numbers, Numbers]:
    """Return an equation of + and -, in which one digit is written as x."""
    text = brackets(rng, size - 2, 2)
    place = rng.choice([place for place, symbol in enumerate(text) if symbol in "01234"])
    equation = f"{text[:place]}x{text[place + 1 :]}={eval(text) % 5}"
    return symbols_of(equation, "01234+-()x="), [int(text[place])]


def task_missing(rng: random.Random, size: int) -> tuple[Numbers, Numbers]:
    word = 2 * draw(rng, 2, size // 2)
    place = rng.randrange(len(word))
    return [*word[:place], 2, *word[place + 1 :], *[3] * (size % 2)], [word[place]]


def task_sum(result: Callable[[int, int], int]) -> Callable[[random.Random, int], tuple[Numbers, Numbers]]:
    def task(rng: random.Random, size: int) -> tuple[Numbers, Numbers]:
        cut = rng.randint(1, size - 2)
        left, right = rng.randint(1, 2**cut - 1), rng.randint(1, 2 ** (size - 1 - cut) - 1)
        word = [*binary(left, cut), "2", *binary(right, size - 1 - cut)]
        value = binary(result(left, right))
        return [*map(int, word)], [*map(int, value), 2, *[0] * (size - len(value) - (result(1, 1) == 1))]

    return task


def task_root(rng: random.Random, size: int) -> tuple[Numbers, Numbers]:
    word = draw(rng, 2, size)
    value = math.isqrt(int("".join(map(str, word)), 2))
    return word, [int(bit) for bit in format(value, "b").zfill((size + 1) // 2)]


def mapped(
    symbols: int, change: Callable[[Numbers], Numbers]
) -> Callable[[random.Random, int], tuple[Numbers, Numbers]]:
    def task(rng: random.Random, size: int) -> tuple[Numbers, Numbers]:
        word = draw(rng, symbols, size)
        return word, change(word)

    return task


TASKS: dict[str, tuple[int, int, Callable[[random.Random, int], tuple[Numbers, Numbers]]]] = {
    # symbols of inputs and outputs, and the sampler
    "even_pairs": (2, 2, mapped(2, lambda w: [int(w[0] != w[-1])])),
    "modular_arithmetic": (9, 5, task_expression),
    "parity_check": (2, 2, mapped(2, lambda w: [sum(w) % 2])),
    "cycle_navigation": (3, 5, mapped(3, lambda w: [(w.count(2) - w.count(0)) % 5])),
    "stack_manipulation": (5, 3, task_stack),
    "reverse_string": (2, 2, mapped(2, lambda w: w[::-1])),
    "modular_arithmetic_brackets": (11, 5, task_brackets),
    "solve_equation": (11, 5, task_equation),
    "duplicate_string": (2, 2, mapped(2, lambda w: w + w)),
    "missing_duplicate_string": (4, 2, task_missing),
    "odds_first": (2, 2, mapped(2, lambda w: w[1::2] + w[::2])),
    "binary_addition": (3, 3, task_sum(int.__add__)),
    "binary_multiplication": (3, 3, task_sum(int.__mul__)),
    "compute_sqrt": (2, 2, task_root),
    "bucket_sort": (5, 5, mapped(5, sorted)),
}
SCALAR = {"even_pairs", "modular_arithmetic", "parity_check", "cycle_navigation"} | {
    "modular_arithmetic_brackets", "solve_equation", "missing_duplicate_string",
}  # fmt: skip


def write_task(folder: Path, name: str, size: int, count: int, seed: int = 0) -> None:
    """Write a one-hot batch of a task with inputs of one length, as `name-size.npz`; scalar outputs have two axes."""
    symbols, outputs, sampler = TASKS[name]
    rng = random.Random(f"{name} {size} {seed}")
    pairs = [sampler(rng, size) for _ in range(count)]
    inputs = np.eye(symbols, dtype=np.float32)[[word for word, _ in pairs]]
    results = np.eye(outputs, dtype=np.float32)[[answer for _, answer in pairs]]
    (folder / name).mkdir(parents=True, exist_ok=True)
    np.savez(folder / name / f"{size}.npz", input=inputs, output=results[:, 0] if name in SCALAR else results)


def write_objects(path: Path, rows: list[dict[str, object]]) -> None:
    """Write JSON lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
