"""Positions by formula: exact values, the same network with a table, what is saved, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify.certification import certify
from vitrify.certification.margins.net import margins
from vitrify.certification.reals.nets import ball_logits
from vitrify.constructions.catalogue import build
from vitrify.errors import FolderError, InputError
from vitrify.net.architecture import Output, from_json, to_json
from vitrify.net.folder import load, save
from vitrify.net.generate import generate
from vitrify.net.inference import batch_logits
from vitrify.net.positions import PositionFormula, tabulated
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import symmetric_group
from vitrify.spec.computation.turing import increment

FORMULAS = (PositionFormula(0, (0, 1)), PositionFormula(2, (7, -3, 0, 2)), PositionFormula(3, (5,)))
OUTPUT = Output("class", ("a", "b"))


def network(pads: int = 1, **changes: Any) -> Transformer:
    fields: dict[str, Any] = {"max_length": 9, "d_model": 4, "pads": pads, "formulas": FORMULAS, **changes}
    return Transformer(("<s>", "a", "b"), OUTPUT, **fields)


def bare(net: Transformer) -> Weights:
    """A network without blocks, whose logits are nothing and whose stream is the embedding."""
    return Weights(net, {name: np.zeros(shape) for name, shape in net.shapes().items()})


def stream(weights: Weights, length: int, arrays: Any = None) -> Any:
    seen: dict[str, Any] = {}
    tokens = np.zeros((1, length), dtype=np.int64)
    weights.architecture.forward(arrays or weights.arrays, tokens, record=seen.__setitem__)
    return np.asarray(seen["hook_pos_embed"])


@pytest.mark.parametrize("pads", [1, 3])
def test_values_are_polynomials_in_whole_numbers(pads: int) -> None:
    rows = stream(bare(network(pads)), pads + 200)
    times = [max(0, position - pads + 1) for position in range(pads + 200)]
    assert rows[:, 0].tolist() == times
    assert rows[:, 1].tolist() == [0] * len(times)
    assert rows[:, 2].tolist() == [7 - 3 * t + 2 * t**3 for t in times]
    assert rows[:, 3].tolist() == [5] * len(times)


def test_jax_computes_the_same_rows() -> None:
    jnp = pytest.importorskip("jax.numpy")
    weights = bare(network())
    arrays = {name: jnp.asarray(array, dtype=jnp.float32) for name, array in weights.arrays.items()}
    seen: dict[str, Any] = {}
    weights.architecture.forward(arrays, jnp.zeros((1, 40), dtype=int), record=seen.__setitem__)
    assert np.array_equal(np.asarray(seen["hook_pos_embed"]), stream(weights, 40))


def test_no_array_depends_on_the_length() -> None:
    short, long = (build(increment(3), "turing-any-length", max_length=length) for length in (10, 1000))
    assert short.arrays.keys() == long.arrays.keys()
    assert "pos_embed.W_pos" not in short.arrays
    assert all(np.array_equal(array, long.arrays[name]) for name, array in short.arrays.items())


def test_a_table_of_the_same_positions_gives_the_same_bits() -> None:
    weights = build(increment(3), "turing-any-length", max_length=60)
    table = tabulated(weights)
    assert table.architecture.formulas == ()
    assert table.arrays["pos_embed.W_pos"].shape == (61, weights.architecture.d_model)
    tokens = np.random.default_rng(0).integers(1, len(weights.architecture.inputs), size=(5, 61))
    tokens[:, 0] = 0
    assert np.array_equal(batch_logits(weights, tokens), batch_logits(table, tokens))
    assert tabulated(table) is table


def test_a_sequence_may_be_longer_than_the_tested_length() -> None:
    machine = increment(3)
    weights = build(machine, "turing-any-length", max_length=10)
    (thought,) = generate(weights, ["1" * 30], 100)
    assert thought.symbols == machine.thought("1" * 30, 100)
    short = replace(weights, architecture=replace(weights.architecture, rounding=(1 << 53) // 21**2))
    with pytest.raises(InputError, match="30 tokens, the network was built for at most 20: beyond that float64 rounds"):
        generate(short, ["1" * 30], 1)
    with pytest.raises(InputError, match="after 5 tokens the network has room for 16 steps, not 17"):
        generate(short, ["1" * 5], 17)


def test_single_precision_refuses_what_it_can_not_hold() -> None:
    weights = bare(network(formulas=(PositionFormula(0, (0, 0, 1)),)))
    arrays = {name: array.astype(np.float32) for name, array in weights.arrays.items()}
    assert stream(weights, 4097, arrays)[-1, 0] == 4096**2
    with pytest.raises(InputError, match="4097 tokens, and float32 carries this network exactly up to 4096"):
        stream(weights, 4098, arrays)


def test_single_precision_refuses_what_it_would_round() -> None:
    machine = increment(3)
    weights = build(machine, "turing-any-length").map(lambda array: np.asarray(array, dtype=np.float32))
    word = "1" * 500
    (thought,) = generate(weights, [word], 523)
    assert thought.symbols == machine.thought(word, 523)
    with pytest.raises(InputError, match="1024 tokens, and float32 carries this network exactly up to 1023"):
        generate(weights, [word], 526)


def test_formulas_are_saved_as_data(tmp_path: Path) -> None:
    weights = build(increment(3), "turing-any-length")
    save(weights, tmp_path / "net")
    again = load(tmp_path / "net")
    assert again.digest == weights.digest
    assert again.architecture == weights.architecture
    net = json.loads((tmp_path / "net" / "config.json").read_text())["net"]
    assert [formula["coefficients"] for formula in net["formulas"]] == [[0, 1], [0, 0, 1]]


def test_networks_without_formulas_keep_their_names() -> None:
    plain = Transformer(("<s>", "a"), OUTPUT, 3, 4)
    assert "formulas" not in repr(plain)
    assert "formulas" not in to_json(plain)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"formulas": (PositionFormula(0, (0, 1)), PositionFormula(0, (1,)))}, "dimensions of formulas must be differ"),
        ({"formulas": (PositionFormula(4, (0, 1)),)}, "dimensions of formulas must be different dimensions below 4"),
        ({"max_length": 200_000}, "positions by formula are exact up to 165140 in float64, not 200000"),
        ({"rounding": 1 << 47}, "positions by formula are exact up to 7 in float64, not 9"),
        ({"reads": "vector"}, "formulas are for nets that read tokens, not vector"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FolderError, match=message):
        network(**changes)


@pytest.mark.parametrize(
    "formula",
    [{"dim": 0, "coefficients": []}, {"dim": 0, "coefficients": [0.5]}, {"dim": -1, "coefficients": [1]}, {"dim": 0}],
)
def test_wrong_data_is_refused(formula: dict[str, Any]) -> None:
    data = to_json(network()) | {"formulas": [formula]}
    with pytest.raises(FolderError, match=r"net\.formulas"):
        from_json(data)


def test_a_table_beside_formulas_is_refused() -> None:
    weights = bare(network())
    with pytest.raises(FolderError, match=r"pos_embed\.W_pos is not part of this architecture"):
        weights.with_array("pos_embed.W_pos", np.zeros((10, 4)))


@pytest.mark.parametrize("attention", ["softmax", "hard"])
def test_margins_and_lemmas_follow_positions_by_formula(attention: str) -> None:
    """A stored table of t and t² may be replaced by formulas: the same bits, the same proofs."""
    machine = symmetric_group(3)
    table = build(machine, "looped", max_length=20, attention=attention)
    (index,), (square,) = (table.labels.space(name).dims for name in ("index", "square"))
    formulas = (PositionFormula(index, (0, 1)), PositionFormula(square, (0, 0, 1)))
    arrays = {name: array for name, array in table.arrays.items() if name != "pos_embed.W_pos"}
    weights = replace(table, architecture=replace(table.architecture, formulas=formulas), arrays=arrays)
    tokens = np.random.default_rng(0).integers(1, 3, size=(4, 21))
    tokens[:, 0] = 0
    assert np.array_equal(batch_logits(weights, tokens), batch_logits(table, tokens))
    one, other = (margins(net) for net in (weights, table))
    assert one.holds
    assert (one.error, one.margin, one.max_length) == (other.error, other.margin, other.max_length)
    links = certify(weights, machine, prove=True, work=1e7).links
    assert [(link.scope.value, link.longest) for link in links] == [("to T", 20)] * 2
    assert str(ball_logits(weights, [1, 2, 1])) == str(ball_logits(table, [1, 2, 1]))
