r"""One head in each of $n-1$ layers runs any n-gram language model, with hard, sparse or soft attention.

Statement: for every n-gram model there is a transformer with $n-1$ layers of one head each that gives every string
the same probability.
Why: the first layer copies a position's own symbol, layer $i$ copies the previous position's slot $i-1$; after $n-1$
layers a position holds the last $n-1$ symbols. ($n-2$ copying layers would do, since a position knows its own
symbol.)
Checked: all strings to length 8 and random ones of length 24, every prefix: the largest difference of two
probabilities; heads, layers, units and output weights against the formulas.
Source: Svete & Cotterell 2024, arXiv 2404.14994, theorem 3.2 [T]; soft attention is not claimed there and is here
within 1e-9.
Saboteur: the last layer copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import check_ngram, ngram_subjects, zeroed
from vitrify.claims.catalogue import Claim, Subject


def subjects() -> Iterator[Subject]:
    """Random models under each kind of attention."""
    return ngram_subjects("layers")


def check(subject: Subject) -> Evidence:
    """Weak equivalence and sizes."""
    return check_ngram(subject, "layers")


def sabotage(subject: Subject) -> Subject:
    """The last layer copies nothing."""
    return zeroed(subject, f"blocks.{subject.spec.order - 2}.attn.W_O", slice(None))


CLAIM = Claim(row="R1", status="proved", certified="proved", subjects=subjects, check=check, sabotage=sabotage)
