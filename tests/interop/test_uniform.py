"""Uniform shapes without any library: our own forward pass runs them, and must say what it said before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exported import AHEAD, HOOKED, NETS, UNIFORM, net
from vitrify.errors import BuildRefused, FolderError
from vitrify.interop import hf_stock, huggingface, onnx, transformer_lens
from vitrify.interop.equality import asked
from vitrify.interop.folders import read_json, tensors
from vitrify.interop.imports import imported
from vitrify.interop.uniform import as_large, obstacles, spread
from vitrify.net.disentangle import apart
from vitrify.net.inference import batch_logits
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.weights import Weights

CLOSE = 1e-9  # relative to the largest answer


def same(one: Weights[Any], two: Weights[Any], spec: object) -> bool:
    """Whether two nets say the same on some of the inputs on which exports are compared."""
    for tokens in asked(one, spec).batches[-2:]:
        right, found = batch_logits(one, tokens[:64]), batch_logits(two, tokens[:64])
        if np.abs(right - found).max() > CLOSE * max(1.0, float(np.abs(right).max())):
            return False
    return True


@pytest.mark.long
@pytest.mark.parametrize("name", UNIFORM)
def test_blocks_that_are_alike_say_the_same(name: str) -> None:
    weights, spec = net(name)
    whole = spread(weights)
    shapes = {(a.shape, key.split(".", 2)[2]) for key, a in whole.arrays.items() if key.startswith("blocks.")}
    assert len(shapes) == len({key for _, key in shapes})
    first = weights.architecture
    large = as_large(whole.arrays, first.inputs, first.output, pads=first.pads, eps=None, causal=name not in AHEAD)
    assert same(weights, large, spec)


@pytest.mark.parametrize("name", [name for name in UNIFORM if name not in AHEAD])
def test_the_layout_of_gpt2_says_the_same_and_comes_back_bit_by_bit(name: str, tmp_path: Path) -> None:
    weights, spec = net(name)
    assert not hf_stock.refusal(weights)
    assert hf_stock.write(weights, tmp_path, "float64") == "GPT-2"
    config = read_json(tmp_path / "config.json")
    assert config["n_embd"] % config["n_head"] == 0
    for key, array in tensors(tmp_path / "model.safetensors").items():  # what writes to the stream keeps its mean at 0
        if key.endswith(("wte.weight", "wpe.weight", "c_proj.weight", "c_proj.bias")):
            assert np.abs(array.sum(axis=-1)).max() <= 1e-12 * max(1.0, np.abs(array).max())
    back = imported(tmp_path)
    assert back.whole
    assert back.weights.digest == weights.digest
    arrays = hf_stock.uniform_arrays(tmp_path)
    first = weights.architecture
    symbols = huggingface.vocabulary(first)
    large = as_large(arrays, symbols, first.output, pads=first.pads, eps=config["layer_norm_epsilon"], causal=True)
    assert large.architecture.norm
    assert same(weights, large, spec)


@pytest.mark.parametrize("name", UNIFORM)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_what_transformer_lens_is_given_comes_back(name: str, precision: Any, tmp_path: Path) -> None:
    weights, _ = net(name)
    transformer_lens.write(weights, tmp_path, precision)
    back = imported(tmp_path)
    assert back.whole
    assert back.stored == precision
    assert (back.weights.digest == weights.digest) == (precision == "float64" or _short(weights))
    for key, array in back.weights.arrays.items():
        np.testing.assert_allclose(array, weights.arrays[key], rtol=1e-6 if precision == "float32" else 0, atol=1e-30)


def _short(weights: Weights[Any]) -> bool:
    """Whether all numbers, and queries times their temperatures, fit into float32."""
    state = transformer_lens.state(spread(weights))
    return all(np.array_equal(array, array.astype(np.float32)) for array in (*state.values(), *weights.arrays.values()))


def test_what_training_wrote_to_added_places_is_kept(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    weights, spec = net("n-gram, softmax")
    for layout, name in ((hf_stock, "transformer.h.0.attn.c_proj.bias"), (transformer_lens, "blocks.0.attn.b_O")):
        place = tmp_path / layout.__name__
        place.mkdir()
        layout.write(weights, place, "float64")
        arrays = tensors(place / "model.safetensors")
        assert same(weights, imported(place).weights, spec)
        moved = np.random.default_rng(0).normal(size=arrays[name].shape).round(3)
        arrays[name] = arrays[name] + moved
        save_file(arrays, place / "model.safetensors")
        back = imported(place)
        assert not back.whole
        assert not same(weights, back.weights, spec)
        arrays[name] = arrays[name] * 0
        save_file(arrays, place / "model.safetensors")
        assert imported(place).weights.digest == weights.digest


def test_a_stream_of_parts_and_a_loop_are_written_out() -> None:
    weights, spec = net("automaton in log depth")
    assert same(weights, as_large_of(apart(weights)), spec)
    first = weights.architecture
    twice = replace(weights, architecture=replace(first, loops=2))
    whole = spread(twice)
    assert whole.layers == 2 * len(first.blocks)
    tokens = asked(weights, spec).batches[-1][:8]
    np.testing.assert_allclose(batch_logits(as_large_of(twice), tokens), batch_logits(twice, tokens), atol=1e-9)


def as_large_of(weights: Weights[Any]) -> Weights[Any]:
    whole, net_ = spread(weights), weights.architecture
    return as_large(whole.arrays, net_.inputs, net_.output, pads=net_.pads, eps=None, causal=whole.causal)


@pytest.mark.parametrize(
    ("name", "feature"),
    [
        ("n-gram, hard attention", "hard attention"),
        ("n-gram, sparsemax", "sparsemax attention"),
        ("automaton, strict masks", "before them"),
        ("brackets, three masks", "after them"),
        ("mixture of experts", "mixtures of experts"),
        ("recurrence beside a head", "recurrent cells"),
        ("estimate with norms of groups", "norms of groups"),
        ("recurrent net", "recurrent architectures"),
        ("images", "convolutional architectures"),
        ("maxout", "vector"),
        ("graph", "rows"),
    ],
)
def test_what_a_library_lacks_is_named(name: str, feature: str) -> None:
    weights, _ = net(name)
    found = transformer_lens.refusal(weights)
    assert any(feature in reason for reason in found) == (name not in HOOKED)
    assert bool(found) == (name not in HOOKED)
    assert any(feature in reason for reason in obstacles(weights.architecture))
    with pytest.raises(BuildRefused):
        spread(weights)
    assert bool(huggingface.refusal(weights)) == (weights.architecture.reads != "tokens")
    assert not onnx.refusal(weights)


def test_a_net_that_would_fill_the_memory_with_zeros_is_refused() -> None:
    weights, _ = net("automaton in log depth")
    first = weights.architecture
    wide = replace(first, blocks=(*first.blocks, *(Block(units=1 << 20),) * 32))
    assert any("room for" in reason for reason in obstacles(wide))


def test_every_net_is_either_uniform_or_refused() -> None:
    assert {name for name in NETS if not obstacles(net(name)[0].architecture)} == set(UNIFORM)


def test_rotary_heads_go_where_there_is_no_table_of_positions() -> None:
    block = Block((Head(rotary=100.0),) * 2, 4, 4, 3)
    weights, _ = net("n-gram, softmax")
    first = weights.architecture
    turned = Transformer(first.inputs, first.output, 6, 8, (block,) * 2)
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=shape) for name, shape in turned.shapes().items()}
    assert "table of positions" in transformer_lens.refusal(Weights(turned, arrays))[0]
    arrays["pos_embed.W_pos"][:] = 0
    rotary = Weights(turned, arrays)
    assert transformer_lens.refusal(rotary) == []
    assert hf_stock.refusal(rotary) == ["rotary heads"]


def test_models_of_others_are_read_or_refused(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="can't be read"):
        imported(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(FolderError, match="llama"):
        imported(tmp_path)


def test_a_window_of_one_place_takes_two_digits_and_a_wider_one_a_dimension_for_every_place() -> None:
    narrow, _ = net("n-gram, softmax")
    assert spread(narrow).d_model == narrow.architecture.d_model + 8  # 13 places: 4 and 4 values
    first = narrow.architecture
    blocks = tuple(replace(b, heads=tuple(replace(h, window=2) for h in b.heads)) for b in first.blocks)
    wide = replace(first, blocks=blocks)
    rng = np.random.default_rng(0)
    weights = Weights(wide, {name: rng.normal(size=shape) for name, shape in wide.shapes().items()})
    assert spread(weights).d_model == first.d_model + 13
    tokens = rng.integers(0, len(first.inputs), size=(4, 13))
    np.testing.assert_allclose(batch_logits(as_large_of(weights), tokens), batch_logits(weights, tokens), atol=1e-9)
