"""Extraction of formulas: hard attention without positions, read back as past-time logic."""

from __future__ import annotations

import time

from vitrify.certification import certify
from vitrify.certification.evidence import Progress
from vitrify.certification.reading.formulas import formula_of
from vitrify.errors import BuildRefused, InputError
from vitrify.extraction.observations import SearchBudget
from vitrify.extraction.result import Extraction, known_words
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights, has_architecture


def extract_formula(
    weights: Weights[SequenceArchitecture], budget: SearchBudget, *, seed: int = 0, progress: Progress | None = None
) -> Extraction:
    """Return the formula of a transformer with hard attention that answers True or False."""
    output = weights.architecture.output
    if not has_architecture(weights, Transformer) or {*output.symbols} != {"False", "True"}:
        raise InputError("a formula is extracted from a transformer that answers True or False: try --as automaton")
    try:
        formula = formula_of(weights)
    except BuildRefused as refused:
        raise InputError(f"{refused}: try --as automaton") from None
    evidence = certify(weights, formula, seed=seed, prove=True, progress=budget.ticking(progress))
    seconds = time.perf_counter() - budget.start
    method = "read from the weights, type by type"
    witness = None if evidence.witness is None else dict(evidence.witness)
    return Extraction(
        "formula",
        formula,
        evidence,
        known_words(evidence, witness),
        method,
        evidence.cases,
        seconds,
        counterexample=witness,
    )
