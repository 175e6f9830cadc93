r"""Turing machines with one tape, infinite both ways; `.tm.toml` files.

    start = "right"
    halt = ["done"]             # and accept = […], those of them that say yes
    blank = "_"
    alphabet = ["0", "1"]       # the letters of inputs; marks = […] are other symbols of the tape
    length = 8                  # of the longest input
    steps = 20                  # may be left out where the machine halts

    [states.right]              # read = "write move next"
    0 = "0 R right"
    1 = "1 R right"
    _ = "_ L carry"
    …

The head stands on the first letter of the input. In each step it writes a symbol, moves left (L), right (R) or not at
all (S), and goes to the next state; in a state of `halt` it stops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from itertools import chain, islice, product
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np

from vitrify.errors import BuildRefused, InputError, Problem
from vitrify.spec.display import Displayed
from vitrify.spec.files import refuse_any
from vitrify.spec.ngram import BEGIN, END
from vitrify.spec.toml_files import Keys, TomlFile

MOVES = {"L": -1, "S": 0, "R": 1}
PATIENCE = 10_000  # steps after which a machine without a limit is taken not to halt
INPUTS = 5_000  # on so many inputs at most a machine is run to see how long it takes


class Rule(NamedTuple):
    """What a machine does in a state when it reads a symbol: write, move, go to a state."""

    state: str
    read: str
    write: str
    move: str
    to: str

    @property
    def step(self) -> str:
        """The step as one word: what is written, the move, the next state."""
        return f"{self.write},{self.move},{self.to}"


@dataclass(frozen=True)
class TuringMachine(Displayed):
    """A deterministic machine; as a chain of thought it writes its steps.

    >>> flip = TuringMachine.of(
    ...     {"go": {"0": "1 R go", "1": "0 R go", "_": "_ S end"}}, start="go", halt=["end"], alphabet="01")
    >>> flip.thought("10", 9)
    ('0,R,go', '1,R,go', '_,S,end')
    >>> flip.conclusion("10", flip.thought("10", 9))["tape"]
    '0 1'
    """

    start: str
    rules: tuple[Rule, ...]
    halt: tuple[str, ...]
    alphabet: tuple[str, ...]
    blank: str = "_"
    marks: tuple[str, ...] = ()
    accept: tuple[str, ...] = ()
    length: int = 8
    steps: int | None = None
    source: InitVar[TomlFile | None] = None
    suffix: ClassVar[str] = ".tm.toml"

    def __post_init__(self, source: TomlFile | None) -> None:
        refuse_any(source.problem(*found) if source else Problem(found[1]) for found in _problems(self))

    @classmethod
    def of(cls, rules: Mapping[str, Mapping[str, str]], **others: object) -> TuringMachine:
        """From rules `{state: {read: "write move next"}}`."""
        listed = tuple(Rule(s, read, *text.split()) for s, row in rules.items() for read, text in row.items())
        named = {key: tuple(v) if isinstance(v, list) or key == "alphabet" else v for key, v in others.items()}  # type: ignore[arg-type]
        return cls(rules=listed, **named)  # type: ignore[arg-type]

    @classmethod
    def read(cls, path: str | Path) -> TuringMachine:
        """The machine of a `.tm.toml` file."""
        from vitrify.spec.turing_files import read_machine

        return read_machine(Path(path))

    def write(self, path: str | Path) -> None:
        """Write a `.tm.toml` file that reads back as this value."""
        from vitrify.spec.turing_files import machine_text

        Path(path).write_text(machine_text(self), encoding="utf-8", newline="\n")

    # What it means

    @cached_property
    def working(self) -> tuple[str, ...]:
        """The states in which it goes on."""
        return tuple(dict.fromkeys(rule.state for rule in self.rules))

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols of the tape."""
        return (self.blank, *self.alphabet, *self.marks)

    @cached_property
    def _table(self) -> dict[tuple[str, str], Rule]:
        return {(rule.state, rule.read): rule for rule in self.rules}

    def run(self, word: Sequence[str]) -> Iterator[Rule]:
        """The rules that it follows on an input, one after the other; they may never end."""
        strange = sorted(set(word) - set(self.alphabet))
        if strange:
            raise InputError(f"{', '.join(map(repr, strange))}: an input has the letters {' '.join(self.alphabet)}")
        tape = dict(enumerate(word))
        state, head = self.start, 0
        while state not in self.halt:
            rule = self._table[state, tape.get(head, self.blank)]
            yield rule
            tape[head] = rule.write
            head, state = head + MOVES[rule.move], rule.to

    @cached_property
    def limit(self) -> int:
        """The steps that it may take: as many as the file says, or as it takes on all inputs to the length."""
        if self.steps is not None:
            return self.steps
        if sum(len(self.alphabet) ** n for n in range(self.length + 1)) > INPUTS:
            raise BuildRefused(
                f"the machine says no step limit, and it has more than {INPUTS} inputs to try: add steps = …, or make "
                "the length smaller"
            )
        most = 1
        for word in self.prompts():
            taken = sum(1 for _ in islice(self.run(word), PATIENCE + 1))
            if taken > PATIENCE:
                shown = " ".join(word) or "nothing"
                raise BuildRefused(
                    f"the machine says no step limit, and on the input {shown} it does not halt within {PATIENCE} "
                    "steps: add steps = …"
                )
            most = max(most, taken)
        return most

    # As a chain of thought

    @cached_property
    def written(self) -> tuple[str, ...]:
        """Its different steps."""
        return tuple(dict.fromkeys(rule.step for rule in self.rules))

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """The letters, and the steps after which it goes on."""
        return (*self.alphabet, *dict.fromkeys(rule.step for rule in self.rules if rule.to not in self.halt))

    def prompt_length(self, words: Sequence[str]) -> int:
        """The letters at the beginning are the input."""
        return next((place for place, word in enumerate(words) if word not in self.alphabet), len(words))

    def thought(self, prompt: Sequence[str], most: int) -> tuple[str, ...]:
        """The first steps on an input."""
        return tuple(rule.step for rule in islice(self.run(prompt), most))

    def prompts(self) -> Iterator[tuple[str, ...]]:
        """All inputs to the length."""
        return chain.from_iterable(product(self.alphabet, repeat=n) for n in range(self.length + 1))

    def draw_prompt(self, rng: np.random.Generator) -> tuple[str, ...]:
        """A random input of a random length; half of them are palindromes."""
        word = rng.integers(len(self.alphabet), size=rng.integers(self.length + 1)).tolist()
        word = word[: (len(word) + 1) // 2] + word[: len(word) // 2][::-1] if rng.random() < 0.5 else word
        return tuple(self.alphabet[letter] for letter in word)

    def conclusion(self, prompt: Sequence[str], thought: Sequence[str]) -> dict[str, str]:
        """The state, the tape and how far it came after the steps of a thought."""
        tape, head, state = dict(enumerate(prompt)), 0, self.start
        for step in thought:
            tape[head], move, state = step.split(",")
            head += MOVES[move]
        said = {"state": state, "halted": "yes" if state in self.halt else "no"}
        if self.accept and state in self.halt:
            said["accepted"] = "yes" if state in self.accept else "no"
        cells = [cell for cell, symbol in tape.items() if symbol != self.blank]
        shown = [tape.get(cell, self.blank) for cell in range(min(cells), max(cells) + 1)] if cells else []
        return said | {"tape": " ".join(shown)}


def _problems(machine: TuringMachine) -> Iterator[tuple[Keys, str]]:
    """Every broken rule of a machine, with the key that breaks it."""
    symbols, working = machine.symbols, machine.working
    known = {*working, *machine.halt}
    for key in ("length", "steps"):
        value = getattr(machine, key)
        least = 0 if key == "length" else 1
        if value is not None and value < least:
            yield (key,), f"{key} must be a whole number from {least}, is {value}"
    if machine.start not in working:
        what = "is one in which it stops" if machine.start in machine.halt else "has no rules"
        yield ("start",), f"the start state {machine.start!r} {what}: it must be one of {' '.join(working)}"
    for key in ("alphabet", "marks"):
        for symbol in getattr(machine, key):
            if symbols.count(symbol) > 1:
                yield (key,), f"the symbol {symbol!r} has several meanings: the blank, letters and marks must differ"
    for key, names in (("blank", [machine.blank]), ("alphabet", machine.alphabet), ("marks", machine.marks)):
        yield from (((key,), message) for message in _odd(names, "a symbol"))
    for key, names in (("halt", machine.halt), ("accept", machine.accept)):
        yield from (((key,), message) for message in _odd(names, "a state"))
    yield from ((("halt",), f"{s!r} stops, so it has no rules") for s in machine.halt if s in working)
    yield from (
        (("accept",), f"{s!r} accepts, so it must be one of halt") for s in machine.accept if s not in machine.halt
    )
    for state in working:
        yield from ((("states", state), message) for message in _odd([state], "a state"))
        read = [rule.read for rule in machine.rules if rule.state == state]
        missing = [symbol for symbol in symbols if symbol not in read]
        if missing:
            yield ("states", state), f"the state {state!r} has no rule for {', '.join(map(repr, missing))}"
    for rule in machine.rules:
        yield from ((("states", rule.state, rule.read), message) for message in _odd_rule(rule, symbols, known))


def _odd_rule(rule: Rule, symbols: Sequence[str], known: set[str]) -> Iterator[str]:
    for what, symbol in (("reads", rule.read), ("writes", rule.write)):
        if symbol not in symbols:
            yield f"a rule of {rule.state!r} {what} {symbol!r}, which is not on the tape: add it to marks"
    if rule.move not in MOVES:
        yield f"a rule of {rule.state!r} moves {rule.move!r}: it must be L, R or S"
    if rule.to not in known:
        yield f"a rule of {rule.state!r} goes to {rule.to!r}, which has no rules and is not one of halt"


def _odd(names: Sequence[str], what: str) -> Iterator[str]:
    for name in names:
        if not name or "," in name or name.split() != [name] or name in (BEGIN, END):
            yield f"the name of {what} is a word without blanks and commas, and neither {BEGIN} nor {END}: {name!r}"
