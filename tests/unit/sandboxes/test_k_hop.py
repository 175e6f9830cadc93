"""k-hop and induction: answers as the task spec has them, and their special cases."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from exact_rows import asked, drawn, foretold, told
from vitrify.errors import InputError
from vitrify.sandboxes.induction import Induction
from vitrify.sandboxes.k_hop import KHopSandbox, following
from vitrify.spec.tasks.catalogue import NONE
from vitrify.spec.tasks.k_hop import KHop as Task


@pytest.mark.parametrize(("hops", "states", "length"), [(1, 30, 40), (3, 3, 30)])
def test_answers_are_those_of_the_task(hops: int, states: int, length: int) -> None:
    sandbox = KHopSandbox(hops=hops, states=states, length=length)
    found = drawn(sandbox, 100)
    best = foretold(sandbox, found)
    task = Task(hops=hops, symbols=states, length=length)
    assert sandbox.symbols == task.alphabet
    assert sandbox.answers == task.outputs
    for number, (word, answers) in enumerate(asked(sandbox, found)):
        assert answers == told(task.answers(word))
        assert [sandbox.answers[k] for k in best[number, 1:].argmax(axis=1)] == [*answers.values()]
    assert (found.targets[:, 1:] > 0).any()
    assert found.latent["hops"].shape == (100, hops, length)


def test_induction_asks_where_one_hop_finds_something() -> None:
    sandbox = Induction(states=6, length=20)
    found = drawn(sandbox, 100)
    best = foretold(sandbox, found)
    task = Task(hops=1, symbols=6, length=20)
    for number, (word, answers) in enumerate(asked(sandbox, found)):
        assert answers == {t: answer for t, answer in told(task.answers(word)).items() if answer != NONE}
        assert [sandbox.answers[best[number, t].argmax()] for t in answers] == [*answers.values()]


def test_the_last_occurrence_is_found_for_every_word() -> None:
    words = np.array([[a, b, c, d] for a in range(3) for b in range(3) for c in range(3) for d in range(3)])
    for word, places in zip(words.tolist(), np.asarray(jax.jit(jax.vmap(following))(words)).tolist(), strict=True):
        last = [max((j + 2 for j in range(i) if word[j] == word[i]), default=0) for i in range(4)]
        assert places == last


def test_symbols_are_uniform_and_unigrams_count() -> None:
    sandbox = KHopSandbox(states=5, length=50)
    found = drawn(sandbox, 2000)
    assert abs(np.bincount(found.tokens.ravel()) / 20_000 - 1).max() < 5 * np.sqrt(0.8 / 20_000)
    guess = np.exp(jax.jit(sandbox.unigram)(jax.tree.map(lambda x: x[0], found)))
    seen = np.bincount(found.tokens[0, :10], minlength=5)
    assert np.allclose(guess[10], np.array([1, *(seen + 1)]) / 16, atol=1e-6)


def test_bad_parameters_are_all_named() -> None:
    with pytest.raises(
        InputError,
        match=r"hops must be .* at least 1, not 0; states must be .* from 1 .*; length must be .* from 2",
    ):
        KHopSandbox(hops=0, states=0, length=1)
    with pytest.raises(InputError, match="length must be above states = 9"):
        Induction(states=9, length=9)
