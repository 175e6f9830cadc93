"""From networks to specs: automata, counters, n-gram models and formulas of a network, each with a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from vitrify.certification.evidence import Progress
from vitrify.certification.recognition import reading
from vitrify.errors import InputError
from vitrify.extraction.observations import Exhausted, SearchBudget
from vitrify.extraction.result import Extraction, LengthErrors
from vitrify.limits import checked_seed
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.weights import Weights

__all__ = ["Extraction", "LengthErrors", "SearchBudget", "SpecKind", "extract"]

SpecKind = Literal["automaton", "ngram", "formula", "counter"]
MAX_WORDS = 1 << 20  # words that are run by default


def extract(
    net: Weights[SequenceArchitecture],
    kind: SpecKind = "automaton",
    *,
    symbols: Sequence[str] | None = None,
    max_length: int | None = None,
    max_states: int = 64,
    order: int | None = None,
    tolerance: float = 1e-3,
    words: int = MAX_WORDS,
    seconds: float | None = None,
    seed: int = 0,
    resume: Path | str | None = None,
    progress: Progress | None = None,
) -> Extraction:
    """Return a spec of a network, with how far the two are known to be equal, or a counterexample to the best one.

    - An *automaton* is read from the weights where the memory of the network is finite and exact, and proved equal for
      every length. Elsewhere it is learned, from all words up to `max_length` (by default, by cost) and longer ones.
      `max_states` bounds its size; with `resume`, the answers are kept in a file, from which a later call goes on.
    - An *n-gram* model has next-symbol distributions; its `order` is the first that loses at most `tolerance` nats
      per symbol against the network.
    - A *counter* is an automaton that knows how often each letter came, up to a number or modulo one; it is fitted to
      the answers, from the same words.
    - A *formula* is read from hard attention that answers True or False.

    With `symbols`, only words of these are run. `words` and `seconds` bound the search, and Ctrl-C ends it with the
    best automaton so far.

    >>> import vitrify as v
    >>> result = extract(v.build(v.read("cyclic:3"), "elman"))
    >>> result.spec == v.read("cyclic:3"), result.known
    (True, 'equal for every length, proved')
    """
    net = net if symbols is None else reading(net, symbols)
    budget, seed = SearchBudget(words, seconds), checked_seed(seed)
    if resume is not None and kind not in ("automaton", "counter"):
        raise InputError("only the search for an automaton or a counter can be resumed: leave --resume out")
    try:
        if kind in ("automaton", "counter"):
            from vitrify.extraction.automata import extract_automaton
            from vitrify.extraction.counters import extract_counter

            path = None if resume is None else Path(resume)
            extracted = extract_automaton if kind == "automaton" else extract_counter
            return extracted(
                net, budget, max_length=max_length, max_states=max_states, seed=seed, resume=path, progress=progress
            )
        if kind == "ngram":
            from vitrify.extraction.ngrams import extract_ngram

            return extract_ngram(
                net, budget, max_length=max_length, order=order, tolerance=tolerance, seed=seed, progress=progress
            )
        if kind == "formula":
            from vitrify.extraction.formulas import extract_formula

            return extract_formula(net, budget, seed=seed, progress=progress)
    except Exhausted as stop:
        raise InputError(f"nothing was extracted: {stop}") from None
    raise InputError(f"no spec of kind {kind!r} is extracted: choose {', '.join(get_args(SpecKind))}")
