"""Finite precision against naive rational arithmetic, and its circuits against finite precision.

Softmax or hard attention that averages ties, and sums that are rounded once or after every addition.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from nets import mixed, random_arrays, random_net
from oracles.naive_fixed_point import naive_logits
from vitrify.bounds.ac0 import to_aiger
from vitrify.bounds.activations import read_answer
from vitrify.bounds.fixed_point import FixedNet, Grid, logarithmic
from vitrify.bounds.gates import all_words, input_bits
from vitrify.bounds.tc0 import BLOCK_DEPTH, depth_bound, finite_precision_circuit
from vitrify.claims.sums_rounded_after_each_addition_run_without_threshold_gates import majority
from vitrify.errors import BuildRefused, InputError
from vitrify.net.architecture import Output
from vitrify.net.cells import Cell
from vitrify.net.inference import batch_logits
from vitrify.net.transformer import Block, Head, Mask, Transformer
from vitrify.net.weights import Weights

GRIDS = [Grid(0, 2, 3), Grid(1, 1, 2), Grid(2, 2, 4)]
ROUNDED = [Grid(0, 3, 2, 1), Grid(1, 1, 2, 1), Grid(1, 2, 3, 2)]  # sums rounded after every addition


@st.composite
def small_nets(draw: st.DrawFn, widest: int = 2) -> Weights:
    """Small nets over two or three letters, of softmax or of hard attention that averages ties."""
    masks, windows = st.sampled_from(["none", "causal", "strict", "after"]), st.sampled_from([None, 2])
    kind, resolution = st.just(draw(st.sampled_from(["softmax", "hard"]))), st.sampled_from([0.0, 0.7])
    heads = st.builds(Head, kind, masks, windows, st.just("average"), resolution)
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
@given(small_nets(), st.sampled_from(GRIDS + ROUNDED), st.data())
@settings(max_examples=examples(90), deadline=None)
def test_finite_precision_is_what_rational_arithmetic_says(weights: Weights, grid: Grid, data: st.DataObject) -> None:
    letters = st.integers(1, len(weights.architecture.inputs) - 1)
    word = data.draw(st.lists(letters, min_size=1, max_size=4))
    found = FixedNet(weights, grid).run(np.array([word]))[0]
    unit = Fraction(1, 4**grid.fraction)
    assert [[logit * unit for logit in row] for row in found.tolist()] == naive_logits(weights, grid, word)


@pytest.mark.long
@given(small_nets() | small_nets(widest=1), st.sampled_from(GRIDS[:2] + ROUNDED[:2]), st.integers(1, 4))
@settings(max_examples=examples(90), deadline=None)
def test_a_circuit_says_the_same_as_its_net_on_every_word(weights: Weights, grid: Grid, length: int) -> None:
    fixed = FixedNet(weights, grid)
    made = finite_precision_circuit(fixed, length)
    words = all_words(made.letters, length)
    net = weights.architecture
    wanted = [read_answer("values", net.output.symbols, row) for row in fixed.run(words)[:, -1].tolist()]
    assert made.run(words) == wanted
    size = made.circuit.size
    assert size.depth <= depth_bound(fixed)
    assert not (grid.significant and size.thresholds)


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
    with pytest.raises(
        InputError, match=r"a top of 1 or more .* not Grid\(fraction=1, top=0, score=3, significant=None\)"
    ):
        Grid(1, 0, 3)
    for grid in ((20, 8, 3), (2, 2, 30)):
        with pytest.raises(BuildRefused, match="would not fit 64 bits"):
            Grid(*grid)
    name = "blocks.1.attn.beta"
    sharp = drawn(0).with_array(name, 1e6 * np.ones(1))
    FixedNet(sharp, Grid(2, 2, 4))
    with pytest.raises(BuildRefused, match=r"sums with blocks\.1\.attn\.beta would not fit 64 bits"):
        FixedNet(sharp, Grid(13, 20, 4))


def test_a_partial_sum_has_a_significant_bit() -> None:
    with pytest.raises(InputError, match="1 significant bit or more, not 0"):
        Grid(1, 1, 1, 0)


def test_values_of_a_partial_sum_are_those_that_additions_reach() -> None:
    for fraction, top, significant in product((0, 1, 2), (1, 2, 3, 5), (1, 2, 3)):
        grid = Grid(fraction, top, 1, significant)
        most, seen, queue = top << fraction, {0}, [0]
        for x in queue:
            new = set(grid.plus(np.array(x), np.arange(-most, most + 1)).tolist()) - seen
            seen |= new
            queue += new
        assert len(seen) == grid.partial_sums


def test_a_grid_for_a_length_has_logarithmically_many_bits() -> None:
    assert [logarithmic(n).fraction for n in (1, 2, 4, 5, 8, 9, 32)] == [0, 1, 2, 3, 3, 4, 5]
    assert logarithmic(16, digits=1, top=9, score=2) == Grid(5, 9, 6)


@pytest.mark.parametrize("longest", [6, 11])
def test_exact_means_of_two_layers_are_as_many_as_words(longest: int) -> None:
    """Without rounding, the number of vectors is no polynomial of the length."""
    for n in range(1, longest + 1):
        weights = [sum((Fraction(1, i) for i in range(j, n + 1)), Fraction(0)) for j in range(1, n + 1)]
        means = {
            sum((w * x for w, x in zip(weights, word, strict=True)), Fraction(0)) for word in product((0, 1), repeat=n)
        }
        assert len(means) == 2**n


@pytest.mark.parametrize("grid", [Grid(1, 4, 0), Grid(1, 4, 0, 2)])
@pytest.mark.parametrize("mask", ["none", "causal", "strict"])
def test_a_hard_head_averages_the_best_letters_only(grid: Grid, mask: Mask) -> None:
    """Letters of scores 0, 0 and 1, and of values 1, 3 and -2; BOS has score -1."""
    net = Transformer(
        inputs=("<s>", "a", "b", "c"),
        output=Output("values", ("mean",)),
        max_length=4,
        d_model=3,
        blocks=(Block((Head("hard", mask),), d_head=1, d_value=1),),
    )
    arrays = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["embed.W_E"][:, 0] = [-1, 0, 0, 1]
    arrays["embed.W_E"][:, 1] = [0, 1, 3, -2]
    for name, index in (("W_K", (0, 0, 0)), ("W_V", (0, 1, 0)), ("W_O", (0, 0, 2)), ("b_Q", (0, 0)), ("beta", 0)):
        arrays[f"blocks.0.attn.{name}"][index] = 1
    arrays["unembed.W_U"][2, 0] = 1
    weights = Weights(net, arrays)
    circuit = finite_precision_circuit(FixedNet(weights, grid), 4)
    words = all_words(3, 4)
    exact = batch_logits(weights, np.pad(words, ((0, 0), (1, 0))))[:, -1, 0]
    logits = FixedNet(weights, grid).run(words)[:, -1]
    assert grid.significant or np.array_equal(logits[:, 0] / 4, np.floor(2 * exact + 0.5) / 2)
    assert circuit.run(words) == [tuple(row) for row in logits.tolist()]


@pytest.mark.parametrize(("grid", "thresholds"), [(Grid(3, 2, 1), True), (Grid(3, 2, 1, 1), False)])
def test_who_counts_needs_threshold_gates(grid: Grid, thresholds: bool) -> None:
    """With exact sums the rounded mean is positive iff there are more ones, at every length; with rounded sums not."""
    fixed = FixedNet(majority(), grid)
    right = []
    for length in (7, 8, 24):
        circuit = finite_precision_circuit(fixed, length)
        words = all_words(2, length) if length < 9 else np.random.default_rng(0).integers(1, 3, (1000, length))
        answers = fixed.run(words)[:, -1].argmax(axis=-1)
        assert circuit.run(words) == [("no", "yes")[answer] for answer in answers]
        assert (circuit.circuit.size.thresholds > 0) == thresholds
        if not thresholds and length < 9:  # so that AIGER files can hold it
            bits = input_bits(words, 2)
            assert np.array_equal(to_aiger(circuit.circuit).evaluate(bits), circuit.circuit.evaluate(bits))
        right += (answers == (2 * (words == 2).sum(axis=1) > length)).tolist()
    assert all(right) == thresholds


def test_bits_of_a_grid() -> None:
    assert [grid.bits for grid in (Grid(0, 1, 1), Grid(0, 2, 1), Grid(2, 2, 1))] == [2, 3, 5]


def test_what_has_no_fixed_point_form_is_refused() -> None:
    plain = drawn(0).architecture
    turning = replace(plain, blocks=(Block((Head("softmax", rotary=10.0),), d_head=2, d_value=1),))
    celled = replace(plain, blocks=(Block((Head("softmax"),), d_head=2, d_value=1, cell=Cell("diagonal", 2)),))
    odd = {"blocks that run again": replace(plain, loops=2), "rotary heads": turning, "recurrent cells": celled}
    for part, net in odd.items():
        with pytest.raises(BuildRefused, match=part):
            FixedNet(random_net(net), GRIDS[0])
    one_sided = replace(drawn(0).architecture, blocks=(Block((Head("hard", ties="left"),), d_head=1, d_value=1),))
    with pytest.raises(BuildRefused, match="this net breaks them to one side: its circuit is made by hard_att"):
        FixedNet(random_net(one_sided), GRIDS[0])
    with pytest.raises(BuildRefused, match="sparsemax attention, a layer norm, a growing residual stream"):
        FixedNet(random_net(mixed(residual="concatenate", norm=True)), GRIDS[0])
    with pytest.raises(InputError, match="words of 1 to 32 letters, not 33"):
        finite_precision_circuit(FixedNet(drawn(0), GRIDS[0]), 33)
    wide = replace(drawn(0).architecture, blocks=(Block((Head("softmax"),) * 4, d_head=1, d_value=2),))
    with pytest.raises(BuildRefused, match="the heads of block 0 have more than 20000 outputs: take a coarser grid"):
        finite_precision_circuit(FixedNet(random_net(wide), Grid(5, 3, 3)), 4)
