"""`.rasp` files: what they say, and every mistake with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cases import each
from vitrify.errors import SpecError
from vitrify.spec import read_spec
from vitrify.spec.programs.program import Program

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
        [":4: 'and' does not combine selectors with values"],
    ),
    "reserved name": (HEAD + "tokens = 1\nreturn tokens", [":4: tokens has a meaning already"]),
    "after return": (HEAD + "return tokens\nx = 1", [":5: nothing may come after 'return'"]),
    "wrong arity": (HEAD + "return width(before, tokens, tokens)", [":4: width is not called like that"]),
    "default": (HEAD + "return last(before, tokens, indices)", [":4: the default of last must be a constant"]),
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
