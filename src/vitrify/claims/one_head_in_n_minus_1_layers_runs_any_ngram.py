r"""One head in each of $n-1$ layers runs any n-gram language model, with hard, sparse or soft attention.

Statement: For every n-gram language model $p$ over $\Sigma$ there is a transformer with $n-1$ layers of one head each
whose distribution $q$ over strings is $p$: $q(y) = p(y)$ for every string $y \in \Sigma^*$.
Why: The first layer copies the symbol of the position itself, layer $i$ copies slot $i-1$ of the previous position.
After $n-1$ layers a position holds the last $n-1$ symbols, and an MLP looks up the next-symbol distribution.
Checked: Random models with $(\lvert\Sigma\rvert, n)$ = (2, 2), (3, 3) and (4, 4), each under softmax, sparsemax and
hard attention. Next-symbol probabilities are compared at every prefix of all strings to length 8 and of random strings
of length 24. There must be $n-1$ heads and layers, one MLP unit per listed context and one weight per listed n-gram.
Not checked: Strings longer than the maximum length 24 of the nets, larger alphabets, the paper's own weights. The
theorem is for hard attention in real arithmetic; sparsemax and softmax nets agree here within 1e-9.
Source: Svete & Cotterell 2024, arXiv 2404.14994, theorem 3.2 [T].
Saboteur: The last layer copies nothing.
"""

from __future__ import annotations

from functools import partial

from vitrify.claims._figures import last_word, points, show
from vitrify.claims._nets import Claim, Subject, check_ngram, ngram_subjects, zeroed


def sabotage(subject: Subject) -> Subject:
    return zeroed(subject, f"blocks.{subject.spec.order - 2}.attn.W_O")


subjects = partial(ngram_subjects, "layers")
FIGURE = show(
    points(
        "{}-gram",
        {"layers": "layers", "heads in all": "heads"},
        "order n",
        "count",
        joined=True,
        laws={"n − 1": lambda n: n - 1},
    ),
    points(
        "table_units",
        "units",
        "listed contexts",
        "units of the MLPs",
        by=last_word,
        laws={"one each": lambda units: units},
    ),
)
CLAIM = Claim(
    subjects, check_ngram, sabotage, id="R1", standing="theorem", certified="proved", budget_seconds=60, figure=FIGURE
)
