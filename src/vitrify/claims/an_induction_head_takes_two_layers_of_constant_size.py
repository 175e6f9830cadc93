r"""An induction head takes two layers with one head each and 8 dimensions, for any vocabulary and any length.

Statement: For every vocabulary size $V$ and length $T$ there is a transformer with two layers of one head each, width 8
and one hidden unit that returns, at every position, the symbol that followed the last earlier occurrence of the current
symbol, or that there was none.
Why: Layer 1 copies the previous symbol; layer 2 attends to the last position whose previous symbol is the current one.
Points on a circle and squares of positions separate any number of symbols and positions in two dimensions each; what
grows is the precision, by $\log V^2$ and $\log T^2$ bits.
Checked: All words to length 8 over 3 symbols under softmax, sparsemax and hard attention; random words (few or many
different symbols) at $V = 64$, $T = 200$ and at $V = 1000$, $T = 500$. Sizes are compared and are equal each time.
Not checked: Larger $V$ and $T$; at these sizes words are sampled. The sources state existence with their own weights,
which were not read in the original.
Source: Bietti et al. 2023, arXiv 2306.00802 [S]; Sanford, Hsu & Telgarsky 2024, arXiv 2408.14332 [S]; the weights are
our own derivation.
Saboteur: The second layer matches any earlier occurrence, not the last one.
"""

from __future__ import annotations

from vitrify.claims._figures import attention_of, points, show
from vitrify.claims._nets import Claim, Subject, Subjects, built, checking, zeroed
from vitrify.constructions.catalogue import Attention
from vitrify.spec.tasks.k_hop import KHop

CASES: tuple[tuple[int, int, Attention, int | None], ...] = (  # symbols, length, attention, length of all words
    (3, 12, "softmax", 8),
    (3, 12, "sparsemax", 8),
    (3, 12, "hard", 8),
    (64, 200, "softmax", None),
    (64, 200, "hard", None),
    (1000, 500, "softmax", None),
)
WORK = 1e8  # multiplications spent on words beyond those listed


def subjects() -> Subjects:
    for symbols, length, attention, longest in CASES:
        name, data = f"{symbols} symbols, length {length}, {attention}", {"max_length": longest}
        yield built(name, KHop(1, symbols, length), data=data, attention=attention)


def sabotage(subject: Subject) -> Subject:
    return zeroed(subject, "blocks.1.attn.W_K", (0, list(subject.weights.labels.space("index").dims)))


check = checking(work=WORK)
FIGURE = show(
    *attention_of(subjects, (0, 0), (1, 0)),
    points("{} symbols", ("d_model", "heads", "units"), "symbols", "size of the net", "x", joined=True),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R20", standing="theorem", certified="sampled", budget_seconds=20, figure=FIGURE
)
