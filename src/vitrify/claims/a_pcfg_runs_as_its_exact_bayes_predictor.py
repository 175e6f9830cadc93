r"""A probabilistic grammar of bounded depth runs on a transformer that gives the exact Bayes next-word distribution.

Statement: for every non-recursive grammar of depth $d$ with probabilities there is a softmax transformer of $O(d)$
layers whose output after every beginning of a sentence is the probability of each next word, and of the end, given the
words read, to within $10^{-9}$.
Why: those probabilities are sums of products over rules and spans, level by level. In logarithms a product is linear in
what a few heads fetch, and a softmax over a key per summand and a sink is a sigmoid of the logarithm of the sum, from
which thresholds and Halley's iteration recover it.
Checked: every beginning of every sentence of random ambiguous grammars, of one with rules of probability $10^{-6}$, and
of a random hierarchy, against exact fractions from a chart; the numbers held on the way, against their proved errors;
layers, heads, units and pads against the formulas.
Source: Nandakumar et al. 2026, arXiv 2606.17522 [A], speak of sets of words; sums in their place, and the weights, are
our own derivation.
Saboteur: the logit of one word is a millionth too large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vitrify.certify.evidence import Evidence
from vitrify.certify.words import WordExamination
from vitrify.claims._nets import with_sizes
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.grammar_probabilities import grammar_probabilities, sizes
from vitrify.kit import assemble
from vitrify.net.weights import Ledger
from vitrify.spec.grammar import Grammar
from vitrify.spec.grammars import random_hierarchy, random_pcfg

RARE = """
S -> A A [0.000001] | B [0.999999]
A -> C [0.000001] | 'a' 'a' [0.999999]
B -> 'a' 'b' [0.5] | A 'b' [0.5]
C -> 'a' [0.999999] | 'b' [0.000001]
"""


def subjects() -> Iterator[Subject]:
    """Random grammars, one with rare rules, and a random hierarchy."""
    grammars: dict[str, Grammar] = {f"random grammar {seed}": random_pcfg(seed) for seed in (0, 4, 5, 6, 7)}
    grammars["rare rules"] = Grammar.from_text(RARE)
    grammars["random hierarchy"] = random_hierarchy(3, 2, 2, 3, seed=0)
    for name, grammar in grammars.items():
        yield Subject(name, grammar, assemble(grammar_probabilities(grammar)))


def check(subject: Subject) -> Evidence:
    """Exact probabilities on all beginnings, and sizes."""
    promised, size = sizes(subject.spec), Ledger.of(subject.weights)
    limit = f"layers at most {promised['most_layers']}"
    declared = {name: promised[name] for name in ("heads", "units", "pads")} | {limit: True}
    measured = {
        "heads": size.heads,
        "units": size.units,
        "pads": subject.weights.architecture.pads,
        limit: size.layers <= promised["most_layers"],
        "layers": size.layers,
    }
    evidence = WordExamination(subject.weights.architecture, subject.spec).run(subject.weights)
    return with_sizes(evidence, declared, measured)


def sabotage(subject: Subject) -> Subject:
    """The logit of one word is a millionth too large."""
    bias = subject.weights.arrays["unembed.b_U"].copy()
    bias[0] += 1e-6
    return replace(subject, weights=subject.weights.with_array("unembed.b_U", bias))


CLAIM = Claim(row="R3", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
