r"""Probabilistic Turing machines as language models; `.ptm.toml` files.

    start = "push"
    halt = ["done"]
    blank = "_"
    marks = ["1"]               # other symbols of the tape
    emits = ["a", "b"]          # symbols of the strings that it generates

    [states.push]               # read = ["probability write move next emitted", …]
    _ = ["1/2 1 R push a", "1/2 _ L pop"]
    …

The machine starts on an empty tape, infinite both ways. In each step it draws one of the rules for its state and the
symbol under its head; their probabilities are fractions or decimal numbers and sum to 1. It writes a symbol, moves left
(L), right (R) or not at all (S), goes to the next state, and emits a symbol or nothing. In a state of `halt` it stops,
and the string is what it emitted. A run that never stops generates no string, so that the probabilities of all strings
may sum to less than 1: the model is then not *tight*.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

import numpy as np

from vitrify.errors import BuildRefused, Problem
from vitrify.parameters import Fault, Help, Within
from vitrify.spec.computation.turing import OneTapeMachine, machine_problems, odd_names, table_text
from vitrify.spec.formats.data import DataFile, json_text, read_data
from vitrify.spec.formats.text import refuse_any
from vitrify.spec.kinds import Answer, Kind, Meaning, PrefixStates, Spec, prefixes_by_length

MAX_MASSES = 200_000  # probabilities of configurations and strings, over all steps: a few seconds
MAX_DIGITS = 40  # of a probability in a file: exact fractions of runs would else take long
ORDER = ("start", "halt", "blank", "marks", "emits")


@dataclass(frozen=True)
class ProbabilisticMachineFile:
    """Fields of a `.ptm.toml` file."""

    start: str
    halt: tuple[str, ...]
    blank: str
    emits: tuple[str, ...]
    states: Annotated[
        Mapping[str, Mapping[str, tuple[str, ...]]], Within(1), Help("a table [states.NAME] of rules for each state")
    ]
    marks: tuple[str, ...] = ()


class ProbabilisticRule(NamedTuple):
    """A transition: in a state, on a symbol, with a probability, write, move, go to a state, and perhaps emit."""

    state: str
    read: str
    probability: Fraction
    write: str
    move: str
    to: str
    emitted: str = ""

    @property
    def step(self) -> str:
        """Step as one word: the symbol written, the move, the next state, and the symbol emitted if there is one."""
        return ",".join((self.write, self.move, self.to, *filter(None, [self.emitted])))


class Configuration(NamedTuple):
    """State and tape of a machine: symbols left of its head, and from its head to the right, the nearest first.

    Blanks at the far ends are left out, so that equal configurations are equal wherever the head stands.
    """

    state: str
    left: tuple[str, ...] = ()
    right: tuple[str, ...] = ()


@dataclass(frozen=True)
class Masses:
    """Exact probabilities after a number of steps: of the strings of runs that halted, and of all other runs."""

    strings: Mapping[tuple[str, ...], Fraction]
    running: Fraction
    steps: int

    @property
    def halted(self) -> Fraction:
        """Probability that the machine has halted: a lower bound of the mass of all strings."""
        return sum(self.strings.values(), Fraction(0))


@dataclass(frozen=True)
class ProbabilisticTuringMachine(OneTapeMachine, Spec):
    """A machine that draws its steps; as a chain of thought it writes them.

    >>> flips = ["1/2 _ S flip h", "1/4 _ S flip t", "1/4 _ S end"]
    >>> coin = ProbabilisticTuringMachine.of({"flip": {"_": flips}}, start="flip", halt=["end"], emits="ht")
    >>> coin.masses(3).strings["h", "t"]
    Fraction(1, 32)
    >>> coin.masses(3).running
    Fraction(27, 64)
    """

    start: str
    rules: tuple[ProbabilisticRule, ...]
    halt: tuple[str, ...]
    emits: tuple[str, ...]
    blank: str = "_"
    marks: tuple[str, ...] = ()
    alphabet: tuple[str, ...] = field(default=(), init=False, repr=False)  # of inputs: there are none
    source: InitVar[DataFile | None] = None
    suffix: ClassVar[str] = ".ptm.toml"
    SIZES: ClassVar[tuple[str, ...]] = ("working", "rules", "symbols", "emits")

    def __post_init__(self, source: DataFile | None) -> None:
        refuse_any(source.problem(*fault) if source else Problem(fault[1]) for fault in _problems(self))

    @classmethod
    def of(
        cls,
        rules: Mapping[str, Mapping[str, Sequence[str]]],
        *,
        start: str,
        halt: Sequence[str],
        emits: Sequence[str],
        blank: str = "_",
        marks: Sequence[str] = (),
    ) -> ProbabilisticTuringMachine:
        """Return the machine of rules `{state: {read: ["probability write move next emitted", …]}}`."""
        listed = [
            _rule(s, read, text.split()) for s, row in rules.items() for read, texts in row.items() for text in texts
        ]
        return cls(start, tuple(listed), tuple(halt), tuple(emits), blank, tuple(marks))

    @classmethod
    def read(cls, path: str | Path) -> ProbabilisticTuringMachine:
        """Read a `.ptm.toml` file; a SpecError lists all its problems."""
        file = read_data(Path(path), cls.suffix)
        parts, problems = file.parts(ProbabilisticMachineFile)
        rules = []
        for state, row in parts.pop("states", {}).items():
            for read, number, text in ((read, n, text) for read, texts in row.items() for n, text in enumerate(texts)):
                try:
                    rules.append(_rule(state, read, text.split()))
                except (ValueError, ZeroDivisionError):
                    form = 'a rule is a text "probability write move next emitted" (the last may be left out)'
                    problems.append(file.problem(("states", state, read, str(number)), f"{form}, not {text!r}"))
        refuse_any(problems)
        return cls(source=file, rules=tuple(rules), **parts)

    def to_text(self) -> str:
        lines = [f"{key} = {json_text(getattr(self, key))}" for key in ORDER if key != "marks" or self.marks]
        rows = [
            (state, read, [" ".join((str(r.probability), r.write, r.move, r.to, r.emitted)).rstrip() for r in rules])
            for (state, read), rules in sorted(self._choices.items(), key=lambda row: self.working.index(row[0][0]))
        ]
        return "".join(f"{line}\n" for line in (*lines, *table_text(rows)))

    @classmethod
    def samples(cls) -> dict[str, ProbabilisticTuringMachine]:
        return {"a^n b^n": equal_numbers(), "random": random_probabilistic_machine(0, 2, 3)}

    # Runs

    @cached_property
    def _choices(self) -> dict[tuple[str, str], tuple[ProbabilisticRule, ...]]:
        rows: dict[tuple[str, str], list[ProbabilisticRule]] = {}
        for rule in self.rules:
            rows.setdefault((rule.state, rule.read), []).append(rule)
        return {key: tuple(rules) for key, rules in rows.items()}

    def following(self, state: str, read: str) -> dict[str, Fraction]:
        """Return the distribution of the next step in a state, on a symbol."""
        return {rule.step: rule.probability for rule in self._choices[state, read]}

    def choices(self, at: Configuration) -> tuple[ProbabilisticRule, ...]:
        """Return the rules that may be drawn in a configuration; none in a state that halts."""
        return () if at.state in self.halt else self._choices[at.state, at.right[0] if at.right else self.blank]

    @cached_property
    def shares(self) -> dict[tuple[str, str], list[float]]:
        """For each state and symbol the probability of each rule and those before it, without the last one."""
        return {key: np.cumsum([float(r.probability) for r in row])[:-1].tolist() for key, row in self._choices.items()}

    def after(self, at: Configuration, rule: ProbabilisticRule) -> Configuration:
        """Return the configuration after a step."""
        left, right = at.left, (rule.write, *at.right[1:])
        if rule.move == "R":
            left, right = right[:1] + left, right[1:]
        elif rule.move == "L":
            left, right = left[1:], (left[0] if left else self.blank, *right)
        return Configuration(rule.to, self._trimmed(left), self._trimmed(right))

    def _trimmed(self, stack: tuple[str, ...]) -> tuple[str, ...]:
        end = len(stack)
        while end and stack[end - 1] == self.blank:
            end -= 1
        return stack[:end]

    def masses(self, steps: int, *, strings: bool = True, partial: bool = False) -> Masses:
        """Return the exact probabilities after a number of steps; without `strings`, all of them count as one.

        Runs that have reached the same configuration and emitted the same string are added up. Where these are too
        many, it is refused, or with `partial` the probabilities after fewer steps are returned.
        """
        running: dict[tuple[Configuration, tuple[str, ...]], Fraction] = {(Configuration(self.start), ()): Fraction(1)}
        halted: dict[tuple[str, ...], Fraction] = {}
        seen = 0
        for step in range(steps):
            seen += len(running)
            if seen + len(halted) > MAX_MASSES:
                if partial:
                    return Masses(halted, sum(running.values(), Fraction(0)), step)
                raise BuildRefused(
                    f"the machine has more than {MAX_MASSES:,} configurations and strings in its first {step} steps: "
                    f"ask for fewer steps than {steps}"
                )
            later: dict[tuple[Configuration, tuple[str, ...]], Fraction] = {}
            for (at, emitted), mass in running.items():
                for rule in self.choices(at):
                    string = (*emitted, rule.emitted) if rule.emitted and strings else emitted
                    if rule.to in self.halt:
                        halted[string] = halted.get(string, Fraction(0)) + mass * rule.probability
                    else:
                        key = self.after(at, rule), string
                        later[key] = later.get(key, Fraction(0)) + mass * rule.probability
            running = later
        return Masses(halted, sum(running.values(), Fraction(0)), steps)

    # As a language model over steps

    def meanings(self) -> dict[str, Meaning]:
        """Return the task: the distribution of the next step after the steps of a run; None after any other word."""
        states = PrefixStates(Configuration(self.start), self._step)
        return {"lm": Meaning("distribution", self.vocabulary, self.written, self._after, Runs(self), states=states)}

    def _step(self, at: Configuration, step: str) -> Configuration | None:
        rule = next((rule for rule in self.choices(at) if rule.step == step), None)
        return None if rule is None or rule.to in self.halt else self.after(at, rule)

    def _after(self, steps: Sequence[str]) -> list[Answer]:
        at: Configuration | None = Configuration(self.start)
        answers: list[Answer] = []
        for step in (*steps, None):
            answers.append(None if at is None else {rule.step: rule.probability for rule in self.choices(at)})
            at = None if at is None or step is None else self._step(at, step)
        return answers

    def erased(self, steps: Sequence[str]) -> tuple[str, ...]:
        """Return the symbols that some steps emit."""
        return tuple(parts[3] for parts in (step.split(",") for step in steps) if len(parts) > 3)

    def conclusion(self, prompt: Sequence[str], thought: Sequence[str]) -> dict[str, str]:
        """Return the string emitted so far, and the number of steps for each of its symbols."""
        steps = (*prompt, *thought)
        string = self.erased(steps)
        halted = bool(steps) and steps[-1] not in self.vocabulary
        each = {"steps per symbol": f"{len(steps) / len(string):.3g}"} if string else {}
        return {"string": " ".join(string), "halted": "yes" if halted else "no"} | each

    def missing(self, prompt: Sequence[str], thought: Sequence[str]) -> str:
        """Return the number of steps of a machine that has not halted."""
        halted = self.conclusion(prompt, thought)["halted"] == "yes"
        return "" if halted else f"after {len(prompt) + len(thought)} steps the machine has not halted"


@dataclass(frozen=True)
class Runs:
    """The runs of a machine, as words of steps: the test cases of a network."""

    machine: ProbabilisticTuringMachine

    def prefixes(self, longest: int | None = None) -> Iterator[tuple[str, ...]]:
        """Return every prefix of a run that has not halted once, short ones first, up to a length."""
        machine = self.machine
        reached: dict[tuple[str, ...], Configuration] = {(): Configuration(machine.start)}

        def following(steps: tuple[str, ...]) -> Iterator[str]:
            at = reached.pop(steps)
            for rule in machine.choices(at):
                if rule.to not in machine.halt:
                    reached[*steps, rule.step] = machine.after(at, rule)
                    yield rule.step

        return prefixes_by_length(following, longest)

    def examples(self) -> Iterator[Iterator[str]]:
        """Return random runs, always the same ones."""
        rng = np.random.default_rng(0)
        return (self.draw(rng) for _ in range(1 << 10))

    def draw(self, rng: np.random.Generator) -> Iterator[str]:
        """Return a random run, which may have no end, without the step that halts."""
        machine, at = self.machine, Configuration(self.machine.start)
        while rules := machine.choices(at):
            rule = rules[bisect_right(machine.shares[rules[0].state, rules[0].read], rng.random())]
            if rule.to in machine.halt:
                return
            yield rule.step
            at = machine.after(at, rule)


def _rule(state: str, read: str, words: list[str]) -> ProbabilisticRule:
    """Return a rule from its words; a ValueError or ZeroDivisionError if they are none."""
    if len(words) not in (4, 5) or len(words[0]) > MAX_DIGITS or "e" in words[0].lower():
        raise ValueError("not a rule")
    return ProbabilisticRule(state, read, Fraction(words[0]), *words[1:])


def _problems(machine: ProbabilisticTuringMachine) -> Iterator[Fault]:
    """Yield every problem of a machine, with its key."""
    yield from machine_problems(machine)
    yield from ((("emits",), message) for message in odd_names(machine.emits, "a symbol"))
    if len(set(machine.emits)) < len(machine.emits):
        yield ("emits",), "the symbols of emits must differ"
    for rule in machine.rules:
        keys = ("states", rule.state, rule.read)
        if rule.emitted and rule.emitted not in machine.emits:
            yield keys, f"a rule of {rule.state!r} emits {rule.emitted!r}: add it to emits"
        if not 0 < rule.probability <= 1:
            yield keys, f"the probability of a rule of {rule.state!r} must be above 0 and at most 1: {rule.probability}"
    for (state, read), rules in machine._choices.items():
        keys, total = ("states", state, read), sum(rule.probability for rule in rules)
        if total != 1:
            yield keys, f"the probabilities of {state!r} on {read!r} must sum to 1, they sum to {total}"
        for step, times in Counter(rule.step for rule in rules).items():
            if times > 1:
                yield keys, f"{state!r} on {read!r} lists {step!r} {times} times: list it once, with the sum"


# Machines


def equal_numbers(go_on: Fraction = Fraction(1, 2)) -> ProbabilisticTuringMachine:
    """Return a machine that generates a^n b^n, where n is geometric: one more `a` with the probability `go_on`."""
    rules = {
        "push": {"_": [f"{go_on} 1 R push a", f"{1 - go_on} _ L pop"], "1": ["1 1 S done"]},
        "pop": {"1": ["1 _ L pop b"], "_": ["1 _ S done"]},
    }
    return ProbabilisticTuringMachine.of(rules, start="push", halt=["done"], emits="ab", marks="1")


def marked_palindromes() -> ProbabilisticTuringMachine:
    """Return a machine that generates w c w^R, where each letter of w is `a` or `b` with the probability 3/8."""
    write = ["3/8 a R write a", "3/8 b R write b", "1/4 _ L back c"]
    again = {letter: [f"1 _ L back {letter}"] for letter in "ab"}
    rules = {
        "write": {"_": write, "a": ["1 a S done"], "b": ["1 b S done"]},
        "back": {**again, "_": ["1 _ S done"]},
    }
    return ProbabilisticTuringMachine.of(rules, start="write", halt=["done"], emits="abc", marks="ab")


def drifting_walk(right: Fraction = Fraction(2, 3)) -> ProbabilisticTuringMachine:
    """Return a walk from cell 1 that emits its moves and halts at cell 0; it drifts right if `right` exceeds 1/2.

    It halts with the probability min(1, (1 - right) / right): it is not tight if it drifts right.
    """
    rules = {
        "start": {"_": ["1 0 R walk"], "0": ["1 0 R walk"]},
        "walk": {"_": [f"{right} _ R walk r", f"{1 - right} _ L walk l"], "0": ["1 0 S home"]},
    }
    return ProbabilisticTuringMachine.of(rules, start="start", halt=["home"], emits="lr", marks="0")


def random_probabilistic_machine(
    seed: int, states: int, symbols: int, *, choices: int = 2, halting: float = 0.2, letters: int = 2
) -> ProbabilisticTuringMachine:
    """Return a machine with up to `choices` random rules for each state and symbol; `symbols` includes the blank.

    A fraction `halting` of the rules halts, and two in three emit one of the letters.
    """
    rng = np.random.default_rng(seed)
    tape = ["_", *(str(symbol) for symbol in range(1, symbols))]
    names = [f"q{state}" for state in range(states)]
    emits = [chr(ord("a") + letter) for letter in range(letters)]
    rules: list[ProbabilisticRule] = []
    for state in names:
        for read in tape:
            steps: dict[tuple[str, ...], int] = {}
            for _ in range(choices):
                to = "halt" if rng.random() < halting else str(rng.choice(names))
                emitted = str(rng.choice(emits)) if rng.random() < 2 / 3 else ""
                step = (str(rng.choice(tape)), str(rng.choice(["L", "S", "R"], p=[0.45, 0.1, 0.45])), to, emitted)
                steps[step] = steps.get(step, 0) + int(rng.integers(1, 8))
            total = sum(steps.values())
            rules += [ProbabilisticRule(state, read, Fraction(n, total), *step) for step, n in steps.items()]
    return ProbabilisticTuringMachine(names[0], tuple(rules), ("halt",), tuple(emits), "_", tuple(tape[1:]))


KIND = Kind(ProbabilisticTuringMachine, {".ptm.toml": "probabilistic Turing machine"})
