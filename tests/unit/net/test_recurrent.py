"""Recurrent nets: the forward pass against a naive one, on NumPy and JAX; saved, traced, certified like any other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csr_array

from cases import each
from nets import LETTERS
from oracles.naive_recurrent import logits as naive
from vitrify.certification import certify, mutation_test
from vitrify.errors import FolderError, InputError
from vitrify.net.architecture import Output, from_json, to_json
from vitrify.net.cells import Cell, CellKind
from vitrify.net.folder import card, load, save
from vitrify.net.inference import batch_of, encode, logits, trace
from vitrify.net.labels import Labels, SpaceLabel
from vitrify.net.recurrent import Recurrent
from vitrify.net.spaces import OneHot
from vitrify.net.sparse import OnRows, is_sparse
from vitrify.net.transformer import Block, Transformer
from vitrify.net.transformer_forward import Cache
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import cyclic

KINDS: tuple[CellKind, ...] = get_args(CellKind)
LINEAR = [kind for kind in KINDS if kind not in ("relu", "lstm")]
ALL = [*KINDS, *(f"parallel {kind}" for kind in LINEAR)]
QUICK = ("relu", "lstm", "parallel diagonal")
SEQUENCES = [[1, 2, 3, 1, 1, 2], [3], [], [2, 2, 1]]


def cell(kind: CellKind, state: int = 5, *, parallel: bool = False) -> Cell:
    return Cell(kind, state, factors=2 if kind == "householder" else 0, parallel=parallel)


def net(kind: CellKind = "linear", **changes: Any) -> Recurrent:
    made = Recurrent(LETTERS, Output("lm", ("a", "</s>")), 7, d_embed=3, cell=cell(kind), units=6, d_out=4, pads=2)
    return replace(made, **changes)


def random_net(architecture: Recurrent, seed: int = 0) -> Weights[Recurrent]:
    rng = np.random.default_rng(seed)
    arrays = {name: rng.normal(scale=0.7, size=shape) for name, shape in architecture.shapes().items()}
    return Weights(architecture, arrays)


def ring(letters: int) -> Weights[Recurrent]:
    """Counts modulo a number: the state is the one-hot of the count, and relu makes the sum of both a conjunction."""
    spec = cyclic(letters)
    size, symbols = letters, len(spec.alphabet)
    architecture = Recurrent(
        ("<s>", *spec.alphabet),
        Output("recognizer", spec.states, accepting=spec.accepting_states),
        max_length=20,
        d_embed=symbols + 1,
        cell=Cell("relu", symbols * size),
        units=size,
        d_out=size,
        name="ring",
    )
    arrays: dict[str, Any] = {name: np.zeros(shape) for name, shape in architecture.shapes().items()}
    # The block of letter a holds relu(old count - 1 + [letter is a]), with the blocks of all letters added up as old.
    arrays["embed.W_E"] = np.eye(symbols + 1)
    table = np.array(spec.transitions)
    for block in range(symbols):
        for old in range(size):
            for letter in range(symbols):
                arrays["blocks.0.rec.W_A"][block * size + old, letter * size + table[old, letter]] = 1.0
        arrays["blocks.0.rec.W_B"][:, block * size : (block + 1) * size] = -1.0
        arrays["blocks.0.rec.W_B"][block + 1, block * size : (block + 1) * size] = 0.0
        arrays["blocks.0.mlp.W_in"][block * size : (block + 1) * size] = np.eye(size)
    arrays["blocks.0.rec.W_B"][0] = 0.0
    arrays["blocks.0.rec.W_B"][0, spec.initial] = 1.0
    arrays["blocks.0.mlp.W_out"] = arrays["unembed.W_U"] = np.eye(size)
    count = SpaceLabel("count", OneHot(tuple(spec.states)), tuple(range(size)), 2, 2)
    return Weights(architecture, arrays, Labels((count,)))


@each("units", [6, 0])
@each("kind", KINDS)
def test_the_forward_pass_is_the_naive_one(kind: CellKind, units: int) -> None:
    weights = random_net(net(kind, units=units))
    assert weights.architecture.units_per_layer == (units,)
    for sequence, rows in zip(SEQUENCES, logits(weights, SEQUENCES), strict=True):
        wanted = naive(weights.architecture, weights.arrays, [0, 0, *sequence])[1:]
        np.testing.assert_allclose(rows, wanted, rtol=1e-12, atol=1e-12)


@each("length", [1, 2, 7, 33])
@each("kind", LINEAR)
def test_rounds_give_the_states_of_steps(kind: CellKind, length: int) -> None:
    weights = random_net(net(kind, max_length=length))
    rounds = replace(weights, architecture=net(kind, cell=cell(kind, parallel=True), max_length=length))
    words = np.random.default_rng(0).integers(1, 4, size=(3, length)).tolist()
    for one, two in zip(logits(weights, words), logits(rounds, words), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9 * np.abs(one).max())


def test_cells_that_make_no_sense_are_refused() -> None:
    for kind in ("relu", "lstm"):
        with pytest.raises(FolderError, match=f"linear in its state can be parallel, not one of kind '{kind}'"):
            Cell(kind, 3, parallel=True)
    for made in ({"kind": "householder"}, {"kind": "full", "factors": 2}):
        with pytest.raises(FolderError, match="has factors if it is of kind 'householder', and only then"):
            Cell(**made, state=3)


def test_reflections_and_saturated_gates_are_exact() -> None:
    """A factor of $v = e_i - e_j$ swaps two numbers, and gates of ±40 are open or closed, to the last bit."""
    weights = random_net(net("householder"))
    arrays = dict(weights.arrays) | {"embed.W_E": np.eye(4, 3, k=-1), "blocks.0.rec.W_A": np.zeros((2, 3, 5))}
    arrays["blocks.0.rec.W_A"][0, 0, :2] = arrays["blocks.0.rec.W_A"][1, 0, 1:3] = 1.0, -1.0
    arrays["blocks.0.rec.W_B"] = np.zeros((3, 5))
    arrays["blocks.0.rec.W_B"][1] = np.arange(1.0, 6.0)
    seen = trace(Weights(weights.architecture, arrays), LETTERS[2:3] + LETTERS[1:2])
    assert seen["blocks.0.hook_state"][-2:].tolist() == [[1, 2, 3, 4, 5], [2, 3, 1, 4, 5]]
    kept = random_net(net("lstm"))
    bias = np.repeat([-40.0, 40.0, 1_000.0, 40.0], 5)
    zeros = {name: np.zeros_like(array) for name, array in kept.arrays.items()}
    zeros |= {"blocks.0.rec.b": bias, "embed.W_E": np.eye(4, 3, k=-1)}
    zeros["blocks.0.rec.W_B"][0] = np.repeat([80.0, -80.0, 0.0, 0.0], 5)
    seen = trace(Weights(kept.architecture, zeros), LETTERS[1:2] + LETTERS[2:3] * 5)
    assert seen["blocks.0.hook_state"].tolist() == [[0.0] * 5] * 2 + [[float(np.tanh(1.0))] * 5] * 6


@each("kind", ALL)
def test_a_cell_in_a_block_adds_what_its_state_says(kind: str) -> None:
    """A hybrid of one cell and no head, against a recurrent net with the same cell."""
    made: Any = kind.removeprefix("parallel ")
    alone = random_net(net(made, d_embed=4, units=0, pads=1))
    tokens, _ = batch_of(alone.architecture, SEQUENCES)
    states: dict[str, Any] = {}
    alone.architecture.forward(alone.arrays, tokens, record=states.__setitem__)
    mixed = Transformer(
        LETTERS, Output("lm", ("a", "</s>")), 7, d_model=4, blocks=(Block(cell=cell(made, parallel=made != kind)),)
    )
    rng = np.random.default_rng(5)
    arrays: dict[str, Any] = {name: rng.normal(size=shape) for name, shape in mixed.shapes().items()}
    arrays |= {name: array for name, array in alone.arrays.items() if ".rec." in name or name == "embed.W_E"}
    arrays["pos_embed.W_pos"] = np.zeros((8, 4))
    x = arrays["embed.W_E"][tokens] + states["blocks.0.hook_state"] @ arrays["blocks.0.rec.W_C"]
    found = mixed.forward(arrays, tokens)
    np.testing.assert_allclose(found, x @ arrays["unembed.W_U"] + arrays["unembed.b_U"], rtol=1e-9, atol=1e-9)
    for whole, run in ((found, mixed), (alone.architecture.forward(alone.arrays, tokens), alone.architecture)):
        cache = Cache()
        given = arrays if run is mixed else alone.arrays
        parts = [run.forward(given, part, cache=cache) for part in np.split(tokens, [1, 4], axis=1)]
        np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=1e-9, atol=1e-9)


def test_a_large_sparse_transition_is_multiplied_sparsely() -> None:
    architecture = net(cell=cell("linear", 1_100))
    weights = random_net(architecture)
    full = weights.arrays["blocks.0.rec.W_A"] * (np.random.default_rng(1).random((1_100, 1_100)) < 0.001)
    sparse = weights.with_array("blocks.0.rec.W_A", csr_array(full))
    assert is_sparse(sparse.prepared["blocks.0.rec.W_A"])
    few = weights.arrays["blocks.0.rec.W_A"] * (np.arange(1_100)[:, None] < 9)  # and one with few rows on these alone
    assert isinstance(weights.with_array("blocks.0.rec.W_A", few).prepared["blocks.0.rec.W_A"], OnRows)
    for one, two in zip(
        logits(sparse, SEQUENCES), logits(weights.with_array("blocks.0.rec.W_A", full), SEQUENCES), strict=True
    ):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "kind",  # the others wait for the long tests: each compiles for seconds
    [pytest.param(kind, marks=[] if kind in QUICK else [pytest.mark.slow]) for kind in ALL],
)
def test_jax_gives_the_same_numbers_and_slopes(kind: str) -> None:
    made: Any = kind.removeprefix("parallel ")
    architecture = net(made, cell=cell(made, parallel=made != kind))
    weights = random_net(architecture)
    tokens, _ = batch_of(architecture, SEQUENCES)
    seen: dict[str, Any] = {}
    wanted = architecture.forward(weights.arrays, tokens, record=seen.__setitem__)
    with jax.enable_x64(True):
        arrays = {name: jnp.asarray(array) for name, array in weights.arrays.items()}
        compiled = jax.jit(Recurrent.forward, static_argnums=0)
        got = compiled(architecture, arrays, jnp.asarray(tokens))
        seen_by_jax: dict[str, Any] = {}
        architecture.forward(arrays, jnp.asarray(tokens), record=seen_by_jax.__setitem__)
        slopes = jax.grad(lambda arrays: compiled(architecture, arrays, jnp.asarray(tokens)).sum())(arrays)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
    assert list(seen) == list(seen_by_jax)
    for name, value in seen.items():
        np.testing.assert_allclose(seen_by_jax[name], value, rtol=1e-12, atol=1e-12)
    toward = random_net(architecture, seed=1).arrays["blocks.0.rec.W_A"]
    ahead, behind = (
        architecture.forward(
            weights.with_array("blocks.0.rec.W_A", weights.arrays["blocks.0.rec.W_A"] + step * toward).arrays, tokens
        ).sum()
        for step in (1e-6, -1e-6)
    )
    assert (ahead - behind) / 2e-6 == pytest.approx(
        float((np.asarray(slopes["blocks.0.rec.W_A"]) * toward).sum()), rel=1e-5
    )


@each("kind", ALL)
def test_single_precision_stays_single(kind: str) -> None:
    made: Any = kind.removeprefix("parallel ")
    weights = random_net(net(made, cell=cell(made, parallel=made != kind))).map(lambda array: array.astype(np.float32))
    tokens, _ = batch_of(weights.architecture, SEQUENCES)
    assert weights.architecture.forward(weights.arrays, tokens).dtype == np.float32


def test_what_comes_later_changes_nothing_before_it() -> None:
    weights = random_net(net())
    one, two = logits(weights, [[1, 2, 3, 1], [1, 2, 1, 3]])
    np.testing.assert_array_equal(one[:3], two[:3])
    assert (one[3:] != two[3:]).any()


def test_shapes_and_sizes_by_hand() -> None:
    assert net().shapes() == {
        "embed.W_E": (4, 3),
        "blocks.0.rec.W_A": (5, 5),
        "blocks.0.rec.W_B": (3, 5),
        "blocks.0.mlp.W_in": (5, 6),
        "blocks.0.mlp.b_in": (6,),
        "blocks.0.mlp.W_out": (6, 4),
        "blocks.0.mlp.b_out": (4,),
        "unembed.W_U": (4, 2),
        "unembed.b_U": (2,),
    }
    transitions = {kind: net(kind).shapes()["blocks.0.rec.W_A"] for kind in KINDS}
    assert transitions == {
        "linear": (5, 5),
        "relu": (5, 5),
        "diagonal": (3, 5),
        "positive": (3, 5),
        "signed": (3, 5),
        "householder": (2, 3, 5),
        "full": (3, 5, 5),
        "lstm": (5, 20),
    }
    assert {name: shape for name, shape in net("lstm", units=0).shapes().items() if name not in net().shapes()} == {
        "blocks.0.rec.b": (20,)
    }
    assert net("lstm", units=0).shapes()["unembed.W_U"] == (5, 2)
    assert (net("lstm").width, net("relu").width) == (10, 5)  # an LSTM keeps two rows
    size = random_net(net()).sizes
    assert (size.layers, size.heads, size.attention_layers, size.d_model, size.units) == (1, 0, 0, 5, 6)
    assert size.dense == 12 + 25 + 15 + 30 + 6 + 24 + 4 + 8 + 2


@each("kind", KINDS)
def test_json_and_folders(tmp_path: Path, kind: CellKind) -> None:
    architecture = net(kind)
    assert from_json(json.loads(json.dumps(to_json(architecture)))) == architecture
    assert eval(repr(architecture)) == architecture
    weights = random_net(architecture)
    save(weights, tmp_path / "net")
    again = load(tmp_path / "net")
    assert again.architecture == architecture
    assert again.digest == weights.digest != random_net(net(kind, pads=1)).digest
    assert json.loads((tmp_path / "net" / "config.json").read_text())["model_type"] == "vitrify-recurrent"
    assert "| head |" not in card(weights)


def test_a_trace_has_the_state_and_every_moment() -> None:
    weights = ring(3)
    seen = trace(weights, ["1", "1", "0"])
    names = [f"blocks.0.{name}" for name in ("hook_state", "mlp.hook_pre", "mlp.hook_post", "hook_mlp_out")]
    assert list(seen.activations) == ["hook_embed", *names, "hook_logits"]
    shapes = [seen.residual(moment).shape for moment in range(3)]
    assert shapes == [(4, 3), (4, 6), (4, 3)]
    assert seen.read("count") == ["0", "1", "2", "2"]
    assert str(seen) == "count: 0  1  2  2"


def test_it_is_certified_and_broken_like_any_other_net() -> None:
    weights, spec = ring(3), cyclic(3)
    evidence = certify(weights, spec, work=1e7)
    assert evidence.verdict == "holds"
    assert evidence.measured("largest distance of a named space from a legal value") == 0.0
    found = mutation_test(weights, spec, count=100, work=1e6)
    assert {what for what, _ in found.survivors} <= {"unembed.W_U[0] zeroed"}  # no logit stands out: the first is taken
    off = weights.with_array("unembed.b_U", np.array([0.0, 2.0, 0.0]))
    assert certify(off, spec, work=1e7).verdict == "fails"


def test_unknown_symbols_and_long_words_are_refused() -> None:
    with pytest.raises(InputError, match="does not read 'x'"):
        encode(net(), ["x"])
    with pytest.raises(InputError, match="built for at most 7"):
        encode(net(), ["a"] * 8)
