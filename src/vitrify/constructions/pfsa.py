r"""Probabilistic automata, nondeterministic ones too, run as bigram models that say their states aloud.

In the spirit of Nowak et al. (2024, arXiv 2406.14197); the weights are our own derivation. A transformer reads and
writes letters together with the states that they lead to. What comes next depends on the last one only, so this is the
n-gram construction for $n = 2$: one layer, whose one head sees its own position only. The probability that the letters
of a string are written, whatever the states beside them, is the automaton's.

| for $P$ pairs of a letter and a state that it may lead to | formula |
| --- | --- |
| layers, heads | 1; 1 |
| units | $P + 1$, one for each pair and one for the beginning |
| steps | one for each letter, and one for the end |
"""

from __future__ import annotations

from dataclasses import replace

from vitrify.constructions.catalogue import Construction, Settings
from vitrify.constructions.ngram import ngram
from vitrify.kit.network import Network
from vitrify.spec.pfsa import ProbabilisticAutomaton

LENGTH = 128


def _make(spec: object, settings: Settings) -> Network:
    assert isinstance(spec, ProbabilisticAutomaton)
    return pfsa(spec, settings)


def pfsa(automaton: ProbabilisticAutomaton, settings: Settings | None = None) -> Network:
    """A transformer whose strings, without the states beside the letters, are those of an automaton."""
    chosen = settings or Settings()
    made = ngram(automaton.bigram, attention=chosen.attention, max_length=chosen.max_length or LENGTH)
    about = dict(made.about) | {
        "construction": "probabilistic automaton with a chain of thought",
        "states": len(automaton.states),
        "source": "in the spirit of Nowak et al. 2024, arXiv 2406.14197",
    }
    name = f"probabilistic automaton of {len(automaton.states)} states, {chosen.attention}"
    return replace(made, name=name, about=about)


def sizes(automaton: ProbabilisticAutomaton) -> dict[str, int]:
    """What the formulas promise."""
    return {"layers": 1, "heads": 1, "units": len(automaton.tokens) + 1}


CONSTRUCTIONS = (
    Construction(
        "states-aloud",
        ProbabilisticAutomaton,
        "a bigram model over letters with the states they lead to",
        _make,
        default=True,
        certified="proved",
    ),
)
