"""Modular arithmetic: what Python says, and parts of questions that never meet."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax
import numpy as np
import pytest

from cases import each
from exact_rows import asked, drawn, foretold, share
from oracles.rows import reference
from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import make
from vitrify.sandboxes.modular import Modular


@pytest.mark.parametrize(("operation", "modulus", "terms"), [("+", 10, 40), ("-", 7, 3), ("*", 32768, 3)])
def test_answers_are_what_python_says(operation: Any, modulus: int, terms: int) -> None:
    sandbox = Modular(modulus, operation, terms)
    found = drawn(sandbox, 50)
    best = foretold(sandbox, found)
    for number, (word, answers) in enumerate(asked(sandbox, found)):
        assert word[-1] == "="
        plain = word[0]
        for term in word[2::2]:
            plain = f"({plain}{operation}{term})"
        assert answers == {2 * terms: str(eval(plain) % modulus)}
        assert sandbox.answers[best[number, -1].argmax()] == answers[2 * terms]


def test_the_parts_have_no_question_in_common_and_together_all() -> None:
    sandbox = make("modular", {"modulus": "5", "fraction": "0.4"})
    assert isinstance(sandbox, Modular)
    parts = {split: drawn(sandbox, 4000, split) for split in ("train", "test", "probe")}
    seen = {split: Counter(map(tuple, row.tokens[:, ::2].tolist())) for split, row in parts.items()}
    assert len(seen["train"]) == 10
    assert len(seen["test"]) == 15
    assert seen["probe"].keys() == seen["test"].keys()
    assert not seen["train"].keys() & seen["test"].keys()
    for counts in seen.values():
        assert share([*counts.values()], np.ones(len(counts))) > 1e-6
    again = {tuple(row) for row in sandbox.of("train").questions.tolist()}
    assert again == {*seen["train"]}
    assert again != {tuple(row) for row in Modular(5, fraction=0.4, seed=1).of("train").questions.tolist()}
    tokens, targets = reference(sandbox.of("train"), np.random.default_rng(0), 500)
    assert {tuple(row) for row in tokens[:, ::2].tolist()} == again
    assert (targets[:, -1] == tokens[:, ::2].sum(axis=1) % 5).all()


def test_where_nothing_is_held_out_test_questions_repeat_training_questions() -> None:
    train, test = (
        {tuple(tokens) for tokens in drawn(Modular(5), 200, split).tokens.tolist()} for split in ("train", "test")
    )
    assert len(train & test) > 20  # of 25 questions


def test_unigrams_of_products_are_their_frequencies() -> None:
    sandbox = Modular(6, "*", 3)
    guess = np.exp(jax.jit(sandbox.unigram)(jax.tree.map(lambda x: x[0], drawn(sandbox, 1))))
    every = Counter(a * b * c % 6 for a in range(6) for b in range(6) for c in range(6))
    assert np.allclose(guess[-1], np.array([every[k] for k in range(6)]) / 216, atol=1e-6)
    assert "unigram" not in Modular(6, "+").predictors()


@each(
    ("parameters", "message"),
    [
        ({"modulus": 1, "terms": 1, "fraction": 2.0}, "modulus must be .*; terms must be .*; fraction must be"),
        ({"modulus": 300, "fraction": 0.5}, "modulus and terms must be smaller: at most 65536 questions can be split"),
        (
            {"modulus": 2, "terms": 100, "fraction": 0.5},
            "modulus and terms must be smaller: at most 65536 questions can be split",
        ),
        ({"modulus": 3, "fraction": 0.01}, "leaves one of the parts empty"),
        ({"part": "rest"}, "part must be all where fraction = 1, not rest"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Modular(**parameters)
