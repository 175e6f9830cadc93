"""Circuit finders: patched runs in JAX against NumPy, gradients against differences, and what each method finds."""

from __future__ import annotations

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

from cases import each
from vitrify.learn.landscape import float64
from vitrify.mechanisms.circuit import patched
from vitrify.mechanisms.differentiable import CutRuns, contrast, in_jax
from vitrify.mechanisms.methods import METHODS
from vitrify.mechanisms.puzzle import Puzzle, answer_json, puzzle
from vitrify.mechanisms.score import Result, score

pytestmark = [pytest.mark.jax, pytest.mark.long]


@cache
def made(name: str, rendering: str = "plain") -> Puzzle:
    return puzzle(name, rendering=rendering)  # type: ignore[arg-type]


def auc(name: str, method: str, rendering: str = "plain") -> float:
    one = made(name, rendering)
    found = score(answer_json(one), Result(frozenset(), METHODS[method](one.judge))).auc
    assert found is not None
    return found


@each("name", ["induction", "experts-xor", "estimate-norm", "increment-hybrid"])
def test_patched_runs_in_jax_are_those_of_numpy(name: str) -> None:
    judge, rng = made(name).judge, np.random.default_rng(0)
    part, donors, _ = judge.ready[0]
    tokens, edges = part.tokens[part.pairs[:, 0]], judge.wired.edges
    with float64():
        runs, arrays = CutRuns(judge.wired, edges), in_jax(judge.wired)
        for _ in range(3):
            shares = (rng.random(len(edges)) < 0.5).astype(float)
            got = runs(arrays, tokens, jnp.asarray(shares), donors)[0]
            cut = [edge for edge, share in zip(edges, shares, strict=True) if share]
            np.testing.assert_allclose(np.asarray(got), patched(judge.wired, tokens, cut, donors), atol=1e-9)


def test_attribution_patching_is_the_slope_of_a_small_patch() -> None:
    judge = made("induction", "softened").judge
    edges, step, total = judge.wired.edges, 1e-5, np.zeros(len(judge.wired.edges))
    scores = METHODS["eap"](judge)
    count = sum(len(part.pairs) for part in judge.domain)
    with float64():
        runs, arrays = CutRuns(judge.wired, edges), in_jax(judge.wired)
        for part, donors, clean in judge.ready:
            tokens = part.tokens[part.pairs[:, 0]]
            weight = contrast(judge.output, clean) * part.mask[part.pairs[:, 0]][..., None]
            for number in range(len(edges)):
                shares = step * np.eye(len(edges))[number]
                ends = [np.asarray(runs(arrays, tokens, jnp.asarray(sign * shares), donors)[0]) for sign in (1, -1)]
                total[number] += np.abs(((ends[0] - ends[1]) * weight).sum(axis=(1, 2)) / (2 * step)).sum()
    np.testing.assert_allclose([scores[edge] for edge in edges], total / count, rtol=1e-3, atol=1e-6)


@each("method", ["path-patching", "eap", "eap-ig", "acdc", "edge-pruning"])
def test_methods_of_edges_find_the_induction_circuit(method: str) -> None:
    assert auc("induction", method) == 1.0


def test_methods_of_nodes_and_random_numbers_do_not() -> None:
    for method in ("random", "activation-patching", "hisp"):
        assert auc("induction", method) < 0.9


def test_a_softened_network_is_harder_for_attribution_patching() -> None:
    assert auc("induction", "eap", "softened") < 0.9 < auc("induction", "eap")


def test_every_method_scores_every_edge() -> None:
    judge = made("majority").judge
    for name, method in METHODS.items():
        scores = method(judge)
        assert set(scores) == set(judge.wired.edges), name
        assert np.isfinite(list(scores.values())).all(), name
