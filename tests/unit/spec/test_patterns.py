"""Word patterns: what they mean, their files, and every way in which a file can be wrong."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest

from cases import each
from vitrify.errors import SpecError
from vitrify.spec import read_spec
from vitrify.spec.languages.word_patterns import WordPatterns, random_patterns, waking_up

ROOT = Path(__file__).parents[3]
AWOKE = WordPatterns.read(ROOT / "examples" / "awoke.patterns")
TWO = WordPatterns.of({"A": "x y", "B": "y z"}, ["A B", 'B "x" A'])


def all_sentences(spec: WordPatterns) -> set[tuple[str, ...]]:
    """The language, from nothing but its definition: any word of each class of a pattern."""
    words = {name: set(listed) for name, listed in spec.classes}
    choices = [[words.get(part) or {part.strip('"')} for part in pattern] for pattern in spec.patterns]
    return {sentence for lists in choices for sentence in product(*lists)}


def followers(spec: WordPatterns) -> dict[tuple[str, ...], set[str]]:
    """What follows every beginning of a sentence, read off the list of sentences."""
    follow: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for sentence in all_sentences(spec):
        for place, word in enumerate((*sentence, "</s>")):
            follow[sentence[:place]].add(word)
    return follow


def least_window(spec: WordPatterns) -> int:
    """The window by brute force over words."""
    follow, n = followers(spec), 1
    while True:
        seen = defaultdict(set)
        for beginning, words in follow.items():
            padded = ("<s>",) * n + beginning
            seen[padded[len(padded) - (n - 1) :]].add(frozenset(words))
        if all(len(answers) == 1 for answers in seen.values()):
            return n
        n += 1


SPECS = {"awoke": AWOKE, "two": TWO, "waking up": waking_up(2)} | {f"random {s}": random_patterns(s) for s in range(25)}


@each("name", SPECS)
def test_next_words_prefixes_and_sentences_are_those_of_the_definition(name: str) -> None:
    spec = SPECS[name]
    follow = followers(spec)
    assert all(spec.next_words(beginning) == words for beginning, words in follow.items())
    prefixes = list(spec.prefixes())
    assert len(prefixes) == len(set(prefixes))
    assert set(prefixes) == set(follow)
    assert [len(prefix) for prefix in prefixes] == sorted(len(prefix) for prefix in prefixes)
    sentences = list(spec.sentences())
    assert len(sentences) == len(set(sentences))
    assert set(sentences) == all_sentences(spec)
    assert set(spec.vocabulary) == {word for sentence in sentences for word in sentence}


@each("name", SPECS)
def test_the_window_is_the_least_by_brute_force(name: str) -> None:
    assert SPECS[name].window() == least_window(SPECS[name])


@each("name", SPECS)
def test_examples_and_draws_are_sentences_and_examples_miss_no_word(name: str) -> None:
    spec = SPECS[name]
    sentences = all_sentences(spec)
    examples = set(spec.examples())
    rng = np.random.default_rng(0)
    assert examples <= sentences
    assert {spec.draw(rng) for _ in range(20)} <= sentences
    for length in {len(pattern) for pattern in spec.patterns}:
        for place in range(length):
            here = {sentence[place] for sentence in sentences if len(sentence) == length}
            assert here == {sentence[place] for sentence in examples if len(sentence) == length}


def test_what_begins_no_sentence_has_no_next_word() -> None:
    assert TWO.next_words(["z"]) == {"x"}
    assert TWO.next_words(["x", "x"]) == frozenset()
    assert TWO.next_words(["q"]) == frozenset()
    assert TWO.next_words(["y", "x", "y", "x"]) == frozenset()


def test_contexts_by_hand() -> None:
    assert TWO.contexts(2) == {
        ("<s>",): {"A", "B"},
        ("A",): {"B", "</s>"},
        ("B",): {"</s>", '"x"'},
        ('"x"',): {"A"},
    }
    assert TWO.contexts(1) == {(): {"A", "B", '"x"', "</s>"}}
    assert TWO.contexts(9) == TWO.contexts(5)
    assert TWO.contexts(3)["<s>", "A"] == {"B"}
    assert TWO.contexts(3)['"x"', "A"] == {"</s>"}


def test_prefixes_stop_at_a_length_and_come_one_by_one() -> None:
    assert {len(prefix) for prefix in TWO.prefixes(2)} == {0, 1, 2}
    assert list(TWO.prefixes(0)) == [()]
    huge = waking_up(3_000)
    assert len(list(islice(huge.prefixes(), 20_000))) == 20_000


def test_too_many_sentences_are_refused() -> None:
    assert len(list(TWO.sentences(limit=8))) == 8
    with pytest.raises(SpecError, match="more than 7 sentences"):
        list(TWO.sentences(limit=7))


@each("name", SPECS)
def test_write_and_read_is_the_identity(name: str, tmp_path: Path) -> None:
    SPECS[name].write(tmp_path / "spec.patterns")
    again = read_spec(tmp_path / "spec.patterns")
    assert again == SPECS[name]
    assert hash(again) == hash(SPECS[name])
    assert eval(repr(again)) == again


def test_a_file_in_every_notation(tmp_path: Path) -> None:
    path = tmp_path / "x.patterns"
    path.write_bytes(
        '\ufeff# comment\r\n\r\n  A B "to be"\tA\r\n"=" A\r\nA=x = #1\r\n# B = no\r\nB =  x  é\r\n'.encode()
    )
    spec = WordPatterns.read(path)
    assert spec.classes == (("A", ("x", "=", "#1")), ("B", ("x", "é")))
    assert spec.patterns == (("A", "B", '"to"', '"be"', "A"), ('"="', "A"))
    assert spec.vocabulary == ("x", "=", "#1", "é", "to", "be")


GOOD = 'A = x y\nA "b" A\n'
BAD: list[tuple[str, str, list[tuple[int | None, str]]]] = [
    ("no patterns", "A = x\n", [(None, "at least one pattern")]),
    ("nothing", "", [(None, "at least one pattern")]),
    ("only comments", "# A B\n", [(None, "at least one pattern")]),
    ("unknown class", GOOD + "A C\n", [(3, "the class 'C' is not defined")]),
    ("empty class", GOOD + "C =\nC\n", [(3, "'C' must have at least one word")]),
    ("duplicate class", GOOD + "A = z\n", [(3, "'A' is defined twice")]),
    ("unused class", GOOD + "C = z\n", [(3, "'C' is in no pattern")]),
    ("word listed twice", GOOD + "C = z z\nC\n", [(3, "lists 'z' 2 times")]),
    ("duplicate pattern", GOOD + 'A   "b" A\n', [(3, "the same as pattern 1")]),
    ("open quote", GOOD + 'A "b c\n', [(3, 'the quote that opens at "b c is not closed')]),
    ("lone quote", GOOD + 'A "\n', [(3, "is not closed")]),
    ("empty quotes", GOOD + 'A ""\n', [(3, "the quotes hold no word")]),
    ("reserved in a class", GOOD + "C = </s>\nC\n", [(3, "'</s>' is reserved")]),
    ("reserved in a pattern", GOOD + '"<s>"\n', [(3, "'<s>' is reserved")]),
    ("quote in a word", GOOD + 'C = a"b\nC\n', [(3, "no blanks and no quotes")]),
    ("several at once", "A = x\nB =\nC A\nB = y\n", [(2, "at least one word"), (2, "no pattern"), (3, "'C'"), (4, "")]),
]


@each(("text", "wanted"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_files_say_where_and_why(text: str, wanted: list[tuple[int | None, str]], tmp_path: Path) -> None:
    path = tmp_path / "bad.patterns"
    path.write_text(text)
    with pytest.raises(SpecError) as refused:
        WordPatterns.read(path)
    problems = refused.value.problems
    assert {problem.file for problem in problems} == {str(path)}
    assert {line for line, _ in wanted} == {problem.line for problem in problems}
    for line, said in wanted:
        assert any(problem.line == line and said in problem.message for problem in problems), (line, said)


def test_files_that_are_not_text_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "x.patterns").write_bytes(b"A = \xff\n")
    with pytest.raises(SpecError, match=r"x\.patterns:1: the file must be UTF-8"):
        WordPatterns.read(tmp_path / "x.patterns")
    with pytest.raises(SpecError, match="can't be read"):
        WordPatterns.read(tmp_path / "nowhere.patterns")
    with pytest.raises(SpecError, match=r"must end in \.patterns"):
        WordPatterns.read(tmp_path / "x.txt")


@each(
    ("classes", "patterns", "said"),
    [
        ((("A B", ("x",)),), (("A B",),), "a class name has no blanks"),
        ((("#A", ("x",)),), (("#A",),), "does not begin with #"),
        ((("A=", ("x",)),), (("A=",),), "a class name"),
        ((("", ("x",)),), (("",),), "a class name"),
        ((("\ufeffA", ("x",)),), (("\ufeffA",),), "a class name"),
        ((("A", ("x y",)),), (("A",),), "a word has no blanks"),
        ((("A", ("",)),), (("A",),), "a word has no blanks"),
        ((), ((),), "at least one word"),
        ((), (('"a b"',),), "a word has no blanks"),
    ],
)
def test_values_are_checked_when_they_are_made(classes: object, patterns: object, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        WordPatterns(classes, patterns)  # type: ignore[arg-type]
