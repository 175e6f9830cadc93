"""From networks to specs: automata, n-gram models and formulas that a network computes, each with a certificate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

from vitrify.certification.evidence import Progress
from vitrify.errors import InputError
from vitrify.extraction.observations import Budget
from vitrify.extraction.result import Extraction, LengthErrors
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.weights import Weights

__all__ = ["Budget", "Extraction", "LengthErrors", "SpecKind", "extract"]

SpecKind = Literal["automaton"]
MAX_WORDS = 1 << 20  # words that are run by default


def extract(
    net: Weights[SequenceArchitecture],
    kind: SpecKind = "automaton",
    *,
    max_length: int | None = None,
    max_states: int = 64,
    words: int = MAX_WORDS,
    seconds: float | None = None,
    seed: int = 0,
    resume: Path | str | None = None,
    progress: Progress | None = None,
) -> Extraction:
    """Return the spec that a network computes, with a certificate, or a counterexample to the best one.

    An *automaton* is read from the weights where the memory of the network is finite and exact, and equal for every
    length. Elsewhere it is learned, from all words up to `max_length` (by default, by cost) and some longer ones.
    `max_states`, `words` and `seconds` bound the search; Ctrl-C ends it. With `resume`, the answers that were observed
    are written to a file, from which a later call goes on.

    >>> import vitrify as v
    >>> result = extract(v.build(v.read("cyclic:3"), "elman"))
    >>> result.spec == v.read("cyclic:3"), result.known
    (True, 'equal for every length')
    """
    from vitrify.extraction.automata import extract_automaton

    budget = Budget(words, seconds)
    path = None if resume is None else Path(resume)
    return extract_automaton(
        net, budget, max_length=max_length, max_states=max_states, seed=seed, resume=path, progress=progress
    )
