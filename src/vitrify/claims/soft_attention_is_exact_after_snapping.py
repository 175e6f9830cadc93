r"""Soft attention at a moderate temperature computes exactly, when the MLP cuts the noise off.

Statement: if a head leaks less than the margin of the units that read it, units that clip on both sides restore the
exact values, and the softmax net's probabilities equal those of the hard net to rounding, at a temperature of about
$\ln(8n)$ over the gap.
Why: a leak of at most $(n-1)e^{-\beta g}$ moves a slot by less than the margin of a clipped conjunction; a clipped
conjunction of anything within the margin is exactly 0 or 1.
Checked: n-gram nets with snapping units against hard nets, all strings to length 7: the largest difference of two
probabilities; the temperature against that of the net without snapping, which needs a leak of about 1e-13 for the
same promise.
Source: our own derivation, from the gap inequality; Svete & Cotterell 2024, arXiv 2404.14994 [T], claim no exactness
for soft attention.
Saboteur: the same temperature, but units that clip on one side only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.claims.catalogue import Claim, Subject
from vitrify.constructions.ngram import Shape, ngram
from vitrify.kit import assemble
from vitrify.net.run import batch_logits, log_probabilities
from vitrify.net.weights import Weights
from vitrify.spec.ngrams import random_ngram

LENGTH = 7
ROUNDING = 1e-14  # a few units in the last place of a probability computed in two orders of summation
SHAPES: tuple[Shape, ...] = ("heads", "layers")


def subjects() -> Iterator[Subject]:
    """Models of 2 to 3 symbols and orders 3 and 4; the hard net is the reference."""
    for words, order in ((2, 3), (2, 4), (3, 3)):
        model = random_ngram(words, order, seed=words + order)
        for shape in SHAPES:
            soft = assemble(ngram(model, shape=shape, max_length=64, snap=True))
            hard = assemble(ngram(model, shape=shape, attention="hard", max_length=64))
            plain = assemble(ngram(model, shape=shape, max_length=64))
            yield Subject(f"{order}-gram over {words} symbols, {shape}", model, soft, {"hard": hard, "plain": plain})


def check(subject: Subject) -> Evidence:
    """The largest difference from the hard net, and the two temperatures."""
    letters = len(subject.weights.architecture.inputs) - 1
    words = np.array(list(product(range(1, letters + 1), repeat=LENGTH)))
    tokens = np.concatenate([np.zeros((len(words), 1), dtype=np.int64), words], axis=1)
    soft, hard = _probabilities(subject.weights, tokens), _probabilities(subject.data["hard"], tokens)
    worst = float(np.abs(soft - hard).max())
    beta, without = _largest_beta(subject.weights), _largest_beta(subject.data["plain"])
    good = worst <= ROUNDING and beta < without / 2
    row, place = (int(i) for i in np.unravel_index(np.abs(soft - hard).max(axis=-1).argmax(), soft.shape[:2]))
    witness = {"history": words[row, :place].tolist(), "difference": worst, "beta": beta, "beta without": without}
    return Evidence(
        verdict="holds" if good else "fails",
        method="exhaustive",
        domain=f"all strings to length {LENGTH}",
        cases=sum(letters**n for n in range(LENGTH + 1)),
        witness=None if good else witness,
        declared={"largest difference": ROUNDING, "temperature below half of": without},
        measured={"largest difference": worst, "temperature below half of": beta},
    )


def sabotage(subject: Subject) -> Subject:
    """The same temperatures in the net whose units clip on one side only."""
    plain: Weights = subject.data["plain"]
    for name in plain.arrays:
        if name.endswith("attn.beta"):
            plain = plain.with_array(name, np.full_like(plain.arrays[name], 1.0 + _largest_beta(subject.weights) / 2))
    return replace(subject, weights=plain)


def _probabilities(weights: Weights, tokens: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.exp(log_probabilities(weights.architecture.output, batch_logits(weights, tokens)))
    return found


def _largest_beta(weights: Weights) -> float:
    return max(float(np.max(array)) for name, array in weights.arrays.items() if name.endswith("attn.beta"))


CLAIM = Claim(row="R1", status="proved", certified="proved", subjects=subjects, check=check, sabotage=sabotage)
