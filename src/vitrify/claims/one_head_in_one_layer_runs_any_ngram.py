r"""A single head in a single attention layer runs any n-gram language model, with hard, sparse or soft attention.

Statement: For every n-gram language model $p$ over $\Sigma$ there is a transformer with one attention layer of one
head, followed by an MLP of several layers, such that $q(y) = p(y)$ for every string $y \in \Sigma^*$.
Why: Softmax and sparsemax heads mix the last $n-1$ symbols with weights $3^{-i}$ (softmax up to a leak that is rounded
off); an MLP reads the digits of each coordinate of the mixture. A hard head mixes tied positions evenly, so symbols
first go into bins by position modulo $n-1$.
Checked: Random models with $(\lvert\Sigma\rvert, n)$ = (2, 2), (3, 3) and (4, 4), each under softmax, sparsemax and
hard attention. Next-symbol probabilities are compared at every prefix of all strings to length 8 and of random strings
of length 24. The numbers of heads, attention layers, units (one for each context) and output weights are compared with
the declared formulas.
Not checked: Strings longer than 24, larger alphabets. The paper's construction is a different one: it scales values by
$10^{-t}$, which underflows float64 near $t = 300$, and needs a number of bits linear in the length. Ours does not
depend on the length.
Source: Svete & Cotterell 2024, arXiv 2404.14994, theorem 3.3 [T]; the weights are our own derivation.
Saboteur: The head no longer attends to the newest symbol.
"""

from __future__ import annotations

from functools import partial

from vitrify.claims._figures import last_word, points, show
from vitrify.claims._nets import Claim, Subject, check_ngram, edited, ngram_subjects, zeroed


def sabotage(subject: Subject) -> Subject:
    """The head no longer sees the newest symbol; where it sees nothing else, its output is lost."""
    name = next(f"blocks.{i}.attn" for i, b in enumerate(subject.weights.architecture.blocks) if b.heads)
    if subject.weights.arrays[f"{name}.b_rel"].shape[1] == 1:
        return zeroed(subject, f"{name}.W_O")
    return edited(subject, f"{name}.b_rel", (0, 0), plus=-1e3)


subjects = partial(ngram_subjects, "single")
FIGURE = show(
    points("table_units", "units", "listed contexts", "units of the MLPs", by=last_word),
    points("{}-gram", ("heads", "layers"), "order n", "count"),
)
CLAIM = Claim(
    subjects, check_ngram, sabotage, id="R1", standing="theorem", certified="sampled", budget_seconds=60, figure=FIGURE
)
