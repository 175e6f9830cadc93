r"""A single head in a single attention layer runs any n-gram language model, with hard, sparse or soft attention.

Statement: for every n-gram model there is a transformer with one attention layer of one head, and a deeper MLP, that
gives every string the same probability.
Why: soft and sparse heads mix the last $n-1$ symbols with weights $3^{-i}$, and every coordinate of the mixture is a
number whose digits an MLP reads off. A hard head mixes evenly; there, symbols first go into bins by position modulo
$n-1$.
Checked: all strings to length 8 and random ones of length 24, every prefix: the largest difference of two
probabilities; heads, attention layers, table units and output weights against the formulas.
Source: Svete & Cotterell 2024, arXiv 2404.14994, theorem 3.3 [T]: theirs scales values by $10^{-t}$ and loses float64
near t = 300; ours does not depend on the length.
Saboteur: the head no longer sees the newest symbol.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import check_ngram, ngram_subjects
from vitrify.claims.catalogue import Claim, Subject


def subjects() -> Iterator[Subject]:
    """Random models under each kind of attention."""
    return ngram_subjects("single")


def check(subject: Subject) -> Evidence:
    """Weak equivalence and sizes."""
    return check_ngram(subject, "single")


def sabotage(subject: Subject) -> Subject:
    """The head no longer sees the newest symbol; where it sees nothing else, its output is lost."""
    block = next(i for i, b in enumerate(subject.weights.architecture.blocks) if b.heads)
    bias = subject.weights.arrays[f"blocks.{block}.attn.b_rel"].copy()
    if bias.shape[1] == 1:
        name = f"blocks.{block}.attn.W_O"
        return replace(subject, weights=subject.weights.with_array(name, 0 * subject.weights.arrays[name]))
    bias[0, 0] -= 1e3
    return replace(subject, weights=subject.weights.with_array(f"blocks.{block}.attn.b_rel", bias))


CLAIM = Claim(row="R1", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
