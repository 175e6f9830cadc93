"""Finite precision against naive rational arithmetic, and its circuits against finite precision."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from nets import copycat, mixed, random_arrays, random_net
from oracles.naive_fixed_point import naive_logits
from vitrify.bounds.activations import read_answer
from vitrify.bounds.fixed_point import FixedNet, Grid
from vitrify.bounds.gates import all_words
from vitrify.bounds.tc0 import BLOCK_DEPTH, finite_precision_circuit
from vitrify.errors import BuildRefused, InputError
from vitrify.net.architecture import Output
from vitrify.net.inference import batch_logits
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights

GRIDS = [Grid(0, 2, 3), Grid(1, 1, 2), Grid(2, 2, 4)]


@st.composite
def soft_nets(draw: st.DrawFn, widest: int = 2) -> Weights:
    """Small softmax nets over two or three letters."""
    masks = st.sampled_from(["none", "causal", "strict", "after"])
    heads = st.builds(Head, st.just("softmax"), masks, st.sampled_from([None, 2]))
    block = st.builds(
        Block,
        heads=st.lists(heads, max_size=widest).map(tuple),
        d_head=st.integers(0, 2),
        d_value=st.integers(1, 2) if widest == 1 else st.just(1),
        units=st.sampled_from([0, 3]),
    )
    net = Transformer(
        inputs=("<s>", "a", "b", "c")[: draw(st.integers(3, 4))],
        output=Output("values", ("x", "y")),
        max_length=5,
        d_model=2,
        blocks=tuple(draw(st.lists(block, min_size=1, max_size=2))),
        pads=draw(st.integers(1, 2)),
    )
    arrays = random_arrays(net, draw(st.integers(0, 2**32 - 1)))
    return Weights(net, {name: 4 * array if "b_rel" in name else array for name, array in arrays.items()})


@pytest.mark.long
@given(soft_nets(), st.sampled_from(GRIDS), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_finite_precision_is_what_rational_arithmetic_says(weights: Weights, grid: Grid, data: st.DataObject) -> None:
    letters = st.integers(1, len(weights.architecture.inputs) - 1)
    word = data.draw(st.lists(letters, min_size=1, max_size=4))
    found = FixedNet(weights, grid).run(np.array([word]))[0]
    unit = Fraction(1, 4**grid.fraction)
    assert [[logit * unit for logit in row] for row in found.tolist()] == naive_logits(weights, grid, word)


@given(soft_nets() | soft_nets(widest=1), st.sampled_from(GRIDS[:2]), st.integers(1, 4))
@settings(max_examples=examples(60), deadline=None)
def test_a_circuit_says_the_same_as_its_net_on_every_word(weights: Weights, grid: Grid, length: int) -> None:
    fixed = FixedNet(weights, grid)
    made = finite_precision_circuit(fixed, length)
    words = all_words(made.letters, length)
    net = weights.architecture
    wanted = [read_answer("values", net.output.symbols, row) for row in fixed.run(words)[:, -1].tolist()]
    assert made.run(words) == wanted
    assert made.circuit.size.depth <= BLOCK_DEPTH * len(net.blocks) + 2


def drawn(seed: int) -> Weights:
    net = Transformer(
        inputs=("<s>", "a", "b"),
        output=Output("class", ("no", "yes")),
        max_length=32,
        d_model=2,
        blocks=(Block((Head("softmax"),), d_head=2, d_value=2, units=3),) * 2,
    )
    arrays = random_arrays(net, seed)
    arrays["pos_embed.W_pos"][:] = 0.0
    return Weights(net, arrays)


def test_depth_is_constant_and_size_is_linear_without_positions() -> None:
    fixed = FixedNet(drawn(6), Grid(1, 2, 3))
    sizes = [finite_precision_circuit(fixed, length).circuit.size for length in (4, 8, 16, 32)]
    assert {size.depth for size in sizes} == {BLOCK_DEPTH * 2 + 1}
    assert len({size.weight_bits for size in sizes}) == 1
    for small, large in pairwise(sizes[1:]):  # all types are there from 8 letters on
        assert small.gates < large.gates < 2.1 * small.gates
        assert large.wires < 4.2 * small.wires
    assert sizes[0].thresholds > 0


def test_a_fine_grid_comes_close_to_the_net_itself_where_scores_are_whole() -> None:
    weights = drawn(3)
    for block in (0, 1):
        name = f"blocks.{block}.attn.beta"
        weights = weights.with_array(name, 0 * weights.arrays[name])
    words = all_words(2, 5)
    exact = batch_logits(weights, np.pad(words, ((0, 0), (1, 0))))
    found = FixedNet(weights, Grid(12, 50, 3)).run(words) / 4.0**12
    assert np.abs(found - exact).max() < 1e-2


@pytest.mark.slow
def test_a_finer_grid_on_all_words_to_length_ten() -> None:
    for seed in range(3):
        fixed = FixedNet(drawn(seed), Grid(2, 2, 4))
        for length in (5, 10):
            made, words = finite_precision_circuit(fixed, length), all_words(2, length)
            assert made.run(words) == [("no", "yes")[place] for place in fixed.run(words)[:, -1].argmax(axis=-1)]
            assert made.circuit.size.depth <= BLOCK_DEPTH * 2 + 2


def test_grids_that_make_no_sense_or_overflow_are_refused() -> None:
    with pytest.raises(InputError, match=r"a top of 1 or more .* not Grid\(fraction=1, top=0, score=3, significant=None\)"):
        Grid(1, 0, 3)
    for grid in ((20, 8, 3), (2, 2, 30)):
        with pytest.raises(BuildRefused, match="would not fit 64 bits"):
            Grid(*grid)
    name = "blocks.1.attn.beta"
    sharp = drawn(0).with_array(name, 1e6 * np.ones(1))
    FixedNet(sharp, Grid(2, 2, 4))
    with pytest.raises(BuildRefused, match=r"sums with blocks\.1\.attn\.beta would not fit 64 bits"):
        FixedNet(sharp, Grid(13, 20, 4))


def test_bits_of_a_grid() -> None:
    assert [grid.bits for grid in (Grid(0, 1, 1), Grid(0, 2, 1), Grid(2, 2, 1))] == [2, 3, 5]


def test_what_has_no_fixed_point_form_is_refused() -> None:
    with pytest.raises(BuildRefused, match="this net has hard attention"):
        FixedNet(copycat(), GRIDS[0])
    with pytest.raises(BuildRefused, match="sparsemax attention, a layer norm, a growing residual stream"):
        FixedNet(random_net(mixed(residual="concatenate", norm=True)), GRIDS[0])
    with pytest.raises(InputError, match="words of 1 to 32 letters, not 33"):
        finite_precision_circuit(FixedNet(drawn(0), GRIDS[0]), 33)
    wide = replace(drawn(0).architecture, blocks=(Block((Head("softmax"),) * 4, d_head=1, d_value=2),))
    with pytest.raises(BuildRefused, match="the heads of block 0 have more than 20000 outputs: take a coarser grid"):
        finite_precision_circuit(FixedNet(random_net(wide), Grid(5, 3, 3)), 4)
