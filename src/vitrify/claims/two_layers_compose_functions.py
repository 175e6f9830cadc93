r"""Two layers with one head each and 10 dimensions compose any two functions; at 64 values, 16-bit numbers suffice.

Statement: For every $n$ there is a transformer with two layers of one head each, no MLP and width 10 that, given the
tables of two functions $g, f$ on $n$ values entry by entry in any order, and then $x$, returns $f(g(x))$. For $n = 64$
it does so in 16-bit floating point.
Why: An entry is found by its argument, so one head finds $g(x)$ and the next $f(g(x))$. Values are coded as points on a
circle, so the width does not grow with $n$. In contrast, a single layer with $H$ heads, $d$ dimensions and $p$-bit
numbers errs with probability at least $R/(3n\log_2 n)$ if $R = n\log_2 n - H(d+1)p > 0$
(`one_layer_errs_on_composition`); for $n = 64$, $H = 1$, $d = 10$, $p = 16$ that is 18 %.
Checked: For $n = 3$ all $f$, $g$ and $x$ with the entries in order; for $n = 4, 8, 64$ 1,000 random inputs ($f$, $g$,
order and $x$) each, for $n = 200$ four; for $n = 64$ also 50 random inputs in float16. Layers, heads and width are
compared with the formulas. Each $n$ has one kind of attention: softmax, sparsemax or hard.
Not checked: All functions for $n > 3$, all orders, and every kind of attention at every $n$. The paper's two-layer
construction was read in a secondary account; the paper counts width and precision in another way.
Source: Peng, Narayanan & Papadimitriou 2024, arXiv 2402.08164 [S]; the weights are our own derivation.
Saboteur: The keys of the second layer do not distinguish entries of $f$ from those of $g$.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.certification.checks.words import WordCheck
from vitrify.claims._figures import attention_of, points, show
from vitrify.claims._nets import Claim, Domain, Evidence, Method, Subject, Subjects, built, sized, zeroed
from vitrify.constructions.catalogue import Attention
from vitrify.spec.tasks.composition import Composition

CASES: tuple[tuple[int, Attention, int, bool], ...] = (  # values, attention, random words, all words
    (3, "softmax", 200, True),
    (4, "hard", 1_000, False),
    (8, "sparsemax", 1_000, False),
    (64, "softmax", 1_000, False),
    (200, "softmax", 4, False),
)
FLOAT16_SIZE, WORDS = 64, 50  # values of the functions that are also run in float16, and on how many words
WRONG = f"wrong answers of {WORDS} in float16"
WORK = 1e8  # multiplications spent on words beyond those listed


def subjects() -> Subjects:
    for size, attention, samples, every in CASES:
        data = {"samples": samples, "every": every}
        yield built(f"{size} values, {attention}", Composition(size), data=data, attention=attention)


def check(subject: Subject) -> Evidence:
    task, weights, net = subject.spec, subject.weights, subject.weights.architecture
    longest = task.length if subject.data["every"] else None
    questions = WordCheck(net, task, max_length=longest, samples=subject.data["samples"], work=WORK)
    evidence = questions.run(weights)
    if task.size != FLOAT16_SIZE or evidence.verdict != "holds":
        return evidence.adding(*sized(subject))
    words = questions.batches[-1].words[-1][:WORDS]
    half = weights.map(lambda array: array.astype(np.float16))
    logits = np.asarray(net.forward(half.arrays, np.pad(words, ((0, 0), (1, 0)))), dtype=np.float64)
    wrong = int(questions.oracle.errors(words, logits).sum())
    rounded = Domain("random words in float16", Method.SAMPLED, len(words))
    evidence = replace(evidence, cases=evidence.cases + len(words), domains=(*evidence.domains, rounded))
    return evidence.adding(*sized(subject, {WRONG: 0}, {WRONG: wrong}))


def sabotage(subject: Subject) -> Subject:
    return zeroed(subject, "blocks.1.attn.W_K", (0, list(subject.weights.labels.space("role").dims)))


FIGURE = show(
    *attention_of(subjects, (0, 0), (1, 0)),
    points("{} values", ("d_model", "heads", "layers"), "values of a function", "size of the net", "2x", joined=True),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R19", standing="theorem", certified="sampled", budget_seconds=60, figure=FIGURE
)
