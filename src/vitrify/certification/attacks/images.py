r"""Attacks: inputs near a given one that get another answer, looked for by projected gradient descent.

Built nets are locally constant around an image: the true gradient is zero. In the backward pass every ReLU has the
slope $\tfrac12(1 + z/(\tau + |z|))$ instead, which is never 0 and grows with $z$; the forward pass stays the network's
own, so a change of answer that is found is real. An attack that finds none proves nothing; for proved radii see
`vitrify.certification.attacks.robust`.
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Bools, Floats, Ints
from vitrify.certification.attacks.robust import BATCH, answers
from vitrify.errors import InputError
from vitrify.net.conv import Convolutional, transposed
from vitrify.net.weights import Weights

STEPS = 30
RESTARTS = 3
SOFTNESS = 0.05  # tau: pre-activations nearer to zero than this get a slope near 1/2


def attack(weights: Weights[Convolutional], planes: Floats, radius: Floats, seed: int = 0) -> tuple[Bools, Floats]:
    """For each input, whether an input within its radius with another answer was found, and that input.

    Each restart begins at the input itself or at a random corner of the cube around it, and takes shrinking sign steps
    that lower the answer's logit minus that of one random other.
    """
    rng = np.random.default_rng(seed)
    broken, adversarial = np.zeros(len(planes), dtype=bool), planes.copy()
    for restart in range(RESTARTS):
        for at in range(0, len(planes), BATCH):
            left = at + np.flatnonzero(~broken[at : at + BATCH])
            if len(left):
                corner = rng.choice((-1.0, 1.0), size=(len(left), *planes.shape[1:])) if restart else 0.0
                tried, hit = _descend(weights, planes[left], radius[left], corner, rng)
                adversarial[left[hit]], broken[left] = tried[hit], hit
    return broken, adversarial


def _descend(
    weights: Weights[Convolutional], planes: Floats, radius: Floats, corner: Floats | float, rng: np.random.Generator
) -> tuple[Floats, Bools]:
    """One descent from each input: the first point with another answer, where there is one."""
    first, symbols = answers(weights, planes), len(weights.architecture.output.symbols)
    others = (first + rng.integers(1, max(symbols, 2), size=len(planes))) % symbols
    wide = radius[:, None, None, None]
    low, high = planes - wide, planes + wide
    x, hit, adversarial = planes + wide * corner, np.zeros(len(planes), dtype=bool), planes.copy()
    for step in range(STEPS):
        x = x - wide * 2.0 / (2 + step) * np.sign(lead_gradient(weights, x, first, others))
        x = np.clip(x, low, high)
        new = ~hit & (answers(weights, x) != first)
        adversarial[new], hit = x[new], hit | new
        if hit.all():
            break
    return adversarial, hit


def lead_gradient(
    weights: Weights[Convolutional], planes: Floats, first: Ints, others: Ints, softness: float = SOFTNESS
) -> Floats:
    """The gradient of one logit minus another with respect to the input, with softened ReLUs."""
    net, arrays = weights.architecture, weights.arrays
    if not net.shared:
        raise InputError("no gradient is worked out where convolutions have weights of their own at each position")
    seen: dict[str, Floats] = {}
    net.forward(weights.prepared, planes, record=seen.__setitem__)
    back: Floats = (arrays["unembed.W_U"][:, first] - arrays["unembed.W_U"][:, others]).T
    for index in reversed(range(len(net.dense))):
        back = (back * _slope(seen[f"dense.{index}.hook_pre"], softness)) @ arrays[f"dense.{index}.W_in"].T
    # the last maps are summed over all positions, so each position gets the gradient of the sum
    back = np.broadcast_to(back[:, :, None, None], (len(planes), *net.maps[-1]))
    for index, layer in reversed(list(enumerate(net.convolutions))):
        back = back * _slope(seen[f"conv.{index}.hook_pre"], softness)
        back = transposed(back, arrays[f"conv.{index}.W"], layer, net.maps[index][1:])
    return back


def _slope(before: Floats, softness: float) -> Floats:
    """The slope of a ReLU; where it is softened, some slope is left on its flat side."""
    if softness == 0.0:
        return (before > 0).astype(np.float64)
    return 0.5 * (1.0 + before / (softness + np.abs(before)))
