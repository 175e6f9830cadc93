"""Chained facts: every row is chains in random order, the answer ends the chain, and guessing an end costs log K."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.stats import chisquare

from enumerated import many
from oracles.rows import reference
from vitrify.errors import InputError
from vitrify.sandboxes.multi_hop import MultiHop, shuffled


@pytest.mark.parametrize(
    ("chains", "hops", "names", "rounds"), [(4, 2, 15, False), (3, 3, 12, False), (3, 3, 12, True), (1, 1, 2, False)]
)
def test_rows_are_chains_and_the_answer_ends_one(chains: int, hops: int, names: int, rounds: bool) -> None:
    sandbox = MultiHop(chains=chains, hops=hops, names=names, rounds=rounds)
    found = many(sandbox, 200)
    best = np.asarray(jax.jit(jax.vmap(sandbox.optimal))(found))
    ends = np.asarray(jax.jit(jax.vmap(sandbox.ends))(found))
    for row, (tokens, targets) in enumerate(zip(found.tokens.tolist(), found.targets, strict=True)):
        steps = dict(zip(tokens[:-1:2], tokens[1::2], strict=True))
        assert len(steps) == chains * hops
        heads = set(steps) - set(steps.values())
        assert len(heads) == chains
        assert tokens[-1] in heads
        path = [tokens[-1]]
        while path[-1] in steps:
            path.append(steps[path[-1]])
        assert len(path) == hops + 1
        assert targets[-1] == path[-1]
        assert best[row, -1].argmax() == path[-1]
        assert found.latent["path"][row].tolist() == path
        places = [tokens[:-1:2].index(name) for name in path[:-1]]
        assert found.latent["steps"][row].tolist() == places
        assert not rounds or [place // chains for place in places] == list(range(hops))
        last = set(steps.values()) - set(steps)
        assert np.allclose(np.exp(ends[row, -1]), [(name in last) / chains for name in range(names)], atol=1e-6)
    assert (found.weight == (np.arange(sandbox.tokens + 1) == sandbox.tokens)).all()


def test_orders_are_all_alike_and_equal_words_stand_by_their_place() -> None:
    words = np.random.default_rng(0).integers(1 << 32, size=(24_000, 4), dtype=np.uint32)
    found = np.asarray(jax.jit(jax.vmap(lambda word: shuffled(word, 4)))(words))
    assert (np.sort(found, axis=1) == np.arange(4)).all()
    _, times = np.unique(found, axis=0, return_counts=True)
    assert len(times) == 24
    assert chisquare(times).pvalue > 1e-6
    assert np.asarray(jax.jit(lambda word: shuffled(word, 3))(np.array([7, 7, 1, 7], dtype=np.uint32))).tolist() == [
        1,
        2,
        0,
    ]


def test_rounds_come_one_after_the_other_and_tell_nothing_about_the_chains() -> None:
    sandbox = MultiHop(chains=3, hops=2, names=9, rounds=True)
    found = many(sandbox, 4000)
    drawn, answers = reference(sandbox, np.random.default_rng(1), 4000)
    for tokens, targets in ((found.tokens, found.targets), (drawn, answers)):
        begins, ends = tokens[:, :-1:2], tokens[:, 1::2]
        assert (np.sort(begins[:, 3:]) == np.sort(ends[:, :3])).all()  # all second steps go on from all first ones
        first = (begins == tokens[:, -1:]).argmax(axis=1)
        second = (ends == targets[:, -1:]).argmax(axis=1)
        assert (begins[np.arange(4000), second] == ends[np.arange(4000), first]).all()
        pairs, times = np.unique(np.stack([first, second]), axis=1, return_counts=True)
        assert pairs.T.tolist() == [[a, b] for a in range(3) for b in range(3, 6)]
        assert chisquare(times).pvalue > 1e-6
    assert chisquare(np.unique(found.latent["steps"], axis=0, return_counts=True)[1]).pvalue > 1e-6


def test_the_rows_of_before_are_the_same_as_ever() -> None:
    mixed = many(MultiHop(chains=2, hops=2, names=6), 3000)
    assert (np.diff(mixed.latent["steps"], axis=1) > 0).mean() == pytest.approx(0.5, abs=0.05)
    assert mixed.tokens[:2].tolist() == [[2, 0, 0, 5, 4, 1, 1, 3, 4], [3, 4, 5, 0, 2, 5, 1, 3, 2]]


def test_all_that_is_wrong_is_said() -> None:
    with pytest.raises(
        InputError,
        match="chains must be a whole number of at least 1, not 0; hops must be a whole number of at least 1, not 0",
    ):
        MultiHop(chains=0, hops=0)
    with pytest.raises(InputError, match=r"names must be at least chains \* \(hops \+ 1\) = 15, not 14"):
        MultiHop(names=14)
