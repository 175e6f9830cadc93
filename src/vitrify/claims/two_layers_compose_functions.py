r"""Two layers with one head each compose any two functions; at 64 values they fit 10 dimensions of 16-bit numbers.

Statement: told the tables of $g$ and $f$ entry by entry, in any order, and then $x$, a transformer of two layers with
one head each, no MLP and 10 dimensions answers $f(g(x))$, for functions of any number $n$ of values.
Why: an entry is found by its argument, so one head finds $g(x)$ and the next one finds $f(g(x))$; points on a circle
can be told apart however many there are. A single layer must put all it needs of the tables into one sum: with $H$
heads, $d$ dimensions and numbers of $p$ bits it errs with a probability of at least $R/(3n\log_2 n)$, if $R = n\log_2 n
- H(d+1)p$ is positive. For $n = 64$, $d = 10$, $p = 16$ that is 18 %; the two layers make no mistake in that precision.
Checked: all pairs of functions and questions for $n = 3$, with the entries in order; random functions, orders and
questions for $n = 4, 8, 64$ (1,000 each) and 200; $n = 64$ once more with all numbers in float16; sizes. Soft,
sparse and hard attention.
Source: Peng, Narayanan and Papadimitriou 2024, arXiv 2402.08164 [S]; the weights here are our own derivation.
Saboteur: the second layer does not tell the entries of $f$ from those of $g$.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.certify.words import WordExamination
from vitrify.claims._nets import with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.composition import SIZES, composition
from vitrify.kit import assemble
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Ledger
from vitrify.spec.tasks.composition import Composition

CASES: tuple[tuple[int, AttentionKind, int, bool], ...] = (  # values, attention, random words, all words
    (3, "softmax", 200, True),
    (4, "hard", 1_000, False),
    (8, "sparsemax", 1_000, False),
    (64, "softmax", 1_000, False),
    (200, "softmax", 4, False),
)
HALF = 64  # values for which 16-bit numbers are tried, on so many words
WORDS = 50
WORK = 1e8  # multiplications for what is not asked for explicitly


def subjects() -> Iterator[Subject]:
    """Functions of 3 to 200 values."""
    for size, attention, samples, every in CASES:
        task = Composition(size)
        net = assemble(composition(task, attention=attention))
        yield Subject(f"{size} values, {attention}", task, net, {"samples": samples, "every": every})


def check(subject: Subject) -> Evidence:
    """Answers, sizes, and answers in 16-bit numbers."""
    task, net, size = subject.spec, subject.weights.architecture, Ledger.of(subject.weights)
    longest = task.length if subject.data["every"] else None
    asked = WordExamination(net, task, max_length=longest, samples=subject.data["samples"], work=WORK)
    evidence = asked.run(subject.weights)
    declared, measured = dict(SIZES), {name: getattr(size, name) for name in SIZES}
    if task.size == HALF and evidence.verdict == "holds":
        half = subject.weights.map(lambda array: array.astype(np.float16))
        words = asked.domains[-1].words[-1][:WORDS]
        tokens = np.concatenate([np.zeros((len(words), 1), dtype=np.int64), words], axis=1)
        wrong = asked.oracle.errors(words, np.asarray(net.forward(half.arrays, tokens), dtype=np.float64)).sum()
        declared[f"wrong answers of {WORDS} in float16"] = 0
        measured[f"wrong answers of {WORDS} in float16"] = int(wrong)
        evidence = replace(evidence, cases=evidence.cases + len(words))
    return with_sizes(evidence, declared, measured)


def sabotage(subject: Subject) -> Subject:
    """The key of the second head forgets the role."""
    return zeroed(subject, "blocks.1.attn.W_K", (0, list(subject.weights.labels.space("role").dims)))


CLAIM = Claim(row="R19", status="proved", certified="sampled", subjects=subjects, check=check, sabotage=sabotage)
