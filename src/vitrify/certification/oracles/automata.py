"""Oracles of automata: the state after every letter, or after the whole word."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from vitrify.arrays import Ints
from vitrify.certification.oracles.catalogue import oracle
from vitrify.certification.oracles.right import NO_ANSWER, Oracle, symbol_indices
from vitrify.net.architecture import SequenceArchitecture
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.kinds import ANSWERS


@oracle(Automaton)
class StateOracle(Oracle):
    """An automaton's state after every letter."""

    answer = "symbol"

    def __init__(self, automaton: Automaton, net: SequenceArchitecture) -> None:
        self.automaton, self.net = automaton, net
        self._symbol = symbol_indices(net, automaton.states)

    def known(self, words: Ints) -> Ints:
        return np.asarray(self._symbol[self.automaton.run_batch(words - 1)])

    REPEATED = 60  # at most so many short words are repeated
    WANDERING = 16  # so many random words stay out of traps

    def cases(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Full-length words that random ones are not: repeated short words, one letter and then another, wanderers.

        Repetitions and changes drive counts to their ends; wanderers keep to the states from which most others can be
        reached, so that no sink swallows them.
        """
        letters, length = range(1, len(self.net.inputs)), self.net.max_length
        shorts = [[*short] for size in (1, 2) for short in product(letters, repeat=size)]
        words = [(first + short * length)[:length] for short in shorts for first in ([], *([a] for a in letters))]
        for cut in sorted({length // 2, max(length - 2, 0)}):
            words += [[a] * cut + [b] * (length - cut) for a in letters for b in letters if a != b]
        size = 3
        while len(letters) > 1 and len(letters) ** size <= self.REPEATED and size <= length:
            words += [(list(short) * length)[:length] for short in product(letters, repeat=size)]
            size += 1
        return [*words, *self._wanderers(rng)][:count]

    def _wanderers(self, rng: np.random.Generator) -> Iterator[list[int]]:
        table = self.automaton.table
        within = np.eye(len(table), dtype=bool)
        for _ in range(len(table)):
            within = within | within[table].any(axis=1)
        room = within.sum(axis=1)
        for _ in range(self.WANDERING):
            state, word = self.automaton.initial, []
            for _ in range(self.net.max_length):
                best = np.flatnonzero(room[table[state]] == room[table[state]].max())
                letter = int(rng.choice(best))
                word.append(letter + 1)
                state = int(table[state, letter])
            yield word


@oracle(Automaton, output="transducer")
class AcceptanceOracle(StateOracle):
    """Whether an automaton accepts what was read, after every letter; nothing is asked before the first."""

    def __init__(self, automaton: Automaton, net: SequenceArchitecture) -> None:
        self.automaton, self.net = automaton, net
        accepts = np.isin(np.arange(len(automaton.states)), [*automaton.accepting])
        self._symbol = symbol_indices(net, ANSWERS)[accepts.astype(np.int64)]

    def known(self, words: Ints) -> Ints:
        answers = super().known(words)
        answers[:, 0] = NO_ANSWER
        return answers


@oracle(Automaton, output="class")
class FinalStateOracle(StateOracle):
    """An automaton's state after a whole word, the same answer at every position."""

    MIXED = 64  # words, at most
    TIE = 1e-12  # such nets lead by less the longer words are, and building refuses what rounding would decide

    def known(self, words: Ints) -> Ints:
        return np.repeat(super().known(words)[:, -1:], words.shape[1] + 1, axis=1)

    def cases(self, rng: np.random.Generator, count: int) -> list[list[int]]:
        """Words with any number of one letter among another, of full length."""
        letters, length = range(1, len(self.net.inputs)), self.net.max_length
        pairs = [(a, b) for a in letters for b in letters if a < b]
        shares = [(a, b, number) for a, b in pairs for number in range(length + 1)]
        picked = sorted(rng.permutation(len(shares))[: min(count, self.MIXED)].tolist())
        mixed = [[a] * number + [b] * (length - number) for a, b, number in (shares[i] for i in picked)]
        return [rng.permutation(word).tolist() for word in mixed]
