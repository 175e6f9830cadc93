"""Automata of networks whose memory can't be read: learned from answers, and certified by running words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from vitrify.arrays import Ints
from vitrify.certification import certify
from vitrify.certification.evidence import CaseKind, Domain, Evidence, Method, Progress, Quantity, tested_links
from vitrify.certification.reading.automata import ILLEGAL, answer_codes
from vitrify.encoding import JsonObject
from vitrify.errors import FolderError, InputError
from vitrify.extraction.learning import Learner, NoMachine, difference
from vitrify.extraction.observations import Budget, Exhausted, Observations, asks_first
from vitrify.extraction.result import (
    CLOSE_ANSWERS,
    COVERED,
    MARGIN,
    RIVALS,
    Extraction,
    LengthErrors,
    known_words,
)
from vitrify.intervals import upper_failure_rate
from vitrify.net.architecture import Output, SequenceArchitecture
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.moore import Letters, MooreMachine

MAX_RUN = 1 << 17  # words, of all lengths together, that are run in full by default
MAX_NUMBERED = 1 << 22  # words of one length; a longer length is refused
RANDOM = 256  # random words of a length
SHORT = 6  # length of the words that the test of a hypothesis runs once more
SpecOf = Callable[[MooreMachine, SequenceArchitecture], Automaton]


def learned(
    weights: Weights[SequenceArchitecture],
    spec_of: SpecOf,
    budget: Budget,
    max_length: int | None,
    max_states: int,
    seed: int,
    resume: Path | None,
    progress: Progress | None,
) -> Extraction:
    """Learn the automaton of a network; an interruption ends the search with the best automaton so far."""
    longest = _longest(weights.architecture, budget, max_length)
    observations = Observations(weights, budget, progress)
    if resume is not None and resume.exists():
        observations.resume(resume)
    samples = _Samples(observations, spec_of, seed, progress)
    learner = Learner(observations, max_states, samples.counterexample)
    machine, stopped = None, None
    for step in (lambda: observations.complete_to(longest), learner.learn):
        try:
            machine = step()
        except NoMachine as stop:
            stopped = stopped or str(stop)
        except (Exhausted, KeyboardInterrupt) as stop:
            stopped = stopped or str(stop) or "interrupted"
            budget.close()  # the best machine is looked for among the answers that are known
    if resume is not None:
        observations.save(resume)
    machine = machine or learner.settled or learner.best
    if machine is None:
        raise InputError(f"nothing was extracted: {stopped}")
    if not asks_first(weights.architecture):
        machine = machine.with_free_start()
    word = observations.first_difference(machine) or observations.longer_difference(machine)
    evidence = samples.evidence(machine, word, quick=budget.over)
    evidence = evidence.adding(*_facts(observations, machine, learner.covered, word))
    example = None if word is None else _both_answers(observations, machine, word)
    errors = () if word is None else tuple(samples.errors(machine))
    known = known_words(evidence, example, observations.complete)
    seconds = time.perf_counter() - budget.start
    spec = spec_of(machine, weights.architecture)
    return Extraction(
        "automaton", spec, evidence, known, "learned", budget.spent, seconds, stopped, example, errors
    )


def _longest(net: SequenceArchitecture, budget: Budget, max_length: int | None) -> int:
    """Return the length up to which all words are run: by default as many as `MAX_RUN` and the budget allow."""
    letters = len(net.inputs) - 1
    if max_length is not None:
        if max_length > net.max_length or letters**max_length > MAX_NUMBERED:
            raise InputError(
                f"all words up to length {max_length} can't be run: the network reads up to {net.max_length} letters, "
                f"and of one length at most {MAX_NUMBERED:,} words are run: choose a smaller --max-length"
            )
        return max_length
    length, most = 0, min(MAX_RUN, budget.words // 2)
    while length < net.max_length and sum(letters**n for n in range(length + 2)) <= most:
        length += 1
    return length


class _Samples:
    """Words beyond those that are all known: random ones, words that exercise a spec, an adversarial search."""

    def __init__(self, observations: Observations, spec_of: SpecOf, seed: int, progress: Progress | None) -> None:
        self.observations, self.spec_of, self.seed, self.progress = observations, spec_of, seed, progress
        self.weights, self.net = observations.weights, observations.net

    def counterexample(self, machine: MooreMachine) -> Letters | None:
        """Return a long word after which a machine is wrong, if one is found."""
        self.observations.budget.spend(0)
        evidence = self._certified(machine, min(self.observations.complete, SHORT), prove=False)
        word = self._witness(evidence)
        if word is not None:
            batch = np.array([word], dtype=np.int64).reshape(1, -1)
            if (shorter := difference(self.observations, machine, batch)) is not None:
                return shorter
        return difference(self.observations, machine, self._random(self.net.max_length))

    def _certified(self, machine: MooreMachine, longest: int, *, prove: bool) -> Evidence | None:
        """Return the certificate of the machine's spec; None if the network does not name its states."""
        spec = self.spec_of(machine, self.net)
        try:
            return certify(
                self.weights,
                spec,
                max_length=longest,
                seed=self.seed,
                prove=prove,
                attack=None,
                progress=self.progress if prove else None,
            )
        except FolderError:
            return None

    def _witness(self, evidence: Evidence | None) -> Letters | None:
        """Return the word of a witness, as letters."""
        symbols = (evidence.witness or {}).get("word", (evidence.witness or {}).get("history")) if evidence else None
        return None if symbols is None else tuple(self.net.input_ids[symbol] - 1 for symbol in symbols)

    def _random(self, length: int) -> Ints:
        rng = np.random.default_rng([self.seed, length])
        return rng.integers(max(self.observations.letters, 1), size=(RANDOM, length if self.observations.letters else 0))

    def evidence(self, machine: MooreMachine, word: Letters | None, *, quick: bool) -> Evidence:
        """Return what is known of a machine; `word` is one after which it is wrong. With `quick`, nothing is run."""
        if word is None and not quick:
            evidence = self._certified(machine, self.observations.complete, prove=True)
            if evidence is not None and evidence.verdict == "holds":
                return evidence
        complete, net = self.observations.complete, self.net
        counts = [len(level) for level in self.observations.levels[: complete + 1]]
        method = Method.EXHAUSTIVE if complete == net.max_length else Method.SAMPLED
        domains = [Domain(CaseKind.WORDS, method, sum(counts), 0, complete)]
        quantities = []
        if word is None and not quick:
            domains.append(Domain(CaseKind.RANDOM_WORDS, Method.SAMPLED, RANDOM, net.max_length, net.max_length))
            rate = upper_failure_rate(0, RANDOM)
            quantities.append(Quantity("rate of random words with an error (95 % upper bound)", rate))
        witness = None if word is None else _both_answers(self.observations, machine, word)
        verdict = "holds" if word is None else "fails"
        evidence = Evidence(verdict, sum(counts), tuple(domains), tuple(quantities), witness=witness, seed=self.seed)
        return replace(evidence, links=tested_links(domains))

    def errors(self, machine: MooreMachine) -> Iterator[LengthErrors]:
        """Yield how often a machine is wrong: on all words of each length, then on random longer ones."""
        for length, wrong in enumerate(self.observations.differences(machine)):
            yield LengthErrors(length, len(self.observations.levels[length]), wrong, complete=True)
        length, longest = max(self.observations.complete, 1), self.net.max_length
        while length < longest:
            length = min(2 * length, longest)
            words = self._random(length)
            try:
                wrong = int((self.observations.after(words)[:, -1] != machine.after(words)[:, -1]).sum())
            except (Exhausted, KeyboardInterrupt):
                return
            yield LengthErrors(length, len(words), wrong, complete=False)


def _facts(
    observations: Observations, machine: MooreMachine, covered: tuple[int, int] | None, word: Letters | None
) -> Iterator[Quantity]:
    """Yield what else was measured."""
    yield Quantity(MARGIN, observations.smallest)
    if observations.close:
        yield Quantity(CLOSE_ANSWERS, len(observations.close))
    if covered is not None and covered[0]:
        yield Quantity(COVERED, covered[0])
    rivals = observations.complete + 3 - len(machine.answers)  # n + m - 2 letters tell machines of n and m states apart
    if word is None and rivals > len(machine.answers):
        yield Quantity(RIVALS, rivals)


def _both_answers(observations: Observations, machine: MooreMachine, word: Letters) -> JsonObject:
    """Return a word with the answers of spec and network; the network is run once more, on this word alone."""
    net = observations.net
    symbols = [net.inputs[letter + 1] for letter in word]
    right = int(machine.after(np.array([word], dtype=np.int64).reshape(1, -1))[0, -1])
    (actual,) = answer_codes(net.output, observations.weights(symbols)[-1:])
    return {"word": symbols, "expected": _named(net.output, right), "actual": _named(net.output, actual)}


def _named(output: Output, code: int) -> str | list[str]:
    """Return an answer in words."""
    if output.kind != "next":
        return output.symbols[code]
    if code == ILLEGAL:
        return "not the beginning of a word"
    return [symbol for place, symbol in enumerate(output.symbols) if code >> place & 1]
