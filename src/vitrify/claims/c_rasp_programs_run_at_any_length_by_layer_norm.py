r"""C-RASP programs run at any length on one set of softmax weights, with norms over pairs of dimensions.

Statement: For every C-RASP program without position predicates there is one set of weights of a softmax transformer
with layer norm that computes it on words of every length, with at most one attention layer per level of nesting
and one head per count.
Why: At position $i$ heads give counts over $i+1$; counts have $l \ge r$ iff $(2(l-r)+1)/(i+1) > 0$, never 0. A norm
with $\varepsilon = 0$ maps the pair $(z, -z)$ to $(\pm1, \mp1)$ however small $z$ is, so comparisons can be counted
again.
Checked: Balanced brackets, shuffled brackets of two kinds and six random programs nested two or three deep, all built
for length 6 and run on longer words with the same arrays (only zero rows are added to the position table): all words to
length 8 (6 over four letters), words $x^n y^n$ and of one letter, every prefix of random words of length 120, against
running sums.
Not checked: Words longer than 120. In floating point the statement ends at the length at which the rounding error of a
mean reaches $1/(i+1)$. The paper's norm is over the residual stream; here it is over fixed pairs of dimensions.
Source: Yang & Chiang 2024, arXiv 2404.04393 [S]; the weights are our own derivation.
Saboteur: The same arrays without the norms.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vitrify.claims._figures import points, show
from vitrify.claims._nets import Claim, Evidence, Subject, Subjects, Weights, check_net, without_norms
from vitrify.constructions.counting import counting, sizes
from vitrify.kit import assemble
from vitrify.spec.logic.crasp import dyck1, random_counting, shuffle_dyck

BUILT, LENGTH, PROGRAMS = 6, 120, 6
PAIRS = (("(", ")"), ("[", "]"))


def subjects() -> Subjects:
    """Programs in which comparisons are counted, each built for short words and made longer by hand."""
    drawn = (random_counting(seed, alphabet="abc"[: 2 + seed % 2], length=BUILT) for seed in range(200))
    nested = [spec for spec in drawn if spec.depth > 1 and all(step[0] != "MOD" for step in spec.steps)]
    for spec in (dyck1(BUILT), shuffle_dyck(PAIRS, BUILT), *nested[:PROGRAMS]):
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
    declared = sizes(subject.spec, mode="layernorm").at_most
    return check_net(subject, declared, max_length=8 if len(subject.spec.alphabet) < 4 else 6)


FIGURE = show(
    points(
        "nesting {}",
        ("attention_layers", "heads"),
        "nesting of counts",
        "count",
        laws={"one each": lambda depth: depth},
    )
)
CLAIM = Claim(
    subjects, check, without_norms, id="R13", standing="theorem", certified="sampled", budget_seconds=20, figure=FIGURE
)
