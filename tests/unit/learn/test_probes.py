"""Probes on nets whose heads and streams are known, and against scores that are counted one by one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from at_once import first
from vitrify.constructions.catalogue import build
from vitrify.errors import InputError
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.probes import (
    Target,
    attention_on,
    back,
    between_symbols,
    chance,
    decodes,
    heads_of,
    induction,
    parents,
    previous_token,
    sink,
    value_at_sink,
)
from vitrify.learn.program import Probe
from vitrify.net.sparse import dense
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights
from vitrify.sandboxes.catalogue import Example
from vitrify.sandboxes.in_context_markov import InContextMarkov
from vitrify.spec.tasks.estimate import Estimate
from vitrify.spec.tasks.k_hop import KHop

ROWS, LENGTH, SYMBOLS = 40, 14, 5


def row_of(tokens: Any, latent: dict[str, Any] | None = None) -> Example:
    targets = np.pad(tokens, ((0, 0), (1, 0)))
    return Example(tokens, targets, np.ones(targets.shape), latent or {})


def random_row(latent: dict[str, Any] | None = None) -> Example:
    return row_of(np.random.default_rng(0).integers(SYMBOLS, size=(ROWS, LENGTH)), latent)


def recorded(weights: Weights[Any], row: Example) -> dict[str, Any]:
    net, seen = weights.architecture, dict[str, Any]()
    arrays = {name: dense(array) for name, array in weights.arrays.items()}
    net.forward(arrays, np.pad(row.tokens + 1, ((0, 0), (net.pads, 0))), record=seen.__setitem__)
    return seen


def scores(weights: Weights[Any], row: Example, target: Target) -> Any:
    """The score of every head."""
    return told(attention_on(target), weights.architecture, row, recorded(weights, row))


def told(probe: Probe, net: Any, row: Example, seen: dict[str, Any]) -> Any:
    """What a probe says, as one program."""
    return np.asarray(jax.jit(lambda row, seen: probe(net, {}, row, seen))(row, seen))


NEAR: dict[AttentionKind, float] = {"hard": 1e-6, "softmax": 0.01}  # soft heads are as sharp as their readers need


@pytest.mark.parametrize("attention", ["hard", "softmax"])
def test_built_induction_nets_have_the_heads_that_they_were_built_with(attention: AttentionKind) -> None:
    row, net = random_row(), build(KHop(hops=1, symbols=SYMBOLS, length=LENGTH), attention=attention)
    assert heads_of(net.architecture) == ("L0H0", "L1H0")
    for target, right in ((previous_token, 0), (induction, 1)):
        even = float(chance(target)(net.architecture, {}, row, {}))
        found = scores(net, row, target)
        assert found[right] >= 1 - NEAR[attention]
        assert found[1 - right] <= 0.35
        assert even <= 0.35


@pytest.mark.parametrize("attention", ["hard", "softmax"])
def test_an_estimator_of_order_two_looks_one_back_two_back_and_at_all_that_match(attention: AttentionKind) -> None:
    tree = np.broadcast_to(np.maximum(np.arange(LENGTH) - 2, -1)[:, None], (ROWS, LENGTH, 1))
    row, task = random_row({"parents": tree}), Estimate(order=2, symbols=SYMBOLS, length=LENGTH)
    net = build(task, "estimate-heads", attention=attention)
    assert heads_of(net.architecture) == ("L0H0", "L0H1", "L1H0")
    for target, right in ((previous_token, 0), (parents, 1), (back(1), 0), (back(2), 1)):
        found = scores(net, row, target)
        assert found[right] >= 1 - NEAR[attention]
        assert found[1 - right] <= NEAR[attention]
    assert scores(net, row, induction)[2] < 0.6  # it asks for two symbols to match, so often nothing does


def test_the_sink_is_where_a_head_looks_that_finds_nothing() -> None:
    net = build(KHop(hops=1, symbols=LENGTH, length=LENGTH), attention="hard")
    row = row_of(np.array([np.random.default_rng(s).permutation(LENGTH) for s in range(4)]))
    found = scores(net, row, sink)
    np.testing.assert_allclose(found, [1 / LENGTH, 1.0], atol=1e-6)  # the first place has no other before it
    np.testing.assert_allclose(scores(net, row, induction), 0.0)  # no query has a target


def test_random_nets_score_low_and_probes_compile() -> None:
    box = InContextMarkov(states=SYMBOLS, length=LENGTH + 1)
    family = TransformerFamily(layers=2, heads=2, d_model=16, units=0)
    net, row = family.architecture(box), jax.tree.map(jnp.asarray, random_row())
    arrays = family.arrays(net, first(family, net, 0))
    targets = {"previous": previous_token, "induction": induction, "sink": sink}
    probes = {name: attention_on(target) for name, target in targets.items()}
    probes |= {"token": decodes(lambda row: row.tokens, SYMBOLS)}

    @jax.jit
    def measured(arrays: Any) -> Any:
        seen: dict[str, Any] = {}
        family.logits(net, box, arrays, row, seen.__setitem__)
        return {name: probe(net, arrays, row, seen) for name, probe in probes.items()}

    found = {name: np.asarray(value) for name, value in measured(arrays).items()}
    assert found["previous"].shape == (4,) == found["sink"].shape
    assert found["previous"].max() <= 0.4
    assert found["induction"].max() <= 0.5
    assert found["token"].shape == (len(net.moments),)
    assert found["token"].min() >= 0.95  # the stream keeps the embedding


class Shape:
    """As much of a net as a probe of attention asks for."""

    def __init__(self, pads: int) -> None:
        self.pads, self.name = pads, "shape"
        self.turns = ((0, type("Block", (), {"heads": (1, 2)})()),)


@pytest.mark.parametrize("pads", [0, 1, 2])
def test_scores_are_those_counted_one_by_one(pads: int) -> None:
    rng = np.random.default_rng(pads)
    batch, tokens = 3, 7
    tree = rng.integers(-1, 7, (batch, tokens - 1, 2))
    row = row_of(
        rng.integers(3, size=(batch, tokens)), {"parents": np.minimum(tree, np.arange(tokens - 1)[:, None] - 1)}
    )
    pattern = rng.dirichlet(np.ones(tokens + pads), (batch, 2, tokens + pads))
    seen, net = {"blocks.0.attn.hook_pattern": pattern}, Shape(pads)

    def keys(kind: str, b: int, i: int) -> set[int]:
        """The keys in question for a query, as positions of the net."""
        x, t = row.tokens[b], i - pads
        if kind == "sink":
            return set(range(max(pads, 1))) if i >= max(pads, 1) else set()
        if t < 0:
            return set()
        found = {
            "previous": [t - 1] if t else [],
            "induction": [j for j in range(1, t + 1) if x[j - 1] == x[t]],
            "parents": [p for p in row.latent["parents"][b, t] if p >= 0] if t < tokens - 1 else [],
        }[kind]
        return {int(j) + pads for j in found}

    targets: dict[str, Target] = {"previous": previous_token, "induction": induction, "parents": parents, "sink": sink}
    for kind, target in targets.items():
        weights: list[Any] = []
        for b, i in np.ndindex(batch, tokens + pads):
            wanted = sorted(keys(kind, b, i))
            if wanted:
                weights.append(pattern[b, :, i][:, wanted].sum(axis=-1))
        np.testing.assert_allclose(told(attention_on(target), net, row, seen), np.mean(weights, axis=0), rtol=1e-5)


def test_linear_probes_read_what_a_head_has_brought_from_there_on() -> None:
    row, net = random_row(), build(Estimate(order=1, symbols=SYMBOLS, length=LENGTH), attention="hard")
    seen, shape = recorded(net, row), net.architecture
    before = np.pad(row.tokens, ((0, 0), (1, 0)), constant_values=SYMBOLS)[:, :-1]  # at first there is none
    assert shape.moments[:2] == ("blocks.0.hook_resid_pre", "blocks.0.hook_resid_mid")
    places = told(decodes(lambda _: before, SYMBOLS + 1), shape, row, seen)
    assert places[0] <= 0.45
    assert places[1] == 1.0
    last = told(decodes(lambda row: row.tokens[:, -1], SYMBOLS), shape, row, seen)
    assert (last == 1.0).all()
    code = np.stack([np.cos(before), before**2], axis=-1)
    explained = told(decodes(lambda _: code), shape, row, seen)
    assert explained[0] <= 0.5  # the first place has no symbol before, and says so
    assert explained[1] >= 0.99


def test_a_probe_is_judged_on_rows_that_it_was_not_fitted_to() -> None:
    rng = np.random.default_rng(0)
    row, net = random_row(), build(KHop(hops=1, symbols=SYMBOLS, length=LENGTH))
    stream = rng.normal(size=(ROWS, LENGTH + 1, 400))  # wide enough to fit anything
    seen, noise = dict.fromkeys(net.architecture.moments, stream), rng.integers(2, size=(ROWS, LENGTH))
    found = told(decodes(lambda _: noise, 2), net.architecture, row, seen)
    assert (np.abs(found - 0.5) <= 0.15).all()


def test_what_has_no_place_is_refused() -> None:
    row, net = random_row(), build(KHop(hops=1, symbols=SYMBOLS, length=LENGTH))
    with pytest.raises(InputError, match="per sequence, per token"):
        decodes(lambda _: np.zeros((ROWS, 3), int), 2)(net.architecture, {}, row, recorded(net, row))


def test_attention_between_symbols_is_counted_pair_by_pair() -> None:
    net = TransformerFamily(layers=2, heads=2, d_model=8, units=0).architecture(InContextMarkov(states=SYMBOLS))
    rng, row = np.random.default_rng(1), random_row()
    patterns = [rng.random((ROWS, 2, LENGTH + 1, LENGTH + 1)) for _ in range(2)]
    seen = {f"blocks.{turn}.attn.hook_pattern": pattern for turn, pattern in enumerate(patterns)}
    found = told(between_symbols, net, row, seen)
    expected = np.zeros((2, 4, SYMBOLS, SYMBOLS))
    for number, tokens in enumerate(row.tokens):
        for q, k in np.argwhere(~np.eye(LENGTH, dtype=bool)):
            at = (slice(None), tokens[q], tokens[k])
            weights = [pattern[number, head, q + 1, k + 1] for pattern in patterns for head in range(2)]
            expected[0][at] += LENGTH * np.array(weights)
            expected[1][at] += 1
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("norm", [True, False])
def test_the_value_at_the_first_place_is_compared_with_the_others(norm: bool) -> None:
    """Values are found again from what heads read, by undoing the patterns."""
    family = TransformerFamily(layers=2, heads=2, d_model=8, units=4, norm=norm)
    net = family.architecture(InContextMarkov(states=SYMBOLS, length=LENGTH + 1))
    rng, row = np.random.default_rng(2), random_row()
    arrays = {name: 0.3 * rng.normal(size=shape) for name, shape in net.shapes().items()}
    seen: dict[str, Any] = {}
    net.forward(arrays, np.pad(row.tokens + 1, ((0, 0), (1, 0))), record=seen.__setitem__)
    found = np.asarray(value_at_sink(net, arrays, row, seen))
    assert found.shape == (4,)
    for turn in range(2):
        pattern, mixed = (seen[f"blocks.{turn}.attn.hook_{name}"] for name in ("pattern", "z"))
        values = np.linalg.solve(pattern, np.moveaxis(mixed, 2, 1))  # [batch, head, place, d]: what was mixed
        size = np.linalg.norm(values, axis=-1)
        expected = size[:, :, 0].mean(axis=0) / size[:, :, 1:].mean(axis=(0, 2))
        np.testing.assert_allclose(found[2 * turn : 2 * turn + 2], expected, rtol=1e-3)
