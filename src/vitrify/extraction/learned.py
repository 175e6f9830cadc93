"""Automata of networks whose memory can't be read: learned from answers, and certified by running words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from vitrify.arrays import Ints
from vitrify.certification import certify
from vitrify.certification.evidence import (
    CaseKind,
    Domain,
    Evidence,
    Method,
    Progress,
    Quantity,
    Verdict,
    tested_links,
)
from vitrify.certification.reading.automata import ILLEGAL, answer_codes
from vitrify.encoding import JsonObject
from vitrify.errors import FolderError, InputError
from vitrify.extraction.learning import Learner, NoMachine, difference
from vitrify.extraction.observations import INTERRUPTED, Exhausted, Observations, SearchBudget, asks_first
from vitrify.extraction.result import (
    CLOSE_ANSWERS,
    COVERED,
    MARGIN,
    OPEN_ANSWERS,
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
RANDOM, MAX_SAMPLED = 256, 1 << 12  # random words of a length, and the longest of them
SHORT = 6  # length of the words that the test of a hypothesis runs once more
SpecOf = Callable[[MooreMachine, SequenceArchitecture], Automaton]


def learned(
    weights: Weights[SequenceArchitecture],
    spec_of: SpecOf,
    budget: SearchBudget,
    max_length: int | None,
    max_states: int,
    seed: int,
    resume: Path | None,
    progress: Progress | None,
) -> Extraction:
    """Learn the automaton of a network; an interruption ends the search with the best automaton so far."""
    observations, stopped = observed(weights, budget, max_length, resume, progress)
    samples = Samples(observations, spec_of, seed, progress, max_length)
    learner = Learner(observations, max_states, samples.counterexample)
    machine = None
    try:
        machine = learner.learn()
    except NoMachine as stop:
        stopped = stopped or str(stop)
    except (Exhausted, KeyboardInterrupt) as stop:
        stopped = stopped or str(stop) or INTERRUPTED
        budget.close()
    if resume is not None:
        observations.save(resume)
    machine = machine or learner.settled or learner.best
    if machine is None:
        raise InputError(f"nothing was extracted: {stopped}")
    return samples.extraction("automaton", machine, "learned", stopped, learner.covered)


def observed(
    weights: Weights[SequenceArchitecture],
    budget: SearchBudget,
    max_length: int | None,
    resume: Path | None,
    progress: Progress | None,
) -> tuple[Observations, str | None]:
    """Return the answers to all words up to a length, and the reason for which they are those of shorter ones only.

    The best machine is then looked for among the answers that are known: nothing more is run.
    """
    longest = _longest(weights.architecture, budget, max_length)
    observations, stopped = Observations(weights, budget, progress), None
    if resume is not None and resume.exists():
        observations.resume(resume)
    try:
        observations.complete_to(longest)
    except (Exhausted, KeyboardInterrupt) as stop:
        stopped = str(stop) or INTERRUPTED
        budget.close()
    return observations, stopped


def _longest(net: SequenceArchitecture, budget: SearchBudget, max_length: int | None) -> int:
    """Return the length up to which all words are run: by default as many as `MAX_RUN` and the budget allow."""
    letters = len(net.inputs) - 1
    if max_length is not None and (net.output.kind != "next" or max_length > net.max_length):
        if max_length > net.max_length or letters**max_length > MAX_NUMBERED:
            raise InputError(
                f"all words up to length {max_length} can't be run: the network reads up to {net.max_length} letters, "
                f"and of one length at most {MAX_NUMBERED:,} words are run: choose a smaller --max-length"
            )
        return max_length
    length, total, most = 0, 1, min(MAX_RUN, budget.words // 2)
    while (
        length < (net.max_length if max_length is None else max_length)
        and letters
        and total + letters ** (length + 1) <= most
    ):
        length += 1
        total += letters**length
    return length


class Samples:
    """Words beyond those that are all known: random ones, words that exercise a spec, an adversarial search."""

    def __init__(
        self,
        observations: Observations,
        spec_of: SpecOf,
        seed: int,
        progress: Progress | None,
        max_length: int | None = None,
    ) -> None:
        self.observations, self.spec_of, self.seed, self.progress = observations, spec_of, seed, progress
        self.weights, self.net, self.max_length = observations.weights, observations.net, max_length
        self.stopped: str | None = None  # why the last certificate ended early

    def extraction(
        self, kind: str, machine: MooreMachine, method: str, stopped: str | None = None, covered: int = 0
    ) -> Extraction:
        """Return the spec of a machine with what is known of it: its certificate, or what was observed."""
        observations, budget = self.observations, self.observations.budget
        if not asks_first(self.net):
            machine = machine.with_free_start()
        evidence, word = self.evidence(machine)
        evidence = evidence.adding(*_facts(observations, machine, covered, evidence))
        example = None if word is None else _both_answers(observations, machine, word)
        errors = () if word is None else tuple(self.errors(machine))
        known = known_words(evidence, example, None if word is None else observations.complete)
        seconds = time.perf_counter() - budget.start
        spec, stopped = self.spec_of(machine, self.net), stopped or self.stopped
        return Extraction(kind, spec, evidence, known, method, budget.spent, seconds, stopped, example, errors)

    def counterexample(self, machine: MooreMachine) -> Letters | None:
        """Return a long word after which a machine is wrong, if one is found."""
        self.observations.budget.spend(0)
        evidence = self._certified(machine, min(self.observations.complete, SHORT), prove=False)
        return self._refuting(evidence, machine) or difference(self.observations, machine, self._random(self.longest))

    def _known_to(self, machine: MooreMachine) -> int:
        """Return the length up to which a certificate runs all words, of networks that say what may come next.

        It runs those alone that the machine allows, so that it gets further than all words over the letters. The sets
        after these say that no other words are allowed.
        """
        observations, longest = self.observations, self.observations.complete
        if self.net.output.kind != "next":
            return longest
        if self.max_length is not None:
            return self.max_length
        for length, words in enumerate(machine.counted(ILLEGAL, self.net.max_length)):
            if words > MAX_RUN:
                break
            longest = max(longest, length)
        return longest if observations.letters else 0

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
                progress=self.observations.budget.ticking(self.progress if prove else None),
            )
        except FolderError:
            return None

    def _refuting(self, evidence: Evidence | None, machine: MooreMachine) -> Letters | None:
        """Return the word of the witness of a certificate, if the machine is wrong there; a tie is no mistake."""
        witness = evidence.witness if evidence is not None else None
        symbols = None if witness is None else witness.get("word", witness.get("history"))
        if symbols is None:
            return None
        word = np.array([[self.net.input_ids[symbol] - 1 for symbol in symbols]], dtype=np.int64).reshape(1, -1)
        return difference(self.observations, machine, word)

    @property
    def longest(self) -> int:
        """The length of long random words."""
        return min(self.net.max_length, MAX_SAMPLED)

    def _random(self, length: int) -> Ints:
        rng, letters = np.random.default_rng([self.seed, length]), self.observations.letters
        return rng.integers(max(letters, 1), size=(RANDOM, length if letters else 0))

    def evidence(self, machine: MooreMachine) -> tuple[Evidence, Letters | None]:
        """Return what is known of a machine, and the shortest known word after which it is wrong.

        That is the certificate of its spec, where the network has symbols for it, or what was observed.
        """
        observations, random = self.observations, False
        word = observations.first_difference(machine) or observations.longer_difference(machine)
        if word is None and not observations.budget.over:
            evidence = None
            try:
                evidence = self._certified(machine, self._known_to(machine), prove=True)
            except (Exhausted, KeyboardInterrupt) as stop:
                self.stopped = str(stop) or INTERRUPTED
                observations.budget.close()
            if evidence is not None and evidence.verdict == "holds":
                return evidence, None
            try:
                word = self._refuting(evidence, machine) or difference(
                    observations, machine, self._random(self.longest)
                )
                random = word is None
            except (Exhausted, KeyboardInterrupt) as stop:
                if evidence is not None:
                    raise InputError(f"the certificate fails, and a run to confirm it was stopped: {stop}") from None
        counts = [len(level) for level in observations.levels[: observations.complete + 1]]
        method = Method.EXHAUSTIVE if observations.complete == self.net.max_length else Method.SAMPLED
        domains = [Domain(CaseKind.WORDS, method, sum(counts), 0, observations.complete)]
        quantities = []
        if random:
            domains.append(Domain(CaseKind.RANDOM_WORDS, Method.SAMPLED, RANDOM, self.longest, self.longest))
            rate = upper_failure_rate(0, RANDOM)
            quantities.append(Quantity("rate of random words with an error (95 % upper bound)", rate))
        witness = None if word is None else _both_answers(observations, machine, word)
        verdict: Verdict = "holds" if word is None else "fails"
        links = tested_links(domains)
        return Evidence(
            verdict, sum(counts), tuple(domains), tuple(quantities), (), witness, self.seed, links=links
        ), word

    def errors(self, machine: MooreMachine) -> Iterator[LengthErrors]:
        """Yield how often a machine is wrong: on all words of each length, then on random longer ones."""
        for length, wrong in enumerate(self.observations.differences(machine)):
            yield LengthErrors(length, len(self.observations.levels[length]), wrong, complete=True)
        length, longest = max(self.observations.complete, 1), self.longest
        while length < longest:
            length = min(2 * length, longest)
            words = self._random(length)
            try:
                wrong = int((self.observations.after(words)[:, -1] != machine.after(words)[:, -1]).sum())
            except (Exhausted, KeyboardInterrupt):
                return
            yield LengthErrors(length, len(words), wrong, complete=False)


def _facts(observations: Observations, machine: MooreMachine, covered: int, evidence: Evidence) -> Iterator[Quantity]:
    """Yield what else was measured."""
    yield Quantity(MARGIN, observations.smallest)
    if observations.close:
        yield Quantity(CLOSE_ANSWERS, len(observations.close))
    if observations.open:
        yield Quantity(OPEN_ANSWERS, observations.open)
    if covered:
        yield Quantity(COVERED, covered)
    headline = evidence.headline
    if evidence.verdict != "holds" or headline is None or headline.longest is None:
        return  # they differ, or are proved equal for every length
    # n + m - 2 letters tell machines of n and m states apart; one more where the empty word does not count
    rivals = max(observations.complete, headline.longest) + 3 - observations.first - len(machine.answers)
    if rivals > len(machine.answers):
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
