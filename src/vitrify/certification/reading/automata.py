"""The minimal machine of a network whose memory is finite, from the weights: recurrences and hard attention."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from vitrify.arrays import Floats
from vitrify.certification.equivalence.hard import HardAttentionMachine
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
ILLEGAL = -2  # instead of an answer: a letter came that must not come


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
    """Return the answers [case] as whole numbers: the best symbol, or the sum of $2^i$ over the legal ones.

    >>> answer_codes(Output("next", ("a", "b")), np.array([[1.0, 2.0], [-1.0, 2.0]]))
    [3, 2]
    """
    if output.kind != "next":
        return [int(best) for best in logits.argmax(axis=-1)]
    return [int(code) for code in (logits > 0) @ (1 << np.arange(logits.shape[-1], dtype=np.int64))]


def behavior_of(weights: Weights[SequenceArchitecture], max_memories: int = MAX_MEMORIES) -> MooreMachine:
    """Return the minimal machine with the answers of a net (as `answer_codes`) after words of every length.

    If the net says what may come next, the answer after any other letter is `ILLEGAL` from then on. A net whose memory
    is not followed bit by bit, or holds more than `max_memories` different contents, is `Undecided`.
    """
    machine: Any  # a Machine
    if has_architecture(weights, Recurrent):
        machine = RecurrentMachine(weights)
    elif has_architecture(weights, Transformer):
        machine = HardAttentionMachine(unrolled(weights))
    else:
        raise Undecided("only recurrences and transformers are followed bit by bit")
    net = weights.architecture
    letters, may_come = range(1, len(net.inputs)), _places(net)
    memory, logits = machine.start()
    answers = [answer_codes(net.output, logits[None])[0]]
    number: dict[tuple[Hashable, int], int] = {(machine.key(memory), answers[0]): 0}
    waiting, table = [(0, memory)], dict[int, list[int]]()
    while waiting:
        table |= {state: [ILLEGAL] * len(letters) for state, _ in waiting}
        moves = [
            (state, before, letter)
            for state, before in waiting
            for letter in letters
            if may_come is None or answers[state] >> may_come[letter - 1] & 1
        ]
        waiting = []
        if not moves:
            break
        memories, scores = machine.steps([move[1] for move in moves], [move[2] for move in moves])
        codes = answer_codes(net.output, scores)
        for (state, _, letter), after, answer in zip(moves, memories, codes, strict=True):
            target = table[state][letter - 1] = number.setdefault((machine.key(after), answer), len(number))
            if target == len(answers):
                answers.append(answer)
                waiting.append((target, after))
        if len(number) > max_memories:
            raise Undecided(f"its memory holds more than {max_memories:,} different contents")
    dead = len(answers)
    rows = [tuple(dead if target == ILLEGAL else target for target in table[state]) for state in range(dead)]
    if may_come is None:
        return MooreMachine(tuple(rows), tuple(answers)).minimized()
    return MooreMachine((*rows, (dead,) * len(letters)), (*answers, ILLEGAL)).minimized()


def _places(net: SequenceArchitecture) -> list[int] | None:
    """Return the place of each letter among the symbols that may come, of networks that say so; else None."""
    if net.output.kind != "next":
        return None
    if not {*net.inputs[1:]} <= {*net.output.symbols}:
        raise Undecided("the network does not say of each letter whether it may come")
    return [net.output.symbols.index(letter) for letter in net.inputs[1:]]
