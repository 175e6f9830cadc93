"""`.crasp` files and what counting programs mean, by hand."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cases import each
from vitrify.errors import SpecError
from vitrify.spec import read_spec
from vitrify.spec.logic.crasp import Crasp, dyck1, majority, random_counting, shuffle_dyck, stateless_counters

HEAD = "alphabet: a b\nlength: 9\n"


def said(spec: Crasp, word: str) -> str:
    row = spec.holds(np.array([[spec.alphabet.index(letter) for letter in word]]))[0]
    return "".join("1" if held else "0" for held in row)


@each(
    ("text", "word", "wanted"),
    [
        ("a", "abba", "1001"),
        ('"a" | false', "abba", "1001"),
        ("#a > #b", "abbaaa", "100011"),
        ("#a >= 2", "abaa", "0011"),
        ("#a = 1", "abaa", "1100"),
        ("#a != 1", "abaa", "0011"),
        ("#a <= 1 & true", "abaa", "1100"),
        ("#a < 2 -> b", "abaa", "0111"),
        ("a -> b -> a", "ab", "11"),
        ("(a <-> #b > 0)", "aba", "001"),
        ("!#a = 1", "abaa", "0011"),
        ("#!a > 0", "aba", "011"),
        ("! a & b", "ab", "01"),
        ("#a - #b - 1 = 0", "aab", "101"),
        ("2 * #a + -1 * #b = 3", "aab", "001"),
        ("-#a + 2 = 0", "aab", "011"),
        ("#a + 2 * 3 = 7", "ab", "11"),
        ("min(#a, #b, 1) = 1", "aab", "001"),
        ("max(#a, #b) = 2", "aab", "011"),
        ("(a ? #a : 0 - #b) = 2", "abab", "0010"),
        ("a ? b : #a > 1", "aab", "001"),
        ("#(#a > 1) = 2", "aabb", "0010"),
        ("#true = 3", "aaaa", "0010"),
        ("MOD(1, 3)", "aaaaa", "01001"),
        ("AT(3, 1, 1)", "aaaaa", "01010"),
        ("#(a & AT(0, 2)) = 2", "abab", "0011"),
        ("x := #a\ny := x - #b\n#(y < 0) = 0 & y = 0", "abba", "0100"),
        ("length := #true\nlength > 1", "ab", "01"),
        ("// said before\n #a > 0", "ba", "01"),
    ],
)
def test_programs_mean_what_they_say(text: str, word: str, wanted: str) -> None:
    assert said(Crasp.from_text(HEAD + text), word) == wanted


@each("seed", range(40))
def test_reading_undoes_writing(seed: int) -> None:
    spec = random_counting(seed)
    assert Crasp.from_text(spec.to_text()) == spec


def test_chains_of_names_cost_their_length() -> None:
    lines = ["x0 := #a", *(f"x{i + 1} := min(x{i}, x{i}) + 0 * x{i}" for i in range(300)), "x300 > 1"]
    spec = Crasp.from_text(HEAD + "\n".join(lines))
    assert len(spec.steps) < 1_000
    assert Crasp.from_text(spec.to_text()) == spec
    assert said(spec, "aba") == "001"
    deep = Crasp.from_text(HEAD + "\n".join(["x0 := #a", *(f"x{i + 1} := -x{i}" for i in range(300)), "x300 > 1"]))
    assert Crasp.from_text(deep.to_text()) == deep


@each(
    ("text", "depth", "counts"),
    [
        ("a", 0, 0),
        ("#a > 1", 1, 1),
        ("#a > #true", 1, 1),
        ("#a + #a > #(a)", 1, 1),
        ("#(#a > #b) = 0", 2, 3),
        ("#(#(#a > 1) > 1) > #b", 3, 4),
    ],
)
def test_depth_is_the_nesting_of_counts(text: str, depth: int, counts: int) -> None:
    spec = Crasp.from_text(HEAD + text)
    assert (spec.depth, spec.counts) == (depth, counts)


def test_a_file_is_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / "more.crasp"
    path.write_text("// more a than b\n" + HEAD + "\n#a > #b\n", encoding="utf-8")
    spec = read_spec(path)
    assert isinstance(spec, Crasp)
    assert (spec.name, spec.depth) == ("more", 1)
    spec.write(tmp_path / "again.crasp")
    assert Crasp.read(tmp_path / "again.crasp") == spec


def balanced(word: str, pairs: str) -> bool:
    heights = dict.fromkeys(pairs[::2], 0)
    for letter in word:
        kind = pairs[pairs.index(letter) // 2 * 2]
        heights[kind] += 1 if letter == kind else -1
        if heights[kind] < 0:
            return False
    return not any(heights.values())


@pytest.mark.long
def test_languages_are_what_their_names_say() -> None:
    rng = np.random.default_rng(1)
    brackets, shuffled, most = dyck1(9), shuffle_dyck([("(", ")"), ("[", "]")], 9), majority("a", "ab", 9)
    for length in range(1, 9):
        for numbers in np.unique(rng.integers(0, 4, size=(300, length)), axis=0).tolist():
            square = "".join("()[]"[n] for n in numbers)
            round_, letters = "".join("()"[n % 2] for n in numbers), "".join("ab"[n % 2] for n in numbers)
            assert said(brackets, round_)[-1] == str(int(balanced(round_, "()")))
            assert said(shuffled, square)[-1] == str(int(balanced(square, "()[]")))
            assert said(most, letters)[-1] == str(int(letters.count("a") > letters.count("b")))


def test_stateless_counters_test_for_zero() -> None:
    spec = stateless_counters({"a": (1, 2), "b": (-1, 0), "c": (0, -1)}, [(True, True), (False, False)], 9)
    assert said(spec, "abcca") == "10011"
    spec = stateless_counters({"a": (1, 2), "b": (-1, 0), "c": (0, -1)}, [(True, False)], 9)
    assert said(spec, "abcca") == "01100"
    for moves, accepting in (({"a": (1,), "b": ()}, []), ({"a": (1,)}, [(True, True)]), ({"a": ()}, [])):
        with pytest.raises(SpecError, match="the same counters"):
            stateless_counters(moves, accepting, 9)


BAD = {
    "no header": ("a", ["'alphabet: …' is missing", "'length: …' is missing"]),
    "no result": (HEAD + "x := a", ["there is no result"]),
    "nothing": (HEAD, ["there is no result"]),
    "a count": (HEAD + "#a", [":3: the result must be a truth value, is a count"]),
    "letter": (HEAD + "a & c", [":3: 'c' is no letter and no name; there are a, b"]),
    "quoted letter": (HEAD + '#"c" > 1', [":3: 'c' is not in the alphabet"]),
    "itself": (HEAD + "x := x + 1\nx > 1", [":3: 'x' is defined by itself"]),
    "future": (HEAD + "x := y & a\ny := b\nx", [":3: 'y' is used before line 4, which defines it"]),
    "twice": (HEAD + "x := a\nx := b\nx", [":4: 'x' is defined twice, first in line 3"]),
    "name of a letter": (HEAD + "a := b\na", [":3: 'a' is a letter of the alphabet"]),
    "reserved": (HEAD + "min := b\na", [":3: 'min' has a meaning of its own"]),
    "strange name": (HEAD + "1x := b\na", [":3: a name is made of letters"]),
    "counts and &": (HEAD + "#a & b", [":3: & takes truth values, not a count"]),
    "not a count": (HEAD + "!#a", [":3: ! takes truth values, not a count"]),
    "truth and +": (HEAD + "a + 1 > 0", [r":3: \+ takes counts, not a truth value"]),
    "truth and =": (HEAD + "a = b", [":3: = takes counts, not a truth value; truth values are compared by <->"]),
    "count of a count": (HEAD + "##a > 1", [":3: # takes truth values, not a count"]),
    "condition": (HEAD + "(#a ? 1 : 2) > 1", [r":3: a truth value must stand before \?"]),
    "branches": (HEAD + "(a ? 1 : b) > 1", [":3: both sides of : must be of one type, they are a count and a truth"]),
    "no else": (HEAD + "(a ? 1) > 1", [r":3: ':' is expected, got '\)'"]),
    "product": (HEAD + "#a * #b > 1", [r":3: \* multiplies by a whole number"]),
    "one operand": (HEAD + "min(#a) > 1", [":3: min takes two counts or more"]),
    "bracket": (HEAD + "(a & b", [r":3: the expression ends too early: '\)' is missing"]),
    "end": (HEAD + "a &", [":3: the expression ends too early"]),
    "rest": (HEAD + "a b", [":3: 'b' is not expected here"]),
    "sign": (HEAD + "a $ b", [r":3: '\$' is not expected here"]),
    "open quote": (HEAD + 'a & "b', [":3: a quotation mark is not closed"]),
    "at": (HEAD + "#AT(1, a) > 1", [r":3: AT\(p, q, …\) takes positions, counted from 0"]),
    "at as a name": (HEAD + "AT := a\nb", [":3: "]),
    "mod": (HEAD + "MOD(3, 2)", [r":3: MOD\(r, m\) takes whole numbers"]),
    "large": (HEAD + "x := #a * 999999999999\nx * 99999 > 1", [r":4: this count can reach 2\^53"]),
    "large differences": (HEAD + "x := #a * 999999999999999\n0 - x - x > 0", [r":4: this count can reach 2\^53"]),
    "larger": (HEAD + "#a > 12345678901234567", [":3: the number .* is too large"]),
    "deep": (HEAD + "(" * 60 + "a" + ")" * 60, [":3: more than 50 expressions are nested"]),
    "length": ("alphabet: a\nlength: 0\na", [":2: the length must be a whole number from 1"]),
    "alphabet": ("alphabet: a a\nlength: 3\na", [":1: the alphabet has a twice"]),
    "header twice": (HEAD + "length: 3\na", [":3: the line 'length: …' occurs twice"]),
    "results": (HEAD + "a\nb", [":3: only the last line is a result"]),
    "all at once": (
        HEAD + "x := #a & b\ny := c\nz := x + 1\na = b",
        [":3: & takes", ":4: 'c' is no letter", ":6: = takes"],
    ),
}


@each("case", BAD)
def test_mistakes_are_told_with_their_lines(case: str, tmp_path: Path) -> None:
    text, messages = BAD[case]
    path = tmp_path / "bad.crasp"
    path.write_text(text, encoding="utf-8")
    for message in messages:
        with pytest.raises(SpecError, match=message):
            Crasp.read(path)


def test_what_builds_on_a_mistake_is_not_told_again() -> None:
    with pytest.raises(SpecError) as told:
        Crasp.from_text(HEAD + "x := #a & b\ny := x + 1\ny > 0")
    assert len(told.value.problems) == 1


@each("text", ["#(a & AT(1, 4)) = 1", "MOD(1, 2) & AT(2, 3) | #(b & MOD(0, 3)) > 1", "AT(0)"])
def test_states_know_the_position_as_far_as_it_matters(text: str) -> None:
    spec = Crasp.from_text(HEAD + text)
    states = spec.meanings()["transducer"].states
    assert states is not None
    for word in product("ab", repeat=7):
        state: Any = states.start
        answers = []
        for letter in word:
            state = states.step(state, letter)
            answers.append("1" if state[2] else "0")
        assert "".join(answers) == said(spec, "".join(word))


def test_a_letter_may_be_called_at() -> None:
    spec = Crasp.from_text("alphabet: AT b\nlength: 9\nAT")
    assert spec.holds(np.array([[0, 1]])).tolist() == [[True, False]]
