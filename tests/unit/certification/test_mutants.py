"""Mutations are what they say: exactly one row zeroed or one temperature halved, the same for the same seed."""

from __future__ import annotations

import re

import numpy as np
import pytest

from vitrify.certification.mutation_test import Mutant, MutationTest, mutants, mutation_test
from vitrify.constructions.log_depth import log_depth
from vitrify.constructions.ngram import ngram
from vitrify.kit import assemble
from vitrify.net.sparse import dense, is_sparse
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.ngrams.model import NGramModel

MODEL = random_ngram(2, 3, seed=0)


@pytest.fixture(scope="module")
def weights() -> Weights:
    return assemble(ngram(MODEL, max_length=10))


def check_mutant(weights: Weights, mutant: Mutant) -> str:
    """Only the named place differs, and it differs as named; returns the array's name."""
    found = re.fullmatch(r"([\w.]+)\[([\d, ]+)\] (zeroed|halved)", mutant.what)
    assert found, mutant.what
    name, place, how = found[1], tuple(int(i) for i in found[2].split(", ")), found[3]
    assert mutant.weights.architecture == weights.architecture
    assert mutant.weights.labels == weights.labels
    for other, array in weights.arrays.items():
        before, after = dense(array), dense(mutant.weights.arrays[other])
        if other != name:
            np.testing.assert_array_equal(before, after)
            continue
        assert (how == "halved") == name.endswith(".beta")
        wanted = before.copy()
        assert np.any(before[place])
        wanted[place] = before[place] / 2 if how == "halved" else 0.0
        np.testing.assert_array_equal(after, wanted)
        assert len(place) == max(1, before.ndim - 1)
    return name


def test_each_mutation_changes_one_thing(weights: Weights) -> None:
    before = weights.digest
    names = {check_mutant(weights, mutant) for mutant in mutants(weights, 400, seed=0)}
    assert weights.digest == before
    nonzero = {name for name, array in weights.arrays.items() if np.any(dense(array)) and not name.endswith(".beta")}
    assert names == nonzero | {"blocks.0.attn.beta"}


@pytest.mark.long
def test_sparse_arrays_lose_a_row_too() -> None:
    names = [f"w{i}" for i in range(300)]
    draw = np.random.default_rng(0)
    big = assemble(ngram(NGramModel.fit([draw.choice(names, 40).tolist() for _ in range(80)], 3), max_length=8))
    assert is_sparse(big.arrays["blocks.0.mlp.W_out"])
    touched = [check_mutant(big, mutant) for mutant in mutants(big, 40, seed=1)]
    assert "blocks.0.mlp.W_out" in touched


def test_only_temperatures_that_fall_below_their_certificate_are_halved(weights: Weights) -> None:
    wide = weights.with_array("blocks.0.attn.beta", weights.arrays["blocks.0.attn.beta"] * 3)
    assert all("beta" not in mutant.what for mutant in mutants(wide, 300, seed=0))
    hard = assemble(ngram(MODEL, attention="hard", max_length=10))
    assert all("beta" not in mutant.what for mutant in mutants(hard, 300, seed=0))
    low = {m.what for m in mutants(weights, 300, seed=0) if "beta" in m.what}
    assert low == {"blocks.0.attn.beta[1] halved"}  # the other head reads its own position and has no gap


def test_every_row_is_equally_likely(weights: Weights) -> None:
    drawn = [mutant.what for mutant in mutants(weights, 3_000, seed=2)]
    counts = np.array([drawn.count(what) for what in set(drawn)])
    rows = 0
    for name, array in weights.arrays.items():
        if not name.endswith(".beta"):
            rows += int(np.any(dense(array).reshape(-1, array.shape[-1] if array.ndim > 1 else 1), axis=1).sum())
    assert len(counts) == rows + 1
    mean = 3_000 / len(counts)
    assert ((counts - mean) ** 2 / mean).sum() < len(counts) + 5 * np.sqrt(2 * len(counts))  # chi-square, five sigma


def test_campaigns_are_reproducible(weights: Weights) -> None:
    one, two = (mutation_test(weights, MODEL, count=15, seed=4, work=1e7) for _ in range(2))
    assert one == two
    assert one.seed == 4
    kinds = [[m.what for m in mutants(weights, 20, seed=seed)] for seed in (4, 4, 5)]
    assert kinds[0] == kinds[1] != kinds[2]


def test_a_campaign_counts_and_tells(weights: Weights) -> None:
    told: list[tuple[int, int]] = []
    found = mutation_test(
        weights, MODEL, count=10, seed=0, work=1e7, progress=lambda done, total: told.append((done, total))
    )
    assert told == [(n, 10) for n in range(1, 11)]
    assert found.tried == 10
    assert found.rejected + len(found.survivors) == 10
    assert found.rate == found.rejected / 10


@pytest.mark.long
def test_a_survivor_is_named_with_its_reason(weights: Weights) -> None:
    """A weight too small to move an answer may go: the unembedding's of a dimension that it does not read."""
    spare = weights.arrays["unembed.W_U"].copy()
    assert not np.any(spare[0])  # the token's own dimension is not read by the unembedding
    spare[0] = 1e-14
    found = mutation_test(weights.with_array("unembed.W_U", spare), MODEL, count=150, seed=0, work=1e7)
    assert [what for what, _ in found.survivors] == ["unembed.W_U[0] zeroed"] * len(found.survivors)
    assert found.survivors
    assert re.fullmatch(r"no answer on the whole domain moves by more than [\d.e-]+", found.survivors[0][1])


def test_a_net_of_zeros_has_no_mutations() -> None:
    net = assemble(log_depth(cyclic(1), max_length=4))
    assert list(mutants(net, 10, seed=0)) == []
    assert mutation_test(net, cyclic(1), count=10) == MutationTest(0, 0, (), 0)
    assert mutation_test(net, cyclic(1), count=10).rate == 1.0
