"""Heads that average over named sets of positions, and heads that read some places away; ramps that add up."""

from __future__ import annotations

import numpy as np
import pytest

from cases import each
from tiny_nets import KINDS, ROUNDING, built, check_choice, held, letters, magnitudes, network, smallest_lead, where
from vitrify.errors import BuildRefused
from vitrify.kit.affine import Affine
from vitrify.kit.gadgets.steps import steps
from vitrify.kit.heads.position import at_position, earlier
from vitrify.kit.heads.sets import set_attend
from vitrify.kit.margins import margins
from vitrify.kit.network import Builder, Network, Space
from vitrify.kit.set_codes import set_code
from vitrify.net.spaces import Integers, Reals
from vitrify.net.transformer import AttentionKind

Word = tuple[int, ...]
SOME: list[Word] = [(1,), (2, 1), (1, 2, 2), (2, 1, 2, 1, 1, 2, 2), (1, 2, 1, 1, 2, 1, 2, 2, 1)]


@each("attention", KINDS)
@each("offset", [-9, -3, -1, 0, 1, 2, 8])
def test_places_on_both_sides(attention: AttentionKind, offset: int) -> None:
    net = Builder("place", letters(2), 9, attention)
    here = where(net)
    weights = built(net, at_position(net, earlier(net, -offset), Affine.copy(here), Space("x", here.kind), mask="none"))

    def choice(word: Word, t: int) -> list[int]:
        return [min(max(t + offset, 0), len(word))]  # BOS before the beginning, the last one beyond the end

    check_choice(weights, SOME, choice)
    assert smallest_lead(weights, SOME, choice, lambda word, _: range(len(word) + 1)) >= 1.0
    head = weights.labels.heads[0]
    assert head.gap == 1.0
    assert head.kappa is not None
    assert max(magnitudes(weights, word).max() for word in SOME) <= head.kappa


MEMBERS = np.array([[0, 4], [1, 2], [3, 8]])


def sets(attention: AttentionKind, beta: float = 20.0, accuracy: float = 1e-4) -> tuple[Builder, Space]:
    """A net whose letters name sets of two of nine positions, with random signs as keys."""
    net = Builder("sets", letters(3), 9, attention)
    code = set_code("signs", 9, MEMBERS, accuracy=accuracy)
    labels = tuple(map(str, range(code.keys.shape[1])))
    size = float(np.abs(code.queries).max())
    query = net.embed("set", Reals(labels, -size, size), np.vstack([np.zeros(len(labels)), code.queries]))
    key = net.embed_position("key", Reals(labels, -1.0, 1.0), code.keys)
    value = net.embed_position("place", Reals(("p",), 0.0, 1.0), np.arange(1.0, 10)[:, None] / 9)
    writes = Space("mean", Reals(("p",), 0.0, 1.0))
    return net, set_attend(net, query, key, value, writes, scores=code.exact_scores, beta=beta)


@pytest.mark.parametrize("attention", KINDS)
def test_a_set_is_averaged_within_the_stated_error(attention: AttentionKind) -> None:
    weights = built(*sets(attention), need=0.1)
    error = weights.labels.space("mean").error
    words: list[Word] = [(1,) * 9, (2,) * 9, (3,) * 9, (1, 2, 3, 3, 2, 1, 1, 2, 3)]
    worst = 0.0
    for word, rows in zip(words, held(weights, words), strict=True):
        wanted = [(MEMBERS[letter - 1] + 1).mean() / 9 for letter in word]
        worst = max(worst, float(np.abs(rows[1:, 0] - wanted).max()))
    assert worst <= error + ROUNDING
    assert error < 0.02
    assert attention != "softmax" or worst > error / 1000  # not an idle bound


def test_what_a_set_head_states_grows_with_what_it_leaks() -> None:
    def error(attention: AttentionKind, beta: float, accuracy: float = 1e-4) -> float:
        network_of = _network(*sets(attention, beta, accuracy))
        return next(e for space, e in margins(network_of).errors.items() if space.name == "mean")

    assert error("softmax", 10.0, 1e-8) > 5 * error("softmax", 16.0, 1e-8)
    assert error("sparsemax", 10.0, 1e-4) > 5 * error("sparsemax", 10.0, 1e-6)
    assert error("hard", 10.0) < 1e-12


def _network(net: Builder, read: Space) -> Network:
    return network(net, read, need=10.0)


@pytest.mark.parametrize("attention", KINDS)
def test_sets_without_a_gap_are_refused(attention: AttentionKind) -> None:
    net = Builder("sets", letters(1), 9, attention)
    code = set_code("signs", 9, np.array([[0, 4]]), accuracy=1e-4, width=1)
    query = net.embed("set", Reals(("0",), -1.0, 1.0), np.vstack([np.zeros(1), code.queries]))
    key = net.embed_position("key", Reals(("0",), -1.0, 1.0), code.keys)
    with pytest.raises(BuildRefused, match="take another code of sets"):
        set_attend(net, query, key, key, Space("mean", key.kind), scores=code.exact_scores, beta=9.0)


def test_ramps_add_up() -> None:
    net = Builder("steps", letters(4), 4)
    table = np.array([[0, 0, 0], [0, 1, 2], [3, 3, 1], [2, 2, 2], [5, 0, 3]], dtype=float)
    given = net.embed("x", Integers(("a", "b", "c"), 0.0, 5.0), table)
    hits = Space("hits", Integers(("n",), 0.0, 3.0))
    points, values = np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    steps(net, given, points, [(hits, values)], name="in 0, 2, 3", each=True, total=True)
    weights = built(net, hits)
    (rows,) = held(weights, [(1, 2, 3, 4)])
    assert np.allclose(rows[:, 0], [3, 2, 2, 3, 2])
    assert weights.architecture.units_per_layer == (3 * 2 * 3,)
