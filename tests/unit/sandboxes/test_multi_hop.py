"""Chained facts: every row is chains in random order, the answer ends the chain, and guessing an end costs log K."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.stats import chisquare

from enumerated import many
from vitrify.errors import InputError
from vitrify.sandboxes.multi_hop import MultiHop, shuffled


@pytest.mark.parametrize(("chains", "hops", "names"), [(4, 2, 15), (3, 3, 12), (1, 1, 2)])
def test_rows_are_chains_and_the_answer_ends_one(chains: int, hops: int, names: int) -> None:
    sandbox = MultiHop(chains=chains, hops=hops, names=names)
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


def test_all_that_is_wrong_is_said() -> None:
    with pytest.raises(InputError, match="chains must be at least 1, not 0; hops must be at least 1, not 0"):
        MultiHop(chains=0, hops=0)
    with pytest.raises(InputError, match=r"names must be at least chains \* \(hops \+ 1\) = 15, not 14"):
        MultiHop(names=14)
