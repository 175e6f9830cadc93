"""Recurrent nets: the forward pass against a naive one, on NumPy and JAX; saved, traced, certified like any other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

from nets import LETTERS
from oracles.naive_recurrent import logits as naive
from vitrify.certify import campaign, certify
from vitrify.errors import InputError
from vitrify.net import Ledger, Weights, encode, load, logits, save, trace
from vitrify.net.architecture import Output, from_json, to_json
from vitrify.net.card import card
from vitrify.net.labels import Labels, SpaceLabel
from vitrify.net.recurrent import Activation, Recurrent
from vitrify.net.run import batch_of
from vitrify.net.spaces import OneHot
from vitrify.net.sparse import OnRows, is_sparse
from vitrify.spec.automata import cyclic

ACTIVATIONS: tuple[Activation, ...] = ("linear", "relu")
SEQUENCES = [[1, 2, 3, 1, 1, 2], [3], [], [2, 2, 1]]


def net(activation: Activation = "linear", **changes: Any) -> Recurrent:
    made = Recurrent(LETTERS, Output("lm", ("a", "</s>")), 7, d_embed=3, state=5, units=6, d_out=4, pads=2)
    return replace(made, activation=activation, **changes)


def random_net(architecture: Recurrent, seed: int = 0) -> Weights[Recurrent]:
    rng = np.random.default_rng(seed)
    arrays = {name: rng.normal(scale=0.7, size=shape) for name, shape in architecture.shapes().items()}
    return Weights(architecture, arrays)


def ring(letters: int) -> Weights[Recurrent]:
    """Counts modulo a number: the state is the one-hot of the count, and relu makes the sum of both a conjunction."""
    spec = cyclic(letters)
    size, symbols = letters, len(spec.alphabet)
    architecture = Recurrent(
        ("<s>", *spec.alphabet),
        Output("recogniser", spec.states, accepting=spec.accepting_states),
        max_length=20,
        d_embed=symbols + 1,
        state=symbols * size,
        units=size,
        d_out=size,
        activation="relu",
        name="ring",
    )
    arrays: dict[str, Any] = {name: np.zeros(shape) for name, shape in architecture.shapes().items()}
    # The block of letter a holds relu(old count - 1 + [letter is a]), with the blocks of all letters added up as old.
    arrays["embed.W_E"] = np.eye(symbols + 1)
    table = np.array(spec.transitions)
    for block in range(symbols):
        for old in range(size):
            for letter in range(symbols):
                arrays["blocks.0.rec.W_A"][block * size + old, letter * size + table[old, letter]] = 1.0
        arrays["blocks.0.rec.W_B"][:, block * size : (block + 1) * size] = -1.0
        arrays["blocks.0.rec.W_B"][block + 1, block * size : (block + 1) * size] = 0.0
        arrays["blocks.0.mlp.W_in"][block * size : (block + 1) * size] = np.eye(size)
    arrays["blocks.0.rec.W_B"][0] = 0.0
    arrays["blocks.0.rec.W_B"][0, spec.initial] = 1.0
    arrays["blocks.0.mlp.W_out"] = arrays["unembed.W_U"] = np.eye(size)
    count = SpaceLabel("count", OneHot(tuple(spec.states)), tuple(range(size)), 2, 2)
    return Weights(architecture, arrays, Labels((count,)))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_forward_pass_is_the_naive_one(activation: Activation) -> None:
    weights = random_net(net(activation))
    for sequence, rows in zip(SEQUENCES, logits(weights, SEQUENCES), strict=True):
        wanted = naive(weights.architecture, weights.arrays, [0, 0, *sequence])[1:]
        np.testing.assert_allclose(rows, wanted, rtol=1e-12, atol=1e-12)


def test_a_large_sparse_transition_is_multiplied_sparsely() -> None:
    architecture = net(state=1_100)
    weights = random_net(architecture)
    full = weights.arrays["blocks.0.rec.W_A"] * (np.random.default_rng(1).random((1_100, 1_100)) < 0.001)
    sparse = weights.with_array("blocks.0.rec.W_A", csr_array(full))
    assert is_sparse(sparse.prepared["blocks.0.rec.W_A"])
    few = weights.arrays["blocks.0.rec.W_A"] * (np.arange(1_100)[:, None] < 9)  # and one with few rows on these alone
    assert isinstance(weights.with_array("blocks.0.rec.W_A", few).prepared["blocks.0.rec.W_A"], OnRows)
    for one, two in zip(
        logits(sparse, SEQUENCES), logits(weights.with_array("blocks.0.rec.W_A", full), SEQUENCES), strict=True
    ):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_jax_gives_the_same_numbers_and_slopes(activation: Activation) -> None:
    architecture = net(activation)
    weights = random_net(architecture)
    tokens, _ = batch_of(architecture, SEQUENCES)
    seen: dict[str, Any] = {}
    wanted = architecture.forward(weights.arrays, tokens, record=seen.__setitem__)
    with jax.enable_x64(True):
        arrays = {name: jnp.asarray(array) for name, array in weights.arrays.items()}
        compiled = jax.jit(Recurrent.forward, static_argnums=0)
        got = compiled(architecture, arrays, jnp.asarray(tokens))
        seen_by_jax: dict[str, Any] = {}
        architecture.forward(arrays, jnp.asarray(tokens), record=seen_by_jax.__setitem__)
        slopes = jax.grad(lambda arrays: compiled(architecture, arrays, jnp.asarray(tokens)).sum())(arrays)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
    assert list(seen) == list(seen_by_jax)
    for name, value in seen.items():
        np.testing.assert_allclose(seen_by_jax[name], value, rtol=1e-12, atol=1e-12)
    toward = random_net(architecture, seed=1).arrays["blocks.0.rec.W_A"]
    ahead, behind = (
        architecture.forward(
            weights.with_array("blocks.0.rec.W_A", weights.arrays["blocks.0.rec.W_A"] + step * toward).arrays, tokens
        ).sum()
        for step in (1e-6, -1e-6)
    )
    assert (ahead - behind) / 2e-6 == pytest.approx(
        float((np.asarray(slopes["blocks.0.rec.W_A"]) * toward).sum()), rel=1e-5
    )


def test_single_precision_stays_single() -> None:
    weights = random_net(net("relu")).map(lambda array: array.astype(np.float32))
    tokens, _ = batch_of(weights.architecture, SEQUENCES)
    assert weights.architecture.forward(weights.arrays, tokens).dtype == np.float32


def test_what_comes_later_changes_nothing_before_it() -> None:
    weights = random_net(net())
    one, two = logits(weights, [[1, 2, 3, 1], [1, 2, 1, 3]])
    np.testing.assert_array_equal(one[:3], two[:3])
    assert (one[3:] != two[3:]).any()


def test_shapes_and_sizes_by_hand() -> None:
    assert net().shapes() == {
        "embed.W_E": (4, 3),
        "blocks.0.rec.W_A": (5, 5),
        "blocks.0.rec.W_B": (3, 5),
        "blocks.0.mlp.W_in": (5, 6),
        "blocks.0.mlp.b_in": (6,),
        "blocks.0.mlp.W_out": (6, 4),
        "blocks.0.mlp.b_out": (4,),
        "unembed.W_U": (4, 2),
        "unembed.b_U": (2,),
    }
    size = Ledger.of(random_net(net()))
    assert (size.layers, size.heads, size.attention_layers, size.d_model, size.units) == (1, 0, 0, 5, 6)
    assert size.dense == 12 + 25 + 15 + 30 + 6 + 24 + 4 + 8 + 2


def test_json_and_folders(tmp_path: Path) -> None:
    architecture = net("relu")
    assert from_json(json.loads(json.dumps(to_json(architecture)))) == architecture
    assert eval(repr(architecture)) == architecture
    weights = random_net(architecture)
    save(weights, tmp_path / "net")
    again = load(tmp_path / "net")
    assert again.architecture == architecture
    assert again.digest == weights.digest != random_net(net()).digest
    assert json.loads((tmp_path / "net" / "config.json").read_text())["model_type"] == "vitrify-recurrent"
    assert "| head |" not in card(weights)


def test_a_trace_has_the_state_and_every_moment() -> None:
    weights = ring(3)
    seen = trace(weights, ["1", "1", "0"])
    names = [f"blocks.0.{name}" for name in ("hook_state", "mlp.hook_pre", "mlp.hook_post", "hook_mlp_out")]
    assert list(seen.activations) == ["hook_embed", *names, "hook_logits"]
    shapes = [seen.residual(moment).shape for moment in range(3)]
    assert shapes == [(4, 3), (4, 6), (4, 3)]
    assert seen.read("count") == ["0", "1", "2", "2"]
    assert str(seen) == "count: 0  1  2  2"


def test_it_is_certified_and_broken_like_any_other_net() -> None:
    weights, spec = ring(3), cyclic(3)
    evidence = certify(weights, spec, work=1e7)
    assert evidence.verdict == "holds"
    assert evidence.measured["largest distance of a named space from a legal value"] == 0.0
    found = campaign(weights, spec, count=100, work=1e6)
    assert {what for what, _ in found.survivors} <= {"unembed.W_U[0] zeroed"}  # no logit stands out: the first is taken
    off = weights.with_array("unembed.b_U", np.array([0.0, 2.0, 0.0]))
    assert certify(off, spec, work=1e7).verdict == "fails"


def test_unknown_symbols_and_long_words_are_refused() -> None:
    with pytest.raises(InputError, match="does not read 'x'"):
        encode(net(), ["x"])
    with pytest.raises(InputError, match="built for at most 7"):
        encode(net(), ["a"] * 8)
