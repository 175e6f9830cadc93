"""How far layers move when productions are exchanged: on a net whose layers are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

import at_once
from vitrify.learn.models.hierarchical import HierarchicalFamily
from vitrify.learn.resampling import moved
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.hierarchy import HierarchySandbox

BOX = HierarchySandbox(v=5, m=3, L=2, mode="classify", grammars=2)


def test_leaves_move_alike_and_what_holds_the_symbols_does_not_move() -> None:
    def layers(arrays: Mapping[str, Any], row: Example) -> list[Any]:
        hidden = jax.nn.one_hot(row.latent["symbols 1"], BOX.v)
        return [jax.nn.one_hot(row.tokens, BOX.v), hidden * arrays["size"]]

    found = moved(BOX, layers, count=400)({"size": np.float32(3.0)}, 1)
    assert found.shape == (2, 2)
    assert 0.7 < found[0, 0] < 1.3
    assert found[0, 1] == 0  # a production of height 1 leaves the symbols of height 1 as they are
    assert 0.7 < found[1, 1] < 1.3  # one of height 2 does not


def test_a_net_may_read_the_places_in_another_order() -> None:
    straight, mixed = HierarchicalFamily(channels=3), HierarchicalFamily(channels=3, order=2)
    net, row = straight.architecture(BOX), at_once.rows(BOX, 0, "test", 0, 4)
    one, other = (np.asarray(family.inputs(net, BOX, row)) for family in (straight, mixed))
    order = [int(np.flatnonzero((one == other[..., [k]]).all(axis=(0, 1, 2)))[0]) for k in range(net.columns)]
    assert sorted(order) == list(range(net.columns)) != order
