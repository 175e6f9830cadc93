"""The bound on the influence of a letter against what letters really do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from examples import examples
from nets import copycat, mixed, random_arrays, random_net
from vitrify.bounds.gates import all_words
from vitrify.bounds.lipschitz import influence, logit_moves, measured
from vitrify.constructions.commutative import commutative
from vitrify.constructions.counting import counting
from vitrify.constructions.ngram import ngram
from vitrify.constructions.parity import margin, parity
from vitrify.errors import BuildRefused, InputError
from vitrify.kit import assemble
from vitrify.net.architecture import Output
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic
from vitrify.spec.logic.crasp import majority
from vitrify.spec.ngrams.families import random_ngram

ROUNDING = 1e-9


@st.composite
def soft_nets(draw: st.DrawFn) -> Weights:
    """Softmax nets of any masks and windows, with weights from tiny to large."""
    masks = st.sampled_from(["none", "causal", "strict", "after"])
    heads = st.builds(Head, st.just("softmax"), masks, st.sampled_from([None, None, 2]))
    block = st.builds(
        Block,
        heads=st.lists(heads, max_size=2).map(tuple),
        d_head=st.integers(0, 2),
        d_value=st.integers(1, 2),
        units=st.sampled_from([0, 3]),
    )
    net = Transformer(
        inputs=("<s>", "a", "b", "c")[: draw(st.integers(3, 4))],
        output=Output("values", ("x", "y")),
        max_length=5,
        d_model=3,
        blocks=tuple(draw(st.lists(block, min_size=1, max_size=3))),
        pads=draw(st.integers(1, 2)),
    )
    arrays = random_arrays(net, draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([0.1, 0.5, 1.0, 4.0]))
    return Weights(net, {name: scale * array for name, array in arrays.items()})


@pytest.mark.long
@given(soft_nets(), st.integers(1, 4))
@settings(max_examples=examples(100), deadline=None)
def test_no_letter_moves_a_logit_by_more_than_the_bound(weights: Weights, length: int) -> None:
    words = all_words(len(weights.architecture.inputs) - 1, length)
    bound = logit_moves(weights, length)
    for place in range(length):
        assert measured(weights, words, place) <= bound[place].max() * (1 + ROUNDING) + ROUNDING


BUILT = {
    "parity, two layers": assemble(parity(cyclic(2), max_length=7)),
    "parity, counter": assemble(commutative(cyclic(2), max_length=7)),
    "majority": assemble(counting(majority("a", "ab", 7))),
    "3-gram": assemble(ngram(random_ngram(2, 3, seed=1), max_length=7)),
}


@each("name", BUILT)
def test_the_bound_holds_for_built_nets(name: str) -> None:
    weights, words = BUILT[name], all_words(2, 7)
    bound = logit_moves(weights, 7).max(axis=-1)
    for place in range(7):
        assert measured(weights, words, place) <= bound[place] * (1 + ROUNDING) + ROUNDING
    found = influence(weights, 7)
    assert (found.own, found.others) == (bound[6], bound[:6].max())


def test_the_bound_is_reached_by_one_uniform_head() -> None:
    """Each of n + 1 keys has weight 1 / (n + 1): a letter moves the mean of its value by exactly that."""
    net = Transformer(
        inputs=("<s>", "0", "1"),
        output=Output("values", ("mean",)),
        max_length=50,
        d_model=2,
        blocks=(Block((Head("softmax", "none"),), d_head=1, d_value=1),),
    )
    arrays = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["embed.W_E"][2, 0] = 3.0
    arrays["blocks.0.attn.W_V"][0, 0, 0] = arrays["blocks.0.attn.W_O"][0, 0, 1] = arrays["unembed.W_U"][1, 0] = 1.0
    weights = Weights(net, arrays)
    for length in (1, 2, 10, 50):
        assert logit_moves(weights, length)[:, 0] == pytest.approx(3.0 / (length + 1))


def moving_scores(length: int, query: float, key: float) -> Weights:
    """A head whose values depend on places only; a letter 1 adds to its own query or to its own key.

    Dimensions: query, key, value, result. Places have the values 1 and -1 in turn, and these are their keys, too.
    """
    net = Transformer(
        inputs=("<s>", "0", "1"),
        output=Output("values", ("mean",)),
        max_length=length,
        d_model=4,
        blocks=(Block((Head("softmax", "none"),), d_head=1, d_value=1),),
    )
    arrays = {name: np.zeros(shape) for name, shape in net.shapes().items()}
    arrays["embed.W_E"][2, :2] = query, key
    arrays["pos_embed.W_pos"][:, 2] = (-1.0) ** np.arange(length + 1)
    name = "blocks.0.attn."
    arrays[f"{name}W_Q"][0, 0, 0] = arrays[f"{name}beta"][0] = 1.0
    arrays[f"{name}b_Q"][0, 0] = 1.0 if key else 0.0
    arrays[f"{name}W_K"][0, 2 if query else 1, 0] = 1.0
    arrays[f"{name}W_V"][0, 2, 0] = arrays[f"{name}W_O"][0, 0, 3] = arrays["unembed.W_U"][3, 0] = 1.0
    return Weights(net, arrays)


def test_the_bound_is_nearly_reached_where_only_a_key_moves() -> None:
    """The weight of one key grows by about 0.01/20, and its value is 1 away from the mean: the bound loses little."""
    weights = moving_scores(19, 0.0, 0.01)
    bound = logit_moves(weights, 19)
    for place in (0, 7, 18):
        found = measured(weights, np.ones((1, 19), dtype=np.int64), place)
        assert found <= bound[place, 0] <= 2.2 * found


def test_the_bound_is_nearly_reached_where_only_a_query_moves() -> None:
    """Half of the keys get better and half get worse by 0.01: the mean moves by tanh 0.01."""
    weights = moving_scores(19, 0.01, 0.0)
    found = measured(weights, np.ones((1, 19), dtype=np.int64), 18)
    assert found == pytest.approx(np.tanh(0.01))
    moves = logit_moves(weights, 19)[:, 0]
    assert found <= moves[18] <= 2.2 * found
    assert not moves[:18].any()


def test_the_influence_falls_like_one_over_n() -> None:
    net = Transformer(
        inputs=("<s>", "a", "b"),
        output=Output("class", ("no", "yes")),
        max_length=256,
        d_model=3,
        blocks=(Block((Head("softmax", "none"),), d_head=2, d_value=2, units=3),) * 2,
    )
    arrays = {name: 0.5 * array for name, array in random_arrays(net, 1).items()}
    arrays["pos_embed.W_pos"][:] = 0.0
    bounds = [influence(Weights(net, arrays), length).others for length in (64, 128, 256)]
    assert bounds[1] / bounds[0] == pytest.approx(0.5, rel=0.05)
    assert bounds[2] / bounds[1] == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize("length", [8, 64])
def test_the_lead_of_parity_is_below_the_bound(length: int) -> None:
    """One letter turns the answer around: it moves the lead by the sum of two leads, and that is within the bound."""
    found = influence(assemble(parity(cyclic(2), max_length=length)), length)
    assert 2 * margin(length, 1.0, 1) < 2 * found.others


def test_other_nets_are_refused() -> None:
    with pytest.raises(BuildRefused, match="this net has hard attention"):
        influence(copycat(), 3)
    with pytest.raises(BuildRefused, match="a layer norm"):
        influence(random_net(mixed(residual="add", norm=True)), 3)
    with pytest.raises(InputError, match="words of 1 to 7 letters, not 8"):
        influence(BUILT["majority"], 8)
