r"""MAJORITY, SHUFFLE-DYCK-k and stateless counter machines run on uniform attention.

Statement: MAJORITY and stateless counter machines run without error on words of every length on one attention layer,
Dyck-1 and SHUFFLE-DYCK-$k$ on two. At every position each head gives all tokens the same weight, whether attention is
softmax or the average of all keys that tie (average-hard). No positions are needed: with layer norms over pairs of
dimensions one set of weights serves all lengths, with one head per layer; without norms weights depend on the largest
length $N$, with one head per count.
Why: A head that gives all tokens so far the same weight counts, as a share of their number. Units compare counts, which
differ by at least one; a norm makes a comparison of shares a sign, however small they are. Whether a height was ever
below zero is one more count.
Checked: Seven languages at $N = 60$, in both forms: with norms under average-hard attention, without norms under
softmax or sparsemax. All words to length 8 (6 over four letters and more), words $x^n y^n$ and of one letter, every
prefix of random words of length 60, against running sums. Attention layers and heads are compared with the formulas. On
one random word of length 60, two tokens that a head sees differ in weight by at most 1e-12. With norms all positions
are zero vectors, and all other arrays for $N = 6$ and $N = 240$ are the same, byte by byte.
Not checked: Words longer than $N$. In floating point the statement with norms ends at the length at which the rounding
error of a mean reaches $1/(i+1)$. Counters with states. The weights of the sources.
Source: Pérez et al. 2019 (MAJORITY) and Bhattamishra et al. 2020, arXiv 2009.11264 (shuffles, stateless counters), by
way of Strobl et al. 2024, arXiv 2311.00208 [S]; the weights are our own derivation.
Saboteur: Without norms, the first layer gives BOS no remainder, so that heads average instead of counting; with norms,
they are taken out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.claims._figures import attention_of, bars, show
from vitrify.claims._nets import (
    SOFT,
    Claim,
    Evidence,
    Subject,
    Subjects,
    Weights,
    alike,
    check_net,
    in_turn,
    without_norms,
    zeroed,
)
from vitrify.constructions.catalogue import build
from vitrify.net.inference import trace
from vitrify.spec.logic.crasp import Crasp, dyck1, majority, shuffle_dyck, stateless_counters

LENGTH, OTHER_LENGTHS = 60, (6, 240)
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
    for name, (spec, layers, _) in LANGUAGES.items():
        sizes = {"attention_layers": layers, "heads": layers}
        yield Subject(f"{name}, no positions, hard", spec, without_positions(spec, LENGTH), sizes)


def without_positions(spec: Crasp, length: int) -> Weights:
    """Return the net with norms, under hard attention that averages all keys."""
    return build(spec, "counting", mode="layernorm", attention="hard", max_length=length)


def check(subject: Subject) -> Evidence:
    declared = {**subject.data, "uniform attention": True}
    measured = {"uniform attention": _unevenness(subject) <= EVEN}
    if subject.weights.architecture.norm:
        declared["no positions, and the same arrays for other lengths"] = True
        measured["no positions, and the same arrays for other lengths"] = _knows_no_length(subject)
    return check_net(subject, declared, measured, max_length=8 if len(subject.spec.alphabet) < 4 else 6)


def _knows_no_length(subject: Subject) -> bool:
    """Return whether positions are zero, and all other arrays those of nets for shorter and longer words."""
    nets = [subject.weights, *(without_positions(subject.spec, length) for length in OTHER_LENGTHS)]
    zero = not any(net.arrays["pos_embed.W_pos"].any() for net in nets)
    own, *others = ({**net.arrays, "pos_embed.W_pos": np.zeros(0)} for net in nets)
    return zero and all(alike(own, other) for other in others)


def _unevenness(subject: Subject) -> float:
    """Return the largest difference between the weights that a query gives to two tokens it sees."""
    letters, rng = subject.spec.alphabet, np.random.default_rng(0)
    seen = trace(subject.weights, [letters[i] for i in rng.integers(0, len(letters), size=LENGTH)])
    patterns = [seen[f"blocks.{head.block}.attn.hook_pattern"] for head in subject.weights.labels.heads]
    return max(float(np.ptp(head[t, 1 : t + 1])) for heads in patterns for head in heads for t in range(1, LENGTH + 1))


def sabotage(subject: Subject) -> Subject:
    """Return the subject without norms, or with heads in the first layer that average over all that they see."""
    return without_norms(subject) if subject.weights.architecture.norm else zeroed(subject, "blocks.0.attn.W_Q")


FIGURE = show(
    *attention_of(subjects, (0, 0), word="abbabaab"), bars({"heads": "heads", "layers": "attention_layers"}, "count")
)
CLAIM = Claim(
    subjects, check, sabotage, id="R9", standing="theorem", certified="sampled", budget_seconds=20, figure=FIGURE
)
