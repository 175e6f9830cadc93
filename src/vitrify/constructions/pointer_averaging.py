r"""Sparse averaging over every set: pointers are tokens, whose keys are added and clipped; one head selects the set.

In the spirit of Sanford, Hsu and Telgarsky (2023, arXiv 2306.02896); the weights are our own derivation.

- *Superimposed.* The head of layer 1 adds the keys of the last $q$ pointers, its units clip the sum at 1, and the head
  of layer 2 attends to the positions whose score is $n$, the number of blocks of a key; all other positions score at
  most $n - 1$, whatever the set (`vitrify.kit.superimposed`). So at the temperature $\alpha = \lceil\ln(4T/\varepsilon)
  \rceil$ the output is within $\varepsilon$ of the mean, for all $\binom Nq$ sets and all vectors in the unit ball.
- *Heads.* The numbers of positions are $\ell = \lceil\log_2 N\rceil$ signs. In layer 1, $q - 1$ heads copy the pointers
  before the last one. One head follows each pointer, that of the last already in layer 1, the others in layer 2.

| | superimposed | heads |
| --- | --- | --- |
| layers, heads | 2; 1 + 1 | 2; $q + (q-1)$ |
| width | $2d' + 4m$ | $(q+1)(\ell + d') + 2$ |
| units | $2m$ | 0 |
| query of each head of layer 2 | $m = \min_r n_rp_r$ | $\ell$ |

The theorem has one layer, whose queries may be any function of the pointers, $O(d' + q\log N)$ dimensions, and no less
than $Hmp \ge q$ for $H$ heads and $p$ bits. Ours takes $m = O(q^2\log^2 N/\log^2(q\log N))$: it is not that rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from vitrify.arrays import Floats
from vitrify.constructions.catalogue import Attention, DeclaredSizes, ToleranceOfMeans, construction
from vitrify.constructions.sparse_averaging import TOLERANCE, temperature
from vitrify.kit.gadgets.any_of import any_of
from vitrify.kit.heads.average import window
from vitrify.kit.heads.position import at_position, earlier
from vitrify.kit.heads.select import Test, select
from vitrify.kit.heads.sets import set_attend
from vitrify.kit.network import Affine, Bits, Builder, MultiHot, Network, Output, Readout, Reals, Space
from vitrify.kit.set_codes import ExactScores
from vitrify.kit.superimposed import code_size, superimposed_keys
from vitrify.spec.ngrams.model import BEGIN
from vitrify.spec.tasks.pointer_averaging import PointerAveraging

SOURCE = "in the spirit of Sanford, Hsu and Telgarsky 2023, arXiv 2306.02896"


def superimposed_sizes(task: PointerAveraging) -> DeclaredSizes:
    """Return all sizes, by the width of the code."""
    m = code_size(task.positions, task.sparsity).width
    return DeclaredSizes({"layers": 2, "heads": 2, "d_model": 2 * task.dimensions + 4 * m, "d_head": m, "units": 2 * m})


def heads_sizes(task: PointerAveraging) -> DeclaredSizes:
    """Return all sizes, by the bits of a position's number."""
    q, bits = task.sparsity, max(2, (task.positions - 1).bit_length())
    width = (q + 1) * (bits + task.dimensions) + 2 * (q > 1)
    return DeclaredSizes({"layers": 1 + (q > 1), "heads": 2 * q - 1, "d_model": width, "units": 0})


@construction(
    "pointers-superimposed",
    "means over every set of positions, one head per layer",
    superimposed_sizes,
    default=True,
    certified=("to T", "to T"),
    unproved="are too many to enumerate",
)
def superimposed(
    task: PointerAveraging, *, attention: Attention = "softmax", tolerance: ToleranceOfMeans | None = None
) -> Network:
    """Return a transformer that outputs the mean of the vectors at the last pointers, within the tolerance."""
    eps, q = TOLERANCE if tolerance is None else tolerance, task.sparsity
    size = code_size(task.positions, q)
    keys, n = superimposed_keys(task.positions, size), Fraction(size.points)
    code = MultiHot(tuple(f"{point}:{value}" for point in range(size.points) for value in range(size.order)))
    net, vector = _begin(task, f"superimposed keys, {attention}", attention, pads=q)
    pointer = net.embed("pointer", code, _of_pointers(task, keys))
    key = net.embed_position("position", code, _of_positions(task, keys))
    added = window(net, pointer, [1.0] * q, name="sum of pointers")
    chosen = any_of(net, {added: np.eye(size.width)}, Space("set", code))
    answer = Space("mean", vector.kind)
    others = task.length  # and q pads, without the q members
    scores = ExactScores(n, n, n - 1, q, others, dimensions=size.width, bound=float(n))
    beta = temperature(task.length, eps, 1.0)
    set_attend(net, chosen, key, vector, answer, scores=scores, beta=beta, mask="causal")
    facts = {"dimensions of a key": size.width, "blocks": size.points, "values of a block": size.order}
    return _end(net, task, eps, [answer], "sparse averaging, superimposed keys", facts)


@construction(
    "pointers-heads",
    "means over every set of positions, a head for each of its pointers",
    heads_sizes,
    certified=("sampled", "sampled"),
    unproved="answers may be off by",
)
def heads(
    task: PointerAveraging, *, attention: Attention = "softmax", tolerance: ToleranceOfMeans | None = None
) -> Network:
    """Return a transformer in which a head of its own follows each of the last `sparsity` pointers."""
    eps, q = TOLERANCE if tolerance is None else tolerance, task.sparsity
    code = Bits(task.pointers, void=True)
    net, vector = _begin(task, f"a head per pointer, {attention}", attention)
    pointer = net.embed("pointer", code, _of_pointers(task, code.codes))
    key = net.embed_position("position", code, _of_positions(task, code.codes))
    last = [pointer]
    last += [
        at_position(net, earlier(net, h), Affine.copy(pointer), Space(f"pointer {h} back", code)) for h in range(1, q)
    ]
    answers = []
    for h, one in enumerate(last):  # signs of different numbers have a product of at most ℓ - 2
        test = Test(Affine.copy(one, 0.5), Affine.copy(key), code.norm / 2)
        writes = Space(f"vector of pointer {h} back", vector.kind)
        answers.append(select(net, [test], Affine.copy(vector), writes, sink="none", shares=False))
    return _end(net, task, eps, answers, "sparse averaging, a head per pointer", {"bits of a key": code.size})


def _begin(task: PointerAveraging, name: str, attention: Attention, pads: int = 1) -> tuple[Builder, Space]:
    """Return a builder, and the space of the vectors."""
    title = f"means of {task.sparsity} of {task.positions} positions, {name}"
    net = Builder(title, (BEGIN, *task.alphabet), task.length, attention, pads=pads)
    held = np.zeros((len(net.inputs), task.dimensions))
    held[1 : 1 + len(task.vectors)] = task.vectors
    return net, net.embed("vector", Reals(tuple(f"e{k + 1}" for k in range(task.dimensions)), -1.0, 1.0), held)


def _of_pointers(task: PointerAveraging, codes: Floats) -> Floats:
    """Return the table of all tokens that gives each pointer its code."""
    return np.vstack([np.zeros((1 + len(task.vectors), codes.shape[1])), codes])


def _of_positions(task: PointerAveraging, codes: Floats) -> Floats:
    """Return the table of all positions that gives each vector its code."""
    return np.vstack([codes, np.zeros((task.length - task.positions, codes.shape[1]))])


def _end(
    net: Builder,
    task: PointerAveraging,
    eps: float,
    answers: list[Space],
    construction: str,
    facts: Mapping[str, object],
) -> Network:
    """Return the network whose output is the mean of some spaces."""
    share = np.eye(task.dimensions) / len(answers)
    readout = Readout(
        tuple((space, share) for space in answers), np.zeros(task.dimensions), dict.fromkeys(answers, eps)
    )
    return net.network(
        Output("values", task.outputs, error=eps), readout, construction, facts, source=SOURCE, reuse=False
    )
