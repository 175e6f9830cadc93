r"""Associative memories: matrices that send the code of a key to where the code of its answer scores best.

Keys $k_i$ have codes of $n$ numbers, answers $u_y$ codes of $d$; a memory $M$ of $n \times d$ numbers gives the answer
$y$ the score $k_i M u_y$. Three rules make one:

- `hebbian`: $M = \sum_i k_i^\top u_{y_i}$, the sum of all associations;
- `least squares`: the $M$ for which $\sum_i \lvert k_i M - u_{y_i} \rvert^2$ is smallest;
- `fitted`: from there on, $-\sum_i \log \mathrm{softmax}_{y_i}(k_i M u)$ is made smaller, a convex function of $M$,
  until every right answer leads, or nothing more is gained. The result is scaled so that the least lead is 1.

None of them is sure to succeed: `leads` says what came of it.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rule = Literal["hebbian", "least squares", "fitted"]

STEPS = 500  # of fitting, at most
SHARP = 20.0  # the scale at which fitting begins: the scores of least squares are at most about 1
STALLED = 1e-5  # a step that gains less than this share is the last: where all can lead, the loss goes to 0
AHEAD = 0.5  # fitting ends when every right answer leads by as much, at the scale on which it began
CHUNK = 1 << 22  # scores that are held at once


def random_codes(rng: np.random.Generator, count: int, dimension: int) -> Floats:
    """Random unit vectors, one in each row.

    >>> np.linalg.norm(random_codes(np.random.default_rng(0), 3, 5), axis=1).round(12).tolist()
    [1.0, 1.0, 1.0]
    """
    drawn = rng.standard_normal((count, dimension))
    codes: Floats = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return codes


def store(keys: Floats, right: Ints, answers: Floats, rule: Rule) -> Floats:
    """The memory [n, d] of the associations that give key i, a row of `keys`, the answer `right[i]`."""
    if rule == "hebbian":
        summed: Floats = keys.T @ answers[right]
        return summed
    close: Floats = np.asarray(np.linalg.lstsq(keys, answers[right], rcond=None)[0], dtype=np.float64)
    return close if rule == "least squares" else _fitted(close, keys, right, answers)


def leads(recalled: Floats, right: Ints, answers: Floats) -> Floats:
    """By how much the right answer to each recalled vector scores better than any other.

    >>> leads(np.array([[1.0, 0.25]]), np.array([0]), np.eye(2)).tolist()
    [0.75]
    """
    found = np.full(len(recalled), np.inf)
    step = max(1, CHUNK // len(answers))
    for at in range(0, len(recalled) if len(answers) > 1 else 0, step):
        part = slice(at, at + step)
        scores = recalled[part] @ answers.T
        rows = np.arange(len(scores))
        own = scores[rows, right[part]]
        scores[rows, right[part]] = -np.inf
        found[part] = own - scores.max(axis=1)
    return found


def _fitted(start: Floats, keys: Floats, right: Ints, answers: Floats) -> Floats:
    from scipy.optimize import minimize

    rows, first = np.arange(len(keys)), [False]  # whether every right answer came first the last time

    def loss(flat: Floats) -> tuple[float, Floats]:
        scores = keys @ flat.reshape(start.shape) @ answers.T
        scores -= scores.max(axis=1, keepdims=True)
        first[0] = not scores[rows, right].any()
        shares = np.exp(scores)
        total = shares.sum(axis=1, keepdims=True)
        value = float((np.log(total[:, 0]) - scores[rows, right]).sum())
        shares /= total
        shares[rows, right] -= 1.0
        return value, (keys.T @ (shares @ answers)).ravel()

    def least(flat: Floats) -> float:
        return float(leads(keys @ flat.reshape(start.shape), right, answers).min())

    def stop(flat: Floats) -> None:
        if first[0] and least(flat) >= AHEAD:
            raise StopIteration

    found = SHARP * start.ravel()
    if least(found) < AHEAD:
        options: Any = {"maxiter": STEPS, "ftol": STALLED, "gtol": 1e-9}
        found = minimize(  # type: ignore[call-overload]  # the stubs know no callback that stops
            loss, found, jac=True, method="L-BFGS-B", callback=stop, options=options
        ).x
    lead = least(found)
    memory: Floats = found.reshape(start.shape)
    return memory / lead if 0 < lead < np.inf else memory
