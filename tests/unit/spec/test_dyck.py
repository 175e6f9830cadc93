"""Bounded Dyck languages: what they mean, against deleting pairs and trying completions; their files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from brackets import all_texts, completions, is_inside
from cases import each
from vitrify.errors import SpecError
from vitrify.spec import read_spec
from vitrify.spec.languages.dyck import Dyck

TWO = Dyck.of("( ) [ ]", depth=2, length=12)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_membership_of_all_short_words(depth: int) -> None:
    spec = Dyck.of("( ) [ ]", depth, 8)
    texts = all_texts("()[]", 6)
    found = [text for text in texts if spec.holds(text)]
    assert found == [text for text in texts if is_inside(text, depth)]
    assert len(found) == {1: 15, 2: 43, 3: 51}[depth]  # Catalan numbers times powers of 2, less what is too deep


@pytest.mark.long
@each(("kinds", "depth"), [(1, 1), (1, 3), (2, 2), (3, 2)])
def test_next_sets_are_what_can_be_completed(kinds: int, depth: int) -> None:
    letters = "()[]{}"[: 2 * kinds]
    spec = Dyck.of(" ".join(letters), depth, 8)
    for text in all_texts(letters, 6 if kinds == 1 else 4):
        assert spec.next_words(text) == completions(text, kinds, depth), text
        assert spec.meanings()["next"].after(text)[-1] == spec.next_words(text)


def test_prefixes_are_the_words_that_can_be_completed() -> None:
    found = ["".join(words) for words in TWO.prefixes(5)]
    assert found == sorted(found, key=len)
    assert set(found) == {text for text in all_texts("()[]", 5) if completions(text, 2, 2)}
    assert len(set(found)) == len(found)


@each(("kinds", "depth", "length"), [(1, 1, 1), (1, 1, 7), (2, 3, 12), (8, 10, 60), (3, 9, 10)])
def test_examples_and_draws_are_words_of_the_language(kinds: int, depth: int, length: int) -> None:
    spec = Dyck.of_kinds(kinds, depth, length)
    examples = list(spec.examples())
    waited = set()
    for word in examples:
        assert spec.holds(word)
        stacks = [spec.stack(word[:t]) for t in range(len(word) + 1)]
        waited |= {(len(stack), stack[-1]) for stack in stacks if stack}
    assert waited == {(d, closing) for d in range(1, depth + 1) for _, closing in spec.brackets}
    rng = np.random.default_rng(0)
    drawn = [spec.draw(rng) for _ in range(200)]
    assert all(spec.holds(word) for word in drawn)
    assert max(map(len, drawn)) > length or length == 1 or (kinds, depth) == (1, 1)
    if length > 1:
        assert sum(0 < len(word) <= length for word in drawn) > 40
    assert drawn[:9] == [spec.draw(again) for again in [np.random.default_rng(0)] for _ in range(9)]


def test_it_has_sentences() -> None:
    assert TWO.meanings()["next"].language is TWO
    assert TWO.vocabulary == ("(", ")", "[", "]")
    assert Dyck.of_kinds(2, 3, 4).brackets == (("(1", ")1"), ("(2", ")2"))


def test_files_read_back(tmp_path: Path) -> None:
    path = tmp_path / "some.dyck"
    for spec in (TWO, Dyck.of_kinds(64, 10, 60)):
        spec.write(path)
        assert Dyck.read(path) == spec
    example = read_spec(Path(__file__).parents[3] / "examples" / "brackets.dyck")
    assert example == Dyck.of("( ) [ ] { }", 4, 32)


GOOD = "brackets: ( )\ndepth: 2\nlength: 9\n"
BAD = {
    "empty": ("", ["'brackets: …' is missing", "'depth: …' is missing", "'length: …' is missing"]),
    "odd": (GOOD.replace("( )", "( ) ["), [":1: brackets come in pairs, .*; there are 3"]),
    "none": (GOOD.replace("( )", ""), [":1: brackets come in pairs, .*; there are 0"]),
    "twice": (GOOD.replace("( )", "( ) ( ]"), [r":1: the bracket '\(' is listed 2 times"]),
    "reserved": (GOOD.replace("( )", "<s> </s>"), [":1: '<s>' stands for", ":1: '</s>' stands for"]),
    "numbers": (
        "# x\n" + GOOD.replace("2", "two").replace("9", "0"),
        [
            ":3: the depth must be a whole number from 1 to 1,000,000,000, is 'two'",
            ":4: the length must be a whole number .* is '0'",
        ],
    ),
    "again": (GOOD + "depth: 3\n", [":4: the line 'depth: …' occurs twice"]),
    "strange": (GOOD + "kinds: 3\nhello\n", [":4: a line must say", ":5: a line must say"]),
}


@each("case", BAD)
def test_mistakes_are_told_with_their_lines_all_at_once(case: str, tmp_path: Path) -> None:
    text, messages = BAD[case]
    path = tmp_path / "bad.dyck"
    path.write_text(text, encoding="utf-8")
    for message in messages:
        with pytest.raises(SpecError, match=message):
            Dyck.read(path)
    with pytest.raises(SpecError) as caught:
        Dyck.read(path)
    assert len(caught.value.problems) == len(messages)


def test_values_are_checked_too(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"the depth must be .*\n.*the length must be"):
        Dyck((("(", ")"),), 0, 0)
    with pytest.raises(SpecError, match="without blanks"):
        Dyck((("a b", ")"),), 1, 1)
    with pytest.raises(SpecError, match="there are 1"):
        Dyck.of("(", 1, 1)
    with pytest.raises(SpecError, match=r"must end in \.dyck"):
        Dyck.read(tmp_path / "x.cfg")
