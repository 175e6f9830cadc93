"""The minimal automaton of the words after which hard attention gives an answer, from the weights."""

from __future__ import annotations

from collections.abc import Hashable

from vitrify.certification.equivalence.hard import HardAttentionMachine, HeadMemory
from vitrify.certification.margins.values import Undecided
from vitrify.certification.reading.formulas import wanted_answers
from vitrify.errors import BuildRefused
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton

MAX_MEMORIES = 1 << 13  # of the heads of a network

State = tuple[Hashable, bool]  # what the heads remember, and whether the last answer was the wanted one


def automaton_of(weights: Weights[Transformer], symbol: str = "True") -> Automaton:
    """Return the minimal automaton of the words after which a net answers with `symbol`, or accepts.

    >>> from vitrify.constructions.catalogue import build
    >>> from vitrify.spec.logic.ltl import Formula
    >>> print(automaton_of(build(Formula.from_text("alphabet: a b\\nlength: 9\\nb & Y a"), attention="hard")))
         a  b
    → 0  1  0
      1  1  2
     *2  1  0
    """
    try:
        return _Reading(weights, symbol).automaton().minimized()
    except Undecided as reason:
        raise BuildRefused(f"no automaton can be read from this net: {reason}") from None


class _Reading:
    """Search of all memories that words lead to."""

    def __init__(self, weights: Weights[Transformer], symbol: str) -> None:
        self.machine, self.net = HardAttentionMachine(weights), weights.architecture
        self.wanted = wanted_answers(self.net.output, symbol)
        self.memories: dict[Hashable, HeadMemory] = {}

    def automaton(self) -> Automaton:
        """Return the automaton of all memories with their answers."""
        memory, logits = self.machine.start()
        start = self._state(memory, int(logits.argmax()))
        return Automaton.explore(start, self.net.inputs[1:], self._step, accepts=lambda state: state[1])

    def _step(self, state: State, letter: str) -> State:
        (memory,), logits = self.machine.steps([self.memories[state[0]]], [self.net.input_ids[letter]])
        return self._state(memory, int(logits[0].argmax()))

    def _state(self, memory: HeadMemory, answer: int) -> State:
        key = self.machine.key(memory)
        self.memories.setdefault(key, memory)
        if len(self.memories) > MAX_MEMORIES:
            raise BuildRefused(f"the heads of this net hold more than {MAX_MEMORIES:,} different contents")
        return key, self.net.output.symbols[answer] in self.wanted
