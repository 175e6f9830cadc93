r"""MAJORITY, SHUFFLE-DYCK-k and stateless counter machines run on uniform attention.

Statement: For every length $N$, MAJORITY and stateless counter machines run without error on words to length $N$ on one
attention layer, Dyck-1 and SHUFFLE-DYCK-$k$ on two, with one head per count. At every position each head gives all
tokens the same weight.
Why: A head that gives weight $1/(N+1)$ to every token, and the remainder to BOS, counts. Units compare counts, which
differ by at least one. Whether a height was ever below zero is one more count.
Checked: Seven languages at $N = 60$, each with softmax or sparsemax: all words to length 8 (6 over four letters and
more), words $x^n y^n$ and of one letter, every prefix of random words of length 60, against running sums. Attention
layers and heads are compared with the formulas. On one random word of length 60, two tokens that a head sees differ in
weight by at most 1e-12.
Not checked: Words longer than $N$: the sources have one network for all lengths, here the weights depend on $N$. Hard
attention, and counters with states.
Source: Pérez et al. 2019 (MAJORITY) and Bhattamishra et al. 2020, arXiv 2009.11264 (shuffles, stateless counters), by
way of Strobl et al. 2024, arXiv 2311.00208 [S]; the weights are our own derivation.
Saboteur: The first layer gives BOS no remainder, so that heads average instead of counting.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.claims._nets import SOFT, Claim, Evidence, Subject, Subjects, check_net, in_turn, zeroing
from vitrify.net.inference import trace
from vitrify.spec.logic.crasp import dyck1, majority, shuffle_dyck, stateless_counters

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


def subjects() -> Subjects:
    nets = in_turn({name: spec for name, (spec, _, _) in LANGUAGES.items()}, "counting", SOFT)
    for subject, (_, layers, heads) in zip(nets, LANGUAGES.values(), strict=True):
        yield replace(subject, data={"attention_layers": layers, "heads": heads})


def check(subject: Subject) -> Evidence:
    even = {"uniform attention": _unevenness(subject) <= EVEN}
    longest = 8 if len(subject.spec.alphabet) < 4 else 6
    return check_net(subject, {**subject.data, "uniform attention": True}, even, max_length=longest)


def _unevenness(subject: Subject) -> float:
    """The largest difference between the weights that a query gives to two tokens it sees."""
    letters, rng = subject.spec.alphabet, np.random.default_rng(0)
    seen = trace(subject.weights, [letters[i] for i in rng.integers(0, len(letters), size=LENGTH)])
    patterns = [seen[f"blocks.{head.block}.attn.hook_pattern"] for head in subject.weights.labels.heads]
    return max(float(np.ptp(head[t, 1 : t + 1])) for heads in patterns for head in heads for t in range(1, LENGTH + 1))


sabotage = zeroing("blocks.0.attn.W_Q")  # heads of the first layer average over all that they see
CLAIM = Claim(subjects, check, sabotage, id="R9", standing="theorem", certified="sampled", budget_seconds=20)
