"""Transformers that read a vector of numbers instead of tokens."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from cases import each
from vitrify.errors import InputError
from vitrify.kit import assemble
from vitrify.kit.network import Builder, Readout, Space, Units
from vitrify.net.answers import run, run_lines
from vitrify.net.architecture import Output
from vitrify.net.folder import load, save
from vitrify.net.inference import outputs, trace
from vitrify.net.spaces import Reals
from vitrify.net.weights import Weights


def sum_of_relus() -> Weights:
    """(x, y) → relu(x - y) + 2 relu(y), at each of three positions."""
    net = Builder("relus", ("x", "y"), max_length=3, reads="vector")
    given = net.numbers("given", -1.0, 1.0)
    total = Space("total", Reals(("z",), 0.0, 4.0))
    net.add(
        Units(
            "relus", ((given, np.array([[1.0, 0.0], [-1.0, 1.0]])),), np.zeros(2), ((total, np.array([[1.0], [2.0]])),)
        )
    )
    return assemble(net.network(Output("values", ("z",)), Readout(((total, np.eye(1)),), np.zeros(1), {total: 1.0})))


def test_the_vector_stands_at_every_position() -> None:
    weights, points = sum_of_relus(), np.random.default_rng(0).uniform(-1, 1, size=(50, 2))
    want = np.maximum(points[:, 0] - points[:, 1], 0) + 2 * np.maximum(points[:, 1], 0)
    everywhere = weights.architecture.forward(weights.prepared, points)
    assert everywhere.shape == (50, 3, 1)
    np.testing.assert_allclose(everywhere[..., 0], want[:, None].repeat(3, axis=1), atol=1e-15)
    np.testing.assert_allclose(outputs(weights, points)[:, 0], want, atol=1e-15)


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    weights = sum_of_relus()
    save(weights, tmp_path / "net")
    found = load(tmp_path / "net")
    assert found.architecture == weights.architecture
    assert found.digest == weights.digest
    assert "2 numbers" in (tmp_path / "net" / "README.md").read_text(encoding="utf-8")


def test_it_answers_numbers_and_refuses_words() -> None:
    assert run(sum_of_relus(), ["0.5", "0.25"]).values == {"z": 0.75}
    with pytest.raises(InputError, match="reads 2 numbers"):
        run(sum_of_relus(), ["1"])
    with pytest.raises(InputError, match="'a'"):
        run(sum_of_relus(), ["1", "a"])


@each("word", ["1.0000001", "-2", "nan", "inf"])
def test_numbers_must_lie_where_the_net_was_built_for(word: str) -> None:
    with pytest.raises(InputError, match="right for numbers from -1 to 1, but y is"):
        run(sum_of_relus(), ["0", word])
    assert run(sum_of_relus(), ["1", "-1"]).values == {"z": 2.0}


def test_lines_of_numbers_are_answered_one_by_one() -> None:
    answers = list(run_lines(sum_of_relus(), io.StringIO("0.5 0.25\n1 0\n"), False, None))
    assert [line.values["z"] for line in answers] == [0.75, 1.0]
    with pytest.raises(InputError, match="standard input, line 2: this network reads 2 numbers"):
        list(run_lines(sum_of_relus(), io.StringIO("0.5 0.25\n1\n"), False, None))


def test_a_trace_names_positions_by_their_number() -> None:
    seen = trace(sum_of_relus(), ["0.5", "0.25"])
    assert seen.tokens == ("1", "2", "3")
    assert seen.read("total") == [[0.75]] * 3
