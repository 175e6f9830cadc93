r"""Associative memories: matrices that map the code of a key to a vector that scores highest with its answer's code.

The constructions for key-value associations and facts are built from them. Keys $k_i$ have codes of $n$ dimensions,
answers $u_y$ codes of $d$; a memory $M$ [$n \times d$] gives answer $y$ the score $s_{iy} = k_i M u_y$. The *margin* of
key $i$ is the score of its right answer $y_i$ minus the best other score. Three rules:

- `hebbian`: $M = \sum_i k_i^\top u_{y_i}$, the sum of all associations;
- `least squares`: the $M$ for which $\sum_i \lvert k_i M - u_{y_i} \rvert^2$ is smallest;
- `fitted`: from `START_SCALE` times the least-squares $M$, the cross-entropy
  $\sum_i \bigl(\log \sum_y e^{s_{iy}} - s_{i y_i}\bigr)$, convex in $M$, is minimized until every margin is at least
  `FIT_MARGIN` or the loss stalls. If the least margin is then positive, $M$ is divided by it; if not, $M$ stays so.

None of them is sure to recall everything: `recall_margins` measures it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from vitrify.arrays import Floats, Ints

Rule = Literal["hebbian", "least squares", "fitted"]

MAX_FIT_STEPS = 500
START_SCALE = 20.0  # factor before fitting: for answer codes of length 1, least-squares scores are at most about 1
MIN_RELATIVE_GAIN = 1e-5  # a step with a smaller relative decrease of the loss is the last
FIT_MARGIN = 0.5  # fitting stops when every margin of the scaled-up memory is at least this
MAX_SCORES_IN_MEMORY = 1 << 22


def random_codes(rng: np.random.Generator, count: int, dimension: int) -> Floats:
    """Return random unit vectors, one in each row.

    >>> np.linalg.norm(random_codes(np.random.default_rng(0), 3, 5), axis=1).round(12).tolist()
    [1.0, 1.0, 1.0]
    """
    normal = rng.standard_normal((count, dimension))
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))


def store(keys: Floats, right: Ints, answers: Floats, rule: Rule) -> Floats:
    """Return the memory [n, d] that associates key i, a row of `keys`, with the answer `right[i]`."""
    if rule == "hebbian":
        summed: Floats = keys.T @ answers[right]
        return summed
    regression: Floats = np.asarray(np.linalg.lstsq(keys, answers[right], rcond=None)[0], dtype=np.float64)
    return regression if rule == "least squares" else _fitted(regression, keys, right, answers)


def recall_margins(recalled: Floats, right: Ints, answers: Floats) -> Floats:
    """Return the margin of each recalled vector: the score of its right answer less the best other score.

    >>> recall_margins(np.array([[1.0, 0.25]]), np.array([0]), np.eye(2)).tolist()
    [0.75]
    """
    margins = np.full(len(recalled), np.inf)
    step = max(1, MAX_SCORES_IN_MEMORY // len(answers))
    for at in range(0, len(recalled) if len(answers) > 1 else 0, step):
        part = slice(at, at + step)
        scores = recalled[part] @ answers.T
        rows = np.arange(len(scores))
        correct = scores[rows, right[part]]
        scores[rows, right[part]] = -np.inf
        margins[part] = correct - scores.max(axis=1)
    return margins


def _fitted(start: Floats, keys: Floats, right: Ints, answers: Floats) -> Floats:
    from scipy.optimize import minimize

    rows, all_correct = np.arange(len(keys)), [False]  # whether the last evaluation ranked every right answer first

    def loss(flat: Floats) -> tuple[float, Floats]:
        scores = keys @ flat.reshape(start.shape) @ answers.T
        scores -= scores.max(axis=1, keepdims=True)
        all_correct[0] = not scores[rows, right].any()
        shares = np.exp(scores)
        total = shares.sum(axis=1, keepdims=True)
        value = float((np.log(total[:, 0]) - scores[rows, right]).sum())
        shares /= total
        shares[rows, right] -= 1.0
        return value, (keys.T @ (shares @ answers)).ravel()

    def least_margin(flat: Floats) -> float:
        return float(recall_margins(keys @ flat.reshape(start.shape), right, answers).min())

    def stop(flat: Floats) -> None:
        if all_correct[0] and least_margin(flat) >= FIT_MARGIN:
            raise StopIteration

    flat = START_SCALE * start.ravel()
    if least_margin(flat) < FIT_MARGIN:
        options: Mapping[str, float] = {"maxiter": MAX_FIT_STEPS, "ftol": MIN_RELATIVE_GAIN, "gtol": 1e-9}
        flat = minimize(  # type: ignore[call-overload]  # the stubs know no callback that stops
            loss, flat, jac=True, method="L-BFGS-B", callback=stop, options=options
        ).x
    margin = least_margin(flat)
    memory: Floats = flat.reshape(start.shape)
    return memory / margin if 0 < margin < np.inf else memory
