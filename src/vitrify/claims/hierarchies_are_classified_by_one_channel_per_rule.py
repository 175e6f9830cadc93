r"""A Random Hierarchy Model is classified exactly by a CNN of width $vm$, one convolution per level.

Statement: for $v$ symbols per level, $m$ rules per symbol, right sides of length $s$ and depth $L$, a CNN of $L$
convolutions with kernel and stride $s$ and one channel per rule (at most $vm$) names the root of every sentence, and
says of every other string that it is none.
Why: right sides are not shared, so a rule's channel, an AND of its children, is a bit; the sum over the rules of a
symbol is the bit of that symbol, and is folded into the next kernel.
Checked: every string of words where there are at most 16,384; else sentences in which every rule meets every rule of
its children, random sentences, and sentences with one word changed, against a parse by dictionary; the number of
channels of every level against the rules. Four models or more, to $v = 16$, $m = 4$, $L = 4$.
Source: the model is that of Cagnetta et al. 2024, arXiv 2307.02129 [A]; the network is our own derivation.
Saboteur: a rule of the lowest level forgets its first child.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.certify.evidence import Evidence
from vitrify.certify.examine import examination
from vitrify.claims._nets import with_sizes, zeroed
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.hierarchy import hierarchy_cnn, sizes
from vitrify.spec.grammars import random_hierarchy

MODELS = ((3, 2, 2, 3, 3), (4, 2, 3, 2, 4), (8, 3, 2, 3, 8), (16, 4, 2, 4, 16), (6, 4, 2, 4, 2))  # v, m, s, L, classes


def subjects() -> Iterator[Subject]:
    """Random Hierarchy Models from 3 to 16 symbols."""
    for v, m, s, L, classes in MODELS:
        grammar = random_hierarchy(v, m, s, L, seed=v, classes=classes)
        name = f"v = {v}, m = {m}, s = {s}, L = {L}, {classes} classes"
        yield Subject(name, grammar, hierarchy_cnn(grammar), {"width": v * m})


def check(subject: Subject) -> Evidence:
    """The classes of strings, and the number of convolutions and channels."""
    weights = subject.weights
    evidence = examination(weights.architecture, subject.spec).run(weights)
    layers = weights.architecture.convolutions
    channels = [weights.arrays[f"conv.{index}.W"].shape[0] for index in range(len(layers))]
    measured = {"convolutions": len(layers)} | {f"channels of level {n}": size for n, size in enumerate(channels, 1)}
    within = {"channels of every level within vm": True}
    return with_sizes(
        evidence,
        sizes(subject.spec) | within,
        measured | {"channels of every level within vm": max(channels) <= subject.data["width"]},
    )


def sabotage(subject: Subject) -> Subject:
    """The first rule of the lowest level does without its first child."""
    return zeroed(subject, "conv.0.W", (0, slice(None), 0, 0))


CLAIM = Claim(row="R32", status="proved", certified="sampled", subjects=subjects, check=check, sabotage=sabotage)
