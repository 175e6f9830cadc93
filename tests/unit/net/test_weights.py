"""Weights: arrays that fit, a digest that notices every bit, and sizes counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

from nets import mixed, random_arrays, random_net
from vitrify.errors import FolderError
from vitrify.net import sparse
from vitrify.net.architecture import Output
from vitrify.net.inference import logits
from vitrify.net.labels import Labels
from vitrify.net.sparse import OnRows
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Sizes, Weights

TINY = Transformer(("<s>", "a"), Output("lm", ("x", "y", "z")), max_length=1, d_model=2)


def test_arrays_that_do_not_fit_are_all_named() -> None:
    arrays = random_arrays(TINY, 0)
    del arrays["unembed.b_U"]
    arrays |= {"blocks.7.attn.W_Q": np.zeros(1), "embed.W_E": np.zeros((2, 3))}
    with pytest.raises(FolderError, match="the arrays do not fit the architecture") as caught:
        Weights(TINY, arrays)
    assert "unembed.b_U is missing" in str(caught.value)
    assert "blocks.7.attn.W_Q is not part of this architecture" in str(caught.value)
    assert "embed.W_E must have shape (2, 2), has (2, 3)" in str(caught.value)


def test_every_array_is_needed_and_no_other_welcome() -> None:
    net = mixed(norm=True)
    arrays = random_arrays(net, 0)
    for name, array in arrays.items():
        with pytest.raises(FolderError, match=f"{name} is missing"):
            Weights(net, {other: value for other, value in arrays.items() if other != name})
        with pytest.raises(FolderError, match=f"{name} must have shape"):
            Weights(net, {**arrays, name: array[None]})
    with pytest.raises(FolderError, match="bias is not part of this architecture"):
        Weights(net, {**arrays, "bias": np.zeros(1)})


def test_weights_do_not_change_under_the_hand() -> None:
    arrays, about = random_arrays(TINY, 0), {"seed": 0}
    weights = Weights(TINY, arrays, about=about)
    arrays["embed.W_E"] = np.zeros((2, 2))
    about["seed"] = 1
    assert weights.arrays["embed.W_E"].any()
    assert weights.about["seed"] == 0
    with pytest.raises(TypeError):
        weights.arrays["embed.W_E"] = np.zeros((2, 2))  # type: ignore[index]


def test_one_array_replaced() -> None:
    weights = random_net(mixed(), labels=Labels())
    other = weights.with_array("unembed.b_U", np.ones(3))
    assert {name for name in weights.arrays if other.arrays[name] is not weights.arrays[name]} == {"unembed.b_U"}
    assert other.arrays["unembed.b_U"].tolist() == [1, 1, 1]
    assert other.about == weights.about
    assert weights.map(lambda array: array.astype(np.float32)).arrays["embed.W_E"].dtype == np.float32


def test_every_sparse_form_becomes_rows() -> None:
    """A column-wise array has the same three parts, and would be read back transposed."""
    array = np.array([[0.0, 2.0], [0.0, 0.0]])
    weights = Weights(TINY, random_arrays(TINY, 0) | {"embed.W_E": csc_array(array)})
    assert weights.arrays["embed.W_E"].format == "csr"
    np.testing.assert_array_equal(weights.arrays["embed.W_E"].toarray(), array)


@pytest.mark.parametrize("residual", ["add", "concatenate"])
def test_large_arrays_run_in_their_cheap_form(monkeypatch: pytest.MonkeyPatch, residual: str) -> None:
    net = mixed(residual=residual, norm=True, eps=1e-3)
    arrays = {name: np.where(np.abs(array) > 0.6, array, 0) for name, array in random_arrays(net, 3).items()}
    wanted = list(logits(Weights(net, arrays), [[1, 2, 3], [2]]))
    monkeypatch.setattr(sparse, "DENSE_ENTRIES", 1)
    weights = Weights(net, arrays)
    assert isinstance(weights.prepared["blocks.0.attn.W_Q"], OnRows)
    assert isinstance(weights.prepared["unembed.W_U"], OnRows)
    for got, want in zip(logits(weights, [[1, 2, 3], [2]]), wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-12)


def test_the_digest_notices_every_bit() -> None:
    net = mixed(norm=True)
    weights = random_net(net)
    digests = {weights.digest}
    for name, array in weights.arrays.items():
        bits = array.copy().reshape(-1)
        bits.view(np.uint64)[-1] ^= 1
        digests.add(weights.with_array(name, bits.reshape(array.shape)).digest)
    assert len(digests) == 1 + len(weights.arrays)


def test_the_digest_notices_the_type_of_a_number() -> None:
    whole, real = (
        Weights(TINY, random_arrays(TINY, 0) | {"embed.W_E": np.zeros((2, 2), kind)}) for kind in (int, float)
    )
    assert whole.digest != real.digest


def test_the_digest_notices_the_architecture() -> None:
    arrays = random_arrays(TINY, 0)
    recognizer = replace(TINY, output=replace(TINY.output, kind="recognizer"))
    assert Weights(recognizer, arrays).digest != Weights(TINY, arrays).digest


def test_the_digest_notices_each_part_of_a_sparse_array() -> None:
    forms = [[[1.0, 0], [0, 0]], [[0, 1.0], [0, 0]], [[0, 0], [1.0, 0]], [[2.0, 0], [0, 0]]]
    arrays = random_arrays(TINY, 0)
    assert len({Weights(TINY, arrays | {"embed.W_E": csr_array(np.array(form))}).digest for form in forms}) == 4


def test_the_digest_notices_nothing_else() -> None:
    weights = random_net(TINY)
    turned = {name: np.asfortranarray(array.copy()) for name, array in reversed(list(weights.arrays.items()))}
    renamed = Weights(replace(TINY, name="other"), turned, about={"other": 1})
    assert renamed.digest == weights.digest


def hand_made() -> Weights:
    """Two blocks whose numbers are zero but for eleven."""
    blocks = (Block((Head(), Head()), d_head=2, d_value=3, units=4, d_out=1), Block(units=5, d_out=2))
    net = replace(TINY, blocks=blocks, residual="concatenate")
    arrays = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["blocks.0.attn.W_Q"][0, 0, :] = [1, -8.5]
    arrays["blocks.0.attn.beta"][:] = 3
    arrays["blocks.1.mlp.b_in"][:] = 1
    embed = csr_array(([2.0, 0.0, -1.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))  # one zero is stored
    return Weights(net, arrays | {"embed.W_E": embed})


def test_the_sizes_counts() -> None:
    # widths 2, then 2 heads of 1, then an MLP of 1, then an MLP of 2: 2, 4, 5, 5, 7
    dense = 2 * 2 + 2 * 2  # embeddings and two positions
    dense += 2 * (2 * 2 + 2) * 2 + 2 * (2 * 3 + 3) + 2 * 3 * 1 + 2  # queries and keys, values, outputs, beta
    dense += (4 * 4 + 4 + 4 * 1 + 1) + (5 * 5 + 5 + 5 * 2 + 2) + (7 * 3 + 3)  # two MLPs, unembedding
    assert hand_made().sizes == Sizes(
        layers=2,
        attention_layers=1,
        heads=2,
        heads_per_layer=(2, 0),
        d_model=7,
        d_head=3,
        units=9,
        units_per_layer=(4, 5),
        nonzero=2 + 2 + 5 + 2,
        dense=dense,
        max_abs=8.5,
    )


def test_a_net_of_nothing() -> None:
    zeros = {name: np.zeros(shape) for name, shape in TINY.shapes().items()}
    size = Weights(TINY, zeros).sizes
    assert (size.layers, size.heads, size.d_head, size.nonzero, size.max_abs) == (0, 0, 0, 0, 0.0)


def test_the_largest_weight_may_be_sparse() -> None:
    embed = csr_array(np.array([[0, -99.0], [0, 0]]))
    assert hand_made().with_array("embed.W_E", embed).sizes.max_abs == 99


def test_repr_says_what_it_is() -> None:
    assert repr(hand_made()) == "Weights('transformer', layers=2, heads=2, d_model=7, units=9, nonzero=11)"
