"""Every recurrence, and every hard attention without positions, of a regular spec is read back, for every length."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import vitrify as v
from built import ATTENTIONS
from cases import each
from samples import ENTRIES, SAMPLES, built
from vitrify.certification.evidence import Scope
from vitrify.constructions.catalogue import Construction
from vitrify.net.recurrent import Recurrent
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.ngrams.model import END

READ = {  # constructions of which some network must be read; of some, one state or one word alone needs no positions
    *(
        "cyclotomic",
        "star-free-recurrence",
        "elman",
        "linear-recurrence",
        "householder",
        "diagonal",
        "dyck-elman",
        "dyck-lstm",
        "register",
    ),
    *("temporal", "star-free", "cascade", "commutative", "log-depth", "classes", "memory"),
}
MAX_WORDS = 2000  # words on which a spec is compared with its network, all up to a length
SUFFIXES = 6000  # words that tell states apart

pytestmark = pytest.mark.long


def finite_memory(net: Weights[Any] | None) -> bool:
    """Return whether a network is a recurrence, or has hard heads that select one key and see no positions."""
    if net is None or isinstance(net.architecture, Recurrent):
        return net is not None
    if not isinstance(net.architecture, Transformer) or net.architecture.reads != "tokens":
        return False
    blocks = net.architecture.blocks
    selects = all(h.attention == "hard" and h.ties != "average" for block in blocks for h in block.heads)
    plain = not any(block.cell or block.experts for block in blocks)
    return selects and plain and not np.any(dense(net.arrays["pos_embed.W_pos"]))


def is_regular(spec: Any, kind: str) -> bool:
    meaning = spec.meanings().get(kind)
    return meaning is not None and meaning.answer in ("symbol", "set") and meaning.states is not None


def words_of(letters: tuple[str, ...], count: int) -> list[tuple[str, ...]]:
    """Return all words up to a length, as many as there may be."""
    words: list[tuple[str, ...]] = [()]
    length = 1
    while letters and len(words) + len(letters) ** length <= count and length <= 12:
        words += product(letters, repeat=length)
        length += 1
    return words


def alive(spec: Automaton) -> set[str]:
    """Return the states from which an accepting one is reached."""
    living = {*spec.accepting_states}
    for _ in spec.states:
        living |= {state for state, row in spec.named_transitions().items() if living & {*row.values()}}
    return living


def answer_in(spec: Automaton, state: str, kind: str, living: set[str]) -> object:
    """Return the answer of a network in a state: its name, whether it accepts, or what may come next."""
    if kind == "recognizer":
        return state
    if kind == "transducer":
        return state in spec.accepting_states
    letters = {letter for letter, target in spec.named_transitions()[state].items() if target in living}
    return frozenset(letters | ({END} if state in spec.accepting_states else set()))


def answer_of(net: Weights[Any], logits: Any) -> object:
    output = net.architecture.output
    if output.kind == "next":
        return frozenset(symbol for symbol, logit in zip(output.symbols, logits, strict=True) if logit > 0)
    best = output.symbols[int(logits.argmax())]
    return best == "True" if output.kind == "transducer" else best


def need_equal_on_short_words(spec: Automaton, net: Weights[Any]) -> None:
    kind, living = net.architecture.output.kind, alive(spec)
    words = words_of(spec.alphabet, MAX_WORDS)
    for word, logits in zip(words, net([list(word) for word in words]), strict=True):
        path = spec.run(word)
        if kind == "next" and not {*path} <= living:
            continue  # a letter came that must not come
        if kind != "transducer" or word:
            assert answer_of(net, logits[-1]) == answer_in(spec, path[-1], kind, living), word


def need_minimal(spec: Automaton, kind: str) -> None:
    living = alive(spec)
    rows = set[tuple[object, ...]]()
    for state in range(len(spec.states)):
        here = Automaton(spec.states, spec.alphabet, spec.transitions, state, spec.accepting)
        paths = [here.run(word) for word in words_of(spec.alphabet, SUFFIXES)]
        rows.add(tuple(answer_in(spec, path[-1], kind, living) for path in paths))
    assert len(rows) == len(spec.states)


@each("entry", ENTRIES.values(), ids=lambda entry: entry.name)
def test_the_automaton_of_a_finite_memory_is_proved_equal_for_every_length(entry: Construction) -> None:
    nets = [
        net
        for attention in dict.fromkeys(("hard", entry.fixed.get("attention", "softmax")))
        if attention in ATTENTIONS
        for spec in SAMPLES[entry.kind]
        if (net := built(entry, spec, attention)) is not None
        and finite_memory(net)
        and is_regular(spec, net.architecture.output.kind)
    ]
    assert nets or entry.name not in READ
    for net in nets:
        result = v.extract(net)
        assert isinstance(result.spec, Automaton)
        assert result.every_length
        assert result.known == "equal for every length, proved"
        assert {link.scope for link in result.evidence.links} == {Scope.EVERY_LENGTH}
        need_equal_on_short_words(result.spec, net)
        need_minimal(result.spec, net.architecture.output.kind)
