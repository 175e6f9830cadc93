r"""Sparse averaging runs on one head in one layer: positions have keys, sets have queries, and scores say who belongs.

In the spirit of Sanford, Hsu and Telgarsky (2023, arXiv 2306.02896); the weights are our own derivation. Position $j$
carries the key $u_j$ of a code of sets (`vitrify.kit.set_codes`), a symbol the query $w_y$ of its set $y$ and its
vector $z$. With scores of 1 on the set, at most $\tfrac12$ off it, and the temperature $\alpha = \lceil 2\ln(4N/
\varepsilon) \rceil$, the head's output is within $\varepsilon$ of the mean. Four codes are four shapes; `moments` has
a gap of its own, $g$, and the temperature $\lceil\ln(4N/\varepsilon)/g\rceil$.

| | formula |
| --- | --- |
| layers, heads | 1; 1 |
| width | $2d' + 2m$: vector, key and query, and $d'$ for the answer, as a stream keeps what it holds |
| query of the head, its value | $m$; $d'$ |
| units | 0 |
| $m$ | $\lceil 19\,q\ln N\rceil$ signs, $\lceil 3\,q\ln N\rceil$ units, $\min_k n_kp_k$ coherent, $2q$ moments |

Every declared set is looked at when the net is built, without rounding; what has no certificate is refused.
"""

from __future__ import annotations

from functools import partial
from math import ceil, log

import numpy as np

from vitrify.constructions.catalogue import Choice, Construction, Settings
from vitrify.errors import BuildRefused
from vitrify.kit.heads.sets import set_attend
from vitrify.kit.network import Builder, Network, Readout, Space
from vitrify.kit.set_codes import HALF, CodeOfSets, SetCode, coherence, off_every_set, set_code, width_of
from vitrify.net.architecture import Output
from vitrify.net.spaces import Reals
from vitrify.net.transformer import AttentionKind
from vitrify.spec.ngram import BEGIN
from vitrify.spec.tasks.sparse_averaging import SparseAveraging

TOLERANCE = 0.05
DRAWS = 8  # random codes that are tried where nobody names one


def sparse_averaging(
    task: SparseAveraging,
    *,
    code: CodeOfSets = "units",
    attention: AttentionKind = "softmax",
    tolerance: float | None = None,
    width: int | None = None,
    seed: int | None = None,
) -> Network:
    """A transformer that says at every position the mean of the vectors that it points at, within the tolerance.

    `width` and `seed` are those of a random code; without a seed it is the first of some draws with a certificate.
    """
    eps = TOLERANCE if tolerance is None else tolerance
    if not 0 < eps <= 1:
        raise BuildRefused(f"--tolerance must be above 0 and at most 1, got {eps:g}")
    chosen, beta = _certified(task, code, eps, width, seed)
    net = Builder(
        name=f"means of {task.sparsity} of {task.length} positions, {code}, {attention}",
        inputs=(BEGIN, *task.alphabet),
        max_length=task.length,
        attention=attention,
    )
    labels = tuple(f"e{k + 1}" for k in range(task.dimensions))
    sets, vectors = len(task.pointers), len(task.vectors)
    held = np.vstack([np.zeros(task.dimensions), np.repeat(task.vectors, sets, axis=0)])
    asked = np.vstack([np.zeros(chosen.keys.shape[1]), np.tile(chosen.queries, (vectors, 1))])
    vector = net.embed("vector", Reals(labels, -1.0, 1.0), held)
    query = net.embed("set", _numbers(chosen.queries), asked)
    key = net.place("position", _numbers(chosen.keys), chosen.keys)
    answer = Space("mean", Reals(labels, -1.0, 1.0))
    set_attend(net, query, key, vector, answer, seen=chosen.inspection, beta=beta)
    seen = chosen.inspection
    return net.network(
        Output("values", task.outputs, error=eps),
        Readout(((answer, np.eye(task.dimensions)),), np.zeros(task.dimensions), {answer: eps}),
        {
            "construction": f"sparse averaging, {code}",
            "attention": attention,
            "dimensions of a key": seen.dimensions,
            "largest score off a set": float(seen.off),
            **_every_set(chosen, task, eps),
            "source": "in the spirit of Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896",
        },
        reuse=False,
    )


def temperature(length: int, eps: float, gap: float = 0.5) -> float:
    r"""$\lceil \ln(4N/\varepsilon)/g \rceil$."""
    return float(ceil(log(4 * length / eps) / gap))


def accuracy(length: int, eps: float) -> float:
    r"""How far rounded queries may move a score, $\varepsilon/(8\alpha)$: an eighth of what may be lost."""
    return eps / (8 * temperature(length, eps))


def _certified(
    task: SparseAveraging, code: CodeOfSets, eps: float, width: int | None, seed: int | None
) -> tuple[SetCode, float]:
    """The code and its temperature; refused where scores off a set are above one half, or rounding is too coarse."""
    beta = temperature(task.length, eps)
    sets = np.array(task.pointers) - 1
    random = code in ("signs", "units")
    for draw in range(DRAWS if random else 1) if seed is None else [seed]:
        found = set_code(code, task.length, sets, accuracy=accuracy(task.length, eps), width=width, seed=draw)
        seen = found.inspection
        if code == "moments":
            beta = temperature(task.length, eps, float(seen.gap)) if seen.gap > 0 else np.inf
        if (code == "moments" or seen.off <= HALF) and seen.gap > 0 and _error(found, beta) <= eps:
            return found, beta
    if code == "moments":
        raise BuildRefused(
            f"moments tell members of a set from other positions by a gap of {float(seen.gap):.3g}, too little for "
            "float64: use another shape, smaller sets or fewer positions"
        )
    raise BuildRefused(
        f"scores off a set must be at most 1/2, but {seen.dimensions} dimensions leave {float(seen.off):.3g} for one "
        f"of {len(sets)} sets: use more dimensions, another seed or another shape"
    )


def _error(code: SetCode, beta: float) -> float:
    seen = code.inspection
    return seen.error(beta) + seen.size * seen.rounding(beta)


def _every_set(code: SetCode, task: SparseAveraging, eps: float) -> dict[str, object]:
    """What the code promises about sets that the task does not name, with room for rounded queries."""
    if code.name != "coherent":
        return {}
    off = off_every_set(coherence(code.keys), task.sparsity)
    return {} if off is None else {"largest score off any set": float(off) + accuracy(task.length, eps)}


def _numbers(rows: np.ndarray) -> Reals:
    largest = float(np.abs(rows).max(initial=0.0))
    return Reals(tuple(str(k + 1) for k in range(rows.shape[1])), -largest, largest)


def sizes(task: SparseAveraging, code: CodeOfSets, width: int | None = None) -> dict[str, int]:
    """What the formulas promise."""
    m = width_of(code, task.length, task.sparsity) if width is None else width
    return {"layers": 1, "heads": 1, "d_model": 2 * task.dimensions + 2 * m, "d_head": m, "units": 0}


def _make(code: CodeOfSets, spec: object, settings: Settings) -> Network:
    assert isinstance(spec, SparseAveraging)
    return sparse_averaging(spec, code=code, attention=settings.attention, tolerance=settings.tolerance)


CHOICES: tuple[Choice, ...] = ("attention", "tolerance")

CONSTRUCTIONS = (
    Construction(
        "sets-units",
        SparseAveraging,
        "means of sets in one head, random unit vectors and linear programs",
        partial(_make, "units"),
        default=True,
        choices=CHOICES,
        certified="sampled",
        unproved="whose length is not known",
    ),
    Construction(
        "sets-signs",
        SparseAveraging,
        "means of sets in one head, random signs and least squares",
        partial(_make, "signs"),
        choices=CHOICES,
        certified="sampled",
        unproved="whose length is not known",
    ),
    Construction(
        "sets-coherent",
        SparseAveraging,
        "means of sets in one head, a code with a certificate for every set",
        partial(_make, "coherent"),
        choices=CHOICES,
        certified="sampled",
        unproved="whose length is not known",
    ),
    Construction(
        "sets-moments",
        SparseAveraging,
        "means of sets in one head of 2q dimensions, with a tiny gap",
        partial(_make, "moments"),
        choices=CHOICES,
        certified="sampled",
        unproved="whose length is not known",
    ),
)
