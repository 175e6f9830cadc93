r"""The exact Bayes predictor of a Random Hierarchy Model is a transformer with a block per level and one or two more.

Statement: For every Random Hierarchy Model with $L$ levels there is a transformer with $d = L + 1$ blocks ($L + 2$ with
several classes), each one attention and one MLP, whose outputs divided by their sum are the exact next-word
probabilities after every prefix of a sentence.
Why: No two symbols share a right side, so a complete node of the parse has one label: the number of its parses is 0 or
1 and needs no threshold. All rules of a level have the same probability, so the probability of a word is proportional
to the number of continuations, which a gate can pass and add up level by level.
Checked: Six models with up to 8 symbols, 4 rules per symbol and 3 levels, each with softmax, sparsemax or hard
attention: every prefix of every sentence, against inside and forward weights in exact fractions, within 1e-12. Blocks,
heads and units are compared with the formulas.
Not checked: Larger models, such as those in the experiments of the source ($v = 16$ and more). Learning is not part of
this claim.
Source: Cagnetta et al. 2024, arXiv 2307.02129 [S] for the model; Nandakumar et al. 2026, arXiv 2606.17522 [A] for
depth; the weights are our own derivation.
Saboteur: One word gets twice its probability weight at the beginning of a sentence: all sets of next words stay right,
the probabilities do not.
"""

from __future__ import annotations

import numpy as np

from vitrify.certification.evidence import CaseKind, Domain, Evidence, Method, Quantity
from vitrify.claims._figures import bars, declared, points, show
from vitrify.claims._nets import ATTENTIONS, Claim, Subject, Subjects, built, edited, sized, witnessed
from vitrify.net.inference import encode, log_probabilities, logits
from vitrify.spec.grammars.families import random_hierarchy

TOLERANCE = 1e-12
# symbols, rules per symbol, children, levels, classes
MODELS = ((2, 2, 2, 2, 1), (8, 4, 2, 2, 1), (4, 3, 2, 2, 3), (3, 2, 3, 2, 1), (4, 2, 2, 3, 2), (8, 2, 2, 3, 1))


def subjects() -> Subjects:
    for number, (v, m, s, levels, classes) in enumerate(MODELS):
        grammar = random_hierarchy(v, m, s, levels, seed=number, classes=classes)
        attention = ATTENTIONS[number % 3]
        name = f"v={v}, m={m}, s={s}, L={levels}, {classes} classes, {attention}"
        blocks = levels + 1 + (classes > 1)
        yield built(name, grammar, "unambiguous", {"blocks": blocks}, attention=attention)


def check(subject: Subject) -> Evidence:
    grammar, weights = subject.spec, subject.weights
    net = weights.architecture
    sentences = list(grammar.sentences())
    worst, witness, seen = 0.0, None, set[tuple[str, ...]]()
    for sentence, scores in zip(sentences, logits(weights, [encode(net, s) for s in sentences]), strict=True):
        probabilities = np.exp(log_probabilities(net.output, scores))
        for position, chances in enumerate(grammar.next_word_probs_along(sentence)):
            seen.add(sentence[:position])
            expected = np.array([float(chances.get(word, 0)) for word in net.output.symbols])
            errors = np.abs(probabilities[position] - expected)
            if not errors.max() <= worst:
                worst, symbol = float(errors.max()), int(errors.argmax())
                both = {"expected": float(expected[symbol]), "actual": float(probabilities[position, symbol])}
                witness = {"history": list(sentence[:position]), "next": net.output.symbols[symbol], **both}
    prefixes = Domain(CaseKind.PREFIXES, Method.EXHAUSTIVE, len(seen), settings={"sentences": len(sentences)})
    return witnessed(None if worst <= TOLERANCE else witness, len(seen), prefixes).adding(
        Quantity("largest error", worst, TOLERANCE, "<="),
        *sized(subject),
        Quantity("one block per level", len(net.units_per_layer), subject.data["blocks"], "="),
    )


def sabotage(subject: Subject) -> Subject:
    """The first unit of the last MLP, which offers a word at the beginning, counts twice."""
    return edited(subject, f"blocks.{len(subject.weights.architecture.blocks) - 1}.mlp.W_out", 0, times=2.0)


FIGURE = show(
    points("L={}", ("layers", "heads"), "levels L", "count"),
    bars({"units used": "units", "declared": declared("units")}, "units"),
)
CLAIM = Claim(subjects, check, sabotage, id="R32", standing="theorem", certified="exhaustive", figure=FIGURE)
