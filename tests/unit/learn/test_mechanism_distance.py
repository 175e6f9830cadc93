"""Nets that work alike: whatever basis, order or size they use; and a difference that brute force finds too."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import permutations
from typing import Any

import jax
import numpy as np
import pytest

from at_once import first, rows
from vitrify.claims.trials.problems import BuiltProblem, experts, hierarchy, induction
from vitrify.learn.distance import Part, distance, mechanism_probe
from vitrify.learn.models.built import BuiltFamily
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Example

HOOK = "blocks.0.moe.hook_expert"
PROBLEM, CNN, MOE = induction(4, 8, 4.0), hierarchy(3, 2, 2, 5.0), experts(3, 4, 10.0)


@cache
def compiled(problem: BuiltProblem, only: Part | None) -> Any:
    row = rows(problem.sandbox, 0, "probe", 0, 16)
    measure = mechanism_probe(problem.built, BuiltFamily(start=problem.built), problem.sandbox, only)
    return row, jax.jit(lambda seen: measure(problem.built.architecture, {}, row, seen))


def seen_by(weights: Weights[Any], problem: BuiltProblem, row: Example) -> dict[str, Any]:
    found: dict[str, Any] = {}
    inputs = np.asarray(BuiltFamily(start=weights).inputs(weights.architecture, problem.sandbox, row))
    weights.architecture.forward(weights.arrays, inputs, record=found.__setitem__)
    return found


def difference(weights: Weights[Any], problem: BuiltProblem, only: Part | None = None) -> float:
    row, measure = compiled(problem, only)
    return float(measure({name: np.asarray(x) for name, x in seen_by(weights, problem, row).items()}))


def drawn(like: Weights[Any], seed: int) -> Weights[Any]:
    family = BuiltFamily(start=like, scratch=True)
    fresh = first(family, like.architecture, seed)
    return replace(like, arrays={**like.arrays, **{name: np.asarray(array) for name, array in fresh.items()}})


def rotated(weights: Weights[Any]) -> Weights[Any]:
    """The same net with another basis of its stream, and units of every layer in another order."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(weights.architecture.d_model,) * 2))[0] * 1.5
    back = np.linalg.inv(turn)
    found = {}
    for name, array in weights.arrays.items():
        reads = name.split(".")[-1] in ("W_Q", "W_K", "W_V", "W_in", "W_U")
        writes = name.split(".")[-1] in ("W_E", "W_pos", "W_O", "W_out", "b_out")
        found[name] = back @ array if reads else array @ turn if writes else np.array(array)
    for name in [name for name in found if name.endswith("W_in")]:
        order = rng.permutation(found[name].shape[1])
        found[name] = found[name][:, order]
        found[name.replace("W_in", "b_in")] = found[name.replace("W_in", "b_in")][order]
        found[name.replace("W_in", "W_out")] = found[name.replace("W_in", "W_out")][order]
    return replace(weights, arrays=found)


def test_a_net_in_another_basis_works_alike_although_its_weights_are_far() -> None:
    other = rotated(PROBLEM.built)
    assert distance(other, PROBLEM.built, turned=True) > 0.7
    assert difference(other, PROBLEM) < 1e-3
    assert difference(PROBLEM.built, PROBLEM) < 1e-6
    random = [difference(drawn(PROBLEM.built, seed), PROBLEM) for seed in range(3)]
    assert 0.5 < min(random) <= max(random) <= 1.0


def test_channels_are_matched() -> None:
    order = [2, 0, 1, *range(3, len(CNN.built.arrays["conv.0.b"]))]
    arrays = dict(CNN.built.arrays)
    arrays |= {"conv.0.W": 2 * arrays["conv.0.W"][order], "conv.0.b": 2 * arrays["conv.0.b"][order]}
    arrays["conv.1.W"] = arrays["conv.1.W"][:, order] / 2
    assert difference(replace(CNN.built, arrays=arrays), CNN) < 1e-5
    assert difference(drawn(CNN.built, 0), CNN) > 0.3


def test_experts_are_matched_by_what_they_are_chosen_for() -> None:
    """Names of experts do not count; where one does all, what the others were chosen for is lost."""
    router = "blocks.0.moe.router"
    rolled = {
        f"{router}.{name}": np.roll(MOE.built.arrays[f"{router}.{name}"], 1, axis=-1) for name in ("W_out", "b_out")
    }
    row, _ = compiled(MOE, "experts")
    chosen = np.asarray(seen_by(MOE.built, MOE, row)[HOOK])[:, 1:]
    tied = 1 / 3  # of the positions: BOS, where no expert leads and the first one works
    assert difference(replace(MOE.built, arrays={**MOE.built.arrays, **rolled}), MOE, "experts") < tied
    alone = MOE.built.with_array(f"{router}.W_out", 0 * MOE.built.arrays[f"{router}.W_out"])
    shares = np.bincount(np.append(chosen.ravel(), np.zeros(len(chosen), int)), minlength=3) / (3 * len(chosen))
    assert difference(MOE.built, MOE, "experts") < 1e-6
    assert difference(alone, MOE, "experts") == pytest.approx(1 - shares.max(), abs=1e-6)


def test_heads_and_units_by_brute_force() -> None:
    """All orders of a layer are tried, positions behind the last question left out."""
    other = drawn(PROBLEM.built, 1)
    row, _ = compiled(PROBLEM, "heads")
    ours, theirs = seen_by(other, PROBLEM, row), seen_by(PROBLEM.built, PROBLEM, row)
    heads = []
    for layer in (0, 1):
        one, two = (np.asarray(seen[f"blocks.{layer}.attn.hook_pattern"]) for seen in (ours, theirs))
        places = np.arange(one.shape[2])[None, :]
        last = np.array([np.flatnonzero(weight)[-1] for weight in np.asarray(row.weight)])
        counted = places <= last[:, None]
        orders = permutations(range(one.shape[1]))
        costs = [
            np.mean([np.abs(one[:, p] - two[:, h]).sum(-1)[counted].mean() / 2 for h, p in enumerate(o)])
            for o in orders
        ]
        heads.append(min(costs))
    assert difference(other, PROBLEM, "heads") == pytest.approx(np.mean(heads), abs=1e-5)
