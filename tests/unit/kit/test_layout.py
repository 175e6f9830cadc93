"""Layout: dimensions are used again once their space is dead, and only then. The laws are in `property/`."""

from __future__ import annotations

import numpy as np
import pytest

from tiny_nets import EXACT, built, held, letters, network, words
from vitrify.kit.gadgets.steps import digits, int_lookup, snap
from vitrify.kit.gadgets.table import table
from vitrify.kit.heads.average import mean
from vitrify.kit.heads.shift import shift
from vitrify.kit.layout import lay_out
from vitrify.kit.network import Builder, Space
from vitrify.kit.positions import position_code
from vitrify.kit.schedule import schedule
from vitrify.net.inference import trace
from vitrify.net.spaces import Flag, Integers, OneHot, Reals
from vitrify.net.weights import Weights


def chain(links: int, reuse: bool) -> Weights:
    """A one-hot goes through so many permutations."""
    net = Builder("chain", letters(3), 2, "hard")
    x = net.embed("x", OneHot(letters(3)), np.eye(4))
    for link in range(links):
        out = np.roll(np.eye(4), 1, axis=1)
        x = table(net, [x], np.arange(4)[:, None], Space(f"x{link}", x.kind), out)
    return built(net, x, reuse=reuse)


def test_the_width_of_a_chain_does_not_depend_on_its_length() -> None:
    assert [chain(links, reuse=True).architecture.d_model for links in (1, 2, 3, 8)] == [4, 4, 4, 4]
    assert [chain(links, reuse=False).architecture.d_model for links in (1, 2, 3, 8)] == [8, 12, 16, 36]
    for links in (1, 2, 3, 8):
        expected = np.roll(np.eye(4), links, axis=1)[[0, 1, 3]]
        for reuse in (True, False):
            assert np.abs(held(chain(links, reuse), [(1, 3)])[0] - expected).max() < EXACT


def test_erasing_costs_one_unit_per_dimension() -> None:
    assert [block.units for block in chain(3, reuse=True).architecture.blocks] == [8, 8, 8]
    assert [block.units for block in chain(3, reuse=False).architecture.blocks] == [4, 4, 4]


def test_what_a_head_reads_last_is_erased_by_the_mlp_of_its_block() -> None:
    net = Builder("shifts", letters(2), 4, "hard")
    x = net.embed("x", OneHot(letters(2)), np.eye(3))
    code = position_code("dyadic", 4, [1])
    place = net.embed_position("position", code.kind(), code.table())
    for number in range(3):
        x = shift(net, x, 1, code, place, name=f"x{number}")
    made = network(net, x, reuse=True)
    plan = schedule(made)
    found = lay_out(plan)
    sizes = {space.name: space.size for space in made.spaces}
    assert found.width == sizes["position"] + sizes["bos"] + 2 * sizes["x"]  # old and new stand side by side
    names = {space.name: dims for space, dims in found.dims.items()}
    assert names["x"] == names["x1"]
    assert names["x0"] == names["x2"]
    assert {erasure.block for erasure in found.erasures} == {0, 1}
    assert lay_out(plan, reuse=False).erasures == ()


def test_spaces_that_nobody_reads_stay_out_of_the_way() -> None:
    """Two digits are written at once and only one is read; later spaces must not fall on the other."""
    for read in (0, 1):
        net = Builder("unread", letters(4), 2, "hard")
        mixture = np.array([[0.0], [0.0], [1 / 3], [1.0], [4 / 3]])
        x = net.embed("x", Reals(("x",), 0.0, 2.0), mixture)
        ds = digits(net, x, 3.0, ["high", "low"], OneHot(("only",)))
        y = mean(net, ds[read], name="y")
        z = snap(net, ds[read], name="z")
        weights = built(net, y, z, need=1e-9, reuse=True)
        bits = np.array([[0, 0], [0, 0], [0, 1], [1, 0], [1, 1]])[:, read]
        for word, rows in zip(words(4, 2), held(weights, words(4, 2)), strict=True):
            seen = bits[[0, *word]]
            assert np.abs(rows[:, 0] - np.cumsum(seen) / np.arange(1, len(seen) + 1)).max() < EXACT
            assert np.abs(rows[:, 1] - seen).max() < EXACT
        run = trace(weights, ["c", "b"])
        assert np.abs(run.space("low")[1:, 0] - [0, 1]).max() < EXACT
        assert np.abs(run.space("high")[1:, 0] - [1, 0]).max() < EXACT


@pytest.mark.parametrize("low", [-7.0, 0.0, 5.0])
def test_a_space_is_erased_where_it_is_void_too(low: float) -> None:
    """Numbers from 5 on are 0 at BOS; their dimension must be clean for the next tenant there as well."""
    net = Builder("void", letters(2), 2, "hard")
    number = net.embed("number", Integers(("n",), low, low + 1), np.array([[0.0], [low], [low + 1]]))
    flag = int_lookup(net, number, lambda n: np.array([float(n > low)]), Space("flag", Flag()))
    at_bos = float(low < 0)
    weights = built(net, snap(net, flag, name="again"), reuse=True)
    assert weights.architecture.d_model == 1
    assert np.abs(held(weights, [(1, 2)])[0] - [[at_bos], [0], [1]]).max() < EXACT


def test_what_the_readout_reads_is_never_erased() -> None:
    net = Builder("kept", letters(2), 2, "hard")
    flag = net.embed("flag", Flag(), np.array([[0.0], [0.0], [1.0]]))
    x = snap(net, snap(net, snap(net, flag, name="x"), name="y"), name="z")
    weights = built(net, flag, x, reuse=True)
    assert np.abs(held(weights, [(2, 1)])[0] - [[0, 0], [1, 1], [0, 0]]).max() < EXACT
