"""`.rasp` files: what they say, and every mistake with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cases import each
from vitrify.errors import SpecError
from vitrify.spec import read_spec
from vitrify.spec.programs import expression as language
from vitrify.spec.programs.program import Program, program

GOOD = """# the word backwards
alphabet: a b c
length: 6
sees: everything

opposite = width(everywhere) - indices - 1
return aggregate(select(indices, opposite), tokens)
"""
HEAD = "alphabet: a b\nlength: 5\nsees: left\n"


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "backwards.rasp"
    path.write_text(GOOD, encoding="utf-8")
    program = read_spec(path)
    assert isinstance(program, Program)
    assert program.name == "backwards"
    assert program(list("abbc")) == list("cbba")
    program.write(tmp_path / "again.rasp")
    assert Program.read(tmp_path / "again.rasp").root is program.root


def test_functions_are_written_out_as_tables() -> None:
    program = Program.from_text(HEAD + 'return {"a": 2, "b": 3}[tokens] + 1')
    assert program(["a", "b"]) == [3, 4]
    assert Program.from_text(program.to_text()).root is program.root


def test_a_relation_is_written_as_pairs() -> None:
    program = Program.from_text(HEAD + 'return width(select(tokens, tokens, {("a", "b")}))')
    assert program(["a", "a", "b"]) == [0, 0, 2]
    assert Program.from_text(program.to_text()).root is program.root


def test_arguments_may_be_named_in_any_order() -> None:
    by_name = Program.from_text(HEAD + 'return width(select(queries=tokens, keys="a", predicate="=="))')
    assert by_name.root is Program.from_text(HEAD + 'return width(select("a", tokens, "=="))').root


@each("word", ("and", "or"))
def test_three_selectors_are_combined(word: str) -> None:
    lines = f'same = select(tokens, tokens)\nreturn width(before {word} same {word} marked(tokens == "a"))'
    program = Program.from_text(HEAD + lines)
    assert program(list("abab")) == ([0, 0, 1, 0] if word == "and" else [1, 2, 3, 4])
    assert Program.from_text(program.to_text()).root is program.root


FRACTIONS = {
    "value": "{0: Fraction(-1, 2), 1: 1, 2: 2, 3: 3, 4: 4}[indices]",
    "key": "{Fraction(1, 2): 1, 2: 4}[{0: Fraction(1, 2), 1: 2, 2: 2, 3: 2, 4: 2}[indices]]",
    "relation": "width(select(mean(upto, indices), indices, {(Fraction(1, 2), 1), (0, 0)}))",
    "default": "mean(before, indices, -1)",
    "fraction as default": "mean(before, indices, Fraction(-1, 2))",
}


@each("case", FRACTIONS)
def test_fractions_and_negative_constants_are_read_as_they_are_written(case: str) -> None:
    program = Program.from_text(HEAD + f"return {FRACTIONS[case]}")
    assert Program.from_text(program.to_text()).root is program.root


def test_an_empty_relation_selects_nothing_when_it_is_read_again() -> None:
    """Not even where key and query are None, as in the first position here."""
    left = language.aggregate(language.before, language.tokens)
    nothing = program(language.width(language.select(left, left, lambda _key, _query: False)), "a", 3, causal=True)
    assert nothing(["a", "a"]) == Program.from_text(nothing.to_text())(["a", "a"]) == [0, 0]


BAD = {
    "no header": ("return tokens", [r"alphabet: …' is missing", "length: …' is missing", "sees: …' is missing"]),
    "empty alphabet": ("alphabet:\nlength: 5\nsees: left\nreturn tokens", [":1: the alphabet has no symbol"]),
    "a symbol twice": ("alphabet: a a\nlength: 5\nsees: left\nreturn tokens", [":1: the alphabet has a twice"]),
    "length": ("alphabet: a\nlength: few\nsees: left\nreturn tokens", [":2: the length must be a whole number"]),
    "sees": (
        "alphabet: a\nlength: 5\nsees: right\nreturn tokens",
        [":3: 'sees' is 'everything' or 'left', not 'right'"],
    ),
    "syntax": (HEAD + "x = (1\nreturn x", [":4: not an expression"]),
    "no return": (HEAD + "x = tokens", ["last line must be 'return expression'"]),
    "recursion": (
        HEAD + "x = x + 1\nreturn x",
        [":4: x is not defined above this line; a program can't refer to itself"],
    ),
    "loop": (HEAD + "for i in tokens:\n    pass\nreturn tokens", [":4: a line is 'name = expression'"]),
    "lambda": (HEAD + "return (lambda x: x)(tokens)", [":4: .* is not part of the language"]),
    "two at once": (HEAD + "x = foo\ny = bar\nreturn x", [":4: foo is not defined", ":5: bar is not defined"]),
    "selector returned": (HEAD + "return before", [":4: a selector has no values"]),
    "selector and value": (
        HEAD + "return width(before & tokens)",
        [":4: 'and' can't take a selector here: & | ~ combine selectors with selectors"],
    ),
    "reserved name": (HEAD + "tokens = 1\nreturn tokens", [":4: tokens has a meaning already"]),
    "after return": (HEAD + "return tokens\nx = 1", [":5: nothing may come after 'return'"]),
    "wrong arity": (HEAD + "return width(before, tokens, tokens)", [":4: width is not called like that"]),
    "default": (HEAD + "return last(before, tokens, indices)", [":4: the default of last must be a constant"]),
    "keyword": (HEAD + 'return width(select(tokens, "a", how="=="))', [":4: .* is not part of the language"]),
    "two names": (HEAD + "x = y = tokens\nreturn x", [":4: a line defines one name"]),
    "fraction": (HEAD + "return Fraction(1, 0)", [":4: Fraction is not called like that"]),
    "key twice": (HEAD + 'return {"a": 1, "a": 2}[tokens]', [":4: a key of this table has 1 value, and occurs once"]),
    "list in a table": (HEAD + "return {[1]: 2}[indices]", [":4: a table is written with constants only"]),
    "list in a relation": (HEAD + "return width(select(indices, 1, {(1, [2])}))", [":4: a relation is written as"]),
    "relation": (HEAD + "return width(select(tokens, tokens, '<>'))", [":4: select compares with one of"]),
    "open table": (HEAD + 'return {"a": tokens}[tokens]', [":4: a table is written with constants only"]),
    "partial table": (HEAD + 'return {"a": 1}[tokens]', ["fails on 'b'"]),
    "words as numbers": (HEAD + "return tokens + 1", ["'\\+' is for numbers, but one of its arguments can be 'a'"]),
    "division by zero": (HEAD + "return 1 % indices", ["divides by an expression that can be 0"]),
    "explosion": (
        "alphabet: a b\nlength: 200\nsees: left\nx = width(before)\nreturn x * x * x * x",
        ["would be a table of|has .* values, more than"],
    ),
}


@each("case", BAD)
def test_mistakes_are_told_with_their_lines(case: str, tmp_path: Path) -> None:
    text, messages = BAD[case]
    path = tmp_path / "bad.rasp"
    path.write_text(text, encoding="utf-8")
    for message in messages:
        with pytest.raises(SpecError, match=message):
            Program.read(path)


def test_only_rasp_files_are_read(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"must end in \.rasp"):
        Program.read(tmp_path / "x.py")
