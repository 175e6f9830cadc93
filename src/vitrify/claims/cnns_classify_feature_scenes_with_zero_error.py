r"""Convolutional networks classify feature scenes with zero error, and with a certified radius that attacks confirm.

Statement: The class of an image is a set of features that are present in it. A template $T$ of a feature is present at
a patch $x$ if its excess $e_T = \sum_u \max(0, |x_u - T_u| - \epsilon)$ is 0. The gap condition says that every excess
is 0 or at least $\gamma$. Then there is a ReLU CNN without classification error: $2q$ channels for excess above and
below the $q$ intensities of the templates (this layer is not needed for binary images), one channel per template, one
more convolution for composites (features at fixed offsets), one dense unit per feature and one logit per class. If no
pixel of an image changes by more than its certified radius, its answer cannot change.
Why: $1 - e_T/\gamma$ is 1 where $T$ is present and not positive where it is not; the rest is logic on bits. Interval
bounds through these few layers are nearly tight: templates that do not overlap share no pixel, so the worst cases of
several templates can occur together.
Checked: Four scenes (six features with and without composites, bitmaps with one and two convolutions). On all images
that satisfy the gap condition, whatever their pixels (zeros and ones for bitmaps), the right class has a margin of at
least $\frac12 - 10^{-9}$: a proof by intervals from the stored weights, in real arithmetic. On 250 generated images
each, template maps against direct comparison of patches; near misses of every template pixel, scattered composites;
sizes. For scenes with real-valued pixels a projected-gradient attack on 12 images fails at 0.999 of the certified
radius, which interval bounds prove, and succeeds on some image at 1.25 times it.
Not checked: Rounding on all images (in runs it is on the sampled ones), natural images, and training.
Source: Nandakumar, Tagade & Liu 2023, arXiv 2307.00919 [A] (zero error); the weights and the radius are our own.
Saboteur: The bias of one template is zero.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from vitrify.certification.attacks.images import attack
from vitrify.certification.attacks.robust import answers, radii
from vitrify.certification.checking import net_check
from vitrify.certification.margins.values import Undecided
from vitrify.certification.reading.gap import gap_margin
from vitrify.claims._figures import bars, sequence, show
from vitrify.claims._nets import (
    Claim,
    Domain,
    Evidence,
    Method,
    Quantity,
    Subject,
    Subjects,
    built,
    sized,
    zeroed,
)
from vitrify.net.conv import image_planes
from vitrify.net.inference import outputs
from vitrify.spec.geometry.scene import Scene, random_bitmaps, random_scene
from vitrify.spec.geometry.scene_images import draw_images

IMAGES = 250
ATTACKED = 12
INSIDE, OUTSIDE = 0.999, 1.25  # shares of the radius at which attacks are tried
MARGIN = 0.5  # of the right class
PROVED_TO = 1e-9  # of that margin: stored weights are rounded


def subjects() -> Subjects:
    plain, bitmaps = random_scene(0), random_bitmaps(2, composites=1)
    composed = random_scene(1, composites=2, size=4, image=20)
    for name, scene, shape in (
        ("six features", plain, "features"),
        ("six features, two composites", composed, "features"),
        ("bitmaps, two convolutions", bitmaps, "features"),
        ("bitmaps, one convolution", bitmaps, "binary"),
    ):
        yield built(name, scene, shape, {"shape": shape})


def check(subject: Subject) -> Evidence:
    scene, weights = subject.spec, subject.weights
    planes, right, present = _images(scene)
    logits = outputs(weights, planes)
    own = np.take_along_axis(logits, right[:, None], axis=1)
    others = np.where(np.arange(logits.shape[1]) == right[:, None], -np.inf, logits)
    wrong = np.flatnonzero(logits.argmax(axis=1) != right)
    evidence = _net_check(weights.architecture, scene).run(weights)
    channels = [len(weights.arrays[f"conv.{at}.b"]) for at in range(len(weights.architecture.convolutions))]
    measured = {
        "units_per_layer": (*channels, len(weights.arrays["dense.0.b_in"])),
        "logits": len(weights.arrays["unembed.b_U"]),
    }
    everything = Domain("images that satisfy the gap condition", Method.PROVED, None, arithmetic="reals")
    domains = (everything, Domain("generated images", Method.SAMPLED, len(planes)), *evidence.domains)
    cases, witness = len(planes) + evidence.cases, evidence.witness
    attacked = weights.architecture.pixels == "numbers" and evidence.verdict == "holds"
    return Evidence(evidence.verdict, cases, domains, witness=witness, seed=0).adding(
        Quantity("margin proved for the whole gap set", _proved(subject), MARGIN - PROVED_TO, ">="),
        Quantity("images with a wrong class", len(wrong), 0, "="),
        Quantity("least margin of the right class", round(float((own - others).min()), 9), MARGIN, "="),
        Quantity("largest error of a template map", round(_map_error(subject, planes, present), 9), 0.0, "="),
        *sized(subject, {"logits": len(scene.classes) + 1}, measured),
        *(_attacked(subject, planes[:ATTACKED]) if attacked else ()),
    )


def sabotage(subject: Subject) -> Subject:
    return zeroed(subject, f"conv.{_templates(subject)}.b", 0)


_net_check = cache(net_check)  # the saboteur is checked on the same images


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


def _proved(subject: Subject) -> float | None:
    """Return the margin that is proved for all images that satisfy the gap condition; None if there is no proof."""
    try:
        return float(gap_margin(subject.weights, subject.spec))
    except Undecided:
        return None


def _attacked(subject: Subject, planes: NDArray[np.float64]) -> list[Quantity]:
    radius = radii(subject.weights, planes)
    inside, _ = attack(subject.weights, planes, INSIDE * radius)
    outside, points = attack(subject.weights, planes, OUTSIDE * radius)
    moved = answers(subject.weights, points[outside]) != answers(subject.weights, planes[outside])
    return [
        Quantity("attacks that succeed within the radius", int(inside.sum()), 0, "="),
        Quantity("some attack succeeds beyond it", bool(outside.any() and moved.all()), True, "="),
        Quantity("attacks that succeed beyond it", f"{int(outside.sum())} of {len(planes)}"),
        Quantity("certified radius, smallest and largest", [float(radius.min()), float(radius.max())]),
    ]


FIGURE = show(
    bars(
        {
            "smallest": "certified radius, smallest and largest[0]",
            "largest": "certified radius, smallest and largest[1]",
        },
        "certified radius",
    ),
    sequence("units_per_layer", "layer", "channels"),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R6", standing="theorem", certified="sampled", budget_seconds=120, figure=FIGURE
)
