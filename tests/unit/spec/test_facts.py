"""Facts: what sentences ask, against a search that knows nothing of how it is worked out; their files."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from cases import each
from vitrify.errors import SpecError
from vitrify.spec import read_spec
from vitrify.spec.memory.facts import Facts, answers_by_relation, random_facts

SOME = Facts((("s", "r", "1"), ("s", "q", "2"), ("t", "r", "3")), fillers=("of",), length=4)


def asked(words: tuple[str, ...]) -> str | None:
    """The answer, by taking fillers away and comparing with every fact in either order."""
    rest = [word for word in words if word != "of"]
    return next((a for s, r, a in SOME.facts if rest in ([s, r], [r, s])), None)


def test_what_they_are() -> None:
    assert (SOME.subjects, SOME.relations, SOME.answers) == (("s", "t"), ("r", "q"), ("1", "2", "3"))
    assert SOME.vocabulary == ("s", "t", "r", "q", "of")
    assert answers_by_relation(SOME) == {"r": ("1", "3"), "q": ("2",)}


def test_answers_to_all_short_words() -> None:
    found = [words for n in range(5) for words in product(SOME.vocabulary, repeat=n)]
    assert [SOME.answer(words) for words in found] == [asked(words) for words in found]


def test_beginnings_are_those_of_words_that_ask() -> None:
    full = [words for n in range(6) for words in product(SOME.vocabulary, repeat=n) if asked(words)]
    wanted = {words[:n] for words in full for n in range(len(words) + 1) if n <= 3}
    found = list(SOME.prefixes(3))
    assert len(found) == len(set(found))
    assert set(found) == wanted | {("of", "of", "of")}


def test_examples_and_draws_ask_something() -> None:
    examples = list(SOME.examples())
    assert {SOME.answer(words) for words in examples} == {"1", "2", "3"}
    assert all(asked(words) and len(words) == 4 for words in examples)
    places = {tuple(word != "of" for word in words) for words in examples}
    assert places == {(True, True, False, False), (True, False, False, True), (False, False, True, True)}
    assert len(examples) == 3 * 2 * len(SOME.facts)
    rng = np.random.default_rng(0)
    drawn = [SOME.draw(rng) for _ in range(300)]
    assert all(asked(words) and len(words) == 4 for words in drawn)
    assert {tuple(word != "of" for word in words) for words in drawn} == {
        row for row in product((False, True), repeat=4) if sum(row) == 2
    }
    bare = Facts(SOME.facts)
    assert bare.length == 2
    assert {bare.draw(rng) for _ in range(100)} == {p for s, r, _ in SOME.facts for p in ((s, r), (r, s))}
    assert len(list(bare.examples())) == 6


def test_random_ones() -> None:
    spec = random_facts(5, 3, 4, seed=1, fillers=2)
    assert spec == random_facts(5, 3, 4, seed=1, fillers=2) != random_facts(5, 3, 4, seed=2, fillers=2)
    assert len(spec.facts) == 15
    assert (spec.fillers, spec.length) == (("f0", "f1"), 8)
    of = answers_by_relation(spec)
    assert not set(of["r0"]) & set(of["r1"])
    with pytest.raises(SpecError, match="there must be a subject"):
        random_facts(0, 1, 1, seed=0)


def test_files_read_back(tmp_path: Path) -> None:
    path = tmp_path / "some.facts"
    for spec in (SOME, Facts(SOME.facts), random_facts(4, 2, 3, seed=0, fillers=3)):
        spec.write(path)
        assert Facts.read(path) == spec == read_spec(path)
    example = read_spec(Path(__file__).parents[3] / "examples" / "countries.facts")
    assert isinstance(example, Facts)
    assert example.answer(["the", "capital", "of", "Peru"]) == "Lima"


BAD = {
    "empty": ("fillers: a\n", ["there must be at least one fact"]),
    "two words": ("a b c\nd e\n", [":2: .* there are 2 words"]),
    "four words": ("a b c d\n", [":1: .* there are 4 words"]),
    "known": ("a b c\n\na b d\n", [":3: the 'b' of 'a' has an answer already"]),
    "roles": ("a b c\nb d e\n", [":2: 'b' is a subject here and a relation elsewhere"]),
    "filler is named": ("fillers: a\na b c\n", [":2: 'a' is a subject here and a filler elsewhere"]),
    "fillers twice": ("fillers: x x\na b c\n", [":1: the filler 'x' is listed more than once"]),
    "said twice": ("length: 3\nlength: 4\na b c\n", [":2: the line 'length: …' occurs twice, first on line 1"]),
    "length": ("length: 1\na b c\n", [":1: the length must be a whole number from 2 to 1,000,000,000, is '1'"]),
    "no length": ("length:\na b c\n", [":1: the length must be a whole number from 2 to 1,000,000,000, is ''"]),
    "two lengths": (
        "length: 4 5\na b c\n",
        [":1: the length must be a whole number from 2 to 1,000,000,000, is '4 5'"],
    ),
    "reserved": ("a <s> c\nlength: x\n", [":1: '<s>' stands for", ":2: the length must be"]),
    "settings as words": ("a fillers: b\n", [":1: 'fillers:' begins a line of settings"]),
}


@each("case", BAD)
def test_mistakes_are_told_with_their_lines_all_at_once(case: str, tmp_path: Path) -> None:
    text, messages = BAD[case]
    path = tmp_path / "bad.facts"
    path.write_text(text, encoding="utf-8")
    for message in messages:
        with pytest.raises(SpecError, match=message):
            Facts.read(path)
    with pytest.raises(SpecError) as caught:
        Facts.read(path)
    assert len(caught.value.problems) == len(messages)


def test_values_are_checked_too(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="the length must be"):
        Facts(SOME.facts, length=1)
    with pytest.raises(SpecError, match="at least one fact"):
        Facts(())
    with pytest.raises(SpecError, match=r"must end in \.facts"):
        Facts.read(tmp_path / "x.pairs")
