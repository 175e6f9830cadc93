"""Associations: what they mean, and their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cases import each
from vitrify.errors import SpecError
from vitrify.spec import read_spec
from vitrify.spec.memory.associations import Associations, random_associations

SOME = Associations.of({"a": "x", "b": "y", "c": "x"})


def test_what_they_are() -> None:
    assert SOME.vocabulary == ("a", "b", "c")
    assert SOME.answers == ("x", "y")
    assert not SOME.injective
    assert [SOME.answer([word]) for word in "abc"] == ["x", "y", "x"]
    assert SOME.answer([]) is None


def test_what_is_asked() -> None:
    assert list(SOME.prefixes()) == [(), ("a",), ("b",), ("c",)]
    assert list(SOME.prefixes(0)) == [()]
    assert list(SOME.examples()) == [("a",), ("b",), ("c",)]
    rng = np.random.default_rng(0)
    assert {SOME.draw(rng) for _ in range(50)} == {("a",), ("b",), ("c",)}


def test_random_ones_are_injective_or_have_so_many_answers() -> None:
    one = random_associations(50, seed=3)
    assert one == random_associations(50, seed=3) != random_associations(50, seed=4)
    assert one.injective
    assert {answer for _, answer in one.pairs} == {f"y{y}" for y in range(50)}
    assert [answer for _, answer in one.pairs] != [f"y{y}" for y in range(50)]
    assert set(random_associations(200, seed=0, outputs=3).answers) == {"y0", "y1", "y2"}
    for inputs, outputs in ((0, None), (3, 0)):
        with pytest.raises(SpecError, match="at least one word and one answer"):
            random_associations(inputs, seed=0, outputs=outputs)


def test_files_read_back(tmp_path: Path) -> None:
    path = tmp_path / "some.pairs"
    for spec in (SOME, random_associations(30, seed=1)):
        spec.write(path)
        assert Associations.read(path) == spec == read_spec(path)
    example = read_spec(Path(__file__).parents[3] / "examples" / "capitals.pairs")
    assert isinstance(example, Associations)
    assert example.answer(["Peru"]) == "Lima"


BAD = {
    "empty": ("# nothing\n", ["there must be at least one word"]),
    "one word": ("a x\nb\n", [":2: .* there are 1 words"]),
    "three words": ("a x y\n", [":1: .* there are 3 words"]),
    "twice": ("# c\na x\nb y\na y\n", [":4: the word 'a' has an answer already"]),
    "reserved": ("<s> x\na </s>\n", [":1: '<s>' stands for", ":2: '</s>' stands for"]),
    "answer like a comment": ("a #x\n", [":1: a word has no blanks in it and no # in front, not '#x'"]),
}


@each("case", BAD)
def test_mistakes_are_told_with_their_lines_all_at_once(case: str, tmp_path: Path) -> None:
    text, messages = BAD[case]
    path = tmp_path / "bad.pairs"
    path.write_text(text, encoding="utf-8")
    for message in messages:
        with pytest.raises(SpecError, match=message):
            Associations.read(path)
    with pytest.raises(SpecError) as caught:
        Associations.read(path)
    assert len(caught.value.problems) == len(messages)


def test_values_are_checked_too(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="at least one"):
        Associations(())
    with pytest.raises(SpecError, match="no blanks"):
        Associations.of({"a b": "x"})
    with pytest.raises(SpecError, match=r"must end in \.pairs"):
        Associations.read(tmp_path / "x.cfg")
