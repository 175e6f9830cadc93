"""Classifiers of prefixes as recognizers: a network that was trained to say yes or no is judged by an automaton.

A network whose answers are names of states is a recognizer. One with two answers says after every letter whether the
word so far is accepted; nothing is asked before the first letter.
"""

from __future__ import annotations

from collections.abc import Container
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
    prefixes = net.output.kind in ("class", "transducer") and not getattr(net, "looks_ahead", True)
    if not isinstance(spec, Automaton) or not prefixes:
        if accepting is not None:
            raise InputError("--accepting is for classifiers of prefixes that are judged by an automaton: leave it out")
        return weights
    symbols = net.output.symbols
    if set(symbols) <= set(spec.states) and accepting is None:
        return naming_states(weights, spec.accepting_states)
    yes = accepting or next((answer for answer in YES if answer in symbols), None)
    if len(symbols) != 2 or yes is None or yes not in symbols:
        raise InputError(
            f"an automaton judges a network that answers with its states, or with one of two answers, not with "
            f"{', '.join(symbols[:8])}: name the one that accepts with --accepting"
        )
    return saying_yes(weights, yes)


def naming_states(weights: Weights[Any], accepting: Container[str]) -> Weights[Any]:
    """Return a network as a recognizer, whose answers are states; some of them accept."""
    net = weights.architecture
    symbols = net.output.symbols
    output = Output("recognizer", symbols, accepting=tuple(s for s in symbols if s in accepting))
    return replace(weights, architecture=replace(net, output=output))


def saying_yes(weights: Weights[Any], yes: str) -> Weights[Any]:
    """Return a network with two answers as one that says no or yes after every letter."""
    net = weights.architecture
    column = net.output.symbols.index(yes)
    arrays = {
        name: dense(array)[..., [1 - column, column]] if name in ("unembed.W_U", "unembed.b_U") else array
        for name, array in weights.arrays.items()
    }
    return replace(weights, architecture=replace(net, output=Output("transducer", ANSWERS)), arrays=arrays)
