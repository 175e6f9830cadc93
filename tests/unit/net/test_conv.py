"""Convolutional networks: the forward pass, its adjoint, JAX, and what they refuse to read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cases import each
from oracles import naive_scene
from vitrify.certification.attacks.images import attack
from vitrify.certification.attacks.robust import radii
from vitrify.certification.reals.nets import RealNet
from vitrify.errors import BuildRefused, FolderError, InputError
from vitrify.interop.export import TARGETS, export
from vitrify.learn.distance import distance
from vitrify.net.architecture import Output, from_json, to_json
from vitrify.net.conv import Convolution, Convolutional, convolve, image_planes, symbol_planes, transposed
from vitrify.net.folder import load, save
from vitrify.net.inference import outputs
from vitrify.net.weights import Weights

LAYERS = (
    Convolution(3, (2, 3)),
    Convolution(4, (3, 2), stride=(2, 1), pad=(1, 2)),
    Convolution(2, (1, 1), stride=(1, 2)),
)
NET = Convolutional(2, 6, 7, Output("class", ("a", "b", "c")), LAYERS, dense=(5, 4))


def random_weights(net: Convolutional, seed: int) -> Weights[Convolutional]:
    rng = np.random.default_rng(seed)
    return Weights(net, {name: rng.normal(size=shape) for name, shape in net.shapes().items()})


def random_planes(net: Convolutional, count: int, seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=(count, net.planes, net.rows, net.columns))


@each(
    "net",
    [
        NET,
        replace(NET, dense=()),
        replace(NET, convolutions=LAYERS[:1]),
        Convolutional(1, 2, 2, Output("class", ("a", "b"))),
    ],
    ids=["all", "no dense", "one", "none"],
)
def test_the_forward_pass_is_that_of_plain_loops(net: Convolutional) -> None:
    weights, planes = random_weights(net, 0), random_planes(net, 3, 1)
    found = outputs(weights, planes)
    for row, plane in zip(found, planes, strict=True):
        np.testing.assert_allclose(row, naive_scene.logits(weights, plane), atol=1e-12)


def test_empty_taps_of_a_kernel_are_left_out_without_a_difference() -> None:
    weights = random_weights(NET, 3)
    kernel = weights.arrays["conv.1.W"].copy()
    kernel[:, :, 1] = 0.0
    weights = weights.with_array("conv.1.W", kernel)
    planes = random_planes(NET, 2, 1)
    np.testing.assert_allclose(outputs(weights, planes)[1], naive_scene.logits(weights, planes[1]), atol=1e-12)


def test_double_precision_on_jax_gives_the_same_logits() -> None:
    weights, planes = random_weights(NET, 5), random_planes(NET, 4, 2)
    with jax.enable_x64(True):
        arrays = {name: jnp.asarray(array) for name, array in weights.arrays.items()}
        run = jax.jit(NET.forward)
        np.testing.assert_allclose(np.asarray(run(arrays, jnp.asarray(planes))), outputs(weights, planes), atol=1e-12)


@pytest.mark.parametrize("layer", LAYERS)
def test_transposed_is_the_adjoint(layer: Convolution) -> None:
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(2, 3, 6, 7)), rng.normal(size=(layer.channels, 3, *layer.kernel))
    g = rng.normal(size=convolve(x, kernel, layer).shape)
    assert np.vdot(convolve(x, kernel, layer), g) == pytest.approx(np.vdot(x, transposed(g, kernel, layer, (6, 7))))


def test_every_activation_is_recorded() -> None:
    seen: dict[str, Any] = {}
    NET.forward(random_weights(NET, 0).arrays, random_planes(NET, 2, 0), record=seen.__setitem__)
    layers = [*(f"conv.{i}" for i in range(3)), *(f"dense.{i}" for i in range(2))]
    assert set(seen) == {f"{name}.hook_{side}" for name in layers for side in ("pre", "post")} | {"hook_pooled"}
    for name in layers:
        np.testing.assert_array_equal(seen[f"{name}.hook_post"], np.maximum(seen[f"{name}.hook_pre"], 0))
    assert [seen[f"conv.{i}.hook_post"].shape[1:] for i in range(3)] == list(NET.maps[1:])


def test_sizes() -> None:
    size = random_weights(NET, 0).sizes
    assert (size.layers, size.units_per_layer, size.heads, size.d_model) == (5, (3, 4, 2, 5, 4), 0, 5)
    assert NET.reads == "image"


def test_it_survives_json_and_a_folder(tmp_path: Path) -> None:
    assert from_json(to_json(NET)) == NET
    weights = random_weights(NET, 0)
    save(weights, tmp_path / "net")
    again = load(tmp_path / "net")
    assert again.digest == weights.digest
    assert "--input" in (tmp_path / "net" / "README.md").read_text()
    with pytest.raises(
        FolderError, match=r'convolutional: net.planes must be a whole number from 0 to 1,099,511,627,776, not "x"'
    ):
        from_json(to_json(NET) | {"planes": "x"})


GREY = Convolutional(1, 2, 3, Output("class", ("a", "b")))


def test_images_that_are_not_read() -> None:
    image = np.arange(6).reshape(1, 2, 3)
    np.testing.assert_array_equal(image_planes(GREY, image), image[:, None])
    for bad, said in (
        (image[:, :, :2], "2×3 pixels, not 2×2"),
        (image[0], "2×3 pixels"),
        (image * np.nan, "finite"),
        (image.astype("U3"), None),
        (np.array([[["x"] * 3] * 2]), "numbers"),
    ):
        if said:
            with pytest.raises(InputError, match=said):
                image_planes(GREY, bad)
    with pytest.raises(InputError, match="0 or 1"):
        image_planes(replace(GREY, pixels="bits"), image)
    with pytest.raises(InputError, match="no images"):
        image_planes(replace(GREY, pixels="symbols", symbols=("a",)), image)
    with pytest.raises(InputError, match="no symbols"):
        symbol_planes(GREY, ["ab"])


def test_sequences_become_one_plane_per_symbol() -> None:
    net = Convolutional(2, 1, 3, Output("class", ("a", "b")), pixels="symbols", symbols=("x", "y"))
    np.testing.assert_array_equal(symbol_planes(net, ["xyx"])[0, :, 0], [[1, 0, 1], [0, 1, 0]])
    with pytest.raises(InputError, match="does not read 'z'; it reads: x y"):
        symbol_planes(net, ["xyz"])
    with pytest.raises(InputError, match="sequences of 3 symbols, not 2"):
        symbol_planes(net, ["xy"])


# Convolutions whose weights are not shared

LOCAL = replace(NET, convolutions=tuple(replace(layer, shared=False) for layer in LAYERS))


def repeated(weights: Weights[Convolutional]) -> Weights[Convolutional]:
    """The same net with a copy of its kernels and biases for each place."""
    arrays = {
        name: np.broadcast_to(array, LOCAL.shapes()[name]).copy() if name.startswith("conv") else array
        for name, array in weights.arrays.items()
    }
    return Weights(LOCAL, arrays)


def test_equal_weights_at_all_places_are_a_convolution() -> None:
    weights, planes = random_weights(NET, 0), random_planes(NET, 3, 1)
    np.testing.assert_allclose(outputs(repeated(weights), planes), outputs(weights, planes), atol=1e-12)


def test_a_locally_connected_layer_is_a_loop_over_places() -> None:
    weights, planes = random_weights(LOCAL, 1), random_planes(LOCAL, 2, 2)
    seen: dict[str, Any] = {"conv.-1.hook_post": planes}
    LOCAL.forward(weights.arrays, planes, record=seen.__setitem__)
    for index, layer in enumerate(LOCAL.convolutions):
        (down, right), (height, width) = layer.stride, layer.kernel
        x = np.pad(seen[f"conv.{index - 1}.hook_post"], ((0, 0), (0, 0), *((pad, pad) for pad in layer.pad)))
        _, rows, columns = LOCAL.maps[index + 1]
        for place, (row, column) in enumerate(np.ndindex(rows, columns)):
            window = x[:, :, row * down : row * down + height, column * right : column * right + width]
            for out in range(layer.channels):
                kernel, bias = (weights.arrays[f"conv.{index}.{name}"][place, out] for name in "Wb")
                wanted = [(kernel * one).sum() + bias for one in window]
                np.testing.assert_allclose(seen[f"conv.{index}.hook_pre"][:, out, row, column], wanted, atol=1e-12)


@each("name", ["conv.1.W", "conv.1.b"])
def test_weights_of_a_place_matter_there_only(name: str) -> None:
    weights, planes = random_weights(LOCAL, 1), random_planes(LOCAL, 2, 2)
    array = weights.arrays[name].copy()
    array[3] += 1.0
    maps = []
    for each_net in (weights, weights.with_array(name, array)):
        seen: dict[str, Any] = {}
        LOCAL.forward(each_net.arrays, planes, record=seen.__setitem__)
        maps.append((seen["conv.0.hook_pre"], seen["conv.1.hook_pre"].reshape(2, 4, -1)))
    np.testing.assert_array_equal(maps[0][0], maps[1][0])
    assert np.flatnonzero((maps[0][1] != maps[1][1]).any(axis=(0, 1))).tolist() == [3]


def test_locally_connected_nets_run_on_jax_and_survive_a_folder(tmp_path: Path) -> None:
    weights, planes = random_weights(LOCAL, 5), random_planes(LOCAL, 4, 2)
    with jax.enable_x64(True):
        arrays = {name: jnp.asarray(array) for name, array in weights.arrays.items()}
        run = jax.jit(LOCAL.forward)
        np.testing.assert_allclose(np.asarray(run(arrays, jnp.asarray(planes))), outputs(weights, planes), atol=1e-12)
    assert from_json(to_json(LOCAL)) == LOCAL
    save(weights, tmp_path / "net")
    assert load(tmp_path / "net").digest == weights.digest != random_weights(NET, 5).digest
    assert weights.sizes.dense == sum(int(np.prod(shape)) for shape in LOCAL.shapes().values())


def test_only_locally_connected_layers_tell_that_they_share_no_weights() -> None:
    """Digests and files of nets from before there were any are what they were."""
    assert repr(Convolution(3, (2, 3))) == "Convolution(channels=3, kernel=(2, 3), stride=(1, 1), pad=(0, 0))"
    assert repr(Convolution(1, (1, 1), shared=False)).endswith("pad=(0, 0), shared=False)")
    assert to_json(NET)["convolutions"][0].keys() == {"channels", "kernel", "stride", "pad"}
    assert to_json(LOCAL)["convolutions"][0]["shared"] is False


def test_what_needs_shared_weights_refuses_others(tmp_path: Path) -> None:
    weights, planes = random_weights(LOCAL, 1), random_planes(LOCAL, 2, 2)
    for act in (
        lambda: radii(weights, planes),
        lambda: attack(weights, planes, np.ones(2)),
        lambda: distance(weights, weights),
        lambda: RealNet(weights).run(planes[0]),
    ):
        with pytest.raises(InputError, match=r"weights of their own|do not share"):
            act()
    save(weights, tmp_path / "net")
    for target in TARGETS:
        with pytest.raises(BuildRefused, match=r"no convolutional|weights of their own"):
            export(tmp_path / "net", target, tmp_path / "out")
