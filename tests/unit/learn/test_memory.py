"""Memories: what they compute, what stays as it was drawn, and that a part of a net is a smaller net."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from at_once import logits
from vitrify.learn.models.memory import CODES, MemoryFamily
from vitrify.learn.recipe import Recipe
from vitrify.learn.train import train
from vitrify.sandboxes.associations import AssociationSandbox
from vitrify.sandboxes.facts import FactRecall

WORDS = AssociationSandbox(6, word_fraction=0.5)
FACTS = FactRecall(3, 2, 2, noise=0, length=3, table="random")
KINDS: dict[str, tuple[Any, Any]] = {
    "matrix": (MemoryFamily(8), WORDS),
    "units": (MemoryFamily(8, units=12), WORDS),
    "heads": (MemoryFamily(8, heads=2), FACTS),
    "heads and units": (MemoryFamily(8, heads=2, units=12), FACTS),
}


def arrays_of(family: MemoryFamily, box: Any) -> tuple[Any, dict[str, Any]]:
    net = family.architecture(box)
    found = jax.jit(lambda key: family.arrays(net, family.first(net, key)))(jax.random.key(0))
    return net, {name: np.asarray(array, np.float64) for name, array in found.items()}


def answered(a: dict[str, Any], tokens: Any, heads: int, units: int) -> Any:
    """The definition, for the last token of one row."""
    x = a["embed.W_E"][np.asarray(tokens) + 1]
    if not heads and not units:
        return (x[-1] @ a["blocks.0.attn.W_V"][0]) @ a["unembed.W_U"][len(x[-1]) :]
    if not heads:
        said = np.maximum(x[-1] @ a["blocks.0.mlp.W_in"], 0) @ a["blocks.0.mlp.W_out"]
        return said @ a["unembed.W_U"][len(x[-1]) :]
    stream = x[-1].copy()
    for q, k, v, o in zip(*(a[f"blocks.0.attn.W_{name}"] for name in "QKVO"), strict=True):
        weight = np.exp((x @ k) @ (x[-1] @ q) / np.sqrt(q.shape[1]))
        stream += weight @ (x @ v) @ o / weight.sum()
    if units:
        stream += np.maximum(stream @ a["blocks.0.mlp.W_in"], 0) @ a["blocks.0.mlp.W_out"]
    return stream @ a["unembed.W_U"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_memory_is_its_definition_and_a_part_of_it_is_a_smaller_one(kind: str) -> None:
    family, box = KINDS[kind]
    half = MemoryFamily(8, family.heads, family.d_head, family.units, part=0.5)
    row = jax.tree.map(lambda x: x[None], jax.jit(box.draw)(jax.random.key(2)))
    for one in (family, half):
        net, arrays = arrays_of(one, box)
        wanted = answered(arrays, np.asarray(row.tokens[0]), one.heads, one.units)
        found = np.asarray(logits(one, net, box, arrays, row))[0, -1]
        possible = np.ones(len(wanted), bool) if box.possible() is None else np.asarray(box.possible())
        np.testing.assert_allclose(found[possible], wanted[possible], rtol=1e-4, atol=1e-5)
        assert (found[~possible] < -1e29).all()
        assert np.isclose(np.linalg.norm(arrays["embed.W_E"], axis=1), 1).all()
        assert np.isclose(np.linalg.norm(arrays["unembed.W_U"], axis=0), 1).all()
    trained = [name for name in jax.eval_shape(lambda: one.first(net, jax.random.key(0))) if name not in CODES]
    assert sum(int((arrays[name] != 0).sum()) for name in trained) == half.size()
    whole = sum(int(np.prod(net.shapes()[name])) for name in trained)
    assert whole == family.size()


def test_codes_stay_as_they_were_drawn_and_words_are_learned() -> None:
    runs = train(
        MemoryFamily(8),
        AssociationSandbox(8),
        axes={"word_fraction,part": [(0.5, 1.0), (1.0, 0.25)]},
        recipe=Recipe(steps=150, batch=32, lr=1.0, clip=None, evals_per_doubling=0, test_examples=64),
    )
    assert [point["step"] for point in runs[0].curve] == [0, 150]
    assert runs[0].last["accuracy"] == 1.0
    assert runs[1].last["accuracy"] < 1.0
    net = MemoryFamily(8).architecture(AssociationSandbox(8))
    key = jax.random.key(jnp.uint32(0), impl="threefry2x32")
    first = jax.jit(lambda key: MemoryFamily(8).first(net, key))(key)
    for name in CODES:
        np.testing.assert_allclose(runs[0].weights.arrays[name], first[name], atol=1e-6)


def test_a_share_of_the_facts_is_the_first_ones() -> None:
    some = FactRecall(4, 2, 3, noise=0, length=3, table="random", fact_fraction=0.4)
    rows = jax.jit(jax.vmap(some.draw))(jax.random.split(jax.random.key(0), 200))
    seen = {tuple(sorted(one)) for one in np.asarray(rows.tokens)[:, :2].tolist()}
    assert seen == {tuple(sorted(fact[:2])) for fact in np.asarray(some.known)[:3].tolist()}
    said = np.exp(np.asarray(some.predictors()["unigram"](jax.tree.map(lambda x: x[0], rows))))[-1]
    np.testing.assert_allclose(said, np.bincount(np.asarray(some.known)[:3, 2], minlength=len(said)) / 3, atol=1e-6)
