"""Turing machines: what they do, against a tape that is rewritten; their files and limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cases import each
from oracles.naive_turing import steps_of
from vitrify.errors import BuildRefused, InputError, SpecError
from vitrify.spec import read_spec
from vitrify.spec.computation.thought import Thinking
from vitrify.spec.computation.turing import TuringMachine, busy_beaver, increment, palindrome, random_machine

EXAMPLES = Path(__file__).parents[3] / "examples"


@each("seed", range(20))
def test_thoughts_and_conclusions_are_those_of_a_rewritten_tape(seed: int) -> None:
    machine = random_machine(seed, 1 + seed % 5, 2 + seed % 3, halting=0.05, length=4, steps=60)
    rules = {(rule.state, rule.read): (rule.write, rule.move, rule.to) for rule in machine.rules}
    word = machine.draw_prompt(np.random.default_rng(seed))
    steps, tape = steps_of(rules, machine.start, machine.halt, machine.blank, "".join(word), 60)
    assert machine.thought(word, 60) == tuple(steps)
    said = machine.conclusion(word, steps)
    assert said["tape"].replace(" ", "") == tape
    assert said["halted"] == ("yes" if steps[-1].endswith("halt") else "no")
    assert machine.prompt_length([*word, *steps]) == len(word)


def test_known_machines() -> None:
    assert increment(4).limit == 10  # there, the blank, and back over ones
    assert palindrome(3).conclusion("aba", palindrome(3).thought("aba", 99))["accepted"] == "yes"
    assert busy_beaver().limit == 107
    assert isinstance(busy_beaver(), Thinking)
    assert "accepted" not in increment().conclusion("1", increment().thought("1", 99))
    assert set(increment().written) - set(increment().vocabulary) == {"1,S,done"}


def test_files_read_back(tmp_path: Path) -> None:
    path = tmp_path / "some.tm.toml"
    quoted = TuringMachine.of({"ä.b": {"_": '" S x', '"': '" S x'}}, start="ä.b", halt=["x"], alphabet='"', steps=3)
    for machine in (increment(), palindrome(), busy_beaver(), quoted, *(random_machine(s, 3, 4) for s in range(4))):
        machine.write(path)
        text = path.read_bytes()
        assert TuringMachine.read(path) == machine
        TuringMachine.read(path).write(path)
        assert path.read_bytes() == text
    assert read_spec(EXAMPLES / "increment.tm.toml") == increment(8)
    assert read_spec(EXAMPLES / "palindrome.tm.toml") == palindrome(6)
    assert read_spec(EXAMPLES / "beaver.tm.toml") == busy_beaver()


GOOD = """\
start = "a"
halt = ["h"]
blank = "_"
alphabet = ["1"]
length = 3

[states.a]
_ = "1 R h"
1 = "1 L a"
"""
BAD = {
    "empty": ("", [f": {key} is missing" for key in ("start", "halt", "blank", "alphabet", "length", "states")]),
    "not TOML": (GOOD.replace('"a"', '"a', 1), [":1: the file must be TOML"]),
    "shapes": (
        GOOD.replace('"a"', "1", 1).replace('["h"]', '"h"').replace("3", '"3"'),
        [
            ':1: start must be a text, not 1; write "1"',
            ":2: halt must be a list, each entry a text",
            ":5: length must be a whole",
        ],
    ),
    "unknown key": ("tapes = 2\n" + GOOD, [":1: tapes is not a parameter; there are: start, halt"]),
    "rules": (
        GOOD.replace("1 R h", "1 R").replace('"1 L a"', "3"),
        [":8: a rule is a text", ":9: a rule is a text", ":9: states.a.1 .* must be a text, not 3"],
    ),
    "no states": (
        GOOD.split("[states")[0] + "[states]\n",
        [r":7: states \(a table \[states.NAME\] of rules for each state\) must be a table"],
    ),
    "flat states": (
        GOOD.replace("[states.a]", "[states]"),
        [':8: states._ .* must be a table, .* not "1 R h"', ":9: states.1 .* must be a table"],
    ),
    "start": (GOOD.replace('"a"', '"b"', 1), [":1: the start state 'b' has no rules: it must be one of a"]),
    "start halts": (GOOD.replace('"a"', '"h"', 1), [":1: the start state 'h' is one in which it stops"]),
    "missing rule": (GOOD.replace('1 = "1 L a"\n', ""), [":7: the state 'a' has no rule for '1'"]),
    "strange symbol": (
        GOOD + '2 = "3 S a"\n',
        [":10: a rule of 'a' reads '2', which", ":10: a rule of 'a' writes '3'"],
    ),
    "strange move": (GOOD.replace("1 L a", "1 X a"), [":9: a rule of 'a' moves 'X': it must be L, R or S"]),
    "strange state": (GOOD.replace("1 L a", "1 L b"), [":9: a rule of 'a' goes to 'b', which has no rules"]),
    "halting rules": (GOOD.replace('"h"', '"h", "a"', 1), [":2: 'a' stops, so it has no rules"]),
    "accept": ('accept = ["q"]\n' + GOOD, [":1: 'q' accepts, so it must be one of halt"]),
    "same symbols": ('marks = ["1"]\n' + GOOD, [":1: the symbol '1' has several", ":5: the symbol '1' has several"]),
    "names": (
        GOOD.replace('"h"', '"h,1"').replace("1 R h", "1 R h,1").replace('["1"]', '["1", "a b"]'),
        [":2: the name of a state is a word", ":4: the name of a symbol is a word", ":7: the state 'a' has no rule"],
    ),
    "numbers": (
        GOOD.replace("3", "-1").replace("length", "steps = 0\nlength"),
        [":5: steps must be a whole number from 1", ":6: length must"],
    ),
}


@each("case", BAD)
def test_mistakes_are_told_with_their_lines_all_at_once(case: str, tmp_path: Path) -> None:
    text, messages = BAD[case]
    path = tmp_path / "bad.tm.toml"
    path.write_text(text, encoding="utf-8")
    for message in messages:
        with pytest.raises(SpecError, match=message):
            TuringMachine.read(path)
    with pytest.raises(SpecError) as caught:
        TuringMachine.read(path)
    assert len(caught.value.problems) == len(messages)


def test_values_are_checked_too(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"has no rule for '1'\n.*goes to 'c'"):
        TuringMachine.of({"a": {"_": "_ S c"}}, start="a", halt=[], alphabet="1")
    with pytest.raises(SpecError, match=r"must end in \.tm\.toml"):
        TuringMachine.read(tmp_path / "x.toml")
    with pytest.raises(InputError, match="'2': an input has the letters 0 1"):
        increment().thought("12", 3)


def test_limits() -> None:
    loop = TuringMachine.of({"a": {"_": "_ S a", "1": "1 S b"}}, start="a", halt=["b"], alphabet="1", length=1)
    with pytest.raises(BuildRefused, match="no step limit, and on the input nothing it does not halt"):
        _ = loop.limit
    assert random_machine(0, 2, 2, steps=7).limit == 7
