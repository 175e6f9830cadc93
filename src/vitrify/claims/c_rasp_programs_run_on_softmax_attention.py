r"""C-RASP programs run on softmax transformers, one attention layer per nested count.

Statement: For every C-RASP program (letters, positions modulo a number, Boolean connectives, counts of positions up to
each one, sums, constant multiples, minima, maxima, conditionals, comparisons of counts) and every length $N$ there is
a softmax transformer that computes it without error on all words to length $N$, with one attention layer per level of
nesting and one head per different count.
Why: A head gives every token so far the weight $1/(N+1)$, however many there are, and BOS the rest, so it returns a
count over $N + 1$. Everything else is ReLU units, because every number is an integer and bounded. Heads of one nesting
depth share a layer.
Checked: 24 random programs, nested up to three deep, over 2 or 3 letters, at $N = 20$: all words to length 8, words
$x^n y^n$ and of one letter, and every prefix of random words of length 20, compared with running counts of the
program's formulas. Attention layers and heads are compared with nesting depth and number of counts.
Not checked: Words longer than $N$: the paper has one network for all lengths, by layer norm (see
`c_rasp_programs_run_at_any_length_by_layer_norm`). The converse, that such transformers recognize nothing beyond
C-RASP, is not checked.
Source: Yang & Chiang 2024, arXiv 2404.04393 [S]; the weights are our own derivation.
Saboteur: The outputs of all heads are zero.
"""

from __future__ import annotations

from vitrify.claims._nets import Claim, Evidence, Subject, Subjects, check_net, zeroed
from vitrify.constructions.catalogue import build
from vitrify.constructions.counting import sizes
from vitrify.spec.logic.crasp import random_counting

LENGTH, PROGRAMS = 20, 24


def subjects() -> Subjects:
    for seed in range(PROGRAMS):
        spec = random_counting(seed, alphabet="abc"[: 2 + seed % 2], length=LENGTH)
        yield Subject(f"program {seed}, nesting {spec.depth}", spec, build(spec))


def check(subject: Subject) -> Evidence:
    """Truth values, and sizes: these programs need all that they are allowed at most."""
    return check_net(subject, sizes(subject.spec, mode="bounded").at_most, max_length=8)


def sabotage(subject: Subject) -> Subject:
    for block in sorted({head.block for head in subject.weights.labels.heads}):
        subject = zeroed(subject, f"blocks.{block}.attn.W_O")
    return subject


CLAIM = Claim(subjects, check, sabotage, id="R13", standing="theorem", certified="sampled", budget_seconds=60)
