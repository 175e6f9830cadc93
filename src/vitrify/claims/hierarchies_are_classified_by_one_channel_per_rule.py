r"""A Random Hierarchy Model is classified exactly by a CNN of width $vm$, one convolution per level.

Statement: For every Random Hierarchy Model with $v$ symbols per level, $m$ rules per symbol, right sides of length $s$
that no two rules share, and depth $L$ there is a CNN of $L$ convolutions with kernel and stride $s$ and one channel per
rule, at most $vm$ in a layer, that returns the class of every sentence of the model, and `(none)` for every other
string of that length.
Why: The channel of a rule is the AND of its children. Right sides are not shared, so at most one channel is 1 at a
position, and the sum over the rules of a symbol is that symbol's bit; it is folded into the next kernel or the readout.
Checked: Five models, up to $v = 16$, $m = 4$, $L = 4$: every string where there are at most 16,384; otherwise sentences
that together contain each rule with each rule of each of its children, random sentences, and sentences with one word
changed. The reference is a parse by dictionary. Channels per level are compared with the number of rules.
Not checked: Larger models; for the large ones the strings are a sample, not all. The paper trains networks; that a
network of this size exists is our statement, not the paper's.
Source: The model is that of Cagnetta et al. 2024, arXiv 2307.02129 [A]; the network is our own derivation.
Saboteur: A rule of the lowest level ignores its first child.
"""

from __future__ import annotations

import math
import re

from vitrify.claims._figures import points, sequence, show
from vitrify.claims._nets import Claim, Evidence, Subject, Subjects, built, check_net, zeroing
from vitrify.spec.grammars.families import random_hierarchy

MODELS = ((3, 2, 2, 3, 3), (4, 2, 3, 2, 4), (8, 3, 2, 3, 8), (16, 4, 2, 4, 16), (6, 4, 2, 4, 2))  # v, m, s, L, classes
WITHIN = "channels of every level within vm"


def subjects() -> Subjects:
    for v, m, s, L, classes in MODELS:
        grammar = random_hierarchy(v, m, s, L, seed=v, classes=classes)
        name = f"v = {v}, m = {m}, s = {s}, L = {L}, {classes} classes"
        yield built(name, grammar, "cnn", {"width": v * m})


def check(subject: Subject) -> Evidence:
    layers = range(len(subject.weights.architecture.convolutions))
    channels = tuple(subject.weights.arrays[f"conv.{layer}.W"].shape[0] for layer in layers)
    measured = {"units_per_layer": channels, WITHIN: max(channels) <= subject.data["width"]}
    return check_net(subject, {WITHIN: True}, measured)


sabotage = zeroing("conv.0.W", (0, slice(None), 0, 0))  # the first rule of the lowest level forgets its first child
FIGURE = show(
    sequence("units_per_layer", "layer", "channels"),
    points(
        lambda name, _: math.prod(map(int, re.findall(r"[vm] = (\d+)", name))),
        "d_model",
        "rules of a level, vm",
        "channels of the widest layer",
        laws={"one each": lambda count: count},
    ),
)
CLAIM = Claim(subjects, check, sabotage, id="R32", standing="theorem", certified="sampled", figure=FIGURE)
