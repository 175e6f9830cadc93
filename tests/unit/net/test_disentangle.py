"""Ordinary and disentangled transformers: conversions keep every output, on random nets and on built ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from examples import examples
from nets import mixed, networks, random_net, words
from vitrify.certification import certify
from vitrify.constructions.catalogue import build
from vitrify.errors import BuildRefused
from vitrify.net.disentangle import apart, together
from vitrify.net.inference import logits
from vitrify.net.weights import Weights
from vitrify.spec import read_spec
from vitrify.spec.languages.dyck import Dyck
from vitrify.spec.memory.knowledge import xor_world
from vitrify.spec.tasks.estimate import Estimate

EXAMPLES = Path(__file__).parents[3] / "examples"
BUILT: dict[str, tuple[object, str, dict[str, Any]]] = {
    "weather": (read_spec(EXAMPLES / "weather.arpa"), "heads", {"attention": "sparsemax", "max_length": 12}),
    "parity": (read_spec(EXAMPLES / "parity.automaton.json"), "log-depth", {"attention": "softmax", "max_length": 12}),
    "estimator": (Estimate(2, 2, 12), "estimate-digits", {"attention": "sparsemax"}),
    "brackets": (Dyck.of("( )", depth=2, length=8), "dyck", {"attention": "hard"}),
    "facts, with experts": (xor_world(), "hidden", {}),
}


def same(one: Weights, other: Weights, word: list[int]) -> None:
    [wanted], [found] = logits(one, [word]), logits(other, [word])
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None)
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


@pytest.mark.slow
@each("name", BUILT)
def test_built_nets_stay_right(name: str) -> None:
    spec, construction, choices = BUILT[name]
    weights = build(spec, construction, **choices)
    net, wide = weights.architecture, apart(weights)
    parts = 1 + sum(len(block.heads) + block.halves for block in net.blocks)
    plain = together(wide)
    assert wide.sizes.d_model == plain.sizes.d_model == parts * net.d_model
    assert wide.sizes.nonzero == plain.sizes.nonzero
    for converted in (wide, plain):
        evidence = certify(converted, spec, max_length=None if "facts" in name else 5, samples=8)
        assert evidence.verdict == "holds", evidence.witness
