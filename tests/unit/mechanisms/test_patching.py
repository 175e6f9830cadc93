"""Runs with edges cut are what the definition says, and the forward pass lets itself be edited."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from any_nets import any_net
from cases import each
from oracles import naive_patching
from vitrify.constructions.catalogue import build
from vitrify.errors import BuildRefused
from vitrify.mechanisms.circuit import activities, patched
from vitrify.mechanisms.domain import PatchDomain, patch_domain
from vitrify.mechanisms.entangle import entangle
from vitrify.mechanisms.parts import NetWiring, obstacles, wiring
from vitrify.mechanisms.zoo import ZOO
from vitrify.net.inference import batch_logits
from vitrify.spec.automata.families import cyclic

KINDS = ["induction", "trigram-heads", "experts-hidden", "experts-linear", "estimate-norm", "increment-hybrid"]
KINDS += ["mod3-hard"]
PAIRS = 3
RANDOM = 300  # random networks, about a third of which can be taken apart and have no ties


@cache
def parts(name: str) -> tuple[NetWiring, PatchDomain]:
    wired = wiring(ZOO[name].build())
    return wired, patch_domain(wired.weights.architecture, ZOO[name].spec(), words=8)[0]


def naive(wired: NetWiring, asked: PatchDomain, pair: int, cut: Any) -> Any:
    """The logits of one pair, by definition."""
    groups = {node.name: node.units for node in wired.nodes if node.kind == "units"}
    word, donor = asked.pairs[pair]
    _, said = naive_patching.run(wired.weights, groups, asked.tokens[donor])
    given = {node: value[asked.donor_positions[pair]] for node, value in said.items()}
    return naive_patching.run(wired.weights, groups, asked.tokens[word], cut, given)[0]


@pytest.mark.long
@each("name", KINDS)
@each("twin", [False, True])
def test_a_cut_edge_carries_what_the_donor_says_and_nothing_else_changes(name: str, twin: bool) -> None:
    wired, asked = parts(name)
    wired = entangle(wired, 1).wired if twin else wired
    given = asked.donor_activations(activities(wired, asked.tokens))
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(asked.pairs))[:PAIRS]
    edges = list(wired.edges)
    for count in (1, 3, len(edges) // 2, len(edges)):
        cut = [edges[i] for i in rng.permutation(len(edges))[:count]]
        got = patched(wired, asked.tokens[asked.pairs[:, 0]], cut, given)
        for pair in chosen:
            np.testing.assert_allclose(got[pair], naive(wired, asked, pair, cut), atol=1e-7)


@each("name", KINDS)
def test_without_cuts_it_is_the_forward_pass(name: str) -> None:
    wired, asked = parts(name)
    np.testing.assert_array_equal(patched(wired, asked.tokens, (), {}), batch_logits(wired.weights, asked.tokens))


def test_every_part_can_be_edited_and_sees_its_own_name() -> None:
    wired, asked = parts("experts-hidden")
    seen: dict[str, Any] = {}
    net = wired.weights.architecture
    net.forward(wired.weights.prepared, asked.tokens, edit=lambda name, value: seen.setdefault(name, value))
    assert set(seen) >= {port.hook for port in wired.ports.values()}
    changed = net.forward(
        wired.weights.prepared, asked.tokens, edit=lambda name, value: value + 1 if name == "hook_logits" else value
    )
    np.testing.assert_allclose(changed, seen["hook_logits"] + 1)


def test_paths_that_carry_nothing_change_no_logit_at_all() -> None:
    for name in KINDS:
        wired, asked = parts(name)
        given = asked.donor_activations(activities(wired, asked.tokens))
        words = asked.tokens[asked.pairs[:, 0]]
        silent = sorted(set(wired.edges) - set(wired.composed))
        assert silent, name
        clean = batch_logits(wired.weights, words)
        np.testing.assert_allclose(patched(wired, words, silent, given), clean, atol=1e-9)


def test_parts_before_come_before_and_gates_hear_their_router_only() -> None:
    wired, _ = parts("experts-hidden")
    for source, port in wired.edges:
        assert port.endswith(".gate") == (source == "blocks.0.moe.router")
        if source.startswith("blocks.0.moe.expert"):
            assert port == "output"


def test_other_networks_are_refused_by_name() -> None:
    recurrent = build(cyclic(2), "elman")
    assert obstacles(recurrent.architecture) == ["a recurrent architecture"]
    with pytest.raises(BuildRefused, match="a recurrent architecture"):
        wiring(recurrent)


def random_parts() -> list[NetWiring]:
    """Random networks with norms, loops, windows, cells and experts, that can be taken apart; no ties."""
    made = [any_net(seed)[0] for seed in range(RANDOM) if seed % 3]
    fit = [weights for weights in made if not obstacles(weights.architecture)]
    return [wiring(weights) for weights in fit]


def random_tokens(wired: NetWiring, rng: np.random.Generator) -> Any:
    net = wired.weights.architecture
    tokens = rng.integers(1, len(net.inputs), size=(3, net.positions))
    tokens[:, : net.pads] = 0
    return tokens


def test_random_networks_are_entangled_or_refused() -> None:
    rng, done = np.random.default_rng(0), {"norm": 0, "loops": 0, "whole norm": 0, "refused": 0, "experts": 0}
    for wired in random_parts():
        net = wired.weights.architecture
        if any(block.cell and block.cell.kind != "diagonal" for block in net.blocks):
            with pytest.raises(BuildRefused, match="no such symmetries"):
                entangle(wired, 1)
            done["refused"] += 1
            continue
        twin = entangle(wired, 1).wired
        tokens = random_tokens(wired, rng)
        got, want = batch_logits(twin.weights, tokens), batch_logits(wired.weights, tokens)
        np.testing.assert_allclose(got, want, atol=1e-9, rtol=1e-9)
        done["norm"] += bool(net.norm and net.groups)
        done["whole norm"] += net.norm and not net.groups
        done["loops"] += net.loops > 1
        done["experts"] += any(block.experts for block in net.blocks)
    assert min(done.values()) > 0, done


def test_norms_of_the_whole_stream_are_turned_around_their_mean() -> None:
    turned = 0
    for wired in random_parts():
        net, arrays = wired.weights.architecture, dict(wired.weights.arrays)
        if net.norm and not net.groups and not any(block.cell for block in net.blocks):
            arrays |= {name: np.ones_like(array) for name, array in arrays.items() if name.endswith(".w")}
            shifts = [name for name in arrays if name.split(".")[-2].startswith("ln") and name.endswith(".b")]
            arrays |= {name: np.zeros_like(arrays[name]) for name in shifts}
            plain = wiring(replace(wired.weights, arrays=arrays))
            twin = entangle(plain, 1).wired.weights
            tokens = random_tokens(wired, np.random.default_rng(2))
            np.testing.assert_allclose(batch_logits(twin, tokens), batch_logits(plain.weights, tokens), atol=1e-9)
            if net.d_model > 2:
                bare = [np.abs(weights.arrays["unembed.W_U"]).round(6) for weights in (twin, plain.weights)]
                turned += not np.isin(bare[0], bare[1]).all()
    assert turned > 0


def test_what_does_not_compose_carries_nothing_through_norms_either() -> None:
    rng, heard = np.random.default_rng(3), 0
    for wired in random_parts():
        weights = wired.weights
        if weights.architecture.norm:
            thin = {name: array * (rng.random(array.shape) < 0.3) for name, array in weights.arrays.items()}
            thin |= {name: weights.arrays[name] for name in thin if ".ln" in f".{name}"}
            wired = wiring(replace(weights, arrays=thin))
            tokens = random_tokens(wired, rng)
            given = {node: value[::-1, ::-1] for node, value in activities(wired, tokens).items()}
            silent = sorted(set(wired.edges) - set(wired.composed))
            got, want = patched(wired, tokens, silent, given), batch_logits(wired.weights, tokens)
            np.testing.assert_allclose(got, want, atol=1e-9, rtol=1e-9)
            heard += len(silent)
    assert heard > 20


def test_edges_of_random_networks_are_cut_by_definition() -> None:
    rng, done = np.random.default_rng(1), 0
    for wired in random_parts():
        net = wired.weights.architecture
        heads = {(head.attention, head.ties) for block in net.blocks for head in block.heads}
        odd = [block.cell for block in net.blocks if block.cell and block.cell.kind != "diagonal"]
        if odd or not heads <= {("softmax", ties) for ties in ("left", "right", "average")}:
            continue
        tokens = random_tokens(wired, rng)
        places = np.stack([rng.permutation(net.positions) for _ in tokens])
        asked = PatchDomain(tokens, np.ones_like(tokens, dtype=bool), np.array([[0, 1], [1, 2], [2, 0]]), places)
        given = asked.donor_activations(activities(wired, tokens))
        cut = [edge for edge in wired.edges if rng.random() < 0.5]
        got = patched(wired, tokens, cut, given)
        for pair in range(3):
            np.testing.assert_allclose(got[pair], naive(wired, asked, pair, cut), atol=1e-7, rtol=1e-7)
        done += 1
    assert done > 3
