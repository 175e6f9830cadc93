"""Laws of the forward pass over random networks: it is the definition, batched, chunked, padded or sparse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from cases import each
from examples import examples
from nets import mixed, networks, random_arrays, words
from oracles import naive_transformer
from vitrify.net.architecture import from_json, to_json
from vitrify.net.inference import batch_of, log_probabilities, logits
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.transformer_forward import forward
from vitrify.net.weights import Weights

EXAMPLES = settings(max_examples=examples(120), deadline=None)


def same(one: Any, other: Any) -> None:
    """Equal but for rounding: two orders of summation, through three blocks of numbers near 1."""
    np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


@EXAMPLES
@given(networks(), st.data())
def test_forward_is_the_definition(weights: Weights, data: st.DataObject) -> None:
    net = weights.architecture
    tokens, _ = batch_of(net, [data.draw(words(net))])
    naive = naive_transformer.logits(net, weights.arrays, tokens[0])
    same(forward(net, weights.arrays, tokens)[0], naive)


@EXAMPLES
@given(networks(), st.integers(1, 4), st.data())
def test_chunks_of_queries_change_nothing(weights: Weights, chunk: int, data: st.DataObject) -> None:
    net = weights.architecture
    tokens, lengths = batch_of(net, data.draw(st.lists(words(net), min_size=1, max_size=3)))
    whole: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    one = forward(net, weights.arrays, tokens, lengths=lengths, record=whole.__setitem__)
    other = forward(net, weights.arrays, tokens, lengths=lengths, record=parts.__setitem__, query_chunk=chunk)
    unrecorded = forward(net, weights.arrays, tokens, lengths=lengths, query_chunk=chunk)
    same(other, one)
    np.testing.assert_array_equal(unrecorded, other)
    assert whole.keys() == parts.keys()
    for name in whole:
        if name.endswith("hook_pattern"):
            same(parts[name], whole[name])


@EXAMPLES
@given(networks(), st.data())
def test_a_padded_batch_is_its_sequences(weights: Weights, data: st.DataObject) -> None:
    net = weights.architecture
    sequences = data.draw(st.lists(words(net), min_size=2, max_size=4))
    tokens, lengths = batch_of(net, sequences)
    batch = forward(net, weights.arrays, tokens, lengths=lengths)
    naive = naive_transformer.logits_of_batch(net, weights.arrays, tokens.tolist(), lengths.tolist())
    for row, length, rows, sequence in zip(batch, lengths, naive, logits(weights, sequences), strict=True):
        same(row[:length], rows)
        same(sequence, rows[net.pads - 1 :])


@EXAMPLES
@given(networks())
def test_the_stream_has_the_declared_widths(weights: Weights) -> None:
    net = weights.architecture
    seen: dict[str, Any] = {}
    forward(net, weights.arrays, batch_of(net, [[]])[0], record=seen.__setitem__)
    stream = [seen[f"blocks.{b}.hook_resid_{at}"] for b in range(len(net.blocks)) for at in ("pre", "mid")]
    last = seen[f"blocks.{len(net.blocks) - 1}.hook_resid_post"] if net.blocks else seen["hook_embed"]
    assert net.widths == tuple(x.shape[-1] for x in [*stream, last])


@EXAMPLES
@given(networks(), st.data())
def test_sparse_matrices_change_nothing(weights: Weights, data: st.DataObject) -> None:
    net = weights.architecture
    matrices = ["embed.W_E", "pos_embed.W_pos", "unembed.W_U", *(n for n in weights.arrays if ".mlp.W" in n)]
    chosen = data.draw(st.sets(st.sampled_from(matrices)))
    thin = {
        name: array * (np.abs(array) > 0.5) if name in matrices else array for name, array in weights.arrays.items()
    }
    sparse = Weights(net, {name: csr_array(array) if name in chosen else array for name, array in thin.items()})
    tokens, lengths = batch_of(net, data.draw(st.lists(words(net), min_size=1, max_size=3)))
    wanted = forward(net, thin, tokens, lengths=lengths)
    same(forward(net, sparse.arrays, tokens, lengths=lengths), wanted)
    same(forward(net, sparse.prepared, tokens, lengths=lengths), wanted)
    np.testing.assert_array_equal(dense(sparse.arrays["embed.W_E"]), thin["embed.W_E"])


@EXAMPLES
@given(networks())
def test_an_architecture_survives_json(weights: Weights) -> None:
    again = from_json(to_json(weights.architecture))
    assert again == weights.architecture
    assert hash(again) == hash(weights.architecture)


@EXAMPLES
@given(networks(), st.data())
def test_probabilities_sum_to_one(weights: Weights, data: st.DataObject) -> None:
    [rows] = logits(weights, [data.draw(words(weights.architecture))])
    log_p = log_probabilities(weights.architecture.output, 40 * rows)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=-1), 1, rtol=1e-12)
    np.testing.assert_allclose(log_p - log_p[:, :1], 40 * (rows - rows[:, :1]), rtol=1e-9, atol=1e-9)


@each("residual", ["add", "concatenate"])
@each("eps", [None, 0.0, 1e-5])
def test_every_kind_of_head_in_one_net(residual: str, eps: float | None) -> None:
    net: Transformer = mixed(residual=residual, norm=eps is not None, eps=eps or 0.0)
    arrays = random_arrays(net, seed=5)
    tokens, lengths = batch_of(net, [[1, 2, 3, 1, 1, 2, 3], [], [3, 3, 3], [2]])
    naive = naive_transformer.logits_of_batch(net, arrays, tokens.tolist(), lengths.tolist())
    for chunk in (None, 1, 4):
        batch = forward(net, arrays, tokens, lengths=lengths, query_chunk=chunk)
        for row, rows in zip(batch, naive, strict=True):
            same(row[: len(rows)], rows)


def test_what_a_layer_norm_makes_of_a_constant_vector() -> None:
    net = replace(mixed(norm=True, eps=0.0), blocks=())
    arrays = random_arrays(net, seed=1) | {"embed.W_E": np.ones((4, 5)), "pos_embed.W_pos": np.ones((9, 5))}
    wanted = arrays["ln_final.b"] @ arrays["unembed.W_U"] + arrays["unembed.b_U"]
    got = forward(net, arrays, np.zeros((1, 3), dtype=np.int64))
    np.testing.assert_allclose(got, np.broadcast_to(wanted, got.shape), rtol=1e-14)
