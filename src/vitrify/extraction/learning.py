r"""Active automata learning: a smallest machine without a known difference from a network, by AALpy's algorithm KV.

KV (Kearns and Vazirani 1994 [K]; the library: Muškardin et al. 2022 [K]) asks for the answers after single words, and
for a word after which its current machine is wrong. The latter comes from our own search, in this order:

1. all words up to a length, the shortest first;
2. longer words that lead to a state of the machine, take up to some letters there and then tell its states apart (the
   W-method of Chow 1978 [K]), at most `MAX_COVER`. All words with up to $m + 1$ letters there would show that a
   network with at most $m$ states more than the machine is equal to it; `MAX_COVER` may cut them before;
3. random long words, words that repeat, and an adversarial search (`certify`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any

import numpy as np

from vitrify.arrays import Ints
from vitrify.certification.checks.words import by_length
from vitrify.extraction.observations import Observations, asks_first
from vitrify.optional import need
from vitrify.spec.automata.moore import Letters, MooreMachine

MAX_COVER = 1 << 12  # words of the W-method, longer than those of which all were run
MAX_QUERIES, ROUNDS = 2000, 4  # for each state and letter, and hypotheses for each state; learning needs far fewer
CONTRADICTION = "learning does not come to an end, as where the answers after one word differ from run to run"
Search = Callable[[MooreMachine], Letters | None]


class NoMachine(Exception):
    """No allowed machine answers like the network, longer words are needed, or learning has no end."""


class Learner:
    """A run of KV on a network: it asks for answers, and is given counterexamples.

    `settled` is the last machine that is right on all words up to the complete length, and `best`, of those
    that are not, the one whose first mistake comes latest; of several, the one that is wrong on the fewest words.
    """

    num_queries = num_steps = num_cached_queries = 0  # AALpy reads these names

    def __init__(self, observations: Observations, max_states: int, sampled: Search) -> None:
        self.observations, self.max_states, self.sampled = observations, max_states, sampled
        self.settled: MooreMachine | None = None
        self.best: MooreMachine | None = None
        self.covered = 0  # words of the W-method on which the last machine is right
        self._score, self.rounds = (-1, 0), 0

    def learn(self) -> MooreMachine:
        """Return the machine for which no counterexample is known; raise `NoMachine` or `Exhausted` (no budget)."""
        learning = need("aalpy.learning_algs", "extract")
        letters = list(range(self.observations.letters))
        learned = learning.run_KV(
            letters, self, self, "moore", cex_processing="rs", cache_and_non_det_check=False, print_level=0
        )
        return machine_of(learned, len(letters))

    # The two questions of AALpy

    def query(self, word: Letters) -> list[int]:
        """Return the answer after each letter of a word; after the empty word, one answer."""
        self.num_queries += 1
        if self.num_queries > MAX_QUERIES * self.max_states * max(self.observations.letters, 1):
            raise NoMachine(CONTRADICTION)
        if len(word) > (longest := self.observations.net.max_length):
            raise NoMachine(f"states are told apart by words of {len(word)} letters, and the network reads {longest}")
        answers: list[int] = self.observations.after(np.array([word], dtype=np.int64).reshape(1, -1))[0].tolist()
        return answers[1:] if word else answers

    def find_cex(self, hypothesis: Any) -> Letters | None:
        """Return a word after which a machine of AALpy answers otherwise than the network."""
        machine = machine_of(hypothesis, self.observations.letters)
        self.rounds, self.covered = self.rounds + 1, 0
        if self.rounds > ROUNDS * (self.max_states + 1):  # a counterexample adds a state
            raise NoMachine(CONTRADICTION)
        if len(machine.answers) > self.max_states:
            raise NoMachine(f"a machine of {self.max_states} states, the most that are allowed, does not suffice")
        word = self.observations.first_difference(machine)
        if word is not None:
            score = (len(word), -sum(self.observations.differences(machine)))
            if score > self._score:
                self.best, self._score = machine, score
            return word
        self.settled = machine
        return self._uncovered(machine) or self.sampled(machine)

    def _uncovered(self, machine: MooreMachine) -> Letters | None:
        """Return a word of the W-method after which a machine is wrong."""
        words = [*islice(self._cover(machine), MAX_COVER)]
        for batch in by_length(words):
            if (word := difference(self.observations, machine, batch)) is not None:
                return word
        self.covered = len(words)
        return None

    def _cover(self, machine: MooreMachine) -> Iterator[Letters]:
        """Yield words of the W-method that are longer than those which are all known."""
        observations, tails = self.observations, machine.distinguishing_words()
        starts, seen = machine.access_words(), set[Letters]()
        longest = observations.net.max_length
        for extra in range(longest + 1 if observations.letters else 0):
            if observations.letters**extra > MAX_COVER:
                return
            for start in starts:
                for middle in product(range(observations.letters), repeat=extra):
                    for tail in tails:
                        word = (*start, *middle, *tail)
                        if observations.complete < len(word) <= longest and word not in seen:
                            seen.add(word)
                            yield word


def difference(observations: Observations, machine: MooreMachine, words: Ints) -> Letters | None:
    """Return the shortest prefix of some words after which a machine answers otherwise than the network, or None."""
    first = int(not asks_first(observations.net))
    wrong = np.argwhere((observations.after(words) != machine.after(words))[:, first:]).tolist()
    if not wrong:
        return None
    row, prefix = min(wrong, key=lambda place: place[1])
    return tuple(words[row, : first + prefix].tolist())


def machine_of(learned: Any, letters: int) -> MooreMachine:
    """Return the minimal machine of one of AALpy."""
    states = [learned.initial_state, *(state for state in learned.states if state is not learned.initial_state)]
    number = {id(state): place for place, state in enumerate(states)}
    table = tuple(tuple(number[id(state.transitions[a])] for a in range(letters)) for state in states)
    return MooreMachine(table, tuple(int(state.output) for state in states)).minimized()
