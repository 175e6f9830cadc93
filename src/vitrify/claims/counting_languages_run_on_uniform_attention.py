r"""MAJORITY, SHUFFLE-DYCK-k and stateless counter machines run on uniform attention.

Statement: for words to length $N$, majority and stateless counter machines run without error on one attention layer,
balanced brackets of one kind and shuffles of brackets of $k$ kinds on two, with one head for each count; at every
position a head gives all tokens the same weight.
Why: a head whose weights are $1/(N+1)$ for every token, the beginning of the sequence taking the rest, counts; units
compare counts, which differ by one at least. Whether a height was ever below zero is one more count.
Checked: all words to length 8 (6 over four letters and more), words $x^n y^n$ and of one letter, every prefix of
random words of length 60, against running sums; attention layers and heads against the formulas; the largest
difference between the weights that a head gives to two tokens it sees.
Source: J. Pérez et al. 2019 (majority) and S. Bhattamishra et al. 2020, arXiv 2009.11264 (shuffles, stateless
counters), by way of L. Strobl et al. 2024, arXiv 2311.00208 [S]; the weights here are our own derivation.
Saboteur: the first layer no longer gives the beginning of the sequence its share, so that heads average.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import examined, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.counting import counting
from vitrify.kit import assemble
from vitrify.net.run import trace
from vitrify.net.weights import Ledger
from vitrify.spec.counting_languages import dyck1, majority, shuffle_dyck, stateless_counters

LENGTH = 60
EVEN = 1e-12  # two weights of 1/(N+1) may differ by rounding
PAIRS = (("(", ")"), ("[", "]"), ("{", "}"))
MOVES = {"a": (1, 0), "b": (-2, 1), "c": (0, -1), "d": (3, 2)}
BOTH_OR_NONE = ((True, True), (False, False))

# What is declared: attention layers, and heads.
LANGUAGES = {
    "majority of two letters": (majority("a", "ab", LENGTH), 1, 1),
    "majority of three letters": (majority("a", "abc", LENGTH), 1, 1),
    "balanced brackets": (dyck1(LENGTH), 2, 3),
    "shuffled brackets of 2 kinds": (shuffle_dyck(PAIRS[:2], LENGTH), 2, 5),
    "shuffled brackets of 3 kinds": (shuffle_dyck(PAIRS, LENGTH), 2, 7),
    "a as often as b": (stateless_counters({"a": (1,), "b": (-1,), "c": (0,)}, [(True,)], LENGTH), 1, 2),
    "two counters, both zero or none": (stateless_counters(MOVES, BOTH_OR_NONE, LENGTH), 1, 4),
}


def subjects() -> Iterator[Subject]:
    """Seven languages, under softmax and sparsemax in turn."""
    for place, (name, (spec, layers, heads)) in enumerate(LANGUAGES.items()):
        attention = ("softmax", "sparsemax")[place % 2]
        weights = assemble(counting(spec, attention=attention))  # type: ignore[arg-type]
        yield Subject(f"{name}, {attention}", spec, weights, {"attention_layers": layers, "heads": heads})


def check(subject: Subject) -> Evidence:
    """Truth values, sizes, and how evenly heads look."""
    size = Ledger.of(subject.weights)
    declared = {**subject.data, "uniform attention": True}
    measured = {
        "attention_layers": size.attention_layers,
        "heads": size.heads,
        "uniform attention": _unevenness(subject) <= EVEN,
    }
    return examined(subject, 8 if len(subject.spec.alphabet) < 4 else 6, declared, measured)


def _unevenness(subject: Subject) -> float:
    """The largest difference between the weights that a query gives to two tokens it sees."""
    letters, rng = subject.spec.alphabet, np.random.default_rng(0)
    seen = trace(subject.weights, [letters[i] for i in rng.integers(0, len(letters), size=LENGTH)])
    found = 0.0
    for block in sorted({head.block for head in subject.weights.labels.heads}):
        for pattern in seen[f"blocks.{block}.attn.hook_pattern"]:
            found = max(found, *(float(np.ptp(pattern[t, 1 : t + 1])) for t in range(1, LENGTH + 1)))
    return found


def sabotage(subject: Subject) -> Subject:
    """Heads of the first layer average over all that they see."""
    return zeroed(subject, "blocks.0.attn.W_Q", slice(None))


CLAIM = Claim(row="R9", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
