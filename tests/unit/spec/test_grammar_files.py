"""Grammar files: NLTK's notation, and bad input told with its line, all of it at once."""

from __future__ import annotations

import json
import warnings
from fractions import Fraction
from pathlib import Path

import pytest

from cases import each
from vitrify.errors import SpecError, SpecWarning
from vitrify.spec import read_spec
from vitrify.spec.grammars.grammar import Grammar, Rule, Symbol

EXAMPLES = Path(__file__).parents[3] / "examples"


def word(text: str) -> Symbol:
    return Symbol(text, terminal=True)


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_the_notation_is_read(tmp_path: Path) -> None:
    text = """# a comment
    %start S   # the start symbol
    NP -> 'the' N [1/3] | "don't" [.5] | '->' [ 1 / 6 ]   # words may hold anything but blanks

    S → NP VP/NP [1.0]
    VP/NP -> '#' \\
        '|' [1]
    N -> "[" [2.5e-1] | 'ε' [0.75]
    """
    grammar = Grammar.read(put(tmp_path, "x.pcfg", "\ufeff" + text.replace("\n", "\r\n")))
    assert grammar.start == "S"
    assert grammar.rules == (
        Rule("NP", (word("the"), Symbol("N")), Fraction(1, 3)),
        Rule("NP", (word("don't"),), Fraction(1, 2)),
        Rule("NP", (word("->"),), Fraction(1, 6)),
        Rule("S", (Symbol("NP"), Symbol("VP/NP")), Fraction(1)),
        Rule("VP/NP", (word("#"), word("|")), Fraction(1)),
        Rule("N", (word("["),), Fraction(1, 4)),
        Rule("N", (word("ε"),), Fraction(3, 4)),
    )
    assert grammar.nonterminals == ("NP", "S", "VP/NP", "N")
    assert grammar.terminals == ("the", "don't", "->", "#", "|", "[", "ε")


def test_the_first_left_side_is_the_start_symbol_unless_said() -> None:
    assert Grammar.from_text("A -> B\nB -> 'b'").start == "A"
    assert Grammar.from_text("S->NP\nNP->'x'").rules[0] == Rule("S", (Symbol("NP"),))


def test_what_is_written() -> None:
    text = "%start S\nA -> 'a' [1/3] | \"it's\" [2/3]\nS -> A A [0.125] | 'x' [0.875]\n"
    assert Grammar.from_text(text).to_text() == text


def test_files_are_read_by_the_ends_of_their_names(tmp_path: Path) -> None:
    for name in ("phrases.pcfg", "ambiguous.cfg"):
        grammar = read_spec(EXAMPLES / name)
        assert isinstance(grammar, Grammar)
        assert name.endswith(grammar.suffix)
        grammar.write(tmp_path / name)
        assert read_spec(tmp_path / name) == grammar
    with pytest.raises(SpecError, match=r"must end in \.cfg, as it has no probabilities"):
        Grammar.from_text("S -> 'a'").write(tmp_path / "x.pcfg")
    with pytest.raises(SpecError, match=r"must end in \.cfg or \.pcfg or \.cfg\.json"):
        Grammar.read(tmp_path / "x.txt")
    with pytest.raises(SpecError, match="can't be read"):
        Grammar.read(tmp_path / "nothing.cfg")
    (tmp_path / "bytes.cfg").write_bytes(b"S -> 'a'\n# \xff\n")
    with pytest.raises(SpecError, match=r"bytes\.cfg:2: the file must be UTF-8"):
        Grammar.read(tmp_path / "bytes.cfg")


def test_rules_as_json_are_those_of_the_notation(tmp_path: Path) -> None:
    """Symbols may be numbers, as in the grammars of PhysicsLM4."""
    expected = Grammar.from_text("""
        22 -> 21 20 | 20
        21 -> '1' '2' | '3'
        20 -> '2' '2' | '1'
    """)
    rules = '{"22": [[21, 20], [20]], "21": [[1, 2], [3]], "20": [[2, 2], [1]]}'
    for text in (rules, f'{{"rules": {rules}, "name": "small"}}'):
        assert read_spec(put(tmp_path, "x.cfg.json", text)) == expected
    levels = [
        [{"id": 22, "children": [[0, 1], [1]]}],
        [
            {"id": 21, "children": [[0, 1], [2]]},
            {"id": 20, "children": [[1, 1], [0]]},
            {"id": 23, "children": [[0]]},  # of no sentence
        ],
        [{"id": 1, "name": "AA", "children": None}, {"id": 2, "children": None}, {"id": 3, "children": None}],
    ]
    assert read_spec(put(tmp_path, "x.cfg.json", json.dumps({"depth": 2, "all": levels}))) == expected


BAD: list[tuple[str, str, str]] = [
    ("{", "x.cfg.json", "x.cfg.json:1: this is no JSON"),
    ("[" * 100_000, "x.cfg.json", "x.cfg.json: this is no JSON"),
    ("[]", "x.cfg.json", "x.cfg.json: rules must be an object"),
    ('{"rules": {}}', "x.cfg.json", "x.cfg.json: rules must be an object"),
    ('{"all": [[{"id": 2, "children": [[1]]}], [{"id": 1}]]}', "x.cfg.json", "x.cfg.json: all must list levels"),
    ('{"all": 3}', "x.cfg.json", "x.cfg.json: all must list levels"),
    ('{"all": [[], []]}', "x.cfg.json", "x.cfg.json: all must list levels"),
    ('{"S": [["a"], []]}', "x.cfg.json", "x.cfg.json: S must have a list of lists of symbols, none of them empty"),
    ('{"S": [["a", 0.5]]}', "x.cfg.json", "x.cfg.json: S must have a list of lists of symbols"),
    (
        '{"S": [["a"]], "T": [["a"]]}',
        "x.cfg.json",
        "x.cfg.json: one symbol, the start, must stand on no right side, but",
    ),
    ('{"S": [["S", "a"], ["a"]]}', "x.cfg.json", "x.cfg.json: one symbol, the start, must"),
    ("", "x.cfg", "x.cfg: a grammar needs at least one rule"),
    ("# nothing\n", "x.cfg", "x.cfg: a grammar needs at least one rule"),
    ("S -> NP 'x'\n", "x.cfg", "x.cfg:1: the nonterminal NP has no rule"),
    ("S -> 'a'\n%start T\n", "x.cfg", "x.cfg:2: the start symbol 'T' has no rule"),
    ("S -> 'a' | \n", "x.cfg", "x.cfg:1: a right side of S is empty"),
    ("S ->\n", "x.cfg", "x.cfg:1: a right side of S is empty"),
    ("S -> ''\n", "x.cfg", "x.cfg:1: the word '' is empty"),
    ("S -> 'a' [0.5] | [0.5]\n", "x.pcfg", "x.pcfg:1: a right side of S is empty"),
    ("S 'a'\n", "x.cfg", "x.cfg:1: a rule needs an arrow"),
    ("S T -> 'a'\n", "x.cfg", "x.cfg:1: one nonterminal must stand before the arrow"),
    ("-> 'a'\n", "x.cfg", "x.cfg:1: one nonterminal must stand before the arrow"),
    ("'a' -> 'a'\n", "x.cfg", "x.cfg:1: one nonterminal must stand before the arrow"),
    ("S -> 'a' -> 'b'\n", "x.cfg", "x.cfg:1: a second arrow"),
    ("S -> 'a\n", "x.cfg", "x.cfg:1: the quote ' at column 6 is not closed"),
    ("S -> \"a' b\n", "x.cfg", 'x.cfg:1: the quote " at column 6 is not closed'),
    ("S -> 'a' ; 'b'\n", "x.cfg", "x.cfg:1: ';' at column 10 is not part of a rule"),
    ("S -> 'a' [0.5\n", "x.pcfg", "x.pcfg:1: the bracket [ at column 10 has no partner"),
    ("S -> 'a' [half]\n", "x.pcfg", "x.pcfg:1: a probability must be a number"),
    ("S -> 'a' [1/0]\n", "x.pcfg", "x.pcfg:1: a probability must be a number"),
    ("S -> 'a' [nan]\n", "x.pcfg", "x.pcfg:1: a probability must be a number"),
    ("S -> 'a' [-1]\n", "x.pcfg", "x.pcfg:1: a probability must be a number"),
    ("S -> 'a' [0] | 'b' [1]\n", "x.pcfg", "x.pcfg:1: the probability of S -> 'a' [0.0] must be above 0"),
    ("S -> 'a' [1.5]\n", "x.pcfg", "x.pcfg:1: the probability of S -> 'a' [1.5] must be above 0 and at most 1"),
    (f"S -> 'a' [{'9' * 5000}]\n", "x.pcfg", "x.pcfg:1: a probability must be a number"),
    ("S -> 'a' [1e99]\n", "x.pcfg", "x.pcfg:1: the probability of S -> 'a' [1000"),
    ("S -> [0.5] 'a'\n", "x.pcfg", "x.pcfg:1: a probability stands once, after"),
    ("S -> 'a' [0.5] 'b' [0.5]\n", "x.pcfg", "x.pcfg:1: a probability stands once, after"),
    ("S -> 'a' [0.5] | 'b'\n", "x.pcfg", "x.pcfg:1: S -> 'b' has no probability"),
    ("S -> 'a' [0.5] | 'b' [0.4]\n", "x.pcfg", "x.pcfg:1: the probabilities of S must sum to 1, they sum to 0.9"),
    ("S -> 'a' [1.0]\n", "x.cfg", "x.cfg:1: a .cfg file has no probabilities"),
    ("S -> 'a'\n", "x.pcfg", "x.pcfg:1: every rule of a .pcfg file needs a probability"),
    ("S -> 'a' | 'b'\nS -> 'a'\n", "x.cfg", "x.cfg:2: the rule S -> 'a' is given twice, first on line 1"),
    ("S -> 'a' | A\n\nA -> A 'a'\n", "x.cfg", "x.cfg:3: A derives no sentence"),
    ("S -> 'a' | A\nA -> B | 'b'\nB -> A\n", "x.cfg", "x.cfg:2: rules with one symbol go in a circle: A → B → A"),
    ("S -> S | 'a'\n", "x.cfg", "x.cfg:1: rules with one symbol go in a circle: S → S"),
    ("S -> 'a b'\n", "x.cfg", "x.cfg:1: the word 'a b' holds a blank; write two words, or for example 'a_b'"),
    ("S -> '</s>'\n", "x.cfg", "x.cfg:1: the word '</s>' is reserved for"),
    ("%start\nS -> 'a'\n", "x.cfg", "x.cfg:1: %start must name one nonterminal"),
    ("%start S\n%start S\nS -> 'a'\n", "x.cfg", "x.cfg:2: a second %start; the first is on line 1"),
    ("%kimmo x\nS -> 'a'\n", "x.cfg", "x.cfg:1: the only directive is %start, got %kimmo"),
]


@each(("text", "name", "message"), BAD, ids=[text[:16] for text, _, _ in BAD])
def test_bad_input_is_told_with_its_line(text: str, name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        Grammar.read(put(tmp_path, name, text))
    told = str(caught.value).replace(f"{tmp_path}/", "")
    assert told.startswith(message)
    assert len(caught.value.problems) == 1, told


def test_all_problems_are_told_at_once_in_the_order_of_the_lines(tmp_path: Path) -> None:
    text = "S -> A B | 'x\nS -> A\nS -> A\nC ->\nA 'b'\nD -> 'd' [2]\n"
    with pytest.raises(SpecError) as caught:
        Grammar.read(put(tmp_path, "x.cfg", text))
    lines = [problem.line or 0 for problem in caught.value.problems]
    assert lines == sorted(lines)
    assert set(lines) == {1, 2, 3, 4, 5, 6}
    told = str(caught.value)
    for part in ("x.cfg:1: the quote", "x.cfg:3: the rule S -> A is given twice", "x.cfg:4:", "x.cfg:5:", "x.cfg:6:"):
        assert part in told


def test_a_broken_line_does_not_make_its_left_side_unknown() -> None:
    with pytest.raises(SpecError) as caught:
        Grammar.from_text("S -> NP\nNP -> 'a\n")
    assert [problem.line for problem in caught.value.problems] == [2]


def test_sums_nearly_one_are_warned_of_and_put_right_in_predictions() -> None:
    text = "S -> 'a' [0.3333] | 'b' [0.3333] | 'c' [0.3333]"
    with pytest.warns(SpecWarning, match=r"they sum to 0\.9999, off by 0\.0001"):
        grammar = Grammar.from_text(text)
    assert grammar.next_word_probs([]) == dict.fromkeys("abc", Fraction(1, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Grammar.from_text(text.replace("0.3333", "0.3333333"))


def test_symbols_without_use_are_warned_of() -> None:
    with pytest.warns(SpecWarning, match=r"3: no sentence uses T, U: not reachable from S"):
        grammar = Grammar.from_text("S -> 'a'\n# unused\nT -> 'b' U\nU -> 'c'")
    assert grammar.reachable() == Grammar.from_text("S -> 'a'")
    assert grammar.leveled() == grammar.reachable().leveled()
