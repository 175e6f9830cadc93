"""Automata on disk: what is written, what is read, and what is said about bad files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from re import fullmatch

import pytest

from cases import each
from vitrify.errors import SpecError
from vitrify.spec.automata import families as automata
from vitrify.spec.automata.automaton import Automaton

GOOD = """{
  "states": ["even", "odd"],
  "alphabet": ["0", "1"],
  "transitions": {
    "even": {"0": "even", "1": "odd"},
    "odd": {"0": "odd", "1": "even"}
  },
  "initial": "even",
  "accepting": ["odd"]
}
"""


def read(folder: Path, text: str | bytes, name: str = "x.automaton.json") -> Automaton:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Automaton.read(path)


def complaint(folder: Path, text: str | bytes, name: str = "x.automaton.json") -> str:
    with pytest.raises(SpecError) as caught:
        read(folder, text, name)
    assert all(problem.file == str(folder / name) for problem in caught.value.problems)
    return str(caught.value).replace(str(folder) + os.sep, "")


def test_the_written_file_is_the_one_a_person_would_write(tmp_path: Path) -> None:
    automaton = read(tmp_path, GOOD)
    automaton.write(tmp_path / "again.automaton.json")
    assert (tmp_path / "again.automaton.json").read_bytes() == GOOD.encode()
    assert automaton.accepts("1011")


def test_triples_say_the_same(tmp_path: Path) -> None:
    triples = [["even", "0", "even"], ["odd", "1", "even"], ["odd", "0", "odd"], ["even", "1", "odd"]]
    text = json.dumps(json.loads(GOOD) | {"transitions": triples})
    assert read(tmp_path, text) == read(tmp_path, GOOD)


@pytest.mark.parametrize("text", ["\ufeff" + GOOD, GOOD.replace("\n", "\r\n")])
def test_other_editors_are_welcome(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == read(tmp_path, GOOD)


def test_names_in_any_script_survive(tmp_path: Path) -> None:
    automaton = Automaton(('"π"', "\\", "{"), ("→", "é", "#"), ((1, 2, 0),) * 3, 2, frozenset())
    automaton.write(tmp_path / "x.automaton.json")
    assert Automaton.read(str(tmp_path / "x.automaton.json")) == automaton
    assert "π" in (tmp_path / "x.automaton.json").read_text(encoding="utf-8")


@each(
    ("old", "new", "fragments"),
    [
        ('"odd"],\n', '"odd"]\n', ["x.automaton.json:3: the file must be JSON: expecting ',' delimiter at column 3"]),
        (GOOD, "", ["x.automaton.json:1: the file must be JSON: expecting value"]),
        (GOOD, "[1]", ["must be a table with states, alphabet, transitions, initial, accepting, not [1]"]),
        (GOOD, "7", ["a table with states, alphabet, transitions, initial, accepting, not 7"]),
        (GOOD, "[" * 100_000, ["of a sane size"]),
        (GOOD, "1" * 5_000, ["of a sane size"]),
        (
            GOOD,
            "{}",
            [f"{key} is missing" for key in ("states", "alphabet", "accepting")]
            + [
                "transitions is missing: state: {letter: next state}, or triples",
                "initial is missing: the name of a state",
            ],
        ),
        (
            '"initial": "even"',
            '"start": "even"',
            ["initial is missing", ":8: start is not a parameter; there are: states"],
        ),
        ('"initial"', '"initial": "odd", "initial"', [":8: initial is given twice; keep one"]),
        ('"initial": "even"', '"initial": 0', [':8: initial (the name of a state) must be a text, not 0; write "0"']),
        ('"initial": "even"', '"initial": null', ["initial (the name of a state) must be a text, not null"]),
        ('"initial": "even"', '"initial": "q"', ["the initial state 'q' is not listed in states"]),
        ('["odd"]', '"odd"', [':9: accepting must be a list, each entry a text, not "odd"']),
        ('["odd"]', '["add"]', ["the accepting state 'add' is not listed in states"]),
        ('["0", "1"]', "[0, 1]", [':3: alphabet.0 must be a text, not 0; write "0"', "alphabet.1 must"]),
        ('["0", "1"]', "[]", ["at least one letter", "uses the letter '0', which is not listed in alphabet"]),
        ('["0", "1"]', '["0", "1", "0"]', ["letter '0' is listed 2 times"]),
        ('["0", "1"]', '["0", "1", " "]', ["letter ' ' contains a blank", "('even', ' '), ('odd', ' ')"]),
        ('["0", "1"]', '["0", "1", "\\ud800"]', ["surrogate"]),
        ('["even", "odd"]', "[]", ["at least one state"]),
        ('["even", "odd"]', "{}", [":2: states must be a list, each entry a text, not {}"]),
        ('"odd"},', '"odd", "2": "even"},', ["'even' --2--> 'even' uses the letter '2'"]),
        ('"1": "even"', '"1": "add"', ["'odd' --1--> 'add' uses the state 'add'"]),
        ('"1": "even"', '"1": 7', [":6: transitions.odd.1 (state: {letter: next state}", "must be a text, not 7"]),
        ('"1": "even"', '"1": "even", "1": "odd"', [":6: transitions.odd.1 is given twice; keep one"]),
        (', "1": "even"', "", ["not complete", "none for ('odd', '1');", "sink state"]),
        ('"odd": {"0"', '"even": {"0"', [":6: transitions.even is given twice; keep one"]),
        (
            '{"0": "odd", "1": "even"}',
            '["odd", "even"]',
            [":6: transitions.odd (state: {letter: next state}", "must be a table, each entry a text"],
        ),
    ],
)
def test_a_bad_json_file_is_explained(tmp_path: Path, old: str, new: str, fragments: list[str]) -> None:
    assert old in GOOD
    said = complaint(tmp_path, GOOD.replace(old, new, 1))
    for fragment in fragments:
        assert fragment in said


@each(
    ("transitions", "fragments"),
    [
        ([["even", "0", "odd"]], ["('even', '1'), ('odd', '0'), ('odd', '1')"]),
        (
            [["even", "0"], "x", ["even", 1, "odd"]],
            [
                "transitions.0 ",
                'must be a list of 3: a text, a text, a text, not ["even", "0"]',
                "transitions.1 ",
                "transitions.2.1 ",
            ],
        ),
        ([["odd", "1", "even"], ["odd", "1", "odd"]], ["state 'odd' on letter '1' leads to 'even' and 'odd'"]),
        (True, ["state: {letter: next state}, or triples [state, letter, next state]) must be a table", "not true"]),
    ],
)
def test_bad_transitions_are_explained(tmp_path: Path, transitions: object, fragments: list[str]) -> None:
    said = complaint(tmp_path, json.dumps(json.loads(GOOD) | {"transitions": transitions}))
    for fragment in fragments:
        assert fragment in said


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = (
        GOOD.replace('"initial": "even"', '"initial": "q"').replace('["odd"]', "3").replace('"1": "even"', '"2": "odd"')
    )
    assert len(complaint(tmp_path, text).splitlines()) == 4  # initial, accepting, unknown letter, missing (odd, 1)


def test_files_that_are_not_text(tmp_path: Path) -> None:
    assert "x.automaton.json:2: the file must be UTF-8; byte 0xff" in complaint(tmp_path, b'{\n"\xff": 1}')
    with pytest.raises(SpecError, match="can't be read: No such file"):
        Automaton.read(tmp_path / "none.automaton.json")
    (tmp_path / "d.regex").mkdir()
    with pytest.raises(SpecError, match="can't be read: Is a directory"):
        Automaton.read(tmp_path / "d.regex")


def test_other_names_are_refused(tmp_path: Path) -> None:
    assert "must end in .automaton.json or .regex" in complaint(tmp_path, GOOD, "x.json")
    with pytest.raises(SpecError, match=r"must end in \.automaton\.json$"):
        automata.cyclic(2).write(tmp_path / "x.regex")


# Regular expressions


def test_a_regex_file_is_read(tmp_path: Path) -> None:
    automaton = read(tmp_path, "# ends in abb\n\n  alphabet: b a\n\t(a|b)*abb \n", "x.regex")
    assert automaton.alphabet == ("b", "a")
    for length in range(6):
        for letters in product("ab", repeat=length):
            assert automaton.accepts(letters) == ("".join(letters).endswith("abb"))


@each(
    ("expression", "alphabet", "python"),
    [
        ("a{2,3}b{2,}c{,2}", None, "a{2,3}b{2,}c{0,2}"),
        (".a.", "abc", None),
        ("[a-c]+[^ab]", None, None),
        ("[^b]*", "abc", None),
        (r"\*(\(|\))?", None, None),
        (r"[\]\-a]+[*-]", None, None),
        ("()|ab", None, None),
        ("(.*a.*)&(.*b.*)", "abc", "(?=.*a.*).*b.*"),
        ("ab^c", None, "cab|acb|abc"),
        ("((a?b)*^c)&(.*b.*){2}", None, "(?=[^c]*c[^c]*$)(?=((a?c?b)|(ca?b))*c?$)(.*b.*){2}"),
        ("a&b", None, "x"),
        ("(a*b?){0,2}", None, None),
        ("(a|b)*a(a|b){3}", None, None),
    ],
)
def test_every_operator_means_what_the_docstring_says(
    expression: str, alphabet: str | None, python: str | None
) -> None:
    automaton = Automaton.from_regex(expression, alphabet)
    assert len(automaton.minimized().states) == len(automaton.states)
    for length in range(7 if len(automaton.alphabet) < 4 else 5):
        for letters in product(automaton.alphabet, repeat=length):
            word = "".join(letters)
            assert automaton.accepts(word) == (fullmatch(python or expression, word) is not None), word


@each(
    ("text", "fragments"),
    [
        ("", ["x.regex: the file has no expression"]),
        ("# only a comment\nalphabet: a\n", ["x.regex: the file has no expression"]),
        ("a\n\n# and\nb", ["x.regex:4: a second expression; the first is on line 1: join them with |"]),
        ("alphabet: a\nalphabet: b\na", ["x.regex:2: the line 'alphabet: …' occurs twice, first on line 1"]),
        ("alphabet: a bc a\na", ["x.regex:1: letter 'a' is listed 2 times", "single characters, got 'bc'"]),
        ("alphabet:\na", ["x.regex:1: an automaton needs at least one letter"]),
        ("alphabet: a b\na(cb|d)", ["x.regex:2: 'c' is outside the alphabet a b; add it", "'d' is outside"]),
        ("alphabet: a\n[a-d]", ["'b', 'c', 'd' are outside the alphabet a; add them", "\n    [a-d]\n    ^"]),
        ("()", ["no letter occurs"]),
        (".*", ["no letter occurs"]),
        ("(a|b)*(ab", ["x.regex:1: this ( is never closed; add a )", "\n    (a|b)*(ab\n          ^"]),
        ("ab)c", ["nothing opens this )", "\n    ab)c\n      ^"]),
        ("[ab", ["this [ is never closed"]),
        ("[]", ["a class needs at least one letter"]),
        ("a]", ["nothing opens this ]"]),
        ("[b-a]", ["the range b-a is empty; write a-b"]),
        ("[a b]", ["a blank can't be a letter"]),
        ("[\u0100-\uffff]", ["at most 1000 letters in a range"]),
        ("[^ab]", ["[^ab] matches no letter of the alphabet a b"]),
        ("*a", ["there is nothing before * to repeat"]),
        ("(+a)", ["there is nothing before + to repeat"]),
        ("a|?", ["there is nothing before ? to repeat"]),
        ("a+?", ["two repetitions in a row"]),
        ("a{2}*", ["two repetitions in a row"]),
        ("a|", ["an operator needs something on its right"]),
        ("(a|)b", ["an operator needs something on its right"]),
        ("|a", ["| needs something on its left"]),
        ("a||b", ["| needs something on its left"]),
        (
            "^a$",
            [
                "(^ is the shuffle, not an anchor: the whole word is always matched)\n    ^a$\n    ^\nx.regex:1: ",
                "there is no anchor $",
                "\n    ^a$\n      ^",
            ],
        ),
        ("a|b&c", ["| and & bind equally"]),
        ("a|b(c&d)^e", ["| and ^ bind equally"]),
        ("a b", ["a blank can't be a letter"]),
        (r"\d", [r"there is no escape \d"]),
        (r"[\w]", [r"there is no escape \w"]),
        ("a\\", ["a backslash needs a character after it"]),
        ("a{x}", ["a repetition looks like {2}"]),
        ("a{}", ["a repetition looks like {2}"]),
        ("a{3,2}", ["a repetition from 3 to 2 is empty; write {2,3}"]),
        ("a{0}", ["a repetition zero times is the empty word; write ()"]),
        ("a{1001}", ["at most 1000 repetitions"]),
        ("a{" + "9" * 5000 + "}", ["at most 1000 repetitions"]),
        ("(a*+|)b)(", ["two repetitions", "on its right", "nothing opens this )", "this ( is never closed"]),
    ],
)
def test_a_bad_regex_file_is_explained(tmp_path: Path, text: str, fragments: list[str]) -> None:
    said = complaint(tmp_path, text, "x.regex")
    for fragment in fragments:
        assert fragment in said


def test_a_regex_in_python_names_no_file() -> None:
    with pytest.raises(SpecError, match=r"^this \( is never closed"):
        Automaton.from_regex("(a")
    with pytest.raises(SpecError, match="single characters, got 'ab'"):
        Automaton.from_regex("a", alphabet=["ab", "a"])


@pytest.mark.long
def test_a_regex_gives_the_same_bytes_under_every_hash_seed(tmp_path: Path) -> None:
    """Sets of strings are walked in an order that depends on the process; the numbering must not."""
    code = (
        "import sys; from vitrify.spec.automata.automaton import Automaton;"
        "Automaton.from_regex('(a|b)*a(b|c){3}|(c^ab){2}').write(sys.argv[1])"
    )
    texts = []
    for seed in ("1", "2", "3"):
        path = tmp_path / f"{seed}.automaton.json"
        subprocess.run([sys.executable, "-c", code, str(path)], env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
        texts.append(path.read_bytes())
    assert texts[0] == texts[1] == texts[2]
