"""Classifiers of prefixes as recognizers: a network that was trained to say yes or no is judged by an automaton.

A network whose answers are names of states is a recognizer. One with two answers says after every letter whether the
word so far is accepted; nothing is asked before the first letter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vitrify.errors import InputError
from vitrify.net.architecture import Output
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.kinds import ANSWERS

YES = ("yes", "True", "odd", "1")  # answers that accept, where none is named


def recognizing(weights: Weights[Any], spec: object, accepting: str | None = None) -> Weights[Any]:
    """Return a network with the kind of answers that a spec gives; other networks and specs are left as they are.

    `accepting` names the answer that stands for yes. The arrays are those of the given network.
    """
    net = weights.architecture
    if not isinstance(spec, Automaton) or net.output.kind != "class" or getattr(net, "looks_ahead", True):
        if accepting is not None:
            raise InputError("--accepting is for classifiers of prefixes that are judged by an automaton: leave it out")
        return weights
    symbols = net.output.symbols
    if set(symbols) <= set(spec.states) and accepting is None:
        output = Output("recognizer", symbols, accepting=tuple(s for s in symbols if s in spec.accepting_states))
        return replace(weights, architecture=replace(net, output=output))
    yes = accepting or next((answer for answer in YES if answer in symbols), None)
    if len(symbols) != 2 or yes not in symbols:
        raise InputError(
            f"an automaton judges a network that answers with its states, or with one of two answers, not with "
            f"{', '.join(symbols[:8])}: name the one that accepts with --accepting"
        )
    column = symbols.index(yes)
    arrays = {
        name: dense(array)[..., [1 - column, column]] if name in ("unembed.W_U", "unembed.b_U") else array
        for name, array in weights.arrays.items()
    }
    return replace(weights, architecture=replace(net, output=Output("transducer", ANSWERS)), arrays=arrays)
