"""Linear probes: they find what is linear, not what is not, and nothing in noise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vitrify.certification.reading.probes import by_layer, fit, held_out, probe, streams
from vitrify.constructions.grammar_shapes import grammar_shapes
from vitrify.kit import assemble
from vitrify.net.inference import trace
from vitrify.spec.grammars.grammar import Grammar

CASES = 400


def split(count: int) -> NDArray[np.bool_]:
    return np.arange(count) % 2 < 1


@pytest.mark.parametrize("labels", [2, 3, 6])
def test_points_of_a_circle_take_two_dimensions_whatever_surrounds_them(labels: int) -> None:
    rng = np.random.default_rng(labels)
    y = rng.integers(0, labels, CASES)
    angle = 2 * np.pi * y / labels
    x = np.concatenate([np.stack([np.cos(angle), np.sin(angle)], axis=1), 0.1 * rng.random((CASES, 8))], axis=1)
    turned = x @ np.linalg.qr(rng.normal(size=(10, 10)))[0]
    found = probe(turned, y, split(CASES))
    half = (1 - np.cos(2 * np.pi / labels)) / 2  # the most that a line can leave on both of its sides
    assert (found.accuracy, found.separated) == (1.0, 1.0)
    assert found.dimension == found.components == min(2, labels - 1)
    assert 0.8 * half < found.margin < half + 0.1
    assert found.shuffled < 1 / labels + 0.15


def test_one_axis_per_label_takes_one_dimension_less_than_labels() -> None:
    """The middle one of three points on a line is not cut off by a threshold, though it may have the largest score."""
    y = np.random.default_rng(0).integers(0, 4, CASES)
    found = probe(np.eye(4)[y], y, split(CASES))
    assert (found.accuracy, found.separated) == (1.0, 1.0)
    assert found.dimension == found.components == 3
    assert found.margin == pytest.approx(np.sqrt(3) / 3, rel=0.05)  # half the height of the simplex with edges √2
    line = probe(np.array([[0.0], [1.0], [2.0]])[y % 3], y % 3, split(CASES))
    assert line.separated < 1
    assert line.margin < 0


def test_what_is_not_linear_is_not_read() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (CASES, 2))
    y = bits.sum(axis=1) % 2
    found = probe(bits.astype(float), y, split(CASES))
    assert found.accuracy < 0.8
    assert found.separated < 0.8
    assert found.margin < 0
    whole = np.column_stack([bits, bits.prod(axis=1)]).astype(float)
    assert held_out(whole, y, split(CASES)) == 1.0


def test_without_anything_to_see_the_commoner_label_is_read() -> None:
    y = (np.arange(CASES) // 2 % 10 >= 7).astype(int)
    found = probe(np.zeros((CASES, 2)), y, split(CASES))
    assert found.accuracy == found.separated == pytest.approx(0.7)


def test_scores_do_not_depend_on_where_the_origin_is() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 90)
    x = np.eye(3)[y] + 0.1 * rng.normal(size=(90, 3))
    weights, bias = fit(x, y, 3)
    moved, level = fit(x + 100.0, y, 3)
    assert np.abs(weights - moved).max() < 1e-3
    assert np.abs((x @ weights + bias) - ((x + 100.0) @ moved + level)).max() < 1e-2


def test_streams_are_what_a_trace_sees_and_idle_layers_are_fitted_once() -> None:
    grammar = Grammar.from_text("S -> 'a' B | 'b'\nB -> 'a' | 'b'")
    weights = assemble(grammar_shapes(grammar))
    layers = streams(weights, np.array([[0, 1, 2]]))
    blocks = len(weights.architecture.blocks)
    assert list(layers)[:3] == ["embedding", "attention 0", "MLP 0"]
    assert len(layers) == 1 + 2 * blocks
    run = trace(weights, ["a", "b"])
    for moment, stream in enumerate(layers.values()):
        assert np.array_equal(stream[0], run.residual(moment))
    y = np.arange(20) // 2 % 2
    x = np.random.default_rng(0).normal(size=(20, 3))
    found = by_layer({"one": x, "two": x.copy(), "three": x + y[:, None]}, y, split(20))
    assert found["one"] is found["two"]
    assert found["three"] is not found["two"]
