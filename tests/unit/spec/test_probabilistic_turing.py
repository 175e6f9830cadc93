"""Probabilistic Turing machines: masses against all paths on a rewritten tape; their files, and faults in them."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from cases import each
from oracles.naive_probabilistic import Rule, machine_masses
from vitrify.errors import BuildRefused, SpecError
from vitrify.spec import read_spec
from vitrify.spec.computation import probabilistic_turing
from vitrify.spec.computation.probabilistic_turing import (
    Configuration,
    ProbabilisticTuringMachine,
    drifting_walk,
    equal_numbers,
    marked_palindromes,
    random_probabilistic_machine,
)

EXAMPLES = Path(__file__).parents[3] / "examples"


def by_paths(machine: ProbabilisticTuringMachine, steps: int) -> tuple[dict[str, Fraction], Fraction]:
    rules: dict[tuple[str, str], list[Rule]] = {}
    for rule in machine.rules:
        rules.setdefault((rule.state, rule.read), []).append(
            (rule.probability, rule.write, rule.move, rule.to, rule.emitted)
        )
    return machine_masses(rules, machine.start, machine.halt, machine.blank, steps)


@each("seed", range(12))
def test_masses_are_sums_over_all_paths(seed: int) -> None:
    machine = random_probabilistic_machine(seed, 1 + seed % 4, 2 + seed % 3, choices=2 + seed % 2, letters=1 + seed % 3)
    for steps in (0, 1, 6):
        strings, running = by_paths(machine, steps)
        masses = machine.masses(steps)
        assert {"".join(string): p for string, p in masses.strings.items()} == strings
        assert masses.running == running
        assert masses.halted + masses.running == 1
        assert machine.masses(steps, strings=False).halted == masses.halted


def test_known_distributions() -> None:
    strings = equal_numbers(Fraction(1, 3)).masses(17).strings
    assert strings == {("a",) * n + ("b",) * n: Fraction(2, 3 ** (n + 1)) for n in range(8)}
    strings = marked_palindromes().masses(13).strings
    assert len(strings) == 63
    assert all(s == s[::-1] and p == Fraction(3, 8) ** (len(s) // 2) / 4 for s, p in strings.items())
    walk = drifting_walk().masses(202, strings=False)
    assert 0 < Fraction(1, 2) - walk.halted < Fraction(2, 10**8)
    assert 1 - drifting_walk(Fraction(1, 3)).masses(400, strings=False).halted < Fraction(1, 10**6)


@each("seed", range(4))
def test_the_next_step_depends_on_the_configuration(seed: int) -> None:
    """The distribution after a run is that of its configuration, and configurations forget where the head stands."""
    machine = random_probabilistic_machine(seed, 3, 3)
    meaning = machine.meanings()["lm"]
    assert meaning.states is not None
    assert meaning.language is not None
    rng = np.random.default_rng(seed)
    for _ in range(20):
        run = list(islice(meaning.language.draw(rng), 12))
        answers, at = meaning.after(run), meaning.states.start
        for step, answer in zip([*run, None], answers, strict=True):
            assert answer == {rule.step: rule.probability for rule in machine.choices(at)}  # type: ignore[arg-type]
            at = at if step is None else meaning.states.step(at, step)
    impossible = next(step for step in machine.vocabulary if step not in machine.following(machine.start, "_"))
    assert meaning.after([impossible])[1] is None
    right = machine.after(Configuration("q0"), machine.rules[0]._replace(write="_", move="R", to="q1"))
    assert right == Configuration("q1")


def test_prefixes_of_runs_are_listed_once() -> None:
    machine = marked_palindromes()
    language = machine.meanings()["lm"].language
    assert language is not None
    prefixes = list(language.prefixes(6))
    assert len(prefixes) == len(set(prefixes))
    assert all(machine.meanings()["lm"].after(word)[-1] for word in prefixes)
    assert sum(len(word) == 6 for word in prefixes) == 2**6 + 2**5 + 2**4 + 2**3


def test_conclusions() -> None:
    steps = ("a,R,write,a", "_,L,back,c")
    machine = marked_palindromes()
    assert machine.conclusion((), steps) == {"string": "a c", "halted": "no", "steps per symbol": "1"}
    assert machine.conclusion((), ("_,S,done",)) == {"string": "", "halted": "yes"}


def test_files_read_back(tmp_path: Path) -> None:
    path = tmp_path / "some.ptm.toml"
    for machine in (equal_numbers(), marked_palindromes(), *(random_probabilistic_machine(s, 3, 4) for s in range(4))):
        machine.write(path)
        assert ProbabilisticTuringMachine.read(path) == machine
        text = path.read_bytes()
        ProbabilisticTuringMachine.read(path).write(path)
        assert path.read_bytes() == text
    assert read_spec(EXAMPLES / "marked_palindromes.ptm.toml") == marked_palindromes()


def test_too_many_masses_are_refused_or_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probabilistic_turing, "MAX_MASSES", 500)
    with pytest.raises(BuildRefused, match=r"more than 500 configurations and strings in its first \d+ steps"):
        marked_palindromes().masses(100)
    partial = marked_palindromes().masses(100, partial=True)
    assert 5 < partial.steps < 10
    assert partial.halted + partial.running == 1


GOOD = """\
start = "s"
halt = ["h"]
blank = "_"
emits = ["a"]

[states.s]
_ = ["1/2 _ R s a", "0.5 _ S h"]
"""
BAD = {
    "a sum": (
        "0.5 _ S h",
        "0.4 _ S h",
        ["x.ptm.toml:7: the probabilities of 's' on '_' must sum to 1, they sum to 9/10"],
    ),
    "a negative one": ('"0.5 _ S h"', '"3/2 _ S h", "-1 _ S s"', ["above 0 and at most 1: 3/2", "at most 1: -1"]),
    "zero": ('"0.5 _ S h"', '"1/2 _ S h", "0 _ S s"', ["above 0 and at most 1: 0"]),
    "no fraction": ("0.5 _ S h", "half _ S h", ["x.ptm.toml:7: a rule is a text", "not 'half _ S h'"]),
    "over zero": ("0.5 _ S h", "1/0 _ S h", ["not '1/0 _ S h'"]),
    "a huge number": ("0.5 _ S h", "1e999999999 _ S h", ["not '1e999999999 _ S h'"]),
    "too few words": ("0.5 _ S h", "0.5 _ S", ["not '0.5 _ S'"]),
    "another symbol": ("R s a", "R s b", ["a rule of 's' emits 'b': add it to emits"]),
    "a symbol twice": ('["a"]', '["a", "a"]', ["x.ptm.toml:4: the symbols of emits must differ"]),
    "a step twice": ("0.5 _ S h", "0.5 _ R s a", ["'s' on '_' lists '_,R,s,a' 2 times: list it once, with the sum"]),
    "a state": ("0.5 _ S h", "0.5 _ S x", ["a rule of 's' goes to 'x', which has no rules and is not one of halt"]),
    "a move": ("0.5 _ S h", "0.5 _ U h", ["a rule of 's' moves 'U': it must be L, R or S"]),
    "a mark": ("0.5 _ S h", "0.5 x S h", ["a rule of 's' writes 'x', which is not on the tape: add it to marks"]),
    "a name": ('["a"]', '["a b"]', ["the name of a symbol is a word without blanks and commas"]),
    "no list": ('["1/2 _ R s a", "0.5 _ S h"]', "3", ["states.s._"]),
    "no rules": ("[states.s]", "[other.s]", ["states"]),
}


@each("name", BAD)
def test_a_bad_file_is_told_with_its_lines(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ptm.toml"
    path.write_text(GOOD, encoding="utf-8")
    assert ProbabilisticTuringMachine.read(path).masses(1).halted == Fraction(1, 2)
    old, new, messages = BAD[name]
    assert old in GOOD
    path.write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        ProbabilisticTuringMachine.read(path)
    for message in messages:
        assert message in str(caught.value)
