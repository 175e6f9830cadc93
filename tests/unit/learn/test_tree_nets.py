"""Nets for trees: locally connected layers, segments of heads, and measurements on several grammars."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest

from vitrify.learn.measure import aligned, log_probabilities, losses
from vitrify.learn.models.catalogue import make
from vitrify.learn.program import Probe
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.net.transformer import Head
from vitrify.sandboxes.catalogue import examples
from vitrify.sandboxes.catalogue import make as make_sandbox
from vitrify.sandboxes.hierarchy import HierarchySandbox

CHAIN = make_sandbox("in_context_markov", {"states": 3, "length": 10})
KEY = jax.random.key(3)


def test_a_locally_connected_net_starts_like_the_convolution() -> None:
    """Each place has weights of its own, of the deviation that the shared filter has."""
    net = make("hierarchical", {"channels": 64, "shared": False}).architecture(CHAIN)
    assert [net.shapes()[f"conv.{at}.W"] for at in range(4)] == [
        (places, 64, planes, 1, 2) for places, planes in ((8, 3), (4, 64), (2, 64), (1, 64))
    ]
    first = {shared: make("hierarchical", {"channels": 64, "shared": shared}) for shared in (True, False)}
    spreads = [
        np.std(np.asarray(family.first(family.architecture(CHAIN), KEY)["conv.1.W"])) for family in first.values()
    ]
    assert spreads == pytest.approx([np.sqrt(2 / 128)] * 2, rel=0.05)
    assert "shared" not in first[True].identity()
    assert first[False].identity()["shared"] is False


def test_segments_of_a_transformer_grow_with_its_layers() -> None:
    """They are causal whatever the sandbox, and the identity of other transformers does not name them."""
    box = make_sandbox("hierarchy", {"v": 4, "m": 2, "L": 3, "mode": "last"})
    family = make("transformer", {"layers": 3, "segments": 2})
    heads = [block.heads for block in family.architecture(box).blocks]
    assert heads == [(Head(mask="causal", segment=2**layer),) * 2 for layer in (1, 2, 3)]
    assert "segments" not in make("transformer").identity()


def test_hierarchies_of_several_grammars_have_probes_and_validation() -> None:
    """Rules that depend on a member's grammar are those of each loop by itself: each net, and each grammar alone."""
    box = HierarchySandbox(v=4, m=2, L=2, mode="last", grammars=2, levels=False)
    recipe = Recipe(steps=2, batch=4, test_examples=64, validation_examples=64, average=True, evals_per_doubling=0)
    probes: dict[str, Probe] = {"answers": lambda _net, _arrays, batch, _seen: batch.targets[:, -1].sum()}
    for family in (
        make("hierarchical", {"channels": 4}),
        make("hierarchical", {"channels": 4, "shared": False}),
        make("transformer", {"layers": 2, "d_model": 8, "segments": 2}),
        make("transformer", {"layers": 2, "d_model": 8}),
    ):
        runs = train(family, box, axes={"grammar,seed": [(0, 0), (1, 1)]}, recipe=recipe, probes=probes)
        for grammar, run in enumerate(runs):
            own = replace(box, grammar=grammar)
            assert run.last["answers"] == int(examples(own, 0, "probe", 0, 64).targets[:, -1].sum())
            batch = examples(own, 0, "validation", 0, 64)
            logits = family.logits(run.weights.architecture, own, dict(run.weights.arrays), batch)
            loss = losses(log_probabilities(logits), aligned(batch, logits))[:, -1]
            above = loss - losses(jax.vmap(own.optimal)(batch), batch)[:, -1]
            assert run.last["validation"] == pytest.approx(float(above.mean()), abs=1e-5)
