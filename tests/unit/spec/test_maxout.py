"""Maxout networks: evaluation, bounds, the ways to make one, and their files."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from cases import each
from examples import examples
from vitrify.errors import SpecError
from vitrify.spec import read_spec
from vitrify.spec.geometry.maxout import Layer, Maxout, random_maxout, random_relu, zigzag

EXAMPLE = """{
  "radius": 2,
  "layers": [
    {"weights": [[[1.0], [-1.0]]], "biases": [[0.0, 0.0]]},
    {"weights": [[3.0]], "biases": [0.5]}
  ]
}
"""
seeds = st.integers(0, 10**6)


def inside(net: Maxout, seed: int, count: int = 50) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-net.radius, net.radius, size=(count, net.inputs))


@settings(max_examples=examples(30))
@given(seeds, st.integers(1, 3), st.integers(1, 4))
def test_a_unit_is_the_largest_of_its_pieces(seed: int, inputs: int, rank: int) -> None:
    net = random_maxout((inputs, 3, 2), rank, seed)
    for x in inside(net, seed, 5):
        z = [float(v) for v in x]
        for layer in net.layers:
            z = [
                max(sum(w * y for w, y in zip(row, z, strict=True)) + b for row, b in zip(ws, bs, strict=True))
                for ws, bs in zip(layer.weights.tolist(), layer.biases.tolist(), strict=True)
            ]
        assert net(x[None])[0].tolist() == pytest.approx(z, abs=1e-13)
        assert [float(v) for v in net.exactly(x.tolist())] == pytest.approx(z, abs=1e-13)


def test_exact_values_are_exact() -> None:
    net = Maxout((Layer.of([[[3.0], [1.0]]], [[0.1, 0.0]]),))
    assert net.exactly([0.1]) == (3 * Fraction(0.1) + Fraction(0.1),)


@given(seeds)
def test_bounds_hold_everywhere_and_steepness_limits_every_slope(seed: int) -> None:
    net = random_maxout((2, 4, 3, 2), 3, seed, radius=1.5)
    x, y = inside(net, seed), inside(net, seed + 1)
    for layer, (low, high) in zip(net.layers, net.ranges[1:], strict=True):
        moved = np.abs(layer(x) - layer(y)).max(axis=1)
        assert (moved <= layer.steepness * np.abs(x - y).max(axis=1) + 1e-12).all()
        x, y = layer(x), layer(y)
        assert (x >= low - 1e-12).all()
        assert (x <= high + 1e-12).all()


def test_bounds_are_reached_by_one_affine_layer() -> None:
    net = Maxout((Layer.of([[2.0, -1.0]], [0.5]),), radius=3)
    assert [array.tolist() for array in net.ranges[1]] == [[-8.5], [9.5]]
    assert net.layers[0].steepness == 3.0


@given(seeds)
def test_relu_networks_are_maxout_networks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = [rng.normal(size=shape) for shape in ((4, 2), (3, 4), (2, 3))]
    biases = [rng.normal(size=n) for n in (4, 3, 2)]
    net = Maxout.from_relu(weights, biases)
    x = inside(net, seed)
    z = x
    for place, (w, b) in enumerate(zip(weights, biases, strict=True)):
        z = z @ w.T + b
        z = z if place == 2 else np.maximum(z, 0)
    np.testing.assert_allclose(net(x), z, atol=1e-12)
    assert [max(layer.ranks) for layer in net.layers] == [2, 2, 1]
    assert random_relu((2, 4, 1), seed).layers[0].weights[:, 1].tolist() == [[0.0, 0.0]] * 4


@st.composite
def point_lists(draw: st.DrawFn) -> list[tuple[float, float]]:
    xs = sorted(draw(st.sets(st.integers(-20, 20), min_size=2, max_size=12)))
    return [(x / 4, draw(st.integers(-20, 20)) / 4) for x in xs]


@example([(-1.0, 1.0), (0.0, 0.0), (1.0, 1.0)])
@example([(-1.0, 0.0), (0.0, 1.0), (1.0, 1.5)])
@example([(-1.0, 0.0), (0.0, 1.0), (1.0, 2.0)])
@given(point_lists())
def test_a_function_through_points_goes_through_them_and_is_straight_between(points: list[tuple[float, float]]) -> None:
    net = Maxout.from_points(points)
    xs, ys = np.array(points).T
    between = np.linspace(xs[0], xs[-1], 97)
    np.testing.assert_allclose(net(between[:, None])[:, 0], np.interp(between, xs, ys), atol=1e-10)
    slopes = [Fraction(b - d) / Fraction(a - c) for (a, b), (c, d) in zip(points[1:], points, strict=False)]
    pieces = 1 + sum(a != b for a, b in pairwise(slopes))
    bends = {a < b for a, b in pairwise(slopes) if a != b}
    assert sum(net.layers[0].ranks) == pieces + (len(bends) == 2)
    assert net.layers[0].units == max(len(bends), 1)
    assert net.radius == np.abs(xs).max()


def test_outer_pieces_go_on() -> None:
    net = Maxout.from_points([(-1, 0), (0, 1), (1, 3)], radius=4)
    assert net(np.array([[-3.0], [4.0]])).ravel().tolist() == [-2.0, 9.0]


@each(("pieces", "depth"), [(2, 1), (2, 4), (3, 2), (4, 3), (5, 2)])
def test_a_zigzag_goes_up_and_down_k_to_the_l_times(pieces: int, depth: int) -> None:
    net = zigzag(pieces, depth)
    count = pieces**depth
    turns = np.linspace(-1, 1, count + 1)
    values = net(turns[:, None])[:, 0]
    assert np.abs(np.abs(values) - 1).max() < 1e-9
    assert (np.sign(values[1:]) == -np.sign(values[:-1])).all()
    assert all((layer.weights == np.round(layer.weights)).all() for layer in net.layers)
    apart = zigzag(pieces, depth, 3)(np.array([[0.3, -0.7, 0.9]]))
    np.testing.assert_array_equal(apart[0], net(np.array([[0.3], [-0.7], [0.9]]))[:, 0])


def test_repeated_pieces_count_once() -> None:
    layer = Layer.of([[[1.0], [1.0], [2.0]], [[0.0], [-0.0], [0.0]]], [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    assert layer.ranks == (2, 1)
    assert Maxout((layer,)).parameters == 3 * 2
    assert [weights.ravel().tolist() for weights, _ in layer.pieces] == [[1.0, 2.0], [0.0]]


def test_values_are_equal_iff_their_numbers_are() -> None:
    one, two, other = (random_maxout((2, 3, 1), 2, seed) for seed in (1, 1, 2))
    assert one == two
    assert hash(one) == hash(two)
    assert one != other
    assert one.layers[0] != "a layer"


# Files


@settings(max_examples=examples(30))
@given(seeds, st.sampled_from([1.0, 0.3, 7.0]))
def test_reading_undoes_writing(tmp_path_factory: pytest.TempPathFactory, seed: int, radius: float) -> None:
    net = random_maxout((2, 3, 2), 3, seed, radius=radius)
    path = tmp_path_factory.mktemp("maxout") / "net.maxout.json"
    net.write(path)
    assert read_spec(path) == net


def test_matrices_are_relu_layers_and_the_last_is_affine(tmp_path: Path) -> None:
    path = tmp_path / "net.maxout.json"
    path.write_text(EXAMPLE)
    net = Maxout.read(path)
    assert net.radius == 2.0
    assert net(np.array([[-2.0], [1.0]])).ravel().tolist() == [6.5, 3.5]
    path.write_text('{"layers": [{"weights": [[1], [-1]], "biases": [0, 0]}, {"weights": [[1, 2]], "biases": [0]}]}')
    net = Maxout.read(path)
    assert net(np.array([[-0.5], [0.5]])).ravel().tolist() == [1.0, 0.5]
    assert net.radius == 1.0
    assert net == Maxout.from_relu([[[1], [-1]], [[1, 2]]], [[0, 0], [0]])


def test_points_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "f.maxout.json"
    path.write_text('{"points": [[-1, 0], [0, 1], [1, 0]], "radius": 2}')
    assert Maxout.read(path) == Maxout.from_points([(-1, 0), (0, 1), (1, 0)], radius=2)


def test_safetensors(tmp_path: Path) -> None:
    net = random_maxout((2, 3, 2), 3, 0, radius=2.5)
    path = tmp_path / "net.maxout.safetensors"
    arrays: dict[str, np.ndarray] = {}
    for place, layer in enumerate(net.layers):
        arrays |= {f"layers.{place}.weights": layer.weights, f"layers.{place}.biases": layer.biases}
    save_file(arrays, path, metadata={"radius": "2.5"})
    assert read_spec(path) == net
    relu: dict[str, np.ndarray] = {
        "layers.0.weights": np.array([[1.0], [-1.0]], dtype=np.float32),
        "layers.0.biases": np.zeros(2),
    }
    relu |= {"layers.1.weights": np.array([[1.0, 1.0]]), "layers.1.biases": np.zeros(1)}
    save_file(relu, path)
    assert Maxout.read(path) == Maxout.from_relu([[[1], [-1]], [[1, 1]]], [[0, 0], [0]])


BAD = [
    ("[1]", ["x.maxout.json: the file must be a table with radius, layers, points, not [1]"]),
    ("{", ["x.maxout.json:1: ", "must be JSON"]),
    ("{}", ["layers or points, one of the two"]),
    ('{"layers": [], "points": []}', ["layers or points, one of the two"]),
    ('{"layers": [],\n "radius": 1,\n "radius": 2}', ["x.maxout.json:3: radius is given twice"]),
    ('{"layers": []}', ["at least one layer"]),
    ('{"layer": []}', ["layer is not a parameter", "radius, layers, points"]),
    ('{"layers": {}}', ["layers must be a list, each entry a table with weights, biases", "not {}"]),
    (EXAMPLE.replace('"radius": 2', '"radius": -2'), ["x.maxout.json:2: radius must be a number above 0", "not -2"]),
    (EXAMPLE.replace('"radius": 2', '"radius": "2"'), ["x.maxout.json:2: radius must be a number above 0", 'not "2"']),
    (
        EXAMPLE.replace("[[3.0]]", "[[3.0, 1.0]]"),
        ["x.maxout.json:5: layer 2: the layer reads 2 numbers", "has 1 units"],
    ),
    (EXAMPLE.replace("[0.5]", "[0.5, 1]"), ["x.maxout.json:5: layer 2", "biases of shape (1,), got (2,)"]),
    (EXAMPLE.replace("[[0.0, 0.0]]", "[[0.0, true]]"), ["x.maxout.json:4: layer 1: biases must be lists of numbers"]),
    (
        EXAMPLE.replace("[[[1.0], [-1.0]]]", "[[[1.0], [-1.0, 2]]]"),
        ["x.maxout.json:4: layer 1: weights", "equally long"],
    ),
    (EXAMPLE.replace("3.0", "NaN"), ["x.maxout.json:5: layer 2: weights must be lists of numbers"]),
    (EXAMPLE.replace("3.0", "1e200"), ["x.maxout.json:5: layer 2: weights must be lists of numbers"]),
    (
        EXAMPLE.replace('"biases": [0.5]', '"bias": [0.5]'),
        ["x.maxout.json:5: layers.1.bias is not a parameter", "x.maxout.json:5: layers.1.biases is missing"],
    ),
    (EXAMPLE.replace("[[3.0]]", "[]"), ["x.maxout.json:5: layer 2", "none of them empty"]),
    ('{"points": 3}', ["points (pairs [x, y]) must be a list"]),
    ('{"points": [[0, 0]]}', ["at least two points, got 1"]),
    (
        '{"points": [[0, 0],\n [1, 1],\n [2]]}',
        ["x.maxout.json:3: points.2 (pairs [x, y]) must be a list of 2: a number, a number, not [2]"],
    ),
    ('{"points": [[0, 0], [1, 1], [1, 2]]}', ["point 3 is at 1.0 after 1.0"]),
]


@each(("text", "said"), BAD)
def test_bad_files_are_refused_with_their_line(text: str, said: list[str], tmp_path: Path) -> None:
    path = tmp_path / "x.maxout.json"
    path.write_text(text)
    with pytest.raises(SpecError) as refused:
        Maxout.read(path)
    for part in said:
        assert part in str(refused.value)


def test_all_problems_of_a_file_are_told(tmp_path: Path) -> None:
    path = tmp_path / "x.maxout.json"
    path.write_text(EXAMPLE.replace("[0.5]", "[0.5, 1]").replace("[[0.0, 0.0]]", "[0.0]").replace("radius", "r"))
    with pytest.raises(SpecError) as refused:
        Maxout.read(path)
    assert len(refused.value.problems) == 3


def test_bad_tensors_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.maxout.safetensors"
    path.write_bytes(b"nonsense")
    with pytest.raises(SpecError, match="can't be read as safetensors"):
        Maxout.read(path)
    save_file({"layers.0.weights": np.ones((1, 1)), "w": np.ones(1)}, path, metadata={"radius": "wide"})
    with pytest.raises(SpecError) as refused:
        Maxout.read(path)
    for part in ("'w' is unknown", "'layers.0.biases' is missing", "radius must be a positive number, got 'wide'"):
        assert part in str(refused.value)
    save_file({"layers.0.weights": np.ones((1, 1)), "layers.0.biases": np.array([np.inf])}, path)
    with pytest.raises(SpecError, match="layer 1: the biases must be numbers"):
        Maxout.read(path)
    with pytest.raises(SpecError, match=r"must end in \.maxout\.json or \.maxout\.safetensors"):
        Maxout.read(tmp_path / "net.json")


def test_bad_values_are_refused() -> None:
    with pytest.raises(SpecError, match="at least one layer"):
        Maxout(())
    with pytest.raises(SpecError, match="layer 2: the layer reads 2 numbers, but the layer before it has 1 units"):
        Maxout((Layer.of([[1.0]], [0.0]), Layer.of([[1.0, 1.0]], [0.0])))
    with pytest.raises(SpecError, match="radius"):
        Maxout((Layer.of([[1.0]], [0.0]),), radius=0)
    with pytest.raises(SpecError, match="left to right"):
        Maxout.from_points([(1, 0), (0, 0)])
