r"""Two attention layers generate Dyck words of bounded depth in width $O(\log k)$; $D + 1$ recognize them.

Statement: For the language Dyck$_{k,D}$ of well-nested words over $k$ kinds of brackets with depth at most $D$, and
every length $T$: (a) a transformer with two layers of one head each, $2D$ units and width $2\lceil\log_2 k\rceil +
\lceil\log_2(D+1)\rceil + 5$ (each log at least 2) gives the exact set of brackets that may come next after every
prefix of a word. (b) A transformer with $D + 1$ layers, $2D + 1$ heads and a width independent of $D$ decides for every
word whether it is in the language.
Why: (a) The bracket to close is the last opening one that left as many open as are open now: one head counts and one
looks up. (b) If nearest unmatched neighbours pair up in rounds, a pair with $r - 1$ nested pairs inside is found in
round $r$.
Checked: (a) $(k, D, T)$ = (8, 10, 60), (64, 10, 60), (2, 3, 60), (3, 5, 40), the three kinds of attention: next sets
after all prefixes to length 5 (2 if $k \ge 8$), after every prefix of words in which each kind stays open at each
depth for long, and of random words of full length. (b) $k = 2$, $D \le 3$, hard attention: all words to length 8, words
of the language, and such words with one bracket changed, missing or doubled. Sizes are compared with the formulas.
Not checked: (a) after prefixes that no word of the language has: the answer there is not specified. Longer words, and
(b) for $k > 2$ and under softmax. The paper's widths and weights were read in a secondary account only.
Source: Yao et al. 2021, arXiv 2105.11115 [S]; the weights are our own derivation.
Saboteur: (a) The keys of the second layer hold the depth only, so that closing brackets are taken for opening ones. (b)
In the first round right neighbours are not read.
"""

from __future__ import annotations

from vitrify.claims._figures import named, points, show
from vitrify.claims._nets import Claim, Subject, Subjects, built, checking, zeroed
from vitrify.constructions.catalogue import Attention
from vitrify.spec.languages.dyck import Dyck

GENERATORS: tuple[tuple[int, int, int, Attention], ...] = (
    (8, 10, 60, "softmax"),
    (64, 10, 60, "softmax"),
    (2, 3, 60, "sparsemax"),
    (3, 5, 40, "hard"),
)
WORK = 1e9  # multiplications spent on words beyond those listed


def subjects() -> Subjects:
    for kinds, depth, length, attention in GENERATORS:
        spec, data = Dyck.of_kinds(kinds, depth, length), {"max_length": 5 if kinds < 8 else 2}
        yield built(f"generator, {kinds} kinds to depth {depth}, {attention}", spec, "dyck", data, attention=attention)
    for depth in (1, 2, 3):
        spec, data = Dyck.of_kinds(2, depth, 8), {"max_length": 8}
        yield built(f"recognizer, 2 kinds to depth {depth}, hard", spec, "dyck-recognizer", data, attention="hard")


def sabotage(subject: Subject) -> Subject:
    """The key of the generator's second layer forgets the step; the right neighbour of round 1 is never seen."""
    if subject.weights.architecture.output.kind == "next":
        return zeroed(subject, "blocks.1.attn.W_K", (0, list(subject.weights.labels.space("step").dims)))
    return zeroed(subject, "blocks.0.attn.W_O", 1)


check = checking(work=WORK)
FIGURE = show(
    points("{} kinds", "d_model", "kinds of brackets", "width", "2x", by=named("^(generator|recognizer)")),
    points("depth {}", {"attention heads": "heads", "layers": "layers"}, "depth", "count"),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R10", standing="theorem", certified="sampled", budget_seconds=60, figure=FIGURE
)
