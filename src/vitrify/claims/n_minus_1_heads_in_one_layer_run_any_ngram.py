r"""One layer of $n-1$ heads runs any n-gram language model, with hard, sparse or soft attention.

Statement: for every n-gram model there is a transformer with one layer and $n-1$ heads that gives every string the
same probability.
Why: head $i$ copies the symbol $i$ places back into a slot; the MLP has one unit per listed context, which fires when
the slots hold it; the unembedding adds up what each suffix of the history contributes to the log-probabilities.
Checked: all strings to length 8 and random ones of length 24, every prefix: the largest difference of two
probabilities; heads, layers, units and output weights against the formulas.
Source: Svete & Cotterell 2024, arXiv 2404.14994, theorem 3.1 (hard) and 4.1 (sparse) [T]; soft attention is not
claimed there and is here within 1e-9.
Saboteur: the head that looks furthest back copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import check_ngram, ngram_subjects, zeroed
from vitrify.claims.catalogue import Claim, Subject


def subjects() -> Iterator[Subject]:
    """Random models under each kind of attention."""
    return ngram_subjects("heads")


def check(subject: Subject) -> Evidence:
    """Weak equivalence and sizes."""
    return check_ngram(subject, "heads")


def sabotage(subject: Subject) -> Subject:
    """The head that looks furthest back copies nothing."""
    return zeroed(subject, "blocks.0.attn.W_V", -1)


CLAIM = Claim(row="R1", status="proved", certified="proved", subjects=subjects, check=check, sabotage=sabotage)
