r"""Sparse averaging runs on one head in one layer: positions have keys, sets have queries, scores select the members.

In the spirit of Sanford, Hsu and Telgarsky (2023, arXiv 2306.02896); the weights are our own derivation. Position $j$
carries the key $u_j$ of a code of sets (`vitrify.kit.set_codes`), a symbol the query $w_y$ of its set $y$ and its
vector $z$. With scores that are the same on the set and less by $g$ off it, at the temperature $\alpha =
\lceil\ln(4N/\varepsilon)/g\rceil$ the head's output is within $\varepsilon$ of the mean. Each code is a construction of
its own. Where pointers are tokens, so that every set is an input, see `pointer_averaging.py`.

| | formula |
| --- | --- |
| layers, heads | 1; 1 |
| width | $2d' + 2m$: vector, key and query, and $d'$ for the answer, as a stream keeps what it holds |
| query of the head, its value | $m$; $d'$ |
| units | 0 |
| $m$ | $\lceil 19\,q\ln N\rceil$ signs, $\lceil 3\,q\ln N\rceil$ units, $\min_r n_rp_r$ superimposed, $2q$ moments |
| $m$ without any idea | $\min(N, S)$ for $S$ sets: `sets-trivial`, the measure of the others |

Every declared set is checked when the net is built, without rounding; a code that fails is refused.
"""

from __future__ import annotations

from math import ceil, comb, log

import numpy as np

from vitrify.constructions.catalogue import Attention, BuildRefused, DeclaredSizes, ToleranceOfMeans, construction
from vitrify.kit.heads.sets import set_attend
from vitrify.kit.network import Builder, Network, Output, Readout, Reals, Space
from vitrify.kit.set_codes import MAX_OFF_SCORE, RANDOM, CodeOfSets, SetCode, set_code, width_of
from vitrify.spec.ngrams.model import BEGIN
from vitrify.spec.tasks.sparse_averaging import SparseAveraging

TOLERANCE = 0.05
MAX_DRAWS = 8  # random codes that are tried if no seed is given


def temperature(length: int, eps: float, gap: float = 0.5) -> float:
    r"""Return the temperature $\lceil \ln(4N/\varepsilon)/g \rceil$."""
    return float(ceil(log(4 * length / eps) / gap))


def accuracy(length: int, eps: float) -> float:
    r"""Return how far rounded queries may move a score, $\varepsilon/(8\alpha)$: an eighth of the tolerance."""
    return eps / (8 * temperature(length, eps))


def _certified(
    task: SparseAveraging, code: CodeOfSets, eps: float, width: int | None, seed: int | None
) -> tuple[SetCode, float]:
    """Return a code and its temperature; refuse if a score off a set is above ½, or if float64 is too coarse."""
    sets = np.array(task.pointers) - 1
    random = code in RANDOM
    for draw in range(MAX_DRAWS if random else 1) if seed is None else [seed]:
        candidate = set_code(code, task.length, sets, accuracy=accuracy(task.length, eps), width=width, seed=draw)
        scores = candidate.exact_scores
        gap = {"moments": float(scores.gap), "superimposed": 1.0, "trivial": 1.0}.get(code, 0.5)
        beta = temperature(task.length, eps, gap) if gap > 0 else np.inf
        if (not random or scores.off <= MAX_OFF_SCORE) and scores.gap > 0 and _error(candidate, beta) <= eps:
            return candidate, beta
    if not random:
        raise BuildRefused(
            f"{code} tell members of a set from other positions by a gap of {float(scores.gap):.3g}, too little for "
            "float64: use another construction, smaller sets or fewer positions"
        )
    raise BuildRefused(
        f"scores off a set must be at most 1/2, but {scores.dimensions} dimensions leave {float(scores.off):.3g} "
        f"for one of {len(sets)} sets: use more dimensions, another seed or another construction"
    )


def _error(code: SetCode, beta: float) -> float:
    scores = code.exact_scores
    return scores.error(beta) + scores.size * scores.rounding(beta)


def _numbers(rows: np.ndarray) -> Reals:
    largest = float(np.abs(rows).max(initial=0.0))
    return Reals(tuple(str(k + 1) for k in range(rows.shape[1])), -largest, largest)


def sizes(task: SparseAveraging, *, code: CodeOfSets = "units") -> DeclaredSizes:
    """Return all sizes, by the dimensions of a key in the code."""
    count = len(task.sets) or comb(task.length, task.sparsity)
    m = width_of(code, task.length, task.sparsity, count)
    return DeclaredSizes({"layers": 1, "heads": 1, "d_model": 2 * task.dimensions + 2 * m, "d_head": m, "units": 0})


@construction(
    "sets-units",
    "means of sets in one head, random unit vectors and linear programs",
    sizes,
    default=True,
    certified=("to T", "to T"),
    unproved="whose length is not known",
    code="units",
)
@construction(
    "sets-signs",
    "means of sets in one head, random signs and least squares",
    sizes,
    certified=("to T", "to T"),
    unproved="whose length is not known",
    code="signs",
)
@construction(
    "sets-superimposed",
    "means of sets in one head, a code with a certificate for every set",
    sizes,
    certified=("to T", "to T"),
    unproved="whose length is not known",
    code="superimposed",
)
@construction(
    "sets-moments",
    "means of sets in one head of 2q dimensions, with a tiny gap",
    sizes,
    certified=("to T", "to T"),
    unproved="whose length is not known",
    code="moments",
)
@construction(
    "sets-trivial",
    "means of sets in one head, a dimension for each position or for each set",
    sizes,
    certified=("to T", "to T"),
    unproved="whose length is not known",
    code="trivial",
)
def sparse_averaging(
    task: SparseAveraging,
    width: int | None = None,
    seed: int | None = None,
    *,
    attention: Attention = "softmax",
    tolerance: ToleranceOfMeans | None = None,
    code: CodeOfSets = "units",
) -> Network:
    """Return a transformer that outputs, at every position, the mean of the vectors it points at, within the tolerance.

    `width` and `seed` are those of a random code; without a seed, the first of `MAX_DRAWS` draws that is certified.
    """
    eps = TOLERANCE if tolerance is None else tolerance
    chosen, beta = _certified(task, code, eps, width, seed)
    name = f"means of {task.sparsity} of {task.length} positions, {code}, {attention}"
    net = Builder(name, (BEGIN, *task.alphabet), task.length, attention)
    labels = tuple(f"e{k + 1}" for k in range(task.dimensions))
    sets, vectors = len(task.pointers), len(task.vectors)
    held = np.vstack([np.zeros(task.dimensions), np.repeat(task.vectors, sets, axis=0)])
    queries = np.vstack([np.zeros(chosen.keys.shape[1]), np.tile(chosen.queries, (vectors, 1))])
    vector = net.embed("vector", Reals(labels, -1.0, 1.0), held)
    query = net.embed("set", _numbers(chosen.queries), queries)
    key = net.embed_position("position", _numbers(chosen.keys), chosen.keys)
    answer = Space("mean", Reals(labels, -1.0, 1.0))
    set_attend(net, query, key, vector, answer, scores=chosen.exact_scores, beta=beta)
    scores = chosen.exact_scores
    return net.network(
        Output("values", task.outputs, error=eps),
        Readout(((answer, np.eye(task.dimensions)),), np.zeros(task.dimensions), {answer: eps}),
        f"sparse averaging, {code}",
        {
            "dimensions of a key": scores.dimensions,
            "largest score off a set": float(scores.off),
        },
        source="in the spirit of Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896",
        reuse=False,
    )
