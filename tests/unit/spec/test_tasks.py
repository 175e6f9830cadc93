"""Tasks: their answers against text, their words, their files and every mistake in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import factorial, perm
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import pytest

import vitrify as v
from cases import each
from retrieval import TASKS, copied, hopped, right
from runs import repeats
from vitrify.errors import SpecError
from vitrify.parameters import Within
from vitrify.registry import names
from vitrify.spec import read_spec
from vitrify.spec.tasks.catalogue import PACKAGE, Answer, Task, Word, letters, task_named, tasks
from vitrify.spec.tasks.composition import Composition
from vitrify.spec.tasks.copying import Copying
from vitrify.spec.tasks.k_hop import KHop
from vitrify.spec.tasks.recall import Recall

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_the_catalogue_is_found_by_looking() -> None:
    assert len(tasks()) == len(names(PACKAGE)) >= 4
    for task in tasks():
        assert task_named(task.name) is task
        assert task.__doc__
        assert {type(Task.read(path)) for path in EXAMPLES.glob("*.task.toml")} >= {task}


@each("task", TASKS, ids=repr)
def test_answers_are_right_on_all_short_and_on_drawn_words(task: Task) -> None:
    rng = np.random.default_rng(0)
    asked = [word for length in range(task.length + 1) if length < 7 or not task.free for word in task.words(length)][
        :5000
    ]
    drawn = [task.draw(rng, task.length) for _ in range(50)]
    assert {len(word) for word in drawn} == {task.length}
    assert len({*drawn}) > 30
    for word in [*asked, *drawn]:
        assert list(task.answers(word)) == right(task, word), word
    said = {answer for word in [*asked, *drawn] for answer in task.answers(word)}
    assert said - {None} == set(task.outputs)


@each("task", TASKS, ids=repr)
def test_answers_depend_only_on_what_came_before(task: Task) -> None:
    word = task.draw(np.random.default_rng(1), task.length)
    whole = list(task.answers(word))
    for end in range(len(word)):
        assert list(task.answers(word[:end])) == whole[:end]


def test_hops_lead_where_they_should() -> None:
    assert hopped("abcabcab", 1) == ["(none)", "(none)", "(none)", "b", "c", "a", "b", "c"]
    assert KHop(2, 3, 9).answers("abcabcab") == ["(none)"] * 5 + ["b", "c", "a"]
    assert KHop(3, 1, 9).answers("aaaaa") == ["(none)", "a", "a", "a", "a"]  # it stays where it is
    assert KHop(1, 2, 9).answers("") == []


def test_drawn_hops_are_defined_and_undefined() -> None:
    rng = np.random.default_rng(0)
    for hops in (1, 8, 64):
        task = KHop(hops, 64, 256)
        said = [answer == "(none)" for _ in range(20) for answer in task.answers(task.draw(rng, 256))]
        assert 0.05 < np.mean(said) < 0.95


def test_texts_without_repeats() -> None:
    task = Copying(symbols=2, size=5, gram=2)
    assert [size for size in range(1, 9) if len([*task.words(2 * size + 2)])] == [1, 2, 3, 4, 5]  # 2² + 2 - 1
    binary = ["".join(word[:4]) for word in task.words(10)]
    wanted = [f"{n:04b}".replace("0", "a").replace("1", "b") for n in range(16)]
    assert binary == [text for text in wanted if len({text[i : i + 2] for i in range(3)}) == 3]
    assert repeats(task, "ababb")
    assert not repeats(task, "aabba")
    rng = np.random.default_rng(0)
    for full in (Copying(symbols=2, size=36, gram=5), Copying(4, 4, 1), Copying(1, 3, 3), Copying(3, 10, 3)):
        texts = {full.draw(rng, full.length)[: full.size] for _ in range(20)}  # some as long as they can be
        assert all(len(text) == full.size and not repeats(full, text) for text in texts)
        assert len(texts) > 5 or full.symbols == 1
    assert copied("ab||ab", 2) == [None, None, None, "a", "b", "|"]


def test_all_words_are_counted() -> None:
    assert len([*Composition(2).words(5)]) == 2**4 * 2
    assert [*Composition(2).words(4)] == []
    task = Recall(keys=4, values=3, pairs=2, queries=2, fused=False)
    assert len([*task.words(6)]) == perm(4, 2) * 3**2 * 2**2
    assert len([*task.words(4)]) == 4 * 3 + perm(4, 2) * 3**2
    assert len([*KHop(1, 3, 9).words(4)]) == 81
    assert len({*Copying(3, 3, 1).words(7)}) == factorial(3)


def test_entries_come_in_any_order() -> None:
    rng = np.random.default_rng(0)
    drawn = [Composition(3).draw(rng, 7) for _ in range(20)]
    assert len({"".join(symbol[0] for symbol in word) for word in drawn}) > 10
    for word in drawn:
        assert sorted(symbol[:2] for symbol in word) == ["f0", "f1", "f2", "g0", "g1", "g2", "x="]


def test_letters() -> None:
    assert letters(3) == ("a", "b", "c")
    assert letters(26)[-1] == "z"
    assert letters(27)[::26] == ("s1", "s27")


@dataclass(frozen=True)
class Odd(Task):
    """A task with fields of every type, for the tests of fields."""

    name: ClassVar[str] = "odd"

    share: Annotated[float, Within(0, 1)]
    words_of: tuple[str, ...]
    title: str = "x"
    alphabet = ("a",)
    outputs = ("a",)
    length = 1

    def answers(self, word: Word) -> Sequence[Answer]:
        return list(word)

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.title == "x" and self.share == 1:
            yield "share", "must be below 1 for x"


def test_fields_of_every_type() -> None:
    assert Odd(0.5, ("a",)).title == "x"
    with pytest.raises(SpecError) as caught:
        Odd(float("nan"), ("a", 1), 3)  # type: ignore[arg-type]
    assert str(caught.value).splitlines() == [
        "share must be a number from 0 to 1, not NaN",
        'words_of.1 must be a text, not 1; write "1"',
        'title must be a text, not 3; write "3"',
    ]
    with pytest.raises(SpecError, match="below 1 for x"):
        Odd(1, ("a",))


@each("task", [*TASKS, Composition(500), KHop(64, 64, 256)], ids=repr)
def test_files_read_back(task: Task, tmp_path: Path) -> None:
    path = tmp_path / "some.task.toml"
    task.write(path)
    assert read_spec(path) == task


HOPS = 'task = "k-hop"\nhops = 3\nsymbols = 4\nlength = 32\n'
RECALL = 'task = "recall"\nkeys = 4\nvalues = 2\npairs = 4\nqueries = 3\nfused = true\n'
BAD: dict[str, tuple[str, list[str]]] = {
    "empty": ("", ["x.task.toml: task is missing; it must be one of comparison, composition"]),
    "unknown": ('# x\ntask = "juggling"\nballs = 3\n', [":2: there is no task 'juggling'; it must be one of"]),
    "no name": ("task = 3\n", [":1: there is no task 3"]),
    "machinery": ('task = "catalogue"\n', [":1: there is no task 'catalogue'"]),
    "not TOML": ("task = \n", [":1: the file must be TOML"]),
    "missing": ('task = "k-hop"\nhops = 3\n', ["toml: symbols is missing", "toml: length is missing"]),
    "everything": (
        HOPS.replace("3\n", "0\n").replace("symbols = 4", 'symbols = "many"\ndepth = 1').replace("32", "1.5"),
        [
            ":2: hops must be a whole number from 1 to 100,000, not 0",
            ':3: symbols must be a whole number from 1 to 100,000, not "many"',
            ":4: depth is not a parameter; there are: hops, symbols, length",
            ":5: length must be a whole number from 1 to 100,000, not 1.5",
        ],
    ),
    "truth": (RECALL.replace("true", "1"), [":6: fused must be true or false, not 1"]),
    "no number": (HOPS.replace("32", "true"), [":4: length must be a whole number from 1 to 100,000, not true"]),
    "conflict": (RECALL.replace("pairs = 4", "pairs = 5"), [":4: pairs must be at most keys = 4"]),
    "too long": ('task = "copying"\nsymbols = 2\nsize = 6\ngram = 2\n', [":3: size must be at most 5, as longer"]),
    "too many": (RECALL.replace("= 4", "= 1000").replace("= 2", "= 600"), [":6: fused symbols are a key and a value"]),
    "too large": ('task = "composition"\nsize = 513\n', [":2: size must be a whole number from 1 to 512, not 513"]),
    "table": (HOPS + "[more]\nx = 1\n", [":5: more is not a parameter"]),
}


@each("case", BAD)
def test_mistakes_are_told_with_their_lines_all_at_once(case: str, tmp_path: Path) -> None:
    text, messages = BAD[case]
    path = tmp_path / "x.task.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        read_spec(path)
    told = str(caught.value)
    assert len(caught.value.problems) == len(messages)
    for message in messages:
        assert re.search(re.escape(message), told), told


def test_values_are_checked_at_birth(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"hops must be .*\nsymbols must be .*\nlength must be"):
        KHop(0, -1, 2.5)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="pairs must be at most keys"):
        Recall(1, 1, 2, 1, True)
    with pytest.raises(SpecError, match=r"must end in \.task\.toml"):
        Task.read(tmp_path / "x.toml")


def test_a_task_is_made_by_its_name_and_mistakes_are_named() -> None:
    assert v.task("k-hop", hops=3, symbols=4, length=32) == KHop(3, 4, 32)
    with pytest.raises(v.VitrifyError, match="there is no task 'hop'; it must be one of comparison"):
        v.task("hop")
    with pytest.raises(v.VitrifyError, match=r"task k-hop: length is missing.*; hops must be a whole number"):
        v.task("k-hop", hops="three", symbols=4)
