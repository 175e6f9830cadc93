r"""A Random Hierarchy Model is classified exactly by a CNN of width $vm$, one convolution per level.

Statement: For every Random Hierarchy Model with $v$ symbols per level, $m$ rules per symbol, right sides of length $s$
and depth $L$ there is a CNN of $L$ convolutions with kernel and stride $s$ and at most $vm$ channels, one per rule,
that returns the class of every sentence of the model and rejects every other string.
Why: Right sides are not shared, so the channel of a rule, an AND of its children, is one bit. The sum over the rules of
a symbol is the bit of that symbol and is folded into the next kernel.
Checked: Five models, to $v = 16$, $m = 4$, $L = 4$: every string where there are at most 16,384; otherwise sentences in
which every rule meets every rule of its children, random sentences, and sentences with one word changed. The reference
is a parse by dictionary. Channels per level are compared with the number of rules.
Not checked: Larger models; for the large ones the strings are a sample, not all. The paper trains networks; that a
network of this size exists is our statement, not the paper's.
Source: The model is that of Cagnetta et al. 2024, arXiv 2307.02129 [A]; the network is our own derivation.
Saboteur: A rule of the lowest level ignores its first child.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.claims._nets import Claim, Evidence, Subject, built, check_net, zeroing
from vitrify.spec.grammars.families import random_hierarchy

MODELS = ((3, 2, 2, 3, 3), (4, 2, 3, 2, 4), (8, 3, 2, 3, 8), (16, 4, 2, 4, 16), (6, 4, 2, 4, 2))  # v, m, s, L, classes
WITHIN = "channels of every level within vm"


def subjects() -> Iterator[Subject]:
    """Random Hierarchy Models from 3 to 16 symbols."""
    for v, m, s, L, classes in MODELS:
        grammar = random_hierarchy(v, m, s, L, seed=v, classes=classes)
        name = f"v = {v}, m = {m}, s = {s}, L = {L}, {classes} classes"
        yield built(name, grammar, "cnn", {"width": v * m})


def check(subject: Subject) -> Evidence:
    """The classes of strings, and the number of convolutions and channels."""
    layers = range(len(subject.weights.architecture.convolutions))
    channels = tuple(subject.weights.arrays[f"conv.{layer}.W"].shape[0] for layer in layers)
    measured = {"units_per_layer": channels, WITHIN: max(channels) <= subject.data["width"]}
    return check_net(subject, {WITHIN: True}, measured)


sabotage = zeroing("conv.0.W", (0, slice(None), 0, 0))  # the first rule of the lowest level forgets its first child
CLAIM = Claim(subjects, check, sabotage, id="R32", standing="theorem", certified="sampled")
