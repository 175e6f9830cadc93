r"""Robustness: how far every pixel of an image may move before the answer of a convolutional network can change.

**Theorem.** Let $l \le x \le h$ hold for every number that enters a layer. Then with $m = (l+h)/2$ and $\rho = (h-l)/2$
the outputs of an affine layer lie in $W m + b \pm |W| \rho$, those of a ReLU in $[l_+, h_+]$, and sums in the sums of
the bounds. Starting from $x \pm r$ this bounds all logits on the whole cube of radius $r$ around an image; where the
lower bound of $z_y - z_{y'}$ (one affine map, so that what the two share cancels) is positive for all $y' \ne y$, the
answer on the whole cube is $y$.

For the net of a scene these bounds are the two conditions of a hand proof, evaluated exactly. With $e_T(\delta) =
\sum_u \max(0, |x_u - T_u| - \delta)$ the excess at a place:

- (i) *absent stays absent*: over the cube $e_T$ is at least $e_T(\epsilon + r)$, all pixels moving towards $T$;
  a template with $e_T(\epsilon + r) \ge \gamma$ everywhere keeps $\varphi_T = 0$. As $e_T(\epsilon + r) \ge
  e_T(\epsilon) - hwr$, margins of $\gamma + hwr$ are enough.
- (ii) *present stays present*: over the cube $e_T$ is at most $e_T(\epsilon - r) \le hw \max(0, r + d - \epsilon)$ with
  $d$ the largest deviation from $T$, as long as $r \le \epsilon$; the logit of $y$ falls by at most the sum of
  $e_T(\epsilon - r)/\gamma$ over its features (for a composite, over its parts), and ½ of it may be lost.

Composites are one more affine layer and ReLU and need no special care.

Rounding is taken into account on both sides. The bounds of an affine map of $k$ terms are widened by
$5\gamma_{k+2}(|W|\,|x| + |b|)$, $\gamma_k = ku/(1-ku)$, $u = 2^{-53}$: in any order of summation $\gamma_{k+1}$ is what
the run that is bounded can lose, and as much the middle $Wm + b$ and the half width $|W|\rho$; the rest covers $m$,
$\rho$, the ends and the size $|x|$ themselves. The radius that is returned was itself tried, not only approached.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from vitrify.arrays import Array, Bool, Float, Floats, Int, Ints, Matrix
from vitrify.errors import InputError
from vitrify.net.conv import Convolutional, convolve
from vitrify.net.inference import outputs
from vitrify.net.weights import Weights

Bounds = tuple[Floats, Floats]

ROUNDOFF = 2.0**-53
STEPS = 14  # halvings after a radius is bracketed: it is found to one part in 16,000
BATCH = 32


def answers(
    weights: Weights[Convolutional], planes: Float[np.ndarray, "input plane row column"]
) -> Int[np.ndarray, " input"]:
    """The number of the likeliest symbol for each input."""
    return np.asarray(outputs(weights, planes).argmax(axis=1))


def certified(
    weights: Weights[Convolutional],
    planes: Float[np.ndarray, "input plane row column"],
    radius: Float[np.ndarray, " input"],
) -> Bool[np.ndarray, " input"]:
    """For each input, whether no input within its radius of it, in every pixel, gets another answer."""
    net, arrays = weights.architecture, weights.arrays
    if not net.shared:
        raise InputError("no radius is certified where convolutions have weights of their own at each position")
    wide = radius[:, None, None, None]
    bounds: Bounds = (planes - wide, planes + wide)
    for index, layer in enumerate(net.convolutions):
        kernel, bias = arrays[f"conv.{index}.W"], arrays[f"conv.{index}.b"][:, None, None]
        bounds = _rectified(bounds, kernel, bias, kernel[0].size, partial(convolve, layer=layer))
    bounds = _summed(bounds)
    for index in range(len(net.dense)):
        matrix, bias = arrays[f"dense.{index}.W_in"], arrays[f"dense.{index}.b_in"]
        bounds = _rectified(bounds, matrix, bias, len(matrix), np.matmul)
    margin = _margins(bounds, arrays["unembed.W_U"], arrays["unembed.b_U"], answers(weights, planes))
    return np.asarray((margin > 0).all(axis=1))


def radii(
    weights: Weights[Convolutional], planes: Float[np.ndarray, "input plane row column"]
) -> Float[np.ndarray, " input"]:
    """A radius for each input within which the answer can't change; 0 where not even rounding is safe."""
    parts = [_radii(weights, planes[at : at + BATCH]) for at in range(0, len(planes), BATCH)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _radii(weights: Weights[Convolutional], planes: Floats) -> Floats:
    safe = np.zeros(len(planes))
    unsafe = np.full(len(planes), np.inf)
    tried = np.full(len(planes), 2.0**-10)
    while True:  # bracket each radius between two powers of two
        good = certified(weights, planes, tried)
        safe, unsafe = np.where(good, tried, safe), np.where(good, unsafe, tried)
        if not good.any() or tried.max() > 2.0**40:
            break
        tried = np.where(np.isinf(unsafe), 2 * tried, tried)
    for _ in range(STEPS):
        tried = (safe + np.minimum(unsafe, 2.0**40)) / 2
        good = certified(weights, planes, tried)
        safe, unsafe = np.where(good, tried, safe), np.where(good, unsafe, tried)
    return safe


def _widened(terms: int) -> float:
    return 5 * (terms + 2) * ROUNDOFF / (1 - (terms + 2) * ROUNDOFF)


def _halves(bounds: Bounds) -> tuple[Floats, Floats, Floats]:
    """Middle, half width and largest size."""
    low, high = bounds
    middle = low + (high - low) / 2
    return middle, np.maximum(high - middle, middle - low), np.maximum(np.abs(low), np.abs(high))


def _rectified(
    bounds: Bounds, weight: Array, bias: Floats, terms: int, product: Callable[[Floats, Array], Floats]
) -> Bounds:
    """The bounds after an affine layer, whose sums have so many terms, and a ReLU."""
    middle, half, size = _halves(bounds)
    center = product(middle, weight) + bias
    spread = product(half, np.abs(weight)) + _widened(terms) * (product(size, np.abs(weight)) + np.abs(bias))
    return np.maximum(center - spread, 0.0), np.maximum(center + spread, 0.0)


def _summed(bounds: Bounds) -> Bounds:
    """The bounds of sums over all places; nothing is negative here."""
    low, high = (side.sum(axis=(2, 3)) for side in bounds)
    share = _widened(int(np.prod(bounds[0].shape[2:])))
    return low * (1 - share), high * (1 + share)


def _margins(bounds: Bounds, matrix: Matrix, bias: Floats, best: Ints) -> Floats:
    """Return a lower bound on the margin of the best logit over each other one; infinite for itself."""
    middle, half, size = _halves(bounds)
    margins = np.empty((len(best), matrix.shape[1]))
    for symbol in range(matrix.shape[1]):
        apart = matrix[:, best].T - matrix[:, symbol]
        both = np.abs(matrix[:, best]).T + np.abs(matrix[:, symbol])
        slack = (size * both).sum(axis=1) + np.abs(bias[best]) + np.abs(bias[symbol])
        center = (middle * apart).sum(axis=1) + bias[best] - bias[symbol]
        margins[:, symbol] = center - (half * np.abs(apart)).sum(axis=1) - _widened(len(matrix)) * slack
    margins[np.arange(len(best)), best] = np.inf
    return margins
