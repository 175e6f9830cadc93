"""Heads that see only the keys of their segment: run and trained right, saved, and refused by all that proves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nets import LETTERS, random_net
from oracles import naive_transformer
from vitrify.bounds.activations import ExactNet
from vitrify.bounds.fixed_point import FixedNet, Grid
from vitrify.bounds.lipschitz import influence
from vitrify.bounds.quantize import quantize
from vitrify.certification.checking import certify
from vitrify.certification.margins.net import margins
from vitrify.certification.precision.rounding import supports
from vitrify.certification.reading.formulas import formula_of
from vitrify.certification.reading.regions import net_regions
from vitrify.certification.reals.nets import RealNet
from vitrify.constructions.catalogue import build
from vitrify.errors import VitrifyError
from vitrify.interop.export import TARGETS, Target, export
from vitrify.interop.uniform import spread
from vitrify.net import routines
from vitrify.net.architecture import Output, from_json, to_json
from vitrify.net.attention import allowed_keys
from vitrify.net.folder import load, save
from vitrify.net.inference import logits
from vitrify.net.transformer import Block, Head, Transformer
from vitrify.net.transformer_forward import Cache
from vitrify.net.weights import Weights
from vitrify.spec.automata.families import symmetric_group

HEADS = (Head(segment=2), Head(mask="none", segment=4), Head(segment=3, window=2), Head())
NET = Transformer(LETTERS, Output("lm", ("a", "b")), 9, 5, (Block(HEADS, 2, 3, 4), Block((Head(segment=4),), 2, 2)), 2)
WIDE = 64  # a segment that holds every word


def tokens_of(net: Transformer, rows: int = 3) -> Any:
    drawn = np.random.default_rng(0).integers(1, len(net.inputs), (rows, net.max_length))
    return np.pad(drawn, ((0, 0), (net.pads, 0)))


def segmented(weights: Weights[Transformer], segment: int) -> Weights[Transformer]:
    net = weights.architecture
    blocks = tuple(
        replace(block, heads=tuple(replace(head, segment=segment) for head in block.heads)) for block in net.blocks
    )
    return replace(weights, architecture=replace(net, blocks=blocks))


@pytest.fixture(scope="module")
def permutations() -> Weights[Transformer]:
    return build(symmetric_group(3), max_length=6)


def test_the_keys_of_a_segment_are_those_of_its_positions_and_the_pads() -> None:
    seen = allowed_keys(Head(segment=2), np.arange(7), np.arange(7), 2)
    assert [np.flatnonzero(keys).tolist() for keys in seen] == [
        [0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 4], [0, 1, 4, 5], [0, 1, 6]
    ]  # fmt: skip
    for head in (Head(), Head(mask="none", window=3)):
        plain = allowed_keys(head, np.arange(7), np.arange(7))
        np.testing.assert_array_equal(plain, allowed_keys(replace(head, segment=9), np.arange(7), np.arange(7), 0))


def test_logits_are_those_of_attention_with_an_explicit_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle runs one number at a time, over lists of keys that are given here."""
    weights, tokens, plain = random_net(NET, 1), tokens_of(NET), naive_transformer.visible_keys

    def visible(head: Head, query: int, length: int) -> list[int]:
        first = [at if at < 2 or not head.segment else 2 + (at - 2) // head.segment * head.segment for at in range(99)]
        same = [key for key in plain(head, query, length) if key < 2 or (query > 1 and first[key] == first[query])]
        return same if head.segment else plain(head, query, length)

    monkeypatch.setattr(naive_transformer, "visible_keys", visible)
    wanted = np.array(naive_transformer.logits_of_batch(NET, weights.arrays, tokens, [11] * 3))
    np.testing.assert_allclose(NET.forward(weights.arrays, tokens), wanted, atol=1e-12)
    np.testing.assert_allclose(NET.forward(weights.arrays, tokens, query_chunk=2), wanted, atol=1e-12)
    with jax.enable_x64(True):
        arrays = {name: jnp.asarray(array) for name, array in weights.arrays.items()}
        np.testing.assert_allclose(jax.jit(NET.forward)(arrays, jnp.asarray(tokens)), wanted, atol=1e-12)


def test_a_cache_continues_segments() -> None:
    net = replace(NET, blocks=(Block((Head(segment=2), Head(segment=4)), 2, 3), NET.blocks[1]))
    weights, tokens, cache = random_net(net, 1), tokens_of(net), Cache()
    parts = [net.forward(weights.arrays, part, cache=cache) for part in np.split(tokens, [3, 4, 8], axis=1)]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), net.forward(weights.arrays, tokens), atol=1e-12)


def test_what_lies_in_another_segment_is_not_felt() -> None:
    """With one layer of segments of four, a changed leaf moves the answers of its segment and no others."""
    net = replace(NET, blocks=(Block((Head(segment=4), Head(mask="none", segment=4)), 2, 2, 4),))
    weights, tokens = random_net(net, 2), tokens_of(net, 1)
    changed = tokens.copy()
    changed[0, 2 + 5] = 1 + tokens[0, 2 + 5] % 3
    moved = (net.forward(weights.arrays, changed) != net.forward(weights.arrays, tokens)).any(axis=-1)[0]
    assert np.flatnonzero(moved).tolist() == [6, 7, 8, 9]


def test_digests_of_other_nets_know_nothing_of_segments(tmp_path: Path) -> None:
    assert repr(Head()) == (
        "Head(attention='softmax', mask='causal', window=None, ties='average', resolution=0.0, rotary=0.0)"
    )
    assert repr(Head(segment=2)).endswith(", rotary=0.0, segment=2)")
    shown = [head for block in to_json(NET)["blocks"] for head in block["heads"]]
    assert [head.get("segment") for head in shown] == [2, 4, 3, None, 4]
    assert from_json(to_json(NET)) == NET
    weights = random_net(NET)
    save(weights, tmp_path / "net")
    assert load(tmp_path / "net").digest == weights.digest != segmented(weights, 5).digest


def test_no_routine_of_compiled_programs_takes_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routines, "_on_gpu", lambda: True)
    x = jnp.zeros((2, 8, 16))
    assert routines.attends(Block((Head(),), 8, 8), x)
    assert not routines.attends(Block((Head(), Head(segment=2)), 8, 8), x)
    assert routines.fused(Head(segment=2), *[jnp.zeros((2, 8, 1, 8), jnp.bfloat16)] * 3) is None


def test_a_net_with_segments_is_never_proved(permutations: Weights[Transformer]) -> None:
    """The net computes what it did before, and is checked word by word, but no link is proved."""
    spec, weights = symmetric_group(3), segmented(permutations, WIDE)
    evidence = certify(weights, spec, prove=True, arithmetic=True)
    assert evidence.verdict == "holds"
    assert evidence.proof is not None
    assert not evidence.proof["holds"]
    assert all("heads with segments" in link.reason for link in evidence.links)
    assert certify(permutations, spec, prove=True).proof["holds"]  # type: ignore[index]  # there is one
    assert not margins(weights).holds
    assert not supports(weights.architecture)
    with pytest.raises(VitrifyError, match="not run in real arithmetic"):
        certify(weights, spec, reals=True)
    broken = certify(segmented(permutations, 2), spec)
    assert broken.verdict == "fails"


REASONERS: dict[str, Callable[[Weights[Any]], object]] = {
    "influence": lambda weights: influence(weights, 4),
    "fixed point": lambda weights: FixedNet(weights, Grid(2, 4, 2)),
    "quantized layer": lambda weights: quantize(weights, LETTERS[1:], 4, 8),
    "reals": lambda weights: RealNet(weights).run(np.array([1, 2])),
    "formula": formula_of,
    "uniform shape": spread,
}


@pytest.mark.parametrize("name", REASONERS)
def test_bounds_and_readings_refuse_segments(name: str) -> None:
    net = replace(NET, blocks=(Block((Head(segment=WIDE),), 2, 3),), pads=1)
    with pytest.raises(VitrifyError, match="segment"):
        REASONERS[name](random_net(net))


def test_regions_are_counted_without_segments() -> None:
    head, output = Head("hard", "none", ties="left"), Output("values", ("y",))
    net = Transformer(("x", "y"), output, 3, 2, (Block((head,), 1, 2),), 0, reads="vector")
    weights = random_net(net)
    still = weights.with_array("blocks.0.attn.W_Q", np.zeros((1, 2, 1)))
    assert net_regions(still, 1.0)
    with pytest.raises(VitrifyError, match="see everything"):
        net_regions(segmented(still, WIDE), 1.0)


def test_types_of_hard_attention_refuse_segments() -> None:
    net = replace(NET, blocks=(Block((Head("hard", segment=WIDE),), 2, 3),), pads=1)
    with pytest.raises(VitrifyError, match="segments"):
        ExactNet(random_net(net))


@pytest.mark.parametrize("target", TARGETS)
def test_exports_refuse_segments(target: Target, tmp_path: Path) -> None:
    save(random_net(replace(NET, blocks=(Block((Head(segment=4),), 2, 3),))), tmp_path / "net")
    with pytest.raises(VitrifyError, match="has no heads with segments"):
        export(tmp_path / "net", target, tmp_path / "out")


def test_answers_come_from_the_one_forward_pass(permutations: Weights[Transformer]) -> None:
    words = [[0, 1, 2, 1], [0, 2]]
    for one, other in zip(logits(permutations, words), logits(segmented(permutations, WIDE), words), strict=True):
        np.testing.assert_array_equal(one, other)
