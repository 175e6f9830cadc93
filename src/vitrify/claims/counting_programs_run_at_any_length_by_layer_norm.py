r"""C-RASP programs run on softmax transformers whose weights know no length, with norms over pairs of dimensions.

Statement: a counting program without position predicates becomes one set of weights that is right for every length;
it has as many attention layers as counts are nested, with one head each (fewer where comparisons decide nothing).
Why: heads bring shares $c/(i+1)$ of positions, and $l \ge r$ is the sign of $(2(l-r)+1)/(i+1)$, never 0. A norm
with nothing added under its root turns the pair $(z, -z)$ into $(\pm1, \mp1)$ however small $z$ is, so that
comparisons can be counted in turn. In floating point a length is left: rounding of a mean must stay below $1/(i+1)$.
Checked: random programs nested up to three deep, balanced and shuffled brackets, all built for words of 6 letters: all
words to length 8, words $x^n y^n$ and of one letter, every prefix of random words of length 120, against running sums.
The longer words are read by the same arrays, with rows of zeros added to the position table.
Source: A. Yang and D. Chiang, "Counting like transformers", 2024, arXiv 2404.04393 [S]; the weights, and norms over
declared pairs instead of the whole stream, are our own derivation.
Saboteur: the same arrays without the norms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import examined
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.counting import counting
from vitrify.kit import assemble
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.counting_languages import dyck1, random_counting, shuffle_dyck

BUILT, LENGTH, PROGRAMS = 6, 120, 6
PAIRS = (("(", ")"), ("[", "]"))


def subjects() -> Iterator[Subject]:
    """Programs in which comparisons are counted, each built for short words and made longer by hand."""
    specs = [dyck1(BUILT), shuffle_dyck(PAIRS, BUILT)]
    for seed in range(200):
        spec = random_counting(seed, alphabet="abc"[: 2 + seed % 2], length=BUILT)
        if spec.depth > 1 and all(step[0] != "MOD" for step in spec.steps) and len(specs) < PROGRAMS + 2:
            specs.append(spec)
    for spec in specs:
        net = assemble(counting(spec, mode="layernorm"))
        yield Subject(f"{spec.name}, nesting {spec.depth}", spec, _longer(net))


def _longer(net: Weights) -> Weights:
    """The same arrays, but for rows of zeros in the position table, all of which is zero."""
    table = net.arrays["pos_embed.W_pos"]
    if np.any(table):
        raise ValueError("a program without position predicates needs no positions")
    arrays = {**net.arrays, "pos_embed.W_pos": np.zeros((LENGTH + net.architecture.pads, table.shape[1]))}
    return replace(net, architecture=replace(net.architecture, max_length=LENGTH), arrays=arrays)


def check(subject: Subject) -> Evidence:
    """Truth values, and sizes."""
    size = Ledger.of(subject.weights)
    declared = {"attention_layers": subject.spec.depth, "heads": subject.spec.depth}
    measured = {"attention_layers": size.attention_layers, "heads": size.heads}
    return examined(subject, 8 if len(subject.spec.alphabet) < 4 else 6, declared, measured)


def sabotage(subject: Subject) -> Subject:
    """Every norm is taken out."""
    net = subject.weights
    arrays = {name: array for name, array in net.arrays.items() if ".ln" not in name}
    plain = replace(net.architecture, norm=False, groups=())
    return replace(subject, weights=replace(net, architecture=plain, arrays=arrays))


CLAIM = Claim(row="R13", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
