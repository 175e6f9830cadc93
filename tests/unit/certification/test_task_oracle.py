"""The oracle of tasks: what it judges, what it leaves alone, and what a check makes of its words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from vitrify.certification import certify
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.oracles.catalogue import oracle_for
from vitrify.constructions.catalogue import build
from vitrify.errors import FolderError
from vitrify.net.architecture import Output
from vitrify.net.transformer import Transformer
from vitrify.spec.tasks.catalogue import Answer, Task, Word
from vitrify.spec.tasks.composition import Composition
from vitrify.spec.tasks.k_hop import KHop
from vitrify.spec.tasks.recall import Recall

SMALL = Recall(keys=2, values=2, pairs=2, queries=2, fused=True)


@dataclass(frozen=True)
class Shares(Task):
    """The shares of a and b so far, asked after every b; a well-formed word has no two b in a row."""

    name: ClassVar[str] = "shares"
    numeric: ClassVar[bool] = True
    free: ClassVar[bool] = False
    length: int
    alphabet = ("a", "b")
    outputs = ("a", "b")

    def answers(self, word: Word) -> Sequence[Answer]:
        parts = [word[: end + 1] for end in range(len(word))]
        shares = [tuple(list(part).count(letter) / len(part) for letter in "ab") for part in parts]
        return [share if symbol == "b" else None for symbol, share in zip(word, shares, strict=True)]

    def words(self, length: int) -> Iterator[tuple[str, ...]]:
        return (word for word in super().words(length) if "bb" not in "".join(word))

    def draw(self, rng: np.random.Generator, length: int) -> tuple[str, ...]:
        return tuple("ab"[int(rng.integers(2)) if place % 2 else 0] for place in range(length))


def net(task: Task, output: Output) -> Transformer:
    return Transformer(("<s>", *task.alphabet), output, task.length, 1)


def test_only_what_is_asked_is_judged() -> None:
    weights = build(SMALL)
    oracle = oracle_for(SMALL, weights.architecture)
    ids = weights.architecture.input_ids
    word = np.array([[ids["k2=v1"], ids["k1=v2"], ids["k1"], ids["k2"]]])
    logits = np.zeros((1, 5, 2))
    logits[0, 3, 1] = logits[0, 4, 0] = 1.0
    assert oracle.errors(word, logits).tolist() == [[0.0] * 5]
    assert oracle.has_answer(word).tolist() == [[False, False, False, True, True]]
    logits[0, :3] = np.nan  # nobody asks there
    assert oracle.errors(word, logits).tolist() == [[0.0] * 5]
    logits[0, 3] = [0.0, 1e-7]  # a tie, as good as
    logits[0, 4] = [np.nan, 0.0]
    assert oracle.errors(word, logits).tolist() == [[0.0, 0.0, 0.0, 1.0, 1.0]]
    logits[0, 3] = [np.inf, 1.0]
    cut = {"word": ["k2=v1", "k1=v2", "k1"], "expected": "v2", "actual": "v1"}
    assert oracle.witness(word[0, :3], logits[0, :4]) == cut
    logits[0, 4] = [1.0, 0.0]  # right at the end
    assert oracle.witness(word[0], logits[0]) == cut | {"word": ["k2=v1", "k1=v2", "k1", "k2"], "position": 3}
    assert oracle.errors(np.zeros((1, 0), dtype=np.int64), np.zeros((1, 1, 2))).tolist() == [[0.0]]


def test_numbers_are_compared_within_the_promised_error() -> None:
    task = Shares(6)
    oracle = oracle_for(task, net(task, Output("values", ("a", "b"), error=0.01)))
    word = np.array([[1, 2, 1]])
    logits = np.zeros((1, 4, 2))
    logits[0, 2] = [0.505, 0.492]
    assert oracle.tolerance() == 0.01
    assert oracle.errors(word, logits)[0].tolist() == pytest.approx([0, 0, 0.008, 0])
    logits[0, 2, 0] = np.nan
    assert oracle.errors(word, logits)[0, 2] == np.inf
    assert oracle.witness(word[0], logits[0])["expected"] == [0.5, 0.5]


def test_words_of_a_restricted_domain() -> None:
    task = Shares(5)
    asked = WordCheck(net(task, Output("values", ("a", "b"), error=0.01)), task)
    short, random = asked.batches
    every = {tuple(word) for words in short.words for word in words.tolist()}
    assert all("bb" not in "".join("ab"[i - 1] for i in word) for word in every)
    assert short.cases == 1 + 2 + 3 + 5 + 8 + 13  # Fibonacci
    assert (short.domain.method, random.domain.method) == ("exhaustive", "sampled")


def test_where_there_are_too_many_words_only_random_ones_are_asked() -> None:
    task = Composition(8)
    asked = WordCheck(build(task).architecture, task, samples=7)
    (random,) = asked.batches
    assert (random.domain.method, sum(map(len, random.words))) == ("sampled", 7)
    evidence = certify(build(task), task, samples=7, work=1e6)
    assert (evidence.verdict, evidence.methods) == ("holds", ("sampled",))


def test_drawn_words_of_free_tasks_are_asked_too() -> None:
    task = KHop(4, 16, 40)
    asked = WordCheck(build(task).architecture, task)
    drawn = [word for words in asked.batches[1].words for word in words.tolist()]
    assert len({len(word) for word in drawn}) > 5
    assert min(len(set(word)) for word in drawn if len(word) == 40) < 5


def test_float32_is_judged_where_an_answer_is_asked() -> None:
    task = Composition(4)
    evidence = certify(build(task), task, work=1e6)
    assert evidence.measured("share of answers that float32 must give too") == 1.0


def test_other_symbols_and_answers_are_refused() -> None:
    weights = build(SMALL)
    with pytest.raises(FolderError, match="about the same symbols"):
        oracle_for(Recall(2, 3, 2, 2, True), weights.architecture)
    task = Shares(5)
    with pytest.raises(FolderError, match="no oracle for a spec of type Shares"):
        oracle_for(task, net(task, Output("class", ("a", "b"))))
