"""Traces: activations under the names that interpretability tools use, and what they say in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nets import EVERY_HEAD, copycat, mixed, random_net
from vitrify.errors import InputError
from vitrify.net.inference import logits, trace
from vitrify.net.labels import Labels, SpaceLabel
from vitrify.net.spaces import Reals
from vitrify.net.trace import Trace

NAMES = [
    "hook_embed",
    "hook_pos_embed",
    "blocks.0.hook_resid_pre",
    "blocks.0.ln1.hook_normalized",
    "blocks.0.attn.hook_pattern",
    "blocks.0.attn.hook_z",
    "blocks.0.hook_attn_out",
    "blocks.0.hook_resid_mid",
    "blocks.0.ln2.hook_normalized",
    "blocks.0.mlp.hook_pre",
    "blocks.0.mlp.hook_post",
    "blocks.0.hook_mlp_out",
    "blocks.0.hook_resid_post",
    "blocks.1.hook_resid_pre",
    "blocks.1.ln1.hook_normalized",
    "blocks.1.attn.hook_pattern",
    "blocks.1.attn.hook_z",
    "blocks.1.hook_attn_out",
    "blocks.1.hook_resid_mid",
    "blocks.1.hook_resid_post",
    "blocks.2.hook_resid_pre",
    "blocks.2.hook_resid_mid",
    "blocks.2.ln2.hook_normalized",
    "blocks.2.mlp.hook_pre",
    "blocks.2.mlp.hook_post",
    "blocks.2.hook_mlp_out",
    "blocks.2.hook_resid_post",
    "ln_final.hook_normalized",
    "hook_logits",
]


def test_the_names_are_those_of_transformer_lens_in_order() -> None:
    assert list(trace(random_net(mixed(norm=True)), "abc").activations) == NAMES


def test_without_a_norm_there_is_nothing_normalised() -> None:
    assert list(trace(random_net(mixed()), "abc").activations) == [name for name in NAMES if "normalized" not in name]


def test_shapes() -> None:
    seen = trace(random_net(mixed()), "abc")
    assert seen.tokens == ("<s>", "<s>", "a", "b", "c")
    assert seen["hook_pos_embed"].shape == seen["hook_embed"].shape == (5, 5)
    assert seen["blocks.0.attn.hook_pattern"].shape == (len(EVERY_HEAD), 5, 5)
    assert seen["blocks.0.attn.hook_z"].shape == (5, len(EVERY_HEAD), 3)
    assert seen["blocks.0.hook_attn_out"].shape == (5, 5)
    assert seen["blocks.2.mlp.hook_post"].shape == (5, 6)
    assert seen["hook_logits"].shape == (5, 3)


def test_activations_fit_together() -> None:
    weights = random_net(mixed(norm=True, eps=1e-3))
    arrays, seen = weights.arrays, trace(weights, "abca")
    z, v = seen["blocks.0.attn.hook_z"], seen["blocks.0.ln1.hook_normalized"] * arrays["blocks.0.ln1.w"]
    v = np.einsum("pm,hmv->hpv", v + arrays["blocks.0.ln1.b"], arrays["blocks.0.attn.W_V"])
    v = v + arrays["blocks.0.attn.b_V"][:, None]
    np.testing.assert_allclose(np.einsum("hqk,hkv->qhv", seen["blocks.0.attn.hook_pattern"], v), z, atol=1e-12)
    written = np.einsum("qhv,hvm->qm", z, arrays["blocks.0.attn.W_O"])
    np.testing.assert_allclose(seen["blocks.0.hook_attn_out"], written, atol=1e-12)
    np.testing.assert_allclose(seen["blocks.0.hook_resid_mid"], seen["blocks.0.hook_resid_pre"] + written, atol=1e-12)
    np.testing.assert_allclose(
        seen["blocks.0.hook_resid_post"], seen["blocks.0.hook_resid_mid"] + seen["blocks.0.hook_mlp_out"], atol=1e-12
    )
    np.testing.assert_array_equal(seen["blocks.2.mlp.hook_post"], np.maximum(seen["blocks.2.mlp.hook_pre"], 0))
    assert seen["blocks.2.mlp.hook_pre"].min() < 0  # recorded before the ReLU
    [rows] = logits(weights, [[1, 2, 3, 1]])
    np.testing.assert_allclose(seen["hook_logits"][weights.architecture.pads - 1 :], rows, atol=1e-12)


def test_layer_norms_have_mean_0_and_variance_1() -> None:
    seen = trace(random_net(mixed(norm=True)), "abca")
    for name in (name for name in NAMES if name.endswith("normalized")):
        np.testing.assert_allclose(seen[name].mean(axis=-1), 0, atol=1e-12)
        np.testing.assert_allclose(seen[name].var(axis=-1), 1, rtol=1e-12)


def test_a_concatenating_net_records_its_heads_side_by_side() -> None:
    seen = trace(random_net(mixed(residual="concatenate")), "abc")
    out = seen["blocks.0.hook_attn_out"]
    assert out.shape == (5, 2 * len(EVERY_HEAD))
    np.testing.assert_array_equal(seen["blocks.0.hook_resid_mid"], np.hstack([seen["blocks.0.hook_resid_pre"], out]))


def test_moments_of_the_residual_stream() -> None:
    seen = trace(random_net(mixed()), "abc")
    assert np.array_equal(seen.residual(0), seen["hook_embed"] + seen["hook_pos_embed"])
    for block in range(3):
        assert np.array_equal(seen.residual(2 * block), seen[f"blocks.{block}.hook_resid_pre"])
        assert np.array_equal(seen.residual(2 * block + 1), seen[f"blocks.{block}.hook_resid_mid"])
        assert np.array_equal(seen.residual(2 * block + 2), seen[f"blocks.{block}.hook_resid_post"])


def test_the_stream_of_a_net_without_blocks() -> None:
    seen = trace(random_net(mixed(blocks=())), "abc")
    assert np.array_equal(seen.residual(0), seen["hook_embed"] + seen["hook_pos_embed"])


@pytest.mark.parametrize("sparse", [False, True])
def test_named_spaces_are_read_when_they_are_written(sparse: bool) -> None:
    seen = trace(copycat(sparse), "abb")
    assert seen.read("letter") == [None, "a", "b", "b"]
    assert seen.read("previous") == [None, None, "a", "b"]
    assert seen.space("previous").tolist() == [[0, 0], [0, 0], [1, 0], [0, 1]]


def test_a_space_is_read_at_the_moment_it_is_written() -> None:
    space = SpaceLabel("two", Reals(("x", "y"), -9, 9), dims=(3, 1), born=3, dies=6)
    seen = trace(random_net(mixed(), labels=Labels((space,))), "abc")
    assert np.array_equal(seen.space("two"), seen["blocks.1.hook_resid_mid"][:, [3, 1]])
    assert seen.read("two") == seen.space("two").tolist()


def test_attention_as_text() -> None:
    assert trace(copycat(), "abb").attention(0, 0).split("\n") == [
        "block 0 head 0: one step back",
        "<s> |    | → nothing",
        "  a |█   | → <s> (1)",
        "  b | █  | → a (1)",
        "  b |  █ | → b (1)",
    ]


def test_shades_grow_with_the_weight() -> None:
    seen = trace(random_net(mixed()), "a")
    pattern = np.array([[[0.0, 0.1, 0.9], [0.2, 0.35, 0.45], [0.5, 0.17, 0.33]]])
    shown = replace(seen, activations={"blocks.0.attn.hook_pattern": pattern}).attention(0, 0)
    assert shown.split("\n") == [
        "block 0 head 0",
        "<s> |  █| → a (0.9)",
        "<s> |·░░| → a (0.45)",
        "  a |▒··| → <s> (0.5)",
    ]


def test_a_trace_as_text() -> None:
    text = str(trace(copycat(), "ab"))
    assert text.startswith("block 0 head 0: one step back\n")
    assert text.endswith("\nletter: –  a  b\nprevious: –  –  a")


def test_unknown_names_are_answered_with_the_known() -> None:
    seen = trace(copycat(), "ab")
    with pytest.raises(KeyError, match=r"no activation is called 'hook_q'; there are hook_embed, hook_pos_embed, bl"):
        seen["hook_q"]
    with pytest.raises(KeyError, match="no space is called 'colour'; there are letter, previous"):
        seen.read("colour")


def test_words_the_net_does_not_read_are_refused() -> None:
    with pytest.raises(InputError, match="does not read 'z'"):
        trace(copycat(), "az")


def test_an_image_and_a_graph_are_traced_from_words() -> None:
    from vitrify.constructions.catalogue import build
    from vitrify.spec.computation.connectivity import Connectivity
    from vitrify.spec.geometry.scene import random_scene

    net = build(random_scene(0))
    rows, columns = net.architecture.rows, net.architecture.columns
    seen = trace(net, [str(number % columns / 8) for number in range(rows * columns)])
    assert seen["hook_input"].shape == (1, rows, columns)
    assert seen["hook_input"][0, 0, :3].tolist() == [0.0, 0.125, 0.25]
    assert seen["hook_logits"].shape == (1, len(net.architecture.output.symbols))
    with pytest.raises(InputError, match="not 1 of them"):
        trace(net, ["1"])
    with pytest.raises(InputError, match="reads numbers"):
        trace(net, ["x"] * (rows * columns))
    graph = build(Connectivity(("a", "b", "c")))
    assert (trace(graph, ["a-b"])["hook_logits"] > 0.5).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_weights_that_are_no_shares_are_drawn_too() -> None:
    weights = copycat()
    seen = trace(weights, ["a", "b"])
    pattern = np.array(seen["blocks.0.attn.hook_pattern"])
    pattern[0, 1] = [np.nan, -5.0, 1e300]
    drawn = Trace(weights, seen.tokens, {**seen.activations, "blocks.0.attn.hook_pattern": pattern})
    assert drawn.attention(0, 0).splitlines()[2].split("|")[1] == "  █"
