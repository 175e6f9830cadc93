"""Reader of ASCII AIGER files, which reports every problem with its line."""

from __future__ import annotations

import re
from pathlib import Path

from vitrify.spec.formats.text import Problem, refuse_any, text_of
from vitrify.spec.graphs import children_first

HEADER = "the first line must say 'aag M I L O A' in whole numbers"
FIELDS = ("variables", "inputs", "latches", "outputs", "gates")
SYMBOL = re.compile(r"([iolbcjf])(\d+)(?: (.*))?")

Numbered = tuple[int, list[int]]  # a line and the numbers on it
Parts = tuple[tuple[str, ...], tuple[tuple[int, int], ...], tuple[tuple[str, int], ...], tuple[str, ...]]
"""The names of the inputs, the gates, the outputs and the comment."""


class AigerFile:
    """Lines of a file by kind, and all their problems."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: dict[str, int] = {}
        self.singles: list[Numbered] = []  # inputs, then outputs
        self.triples: list[Numbered] = []  # gates
        self.names: dict[tuple[str, int], str] = {}
        self.comment: tuple[str, ...] = ()
        self.problems: list[Problem] = []
        lines = text_of(path, ".aag").split("\n")
        self._read_header(lines[0])
        refuse_any(self.problems)
        self._read_body(lines[1:-1] if lines[-1] == "" else lines[1:])

    def odd(self, line: int | None, message: str) -> None:
        self.problems.append(Problem(message, str(self.path), line))

    @property
    def inputs(self) -> list[Numbered]:
        return self.singles[: self.counts["inputs"]]

    @property
    def outputs(self) -> list[Numbered]:
        return self.singles[self.counts["inputs"] :]

    def circuit(self) -> Parts:
        """Return the parts of the circuit, gates numbered in order."""
        if not self._check_counts():  # inputs and outputs can't be told apart
            refuse_any(self.problems)
        made, sound = self._check_literals()
        order = self._order(made) if sound else ()
        refuse_any(self.problems)
        variables = [0, *(numbers[0] >> 1 for _, numbers in self.inputs), *order]
        number = {variable: index for index, variable in enumerate(variables)}

        def renumbered(literal: int) -> int:
            return 2 * number[literal >> 1] + (literal & 1)

        inputs, outputs = (
            [self.names.get((what[0], n), f"{what[0]}{n}") for n in range(self.counts[what])]
            for what in ("inputs", "outputs")
        )
        gates = tuple((renumbered(made[v][1][1]), renumbered(made[v][1][2])) for v in order)
        ends = tuple((name, renumbered(n[0])) for name, (_, n) in zip(outputs, self.outputs, strict=True))
        return tuple(inputs), gates, ends, self.comment

    def _read_header(self, line: str) -> None:
        words = line.split()
        if words[:1] == ["aig"]:
            self.odd(1, "this is the binary form of AIGER: turn it into the ASCII form, with aigtoaig for example")
        elif words[:1] != ["aag"] or len(words) < 6 or not all(word.isdecimal() for word in words[1:]):
            self.odd(1, f"{HEADER}, says {line[:60]!r}")
        else:
            counts = [int(word) for word in words[1:]]
            self.counts = dict(zip(FIELDS, counts, strict=False))
            latches, made = counts[2], counts[1] + counts[2] + counts[4]
            if any(counts[5:]):
                self.odd(1, "properties and constraints (the numbers after the first five) have no meaning here")
            if latches:
                self.odd(1, f"the circuit has {latches} latches: only circuits without memory are read, so L must be 0")
            if counts[0] < made:
                self.odd(1, f"M counts all variables: it must be at least I + L + A = {made}, is {counts[0]}")

    def _read_body(self, lines: list[str]) -> None:
        for number, line in enumerate(lines, start=2):
            if line.split() == ["c"]:
                self.comment = tuple(lines[number - 1 :])
                return
            words = line.split()
            if words and all(word.isdecimal() for word in words):
                numbers = [int(word) for word in words]
                if self.names:
                    self.odd(number, "names come after all numbers")
                if len(numbers) == 1 and self.triples:
                    self.odd(number, "inputs and outputs come before the gates")
                if len(numbers) not in (1, 3):
                    self.odd(number, f"a line has one number (input, output) or three (gate), not {len(numbers)}")
                else:
                    (self.singles if len(numbers) == 1 else self.triples).append((number, numbers))
            else:
                self._read_name(number, line)

    def _read_name(self, number: int, line: str) -> None:
        match = SYMBOL.fullmatch(line)
        if not match or not match[3]:
            message = "a line holds numbers, or a name such as 'i0 carry', or 'c' before a comment"
            self.odd(number, f"{message}, not {line[:60]!r}")
            return
        kind, index, name = match[1], int(match[2]), match[3]
        word = {"i": "inputs", "o": "outputs"}.get(kind)
        if word is None:
            self.odd(number, f"only inputs (i) and outputs (o) have names, not {kind}{index}")
        elif index >= self.counts[word]:
            self.odd(number, f"there is no {kind}{index}: the header says {self.counts[word]} {word}, counted from 0")
        elif (kind, index) in self.names:
            self.odd(number, f"{kind}{index} is named twice: keep one name")
        elif name in {known for (other, _), known in self.names.items() if other == kind}:
            self.odd(number, f"two {word} are called {name!r}: give each its own name")
        else:
            self.names[kind, index] = name

    def _check_counts(self) -> bool:
        """Return True if there are as many lines as the header says; report it where there are not."""
        inputs, outputs, gates = (self.counts[what] for what in ("inputs", "outputs", "gates"))
        if len(self.singles) != inputs + outputs:
            said = f"the header says {inputs} inputs and {outputs} outputs"
            self.odd(1, f"{said}, but {len(self.singles)} lines have one number")
        if len(self.triples) != gates:
            self.odd(1, f"the header says {gates} gates, but {len(self.triples)} lines have three numbers")
        return len(self.singles) == inputs + outputs and len(self.triples) == gates

    def _check_literals(self) -> tuple[dict[int, Numbered], bool]:
        """Return the gates by variable, and whether all literals are valid: even, defined once, and known."""
        before = len(self.problems)
        largest = 2 * self.counts["variables"] + 1
        defined: dict[int, int] = {}
        made: dict[int, Numbered] = {}
        for what, lines in (("an input", self.inputs), ("the left of a gate", self.triples)):
            for line, numbers in lines:
                if numbers[0] < 2 or numbers[0] % 2:
                    self.odd(line, f"{what} must be an even number from 2, is {numbers[0]}")
                elif numbers[0] in defined:
                    self.odd(line, f"{numbers[0]} is defined twice, first in line {defined[numbers[0]]}")
                else:
                    defined[numbers[0]] = line
                    if len(numbers) == 3:
                        made[numbers[0] >> 1] = (line, numbers)
        for line, numbers in [*self.inputs, *self.outputs, *self.triples]:
            for literal in dict.fromkeys(numbers):
                if literal > largest:
                    self.odd(line, f"{literal} is more than 2M + 1 = {largest}")
        for line, numbers in [*self.outputs, *((line, numbers[1:]) for line, numbers in self.triples)]:
            for literal in dict.fromkeys(numbers):
                if literal > 1 and literal <= largest and literal & ~1 not in defined:
                    self.odd(line, f"{literal} is not defined: no input and no gate is {literal & ~1}")
        return made, len(self.problems) == before

    def _order(self, made: dict[int, Numbered]) -> tuple[int, ...]:
        """Return the gates' variables, each after those that it reads, else in file order; cycles are reported."""
        reads = {v: [e >> 1 for e in numbers[1:] if e >> 1 in made] for v, (_, numbers) in made.items()}
        order, cycle = children_first(reads, made)
        if cycle:
            message = f"the gate {2 * cycle[-2]} depends on itself, by way of {2 * cycle[-1]}"
            self.odd(made[cycle[-2]][0], message)
        return order
