r"""Convolutional networks classify feature scenes with zero error, and with a radius that attacks do not break.

Statement: for images whose class is the set of features in them there is a ReLU CNN without class errors wherever the
gap condition holds: $2q$ channels for the $q$ intensities of the templates (none for binary images), one channel per
template, one more convolution for composites, one dense unit per feature and one logit per class. Its answer can't
change within a radius that is worked out for each image, and changes soon beyond it.
Why: $1 - e_T/\gamma$ is 1 where the excess $e_T$ over $\epsilon$ is 0, and not positive where it is $\gamma$ or more;
everything above is logic on bits. Interval bounds through these few layers are nearly the truth, as the pixels of
templates that do not overlap move independently.
Checked: 250 generated images for each scene, template maps against the direct comparison of patches, near misses of
every template pixel, scattered composites; sizes against the formulas; a projected-gradient attack on 12 images, just
inside the certified radius (must fail) and at 1.25 times the radius (must succeed on some image).
Source: Nandakumar, Tagade & Liu 2023, arXiv 2307.00919 [A]; the weights and the radius here are our own derivation.
Saboteur: the bias of one template is lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitrify.certify.attack import attack
from vitrify.certify.evidence import Evidence
from vitrify.certify.examine import examination
from vitrify.certify.robust import answers, radii
from vitrify.claims._nets import with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.scenes import binary_cnn, scene_cnn, sizes
from vitrify.net.conv import image_planes
from vitrify.net.run import outputs
from vitrify.spec.scene import Scene
from vitrify.spec.scene_images import draw_images
from vitrify.spec.scenes import random_bitmaps, random_scene

IMAGES = 250
ATTACKED = 12
INSIDE, OUTSIDE = 0.999, 1.25  # shares of the radius at which attacks are tried
LEAD = 0.5  # of the right answer


def subjects() -> Iterator[Subject]:
    """Six features of two variants, with composites and without, and bitmaps in both shapes."""
    plain, bitmaps = random_scene(0), random_bitmaps(2, composites=1)
    composed = random_scene(1, composites=2, size=4, image=20)
    yield Subject("six features", plain, scene_cnn(plain), {"shape": "features"})
    yield Subject("six features, two composites", composed, scene_cnn(composed), {"shape": "features"})
    yield Subject("bitmaps, two convolutions", bitmaps, scene_cnn(bitmaps), {"shape": "features"})
    yield Subject("bitmaps, one convolution", bitmaps, binary_cnn(bitmaps), {"shape": "binary"})


def check(subject: Subject) -> Evidence:
    """Class errors, template maps, sizes, and attacks around the certified radius."""
    start = time.perf_counter()
    scene, weights = subject.spec, subject.weights
    planes, right, present = _images(scene)
    found = outputs(weights, planes)
    own = np.take_along_axis(found, right[:, None], axis=1)
    others = np.where(np.arange(found.shape[1]) == right[:, None], -np.inf, found)
    wrong = np.flatnonzero(found.argmax(axis=1) != right)
    evidence = _examination(weights.architecture, scene).run(weights)
    declared: dict[str, Any] = {
        "images with a wrong class": 0,
        "least lead of the right answer": LEAD,
        "largest error of a template map": 0.0,
        **sizes(scene, subject.data["shape"]),
    }
    measured: dict[str, Any] = {
        "images with a wrong class": len(wrong),
        "least lead of the right answer": round(float((own - others).min()), 9),
        "largest error of a template map": round(_map_error(subject, planes, present), 9),
        **_sizes(subject),
    }
    if weights.architecture.pixels == "numbers" and evidence.verdict == "holds":
        declared |= {"attacks that succeed within the radius": 0, "some attack succeeds beyond it": True}
        measured |= _attacked(subject, planes[:ATTACKED])
    domain = f"{len(planes)} generated images; {evidence.domain}"
    found_out = Evidence(
        evidence.verdict,
        evidence.method,
        domain,
        len(planes) + evidence.cases,
        evidence.witness,
        seed=0,
        seconds=time.perf_counter() - start,
    )
    return with_sizes(found_out, declared, measured)


def sabotage(subject: Subject) -> Subject:
    """The first template loses its bias."""
    return zeroed(subject, f"conv.{_templates(subject)}.b", 0)


_examination = cache(examination)  # the saboteur is asked the same questions


@cache
def _images(scene: Scene) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]:
    """Generated images as planes, their classes and where each template is, by the scene's own comparison."""
    drawn, labels = draw_images(scene, IMAGES, seed=1)
    names = [name for name, _ in scene.classes]
    return drawn[:, None], np.array([names.index(label) for label in labels]), np.array([*map(scene.present, drawn)])


def _templates(subject: Subject) -> int:
    """The number of the convolution that finds templates."""
    return 1 if subject.data["shape"] == "features" else 0


def _map_error(subject: Subject, planes: NDArray[np.float64], present: NDArray[np.bool_]) -> float:
    seen: dict[str, NDArray[np.float64]] = {}
    net = subject.weights.architecture
    net.forward(subject.weights.prepared, image_planes(net, planes[:, 0]), record=seen.__setitem__)
    return float(np.abs(seen[f"conv.{_templates(subject)}.hook_post"] - present).max())


def _sizes(subject: Subject) -> dict[str, int]:
    """The sizes of the arrays, by the names of the formulas."""
    arrays = subject.weights.arrays
    channels = [len(arrays[f"conv.{layer}.b"]) for layer in range(len(subject.weights.architecture.convolutions))]
    names = ["intensity channels", "template channels", "composite channels"][1 - _templates(subject) :]
    dense = {"dense units": len(arrays["dense.0.b_in"]), "logits": len(arrays["unembed.b_U"])}
    return dict(zip(names, channels, strict=False)) | dense


def _attacked(subject: Subject, planes: NDArray[np.float64]) -> dict[str, Any]:
    radius = radii(subject.weights, planes)
    inside, _ = attack(subject.weights, planes, INSIDE * radius)
    outside, points = attack(subject.weights, planes, OUTSIDE * radius)
    moved = answers(subject.weights, points[outside]) != answers(subject.weights, planes[outside])
    return {
        "attacks that succeed within the radius": int(inside.sum()),
        "some attack succeeds beyond it": bool(outside.any() and moved.all()),
        "attacks that succeed beyond it": f"{int(outside.sum())} of {len(planes)}",
        "certified radius, smallest and largest": [float(radius.min()), float(radius.max())],
    }


CLAIM = Claim(row="R6", status="proved", certified="sampled", subjects=subjects, check=check, sabotage=sabotage)
