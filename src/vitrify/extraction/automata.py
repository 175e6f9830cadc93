"""Extraction of automata: read bit by bit where the memory of a network is finite and exact, learned elsewhere."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from vitrify.certification import certify
from vitrify.certification.evidence import CaseKind, Domain, Evidence, Link, Method, Progress, Scope, tested_links
from vitrify.certification.margins.values import Undecided
from vitrify.certification.reading.automata import behavior_of
from vitrify.certification.recognition import naming_states, saying_yes
from vitrify.errors import FolderError, InputError
from vitrify.extraction.learned import learned
from vitrify.extraction.learning import difference
from vitrify.extraction.observations import Observations, SearchBudget, asks_first
from vitrify.extraction.result import Extraction, known_words
from vitrify.net.architecture import SequenceArchitecture
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.moore import MooreMachine
from vitrify.spec.kinds import ANSWERS
from vitrify.spec.ngrams.model import END

OPPOSITES = {"yes": "no", "True": "False", "odd": "even"}  # answers, the first one of which accepts
TESTED, MAX_TESTED = 64, 256  # random words on which a machine that was read is compared with runs, and their length


def extract_automaton(
    weights: Weights[SequenceArchitecture],
    budget: SearchBudget,
    *,
    max_length: int | None = None,
    max_states: int = 64,
    seed: int = 0,
    resume: Path | None = None,
    progress: Progress | None = None,
) -> Extraction:
    """Return the automaton of a network, with what is known of the two; parameters as those of `extract`."""
    refuse(weights)
    net = answering_after_every_letter(weights)
    try:
        machine = behavior_of(net)
    except Undecided as stop:
        result = learned(net, spec_of, budget, max_length, max_states, seed, resume, progress)
        return replace(result, method=f"learned from answers: {stop}")
    if not asks_first(net.architecture):
        machine = machine.with_free_start()
    spec = spec_of(machine, net.architecture)
    try:
        evidence = certify(net, spec, seed=seed, prove=True, progress=budget.ticking(progress))
    except FolderError:  # the network has no symbols for the states of the spec
        evidence = _closed(net, machine, budget, seed)
    method, seconds = "read from the weights, bit by bit", time.perf_counter() - budget.start
    example = None if evidence.witness is None else dict(evidence.witness)
    known = known_words(evidence, example)
    return Extraction("automaton", spec, evidence, known, method, evidence.cases, seconds, None, example)


def _closed(net: Weights[SequenceArchitecture], machine: MooreMachine, budget: SearchBudget, seed: int) -> Evidence:
    """Return the evidence that a machine is all that the memory of a network can do, once more tested by running it."""
    observations, rng = Observations(net, budget), np.random.default_rng(seed)
    length = min(net.architecture.max_length, MAX_TESTED)
    letters = range(len(net.architecture.inputs) - 1)
    words = rng.integers(max(len(letters), 1), size=(TESTED, length if letters else 0))
    wrong = difference(observations, machine, words)
    domain = Domain(CaseKind.RANDOM_WORDS, Method.SAMPLED, TESTED, length, length)
    checked = {"states": len(machine.answers), "steps": len(machine.answers) * len(letters)}
    links = [
        Link(name, Scope.EVERY_LENGTH, None, "all contents of the memory", checked) for name in ("weights", "spec")
    ]
    if wrong is None:
        return Evidence("holds", words.size, (domain,), seed=seed, links=tuple(links))
    symbols = [net.architecture.inputs[letter + 1] for letter in wrong]
    return Evidence("fails", words.size, (domain,), witness={"word": symbols}, seed=seed, links=tested_links([domain]))


def answering_after_every_letter(weights: Weights[SequenceArchitecture]) -> Weights[SequenceArchitecture]:
    """Return a network in float64 that says no or yes, names a state, or says what may come next, after every letter.

    The arrays are those of the given network.
    """
    output = weights.architecture.output
    weights = weights.map(lambda array: np.asarray(dense(array), dtype=np.float64))
    if output.kind == "next":
        return weights
    for yes, no in OPPOSITES.items():
        if {*output.symbols} == {yes, no}:
            return saying_yes(weights, yes)
    return naming_states(weights, output.accepting)


def refuse(weights: Weights[SequenceArchitecture]) -> None:
    """Refuse a network of which no automaton is extracted."""
    net = weights.architecture
    if net.reads != "tokens" or net.output.kind not in ("recognizer", "transducer", "class", "next"):
        raise InputError(
            f"an automaton is extracted from a network that reads symbols and answers with a symbol or the set of next "
            f"ones; this one reads {net.reads} and its answers are of kind {net.output.kind!r}"
            + (": use --as ngram" if net.output.kind == "lm" else "")
        )
    if net.pads < 1 or net.min_length or net.looks_ahead:
        raise InputError(
            "an automaton answers after every letter: the network must, too, by what it has read, and begin with BOS"
        )
    if net.output.kind == "next" and not {*net.inputs[1:]} <= {*net.output.symbols}:
        raise InputError("the network must say of each of its letters whether it may come next")


def spec_of(machine: MooreMachine, net: SequenceArchitecture) -> Automaton:
    """Return the automaton of a machine with the answers of a network.

    It accepts where the answer is yes or an accepting state, or where the word may end. Its states are named after the
    answers, if those are more than yes and no. Where these name one state each, they come in the network's order.
    """
    output = net.output
    if output.kind == "next":
        end = 1 << output.symbols.index(END) if END in output.symbols else 0
        return machine.automaton(net.inputs[1:], {code for code in machine.answers if code >= 0 and code & end})
    if output.symbols == ANSWERS:
        return machine.automaton(net.inputs[1:], {1})
    accepting = {place for place, symbol in enumerate(output.symbols) if symbol in output.accepting}
    spec = machine.automaton(net.inputs[1:], accepting, dict(enumerate(output.symbols)))
    if len({*machine.answers}) < len(machine.answers):
        return spec
    return spec.numbered(sorted(range(len(spec.states)), key=machine.answers.__getitem__))
