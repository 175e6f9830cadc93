"""`.ltl` files and what formulas mean, by hand."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from cases import each
from formulas import random_formula
from vitrify.errors import SpecError
from vitrify.spec import read_spec
from vitrify.spec.logic.ltl import Formula

HEAD = "alphabet: a b\nlength: 9\n"


def truth(text: str, word: str) -> str:
    formula = Formula.from_text(HEAD + text)
    row = formula.holds(np.array([["ab".index(letter) for letter in word]]))[0]
    return "".join("1" if held else "0" for held in row)


@each(
    ("text", "word", "wanted"),
    [
        ("a", "abba", "1001"),
        ("!a", "abba", "0110"),
        ("Y a", "abba", "0100"),
        ("O b", "aaba", "0011"),
        ("H a", "aaba", "1100"),
        ("a S b", "aabaab", "001111"),
        ("b S a", "babba", "01111"),
        ("a & Y b | b", "abab", "0111"),
        ("a -> b -> a", "ab", "11"),
        ("(a <-> Y b)", "abba", "0101"),
        ("MOD(1, 3)", "aaaaa", "01001"),
        ("AT(3, 1, 1)", "aaaaa", "01010"),
        ("true & !false", "a", "1"),
        ("yesterday a or once b", "ab", "01"),
        ("historically a and (a since a)", "aab", "110"),
        ('"a"', "ab", "10"),
        ("x = Y a\ny = x & a\ny | b", "aab", "011"),
    ],
)
def test_formulas_mean_what_they_say(text: str, word: str, wanted: str) -> None:
    assert truth(text, word) == wanted


@each("seed", range(40))
def test_reading_undoes_writing(seed: int) -> None:
    formula = random_formula(seed)
    assert Formula.from_text(formula.to_text()) == formula


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "after.ltl"
    path.write_text("# b after a\n" + HEAD + "b -> Y a\n", encoding="utf-8")
    formula = read_spec(path)
    assert isinstance(formula, Formula)
    assert (formula.name, formula.depth) == ("after", 1)


BAD = {
    "no header": ("a", ["'alphabet: …' is missing", "'length: …' is missing"]),
    "no formula": (HEAD, ["there is no formula"]),
    "future": (HEAD + "a U b", [":3: U refers to the future"]),
    "future too": (HEAD + "x = G a\nF x", [":3: G refers to the future", ":4: F refers to the future"]),
    "letter": (HEAD + "a & c", [":3: 'c' is no letter and no name; there are a, b"]),
    "quoted letter": (HEAD + '"c"', [":3: 'c' is not in the alphabet"]),
    "bracket": (HEAD + "(a & b", [":3: the expression ends too early"]),
    "rest": (HEAD + "a b", [":3: 'b' is not expected here"]),
    "end": (HEAD + "a &", [":3: the expression ends too early"]),
    "at": (HEAD + "AT(1 2)", [r":3: AT\(p, q, …\) takes positions, counted from 0"]),
    "at nothing": (HEAD + "AT()", [r":3: AT\(p, q, …\) takes positions"]),
    "mod": (HEAD + "MOD(3, 2)", [r":3: MOD\(r, m\) takes whole numbers"]),
    "length": ("alphabet: a\nlength: x\na", ["the length must be a whole number"]),
    "twice": (HEAD + "a\nb", [":4: there is one formula"]),
}


@each("case", BAD)
def test_mistakes_are_told_with_their_lines(case: str, tmp_path: Path) -> None:
    text, messages = BAD[case]
    path = tmp_path / "bad.ltl"
    path.write_text(text, encoding="utf-8")
    for message in messages:
        with pytest.raises(SpecError, match=message):
            Formula.read(path)


POSITIONAL = ("AT(2, 5) & a", "O (AT(0, 3) & MOD(1, 2) | b & AT(4))", "H (AT(1, 2) -> a) <-> MOD(2, 3)")
TEXTS = [
    *(random_formula(seed, 4, letters="ab").to_text() for seed in range(20)),
    *(HEAD + text for text in POSITIONAL),
]


@pytest.mark.long
@each("text", [*TEXTS, *(HEAD + text for text in POSITIONAL)])
def test_the_automaton_of_a_formula_accepts_where_it_is_true(text: str) -> None:
    formula = Formula.from_text(text)
    automaton = formula.automaton()
    assert automaton == automaton.minimized()
    assert formula.automaton(empty=True).accepts(())
    assert not automaton.accepts(())
    for word in product("ab", repeat=7):
        truth = formula.holds(np.array([["ab".index(letter) for letter in word]]))[0].tolist()
        assert [automaton.accepts(word[: at + 1]) for at in range(7)] == truth
