"""Rows with causal structure: graphs, kernels integrated out by quadrature, and soft answers."""

from __future__ import annotations

from itertools import product
from typing import Any

import jax
import numpy as np
import pytest
from scipy.stats import chisquare

import at_once
from cases import each
from enumerated import many, said, words
from vitrify.errors import InputError
from vitrify.sandboxes.catalogue import examples
from vitrify.sandboxes.causal_graph import CausalGraph, Family, parents_of
from vitrify.sandboxes.kit.draws import _descended, _doubled


@each(("graph", "length"), [("chain", 6), ("icl", 6), ("tree", 6), ("two", 7)])
def test_the_optimum_is_the_mean_over_all_kernels(graph: Family, length: int) -> None:
    """With two symbols and alpha 1 rows are polynomials in uniform numbers, so few nodes integrate them exactly."""
    sandbox = CausalGraph(graph=graph, states=2, length=length, task=2)
    ways = sandbox.asking
    node, share = np.polynomial.legendre.leggauss(5)
    ones = np.array(list(product((node + 1) / 2, repeat=2**ways)))  # [kernel, line]: the probability of a 1
    weight = np.array(list(product(share / 2, repeat=2**ways))).prod(axis=1)
    tokens = words(2, length)
    found = said(sandbox, sandbox.optimal, tokens)
    for word, row in zip(tokens, found, strict=True):
        p = weight.copy()
        for i, above in enumerate(sandbox.parents.tolist()):
            if min(above) >= 0:
                one = ones[:, int("".join(str(word[j]) for j in above), 2)]
                p *= one if word[i] else 1 - one
        answer = (p @ ones[:, int("".join(map(str, word[-ways:])), 2)]) / p.sum()
        assert row[-1, 1] == pytest.approx(answer, abs=1e-6), word


def test_graphs_are_as_stated() -> None:
    assert parents_of("chain", 4, 0).tolist() == [[-1], [0], [1], [2]]
    assert parents_of("icl", 5, 0).tolist() == [[-1], [0], [-1], [2], [-1]]
    assert parents_of("two", 6, 0).tolist() == [[-1, -1], [-1, -1], [0, 1], [1, 2], [1, 3], [2, 4]]
    trees = np.concatenate([parents_of("tree", 4, task) for task in range(400)], axis=1)
    assert (trees[0] == -1).all()
    for i, line in enumerate(trees[1:], start=1):
        assert chisquare(np.bincount(line + 1, minlength=i + 1)).pvalue > 1e-6
        assert line.max() < i


@pytest.mark.parametrize("graph", ["tree", "two"])
def test_symbols_come_from_the_kernel_of_the_row_and_soft_is_its_line(graph: Family) -> None:
    sandbox = CausalGraph(graph=graph, states=3, length=6, task=1)
    found = many(sandbox, 4000)
    kernel, asked = found.latent["kernel"], found.tokens[:, -sandbox.asking :]
    each = np.arange(4000)
    assert found.soft is not None
    assert np.allclose(found.soft[:, -1], kernel[(each, *asked.T)], atol=1e-6)
    assert np.allclose(found.soft.sum(axis=2), 1, atol=1e-5)
    assert (found.latent["parents"] == sandbox.parents).all()
    lines = [(found.soft[:, -1], found.targets[:, -1])]
    for i, above in enumerate(sandbox.parents.tolist()):
        p = kernel[(each, *(found.tokens[:, j] for j in above))] if min(above) >= 0 else np.full((4000, 3), 1 / 3)
        lines.append((p, found.tokens[:, i]))
    for p, symbol in lines:
        seen, expected = np.eye(3)[symbol], p
        error = (seen - expected).sum(axis=0) / np.sqrt((expected * (1 - expected)).sum(axis=0))
        assert np.abs(error).max() < 5
        hit = p[each, symbol]  # the mean of p(x) is that of the sum of squares
        gap = hit - (p**2).sum(axis=1)
        assert abs(gap.mean()) <= 5 * gap.std() / np.sqrt(4000) + 1e-12


@pytest.mark.slow
def test_trees_of_one_program_are_those_of_their_own_tasks() -> None:
    both = CausalGraph(length=7, task=2, trees=3)
    found = jax.jit(jax.vmap(lambda tree: examples(both.at({"tree": tree}), 0, "test", 0, 32)))(np.arange(3.0))
    same = jax.tree.map(lambda leaf: leaf[1], found)
    answers = jax.jit(jax.vmap(lambda tree: jax.vmap(both.at({"tree": tree}).optimal)(same)))(np.arange(3.0))
    for tree in range(3):
        alone = CausalGraph(length=7, task=2 + tree)
        assert np.array_equal(found.tokens[tree], at_once.rows(alone, 0, "test", 0, 32).tokens)
        assert np.array_equal(found.latent["parents"][tree][0], alone.parents)
        assert np.allclose(answers[tree], jax.jit(jax.vmap(alone.optimal))(same), atol=1e-6)


@pytest.mark.parametrize("task", [0, 1, 2])
def test_information_is_that_of_all_words(task: int) -> None:
    sandbox = CausalGraph(length=6, task=task)
    kernels = np.random.default_rng(task).dirichlet(np.ones(3), (2, 3))
    every, parents = np.array(words(3, 5)), sandbox.parents[:, 0]
    chi, passed = np.zeros((5, 5)), np.zeros((5, 5))
    for kernel in kernels:
        p = np.ones(len(every))
        for i, above in enumerate(parents):
            p *= kernel[every[:, above], every[:, i]] if above >= 0 else 1 / 3
        both = np.zeros((5, 5, 3, 3))
        for j, i in product(range(5), repeat=2):
            np.add.at(both[j, i], (every[:, j], every[:, i]), p)
        law = np.array([both[i, i].diagonal() for i in range(5)])
        apart = law[:, None, :, None] * law[None, :, None, :]
        chi += ((both**2 / apart).sum(axis=(2, 3)) - 1) / 2
        passed += (kernel * (both - apart) / law.mean(axis=0)).sum(axis=(2, 3)) / 2
    assert np.allclose(sandbox.information(kernels), chi, atol=1e-12)
    assert np.allclose(sandbox.passed_on(kernels), passed, atol=1e-12)
    with pytest.raises(InputError, match="not where positions have two parents"):
        CausalGraph(graph="two", length=6).information(kernels)


def test_other_predictors_count_what_they_say() -> None:
    sandbox = CausalGraph(graph="icl", states=2, length=5, alpha=1.0)
    found = {name: said(sandbox, p, [(0, 0, 1, 0, 0)])[0, -1] for name, p in sandbox.predictors().items()}
    assert np.allclose(found["uniform"], [1 / 2, 1 / 2])
    assert np.allclose(found["unigram"], [4 / 6, 2 / 6])
    assert np.allclose(found["neighbors"], [2 / 4, 2 / 4])
    assert np.allclose(said(sandbox, sandbox.optimal, [(0, 0, 1, 0, 0)])[0, -1], [2 / 3, 1 / 3])


def test_the_way_of_a_gpu_leads_to_the_same_rows() -> None:
    rng = np.random.default_rng(0)
    bounds = np.sort(rng.random((4, 2)), axis=1)
    for length in (1, 2, 7, 8, 16):
        parents, u = parents_of("tree", length, 1), rng.random(length)
        one, two = (np.asarray(jax.jit(way)(bounds, parents, u)) for way in (_descended, _doubled))
        assert np.array_equal(one, two)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"trees": 2, "tree": 2}, "tree must be one of 2 trees, from 0, not 2"),
        (
            {"states": 1, "length": 2, "alpha": -1, "task": -1},
            "states must be .* at least 2, not 1; length must be .* at least 3, not 2; alpha must be .*, not -1; "
            "task must be a whole number of at least 0, not -1",
        ),
        ({"graph": "two", "length": 3}, "length must be at least 4 where graph=two, not 3"),
    ],
)
def test_all_that_is_wrong_is_said(wrong: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        CausalGraph(**wrong)
