"""Networks with the kind of answers that a spec judges: classifiers of prefixes as recognizers, and allowed errors.

A network whose answers are names of states is a recognizer. One with two answers says after every letter whether the
word so far is accepted; nothing is asked before the first letter.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any

from vitrify.errors import InputError
from vitrify.net.architecture import Output
from vitrify.net.sparse import dense
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.kinds import ANSWERS, Spec
from vitrify.spec.ngrams.model import END

YES = ("yes", "True", "odd", "1")  # answers that accept, where none is named


def recognizing(weights: Weights[Any], spec: object, accepting: str | None = None) -> Weights[Any]:
    """Return a network with the kind of answers that a spec gives; other networks and specs are left as they are.

    A language model that reads the end of a sentence is judged on single sentences, if the spec has no other words.
    `accepting` names the answer that stands for yes. The arrays are those of the given network.
    """
    net = weights.architecture
    meaning = spec.meanings().get("lm") if isinstance(spec, Spec) and net.output.kind == "lm" else None
    if meaning is not None and END not in meaning.inputs:
        weights = one_sentence(weights)
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


def one_sentence(weights: Weights[Any]) -> Weights[Any]:
    """Return a language model as one that does not read the end of a sentence: nothing comes after it."""
    net = weights.architecture
    if net.output.kind != "lm" or END not in net.inputs[1:]:
        return weights
    return reading(weights, [symbol for symbol in net.inputs[1:] if symbol != END])


def reading(weights: Weights[Any], symbols: Sequence[str]) -> Weights[Any]:
    """Return a network that reads some of its symbols only."""
    net, name = weights.architecture, "embed.W_E"
    unknown = [symbol for symbol in symbols if symbol not in net.inputs[1:]]
    if net.reads != "tokens" or name not in weights.arrays or unknown or not symbols:
        raise InputError(f"symbols must be some that the network reads, not {', '.join(unknown or symbols) or 'none'}")
    rows = [place for place, symbol in enumerate(net.inputs) if not place or symbol in symbols]
    fewer = replace(net, inputs=tuple(net.inputs[row] for row in rows))
    return replace(weights, architecture=fewer, arrays={**weights.arrays, name: dense(weights.arrays[name])[rows]})


def allowing(weights: Weights[Any], error: float | None) -> Weights[Any]:
    """Return a network whose probabilities or numbers may be off by an error, which is part of what it says."""
    output = weights.architecture.output
    if error is None:
        return weights
    if output.kind not in ("lm", "values"):
        raise InputError(f"--max-error is about probabilities and numbers, not answers of kind {output.kind!r}")
    if output.kind == "lm" and not error < 1 / 2:
        raise InputError(f"--max-error of a probability must be below 0.5, not {error:g}")
    return replace(weights, architecture=replace(weights.architecture, output=replace(output, error=error)))


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
