r"""Equality and disjointness take two layers of one head and width 8, at every length and number of symbols.

Statement: For every $n$ and alphabet $\Sigma$, a transformer with two layers of one head each, width 8 and 4 units
decides at the end of $x_1 \dots x_n\, y_1 \dots y_n\,?$ whether $x = y$; one with 2 units decides whether two sets of
$n$ elements, given by their bits, are disjoint.
Why: Position $n + i$ reads the symbol $n$ positions before it, and units say whether both clash. The last position
looks for a clash.
Checked: All words for $n$ = 3 with 2 symbols and $n$ = 2 with 3, random words (1,000 to $n$ = 16) for $n$ to 512 and up
to 26 symbols, half of which have 1 to 4 clashes, all kinds of attention; sizes. Both links are proved for every word of
$2n + 1$ symbols: margins, and the lemma that the second layer finds each clash.
Not checked: Other $n$; sizes are formulas, but positions are numbers of $2\log_2 n$ bits. That one layer and recurrent
networks need $n\log_2|\Sigma|$ bits is another claim (`one_layer_needs_a_bit_for_each_symbol_that_it_compares`); it is
about deterministic networks that are right on every word.
Source: Bhattamishra, Hahn, Blunsom & Kanade 2024, arXiv 2406.09347 [A]; the weights are our own derivation.
Saboteur: Positions read $n - 1$ positions back.
"""

from __future__ import annotations

from vitrify.claims._figures import attention_of, points, show
from vitrify.claims._nets import (
    ATTENTIONS,
    Claim,
    Evidence,
    Quantity,
    Subject,
    Subjects,
    built,
    check_net,
    edited,
    proving,
)
from vitrify.spec.tasks.comparison import Comparison

TASKS = (
    Comparison("equality", 3),
    Comparison("equality", 2, symbols=3),
    Comparison("disjointness", 3),
    Comparison("equality", 16, symbols=26),
    Comparison("disjointness", 64),
    Comparison("equality", 128),
    Comparison("disjointness", 256),
    Comparison("equality", 512),
)
LENGTH, SAMPLES = 33, 1000  # of the longest words of which that many random ones are run


def subjects() -> Subjects:
    for number, task in enumerate(TASKS):
        attention = ATTENTIONS[number % len(ATTENTIONS)] if task.size < 512 else "softmax"
        yield built(f"{task}, {attention}", task, attention=attention)


def check(subject: Subject) -> Evidence:
    """Compare a net with its spec and its formulas, and prove both links."""
    long = subject.weights.architecture.max_length > LENGTH
    evidence = check_net(subject, samples=None if long else SAMPLES, work=1e8)
    if evidence.verdict != "holds":
        return evidence
    evidence = proving(subject, evidence)
    return evidence.adding(Quantity("links proved", sum(link.scope.proved for link in evidence.links), 2, "="))


def sabotage(subject: Subject) -> Subject:
    return edited(subject, "blocks.0.attn.b_Q", (0, 0), plus=2.0)  # the query is twice the position


FIGURE = show(
    *attention_of(subjects, (0, 0), (1, 0)),
    points("size={}", ("d_model", "units", "layers"), "positions", "size of the net", "2x"),
)
CLAIM = Claim(subjects, check, sabotage, id="R38", standing="theorem", certified="proved", figure=FIGURE)
