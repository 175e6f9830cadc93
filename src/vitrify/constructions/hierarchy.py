r"""A hierarchy (a Random Hierarchy Model, say) becomes a convolutional classifier with one channel per rule.

Own derivation, for the model of Cagnetta et al. (2024, arXiv 2307.02129). A level of the grammar is one convolution
with kernel = stride = the length $s$ of its right sides, so that its windows are the $s$-tuples that have a parent. A
rule $A \to X_1 \dots X_s$ is the channel

$$ r = \mathrm{relu}\Bigl(\sum_{k=1}^{s} [X_k \text{ at place } k] - (s-1)\Bigr), $$

and "$X$ at place $k$" is the sum of the channels of the rules of $X$ one level down (at the bottom: the plane of the
word). No two rules of a level have the same right side, so at most one channel is 1 at each place, and such a sum is a
bit again: on *any* string of words the map of a level holds the parse of each tuple that has one, and zeros elsewhere.
The logit of a class is the sum of its rules' channels at the root, that of `(none)` is ½.

| part | size |
| --- | --- |
| convolutions | one per level |
| channels | one per rule of the level: $vm$, at the root (number of classes)$\cdot m$ |
| weights | $s$ rows for each rule that meets a rule below it |
"""

from __future__ import annotations

import numpy as np

from vitrify.arrays import Matrix
from vitrify.constructions.catalogue import DeclaredSizes, construction
from vitrify.net.architecture import Output
from vitrify.net.conv import Convolution, Convolutional
from vitrify.net.labels import Labels, UnitsLabel
from vitrify.net.weights import Weights
from vitrify.spec.geometry.scene_files import NONE
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.grammars.hierarchy import Hierarchy


def sizes(grammar: Grammar) -> DeclaredSizes:
    """Return all sizes: a convolution per level, a channel per rule, and a plane per word."""
    tree = Hierarchy.of(grammar)
    channels = tuple(map(len, tree.levels))
    return DeclaredSizes.of_layers((0,) * len(channels), channels, max(len(tree.words), *channels))


@construction("cnn", "classes of sentences by one convolution per level, for hierarchies", sizes)
def hierarchy_cnn(grammar: Grammar) -> Weights[Convolutional]:
    """Return a network that outputs the class of every sentence, and `(none)` for any other string of that length."""
    tree = Hierarchy.of(grammar)
    net = Convolutional(
        planes=len(tree.words),
        rows=1,
        columns=tree.length,
        output=Output("class", (*tree.classes, NONE)),
        convolutions=tuple(
            Convolution(len(rules), (1, arity), (1, arity))
            for rules, arity in zip(tree.levels, tree.arities, strict=True)
        ),
        pixels="symbols",
        symbols=tree.words,
        name=f"hierarchy of {len(tree.levels)} levels, convolutions",
    )
    arrays: dict[str, Matrix] = {}
    below = tree.words  # what each input channel stands for
    for index, (rules, arity) in enumerate(zip(tree.levels, tree.arities, strict=True)):
        kernel = np.zeros((len(rules), len(below), 1, arity))
        for channel, rule in zip(kernel, rules, strict=True):
            for offset, child in enumerate(rule.rhs):
                channel[[symbol == child.name for symbol in below], 0, offset] = 1.0
        arrays |= {f"conv.{index}.W": kernel, f"conv.{index}.b": np.full(len(rules), 1.0 - arity)}
        below = tuple(rule.lhs for rule in rules)
    class_of_channel = [[float(symbol == name) for name in tree.classes] + [0.0] for symbol in below]
    arrays |= {"unembed.W_U": np.array(class_of_channel), "unembed.b_U": np.array([0.0] * len(tree.classes) + [0.5])}
    labels = [
        UnitsLabel(f"rules of level {level}", level - 1, 0, len(rules), ("classes",), tuple(map(str, rules)))
        for level, rules in enumerate(tree.levels, start=1)
    ]
    about = {
        "construction": "hierarchy",
        "variant": "cnn",
        "levels": len(tree.levels),
        "rules": sum(map(len, tree.levels)),
        "classes": len(tree.classes),
        "source": "our own, for the model of Cagnetta et al. 2024, arXiv 2307.02129",
    }
    return Weights(net, arrays, Labels(units=tuple(labels)), about)
