r"""The exact Bayes predictor of a Random Hierarchy Model is a transformer with one block per level.

Statement: for every Random Hierarchy Model of $L$ levels there is a transformer of exactly $d = L + 1$ blocks ($L + 2$
with several classes), each one attention and one MLP, whose outputs, divided by their sum, are the exact probabilities
of the next word after every beginning of a sentence.
Why: no right side is shared, so a complete node has one label and its states need no threshold; all rules of a level
have one probability, so the probability of a word is proportional to the number of ways to go on with it, and a gate
can pass and add up these numbers level by level.
Checked: every beginning of every sentence of models with up to 8 symbols, 4 rules per symbol and 3 levels, under each
kind of attention, against inside and forward weights in exact fractions; blocks, heads and units against the formulas.
Source: Cagnetta et al. 2024, arXiv 2307.02129 [S] for the model; Nandakumar et al. 2026, arXiv 2606.17522 [A] for
depth; the weights are our own derivation.
Saboteur: one of the first words counts twice: all sets of next words stay right, the probabilities do not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims._nets import ATTENTIONS, with_sizes
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.grammar_unambiguous import sizes, unambiguous
from vitrify.kit import assemble
from vitrify.net.run import encode, log_probabilities, logits
from vitrify.net.weights import Ledger
from vitrify.spec.grammars import random_hierarchy

TOLERANCE = 1e-12
# symbols, rules per symbol, children, levels, classes
MODELS = ((2, 2, 2, 2, 1), (8, 4, 2, 2, 1), (4, 3, 2, 2, 3), (3, 2, 3, 2, 1), (4, 2, 2, 3, 2), (8, 2, 2, 3, 1))


def subjects() -> Iterator[Subject]:
    """Models of several sizes; the kinds of attention take turns."""
    for place, (v, m, s, levels, classes) in enumerate(MODELS):
        grammar = random_hierarchy(v, m, s, levels, seed=place, classes=classes)
        attention = ATTENTIONS[place % 3]
        name = f"v={v}, m={m}, s={s}, L={levels}, {classes} classes, {attention}"
        blocks = levels + 1 + (classes > 1)
        yield Subject(name, grammar, assemble(unambiguous(grammar, attention=attention)), {"blocks": blocks})


def check(subject: Subject) -> Evidence:
    """Largest difference of two probabilities over all beginnings, and sizes."""
    start = time.perf_counter()
    grammar, weights = subject.spec, subject.weights
    net, ledger, promised = weights.architecture, Ledger.of(subject.weights), sizes(subject.spec)
    sentences = list(grammar.sentences())
    worst, witness, seen = 0.0, None, set[tuple[str, ...]]()
    for sentence, scores in zip(sentences, logits(weights, [encode(net, s) for s in sentences]), strict=True):
        found = np.exp(log_probabilities(net.output, scores))
        for place, chances in enumerate(grammar.next_word_probs_along(sentence)):
            seen.add(sentence[:place])
            expected = np.array([float(chances.get(word, 0)) for word in net.output.symbols])
            error = float(np.abs(found[place] - expected).max())
            if not error <= worst:
                worst, witness = error, _told(net.output.symbols, sentence[:place], expected, found[place])
    wrong = not worst <= TOLERANCE
    evidence = Evidence(
        verdict="fails" if wrong else "holds",
        method="exhaustive",
        domain=f"every beginning of {len(sentences)} sentences",
        cases=len(seen),
        witness=witness if wrong else None,
        seconds=time.perf_counter() - start,
    )
    declared = {"largest error": TOLERANCE, **promised, "one block per level": subject.data["blocks"]}
    measured = {
        "largest error": worst,
        "layers": ledger.layers,
        "heads": ledger.heads,
        "units": ledger.units,
        "one block per level": ledger.layers,
    }
    sized = with_sizes(evidence, {k: v for k, v in declared.items() if k != "largest error"}, measured)
    return replace(sized, declared=declared)


def _told(symbols: tuple[str, ...], history: tuple[str, ...], expected: Any, found: Any) -> dict[str, object]:
    symbol = int(np.abs(found - expected).argmax())
    return {
        "history": list(history),
        "next": symbols[symbol],
        "expected": float(expected[symbol]),
        "found": float(found[symbol]),
    }


def sabotage(subject: Subject) -> Subject:
    """The first unit of the last MLP, which offers a word at the beginning, counts twice."""
    name = f"blocks.{len(subject.weights.architecture.blocks) - 1}.mlp.W_out"
    array = subject.weights.arrays[name].copy()
    array[0] *= 2.0
    return replace(subject, weights=subject.weights.with_array(name, array))


CLAIM = Claim(row="R32", status="proved", certified="exhaustive", subjects=subjects, check=check, sabotage=sabotage)
