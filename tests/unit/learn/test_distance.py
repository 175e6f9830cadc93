"""The distance of nets: nothing for what computes the same, more for more noise, and a probe that follows a curve."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from nets import LETTERS
from vitrify.errors import InputError
from vitrify.learn.distance import distance, distances, probe
from vitrify.net.architecture import Output
from vitrify.net.conv import Convolution, Convolutional
from vitrify.net.experts import Expert
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Example

NO_ROW = Example(None, None, None, {})  # the probe does not look at it
HEADS = (Head(), Head(), Head("linear"), Head(window=3), Head(rotary=10.0), Head())


def net(**changes: Any) -> Transformer:
    block = Block(HEADS, d_head=4, d_value=3, units=7, d_out=5)
    given: dict[str, Any] = {"norm": True, "eps": 1e-5, **changes}
    return Transformer(
        LETTERS, Output("lm", ("a", "b", "</s>")), 6, d_model=5, blocks=(block, Block(units=4, d_out=5)), **given
    )


def drawn(made: Transformer, seed: int = 0) -> Weights:
    rng = np.random.default_rng(seed)
    return Weights(made, {name: rng.normal(size=shape) for name, shape in made.shapes().items()})


def disguised(weights: Weights, seed: int) -> Weights:
    """The same function by other numbers: every symmetry at once, at random."""
    rng, made = np.random.default_rng(seed), weights.architecture
    found = {name: np.array(array) for name, array in weights.arrays.items()}
    part = "blocks.0.attn"
    for head, kind in enumerate(made.blocks[0].heads):
        turn = rng.normal(size=(4, 4))
        if kind.rotary:  # pairs may be turned and scaled, each by itself
            angle, size = rng.uniform(0, 6, 2), rng.uniform(0.5, 2, 2)
            cos, sin = np.diag(np.cos(angle)), np.diag(np.sin(angle))
            turn = np.block([[cos, sin], [-sin, cos]]) @ np.diag([*size, *size])
        back = np.linalg.inv(turn).T
        for letter, factor in (("Q", turn), ("K", back)):
            found[f"{part}.W_{letter}"][head] = found[f"{part}.W_{letter}"][head] @ factor
            found[f"{part}.b_{letter}"][head] = found[f"{part}.b_{letter}"][head] @ factor
        mixed = rng.normal(size=(3, 3))
        found[f"{part}.W_V"][head] = found[f"{part}.W_V"][head] @ mixed
        found[f"{part}.b_V"][head] = found[f"{part}.b_V"][head] @ mixed
        found[f"{part}.W_O"][head] = np.linalg.inv(mixed) @ found[f"{part}.W_O"][head]
        beta = rng.uniform(0.5, 2)  # a temperature may be in the queries
        found[f"{part}.beta"][head] *= beta
        found[f"{part}.W_Q"][head] /= beta
        found[f"{part}.b_Q"][head] /= beta
    found[f"{part}.b_rel"][3] += rng.normal()  # adds the same to all scores
    found[f"{part}.b_rel"][[0, 1, 2, 4, 5]] = rng.normal(size=(5, 3))  # heads without a window do not read it
    found[f"{part}.b_K"][0] += rng.normal(size=4)
    if made.residual == "add":
        order = [1, 5, 2, 3, 4, 0]
        found |= {name: array[order] for name, array in found.items() if name.startswith(part)}
    for block, units in ((0, 7), (1, 4)):
        mlp = f"blocks.{block}.mlp"
        order, scale = rng.permutation(units).tolist(), rng.uniform(0.1, 9, units)
        found[f"{mlp}.W_in"] = (found[f"{mlp}.W_in"] * scale)[:, order]
        found[f"{mlp}.b_in"] = (found[f"{mlp}.b_in"] * scale)[order]
        found[f"{mlp}.W_out"] = (found[f"{mlp}.W_out"] / scale[:, None])[order]
    if made.norm:
        behind = {
            "blocks.0.ln1": ["attn.W_Q", "attn.W_K", "attn.W_V"],
            "blocks.1.ln2": ["mlp.W_in"],
            "ln_final": ["W_U"],
        }
        for norm, readers in behind.items():
            size, shift = rng.uniform(0.5, 2, 5), rng.normal(size=5)
            for reader in readers:
                matrix = norm.replace("ln_final", "unembed.").replace("ln1", "").replace("ln2", "") + reader
                found[matrix.replace("W_", "b_")] -= shift @ found[matrix]
                found[matrix] /= size[:, None]
            found[f"{norm}.b"] = (found[f"{norm}.b"] + shift) * size
            found[f"{norm}.w"] *= size
        added, scale = rng.normal(size=4), found["blocks.1.ln2.w"]  # to numbers whose mean is 0
        found["blocks.1.mlp.W_in"] += added / scale[:, None]
        found["blocks.1.mlp.b_in"] -= (found["blocks.1.ln2.b"] / scale).sum() * added
    moved = rng.normal(size=5)
    found["embed.W_E"] += moved
    found["pos_embed.W_pos"] -= moved
    found["unembed.W_U"] += rng.normal(size=(len(found["unembed.W_U"]), 1))
    found["unembed.b_U"] += rng.normal()
    return Weights(made, found)


def answers(weights: Weights) -> Any:
    tokens = np.array([[0, 1, 2, 3, 1, 1, 2], [0, 3, 3, 2, 2, 1, 1]])
    found = np.asarray(weights.architecture.forward(weights.prepared, tokens))
    return found - found.mean(axis=-1, keepdims=True)


MADE = {"with norms": net(), "without": net(norm=False, eps=0.0)}
MADE["concatenating"] = net(norm=False, eps=0.0, residual="concatenate")


@pytest.mark.parametrize("name", MADE)
def test_what_computes_the_same_has_distance_nothing(name: str) -> None:
    weights = drawn(MADE[name])
    for seed in range(3):
        other = disguised(weights, seed)
        np.testing.assert_allclose(answers(other), answers(weights), atol=1e-8)  # it is a symmetry
        plain = [np.abs(other.arrays[key] - array).max() for key, array in weights.arrays.items()]
        assert min(plain) < 1 < max(plain)
        assert distance(other, weights) < 1e-9


@pytest.mark.parametrize("name", MADE)
def test_the_distance_grows_with_noise(name: str) -> None:
    weights, rng = drawn(MADE[name]), np.random.default_rng(1)
    noise = {key: rng.normal(size=array.shape) for key, array in weights.arrays.items()}

    def noisy(size: float) -> Weights:
        return replace(weights, arrays={key: array + size * noise[key] for key, array in weights.arrays.items()})

    found = [distance(noisy(size), weights) for size in (0.0, 1e-3, 1e-2, 0.1, 0.3)]
    assert found[0] == 0
    assert (np.diff(found) > 0).all()
    assert found[2] == pytest.approx(10 * found[1], rel=0.1)  # small noise is seen in proportion
    hidden = disguised(noisy(1e-2), 5)
    assert distance(hidden, weights) == pytest.approx(found[2], rel=1e-6)


def test_every_array_counts_and_a_changed_sign_is_seen() -> None:
    """Each array by itself moves the distance, but for what is read by nothing; relative to the part it is in."""
    weights = drawn(MADE["with norms"])
    for key, array in weights.arrays.items():
        assert distance(weights.with_array(key, 1.5 * array + 0.1), weights) > 1e-3, key
    flipped = {f"blocks.0.mlp.{key}": -weights.arrays[f"blocks.0.mlp.{key}"] for key in ("W_in", "b_in", "W_out")}
    assert distances(MADE["with norms"], {**weights.arrays, **flipped}, weights.arrays)["blocks.0.mlp"] > 0.5
    doubled = weights.with_array("blocks.1.mlp.W_out", 4 * weights.arrays["blocks.1.mlp.W_out"])
    parts = distances(MADE["with norms"], doubled.arrays, weights.arrays)
    assert [part for part, far in parts.items() if far > 1e-9] == ["blocks.1.mlp"]
    assert parts["blocks.1.mlp"] < 1.0  # units are balanced: both sides twice as long
    with pytest.raises(InputError, match="of the same architecture"):
        distance(weights, drawn(MADE["without"]))


def test_nothing_is_far_from_nothing() -> None:
    weights = drawn(MADE["without"])
    nothing = weights.map(np.zeros_like)
    assert distance(nothing, nothing) == 0
    assert distance(nothing, weights) == pytest.approx(1.0)
    assert distance(weights, nothing) == pytest.approx(1.0)


def test_a_probe_gives_the_distance_inside_a_compiled_program() -> None:
    weights = drawn(MADE["without"])
    other = weights.map(lambda array: np.float32(array + 0.01))
    found = jax.jit(jax.vmap(lambda a: probe(weights)(weights.architecture, a, NO_ROW, {})))(
        {key: np.stack([array, weights.arrays[key]]) for key, array in other.arrays.items()}
    )
    np.testing.assert_allclose(found, [distance(other, weights), 0.0], rtol=1e-4, atol=1e-6)


def convolutional() -> Weights[Any]:
    layers = (Convolution(4, (1, 2), (1, 2)), Convolution(5, (1, 2), (1, 2)))
    made = Convolutional(
        3, 1, 8, Output("class", ("x", "y")), layers, dense=(6,), pixels="symbols", symbols=LETTERS[:3]
    )
    rng = np.random.default_rng(0)
    return Weights(made, {name: rng.normal(size=shape) for name, shape in made.shapes().items()})


def rearranged(weights: Weights[Any], seed: int) -> Weights[Any]:
    """The same convolutional net with channels and units in another order and of other sizes."""
    rng = np.random.default_rng(seed)
    found = {name: np.array(array) for name, array in weights.arrays.items()}
    for layer, reader in (("conv.0", "conv.1.W"), ("conv.1", "dense.0.W_in"), ("dense.0", "unembed.W_U")):
        kernel, bias = (f"{layer}.W", f"{layer}.b") if layer.startswith("conv") else (f"{layer}.W_in", f"{layer}.b_in")
        size = len(found[bias])
        order, scale = rng.permutation(size), rng.uniform(0.2, 5, size)
        along = 0 if layer.startswith("conv") else 1
        shape = [size if axis == along else 1 for axis in range(found[kernel].ndim)]
        found[kernel] = np.take(found[kernel] * scale.reshape(shape), order, axis=along)
        found[bias] = (found[bias] * scale)[order]
        reads = 1 if reader.startswith("conv") else 0
        shape = [size if axis == reads else 1 for axis in range(found[reader].ndim)]
        found[reader] = np.take(found[reader] / scale.reshape(shape), order, axis=reads)
    return replace(weights, arrays=found)


@pytest.mark.parametrize("turned", [False, True])
def test_channels_may_stand_in_any_order_and_have_any_size(turned: bool) -> None:
    weights = convolutional()
    planes = np.random.default_rng(1).normal(size=(3, 3, 1, 8))
    for seed in range(3):
        other = rearranged(weights, seed)
        wanted, found = (made.architecture.forward(made.arrays, planes) for made in (weights, other))
        np.testing.assert_allclose(found, wanted, atol=1e-9)
        assert distance(other, weights, turned=turned) < 1e-7
        nearly = other.map(lambda array: array * 1.01 + 0.003)
        assert 1e-4 < distance(nearly, weights, turned=turned) < 0.1
    assert set(distances(weights.architecture, weights.arrays, weights.arrays)) == {
        *("conv.0", "conv.1", "dense.0", "unembed")
    }
    random = replace(weights, arrays=rearranged(convolutional(), 0).map(lambda a: np.roll(a, 1)).arrays)
    assert distance(random, weights, turned=turned) > 0.4


def test_channels_that_read_the_same_are_told_apart_by_their_readers() -> None:
    weights = convolutional()
    arrays = {name: np.array(array) for name, array in weights.arrays.items()}
    for name in ("conv.0.W", "conv.0.b", "conv.1.W", "conv.1.b"):
        arrays[name][1:4] = arrays[name][0]
    twins = replace(weights, arrays=arrays)
    assert max(distance(rearranged(twins, seed), twins) for seed in range(5)) < 1e-7


def test_units_of_experts_and_routers_may_be_permuted_and_scaled() -> None:
    pair = (Expert((0, 1, 2), 4, (3, 4)), Expert((1, 2), 3, (3,)))
    made = net(norm=False, eps=0.0)
    made = replace(made, blocks=(Block(HEADS, 4, 3, experts=pair, router=3),))
    weights, rng = drawn(made), np.random.default_rng(3)
    found = {name: np.array(array) for name, array in weights.arrays.items()}
    for part in ("experts.0", "experts.1", "router"):
        name = f"blocks.0.moe.{part}"
        units = len(found[f"{name}.b_in"])
        order, scale = rng.permutation(units), rng.uniform(0.2, 5, units)
        found[f"{name}.W_in"] = (found[f"{name}.W_in"] * scale)[:, order]
        found[f"{name}.b_in"] = (found[f"{name}.b_in"] * scale)[order]
        found[f"{name}.W_out"] = (found[f"{name}.W_out"] / scale[:, None])[order]
    found["blocks.0.moe.router.b_out"] += 2.0  # all experts alike
    other = Weights(made, found)
    np.testing.assert_allclose(answers(other), answers(weights), atol=1e-9)
    assert distance(other, weights) < 1e-9
    for key in ("experts.0.W_in", "experts.1.W_out", "router.W_in", "router.W_out", "experts.0.b_out"):
        name = f"blocks.0.moe.{key}"
        assert distance(other.with_array(name, np.sin(9 * found[name])), weights) > 1e-2, key


def test_an_angle_does_not_see_how_large_a_part_is() -> None:
    weights = drawn(MADE["without"])
    grown = weights.with_array("unembed.W_U", 3 * weights.arrays["unembed.W_U"])
    grown = grown.with_array("unembed.b_U", 3 * weights.arrays["unembed.b_U"])
    assert distance(grown, weights) > 0.5
    assert distance(grown, weights, turned=True) < 1e-7
    assert distance(weights.map(np.zeros_like), weights, turned=True) == 1.0
    parts = distances(weights.architecture, drawn(MADE["without"], 1).arrays, weights.arrays, turned=True)
    assert all(0.6 < part <= 1.0 for part in parts.values())
    plane = weights.arrays["blocks.1.mlp.b_out"]
    rest = {name: np.zeros_like(weights.arrays[f"blocks.1.mlp.{name}"]) for name in ("W_in", "b_in", "W_out")}
    flat = replace(weights, arrays={**weights.arrays, **{f"blocks.1.mlp.{name}": zero for name, zero in rest.items()}})
    normal = np.roll(plane, 1) - plane * (plane @ np.roll(plane, 1)) / (plane @ plane)
    mixed = flat.with_array("blocks.1.mlp.b_out", plane / np.linalg.norm(plane) + normal / np.linalg.norm(normal))
    found = distances(weights.architecture, mixed.arrays, flat.arrays, turned=True)["blocks.1.mlp"]
    assert found == pytest.approx(np.sqrt(0.5))  # 45 degrees
    against = flat.with_array("blocks.1.mlp.b_out", -plane)
    assert distances(weights.architecture, against.arrays, flat.arrays, turned=True)["blocks.1.mlp"] == 1.0
