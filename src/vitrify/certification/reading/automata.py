"""The minimal machine of a network whose memory is finite, from the weights: recurrences and hard attention."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.equivalence.hard import HardAttentionMachine
from vitrify.certification.equivalence.product import Machine
from vitrify.certification.equivalence.recurrent import RecurrentMachine
from vitrify.certification.margins.values import Undecided
from vitrify.certification.reading.formulas import wanted_answers
from vitrify.errors import BuildRefused
from vitrify.net.architecture import Output, SequenceArchitecture
from vitrify.net.recurrent import Recurrent
from vitrify.net.transformer import Transformer
from vitrify.net.unrolled import unrolled
from vitrify.net.weights import Weights, has_architecture
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.moore import MooreMachine

MAX_MEMORIES = 1 << 13  # contents of the memory of a network


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
    net = weights.architecture
    wanted = wanted_answers(net.output, symbol)
    try:
        machine = behavior_of(weights)
    except Undecided as reason:
        raise BuildRefused(f"no automaton can be read from this net: {reason}") from None
    accepting = {answer for answer, name in enumerate(net.output.symbols) if name in wanted}
    return machine.automaton(net.inputs[1:], accepting).minimized()


def answer_codes(output: Output, logits: Floats) -> list[int]:
    """Return the answers [case] as whole numbers: the index of the best symbol, or $\\sum 2^i$ over symbols that may come.

    >>> answer_codes(Output("next", ("a", "b")), np.array([[1.0, 2.0], [-1.0, 2.0]]))
    [3, 2]
    """
    if output.kind != "next":
        return [int(best) for best in logits.argmax(axis=-1)]
    return [int(code) for code in (logits > 0) @ (1 << np.arange(logits.shape[-1], dtype=np.int64))]


def behavior_of(weights: Weights[SequenceArchitecture], max_memories: int = MAX_MEMORIES) -> MooreMachine:
    """Return the minimal machine with the answers of a net (as `answer_codes`) after words of every length.

    A net whose memory is not followed bit by bit, or holds more than `max_memories` different contents, is `Undecided`.
    """
    machine: Machine[Any]
    if has_architecture(weights, Recurrent):
        machine = RecurrentMachine(weights)
    elif has_architecture(weights, Transformer):
        machine = HardAttentionMachine(unrolled(weights))
    else:
        raise Undecided("only recurrences and transformers are followed bit by bit")
    letters = range(1, len(weights.architecture.inputs))
    memory, logits = machine.start()
    answers = [answer_codes(weights.architecture.output, logits[None])[0]]
    number: dict[tuple[Hashable, int], int] = {(machine.key(memory), answers[0]): 0}
    level, table = [memory], list[tuple[int, ...]]()
    while level:
        moves = [(before, letter) for before in level for letter in letters]
        if not moves:
            return MooreMachine(((),), tuple(answers))
        memories, scores = machine.steps([move[0] for move in moves], [move[1] for move in moves])
        codes = answer_codes(weights.architecture.output, scores)
        level, targets = [], list[int]()
        for after, answer in zip(memories, codes, strict=True):
            state = number.setdefault((machine.key(after), answer), len(number))
            targets.append(state)
            if state == len(answers):
                answers.append(answer)
                level.append(after)
        if len(number) > max_memories:
            raise Undecided(f"its memory holds more than {max_memories:,} different contents")
        table += [tuple(targets[at : at + len(letters)]) for at in range(0, len(targets), len(letters))]
    return MooreMachine(tuple(table), tuple(answers)).minimized()
