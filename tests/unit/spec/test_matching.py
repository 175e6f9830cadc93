"""Sparse averaging and matching as tasks: answers against trying everything, words, files and mistakes in them."""

from __future__ import annotations

import re
from itertools import islice
from math import comb
from pathlib import Path

import numpy as np
import pytest

from cases import each
from matching import MATCHING, averaged, matched
from vitrify.errors import SpecError
from vitrify.spec.computation.matching import Matching
from vitrify.spec.tasks.catalogue import Task
from vitrify.spec.tasks.match2 import Match2
from vitrify.spec.tasks.match3_bigram import Match3Bigram
from vitrify.spec.tasks.match3_local import Match3Local
from vitrify.spec.tasks.sparse_averaging import SparseAveraging, random_sets


@each("task", MATCHING, ids=repr)
def test_matches_on_all_short_and_on_drawn_words(task: Matching) -> None:
    rng = np.random.default_rng(0)
    words = [word for length in range(5) for word in islice(task.words(length), 700)]
    for word in [*words, *(task.draw(rng, task.length) for _ in range(40))]:
        assert task.answers(word) == matched(task, word), word


@pytest.mark.parametrize("task", [Match2(100003, 64), Match3Bigram(1009, 64), Match3Local(1009, 64, reach=4)], ids=repr)
def test_drawn_words_hold_matches_and_near_ones(task: Matching) -> None:
    rng = np.random.default_rng(0)
    words = [task.draw(rng, 64) for _ in range(20)]
    yes = np.mean([answer == "yes" for word in words for answer in matched(task, word)])
    assert 0.02 < yes < 0.6
    m = task.modulus
    near = 0
    for word in words:
        numbers = [int(symbol) for symbol in word]
        for x, sums in zip(numbers, task.sums(numbers), strict=True):
            near += -x % m not in sums and ((1 - x) % m in sums or (-1 - x) % m in sums)
    assert near > 100


def test_whole_words_matter() -> None:
    assert Match2(10, 4).answers(["3"]) == ["no"]
    assert Match2(10, 4).answers(["3", "7"]) == ["yes", "yes"]
    assert Match3Bigram(10, 4).answers(["5"]) == ["no"]
    assert Match3Bigram(10, 4).answers([]) == []
    assert Match3Local(9, 4, reach=1).answers(["3"]) == ["yes"]  # three times itself


def test_means_against_fractions() -> None:
    rng = np.random.default_rng(0)
    for task in (
        SparseAveraging(5, 2, 2),
        SparseAveraging(9, 4, 3, random_sets(9, 4, 20, 0)),
        SparseAveraging(1, 1, 1),
    ):
        for _ in range(20):
            word = task.draw(rng, task.length)
            assert np.allclose(np.array(task.answers(word)), np.array(averaged(word, task.dimensions), dtype=float))
        assert task.answers(word[:-1]) == [None] * (task.length - 1)


def test_all_words_and_all_sets() -> None:
    task = SparseAveraging(3, 2, 1)
    assert task.pointers == ((1, 2), (1, 3), (2, 3))
    assert len(task.alphabet) == len({*task.alphabet}) == 2 * comb(3, 2)
    assert len([*task.words(3)]) == 6**3
    assert [*task.words(2)] == []
    assert task.vectors.tolist() == [[1.0], [-1.0]]
    assert SparseAveraging(3, 1, 2).vectors.tolist() == [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]


def test_random_sets_differ_and_are_what_was_asked_for() -> None:
    sets = random_sets(10, 3, 100, seed=1)
    assert len({*sets}) == 100
    assert SparseAveraging(10, 3, 1, sets).sets == sets == random_sets(10, 3, 100, seed=1)
    assert len(random_sets(4, 2, 99, seed=0)) == comb(4, 2)


def test_files_read_back(tmp_path: Path) -> None:
    for task in (*MATCHING, SparseAveraging(9, 2, 1, ("1,2", "3,9")), SparseAveraging(4, 2, 1)):
        task.write(tmp_path / "x.task.toml")
        assert Task.read(tmp_path / "x.task.toml") == task


BAD: list[tuple[type[Task], dict[str, object], str]] = [
    (SparseAveraging, {"length": 3, "sparsity": 4, "dimensions": 1}, "sparsity must be at most length = 3"),
    (SparseAveraging, {"length": 3, "sparsity": 0, "dimensions": 1}, "sparsity must be a whole number from 1 to 64"),
    (SparseAveraging, {"length": 0, "sparsity": 1, "dimensions": 1}, "length must be a whole number from 1 to 4,096"),
    (SparseAveraging, {"length": 100, "sparsity": 5, "dimensions": 1}, "75,287,520 sets with 2 vectors make more than"),
    (SparseAveraging, {"length": 9, "sparsity": 2, "dimensions": 1, "sets": ("1,2", "2,1")}, "one is '2,1'"),
    (SparseAveraging, {"length": 9, "sparsity": 2, "dimensions": 1, "sets": ("1,10",)}, "one is '1,10'"),
    (SparseAveraging, {"length": 9, "sparsity": 2, "dimensions": 1, "sets": ("1,1",)}, "one is '1,1'"),
    (SparseAveraging, {"length": 9, "sparsity": 2, "dimensions": 1, "sets": ("0,1",)}, "one is '0,1'"),
    (SparseAveraging, {"length": 9, "sparsity": 2, "dimensions": 1, "sets": ("1,2,3",)}, "must each be 2 positions"),
    (SparseAveraging, {"length": 9, "sparsity": 2, "dimensions": 1, "sets": ("1,x",)}, "like '1,2', one is '1,x'"),
    (SparseAveraging, {"length": 9, "sparsity": 2, "dimensions": 1, "sets": ("1, 2",)}, "one is '1, 2'"),
    (SparseAveraging, {"length": 9, "sparsity": 2, "dimensions": 1, "sets": ("1,2", "1,2")}, "'1,2' comes twice"),
    (Match2, {"modulus": 1, "length": 4}, "modulus must be a whole number from 2 to 131,072, not 1"),
    (Match2, {"modulus": 5, "length": 0}, "length must be a whole number from 1"),
    (Match3Local, {"modulus": 5, "length": 4, "reach": 4}, "reach must be below length = 4, not 4"),
    (Match3Local, {"modulus": 5, "length": 4, "reach": 0}, "reach must be a whole number from 1 to 64, not 0"),
]


@each(("kind", "given", "message"), BAD)
def test_bad_tasks_are_refused(kind: type[Task], given: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        kind(**given)
