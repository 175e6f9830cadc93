"""Brackets against a list of all texts, and against the spec of the language."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import jax
import numpy as np
import pytest

from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import Example, examples, make
from vitrify.sandboxes.dyck import DyckSandbox, _latest, _stacked


def texts(sandbox: DyckSandbox) -> tuple[Any, Any]:
    """Every row and its probability, by the spec's own account of what may follow."""
    spec, p = sandbox.spec, sandbox.opening
    found, chances = [], []
    for brackets in product(range(2 * sandbox.kinds), repeat=sandbox.length):
        chance, words = 1.0, [sandbox.symbols[b] for b in brackets]
        for t, bracket in enumerate(brackets):
            waiting = spec.stack(words[:t])
            if waiting is None or words[t] not in spec.next_words(words[:t]):
                chance = 0.0
                break
            opens = 1.0 if not waiting else 0.0 if len(waiting) == sandbox.depth else p
            chance *= opens / sandbox.kinds if bracket % 2 == 0 else 1 - opens
        if sandbox.closed:
            chance = float(chance > 0 and spec.holds(words))
        if chance:
            found.append(brackets)
            chances.append(chance)
    return np.array(found), np.array(chances) / sum(chances)


@pytest.mark.parametrize(("closed", "asked"), [(False, "all"), (True, "all"), (False, "closing")])
def test_laws_and_losses_are_those_of_all_texts(closed: bool, asked: Any) -> None:
    sandbox = DyckSandbox(kinds=2, depth=2, length=6, opening=0.3, closed=closed, scored=asked)
    brackets, chances = texts(sandbox)
    if closed:  # Dyck words of 6 brackets: 5 shapes, one of which is too deep; 2 kinds for each of 3 pairs
        assert len(brackets) == 4 * 8
    batch = Example(brackets[:, :-1], brackets, np.ones(brackets.shape), {})
    predictors = {"optimal": sandbox.optimal, **sandbox.predictors()}
    found = jax.jit(lambda batch: {name: jax.vmap(each)(batch) for name, each in predictors.items()})(batch)
    found = jax.device_get(found)
    height = np.pad(np.cumsum(1 - 2 * (brackets % 2), axis=1), ((0, 0), (1, 0)))
    for t in range(6):
        views = {"optimal": brackets[:, :t], "height": height[:, t : t + 1], "unigram": brackets[:, :0]}
        for name, seen in views.items():
            counts = (brackets[:, t] % 2 == 1) | (asked == "all")
            for place in np.flatnonzero(counts):
                same = (seen == seen[place]).all(axis=1) & counts
                law = np.bincount(brackets[same, t], chances[same], 4) / chances[same].sum()
                assert np.allclose(np.exp(found[name][place, t]), law, atol=1e-5)
    losses = -np.take_along_axis(found["optimal"], brackets[..., None], axis=-1)[..., 0]
    weight = (brackets % 2 == 1) | (asked == "all")
    assert np.allclose(sandbox.floor(), chances @ np.where(weight, losses, 0), atol=1e-5)
    drawn = jax.device_get(jax.jit(lambda: examples(sandbox, 0, "test", 0, 50))())
    assert np.array_equal(drawn.weight, (drawn.targets % 2 == 1) | (asked == "all"))


def test_rows_are_beginnings_of_words_and_their_heights_are_told() -> None:
    sandbox = DyckSandbox(kinds=3, depth=3, length=40, closed=True)
    batch = jax.device_get(jax.jit(lambda: examples(sandbox, 0, "test", 0, 100))())
    for brackets, height in zip(batch.targets, batch.latent["height"], strict=True):
        words = [sandbox.symbols[bracket] for bracket in brackets]
        assert sandbox.spec.holds(words)
        stacks = [sandbox.spec.stack(words[: t + 1]) or () for t in range(40)]
        assert height.tolist() == [len(stack) for stack in stacks]


def test_both_ways_to_find_the_bracket_that_waits_are_the_stack_of_the_spec() -> None:
    sandbox = DyckSandbox(kinds=3, depth=3, length=40)

    @jax.jit
    def both() -> tuple[Example, jax.Array, jax.Array]:
        batch = examples(sandbox, 0, "test", 0, 20)
        given = (batch.targets % 2 == 0, batch.targets // 2, batch.latent["height"])
        return batch, jax.vmap(partial(_stacked, 3))(*given), jax.vmap(partial(_latest, 3, 3))(*given)

    batch, stacked, latest = jax.device_get(both())
    for brackets, one, two in zip(batch.targets, stacked, latest, strict=True):
        stacks = [sandbox.spec.stack([sandbox.symbols[b] for b in brackets[: t + 1]]) for t in range(40)]
        right = [sandbox.symbols.index(stack[-1]) // 2 if stack else 0 for stack in stacks]
        assert one.tolist() == two.tolist() == right


def test_the_rate_is_the_loss_far_from_the_start() -> None:
    sandbox = DyckSandbox(kinds=3, depth=3, length=400, opening=0.4)
    floor = np.asarray(jax.jit(sandbox.floor)())
    rate = sandbox.rate()
    assert rate is not None
    assert np.isclose(floor[-2:].mean(), rate, atol=1e-4)  # heights are even and odd in turn
    assert DyckSandbox(closed=True).rate() is None


def test_bad_parameters_are_told_at_once() -> None:
    with pytest.raises(
        InputError,
        match=r"depth must be a whole number of at least 1, not 0; opening must be a number above 0 and below 1, not 1",
    ):
        make("dyck", {"depth": 0, "opening": 1})
    with pytest.raises(InputError, match=r"length must be even for words that close, not 5"):
        make("dyck", {"length": 5, "closed": "yes"})
