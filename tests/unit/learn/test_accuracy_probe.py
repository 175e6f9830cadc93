"""Answers to rows of other sandboxes, and rows that begin anywhere: against counts by hand and sliced tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from at_once import first, logits, rows
from vitrify.errors import InputError
from vitrify.learn.evaluation import accuracy_on, all_right
from vitrify.learn.models.recurrent import RecurrentFamily
from vitrify.learn.models.transformer import TransformerFamily, sloped
from vitrify.learn.plan import plan
from vitrify.learn.program import TrainingProgram
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.copying import CopyingSandbox
from vitrify.sandboxes.majority import Majority
from vitrify.sandboxes.parity import Parity

SMALL = TransformerFamily(layers=1, heads=2, d_model=8, units=8, max_positions=13)


def made(family: Any, sandbox: Any) -> tuple[Any, dict[str, Any]]:
    net = family.architecture(sandbox)
    return net, family.arrays(net, first(family, net, 3))


@pytest.mark.parametrize("family", [SMALL, RecurrentFamily(state=8, d_embed=4)])
def test_a_net_is_asked_about_longer_words_by_their_length(family: Any) -> None:
    longer = Majority(1, 12)
    net, arrays = made(family, Majority(1, 4))
    row = rows(longer, 0, "test", 0, 192)
    said = np.asarray(logits(family, net, longer, arrays, row)).argmax(axis=-1)
    right, total = np.zeros(14), np.zeros(14)
    for number, at in enumerate(np.asarray(row.latent["length"])):
        right[at] += said[number, at + 1] == row.targets[number, at + 1]
        total[at] += 1
    by_length, of_all = accuracy_on(family, longer, 192, by="length", bins=14), accuracy_on(family, longer, 192)
    found, whole = jax.jit(lambda a, r: (by_length(net, a, r, {}), of_all(net, a, r, {})))(arrays, row)
    assert np.isnan(found[0])
    assert np.isnan(found[13])
    assert np.allclose(found[1:13], right[1:13] / total[1:13])
    assert whole == pytest.approx(right.sum() / 192)


def test_a_row_is_right_where_all_that_counts_is() -> None:
    logits = jnp.eye(2)[jnp.array([[0, 1, 1], [0, 1, 0], [1, 0, 0]])]
    row = Example(
        jnp.zeros((3, 3), int),
        jnp.array([[0, 0, 1, 1], [1, 0, 1, 1], [0, 1, 1, 1]]),
        jnp.array([[0, 1, 1, 1.0]] * 2 + [[0, 1, 0, 0]]),
        {},
    )
    assert all_right(logits, row).tolist() == [1, 0, 1]


@pytest.mark.slow
def test_a_probe_is_one_of_training() -> None:
    probe = accuracy_on(SMALL, Majority(5, 12), 64)
    (run,) = train(
        SMALL,
        Majority(1, 4),
        recipe=Recipe(steps=2, batch=4, test_examples=64, evals_per_doubling=0),
        probes={"far": probe},
    )
    assert 0 <= run.last["far"] <= 1


def test_what_does_not_fit_is_refused() -> None:
    net, arrays = made(SMALL, Majority(1, 4))
    row = rows(Majority(1, 4), 0, "test", 0, 2)
    with pytest.raises(InputError, match="room for 13 tokens, and sequences have 14"):
        accuracy_on(SMALL, Majority(1, 13), 64)(net, arrays, row, {})
    for other in (Parity(1, 4), CopyingSandbox(2, 1, 4)):
        with pytest.raises(InputError, match="not made for the symbols and answers"):
            accuracy_on(SMALL, other, 64)(net, arrays, row, {})
    with pytest.raises(InputError, match="multiple of it, not 100"):
        accuracy_on(SMALL, Majority(1, 4), 100)


def test_a_row_that_begins_later_reads_a_later_part_of_the_table() -> None:
    box = Majority(1, 4)
    net, arrays = made(SMALL, box)
    row = rows(box, 0, "train", 0, 3)
    start = jnp.array([0, 3, 8])
    found = logits(SMALL, net, box, arrays, row._replace(start=start))
    for number, place in enumerate(start.tolist()):
        table = arrays["pos_embed.W_pos"][place:]
        alone = jax.tree.map(lambda part, at=number: part[at : at + 1], row)
        shifted = logits(SMALL, net, box, arrays | {"pos_embed.W_pos": table}, alone)
        assert np.allclose(found[number], shifted[0], atol=1e-5)


def test_training_rows_begin_anywhere_that_leaves_room() -> None:
    box = Majority(2, 4)
    (group,) = plan(box, SMALL, Recipe(batch=512, random_offset=True), {}, 1)

    def drawn(group: Any) -> Example:
        row: Example = jax.jit(lambda: TrainingProgram(group)._rows(box, group.recipe, jnp.uint32(0), jnp.int32(7)))()
        return row

    row = drawn(group)
    assert row.start is not None
    last = np.asarray(row.start + row.latent["length"] + 1)
    assert int(row.start.min()) == 0
    assert last.max() == 13  # the place of the last question of all: BOS stands before the first token
    assert {*np.asarray(row.start).tolist()} == {*range(11)}
    (at_first,) = plan(box, SMALL, Recipe(batch=512), {}, 1)
    same = drawn(at_first)
    assert same.start is None
    assert np.array_equal(same.tokens, row.tokens)
    (recurrent,) = plan(box, RecurrentFamily(state=8, d_embed=4), Recipe(random_offset=True), {}, 1)
    assert drawn(recurrent).start is None


@pytest.mark.slow
def test_all_places_are_trained_by_rows_that_begin_anywhere() -> None:
    recipe = Recipe(steps=40, batch=32, test_examples=64, evals_per_doubling=0)
    for anywhere, trained in ((True, 14), (False, 6)):
        (run,) = train(SMALL, Majority(1, 4), recipe=replace(recipe, random_offset=anywhere))
        net = run.weights.architecture
        begun = SMALL.first(net, jax.random.key(0, impl="threefry2x32"))["pos_embed.W_pos"]
        moved = np.abs(np.asarray(run.weights.arrays["pos_embed.W_pos"]) - np.asarray(begun)).max(axis=1) > 0
        assert moved.tolist() == [True] * trained + [False] * (14 - trained)


def test_alibi_is_a_fixed_slope_in_every_head() -> None:
    assert sloped(2, 4).tolist() == [[0, -0.0625, -0.125, -0.1875], [0, -1 / 256, -2 / 256, -3 / 256]]
    family = replace(SMALL, positions="alibi")
    net, arrays = made(family, Majority(1, 4))
    assert "blocks.0.attn.b_rel" not in family.trained(net)
    assert np.array_equal(arrays["blocks.0.attn.b_rel"], sloped(2, 14))
    assert not np.asarray(arrays["pos_embed.W_pos"]).any()
