r"""C-RASP programs run on softmax transformers, one attention layer per nested count.

Statement: For every C-RASP program (letters, monadic predicates of the position, Boolean connectives, counts of
positions up to each one, sums, constant multiples, minima, maxima, conditionals, comparisons of counts) and every
length $N$ there is a softmax transformer that computes it without error on all words to length $N$, with one attention
layer per level of nesting and one head per different count.
Why: A head gives every token so far the weight $1/(N+1)$, however many there are, and BOS the rest, so it returns a
count over $N + 1$. Everything else is ReLU units, because every number is an integer and bounded. Heads of one nesting
depth share a layer.
Checked: 200 random programs, nested up to three deep, over 2 or 3 letters, at $N = 20$: all words to length 5 and every
prefix of random words of length 20, compared with running counts of the program's formulas. Their predicates are
position mod 3, the primes and the squares. Six more are certified and run on all words to length 8, words $x^n y^n$ and
of one letter as well. Attention layers and heads are at most the nesting depth and the number of counts; in those six
they are equal.
Not checked: Words longer than $N$: the paper has one network for all lengths, by layer norm (see
`c_rasp_programs_run_at_any_length_by_layer_norm`). A monadic predicate is listed up to $N$ here. The converse, that
such transformers recognize nothing beyond C-RASP, is not checked.
Source: Yang & Chiang 2024, arXiv 2404.04393 [S]; for monadic predicates Barceló et al. 2024, arXiv 2310.03817 [K],
whose attention is average-hard; the weights are our own derivation.
Saboteur: The outputs of all heads are zero.
"""

from __future__ import annotations

from itertools import count, islice

from vitrify.claims._figures import bars, declared, points, show
from vitrify.claims._nets import (
    Claim,
    Evidence,
    Subject,
    Subjects,
    built,
    check_net,
    check_truths,
    groups,
    on_every_member,
    on_groups,
    sized,
    zeroed,
)
from vitrify.spec.logic.crasp import random_counting

LENGTH = 20
CERTIFIED, RANDOM, GROUP = 6, 200, 25  # programs: certified, others, and of these as one subject
SHORT = 5  # letters of all words on which each of the others is checked
MONADIC = ("MOD(1, 3)", "AT(2, 3, 5, 7, 11, 13, 17, 19)", "AT(0, 1, 4, 9, 16)")


def subjects() -> Subjects:
    yield from islice(_programs(), CERTIFIED)
    random = (subject.with_data(random=True) for subject in islice(_programs(), CERTIFIED, CERTIFIED + RANDOM))
    yield from groups(random, GROUP, "random programs")


def _programs() -> Subjects:
    for seed in count():
        spec = random_counting(seed, alphabet="abc"[: 2 + seed % 2], length=LENGTH, predicates=MONADIC)
        yield built(f"program {seed}, nesting {spec.depth}", spec)


def check(subject: Subject) -> Evidence:
    """Return the check of truth values and sizes: the certified programs need all that they are allowed at most."""
    if "random" in subject.data:
        return check_truths(subject, SHORT).adding(*sized(subject))
    return check_net(subject, subject.data["sizes"].at_most, max_length=8)


def sabotage(subject: Subject) -> Subject:
    for block in sorted({head.block for head in subject.weights.labels.heads}):
        subject = zeroed(subject, f"blocks.{block}.attn.W_O")
    return subject


FIGURE = show(
    points(
        "nesting {}",
        ("attention_layers",),
        "nesting of counts",
        "attention layers",
        laws={"one each": lambda depth: depth},
    ),
    bars({"heads": "heads", "heads declared": declared("heads")}, "heads"),
)
CLAIM = Claim(
    subjects,
    on_groups(check),
    on_every_member(sabotage),
    id="R13",
    standing="theorem",
    certified="sampled",
    budget_seconds=20,
    figure=FIGURE,
)
