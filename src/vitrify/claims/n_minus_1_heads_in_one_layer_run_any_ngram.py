r"""One layer of $n-1$ heads runs any n-gram language model, with hard, sparse or soft attention.

Statement: For every n-gram language model $p$ over an alphabet $\Sigma$ there is a transformer with one layer and $n-1$
heads that is weakly equivalent to it: $q(y) = p(y)$ for every string $y \in \Sigma^*$. Its representation of the
context has $O(n\lvert\Sigma\rvert)$ numbers, the final one $O(\lvert\Sigma\rvert^{n-1})$, each of $O(\log\lvert
y\rvert)$ bits.
Why: Head $i$ copies the symbol $i$ positions back into a slot. The MLP has one unit per listed context, active when the
slots hold that context. The unembedding adds up what each suffix of the history contributes to the log-probability.
Checked: Random models with $(\lvert\Sigma\rvert, n)$ = (2, 2), (3, 3) and (4, 4), each under softmax, sparsemax and
hard attention. Next-symbol probabilities are compared at every prefix of all strings to length 8 and of random strings
of length 24. Heads, layers, units (one per listed context) and output weights are compared with the formulas. Space,
for a 3-gram model over 3 symbols and $T = 2^4, 2^5, \dots, 2^{16}$: slots of $(n-1)(\lvert\Sigma\rvert + 1)$ numbers,
$(\lvert\Sigma\rvert + 1)^{n-1} - 1$ units at most, and $2\lceil\log_2 T\rceil + 1$ bits for the positions $(t, t^2)$. A
chain of two heads that read the previous position without positions has the same weights at every $T$, and holds the
numbers 0 and 1 only.
Not checked: Strings longer than the maximum length 24 for which the nets are built, larger alphabets, and the paper's
own weights: the position code and the table here are ours. The paper's theorems are for hard (3.1) and sparse (4.1)
attention in real arithmetic; softmax is not in the paper and agrees here within 1e-9. The bits are those of positions:
probabilities are as exact as float64. The chain is run on words of 1,024 letters, not at every $T$.
Source: Svete & Cotterell 2024, arXiv 2404.14994, theorems 3.1, 4.1 and 5.1 [T]; one bit per position is our own remark.
Saboteur: The head that attends furthest back copies nothing; for space, the positions are square roots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.evidence import Domain, Evidence, Method, quantities
from vitrify.claims._figures import last_word, points, show
from vitrify.claims._nets import Claim, Subject, Subjects, check_ngram, ngram_subjects, witnessed, zeroed
from vitrify.constructions.catalogue import build
from vitrify.net.inference import with_pads
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.logic.ltl import Formula
from vitrify.spec.ngrams.families import random_ngram

SYMBOLS, ORDER, POWERS, LENGTH = 3, 3, range(4, 17), 1_024


def subjects() -> Subjects:
    yield from ngram_subjects("heads")
    yield Subject("space", random_ngram(SYMBOLS, ORDER, seed=1), data={"positions": "quadratic", "powers": POWERS})


def check(subject: Subject) -> Evidence:
    if subject.weights is not None:
        return check_ngram(subject)
    measured: dict[str, list[int]] = {}
    powers = subject.data["powers"]
    for power in powers:
        choices = {"max_length": 2**power, "positions": subject.data["positions"], "attention": "hard"}
        for name, size in _space(build(subject.spec, "heads", **choices)).items():
            measured.setdefault(name, []).append(size)
    chains = [_chain(2**power) for power in powers]
    same = {tuple(a.tobytes() for n, a in net.arrays.items() if "W_pos" not in n) for net in chains}
    read = (SYMBOLS + 1) ** (ORDER - 1)
    bits = [2 * power + 1 for power in powers]
    once = {"numbers in positions of the chains": 0, "sets of weights": 1, "bits of the chain": 1}
    declared = {"slots": [(ORDER - 1) * (SYMBOLS + 1)] * len(bits), "bits of a position": bits, **once}
    chain = (sum(map(_positions, chains)), len(same), _bits(_stream(_chain(LENGTH))))
    found = {**measured, **dict(zip(once, chain, strict=True))}
    domain = Domain("maximum lengths T", Method.SAMPLED, len(powers), 2 ** powers[0], 2 ** powers[-1])
    evidence = witnessed(None, len(powers), domain)
    units = quantities({"most units": read - 1}, {"most units": max(measured["units"])}, "<=")
    return evidence.adding(*quantities(declared, found), *units)


def _space(weights: Weights[Transformer]) -> Mapping[str, int]:
    """Return the numbers in the slots, the units, and the bits of a position."""
    slots = sum(len(label.dims) for label in weights.labels.spaces if label.name.startswith("slot"))
    table = np.asarray(weights.arrays["pos_embed.W_pos"])
    return {"slots": slots, "units": weights.sizes.units, "bits of a position": _bits(table)}


def _bits(numbers: Floats) -> int:
    """Return the bits that write all numbers, as multiples of the largest power of two that divides them."""
    some = np.abs(numbers[numbers != 0])
    mantissa, exponent = np.frexp(some)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.log2((whole & -whole).astype(float)) + exponent - 53
    return int(exponent.max() - lowest.min())


def _chain(length: int) -> Weights[Transformer]:
    """Return two layers of one head each, without positions: is the symbol two before this one an a?"""
    return build(Formula.from_text("alphabet: a b c\nlength: 9\nY Y a"), attention="hard", max_length=length)


def _positions(weights: Weights[Transformer]) -> int:
    return int(np.count_nonzero(weights.arrays["pos_embed.W_pos"]))


def _stream(weights: Weights[Transformer]) -> Floats:
    """Return all activations of the residual stream on a random word."""
    net, seen = weights.architecture, dict[str, Floats]()
    words = np.random.default_rng(0).integers(1, len(net.inputs), size=(1, LENGTH))
    net.forward(weights.prepared, with_pads(net, words), record=seen.__setitem__, query_chunk=128)
    return np.concatenate([seen[moment].ravel() for moment in net.moments])


def sabotage(subject: Subject) -> Subject:
    if subject.weights is None:
        return replace(subject, data={"positions": "sqrt", "powers": POWERS[:8]})  # longer nets are refused
    return zeroed(subject, "blocks.0.attn.W_V", -1)  # of the head that looks furthest back


FIGURE = show(
    points(
        "table_units",
        "units",
        "listed contexts",
        "units of the MLP",
        by=last_word,
        laws={"one each": lambda units: units},
    ),
    points("{}-gram", ("heads", "layers"), "order n", "count", joined=True, laws={"n − 1": lambda n: n - 1}),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R1", standing="theorem", certified="proved", budget_seconds=60, figure=FIGURE
)
