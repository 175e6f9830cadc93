"""Recurrences of the kit: running sums beside heads, in one cell per layer; their errors; JAX; caches; folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tiny_nets import KINDS, words
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.kit.gadgets.steps import int_lookup
from vitrify.kit.heads.average import count, mean
from vitrify.kit.network import Affine, Builder, Readout, Recur, Space
from vitrify.kit.recurrence import running_sum
from vitrify.net.architecture import Output, from_json, to_json
from vitrify.net.explain import explain
from vitrify.net.folder import load, save
from vitrify.net.inference import trace
from vitrify.net.spaces import Flag, Integers, OneHot, Reals
from vitrify.net.transformer import AttentionKind
from vitrify.net.transformer_forward import Cache, forward
from vitrify.net.weights import Weights

LENGTH = 6
STEPS = np.array([0.0, 1.0, -1.0, 2.0])  # of BOS, a, b, c


def summing(attention: AttentionKind = "softmax") -> Weights:
    """A running sum, one that c sets back, the same sum by a head, and the sign of the sum by units."""
    net = Builder("sums", ("<s>", "a", "b", "c"), LENGTH, attention)
    step = net.embed("step", Integers(("s",), -1.0, 2.0), STEPS[:, None])
    token = net.embed("token", Flag(), np.array([[0.0], [1.0], [1.0], [1.0]]))
    still = net.embed("no c", Flag(), np.array([[0.0], [1.0], [1.0], [0.0]]))
    most = 2.0 * LENGTH
    total = running_sum(net, Affine.copy(step), ("s",), most, carry=Affine.copy(token), low=-most, name="total")
    both = Affine.of({step: [[1.0, 3.0]]})
    since = running_sum(net, both, ("s", "3s"), 3 * most, carry=Affine.copy(still), low=-3 * most, name="since c")
    if attention != "hard":
        count(net, Affine.copy(step), ("s",), most, low=-most, abs_total=most, name="by a head")
    kind = OneHot(("below", "zero", "above"))
    sign = int_lookup(net, total, lambda s: np.eye(3)[np.sign(s).astype(int) + 1], Space("sign", kind))
    parts = ((sign, np.eye(3)), (since, np.zeros((2, 3))))
    return assemble(
        net.network(Output("transducer", kind.values), Readout(parts, np.zeros(3), {sign: 0.25}), reuse=False)
    )


@pytest.mark.parametrize("attention", KINDS)
def test_sums_of_all_words(attention: AttentionKind) -> None:
    weights = summing(attention)
    for word in words(3, 4):
        seen = trace(weights, ["abc"[letter - 1] for letter in word])
        totals, since = [0.0], [0.0]
        for letter in word:
            totals.append(totals[-1] + STEPS[letter])
            since.append((0.0 if letter == 3 else since[-1]) + STEPS[letter])
        assert seen.space("total")[:, 0].tolist() == totals
        assert seen.space("since c").tolist() == [[s, 3 * s] for s in since]
        assert seen.read("sign") == [("below", "zero", "above")[int(np.sign(s)) + 1] for s in totals]
        if attention != "hard":
            assert seen.read("by a head") == totals


def test_all_recurrences_of_a_layer_are_one_cell_beside_its_heads() -> None:
    weights = summing()
    block = weights.architecture.blocks[0]
    assert (block.cell.kind, block.cell.state) == ("diagonal", 3)  # type: ignore[union-attr]
    size = weights.sizes
    assert (size.layers, size.heads_per_layer) == (1, (1,))
    assert weights.arrays["blocks.0.rec.W_C"].shape == (3, size.d_model)
    assert {weights.labels.space(name).born for name in ("total", "since c", "by a head")} == {1}
    page = str(explain(weights))
    assert "total ← (token)·total + step" in page
    assert "since c[3s] ← (no c)·since c[3s] + 3·step" in page
    assert "1 of them with a recurrent cell," in page


def test_folders_and_json(tmp_path: Path) -> None:
    weights = summing()
    assert from_json(to_json(weights.architecture)) == weights.architecture
    save(weights, tmp_path / "net")
    assert load(tmp_path / "net").digest == weights.digest


def test_jax_gives_the_same_numbers() -> None:
    weights = summing()
    tokens = np.pad(np.random.default_rng(0).integers(1, 4, size=(5, LENGTH)), ((0, 0), (1, 0)))
    with jax.enable_x64(True):
        arrays = {name: jnp.asarray(array) for name, array in weights.arrays.items()}
        found = jax.jit(forward, static_argnums=0)(weights.architecture, arrays, jnp.asarray(tokens))
    np.testing.assert_allclose(found, forward(weights.architecture, weights.arrays, tokens), atol=1e-12)


def test_a_cache_goes_on_where_it_stopped() -> None:
    weights = summing()
    tokens = np.pad(np.random.default_rng(1).integers(1, 4, size=(5, LENGTH)), ((0, 0), (1, 0)))
    whole, cache = forward(weights.architecture, weights.arrays, tokens), Cache()
    cuts = [forward(weights.architecture, weights.arrays, part, cache=cache) for part in np.split(tokens, [3, 4], 1)]
    np.testing.assert_allclose(np.concatenate(cuts, axis=1), whole, atol=1e-12)


def noisy(value: Any = None) -> tuple[Builder, Space, Space]:
    net = Builder("noise", ("<s>", "a", "b"), LENGTH)
    bit = net.embed("bit", Flag(), np.array([[0.0], [1.0], [0.0]]))
    token = net.embed("token", Flag(), np.array([[0.0], [1.0], [1.0]]))
    return net, mean(net, bit, name="share") if value is None else value, token


def read(net: Builder, space: Space) -> Weights:
    readout = Readout(((space, np.eye(1)),), np.zeros(1), {space: 0.25})
    return assemble(net.network(Output("values", ("y",)), readout, reuse=False))


def test_errors_add_up_over_all_positions() -> None:
    net, share, token = noisy()
    total = running_sum(net, Affine.copy(share), ("s",), float(LENGTH), carry=Affine.copy(token), name="total")
    labels = read(net, total).labels
    assert labels.space("share").error > 0
    rounding = (LENGTH + 1) * 2.0**-53 * LENGTH
    wanted = (LENGTH + 1) * labels.space("share").error + rounding
    assert labels.space("total").error == pytest.approx(wanted, rel=1e-9, abs=0.0)


def test_scales_must_be_exact() -> None:
    net, share, token = noisy()
    total = running_sum(net, Affine.copy(token), ("s",), float(LENGTH), carry=Affine.copy(share), name="total")
    with pytest.raises(BuildRefused, match="'running sum: total' needs 'share' within 0"):
        read(net, total)


def test_constants_can_not_be_read() -> None:
    writes = Space("h", Reals(("h",), 0.0, 1.0))
    with pytest.raises(ValueError, match="'r' can't read a constant"):
        Recur("r", Affine.constant(1.0), Affine.constant(0.0), writes, 1.0)
