"""Turing machines to build and test with."""

from __future__ import annotations

import numpy as np

from vitrify.spec.turing import Rule, TuringMachine


def increment(length: int = 8) -> TuringMachine:
    """Adds one to a binary number."""
    return TuringMachine.of(
        {
            "right": {"_": "_ L carry", "0": "0 R right", "1": "1 R right"},
            "carry": {"_": "1 S done", "0": "1 S done", "1": "0 L carry"},
        },
        start="right",
        halt=["done"],
        alphabet="01",
        length=length,
    )


def palindrome(length: int = 8) -> TuringMachine:
    """Says whether a word of a and b reads the same from both ends: it compares and erases the outermost letters."""
    rules = {
        "first": {"_": "_ S yes", "a": "_ R seek-a", "b": "_ R seek-b"},
        "back": {"_": "_ R first", "a": "a L back", "b": "b L back"},
    }
    for letter in "ab":
        other = "ba"["ab".index(letter)]
        rules |= {
            f"seek-{letter}": {"_": f"_ L last-{letter}", "a": f"a R seek-{letter}", "b": f"b R seek-{letter}"},
            f"last-{letter}": {"_": "_ S yes", letter: "_ L back", other: f"{other} S no"},
        }
    return TuringMachine.of(rules, start="first", halt=["yes", "no"], accept=["yes"], alphabet="ab", length=length)


def busy_beaver() -> TuringMachine:
    """The machine of four states and two symbols that runs longest on an empty tape: 107 steps, 13 ones."""
    return TuringMachine.of(
        {
            "A": {"0": "1 R B", "1": "1 L B"},
            "B": {"0": "1 L A", "1": "0 L C"},
            "C": {"0": "1 R H", "1": "1 L D"},
            "D": {"0": "1 R D", "1": "0 R A"},
        },
        start="A",
        halt=["H"],
        blank="0",
        alphabet="1",
        length=0,
    )


def random_machine(
    seed: int, states: int, symbols: int, *, halting: float = 0.0, length: int = 6, steps: int = 200
) -> TuringMachine:
    """Random rules over so many states and symbols, the blank among them; a share of the rules halts."""
    rng = np.random.default_rng(seed)
    tape = [str(symbol) for symbol in range(symbols)]
    names = [f"q{state}" for state in range(states)]
    rules = []
    for state in names:
        for read in tape:
            to = "halt" if rng.random() < halting else str(rng.choice(names))
            rules.append(
                Rule(state, read, str(rng.choice(tape)), str(rng.choice(["L", "S", "R"], p=[0.45, 0.1, 0.45])), to)
            )
    letters = max(1, symbols // 2)
    return TuringMachine(
        names[0],
        tuple(rules),
        ("halt",),
        tuple(tape[1 : 1 + letters]),
        tape[0],
        tuple(tape[1 + letters :]),
        length=length,
        steps=steps,
    )
