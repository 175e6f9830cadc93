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
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Row

NO_ROW = Row(None, None, None, {})  # the probe does not look at it
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
