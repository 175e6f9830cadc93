"""Certificates of classifiers: right nets hold, wrong ones are noticed, mutations too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from built import small_scene
from vitrify.certification import certify, mutation_test, net_check
from vitrify.certification.checks.points import PointCheck
from vitrify.certification.oracles.classes import ClassOracle
from vitrify.constructions.catalogue import build
from vitrify.constructions.hierarchy import hierarchy_cnn
from vitrify.constructions.scenes import scene_cnn
from vitrify.errors import FolderError, InputError
from vitrify.net.conv import Convolutional
from vitrify.net.weights import Weights
from vitrify.spec.geometry.scene import Scene, random_bitmaps
from vitrify.spec.grammars.families import random_hierarchy

PLAIN, COMPOSED = small_scene(0), small_scene(2, composites=1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("scene", "shape"),
    [
        (PLAIN, "features"),
        (COMPOSED, "features"),
        pytest.param(random_bitmaps(0), "features", marks=pytest.mark.slow),
        pytest.param(random_bitmaps(2, composites=1), "binary", marks=pytest.mark.slow),
    ],
)
def test_scenes_hold_and_their_mutations_are_noticed(scene: Scene, shape: str) -> None:
    weights = build(scene, shape)
    evidence = certify(weights, scene)
    assert evidence.verdict == "holds"
    counts = {run.kind: run.count for run in evidence.domains}
    assert counts["images of all classes"] == 256
    assert "images with one wrong pixel" in counts
    assert ("images with the parts of composites scattered" in counts) == bool(scene.composites)
    assert ("images with features at the edge of presence" in counts) == (shape == "features")
    radius = [each.measured for each in evidence.quantities if each.name.startswith("certified radius")]
    assert len(radius) == (3 if shape == "features" else 0)
    assert radius == sorted(radius)
    found = mutation_test(weights, scene, count=60)
    assert found.rate >= 0.99, found.survivors


@pytest.mark.long
def test_a_wrong_class_is_a_witness() -> None:
    weights = scene_cnn(PLAIN)
    logits = weights.arrays["unembed.b_U"].copy()
    logits[0] = 0.4
    evidence = certify(weights.with_array("unembed.b_U", logits), PLAIN)
    assert evidence.verdict == "fails"
    assert evidence.witness is not None
    assert evidence.witness["actual"] == "(none)"
    assert PLAIN.reading(evidence.witness["input"]).label == evidence.witness["expected"] == "c0"


@pytest.mark.long
def test_composites_that_are_only_counted_are_noticed() -> None:
    """A net that asks whether the parts are anywhere, instead of where they belong."""
    weights = scene_cnn(COMPOSED)
    last = len(weights.architecture.convolutions) - 1
    kernel = weights.arrays[f"conv.{last}.W"]
    everywhere = np.broadcast_to(kernel.max(axis=(2, 3), keepdims=True), kernel.shape).copy()
    assert certify(weights.with_array(f"conv.{last}.W", everywhere), COMPOSED).verdict == "fails"


@pytest.mark.slow
def test_another_gap_or_eps_is_noticed() -> None:
    for name, factor in (("conv.1.W", 0.5), ("conv.0.b", 1.1)):
        weights = scene_cnn(PLAIN)
        changed = weights.with_array(name, weights.arrays[name] * factor)
        assert certify(changed, PLAIN).verdict == "fails", name


def test_answers_that_hardly_lead_or_are_no_numbers_are_wrong() -> None:
    net = scene_cnn(PLAIN).architecture
    oracle = ClassOracle(net, lambda _point: "c1", lambda _rng: [], lambda _point: None)
    points = np.zeros((4, 1, 1, 1))
    points[:, 0, 0, 0] = range(4)
    found = np.array([[0.0, 1.0, 0.0, 0.5], [0.0, 1.0, 0.0, 1.0], [0.0, np.nan, 0.0, 0.5], [0.0, 1.0, np.nan, 0.5]])
    assert oracle.errors(points, found).tolist() == [0.0, 1.0, 1.0, 1.0]


def test_nets_of_another_spec_are_refused() -> None:
    weights = scene_cnn(PLAIN)
    for other in (replace(PLAIN, image=(13, 12)), random_bitmaps(0), random_hierarchy(2, 1, 2, 2, seed=0), "a word"):
        with pytest.raises(FolderError):
            certify(weights, other)
    with pytest.raises(InputError, match="leave --max-length and --samples out"):
        certify(weights, PLAIN, max_length=3)
    grammar = random_hierarchy(3, 2, 2, 2, seed=0, classes=2)
    with pytest.raises(FolderError, match="same words"):
        certify(hierarchy_cnn(grammar), random_hierarchy(3, 2, 2, 3, seed=0, classes=2))


def asked(weights: Weights[Convolutional], spec: Any) -> list[str]:
    found = net_check(weights.architecture, spec)
    assert isinstance(found, PointCheck)
    return [batch.kind for batch in found.batches]


def test_hierarchies_are_asked_about_every_string_or_about_every_rule() -> None:
    small, large = random_hierarchy(3, 2, 2, 2, seed=0, classes=2), random_hierarchy(6, 2, 2, 3, seed=0, classes=2)
    assert asked(hierarchy_cnn(small), small) == ["strings"]
    assert len(asked(hierarchy_cnn(large), large)) == 3
    evidence = certify(hierarchy_cnn(small), small)
    assert (evidence.verdict, evidence.methods, evidence.cases) == ("holds", ("exhaustive",), 81)
    broken = hierarchy_cnn(large)
    kernel = broken.arrays["conv.1.W"].copy()
    kernel[0, kernel[0, :, 0, 0] > 0, 0, 0] = 0.0
    wrong = certify(broken.with_array("conv.1.W", kernel), large)
    assert wrong.verdict == "fails"
    assert wrong.witness is not None
    assert len(wrong.witness["input"]) == 8
