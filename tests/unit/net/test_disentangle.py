"""Ordinary and disentangled transformers: conversions keep every output, on random nets and on built ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nets import mixed, networks, random_net, words
from vitrify.certify import certify
from vitrify.constructions.catalogue import Settings, build
from vitrify.errors import BuildRefused
from vitrify.net.disentangle import apart, together
from vitrify.net.run import logits
from vitrify.net.weights import Ledger, Weights
from vitrify.spec import read_spec
from vitrify.spec.dyck import Dyck
from vitrify.spec.tasks.estimate import Estimate
from vitrify.spec.worlds import xor_world

EXAMPLES = Path(__file__).parents[3] / "examples"
BUILT: dict[str, tuple[object, str, Settings]] = {
    "weather": (read_spec(EXAMPLES / "weather.arpa"), "heads", Settings("sparsemax", 12)),
    "parity": (read_spec(EXAMPLES / "parity.automaton.json"), "log-depth", Settings("softmax", 12)),
    "estimator": (Estimate(2, 2, 12), "estimate-digits", Settings("sparsemax")),
    "brackets": (Dyck.of("( )", depth=2, length=8), "dyck", Settings("hard")),
    "facts, with experts": (xor_world(), "hidden", Settings()),
}


def same(one: Weights, other: Weights, word: list[int]) -> None:
    [wanted], [found] = logits(one, [word]), logits(other, [word])
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(networks(), st.data())
def test_any_net_both_ways(weights: Weights, data: st.DataObject) -> None:
    word = data.draw(words(weights.architecture))
    if weights.architecture.residual == "concatenate":
        plain = together(weights)
        assert plain.architecture.residual == "add"
        same(weights, plain, word)
    elif weights.architecture.loops > 1 and not weights.architecture.norm:
        with pytest.raises(BuildRefused, match="the same blocks again"):
            apart(weights)
    elif not weights.architecture.norm:
        wide = apart(weights)
        assert wide.architecture.residual == "concatenate"
        same(weights, wide, word)
        same(weights, together(wide), word)


@pytest.mark.parametrize("convert", [apart, together])
def test_what_is_right_already_stays(convert: Callable[[Weights], Weights]) -> None:
    weights = random_net(mixed(residual="concatenate" if convert is apart else "add", norm=True))
    assert convert(weights) is weights


def test_a_norm_of_a_sum_is_refused() -> None:
    with pytest.raises(BuildRefused, match="does not hold: use a net without norms"):
        apart(random_net(mixed(norm=True)))


@pytest.mark.parametrize("name", BUILT)
def test_built_nets_stay_right(name: str) -> None:
    spec, shape, chosen = BUILT[name]
    weights = build(spec, shape, chosen)
    net, wide = weights.architecture, apart(weights)
    parts = 1 + sum(len(block.heads) + block.halves for block in net.blocks)
    plain = together(wide)
    assert Ledger.of(wide).d_model == Ledger.of(plain).d_model == parts * net.d_model
    assert Ledger.of(wide).nonzero == Ledger.of(plain).nonzero
    for converted in (wide, plain):
        evidence = certify(converted, spec, max_length=None if "facts" in name else 5, samples=8)
        assert evidence.verdict == "holds", evidence.witness
