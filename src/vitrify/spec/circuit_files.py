"""ASCII AIGER: text to circuits, with every problem on its line, and back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vitrify.errors import Problem
from vitrify.spec.circuit import Circuit
from vitrify.spec.files import refuse_any, refuse_suffix, text_of

HEADER = "the first line must say 'aag M I L O A' in whole numbers"
FIELDS = ("variables", "inputs", "latches", "outputs", "gates")
SYMBOL = re.compile(r"([iolbcjf])(\d+)(?: (.*))?")

Numbered = tuple[int, list[int]]  # a line and the numbers on it


@dataclass
class _File:
    """The lines of a file by what they are."""

    path: Path
    counts: dict[str, int] = field(default_factory=dict)
    singles: list[Numbered] = field(default_factory=list)  # inputs, then outputs
    triples: list[Numbered] = field(default_factory=list)  # gates
    names: dict[tuple[str, int], str] = field(default_factory=dict)
    comment: tuple[str, ...] = ()
    problems: list[Problem] = field(default_factory=list)

    def odd(self, line: int | None, message: str) -> None:
        self.problems.append(Problem(message, str(self.path), line))

    @property
    def inputs(self) -> list[Numbered]:
        return self.singles[: self.counts["inputs"]]

    @property
    def outputs(self) -> list[Numbered]:
        return self.singles[self.counts["inputs"] :]


def aiger_text(circuit: Circuit) -> str:
    """The `.aag` text of a circuit; names that say no more than the number are left out."""
    first, count = 1 + len(circuit.inputs), len(circuit.gates)
    lines = [f"aag {first + count - 1} {len(circuit.inputs)} 0 {len(circuit.outputs)} {count}"]
    lines += [str(2 * variable) for variable in range(1, first)]
    lines += [str(literal) for _, literal in circuit.outputs]
    lines += [f"{2 * variable} {left} {right}" for variable, (left, right) in enumerate(circuit.gates, start=first)]
    lines += [f"i{place} {name}" for place, name in enumerate(circuit.inputs) if name != f"i{place}"]
    lines += [f"o{place} {name}" for place, (name, _) in enumerate(circuit.outputs) if name != f"o{place}"]
    lines += ["c", *circuit.comment] if circuit.comment else []
    return "".join(f"{line}\n" for line in lines)


def read_aiger(path: Path) -> Circuit:
    """The circuit of an `.aag` file. Its gates may have any order and any numbers; here they are numbered in order."""
    if not path.name.endswith(Circuit.suffix):
        raise refuse_suffix(path, Circuit.suffix)
    file = _File(path)
    lines = text_of(path).split("\n")
    _read_header(file, lines[0])
    refuse_any(file.problems)
    _read_body(file, lines[1:-1] if lines[-1] == "" else lines[1:])
    if not _check_counts(file):  # no telling which line is an input, which an output
        refuse_any(file.problems)
    made, sound = _check_literals(file)
    order = _order(file, made) if sound else []
    refuse_any(file.problems)
    number = {0: 0} | {numbers[0] >> 1: place for place, (_, numbers) in enumerate(file.inputs, start=1)}
    for variable in order:
        number[variable] = len(number)

    def renumbered(literal: int) -> int:
        return 2 * number[literal >> 1] + (literal & 1)

    names = {what: [file.names.get((what[0], n), f"{what[0]}{n}") for n in range(file.counts[what])] for what in FIELDS}
    return Circuit(
        tuple(names["inputs"]),
        tuple((renumbered(made[v][1][1]), renumbered(made[v][1][2])) for v in order),
        tuple((name, renumbered(n[0])) for name, (_, n) in zip(names["outputs"], file.outputs, strict=True)),
        file.comment,
    )


def _read_header(file: _File, line: str) -> None:
    words = line.split()
    if words[:1] == ["aig"]:
        file.odd(1, "this is the binary form of AIGER: turn it into the ASCII form, with aigtoaig for example")
    elif words[:1] != ["aag"] or len(words) < 6 or not all(word.isdecimal() for word in words[1:]):
        file.odd(1, f"{HEADER}, says {line[:60]!r}")
    else:
        counts = [int(word) for word in words[1:]]
        file.counts = dict(zip(FIELDS, counts, strict=False))
        latches, made = counts[2], counts[1] + counts[2] + counts[4]
        if any(counts[5:]):
            file.odd(1, "properties and constraints (the numbers after the first five) have no meaning here")
        if latches:
            file.odd(1, f"the circuit has {latches} latches: only circuits without memory are read, so L must be 0")
        if counts[0] < made:
            file.odd(1, f"M counts all variables: it must be at least I + L + A = {made}, is {counts[0]}")


def _read_body(file: _File, lines: list[str]) -> None:
    for number, line in enumerate(lines, start=2):
        if line.split() == ["c"]:
            file.comment = tuple(lines[number - 1 :])
            return
        words = line.split()
        if words and all(word.isdecimal() for word in words):
            numbers = [int(word) for word in words]
            if file.names:
                file.odd(number, "names come after all numbers")
            if len(numbers) == 1 and file.triples:
                file.odd(number, "inputs and outputs come before the gates")
            if len(numbers) not in (1, 3):
                file.odd(number, f"a line has one number (an input, an output) or three (a gate), not {len(numbers)}")
            else:
                (file.singles if len(numbers) == 1 else file.triples).append((number, numbers))
        else:
            _read_name(file, number, line)


def _read_name(file: _File, number: int, line: str) -> None:
    found = SYMBOL.fullmatch(line)
    if not found or not found[3]:
        file.odd(
            number, f"a line holds numbers, or a name such as 'i0 carry', or 'c' before a comment, not {line[:60]!r}"
        )
        return
    kind, place, name = found[1], int(found[2]), found[3]
    word = {"i": "inputs", "o": "outputs"}.get(kind)
    if word is None:
        file.odd(number, f"only inputs (i) and outputs (o) have names, not {kind}{place}")
    elif place >= file.counts[word]:
        file.odd(number, f"there is no {kind}{place}: the header says {file.counts[word]} {word}, counted from 0")
    elif (kind, place) in file.names:
        file.odd(number, f"{kind}{place} is named twice: keep one name")
    elif name in {known for (other, _), known in file.names.items() if other == kind}:
        file.odd(number, f"two {word} are called {name!r}: give each its own name")
    else:
        file.names[kind, place] = name


def _check_counts(file: _File) -> bool:
    """Whether there are as many lines as the header says; it is told where there are not."""
    wanted = file.counts["inputs"] + file.counts["outputs"]
    if len(file.singles) != wanted:
        inputs, outputs = file.counts["inputs"], file.counts["outputs"]
        said = f"the header says {inputs} inputs and {outputs} outputs"
        file.odd(1, f"{said}, but {len(file.singles)} lines have one number")
    if len(file.triples) != file.counts["gates"]:
        file.odd(1, f"the header says {file.counts['gates']} gates, but {len(file.triples)} lines have three numbers")
    return len(file.singles) == wanted and len(file.triples) == file.counts["gates"]


def _check_literals(file: _File) -> tuple[dict[int, Numbered], bool]:
    """The gates by variable, and whether all literals are sound; what is odd, defined twice or not at all is told."""
    before = len(file.problems)
    largest = 2 * file.counts["variables"] + 1
    defined: dict[int, int] = {}
    made: dict[int, Numbered] = {}
    for what, lines in (("an input", file.inputs), ("the left of a gate", file.triples)):
        for line, numbers in lines:
            if numbers[0] < 2 or numbers[0] % 2:
                file.odd(line, f"{what} must be an even number from 2, is {numbers[0]}")
            elif numbers[0] in defined:
                file.odd(line, f"{numbers[0]} is defined twice, first in line {defined[numbers[0]]}")
            else:
                defined[numbers[0]] = line
                if len(numbers) == 3:
                    made[numbers[0] >> 1] = (line, numbers)
    for line, numbers in [*file.inputs, *file.outputs, *file.triples]:
        for literal in dict.fromkeys(numbers):
            if literal > largest:
                file.odd(line, f"{literal} is more than 2M + 1 = {largest}")
    for line, numbers in [*file.outputs, *((line, numbers[1:]) for line, numbers in file.triples)]:
        for literal in dict.fromkeys(numbers):
            if literal > 1 and literal <= largest and literal & ~1 not in defined:
                file.odd(line, f"{literal} is not defined: no input and no gate is {literal & ~1}")
    return made, len(file.problems) == before


def _order(file: _File, made: dict[int, Numbered]) -> list[int]:
    """The gates' variables, each after those that it reads, otherwise in the order of the file; cycles are told."""
    order: list[int] = []
    state: dict[int, bool] = {}  # False while a gate waits for what it reads, True when it has its place
    for start in made:
        waiting = [start]
        while waiting:
            variable = waiting[-1]
            if state.get(variable):
                waiting.pop()
                continue
            missing = [v for v in _read_by(made, variable) if not state.get(v)]
            if not missing:
                state[variable] = True
                order.append(variable)
                waiting.pop()
            elif any(v in state for v in missing):  # it waits, directly or not, for this one
                file.odd(made[variable][0], f"the gate {2 * variable} depends on itself, by way of {2 * missing[0]}")
                return []
            else:
                state[variable] = False
                waiting += missing[:1]
    return order


def _read_by(made: dict[int, Numbered], variable: int) -> Iterator[int]:
    """The gates that a gate reads."""
    return (literal >> 1 for literal in made[variable][1][1:] if literal >> 1 in made)
