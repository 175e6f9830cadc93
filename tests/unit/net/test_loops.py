"""Blocks that run again with the same weights: against a net that has them several times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nets import mixed, random_net
from vitrify.constructions.connectivity import connectivity
from vitrify.errors import FolderError
from vitrify.kit import assemble
from vitrify.net.folder import load, save
from vitrify.net.inference import outputs, trace
from vitrify.net.weights import Weights
from vitrify.spec.computation.connectivity import Connectivity, adjacency


def unrolled(weights: Weights) -> Weights:
    """The same net with every turn of the loop as blocks of its own."""
    net = weights.architecture
    arrays = {name: array for name, array in weights.arrays.items() if not name.startswith("blocks.")}
    for turn in range(net.loops):
        for index in range(len(net.blocks)):
            into, prefix = f"blocks.{turn * len(net.blocks) + index}.", f"blocks.{index}."
            arrays |= {into + n.removeprefix(prefix): a for n, a in weights.arrays.items() if n.startswith(prefix)}
    return Weights(replace(net, blocks=net.blocks * net.loops, loops=1), arrays)


@pytest.mark.parametrize("loops", [1, 2, 4])
def test_a_loop_is_the_net_with_its_blocks_repeated(loops: int) -> None:
    weights = random_net(mixed(loops=loops), seed=loops)
    long = unrolled(weights)
    one, many = trace(weights, "abcab"), trace(long, "abcab")
    assert set(one.activations) == set(many.activations)
    assert all(np.array_equal(one.activations[name], many.activations[name]) for name in one.activations)
    assert weights.architecture.moments == long.architecture.moments
    assert weights.sizes.layers == 3
    assert weights.sizes.dense < long.sizes.dense or loops == 1
    assert weights.architecture.cost <= long.architecture.cost + 1e-9


def test_folders_keep_loops(tmp_path: Path) -> None:
    weights = random_net(mixed(loops=3), seed=0)
    save(weights, tmp_path / "net")
    assert load(tmp_path / "net").architecture == weights.architecture
    assert load(tmp_path / "net").digest == weights.digest != random_net(mixed(loops=2), seed=0).digest


@pytest.mark.parametrize("changes", [{"loops": 0}, {"loops": 2, "residual": "concatenate"}])
def test_impossible_loops_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(FolderError, match="run at least once"):
        mixed(**changes)


def test_rows_and_loops_run_on_jax_too() -> None:
    weights = assemble(connectivity(Connectivity.of(6)))
    rows = adjacency(Connectivity.of(6).nodes, [("1", "2"), ("2", "5"), ("5", "6"), ("3", "4")])
    with jax.enable_x64(True):
        arrays = {name: jnp.asarray(array) for name, array in weights.arrays.items()}
        found = jax.jit(weights.architecture.forward)(arrays, jnp.asarray(rows[None]))
    assert np.allclose(found, outputs(weights, rows[None]), rtol=0, atol=1e-12)
