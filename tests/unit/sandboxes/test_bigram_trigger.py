"""Triggers: the optimum by all sets of triggers and all outputs, what is asked, and the ways past it."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any, Literal

import jax
import numpy as np
import pytest

from cases import each
from enumerated import Word, expect_next, many, on_gpu_paths, said
from vitrify.errors import InputError
from vitrify.sandboxes.bigram_trigger import BigramTrigger
from vitrify.sandboxes.catalogue import examples


@each(("choice", "triggers"), [("random", 1), ("random", 2), ("fixed", 1), ("fixed", 2)])
def test_the_optimum_is_that_of_all_triggers_and_outputs(choice: Literal["fixed", "random"], triggers: int) -> None:
    sandbox = BigramTrigger(vocabulary=3, triggers=triggers, length=5, choice=choice, task=3)
    kernel = sandbox.table
    law = np.linalg.matrix_power(kernel, 300)[0]
    frequent = set(np.argsort(-law)[:triggers].tolist())
    worlds: list[tuple[float, dict[int, int]]] = []
    for chosen in product([False, True], repeat=3):
        if choice == "fixed":
            p = float({a for a in range(3) if chosen[a]} == frequent)
        else:
            p = float(np.prod([triggers / 3 if one else 1 - triggers / 3 for one in chosen]))
        for outputs in product(range(3), repeat=3):
            worlds.append((p / 27, {a: outputs[a] for a in range(3) if chosen[a]}))

    def joint(word: Word) -> float:
        total = 0.0
        for p, outputs in worlds:
            p *= law[word[0]]
            for a, b in pairwise(word):
                p *= float(outputs[a] == b) if a in outputs else kernel[a, b]
            total += p
        return total

    expect_next(sandbox, joint)


def test_the_optimum_bears_long_rows() -> None:
    """Triggers are known for sure after hundreds of outputs, and nothing overflows on the way."""
    sandbox = BigramTrigger(vocabulary=4, triggers=2, length=400, choice="random", alpha=0.02)
    found = many(sandbox, 30)
    best = said(sandbox, sandbox.optimal, found.tokens)
    assert np.isfinite(best).all()
    assert np.allclose(best.sum(axis=2), 1, atol=1e-5)
    assert (np.take_along_axis(best, found.targets[..., None], axis=2) > 0).all()


def test_repeated_asks_where_the_output_is_known() -> None:
    sandbox = BigramTrigger(vocabulary=6, triggers=3, length=30, scored="repeated", task=1)
    found = many(sandbox, 60)
    fixed = set(np.flatnonzero(sandbox.prior).tolist())
    assert len(fixed) == 3
    assert sandbox.law[sorted(fixed)].min() >= max(sandbox.law[a] for a in range(6) if a not in fixed)
    for tokens, targets, weight, output in zip(
        found.tokens.tolist(), found.targets, found.weight, found.latent["output"], strict=True
    ):
        asked = [t + 1 for t, a in enumerate(tokens) if a in fixed and a in tokens[:t]]
        assert np.flatnonzero(weight).tolist() == asked
        assert all(targets[t] == output[tokens[t - 1]] for t in asked)
    best = said(sandbox, sandbox.optimal, found.tokens)
    right = np.take_along_axis(best, found.targets[..., None], axis=2)[..., 0]
    assert np.allclose(right[found.weight > 0], 1)


def test_other_predictors_know_what_they_say() -> None:
    sandbox = BigramTrigger(vocabulary=3, triggers=1, length=6, task=3)
    mean = np.where(sandbox.prior[:, None] > 0, 1 / 3, sandbox.table)
    tokens = (0, 1, 0, 2, 0)
    found = {name: said(sandbox, p, [tokens])[0] for name, p in sandbox.predictors().items()}
    assert np.allclose(found["bigram"][1:], mean[[*tokens]], atol=1e-6)
    assert np.allclose(found["bigram"][0], sandbox.law, atol=1e-6)
    assert np.allclose(found["unigram"][3], np.linalg.matrix_power(mean, 300)[0], atol=1e-6)
    assert np.allclose(found["induction"][5], np.array([1 / 3, 4 / 3, 4 / 3]) / 3, atol=1e-6)
    assert np.allclose(found["induction"][2], 1 / 3, atol=1e-6)


def test_the_way_of_a_gpu_leads_to_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = BigramTrigger(vocabulary=5, triggers=2, length=21)

    def drawn() -> Any:
        return np.asarray(jax.jit(lambda: examples(sandbox, 0, "test", 0, 8).targets)())

    usual = drawn()
    on_gpu_paths(monkeypatch)
    assert np.array_equal(usual, drawn())


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (
            {"vocabulary": 1, "triggers": 2, "length": 1, "alpha": 0},
            "vocabulary must be .* at least 2, not 1; length must be .* at least 2, not 1; "
            "alpha must be a number above 0, not 0",
        ),
        (
            {"vocabulary": 4, "triggers": 5, "choice": "random", "scored": "repeated"},
            "triggers must be at most vocabulary = 4, not 5; scored = repeated needs choice=fixed",
        ),
        ({"task": -1}, "task must be a whole number of at least 0, not -1"),
    ],
)
def test_all_that_is_wrong_is_said(wrong: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        BigramTrigger(**wrong)
