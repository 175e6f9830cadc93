"""The one forward pass under JAX: the same numbers as NumPy, compiled, differentiated and mapped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

from nets import mixed, random_arrays, random_net
from vitrify.net.architecture import Output
from vitrify.net.inference import batch_of, log_probabilities
from vitrify.net.sparse import dense
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.transformer_forward import forward
from vitrify.net.weights import Weights

SOFT = mixed(
    blocks=(
        Block((Head(mask="strict"), Head(mask="none"), Head(window=2)), d_head=2, d_value=2, units=3, d_out=2),
        Block((Head("sparsemax", "strict"),), d_head=2, d_value=2, units=3, d_out=2),
    ),
    norm=True,
)
SEQUENCES = [[1, 2, 3, 1, 1, 2], [3], []]

compiled = jax.jit(forward, static_argnums=0, static_argnames="query_chunk")


@pytest.fixture
def _double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def on_jax(weights: Weights) -> Weights:
    return weights.map(lambda array: jnp.asarray(dense(array)))


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize(
    ("net", "chunk"),
    [
        (mixed(), None),
        (mixed(residual="concatenate", norm=True, eps=1e-3), 4),
        (mixed(norm=True, groups=(((3, 0), (1, 4)),) * len(mixed().widths)), None),
    ],
    ids=["add", "concatenate, norm, chunks", "norms of pairs"],
)
def test_jax_agrees_with_numpy_in_double_precision(net: Transformer, chunk: int | None) -> None:
    weights = random_net(net)
    tokens, lengths = batch_of(net, SEQUENCES)
    wanted = forward(net, weights.arrays, tokens, lengths=lengths, query_chunk=chunk)
    arrays = dict(on_jax(weights).arrays)
    got = compiled(net, arrays, jnp.asarray(tokens), lengths=jnp.asarray(lengths), query_chunk=chunk)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("_double")
def test_jax_agrees_with_numpy_uncompiled_and_recorded() -> None:
    net = mixed(blocks=(Block((Head(window=2), Head("hard", "none")), d_head=2, d_value=2, units=3),))
    weights = random_net(net)
    tokens, _ = batch_of(net, SEQUENCES[:1])
    seen: dict[str, Any] = {}
    seen_by_jax: dict[str, Any] = {}
    forward(net, weights.arrays, tokens, record=seen.__setitem__)
    forward(net, on_jax(weights).arrays, jnp.asarray(tokens), record=seen_by_jax.__setitem__)
    assert list(seen) == list(seen_by_jax)
    for name, value in seen.items():
        np.testing.assert_allclose(seen_by_jax[name], value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("heads", [SOFT.blocks[0].heads, (Head("sparsemax"), Head("hard"))], ids=["soft", "sparse"])
def test_single_precision_stays_single(heads: tuple[Head, ...]) -> None:
    net = mixed(blocks=(Block(heads, d_head=2, d_value=2, units=3),), norm=True, eps=1e-3)
    weights = random_net(net).map(lambda array: array.astype(np.float32))
    tokens, lengths = batch_of(net, SEQUENCES)
    on_numpy = forward(net, weights.arrays, tokens, lengths=lengths)
    with_jax = compiled(net, dict(on_jax(weights).arrays), jnp.asarray(tokens), lengths=jnp.asarray(lengths))
    assert on_numpy.dtype == with_jax.dtype == np.float32
    np.testing.assert_allclose(with_jax, on_numpy, rtol=1e-4, atol=1e-4)


def loss(net: Transformer, tokens: Any, lengths: Any, arrays: Any) -> Any:
    return -log_probabilities(net.output, forward(net, arrays, tokens, lengths=lengths))[..., 0].mean()


slopes = jax.jit(jax.grad(loss, argnums=3), static_argnums=0)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_gradients_are_finite(scale: float) -> None:
    """Queries without keys, forbidden keys, constant vectors under a norm without eps, sharp attention."""
    tokens, lengths = batch_of(SOFT, SEQUENCES)
    arrays = {name: jnp.asarray(scale * array) for name, array in random_arrays(SOFT, 0).items()}
    gradient = slopes(SOFT, jnp.asarray(tokens), jnp.asarray(lengths), arrays)
    assert gradient.keys() == SOFT.shapes().keys()
    assert all(jnp.isfinite(part).all() for part in gradient.values())


@pytest.mark.usefixtures("_double")
def test_gradients_are_slopes() -> None:
    tokens, lengths = batch_of(SOFT, SEQUENCES)
    arrays, toward = random_arrays(SOFT, 0), random_arrays(SOFT, 1)
    on_numpy = partial(loss, SOFT, tokens, lengths)
    step = 1e-6
    ahead, behind = ({name: arrays[name] + sign * step * toward[name] for name in arrays} for sign in (1, -1))
    slope = (on_numpy(ahead) - on_numpy(behind)) / (2 * step)
    on_jax_arrays = {name: jnp.asarray(array) for name, array in arrays.items()}
    gradient = slopes(SOFT, jnp.asarray(tokens), jnp.asarray(lengths), on_jax_arrays)
    assert slope == pytest.approx(sum(float((gradient[name] * toward[name]).sum()) for name in arrays), rel=1e-6)


@pytest.mark.usefixtures("_double")
def test_many_nets_run_at_once() -> None:
    tokens, _ = batch_of(SOFT, SEQUENCES)
    nets = [random_arrays(SOFT, seed) for seed in range(3)]
    stacked = {name: np.stack([net[name] for net in nets]) for name in nets[0]}
    together = jax.jit(jax.vmap(lambda arrays: forward(SOFT, arrays, jnp.asarray(tokens))))(stacked)
    for got, net in zip(together, nets, strict=True):
        np.testing.assert_allclose(got, forward(SOFT, net, tokens), rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("_double")
def test_a_large_sparse_net_runs_dense_under_jax() -> None:
    net = Transformer(
        inputs=tuple(f"w{index}" for index in range(700)),
        output=Output("lm", tuple(f"w{index}" for index in range(700))),
        max_length=5,
        d_model=900,
        blocks=(Block((Head(),), d_head=2, d_value=2, units=1500),),
    )
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for name, shape in net.shapes().items():
        arrays[name] = rng.normal(size=shape)
        if name in ("embed.W_E", "blocks.0.mlp.W_in", "blocks.0.mlp.W_out", "unembed.W_U"):
            arrays[name] = csr_array(arrays[name] * (rng.random(shape) < 0.005))
    weights = Weights(net, arrays)
    tokens, _ = batch_of(net, [[1, 2, 3, 4], [699]])
    wanted = forward(net, weights.prepared, tokens)
    got = compiled(net, dict(on_jax(weights).arrays), jnp.asarray(tokens))
    np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())
