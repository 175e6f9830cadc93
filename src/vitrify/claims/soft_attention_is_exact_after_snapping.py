r"""Softmax attention at a moderate inverse temperature is exact when the MLP clips its error away.

Statement: If the attention weight that a head leaks to wrong keys is below the margin of the units that read it, units
that clip on both sides restore the exact values. The probabilities of the softmax net then equal those of the hard net
up to rounding, at an inverse temperature $\beta \approx \ln(8n)/g$ for $n$ keys and score gap $g$.
Why: A leak of at most $(n-1)e^{-\beta g}$ moves a slot by less than the margin of a clipped conjunction, which is
exactly 0 or 1 on anything within the margin.
Checked: Six n-gram nets (2 or 3 symbols, order 3 or 4, two constructions) with snapping units against hard nets: the
largest difference of two probabilities on all strings to length 7 is at most 1e-14. The largest $\beta$ is at most half
of that of the net without snapping units, which needs a leak of about 1e-13.
Not checked: Strings longer than 7 (the nets are built for 64) and other constructions. The formula for $\beta$ is
derived, not fitted.
Source: Our own derivation from the gap inequality; Svete & Cotterell 2024, arXiv 2404.14994 [T] claim no exactness for
soft attention.
Saboteur: The same inverse temperature with units that clip on one side only.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from vitrify.claims._figures import bars, declared, show
from vitrify.claims._nets import CaseKind, Domain, Evidence, Method, Quantity, Weights, witnessed
from vitrify.claims.catalogue import Claim, Subject, Subjects
from vitrify.constructions.ngram import Variant, ngram
from vitrify.kit import assemble
from vitrify.net.inference import batch_logits, log_probabilities
from vitrify.spec.ngrams.families import random_ngram

LENGTH = 7
ROUNDING = 1e-14  # a few units in the last place of a probability computed in two orders of summation
SHAPES: tuple[Variant, ...] = ("heads", "layers")


def subjects() -> Subjects:
    """Models of 2 to 3 symbols and orders 3 and 4; the hard net is the reference."""
    for words, order in ((2, 3), (2, 4), (3, 3)):
        model = random_ngram(words, order, seed=words + order)
        for shape in SHAPES:
            soft = assemble(ngram(model, variant=shape, max_length=64, snap=True))
            hard = assemble(ngram(model, variant=shape, attention="hard", max_length=64))
            plain = assemble(ngram(model, variant=shape, max_length=64))
            yield Subject(f"{order}-gram over {words} symbols, {shape}", model, soft, {"hard": hard, "plain": plain})


def check(subject: Subject) -> Evidence:
    letters = len(subject.weights.architecture.inputs) - 1
    words = np.array(list(product(range(1, letters + 1), repeat=LENGTH)))
    tokens = np.pad(words, ((0, 0), (1, 0)))
    soft, hard = _probabilities(subject.weights, tokens), _probabilities(subject.data["hard"], tokens)
    worst = float(np.abs(soft - hard).max())
    beta, without = _largest_beta(subject.weights), _largest_beta(subject.data["plain"])
    good = worst <= ROUNDING and beta < without / 2
    number, position = (int(i) for i in np.unravel_index(np.abs(soft - hard).max(axis=-1).argmax(), soft.shape[:2]))
    witness = {"history": words[number, :position].tolist(), "difference": worst, "beta": beta, "beta without": without}
    cases = sum(letters**n for n in range(LENGTH + 1))
    words_to = Domain(CaseKind.WORDS, Method.EXHAUSTIVE, cases, 0, LENGTH)
    return witnessed(None if good else witness, cases, words_to).adding(
        Quantity("largest difference", worst, ROUNDING, "<="), Quantity("largest temperature", beta, without / 2, "<=")
    )


def sabotage(subject: Subject) -> Subject:
    plain: Weights = subject.data["plain"]
    for name in plain.arrays:
        if name.endswith("attn.beta"):
            plain = plain.with_array(name, np.full_like(plain.arrays[name], 1.0 + _largest_beta(subject.weights) / 2))
    return replace(subject, weights=plain)


def _probabilities(weights: Weights, tokens: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(log_probabilities(weights.architecture.output, batch_logits(weights, tokens))))


def _largest_beta(weights: Weights) -> float:
    return max(float(np.max(array)) for name, array in weights.arrays.items() if name.endswith("attn.beta"))


FIGURE = show(
    bars(
        {"largest temperature measured": "largest temperature", "declared": declared("largest temperature")},
        "inverse temperature that suffices",
    )
)
CLAIM = Claim(subjects, check, sabotage, id="R1", standing="theorem", certified="proved", figure=FIGURE)
