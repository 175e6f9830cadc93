"""Assembly: same network, same bytes; labels that name every part once; dense and sparse matrices alike."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from cases import each
from tiny_nets import KINDS, built, held, letters, network, random_words, words
from vitrify.kit import assemble as assemble_from_the_door
from vitrify.kit.assembly import assemble
from vitrify.kit.gadgets.gate import gate
from vitrify.kit.gadgets.steps import int_lookup, snap
from vitrify.kit.gadgets.table import table
from vitrify.kit.heads.average import mean, window
from vitrify.kit.heads.match import last_marked
from vitrify.kit.heads.shift import shift
from vitrify.kit.network import Builder, Network, Space
from vitrify.kit.positions import position_code
from vitrify.net import sparse as storage
from vitrify.net.inference import trace
from vitrify.net.spaces import Flag, Integers, OneHot
from vitrify.net.sparse import dense, is_sparse
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights

LENGTH = 6


def busy(attention: AttentionKind = "softmax", reuse: bool = True) -> Network:
    """A net with several heads and gadgets per layer, three blocks deep."""
    net = Builder("busy", letters(2), LENGTH, attention, pads=2)
    token = net.embed("token", OneHot(letters(2)), np.eye(3))
    code = position_code("dyadic", LENGTH, [1, 2])
    place = net.embed_position("position", code.kind(), code.table())
    slots = [shift(net, token, back, code, place, name=f"slot {back}") for back in (0, 1, 2)]
    share = mean(net, token, name="share")
    mixed = window(net, token, [1.0, 1.0], name="mixed")
    rows = np.array([[1, 1], [2, -1]])
    hit = table(net, slots[:2], rows, Space("hit", Flag()), np.ones((2, 1)), snap=True, rows=("a a", "b"))
    kept = gate(net, hit, slots[2], name="kept")
    where = last_marked(net, hit, net.index, name="where")
    parity = int_lookup(net, where, lambda n: np.eye(2)[n % 2], Space("parity", OneHot(("even", "odd"))))
    return network(net, kept, share, mixed, parity, reuse=reuse)


@each("attention", KINDS)
@each("reuse", [True, False])
def test_the_same_network_gives_the_same_bytes(attention: AttentionKind, reuse: bool) -> None:
    first, second = assemble(busy(attention, reuse)), assemble(busy(attention, reuse))
    assert first.digest == second.digest
    assert first.labels == second.labels
    assert assemble(busy(attention, not reuse)).digest != first.digest


def test_a_builder_gives_the_same_network_twice() -> None:
    """Also where it switches units off at BOS: they are not switched off a second time."""
    net = Builder("void", letters(2), LENGTH, void=True)
    token = net.embed("token", OneHot(letters(2)), np.eye(3))
    share = mean(net, snap(net, token, name="exact"), name="share")
    assert assemble(network(net, share)).digest == assemble(network(net, share)).digest


def test_it_computes_what_it_should() -> None:
    """The whole of a busy net against plain Python."""
    some = [*words(2, 5), *random_words(2, LENGTH, 10, seed=0)]
    for attention in KINDS:
        for reuse in (True, False):
            found = held(assemble(busy(attention, reuse)), some)
            for word, rows in zip(some, found, strict=True):
                seen = [0, 0, *word]
                hits = [0]
                for t in range(len(word) + 1):
                    now, before, earlier = (seen[max(t + 1 - back, 0)] for back in (0, 1, 2))
                    hit = (now, before) == (1, 1) or now == 2
                    hits += [t] if hit and t else []
                    expected = [
                        *(float(hit) * np.eye(3)[earlier]),
                        *np.eye(3)[seen[: t + 2]].mean(axis=0),
                        *(np.eye(3)[now] + np.eye(3)[before]),
                        *np.eye(2)[hits[-1] % 2],
                    ]
                    assert np.abs(rows[t] - expected).max() < 1e-6, (attention, word, t)


@pytest.mark.parametrize("reuse", [True, False])
def test_labels_name_every_part_once(reuse: bool) -> None:
    made = busy(reuse=reuse)
    weights = assemble(made)
    net, labels = weights.architecture, weights.labels
    heads = Counter((label.block, label.index) for label in labels.heads)
    assert heads == Counter((b, h) for b, block in enumerate(net.blocks) for h in range(len(block.heads)))
    units = Counter((label.block, unit) for label in labels.units for unit in range(label.start, label.stop))
    assert units == Counter((b, u) for b, block in enumerate(net.blocks) for u in range(block.units))
    assert sum(label.name == "erase" for label in labels.units) == (2 if reuse else 0)
    names = [space.name for space in labels.spaces]
    assert len(set(names)) == len(names)
    assert names == [space.name for space in made.spaces]
    assert {label.writes for label in labels.heads} | {w for label in labels.units for w in label.writes} <= set(names)
    assert {dim for space in labels.spaces for dim in space.dims} == set(range(net.d_model))
    for space in labels.spaces:
        assert len(space.dims) == len(set(space.dims)) == space.kind.size
        assert 0 <= space.born <= space.dies <= 2 * len(net.blocks)
    for label in labels.units:
        assert len(label.unit_names) in (0, label.stop - label.start)


def writers(weights: Weights, moment: int) -> dict[int, set[str]]:
    """Which labelled spaces each dimension belongs to at the moment of their birth."""
    found: dict[int, set[str]] = {}
    for space in weights.labels.spaces:
        if space.born == moment:
            for dim in space.dims:
                found.setdefault(dim, set()).add(space.name)
    return found


@pytest.mark.parametrize("reuse", [True, False])
def test_heads_and_units_write_where_the_labels_say(reuse: bool) -> None:
    weights = assemble(busy(reuse=reuse))
    for label in weights.labels.heads:
        out = weights.arrays[f"blocks.{label.block}.attn.W_O"][label.index]
        space = weights.labels.space(label.writes)
        assert set(np.flatnonzero(out.any(axis=0)).tolist()) == set(space.dims)
        assert space.born == 2 * label.block + 1
    for units in weights.labels.units:
        out = dense(weights.arrays[f"blocks.{units.block}.mlp.W_out"])[units.start : units.stop]
        dims = {dim for name in units.writes for dim in weights.labels.space(name).dims}
        if units.name == "erase":
            assert np.array_equal(out.sum(axis=1), -np.ones(len(out)))
            assert units.unit_names == tuple(f"dimension {dim}" for dim in out.argmin(axis=1))
        else:
            assert set(np.flatnonzero(out.any(axis=0)).tolist()) <= dims
            assert {weights.labels.space(name).born for name in units.writes} == {2 * units.block + 2}
    for block in range(len(weights.architecture.blocks)):
        assert all(len(names) == 1 for names in writers(weights, 2 * block + 2).values())


@pytest.mark.parametrize("reuse", [True, False])
def test_spaces_are_whole_for_as_long_as_their_labels_say(reuse: bool) -> None:
    weights = assemble(busy(reuse=reuse))
    for word in (["a", "a", "b", "a", "a", "a"], ["b"], []):
        run = trace(weights, word)
        for space in weights.labels.spaces:
            written = run.space(space.name)
            for moment in range(space.born, space.dies + 1):
                assert np.abs(run.residual(moment)[:, list(space.dims)] - written).max() < 1e-12, (space.name, moment)


def test_head_labels_carry_their_margins() -> None:
    weights = assemble(busy())
    for label in weights.labels.heads:
        beta = float(weights.arrays[f"blocks.{label.block}.attn.beta"][label.index])
        if label.gap is None:
            assert (beta, label.beta_min, label.tolerance) == (1.0, None, None)
        else:
            assert label.beta_min is not None
            assert label.beta_min <= beta <= label.beta_min + 0.25
    hard = assemble(busy("hard"))
    gaps = [label.gap for label in hard.labels.heads]
    resolutions = [head.resolution for block in hard.architecture.blocks for head in block.heads]
    assert resolutions == [gap / 2 if gap else 0.0 for gap in gaps]
    assert {head.resolution for block in weights.architecture.blocks for head in block.heads} == {0.0}


def test_large_empty_matrices_are_sparse_and_the_net_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = assemble(busy())
    assert not any(is_sparse(array) for array in plain.arrays.values())
    monkeypatch.setattr(storage, "DENSE_ENTRIES", 0)
    monkeypatch.setattr(storage, "DENSE_DENSITY", 1.0)
    spread = assemble(busy())
    sparse = {name for name, array in spread.arrays.items() if is_sparse(array)}
    assert {"embed.W_E", "unembed.W_U", "blocks.0.mlp.W_in", "blocks.0.mlp.W_out"} <= sparse
    assert {f"blocks.0.attn.W_{letter}" for letter in "QKVO"} <= sparse
    for name, array in plain.arrays.items():
        assert np.array_equal(dense(spread.arrays[name]), array), name
    for name in sparse:
        array = spread.arrays[name]
        csr = array.csr if isinstance(array, storage.Stack) else array
        assert csr.nnz == csr.count_nonzero()
        assert csr.has_sorted_indices
    assert spread.labels == plain.labels
    some = words(2, 4)
    for one, other in zip(held(spread, some), held(plain, some), strict=True):
        assert np.abs(one - other).max() < 1e-12


def test_density_decides_for_large_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "DENSE_ENTRIES", 0)
    weights = assemble(busy())
    for array in weights.arrays.values():
        if is_sparse(array):
            assert array.count_nonzero() <= 0.02 * np.prod(array.shape)


def test_several_pads_and_a_placed_space_line_up() -> None:
    net = Builder("pads", letters(1), 3, pads=2)
    number = net.embed_position(
        "n", Integers(("n",), -1.0, 3.0), np.array([[1.0], [2.0], [3.0]]), pads=np.array([[-1.0]])
    )
    weights = built(net, number, net.bos, net.index)
    assert held(weights, [(1, 1, 1)])[0].tolist() == [[-1, 1, 0], [1, 0, 1], [2, 0, 2], [3, 0, 3]]
    (dim,) = weights.labels.space("n").dims
    assert weights.arrays["pos_embed.W_pos"][:, dim].tolist() == [-1, -1, 1, 2, 3]
    assert len(weights.architecture.blocks) == 0


def test_bos_and_index_are_made_once() -> None:
    net = Builder("once", letters(1), 3)
    assert net.bos is net.bos
    assert net.index is net.index
    assert len(network(net, net.bos).spaces) == 2


def test_the_door_opens_on_the_same_function() -> None:
    net = Builder("door", letters(1), 2)
    flag = snap(net, net.embed("flag", Flag(), np.array([[0.0], [1.0]])))
    made = network(net, flag)
    assert assemble_from_the_door(made).about == {}
    assert assemble_from_the_door(made).digest == assemble(made).digest
