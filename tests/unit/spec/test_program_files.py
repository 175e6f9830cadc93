"""`.rasp` files: what they say, and every mistake with its line."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from cases import each
from vitrify.certification import certify
from vitrify.constructions.catalogue import Attention, build
from vitrify.errors import BuildRefused, SpecError
from vitrify.net.answers import run
from vitrify.net.inference import trace
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
    "a name twice": (
        HEAD + "x = tokens\ny = 1\nx = indices\nreturn x",
        [":6: x is defined on line 4 already: choose another name"],
    ),
    "words are added": (HEAD + "return sum(upto, tokens)", [":4: sum adds numbers only: its values are a, b"]),
    "words are compared": (HEAD + "return max(upto, tokens)", [":4: max compares numbers only: its values are a, b"]),
    "a number alone": (
        HEAD + "return max(indices)",
        [":4: max is not called like that: max takes two numbers or more"],
    ),
    "no constant for the empty word": (
        HEAD + "empty: tokens\nreturn tokens",
        [":4: the answer for the empty word is a"],
    ),
    "no value for the empty word": (
        HEAD + "empty: 1\nreturn tokens == 'a'",
        [r"must be a value of the program \(False, True\), not 1"],
    ),
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


MEANT = {
    "return avg(upto, indices)": r"write mean\(selector, values\)",
    "return agregate(upto, tokens)": r"aggregate\(…\) is",
    "return len(tokens)": r"the length of the word is width\(everywhere\)",
    "height = 1\nreturn heigth": "height is",
    "return 0.5 * indices": r"numbers are exact: Fraction\(1, 2\)",
    "return indices / 2": r"a constant is Fraction\(1, 2\)",
    "return tokens[0]": r"aggregate\(select\(indices, position\), values\)",
    "return lambda x: x": "a function of values is a table",
    "return 0 < indices < 3": "write x < y and y < z",
    'return tokens in ("a", "b")': 'write x == "a" or x == "b"',
    "return tokens.count(1)": r"without a dot: count\(…\)",
    "for i in indices:\n    pass\nreturn 1": "a selector reads all positions at once",
    "x = 1\nx += 1\nreturn x": "an expression does not change",
    "if indices:\n    pass\nreturn 1": "a choice is an expression: x if condition else y",
    "return indices == 1 && tokens": "write and",
    "return !indices": "write not",
    "return indices ? 1 : 2": "a choice is x if condition else y",
}


@each("body", MEANT)
def test_a_message_says_what_was_meant(body: str) -> None:
    with pytest.raises(SpecError, match=MEANT[body]) as stopped:
        Program.from_text(HEAD + body)
    assert all(problem.line for problem in stopped.value.problems)


def test_names_of_a_file_become_labels() -> None:
    """Of spaces, of heads (with the name of the selector), of units, and of what a net reads of the token."""
    text = HEAD + (
        'rank = {"a": 4, "b": 2}[tokens]\nhigher = select(rank, rank, ">") & upto\nindex = width(higher)\n'
        "best = max(higher, rank, 0)\nbigger = index > 1\nreturn (best if bigger else rank) % 3"
    )
    spec = Program.from_text(text)
    net = build(spec)
    spaces = {space.name for space in net.labels.spaces}
    assert {"index #2", "best", "bigger"} <= spaces  # the net has an index of its own
    assert "higher: best" in {head.name for head in net.labels.heads}
    assert "values of bigger" in {units.name for units in net.labels.units}
    assert trace(net, "aba").read("best")[1:] == [*map(str, spec_values(spec, "best", "aba"))]
    again = Program.from_text(spec.to_text())
    assert build(again).labels == net.labels


def spec_values(spec: Program, name: str, word: str) -> list[object]:
    (part,) = (node for node, given in spec.values.names.items() if given == name)
    return list(language.evaluate(part, list(word), causal=spec.causal))


SELECTED: dict[str, Callable[[Any], Any]] = {
    "sum": lambda numbers: sum(numbers),
    "min": lambda numbers: min(numbers, default=-9),
    "max": lambda numbers: max(numbers, default=-9),
}
NUMBERS = {"a": -3, "b": 0, "c": 5, "d": Fraction(1, 2)}


@each("attention", ["softmax", "sparsemax", "hard"])
@each("name", SELECTED)
def test_sums_and_extremes_of_selected_numbers(name: str, attention: Attention) -> None:
    """Beside plain Python, word by word; and proved for every word."""
    numbers = {letter: number for letter, number in NUMBERS.items() if name == "sum" or number != Fraction(1, 2)}
    default = "" if name == "sum" else ", -9"
    head = f"alphabet: {' '.join(numbers)}\nlength: 6\nsees: everything\n"
    table = ", ".join(f"{letter!r}: {number!r}" for letter, number in numbers.items())
    text = f"score = {{{table}}}[tokens]\nothers = ~select(tokens, tokens)\nreturn {name}(others, score{default})"
    spec = Program.from_text(head + text)
    for word in (word for size in range(1, 5) for word in product(numbers, repeat=size)):
        wanted = [SELECTED[name]([numbers[other] for other in word if other != here]) for here in word]
        assert spec(word) == wanted
    if name != "sum":
        evidence = certify(build(spec, attention=attention), spec, max_length=4, prove=True)
        assert (evidence.verdict, {link.scope.value for link in evidence.links}) == ("holds", {"to T"})
    else:
        assert certify(build(spec, attention=attention), spec, max_length=4).verdict == "holds"


def test_a_head_for_the_least_is_no_head_for_the_largest() -> None:
    text = HEAD + 'score = {"a": 1, "b": 2}[tokens]\nreturn %s(upto, score, 1)'
    least, largest = (Program.from_text(text % name) for name in ("min", "max"))
    assert certify(build(least), largest, max_length=3, prove=True).verdict == "fails"


@each("sees", ["left", "everything"])
def test_a_program_answers_the_empty_word(sees: str) -> None:
    text = f"alphabet: a b\nlength: 6\nsees: {sees}\nempty: {{}}\nreturn count(tokens == 'a') == count(tokens == 'b')"
    yes, no = (Program.from_text(text.format(answer)) for answer in (True, False))
    net = build(yes)
    assert run(net, "", all_positions=True).output == ("True",)
    assert run(net, "ab", all_positions=True).output == (*["True"] * (sees == "left"), *map(str, yes("ab")))
    evidence = certify(net, yes, prove=True)
    assert (evidence.verdict, {link.scope.value for link in evidence.links}) == ("holds", {"to T"})
    assert certify(net, no, prove=True).verdict == "fails"


def test_an_answer_for_the_empty_word_is_a_symbol() -> None:
    spec = Program.from_text(HEAD + "empty: 0\nreturn mean(upto, tokens == 'a')")
    with pytest.raises(BuildRefused, match="needs outputs that are symbols"):
        build(spec)


def test_a_symbol_has_no_blank() -> None:
    with pytest.raises(SpecError, match="a symbol has no blanks in it, and 'a b' has"):
        program(language.tokens, ("a b", "c"), 3)


def test_only_rasp_files_are_read(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"must end in \.rasp"):
        Program.read(tmp_path / "x.py")
