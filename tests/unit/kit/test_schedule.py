"""Scheduling: what depends on nothing shares a layer, chains get consecutive ones, heads and units alternate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tiny_nets import letters, network
from vitrify.kit.gadgets.steps import snap, step
from vitrify.kit.heads.average import mean
from vitrify.kit.heads.match import lookup
from vitrify.kit.network import Builder, Network, Space
from vitrify.kit.schedule import schedule
from vitrify.net.spaces import Flag, Integers


def start(length: int = 4) -> tuple[Builder, Space]:
    net = Builder("schedule", letters(2), length)
    return net, net.embed("flag", Flag(), np.array([[0.0], [0.0], [1.0]]))


def moments(net: Network) -> list[int]:
    plan = schedule(net)
    return [plan.moments[operation] for operation in net.operations]


def test_independent_operations_share_a_layer() -> None:
    net, flag = start()
    heads = [mean(net, flag, name=f"mean {i}") for i in range(3)]
    units = [snap(net, flag, name=f"snap {i}") for i in range(3)]
    made = network(net, *heads, *units)
    assert moments(made) == [1, 1, 1, 2, 2, 2]
    assert schedule(made).blocks == 1


def test_a_chain_of_heads_skips_the_mlps_and_a_chain_of_units_the_attentions() -> None:
    net, flag = start()
    a = mean(net, mean(net, mean(net, flag, name="1"), name="2"), name="3")
    b = snap(net, snap(net, snap(net, flag, name="4"), name="5"), name="6")
    made = network(net, a, b)
    assert moments(made) == [1, 3, 5, 2, 4, 6]
    assert schedule(made).blocks == 3
    assert schedule(made).end == 7


def test_heads_and_units_alternate_within_a_block() -> None:
    net, flag = start()
    x = mean(net, flag, name="1")
    x = step(net, x, 0.5, 0.1, name="2")
    x = mean(net, x, name="3")
    y = step(net, flag, 0.5, 0.1, name="4")
    z = mean(net, y, name="5")
    made = network(net, x, z)
    assert moments(made) == [1, 2, 3, 2, 3]
    plan = schedule(made)
    assert plan.blocks == 2
    assert plan.born == dict(zip(made.spaces, (0, 1, 2, 3, 2, 3), strict=True))
    assert plan.last_read == dict(zip(made.spaces, (2, 2, 3, 5, 3, 5), strict=True))  # the readout reads at the end


def test_an_operation_waits_for_the_last_of_its_inputs() -> None:
    net, flag = start()
    late = snap(net, flag, name="late")
    made = network(net, lookup(net, late, flag, flag, name="x"), lookup(net, flag, flag, flag, name="y"))
    assert moments(made) == [2, 3, 1]


def test_without_operations_there_are_no_blocks() -> None:
    net, flag = start()
    plan = schedule(network(net, flag))
    assert (plan.blocks, plan.end) == (0, 1)


def test_a_space_is_written_once() -> None:
    net, flag = start()
    snap(net, flag, name="x")
    with pytest.raises(ValueError, match="the space 'x' is written twice"):
        schedule(network(net, snap(net, flag, name="x")))


def test_an_embedded_space_is_written_once_too() -> None:
    net, flag = start()
    net.embed("flag", Flag(), np.ones((3, 1)))
    with pytest.raises(ValueError, match="the space 'flag' is written twice"):
        schedule(network(net, flag))


def test_two_spaces_have_two_names() -> None:
    net, flag = start()
    net.embed_position("flag", Integers(("n",), 0.0, 4.0), np.ones((4, 1)))
    with pytest.raises(ValueError, match="the space 'flag' is written twice"):
        schedule(network(net, flag))


def test_a_space_is_written_before_it_is_read() -> None:
    net, _ = start()
    with pytest.raises(ValueError, match="'snap: y' reads the space 'x', which nothing has written before"):
        schedule(network(net, snap(net, Space("x", Flag()), name="y")))


def test_gathered_heads_of_one_nesting_work_at_one_moment() -> None:
    net, flag = start()
    x = mean(net, flag, name="early")
    y = mean(net, snap(net, snap(net, flag, name="1"), name="2"), name="late")
    z = mean(net, step(net, x, 0.5, 0.1, name="3"), name="above early")
    made = network(net, x, y, z)
    assert moments(made) == [1, 2, 4, 5, 2, 3]
    assert moments(replace(made, gather=True)) == [5, 2, 4, 5, 6, 7]
