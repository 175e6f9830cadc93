r"""Linear probes: is a label written in the residual stream, where, how clearly, and in how few dimensions?

A probe is logistic regression on vectors $x$ with labels $y$, one for each label against all others: a label is read
where its score $x w + b$ is positive. It is fitted on some of the cases and judged on the others; built nets and
trained nets are probed alike.

- *accuracy*: the share of unseen cases whose own label has the largest score;
- *separated*: the share of unseen cases for which every label's score is on the right side of 0, which is what linear
  separability of the labels asks for, and more than the accuracy does;
- *margin*: the least distance of a case from the border of a label, $\min \pm s / \lVert w \rVert$ over all cases and
  labels; negative where a label is not separated;
- *dimension*: the least $k$ such that the first $k$ principal directions of the probe's own weights separate as many;
- *components*: the least $k$ such that the first $k$ principal components of all vectors do (found by bisection);
- *shuffled*: the accuracy on labels that were shuffled, which should be no better than guessing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vitrify.arrays import Bool, Bools, Float, Floats, Int, Ints
from vitrify.net.trace import Trace
from vitrify.net.weights import Weights

RIDGE = 1e-5  # keeps weights finite where labels are separable
ROUNDS = 300  # of the search for the best weights


@dataclass(frozen=True)
class Probe:
    """Result of a linear probe."""

    accuracy: float
    separated: float
    margin: float
    dimension: int
    components: int
    shuffled: float


def streams(weights: Weights, tokens: Ints) -> dict[str, Floats]:
    """The residual stream [sequence, position, dimension] of a transformer, embedded and after each half layer."""
    net = weights.architecture
    seen: dict[str, Floats] = {}
    net.forward(weights.prepared, tokens, record=seen.__setitem__)
    trace = Trace(weights, (), seen)
    names = ["embedding"] + [f"{part} {b}" for b in range(len(net.heads_per_layer)) for part in ("attention", "MLP")]
    return {name: trace.residual(moment) for moment, name in enumerate(names)}


def probe(x: Floats, labels: Ints, train: Bools, *, seed: int = 0) -> Probe:
    """Fit a probe on the cases [case, dimension] marked `train`, judge it on the others."""
    kinds = int(labels.max()) + 1
    weights, bias = fit(x[train], labels[train], kinds)
    separated = _separated(x[~train] @ weights + bias, labels[~train])
    mixed = np.random.default_rng(seed).permutation(labels)
    centered = x - x[train].mean(axis=0)

    def enough(axes: Floats) -> bool:
        part = centered @ axes.T
        inside, level = fit(part[train], labels[train], kinds)
        return _separated(part[~train] @ inside + level, labels[~train]) >= separated

    directions = np.linalg.svd(weights.T, full_matrices=False)[2]
    main = np.linalg.svd(centered[train], full_matrices=False)[2]
    return Probe(
        accuracy=_accuracy(x[~train] @ weights + bias, labels[~train]),
        separated=separated,
        margin=_margin(x @ weights + bias, weights, labels),
        dimension=next((k for k in range(1, len(directions)) if enough(directions[:k])), len(directions)),
        components=bisect_left(range(1, len(main)), True, key=lambda k: enough(main[:k])) + 1,
        shuffled=held_out(x, mixed, train),
    )


def held_out(
    x: Float[np.ndarray, "case dimension"], labels: Int[np.ndarray, " case"], train: Bool[np.ndarray, " case"]
) -> float:
    """The accuracy, on the other cases, of a probe that is fitted on those marked `train`."""
    weights, bias = fit(x[train], labels[train], int(labels.max()) + 1)
    return _accuracy(x[~train] @ weights + bias, labels[~train])


def fit(
    x: Float[np.ndarray, "case dimension"], labels: Int[np.ndarray, " case"], kinds: int
) -> tuple[Float[np.ndarray, "dimension label"], Float[np.ndarray, " label"]]:
    """Weights and biases of one logistic regression for each label."""
    from scipy.optimize import minimize

    count, center = len(x), x.mean(axis=0)
    scale = max(float(x.std(axis=0).max()), 1e-300)
    z = np.concatenate([(x - center) / scale, np.ones((count, 1))], axis=1)
    sign = 2.0 * np.eye(kinds)[labels] - 1.0

    def loss(flat: Floats) -> tuple[float, Floats]:
        w = flat.reshape(-1, kinds)
        right = sign * (z @ w)
        wrong = -sign * np.exp(-np.logaddexp(0.0, right))  # the derivative of log(1 + exp(-right))
        value = np.logaddexp(0.0, -right).sum() / count + RIDGE * (w**2).sum()
        return float(value), (z.T @ wrong / count + 2 * RIDGE * w).ravel()

    fit = minimize(loss, np.zeros(z.shape[1] * kinds), jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS})
    w = fit.x.reshape(-1, kinds)
    return w[:-1] / scale, w[-1] - center @ (w[:-1] / scale)


def _accuracy(scores: Floats, labels: Ints) -> float:
    return float((scores.argmax(axis=1) == labels).mean())


def _separated(scores: Floats, labels: Ints) -> float:
    return float(((scores > 0) == np.eye(scores.shape[1], dtype=bool)[labels]).all(axis=1).mean())


def _margin(scores: Floats, weights: Floats, labels: Ints) -> float:
    sign = 2.0 * np.eye(scores.shape[1])[labels] - 1.0
    return float((sign * scores / np.maximum(np.linalg.norm(weights, axis=0), 1e-300)).min())


def by_layer(vectors: Mapping[str, Floats], labels: Ints, train: Bools) -> dict[str, Probe]:
    """A probe of every layer: `vectors` are [case, dimension] by the name of the layer; a layer that adds nothing
    is not fitted again.
    """
    probes: dict[str, Probe] = {}
    last: tuple[Floats, Probe] | None = None
    for name, x in vectors.items():
        if last is None or not np.array_equal(x, last[0]):
            last = x, probe(x, labels, train)
        probes[name] = last[1]
    return probes
