"""Heads that recall what is stored for a token, units in given directions, and banks of heads that select."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tiny_nets import KINDS, ROUNDING, built, held, letters, network, words
from vitrify.kit.gadgets.features import features
from vitrify.kit.heads.recall import Store, recall
from vitrify.kit.heads.shift import itself
from vitrify.kit.margins import margins
from vitrify.kit.memory import random_codes
from vitrify.kit.network import Affine, Attend, Bank, Builder, Space, heads_of
from vitrify.net.spaces import OneHot, Reals
from vitrify.net.transformer import AttentionKind

CODES = random_codes(np.random.default_rng(0), 5, 6)  # a b c d e; a and b are in one store, c and d in another
CONTENTS = np.random.default_rng(1).standard_normal((4, 3))


def numbers(size: int, most: float = 1.0) -> Reals:
    return Reals(tuple(map(str, range(size))), -most, most)


def recalling(attention: AttentionKind, length: int = 4) -> tuple[Builder, Space]:
    net = Builder("recall", letters(5), length, attention)
    code = net.embed("code", numbers(6), np.vstack([np.zeros(6), CODES]))
    table = np.zeros((6, 2))
    table[1:3, 0] = table[3:5, 1] = 1.0
    kinds = net.embed("kind", OneHot(("one", "two"), void=True), table)
    stores = [Store("one", CODES[:2], CONTENTS[:2]), Store("two", CODES[2:4], CONTENTS[2:])]
    return net, recall(net, code, kinds, stores, Space("recalled", numbers(3, 9.0)))


@pytest.mark.parametrize("attention", KINDS)
def test_what_is_stored_for_the_token_of_each_store_adds_up(attention: AttentionKind) -> None:
    net, out = recalling(attention)
    weights = built(net, out)
    proved = next(label.error for label in weights.labels.spaces if label.name == "recalled")
    asked = [w for w in words(5, 4) if sum(t in (1, 2) for t in w) <= 1 and sum(t in (3, 4) for t in w) <= 1]
    for word, found in zip(asked, held(weights, asked), strict=True):
        for length, row in enumerate(found):
            wanted = sum((CONTENTS[token - 1] for token in word[:length] if token < 5), np.zeros(3))
            assert np.abs(row - wanted).max() <= proved + ROUNDING
    assert proved <= 1e-6
    block = weights.architecture.blocks[0]
    assert (len(block.heads), block.d_value) == (2, 2)


def test_leaks_of_the_heads_of_a_bank_add_up_and_share_what_may_be_lost() -> None:
    net, out = recalling("softmax", length=9)
    made = network(net, out, need=1e-4)
    found = margins(made)
    (bank,) = made.operations
    assert isinstance(bank, Bank)
    leaks = []
    for number, head in enumerate(heads_of(bank)):
        sharp = found.heads[head]
        contents = np.abs(np.linalg.pinv(CODES[2 * number : 2 * number + 2]) @ CONTENTS[2 * number : 2 * number + 2])
        assert sharp.tolerance == 1e-4 / 2 / 2
        assert sharp.beta_min is not None
        assert sharp.beta >= math.log(2 * contents.sum(axis=0).max() * 9 / sharp.tolerance) / 0.5 - 1e-9
        leaks.append(sharp.leak)
        assert sharp.leak > 0
    assert found.errors[out] == pytest.approx(sum(leaks), rel=1e-3)
    assert found.errors[out] <= 1e-4 / 2


def test_a_bank_passes_needs_on_to_what_its_selecting_heads_read() -> None:
    net = Builder("two steps", letters(2), 4, "softmax")
    code = net.embed("code", numbers(2), np.eye(3)[:, 1:])
    kinds = net.embed("kind", OneHot(("one",), void=True), np.array([[0.0], [1.0], [0.0]]))
    key = Affine.of({kinds: [[1.0, 0.0]], net.bos: [[0.0, 1.0]]})
    query = Affine.constant([1.0, 0.5])
    soft = Space("soft", numbers(2))
    head = {"query": query, "key": key, "attention": "softmax", "gap": 0.5, "bound": 1.0}
    net.add(Attend("first", value=Affine.copy(code), writes=soft, **head))  # type: ignore[arg-type]
    out = Space("out", numbers(2, 20.0))
    second = Attend("second", value=Affine.copy(soft), writes=out, out=10.0 * np.eye(2), **head)  # type: ignore[arg-type]
    net.add(Bank("bank", (second,), out, (second.written,), 0.0, 0.0))
    made = network(net, out, need=1e-3)
    found = margins(made)
    first = found.heads[heads_of(made.operations[0])[0]]
    assert first.tolerance == pytest.approx(1e-3 / (2 * 10) / 2)
    assert found.errors[soft] * 10 <= found.errors[out] <= 1e-3


@pytest.mark.parametrize("attention", KINDS)
def test_itself_reads_its_own_position_through_a_matrix(attention: AttentionKind) -> None:
    net = Builder("itself", letters(5), 3, attention)
    code = net.embed("code", numbers(6), np.vstack([np.zeros(6), CODES]))
    matrix = np.random.default_rng(2).standard_normal((6, 3))
    out = itself(net, Affine.of({code: matrix}), Space("out", numbers(3, 20.0)))
    asked = words(5, 3)
    for word, found in zip(asked, held(built(net, out), asked), strict=True):
        wanted = np.vstack([np.zeros(6), CODES])[[0, *word]] @ matrix
        assert np.abs(found - wanted).max() <= ROUNDING


def test_features_are_centred_units_read_out() -> None:
    net = Builder("features", letters(5), 1)
    code = net.embed("code", numbers(6), np.vstack([np.zeros(6), CODES]))
    rng = np.random.default_rng(3)
    directions, center, readout = rng.standard_normal((6, 7)), rng.random(7), rng.standard_normal((7, 3))
    out = features(net, code, directions, center, readout, Space("out", numbers(3, 99.0)))
    made = network(net, out)
    asked = words(5, 1)
    for word, found in zip(asked, held(built(net, out), asked), strict=True):
        x = np.vstack([np.zeros(6), CODES])[[0, *word]]
        wanted = (np.where(x @ directions > 0, x @ directions, 0) - center) @ readout
        assert np.abs(found - wanted).max() <= ROUNDING
    (units,) = made.operations
    step = 1e-3 * rng.choice([-1.0, 1.0], size=(500, 6))
    moved = np.maximum((CODES[0] + step) @ directions, 0) @ readout - np.maximum(CODES[0] @ directions, 0) @ readout
    assert np.abs(moved).max() <= 1e-3 * units.gain[code] < 100 * np.abs(moved).max()  # type: ignore[union-attr]
