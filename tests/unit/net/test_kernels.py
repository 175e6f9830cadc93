"""GPU kernels, run step by step on the CPU, against the same functions in a few lines and their automatic gradients."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vitrify.arrays import Array
from vitrify.learn.models.catalogue import make as make_model
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.net import routines
from vitrify.net.attention import allowed_keys, softmax
from vitrify.net.kernels.attention import Inputs, Tiling, attend
from vitrify.net.kernels.mlp import ReluLayer, mlp
from vitrify.net.kernels.norm import norm
from vitrify.net.kernels.tiles import Span
from vitrify.net.transformer import Head, Transformer
from vitrify.sandboxes.catalogue import make as make_sandbox


def near(one: Array, other: Array) -> None:
    """Compare arrays, or trees of them, up to the rounding of float32 sums in another order."""
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4), one, other)


@pytest.fixture
def draw() -> Callable[..., Array]:
    rng = np.random.default_rng(0)
    return lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)


def same_slopes(one: Callable[..., Array], other: Callable[..., Array], weights: Array, *arguments: Array) -> None:
    """Compare values and gradients with respect to all arguments."""
    pulled = [jax.vjp(function, *arguments) for function in (one, other)]
    (value, back), (expected, reference) = pulled
    near(value, expected)
    near(back(weights), reference(weights))


def plain_attention(given: Inputs, head: Head) -> Array:
    q, k, v = jnp.moveaxis(given.qkv + given.shifts, 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, precision="highest")
    if given.relative is not None:
        scores = scores + given.relative
    positions = jnp.arange(q.shape[1])
    weights = softmax(scores, allowed_keys(head, positions, positions))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v, precision="highest")


@pytest.mark.parametrize(
    ("head", "length", "d", "with_bias"),
    [
        (Head(), 100, 16, False),  # two tiles, the second one partly outside
        (Head(mask="none"), 9, 8, True),
        (Head(mask="strict"), 70, 16, True),  # the first query has no key
        (Head(mask="after"), 16, 24, False),  # the last one has none
        (Head(window=70), 130, 16, False),  # tiles with all, some and none of the pairs
        (Head(window=3), 70, 16, True),
    ],
    ids=str,
)
@pytest.mark.long
def test_attention(draw: Callable[..., Array], head: Head, length: int, d: int, with_bias: bool) -> None:
    given = Inputs(draw(2, length, 3, 2, d), draw(3, 2, d), draw(2, length, length) if with_bias else None)
    tiling = Tiling(head, length, interpret=True)
    weights = draw(2, length, 2, d)
    same_slopes(lambda given: attend(given, tiling), lambda given: plain_attention(given, head), weights, given)


@pytest.mark.long
def test_padding_never_reaches_a_gradient(draw: Callable[..., Array]) -> None:
    """Past the last position a query is its bias alone: its score with a key may be too large for an exponential."""
    given = Inputs(draw(1, 9, 3, 1, 8), jnp.full((3, 1, 8), 12.0))
    gradient = jax.grad(lambda given: attend(given, Tiling(Head(), 9, interpret=True)).sum())(given)
    assert np.isfinite(gradient.qkv).all()
    assert np.isfinite(gradient.shifts).all()


@pytest.mark.long
def test_tiles_that_are_read_again_for_every_pair(draw: Callable[..., Array], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitrify.net.kernels.attention.MAX_HELD", 0)
    tiling, given = Tiling(Head(), 70, interpret=True), Inputs(draw(1, 70, 3, 1, 8), draw(3, 1, 8))
    weights = draw(1, 70, 1, 8)
    same_slopes(lambda given: attend(given, tiling), lambda given: plain_attention(given, Head()), weights, given)


@pytest.mark.long
def test_members_are_computed_as_each_alone(draw: Callable[..., Array]) -> None:
    qkv, shifts, tiling = draw(3, 1, 20, 3, 1, 8), draw(3, 3, 1, 8), Tiling(Head(), 20, interpret=True)
    together = jax.vmap(lambda a, b: attend(Inputs(a, b), tiling))(qkv, shifts)
    for member in range(3):
        np.testing.assert_array_equal(together[member], attend(Inputs(qkv[member], shifts[member]), tiling))


@pytest.mark.parametrize(("length", "mask", "window"), [(100, "causal", None), (130, "after", None), (200, "none", 9)])
def test_tiles_cover_every_pair_that_may_attend(length: int, mask: str, window: int | None) -> None:
    head = Head(mask=mask, window=window)  # type: ignore[arg-type]
    tiling, positions = Tiling(head, length), np.arange(length)
    allowed = allowed_keys(head, positions, positions)
    for query in range(tiling.count):
        for key in range(tiling.count):
            rows, columns = (slice(at * tiling.size, (at + 1) * tiling.size) for at in (query, key))
            part, share = allowed[rows, columns], tiling.share(query, key)
            whole = part.all() and part.shape == (tiling.size, tiling.size)  # a tile that ends outside must be masked
            assert share == ("none" if not part.any() else "all" if whole else "some") or (
                share == "some" and part.any()
            )


@pytest.mark.parametrize(("rows", "d", "units", "out"), [(130, 16, 70, 16), (1100, 24, 64, 40)])
@pytest.mark.long
def test_relu_layers(draw: Callable[..., Array], rows: int, d: int, units: int, out: int) -> None:
    layer = ReluLayer(draw(rows, d), draw(d, units) / 4, draw(units), draw(units, out) / 8, draw(out))

    def plain(layer: ReluLayer) -> Array:
        hidden = jnp.maximum(jnp.matmul(layer.x, layer.W_in, precision="highest") + layer.b_in, 0)
        return jnp.matmul(hidden, layer.W_out, precision="highest") + layer.b_out

    same_slopes(lambda layer: mlp(layer, True), plain, draw(rows, out) / 8, layer)


@pytest.mark.long
def test_the_slope_of_a_relu_at_zero_is_that_of_a_maximum(draw: Callable[..., Array]) -> None:
    layer = ReluLayer(jnp.zeros((16, 16)), draw(16, 16), jnp.zeros(16), draw(16, 16), draw(16))
    ones = jnp.ones((16, 16))
    kernel = jax.grad(lambda layer: (mlp(layer, True) * ones).sum())(layer)
    plain = jax.grad(lambda b: (jnp.maximum(layer.x @ layer.W_in + b, 0) @ layer.W_out).sum())(layer.b_in)
    np.testing.assert_allclose(kernel.b_in, plain, rtol=1e-5, atol=1e-5)
    assert np.abs(plain).max() > 0


@pytest.mark.parametrize(("rows", "d"), [(100, 16), (70, 24), (10, 300)])
@pytest.mark.long
def test_layer_norm_and_what_is_read_beside_it(draw: Callable[..., Array], rows: int, d: int) -> None:
    def plain(x: Array, w: Array, b: Array) -> tuple[Array, Array]:
        centered = x - x.mean(axis=1, keepdims=True)
        return centered / jnp.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-5) * w + b, x

    weights = (draw(rows, d), draw(rows, d))
    same_slopes(lambda x, w, b: norm(x, w, b, 1e-5, True), plain, weights, draw(rows, d), draw(d), draw(d))


def test_a_span_that_ends_inside_needs_no_mask() -> None:
    assert Span(64, 64, 128).inside is None
    np.testing.assert_array_equal(Span(64, 4, 66).inside, [True, True, False, False])
    assert Span(jnp.int32(0), 64, 128).inside is None
    assert Span(jnp.int32(0), 64, 130).inside is not None


@pytest.mark.parametrize(("length", "window"), [(5, 3), (5, 5), (5, 9), (1, 1)])
def test_biases_by_offset(draw: Callable[..., Array], length: int, window: int) -> None:
    relative = draw(2, window)
    offset = np.arange(length)[:, None] - np.arange(length)
    inside = (offset >= 0) & (offset < window)
    expected = np.where(inside, np.asarray(relative)[:, np.clip(offset, 0, window - 1)], 0)
    np.testing.assert_array_equal(routines.by_offset(relative, length), expected)


def net_of(options: dict[str, object], heads: tuple[Head, ...] | None = None) -> tuple[TransformerFamily, Transformer]:
    family = make_model("transformer", {"layers": 1, "heads": 2, "d_model": 16, "units": 24} | options)
    assert isinstance(family, TransformerFamily)
    net = family.architecture(make_sandbox("markov", {"length": 7, "p": 0.2, "q": 0.3}))
    return family, net if heads is None else replace(net, blocks=(replace(net.blocks[0], heads=heads),))


@pytest.mark.parametrize(
    ("options", "heads"),
    [
        ({}, None),
        ({"positions": "relative"}, None),
        ({}, (Head(mask="strict"), Head(mask="none"))),
        ({"norm": False, "biases": False}, None),
    ],
    ids=["learned positions", "relative positions", "two kinds of heads", "neither norm nor biases"],
)
@pytest.mark.long
def test_a_net_computes_the_same_by_kernels(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, object], heads: tuple[Head, ...] | None
) -> None:
    family, net = net_of(options, heads)
    parameters = family.first(net, jax.random.key(1))
    tokens = jax.random.randint(jax.random.key(3), (2, 8), 0, 2)

    def loss(parameters: dict[str, Array]) -> Array:
        moved = {name: array + 0.1 for name, array in parameters.items()}  # no bias is 0
        logits = net.forward(family.arrays(net, moved), tokens)
        return (logits * jax.random.normal(jax.random.key(2), logits.shape)).sum()

    expected = jax.value_and_grad(loss)(parameters)
    monkeypatch.setattr(routines, "_on_gpu", lambda: True)
    assert routines.attends(net.blocks[0], jnp.zeros((2, 8, 16)))
    by_kernels = jax.value_and_grad(loss)(parameters)
    near(by_kernels, expected)


def test_other_shapes_take_other_routines(monkeypatch: pytest.MonkeyPatch) -> None:
    _, net = net_of({})
    block, x = net.blocks[0], jnp.zeros((2, 8, 16))
    assert not routines.attends(block, x)  # on a CPU
    monkeypatch.setattr(routines, "_on_gpu", lambda: True)
    assert not routines.attends(block, jnp.zeros((2, routines.MAX_KERNEL_POSITIONS + 1, 16)))
    assert not routines.attends(replace(block, d_head=4, d_value=4), x)
    assert not routines.attends(replace(block, d_value=16), x)
    assert not routines.attends(replace(block, heads=(Head(rotary=1e4), Head())), x)
    assert not routines.attends(replace(block, heads=(Head("linear"), Head())), x)
    wide = jnp.zeros((2, routines.MAX_KERNEL_WIDTH + 1))
    assert routines.mlp(wide, jnp.zeros((wide.shape[1], 4)), jnp.zeros(4), jnp.zeros((4, 4)), jnp.zeros(4)) is None


def test_training_on_a_cpu_does_not_import_the_kernels() -> None:
    code = """
import sys, vitrify as v
v.train("transformer", v.sandbox("markov", p=0.2, q=0.3, length=6), recipe=v.Recipe(steps=1, batch=2, test_examples=8))
assert "vitrify.net.routines" in sys.modules
assert not [name for name in sys.modules if "pallas" in name or name.startswith("vitrify.net.kernels")]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
