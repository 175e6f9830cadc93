r"""Two attention layers estimate an order-$k$ Markov chain in context, with $k$ heads in the first layer, or just one.

Statement: For every order $k$, alphabet of $S$ symbols and length $T$, the empirical distribution of the symbols that
followed earlier occurrences of the last $k$ symbols (uniform if there are none) is the output, up to a declared error,
of (a) a transformer with $k$ heads in its first layer and one in its second; (b) one with two layers of one head, layer
norms, width $4S + 2$ and $3(S-1)$ hidden units (1 for $S = 1$), whatever $k$ is; (c) one with two layers of one head
and $2(2^k - 1)S$ hidden units, without norms.
Why: A head that gives equal weight to all positions whose $k$ previous symbols match counts and divides at once. The
previous symbols come from $k$ heads in (a), else as one weighted mean. In (c) ReLU units read them as its digits. In
(b) the weights grow into the past, so that two units find the oldest symbol, and norms make unit vectors of the means
of two positions. The cosine of two different contexts is at most $1 - 1/4(2^k - 1)^2$.
Checked: $(k, S, T)$ = (1, 3, 40), (2, 3, 60), (3, 2, 60), (5, 2, 40), each of the three constructions, each net with
softmax or sparsemax, (a) also under hard attention for $k = 2$; (b) for $k = 1, \dots, 10$, $S = 2, 3$ and $T = 60$.
The words are all up to length 8 (7 over three symbols), words over few of the symbols or with a phrase that recurs, and
every prefix of random words of length $T$. The answers are compared with counts by definition, within the error that
the net declares (for (b) it grows like $k\,4^k$); layers, heads, width, units and inverse temperature with the
formulas; the gap with the cosines of all contexts where these are at most 1,024. Both links are proved for every word:
of (a) under softmax and hard attention; of (b) under softmax if there are at most 16,384 windows of $k + 1$ symbols, so
for $k \le 10$ over two symbols and $k \le 7$ over three.
Not checked: Larger $k$, $S$ and $T$, and that one layer does not suffice. The papers' estimators are smoothed, or
approximate for finite attention scale. That of Ekbote et al. has the width $6S + 3$ [S].
Source: Nichani et al. 2024, arXiv 2402.14735 [A] ($k$ heads); Rajaraman et al. 2024, arXiv 2407.17686 [A] (three layers
with norm); Ekbote et al. 2025, arXiv 2508.07208 [A] (two layers, one head). The weights, and digits instead of a norm
in (c), are our own derivation.
Saboteur: In (b) the weights decay into the past; for $k = 1$, where they can't, the norms are removed. In (a) and (c)
the output of the first layer is zero.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import ceil, log

import numpy as np

from vitrify.claims._figures import named, points, show
from vitrify.claims._nets import Claim, Evidence, Quantity, Subject, Subjects, built, check_net, without_norms, zeroed
from vitrify.net.transformer import AttentionKind
from vitrify.spec.tasks.estimate import Estimate

SHAPES = ("estimate-heads", "estimate-norm", "estimate-digits")
TASKS = (Estimate(1, 3, 40), Estimate(2, 3, 60), Estimate(3, 2, 60), Estimate(5, 2, 40))
ORDERS, SYMBOLS, LENGTH = range(1, 11), (2, 3), 60
KINDS: tuple[AttentionKind, ...] = ("softmax", "sparsemax")
MAX_CONTEXTS = 1 << 10  # whose cosines are compared
LEAK = 1e-9  # the most weight that (b) declares for keys that do not match


def subjects() -> Subjects:
    for number, task in enumerate(TASKS):
        for offset, shape in enumerate(SHAPES):
            kind = KINDS[(number + offset) % 2]
            for attention in (kind, "hard") if shape == "estimate-heads" and number == 1 else (kind,):
                name = f"order {task.order} over {task.symbols} symbols, {shape}, {attention}"
                yield built(name, task, shape, attention=attention)
    for order, symbols in product(ORDERS, SYMBOLS):
        name = f"sweep: order {order} over {symbols} symbols"
        yield built(name, Estimate(order, symbols, LENGTH), "estimate-norm")


def check(subject: Subject) -> Evidence:
    evidence = check_net(subject, max_length=8 if subject.spec.symbols < 3 else 7)
    return evidence.adding(*direction_quantities(subject)) if subject.name.startswith("sweep") else evidence


def direction_quantities(subject: Subject) -> list[Quantity]:
    """Return the inverse temperature, and the gap between the cosines of contexts, against the formulas."""
    task, gap = subject.spec, 1 / (4 * (2**subject.spec.order - 1) ** 2)
    values = (2 - 1 / task.symbols) * (task.length + task.order + 1)  # the most that all keys add up to
    beta = ceil(log(2 * values / LEAK) / (3 / 8 * gap))
    quantities = [Quantity("inverse_temperature", float(subject.weights.arrays["blocks.1.attn.beta"][0]), float(beta))]
    if task.symbols**task.order <= MAX_CONTEXTS:
        quantities.append(Quantity("gap_of_contexts", least_gap(task), gap, ">="))
    return quantities


def least_gap(task: Estimate) -> float:
    """Return the least distance from 1 of the cosine of two contexts, each with a balance of its weights."""
    words = np.array(list(product(range(task.symbols), repeat=task.order)))
    weighed = np.eye(task.symbols)[words] * 2.0 ** np.arange(task.order)[None, :, None]
    vectors = np.concatenate([weighed.sum(axis=1), np.full((len(words), 1), 1 - 2.0**task.order)], axis=1)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -1.0)
    return float(1 - cosines.max())


def sabotage(subject: Subject) -> Subject:
    if not subject.weights.architecture.norm:
        return zeroed(subject, "blocks.0.attn.W_O")
    return decaying(subject) if subject.spec.order > 1 else without_norms(subject)


def decaying(subject: Subject) -> Subject:
    """Return the subject with weights that decay into the past."""
    bias = subject.weights.arrays["blocks.0.attn.b_rel"].copy()
    bias[:, 1:] = bias[:, :0:-1]
    return replace(subject, weights=subject.weights.with_array("blocks.0.attn.b_rel", bias))


FIGURE = show(
    points("order {}", "d_model", "order k", "width", by=named(r"estimate-(\w+)")),
    points("order {}", "heads", "order k", "heads", by=named(r"estimate-(\w+)")),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R21", standing="theorem", certified="sampled", budget_seconds=60, figure=FIGURE
)
