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

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from itertools import chain, groupby, islice, product
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from vitrify.errors import BuildRefused, InputError, Problem
from vitrify.parameters import Fault, Help, Within
from vitrify.spec.computation.thought import Thinking
from vitrify.spec.formats.data import DataFile, json_text, read_data
from vitrify.spec.formats.text import refuse_any
from vitrify.spec.kinds import Kind
from vitrify.spec.ngrams.model import BEGIN, END

MOVES = {"L": -1, "S": 0, "R": 1}
MAX_STEPS = 10_000  # after which a machine without a limit is assumed not to halt
MAX_SIZE = 10**9  # of a length, and of a number of steps: positions stay whole numbers of 64 bits
MAX_INPUTS = 5_000  # on which a machine is run to find its number of steps
MAX_EXPLORED = 200_000  # steps in the search for inputs that take every rule
ORDER = ("start", "halt", "accept", "blank", "alphabet", "marks", "length", "steps")
BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class MachineFile:
    """Fields of a `.tm.toml` file."""

    start: str
    halt: tuple[str, ...]
    blank: str
    alphabet: tuple[str, ...]
    length: int
    states: Annotated[Mapping[str, Mapping[str, str]], Within(1), Help("a table [states.NAME] of rules for each state")]
    accept: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    steps: int | None = None


class MachineRule(NamedTuple):
    """A transition: in a state, on a symbol, write, move, and go to a state."""

    state: str
    read: str
    write: str
    move: str
    to: str

    @property
    def step(self) -> str:
        """Step as one word: the symbol written, the move, the next state."""
        return f"{self.write},{self.move},{self.to}"


class OneTapeMachine:
    """The states, symbols and steps of a machine with one tape, from its rules."""

    start: str
    rules: tuple[Any, ...]  # each has the fields of a MachineRule, and perhaps others
    halt: tuple[str, ...]
    alphabet: tuple[str, ...]
    blank: str
    marks: tuple[str, ...]

    @cached_property
    def working(self) -> tuple[str, ...]:
        """States in which the machine continues."""
        return tuple(dict.fromkeys(rule.state for rule in self.rules))

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols of the tape."""
        return (self.blank, *self.alphabet, *self.marks)

    @cached_property
    def written(self) -> tuple[str, ...]:
        """Different steps of the machine."""
        return tuple(dict.fromkeys(rule.step for rule in self.rules))

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """Letters, and the steps after which the machine continues."""
        return (*self.alphabet, *dict.fromkeys(rule.step for rule in self.rules if rule.to not in self.halt))


@dataclass(frozen=True)
class TuringMachine(OneTapeMachine, Thinking):
    """A deterministic machine; as a chain of thought it writes its steps.

    >>> flip = TuringMachine.of(
    ...     {"go": {"0": "1 R go", "1": "0 R go", "_": "_ S end"}}, start="go", halt=["end"], alphabet="01")
    >>> flip.thought("10", 9)
    ('0,R,go', '1,R,go', '_,S,end')
    >>> flip.conclusion("10", flip.thought("10", 9))["tape"]
    '0 1'
    """

    start: str
    rules: tuple[MachineRule, ...]
    halt: tuple[str, ...]
    alphabet: tuple[str, ...]
    blank: str = "_"
    marks: tuple[str, ...] = ()
    accept: tuple[str, ...] = ()
    length: int = 8
    steps: int | None = None
    source: InitVar[DataFile | None] = None
    suffix: ClassVar[str] = ".tm.toml"

    def __post_init__(self, source: DataFile | None) -> None:
        refuse_any(source.problem(*fault) if source else Problem(fault[1]) for fault in _problems(self))

    @classmethod
    def of(cls, rules: Mapping[str, Mapping[str, str]], **others: object) -> TuringMachine:
        """Return the machine of rules `{state: {read: "write move next"}}`."""
        listed = tuple(MachineRule(s, read, *text.split()) for s, row in rules.items() for read, text in row.items())
        named = {key: tuple(v) if isinstance(v, list) or key == "alphabet" else v for key, v in others.items()}  # type: ignore[arg-type]
        return cls(rules=listed, **named)  # type: ignore[arg-type]

    @classmethod
    def read(cls, path: str | Path) -> TuringMachine:
        file = read_data(Path(path), cls.suffix)
        parts, problems = file.parts(MachineFile)
        tables = file.data.get("states")
        rows = tables.items() if isinstance(tables, dict) else ()
        texts = [(s, read, str(text).split()) for s, row in rows if isinstance(row, dict) for read, text in row.items()]
        problems += [
            file.problem(("states", state, read), f'a rule is a text "write move next", not {" ".join(words)!r}')
            for state, read, words in texts
            if len(words) != 3
        ]
        refuse_any(problems)
        del parts["states"]
        return cls(source=file, rules=tuple(MachineRule(state, read, *words) for state, read, words in texts), **parts)

    def to_text(self) -> str:
        values = {key: getattr(self, key) for key in ORDER}
        shown = {key: value for key, value in values.items() if key == "halt" or value not in ((), None)}
        lines = [f"{key} = {json_text(value)}" for key, value in shown.items()]
        rules = sorted(self.rules, key=lambda rule: self.working.index(rule.state))
        rows = [(rule.state, rule.read, f"{rule.write} {rule.move} {rule.to}") for rule in rules]
        return "".join(f"{line}\n" for line in (*lines, *table_text(rows)))

    @classmethod
    def samples(cls) -> dict[str, TuringMachine]:
        return {"increment": increment(3), "random": random_machine(0, 3, 3, length=4, steps=9)}

    # Meaning

    @cached_property
    def _table(self) -> dict[tuple[str, str], MachineRule]:
        return {(rule.state, rule.read): rule for rule in self.rules}

    def run(self, word: Sequence[str]) -> Iterator[MachineRule]:
        """Yield the transitions on an input, one after the other; they may never end."""
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
        """Largest number of steps: as given in the file, or as needed on all inputs up to the length."""
        if self.steps is not None:
            return self.steps
        if sum(1 for _ in islice(self.prompts(), MAX_INPUTS + 1)) > MAX_INPUTS:
            raise BuildRefused(
                f"the machine has no step limit, and more than {MAX_INPUTS} inputs to try: add steps = …, or make "
                "the length smaller"
            )
        most = 1
        for word in self.prompts():
            taken = sum(1 for _ in islice(self.run(word), MAX_STEPS + 1))
            if taken > MAX_STEPS:
                shown = " ".join(word) or "nothing"
                raise BuildRefused(
                    f"the machine says no step limit, and on the input {shown} it does not halt within {MAX_STEPS} "
                    "steps: add steps = …"
                )
            most = max(most, taken)
        return most

    # As a chain of thought

    def following(self, state: str, read: str) -> str:
        """Return the step of the rule for a state and a symbol."""
        return self._table[state, read].step

    def prompt_length(self, words: Sequence[str]) -> int:
        """Return the number of letters at the beginning, which are the input."""
        return next((index for index, word in enumerate(words) if word not in self.alphabet), len(words))

    def thought(self, prompt: Sequence[str], most: int) -> tuple[str, ...]:
        """Return the first steps on an input."""
        return tuple(rule.step for rule in islice(self.run(prompt), most))

    def prompts(self) -> Iterator[tuple[str, ...]]:
        """Return all inputs up to the length."""
        longest = self.length if self.alphabet else 0
        return chain.from_iterable(product(self.alphabet, repeat=n) for n in range(longest + 1))

    @cached_property
    def covering_prompts(self) -> tuple[tuple[str, ...], ...]:
        """The inputs, short ones first, that take a rule which no earlier one takes, as far as the search goes."""
        taken: set[MachineRule] = set()
        covering, left = [], MAX_EXPLORED
        for word in self.prompts():
            rules = list(islice(self.run(word), min(self.steps or MAX_STEPS, left)))
            left -= len(rules)
            if not taken.issuperset(rules):
                taken.update(rules)
                covering.append(word)
            if left <= 0 or len(taken) == len(self.rules):
                break
        return tuple(covering)

    def draw_prompt(self, rng: np.random.Generator) -> tuple[str, ...]:
        """Return a random input of random length; half of them are palindromes."""
        word = rng.integers(len(self.alphabet), size=rng.integers(self.length + 1)).tolist()
        word = word[: (len(word) + 1) // 2] + word[: len(word) // 2][::-1] if rng.random() < 0.5 else word
        return tuple(self.alphabet[letter] for letter in word)

    def conclusion(self, prompt: Sequence[str], thought: Sequence[str]) -> dict[str, str]:
        """Return the state, the tape and the progress after the steps of a thought."""
        tape, head, state = dict(enumerate(prompt)), 0, self.start
        for step in thought:
            tape[head], move, state = step.split(",")
            head += MOVES[move]
        summary = {"state": state, "halted": "yes" if state in self.halt else "no"}
        if self.accept and state in self.halt:
            summary["accepted"] = "yes" if state in self.accept else "no"
        cells = [cell for cell, symbol in tape.items() if symbol != self.blank]
        shown = [tape.get(cell, self.blank) for cell in range(min(cells), max(cells) + 1)] if cells else []
        return summary | {"tape": " ".join(shown)}

    def missing(self, prompt: Sequence[str], thought: Sequence[str]) -> str:
        """Return the state of a machine that has not halted."""
        state = self.conclusion(prompt, thought)["state"]
        return "" if state in self.halt else f"after {len(thought)} steps the machine has not halted (state {state})"


def table_text(rows: Iterable[tuple[str, str, object]]) -> Iterator[str]:
    """Yield the lines of the tables of all states, from states, symbols read and the values there."""
    for state, entries in groupby(rows, key=itemgetter(0)):
        yield from (
            "",
            f"[states.{_key(state)}]",
            *(f"{_key(read)} = {json_text(value)}" for _, read, value in entries),
        )


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else json_text(name)


def _problems(machine: TuringMachine) -> Iterator[Fault]:
    """Yield every problem of a machine, with its key."""
    for key, least in (("length", 0), ("steps", 1)):
        value = getattr(machine, key)
        if value is not None and not least <= value <= MAX_SIZE:
            yield (key,), f"{key} must be a whole number from {least} to {MAX_SIZE:,}, is {value}"
    yield from ((("accept",), message) for message in odd_names(machine.accept, "a state"))
    yield from (
        (("accept",), f"{s!r} accepts, so it must be one of halt") for s in machine.accept if s not in machine.halt
    )
    yield from machine_problems(machine)


def machine_problems(machine: OneTapeMachine) -> Iterator[Fault]:
    """Yield every problem of the states, the tape and the rules of a machine, with its key."""
    symbols, working = machine.symbols, machine.working
    known = {*working, *machine.halt}
    if machine.start not in working:
        what = "is one in which it stops" if machine.start in machine.halt else "has no rules"
        yield ("start",), f"the start state {machine.start!r} {what}: it must be one of {' '.join(working)}"
    tape = (("blank", (machine.blank,)), ("alphabet", machine.alphabet), ("marks", machine.marks))
    for key, names in tape[1:]:
        for symbol in names:
            if symbols.count(symbol) > 1:
                yield (key,), f"the symbol {symbol!r} has several meanings: the blank, letters and marks must differ"
    for key, names in (*tape, ("halt", machine.halt)):
        yield from (((key,), message) for message in odd_names(names, "a state" if key == "halt" else "a symbol"))
    yield from ((("halt",), f"{s!r} stops, so it has no rules") for s in machine.halt if s in working)
    for state in working:
        yield from ((("states", state), message) for message in odd_names([state], "a state"))
        read = [rule.read for rule in machine.rules if rule.state == state]
        missing = [symbol for symbol in symbols if symbol not in read]
        if missing:
            yield ("states", state), f"the state {state!r} has no rule for {', '.join(map(repr, missing))}"
    for rule in machine.rules:
        keys = ("states", rule.state, rule.read)
        for what, symbol in (("reads", rule.read), ("writes", rule.write)):
            if symbol not in symbols:
                yield keys, f"a rule of {rule.state!r} {what} {symbol!r}, which is not on the tape: add it to marks"
        if rule.move not in MOVES:
            yield keys, f"a rule of {rule.state!r} moves {rule.move!r}: it must be L, R or S"
        if rule.to not in known:
            yield keys, f"a rule of {rule.state!r} goes to {rule.to!r}, which has no rules and is not one of halt"


def odd_names(names: Sequence[str], what: str) -> Iterator[str]:
    """Yield a sentence for every name that can't be a part of a step."""
    for name in names:
        if not name or "," in name or name.split() != [name] or name in (BEGIN, END):
            yield f"the name of {what} is a word without blanks and commas, and neither {BEGIN} nor {END}: {name!r}"


def increment(length: int = 8) -> TuringMachine:
    """Return a machine that adds one to a binary number."""
    right = {"_": "_ L carry", "0": "0 R right", "1": "1 R right"}
    carry = {"_": "1 S done", "0": "1 S done", "1": "0 L carry"}
    table = {"right": right, "carry": carry}
    return TuringMachine.of(table, start="right", halt=["done"], alphabet="01", length=length)


def counter(steps: int, length: int = 1) -> TuringMachine:
    """Return a machine that adds one to a binary number again and again, and never halts."""
    right = {"_": "_ L carry", "0": "0 R right", "1": "1 R right"}
    carry = {"_": "1 R right", "0": "1 R right", "1": "0 L carry"}
    table = {"right": right, "carry": carry}
    return TuringMachine.of(table, start="right", halt=[], alphabet="01", length=length, steps=steps)


def palindrome(length: int = 8) -> TuringMachine:
    """Return a machine that accepts palindromes of a and b: it compares and erases the outermost letters."""
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
    """Return the 4-state, 2-symbol machine that runs longest on an empty tape: 107 steps, 13 ones."""
    table = {
        "A": {"0": "1 R B", "1": "1 L B"},
        "B": {"0": "1 L A", "1": "0 L C"},
        "C": {"0": "1 R H", "1": "1 L D"},
        "D": {"0": "1 R D", "1": "0 R A"},
    }
    return TuringMachine.of(table, start="A", halt=["H"], blank="0", alphabet="1", length=0)


def random_machine(
    seed: int, states: int, symbols: int, *, halting: float = 0.0, length: int = 6, steps: int = 200
) -> TuringMachine:
    """Return a machine with random rules; `symbols` includes the blank, and a fraction of the rules halts."""
    rng = np.random.default_rng(seed)
    tape = [str(symbol) for symbol in range(symbols)]
    names = [f"q{state}" for state in range(states)]
    rules = []
    for state in names:
        for read in tape:
            to = "halt" if rng.random() < halting else str(rng.choice(names))
            write, move = str(rng.choice(tape)), str(rng.choice(["L", "S", "R"], p=[0.45, 0.1, 0.45]))
            rules.append(MachineRule(state, read, write, move, to))
    letters = max(1, symbols // 2)
    alphabet, others = tuple(tape[1 : 1 + letters]), tuple(tape[1 + letters :])
    return TuringMachine(names[0], tuple(rules), ("halt",), alphabet, tape[0], others, length=length, steps=steps)


KIND = Kind(TuringMachine, {".tm.toml": "Turing machine"})
