"""Blocks that run again with the same weights: against a net that has them several times."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nets import mixed, random_net
from vitrify.constructions.connectivity import connectivity
from vitrify.constructions.looped import looped
from vitrify.errors import FolderError
from vitrify.kit import assemble
from vitrify.net.folder import load, save
from vitrify.net.inference import outputs, trace
from vitrify.net.labels import label_problems
from vitrify.net.unrolled import unrolled
from vitrify.spec.automata.families import symmetric_group
from vitrify.spec.computation.connectivity import Connectivity, adjacency


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


def test_labels_of_a_loop_name_each_round() -> None:
    weights = assemble(looped(symmetric_group(3), max_length=7))
    long = unrolled(weights)
    assert label_problems(long.labels, long.architecture) == []
    assert [head.block for head in long.labels.heads] == [0, 1, 2]
    labels = {space.name: (space.born, space.dies) for space in long.labels.spaces}
    assert labels["map"] == (0, 1)
    assert labels["index"] == (0, 6)
    assert labels["older map (round 2)"] == (3, 3)
    assert [labels[f"map of twice as many letters (round {r})"] for r in (1, 2, 3)] == [(2, 3), (4, 5), (6, 6)]
    one, many = trace(weights, ["(0,1)"] * 7), trace(long, ["(0,1)"] * 7)
    assert np.array_equal(one.activations["blocks.2.hook_resid_post"], many.activations["blocks.2.hook_resid_post"])
    assert many.read("twice the distance (round 2)")[-1] == 4
    assert unrolled(long) is long


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
