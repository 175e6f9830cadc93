"""One chain of any order: its stationary state, its optimum by all words, and what given kernels may be."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cases import each
from enumerated import Word, entropies, expect_next, many, on_gpu_paths, said, words
from oracles.rows import reference
from vitrify.errors import InputError
from vitrify.sandboxes.chain import Chain
from vitrify.sandboxes.kit.contexts import Contexts
from vitrify.sandboxes.markov import Markov


class Words:
    """The probabilities of all words, from the kernel and an eigenvector of the transitions between words."""

    def __init__(self, sandbox: Chain) -> None:
        k, m = sandbox.states, sandbox.order
        self.order = m
        self.kernel = {c: sandbox.table[number] for number, c in enumerate(words(k, m))}
        contexts = list(self.kernel)
        step = np.array([[self.kernel[c][d[-1]] * (c[1:] == d[:-1]) for d in contexts] for c in contexts])
        values, vectors = np.linalg.eig(step.T)
        law = np.real(vectors[:, np.argmin(np.abs(values - 1))])
        self.law = dict(zip(contexts, law / law.sum(), strict=True))

    def __call__(self, word: Word) -> float:
        p = self.law[word[: self.order]]
        for t in range(self.order, len(word)):
            p *= self.kernel[word[t - self.order : t]][word[t]]
        return float(p)


@pytest.mark.parametrize(("states", "order", "length", "alpha"), [(2, 2, 5, 1.0), (3, 1, 4, 0.3), (2, 3, 6, 2.0)])
def test_the_optimum_is_that_of_all_words(states: int, order: int, length: int, alpha: float) -> None:
    sandbox = Chain(states=states, order=order, length=length, alpha=alpha, task=4)
    joint = Words(sandbox)
    expect_next(sandbox, joint)
    expected = entropies(joint, states, length)
    assert np.allclose(sandbox.floor(), expected, atol=1e-9)
    assert sandbox.rate() == pytest.approx(expected[-1])


def test_lower_orders_are_conditionals_of_the_stationary_law() -> None:
    sandbox = Chain(states=3, order=2, length=5)
    joint = Words(sandbox)
    single = np.zeros(3)
    for (a, _), p in joint.law.items():
        single[a] += p
    pairs = np.array([[joint.law[a, b] for b in range(3)] for a in range(3)])
    found = sandbox.predictors()
    assert [*found] == ["uniform", "unigram", "bigram"]
    tokens = [(2, 0, 1, 1)]
    assert np.allclose(said(sandbox, found["unigram"], tokens)[0], single, atol=1e-6)
    bigram = said(sandbox, found["bigram"], tokens)[0]
    assert np.allclose(bigram[0], single, atol=1e-6)
    for t, token in enumerate(tokens[0]):
        assert np.allclose(bigram[t + 1], pairs[token] / single[token], atol=1e-6)


def test_a_given_binary_chain_is_the_sandbox_markov() -> None:
    chain, markov = Chain(states=2, kernel=(0.9, 0.1, 0.4, 0.6), length=4), Markov(p=0.1, q=0.4, length=4)
    tokens = words(2, 3)
    assert np.allclose(said(chain, chain.optimal, tokens), said(markov, markov.optimal, tokens), atol=1e-6)
    assert chain.rate() == pytest.approx(markov.rate(), rel=1e-5)


def test_a_chain_that_turns_round_and_round_is_stationary_too() -> None:
    sandbox = Chain(states=3, kernel=(0, 1, 0, 0, 0, 1, 1, 0, 0), length=6)
    found = many(sandbox, 300)
    assert (np.diff(found.targets, axis=1) % 3 == 1).all()
    assert np.bincount(found.targets[:, 0]).min() > 60
    assert np.allclose(sandbox.floor(), [np.log(3), 0, 0, 0, 0, 0], atol=1e-9)
    tokens, _ = reference(sandbox, np.random.default_rng(0), 300)
    assert (np.diff(tokens, axis=1) % 3 == 1).all()


def test_many_contexts_are_iterated_to_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = Chain(states=4, order=3).stationary.law
    monkeypatch.setattr("vitrify.sandboxes.kit.contexts.MAX_SOLVED_CONTEXTS", 0)
    assert np.allclose(Chain(states=4, order=3).stationary.law, solved, atol=1e-12)


@pytest.mark.parametrize("size", [3, 300])
def test_a_law_that_depends_on_the_start_is_refused_for_few_contexts_and_for_many(size: int) -> None:
    here, next_one = np.arange(size), (np.arange(size) + 1) % size
    stay = Contexts(np.tile([1.0, 0.0], (size, 1)), np.stack([here, next_one], axis=1))  # no symbol leads to another
    with pytest.raises(InputError, match="falls into parts"):
        _ = stay.law
    absorbed = Contexts(np.ones((size, 1)), np.maximum(here - 1, 0)[:, None])
    assert np.allclose(absorbed.law, here == 0, atol=1e-12)
    ring = Contexts(np.ones((size, 1)), next_one[:, None])
    assert np.allclose(ring.law, 1 / size, atol=1e-12)
    two_ends = Contexts(np.full((size, 2), 0.5), np.stack([np.maximum(here - 1, 0), np.minimum(here + 1, size - 1)], 1))
    two_ends.follow[0], two_ends.follow[-1] = 0, size - 1
    with pytest.raises(InputError, match="falls into parts"):
        _ = two_ends.law


def test_the_way_of_a_gpu_leads_to_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    contexts, u = Chain(states=3, order=2).contexts, np.random.default_rng(0).random(20)

    def both() -> Any:
        symbols, before = jax.jit(lambda: contexts.draw(jnp.asarray(u)))()
        return np.asarray([symbols, before, jax.jit(contexts.read)(symbols)[:-1]])

    usual = both()
    assert np.array_equal(usual[1], usual[2])
    on_gpu_paths(monkeypatch)
    assert np.array_equal(usual, both())


LEAST = "must be a whole number of at least"


@each(
    ("wrong", "expected"),
    [
        (
            {"states": 1, "order": 0, "length": 0, "alpha": 0.0, "task": -1},
            f"length {LEAST} 2, not 0; states {LEAST} 2, not 1; order {LEAST} 1, not 0; "
            f"alpha must be a number above 0, not 0.0; task {LEAST} 0, not -1",
        ),
        ({"order": 4, "length": 4}, "length must be more than order = 4, not 4"),
        ({"states": 100, "order": 9}, "makes 100000000000000000000 probabilities"),
        ({"states": 2, "kernel": (1.0,)}, r"kernel must have states\^\(order \+ 1\) = 4 numbers, not 1"),
        ({"states": 2, "kernel": (0.5, 0.6, 1, 0)}, "kernel must be probabilities, each 2 of them with the sum 1"),
        ({"states": 2, "kernel": (1.5, -0.5, 1, 0)}, "kernel must be probabilities, each 2 of them with the sum 1"),
        ({"states": 2, "kernel": (1, 0, 0, 1)}, "more than one stationary law"),
    ],
)
def test_all_that_is_wrong_is_said(wrong: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        Chain(**wrong)
