"""Checks that several claims about built nets share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from vitrify.certify.evidence import Evidence
from vitrify.certify.words import WordExamination
from vitrify.claims.catalogue import Subject
from vitrify.constructions.ngram import Shape, ngram, sizes
from vitrify.kit import assemble
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Ledger, Weights
from vitrify.spec.ngrams import random_ngram

ATTENTIONS: tuple[AttentionKind, ...] = ("softmax", "sparsemax", "hard")


def ngram_subjects(shape: Shape) -> Iterator[Subject]:
    """Random models of 2 to 4 symbols and orders 2 to 4, under each kind of attention."""
    for words, order in ((2, 2), (3, 3), (4, 4)):
        model = random_ngram(words, order, seed=10 * words + order)
        for attention in ATTENTIONS:
            weights = assemble(ngram(model, shape=shape, attention=attention, max_length=24))
            yield Subject(f"{order}-gram over {words} symbols, {attention}", model, weights)


def examined(subject: Subject, max_length: int, declared: Mapping[str, Any], measured: Mapping[str, Any]) -> Evidence:
    """The net against its spec on all words to a length and random long ones, and its sizes against the formulas."""
    evidence = WordExamination(subject.weights.architecture, subject.spec, max_length=max_length).run(subject.weights)
    return with_sizes(evidence, declared, measured)


def with_sizes(evidence: Evidence, declared: Mapping[str, Any], measured: Mapping[str, Any]) -> Evidence:
    """The same evidence with declared sizes beside measured ones; any difference is a failure."""
    wrong = {name: (declared[name], measured[name]) for name in declared if declared[name] != measured[name]}
    found = replace(evidence, declared={**evidence.declared, **declared}, measured={**evidence.measured, **measured})
    if wrong and evidence.verdict == "holds":
        witness = {name: f"declared {a}, measured {b}" for name, (a, b) in wrong.items()}
        return replace(found, verdict="fails", witness=witness)
    return found


def check_ngram(subject: Subject, shape: Shape) -> Evidence:
    """Weak equivalence on every string to length 8, and the sizes of the published shape."""
    size = Ledger.of(subject.weights)
    table = [units for units in subject.weights.labels.units if units.name == "listed contexts"]
    rows = sum(units.stop - units.start for units in table)
    out = sum(_nonzeros(subject.weights, units.block, units.start, units.stop) for units in table)
    measured = {
        "attention_layers": size.attention_layers,
        "heads": size.heads,
        "table_units": rows,
        "table_weights": out,
    }
    return examined(subject, 8, sizes(subject.spec, shape), measured)


def _nonzeros(weights: Weights, block: int, start: int, stop: int) -> int:
    matrix = weights.arrays[f"blocks.{block}.mlp.W_out"][start:stop]
    return int(np.count_nonzero(matrix) if isinstance(matrix, np.ndarray) else matrix.count_nonzero())


def zeroed(subject: Subject, name: str, index: Any) -> Subject:
    """The subject with a part of one array set to zero."""
    array = subject.weights.arrays[name].copy()
    array[index] = 0.0
    return replace(subject, weights=subject.weights.with_array(name, array))
