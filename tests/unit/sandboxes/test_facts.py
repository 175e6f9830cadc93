"""Facts among noise: answers as the spec has them, tables as stated, and the loss of made-up facts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from enumerated import many
from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import make
from vitrify.sandboxes.facts import EOS, FactRecall
from vitrify.spec.memory.facts import Facts, answers_by_relation

COUNTRIES = Path(__file__).parents[3] / "examples" / "countries.facts"


@pytest.mark.parametrize(
    "parameters", [{"file": str(COUNTRIES), "length": "9"}, {"table": "random", "task": "4"}, {"length": 3, "noise": 0}]
)
def test_answers_are_those_of_the_spec(parameters: dict[str, Any]) -> None:
    sandbox = make("facts", parameters)
    assert isinstance(sandbox, FactRecall)
    found = many(sandbox, 200)
    best = np.asarray(jax.jit(jax.vmap(sandbox.optimal))(found))
    assert (found.weight[:, :-1] == 0).all()
    assert (found.weight[:, -1] == 1).all()
    for number, tokens in enumerate(found.tokens):
        *words, last = (sandbox.symbols[token] for token in tokens)
        assert last == EOS
        answer = sandbox.spec.answer(words)
        assert answer == sandbox.answers[found.targets[number, -1]]
        assert sandbox.answers[best[number, -1].argmax()] == answer
        assert best[number, -1].max() == 0
        assert sandbox.spec.vocabulary[found.latent["subject"][number]] in words
        assert sandbox.spec.relations[found.latent["relation"][number]] in words


def test_structured_facts_share_answers_between_subjects_in_a_row() -> None:
    sandbox = FactRecall()
    assert len(sandbox.symbols) == 16 + 4 + 20 + 1
    assert len(sandbox.answers) == 32
    for subject, relation, answer in sandbox.spec.facts:
        s, r = int(subject[1:]), int(relation[1:])
        assert answer == f"a{r}.{s // 2}"
    assert all(len(answers) == 8 for answers in answers_by_relation(sandbox.spec).values())


def test_whoever_knows_relations_only_pays_the_logarithm_of_their_answers() -> None:
    sandbox = FactRecall(length=8)
    found = many(sandbox, 100)

    def losses(name: str) -> Any:
        logp = jax.jit(jax.vmap(sandbox.predictors()[name]))(found)[:, -1]
        return -np.take_along_axis(np.asarray(logp), found.targets[:, -1:], axis=1)

    assert np.allclose(losses("relation"), np.log(8), atol=1e-6)
    assert np.allclose(losses("subject"), np.log(4), atol=1e-6)
    assert np.allclose(losses("unigram"), np.log(32), atol=1e-6)


def test_places_and_noise_are_all_alike() -> None:
    sandbox = FactRecall(subjects=3, relations=2, per_relation=2, noise=3, length=5)
    found = many(sandbox, 12_000)
    named = np.stack([(found.tokens < 3).argmax(axis=1), ((found.tokens >= 3) & (found.tokens < 5)).argmax(axis=1)])
    pairs = np.bincount(named[0] * 4 + named[1], minlength=16).reshape(4, 4)
    assert (np.diag(pairs) == 0).all()
    assert np.abs(pairs[~np.eye(4, dtype=bool)] - 1000).max() < 5 * np.sqrt(1000)
    noise = np.bincount(found.tokens[(found.tokens >= 5) & (found.tokens < 8)] - 5)
    assert np.abs(noise - 8000).max() < 5 * np.sqrt(24_000 * 2 / 9)


LEAST = "must be a whole number of at least"


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (
            {"subjects": 0, "relations": 0, "per_relation": 0, "task": -1, "noise": -1, "length": 2},
            f"subjects {LEAST} 1, not 0; relations {LEAST} 1, not 0; per_relation {LEAST} 1, not 0; "
            f"noise {LEAST} 0, not -1; length {LEAST} 3, not 2; task {LEAST} 0, not -1",
        ),
        ({"noise": 0, "length": 4}, "length must be 3 where there is no noise, not 4"),
        ({"file": Facts((("France", "capital", "Paris"),), fillers=(EOS,))}, "file must not have the word <eos>"),
    ],
)
def test_all_that_is_wrong_is_said(wrong: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        FactRecall(**wrong)
