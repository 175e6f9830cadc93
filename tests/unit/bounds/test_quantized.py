"""Quantized layers: the definition, its charge, and nets brought to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import all_pairs, each
from nets import copycat, random_net
from oracles.naive_quantized import mixed
from vitrify.bounds.quantize import quantize
from vitrify.bounds.quantized import OneLayer, random_layer, sum_bits
from vitrify.constructions.catalogue import build
from vitrify.errors import InputError
from vitrify.net.architecture import Output
from vitrify.net.cells import Cell
from vitrify.net.inference import logits
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.spec.automata.families import cyclic
from vitrify.spec.ngrams.families import random_ngram


@st.composite
def layers(draw: st.DrawFn) -> tuple[OneLayer, list[int]]:
    count, places = draw(st.integers(2, 3)), draw(st.integers(1, 5))
    model = random_layer(
        tuple("abc"[:count]),
        places,
        bits=draw(st.integers(1, 7)),
        heads=draw(st.integers(1, 2)),
        query_size=draw(st.integers(1, 2)),
        value_size=draw(st.integers(1, 2)),
        ask=draw(st.integers(0, places - 1)),
        seed=draw(st.integers(0, 2**20)),
    )
    pads = draw(st.integers(0, places - 1))
    hidden = np.array(draw(st.lists(st.booleans(), min_size=places, max_size=places)))
    bias = np.where(hidden, -np.inf, 0.0)[None].repeat(model.heads, axis=0)
    model = replace(model, pads=pads, ask=max(model.ask, pads), bias=bias if draw(st.booleans()) else model.bias)
    readable = count - 1 if pads else count
    return model, draw(st.lists(st.integers(0, readable - 1), min_size=places - pads, max_size=places - pads))


@given(layers())
def test_a_layer_is_what_its_definition_says(given: tuple[OneLayer, list[int]]) -> None:
    model, word = given
    if np.isfinite(model.bias).any():
        assert model.mixed(word)[0].tolist() == mixed(model, word)


@given(layers(), st.data())
def test_sums_of_any_parts_add_up_and_fit_their_charge(given: tuple[OneLayer, list[int]], data: st.DataObject) -> None:
    model, word = given
    query = model.queries[:, 0]
    part = data.draw(st.sets(st.integers(0, model.places - 1), min_size=1))
    rest = sorted(set(range(model.places)) - part)
    one, other = model.sums(query, word, sorted(part)), model.sums(query, word, rest)
    assert np.array_equal(one + other, model.sums(query, word))
    width = sum_bits(model.bits, len(part))
    assert np.abs(one[..., :-1]).max() <= 2 ** (width - 1)
    assert one[..., :-1].max() < 2 ** (width - 1)
    assert 0 <= one[..., -1].min() <= one[..., -1].max() < 2**width


def test_the_charge_is_reached() -> None:
    for bits in (1, 3, 8):
        for count in (1, 2, 5, 64):
            assert (2**bits - 1) * count < 2 ** sum_bits(bits, count)
            assert sum_bits(bits, count) == bits + (count - 1).bit_length()


def test_batches_do_not_matter() -> None:
    model = random_layer("abc", 6, bits=5, heads=2, value_size=2, query_size=2, answers=3, seed=1)
    words = np.random.default_rng(0).integers(0, 3, (40, 6))
    together = model.run(words)
    for word, row in zip(words, together, strict=True):
        assert np.array_equal(model.run(word)[0], row)


@pytest.mark.parametrize("shape", ["heads", "single"])
def test_a_built_net_is_itself_at_enough_bits(shape: str) -> None:
    spec = random_ngram(3, 3, seed=5)
    net = build(spec, shape, attention="softmax", max_length=9)
    symbols = net.architecture.inputs[1:4]
    words = np.random.default_rng(0).integers(0, 3, (30, 7))
    ids = [[net.architecture.input_ids[symbols[s]] for s in word] for word in words]
    true = np.array([found[-1] for found in logits(net, ids)])
    errors = [np.abs(quantize(net, symbols, 7, bits).run(words) - true).max() for bits in (1, 16)]
    assert errors[1] < 1e-9
    assert errors[0] > 1e-3


@each(("seed", "mask", "residual"), all_pairs(range(3), ["causal", "strict", "none"], ["add", "concatenate"]))
def test_any_net_is_itself_at_enough_bits(seed: int, residual: str, mask: str) -> None:
    heads = (Head("softmax", mask), Head("softmax", "causal", window=3))  # type: ignore[arg-type]
    blocks = (Block(units=3, d_out=2), Block(heads, d_head=2, d_value=2, units=3, d_out=2), Block(units=2, d_out=1))
    net = Transformer(
        ("<s>", "a", "b"),
        Output("transducer", ("a", "b")),
        5,
        3,
        blocks,
        pads=2,
        residual=residual,  # type: ignore[arg-type]
    )
    weights = random_net(net, seed).map(lambda array: array / 2)
    words = [[0, 1, 1, 0], [1, 1, 0, 0], [1, 0, 1, 1]]
    true = np.array([found[-1] for found in logits(weights, [[s + 1 for s in word] for word in words])])
    found = quantize(weights, ("a", "b"), 4, 18).run(words)
    assert np.abs(found - true).max() < 1e-3 * max(1.0, float(np.abs(true).max()))


def tiny(**changes: Any) -> Transformer:
    fields: dict[str, Any] = {"blocks": (Block((Head(),), d_head=1, d_value=1),)}
    return Transformer(("<s>", "a"), Output("lm", ("a",)), 3, 2, **{**fields, **changes})


@each(
    ("net", "said"),
    [
        (lambda: copycat(), "by softmax, not by hard"),
        (lambda: build(cyclic(3)), "one attention layer; it has 7"),
        (lambda: random_net(tiny(norm=True)), "layer norm"),
        (lambda: random_net(tiny(loops=3)), "it has 3"),
        (lambda: random_net(tiny(blocks=(Block((Head(),), 1, 1, cell=Cell("relu", 2)),))), "a recurrent cell"),
        (lambda: random_net(tiny(blocks=())), "it has 0"),
    ],
)
def test_other_nets_are_refused_in_a_sentence(net: object, said: str) -> None:
    assert callable(net)
    with pytest.raises(InputError, match=said):
        quantize(net(), ("a", "b"), 3, 8)


def test_sizes_that_do_not_fit_are_refused() -> None:
    net = build(random_ngram(2, 2, seed=1), "heads", attention="softmax", max_length=5)
    with pytest.raises(InputError, match="5 symbols at most, not 6"):
        quantize(net, net.architecture.inputs[1:3], 6, 8)
    with pytest.raises(InputError, match="does not read 'nothing'"):
        quantize(net, ("nothing",), 3, 8)
    with pytest.raises(InputError, match="from 1 to 20 bits, not 21"):
        quantize(net, net.architecture.inputs[1:3], 5, 21)
    model = random_layer("ab", 3, bits=3, seed=0)
    with pytest.raises(InputError, match="values must be signed integers of 3 bits"):
        replace(model, values=model.values + 8)
