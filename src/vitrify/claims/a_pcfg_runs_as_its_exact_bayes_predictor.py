r"""A probabilistic grammar of bounded depth runs on a transformer that gives the exact Bayes next-word distribution.

Statement: For every non-recursive probabilistic grammar of depth $d$ there is a softmax transformer with $O(d)$ layers
whose output after every prefix of a sentence is the conditional probability of each next word, and of the end of the
sentence, given that prefix, within $10^{-9}$.
Why: These probabilities are sums of products over rules and spans, level by level. In logarithms a product is linear in
what a few heads fetch. A softmax over one key per summand and a sink is a sigmoid of the logarithm of the sum, from
which thresholds and Halley's iteration recover it.
Checked: Every prefix of every sentence of five random ambiguous grammars, of one with rules of probability $10^{-6}$,
and of a Random Hierarchy Model, against exact fractions from a chart. Intermediate values are compared with their
proved errors; layers, heads, units and padding tokens with the formulas.
Not checked: Larger grammars, and that layers grow linearly in $d$ over a range of $d$. The source speaks of sets of
next words, not of probabilities: the extension to sums is ours.
Source: Nandakumar et al. 2026, arXiv 2606.17522 [A]; probabilities and weights are our own derivation.
Saboteur: The logit of one word is larger by one millionth.
"""

from __future__ import annotations

from functools import partial

from vitrify.claims._figures import bars, declared, show
from vitrify.claims._nets import Claim, Evidence, Quantity, Subject, Subjects, built, check_net, edited
from vitrify.constructions.grammar_probabilities import products
from vitrify.spec.grammars.families import random_hierarchy, random_pcfg
from vitrify.spec.grammars.grammar import Grammar
from vitrify.spec.grammars.sums import SUM_PRODUCTS

RARE = """
S -> A A [0.000001] | B [0.999999]
A -> C [0.000001] | 'a' 'a' [0.999999]
B -> 'a' 'b' [0.5] | A 'b' [0.5]
C -> 'a' [0.999999] | 'b' [0.000001]
"""


def subjects() -> Subjects:
    grammars: dict[str, Grammar] = {f"random grammar {seed}": random_pcfg(seed) for seed in (0, 4, 5, 6, 7)}
    grammars["rare rules"] = Grammar.from_text(RARE)
    grammars["random hierarchy"] = random_hierarchy(3, 2, 2, 3, seed=0)
    for name, grammar in grammars.items():
        yield built(name, grammar, "probabilities")


def check(subject: Subject) -> Evidence:
    most = min(SUM_PRODUCTS, max(products(subject.spec.proper()).values())) + 1
    pads = Quantity("pads", subject.weights.architecture.pads, most, "<=")
    return check_net(subject).adding(pads)


sabotage = partial(edited, name="unembed.b_U", index=0, plus=1e-6)  # one logit is a millionth too large
FIGURE = show(
    bars({"layers used": "layers", "at most, by the formula": declared("layers")}, "layers"),
    bars({"largest error": "largest error"}, "largest error of a probability", "y"),
)
CLAIM = Claim(
    subjects, check, sabotage, id="R3", standing="theorem", certified="exhaustive", budget_seconds=60, figure=FIGURE
)
