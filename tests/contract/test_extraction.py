"""Every recurrence and every hard attention of a regular spec is read back, for all words that the network reads."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import vitrify as v
from built import ATTENTIONS
from cases import each
from samples import ENTRIES, LENGTH, SAMPLES, built
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
READS = {"dyck": 8}  # the maximum length of networks of which all prefixes of words are run
WORDS = 1 << 14  # that are run where an automaton is learned; the certificate proves the rest
SUFFIXES = 6000  # words that tell states apart
MAX_STATES = 1 << 10  # of a regular spec; one that reaches more is none
ENUMERATED = {  # no margin of these under hard attention is proved, nor is it for the spec that they were built from
    "gridworld": "all words that the network reads are run",
    "memory": "all beginnings of sentences are run",
    "dyck": "all beginnings of sentences are run",
}
BEYOND = {"parity-by-position"}  # has proved margins to T, and reads longer words, whose positions follow a formula

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


def selects(net: Weights[Any]) -> bool:
    """Return whether a network is a recurrence or a transformer whose heads are all hard, positions or not."""
    if isinstance(net.architecture, Recurrent):
        return True
    if not isinstance(net.architecture, Transformer) or net.architecture.reads != "tokens":
        return False
    return all(head.attention == "hard" for block in net.architecture.blocks for head in block.heads)


def is_regular(spec: Any, net: Weights[Any]) -> bool:
    """Return whether the answers of a spec depend on finitely many states, of which no word reaches others."""
    meaning = spec.meanings().get(net.architecture.output.kind)
    if meaning is None or meaning.answer not in ("symbol", "set") or meaning.states is None:
        return False
    seen = {meaning.states.start}
    waiting = [meaning.states.start]
    while waiting and len(seen) <= MAX_STATES:
        state = waiting.pop()
        after = {meaning.states.step(state, letter) for letter in net.architecture.inputs[1:]} - {None} - seen
        seen |= after
        waiting += after
    return not waiting


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
    words = [word for word in words_of(spec.alphabet, MAX_WORDS) if len(word) <= net.architecture.max_length]
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
def test_what_is_read_from_recurrences_and_hard_attention_is_proved(entry: Construction) -> None:
    nets = [
        net
        for attention in dict.fromkeys(("hard", entry.fixed.get("attention", "softmax")))
        if attention in ATTENTIONS
        for spec in SAMPLES[entry.kind]
        if (net := built(entry, spec, attention, READS.get(entry.name, LENGTH))) is not None
        and selects(net)
        and is_regular(spec, net)
    ]
    assert any(map(finite_memory, nets)) or entry.name not in READ
    for net in nets:
        longest = net.architecture.max_length if entry.name in ENUMERATED else None
        result = v.extract(net, max_length=longest, words=WORDS)
        assert isinstance(result.spec, Automaton)
        assert (result.evidence.verdict, result.counterexample) == ("holds", None)
        need_known(result, net, entry.name)
        need_equal_on_short_words(result.spec, net)
        need_minimal(result.spec, net.architecture.output.kind)


def need_known(result: v.Extraction, net: Weights[Any], name: str) -> None:
    """Require a proof for every length; where positions bound the words that are read, for all of these."""
    scopes = {(link.scope, link.longest) for link in result.evidence.links}
    longest = net.architecture.max_length
    if finite_memory(net) or isinstance(net.architecture, Recurrent):
        assert result.known == "equal for every length, proved"
        assert result.every_length
        assert {scope for scope, _ in scopes} == {Scope.EVERY_LENGTH}
        return
    assert net.architecture.longest == longest or name in BEYOND
    if {scope for scope, _ in scopes} == {Scope.EXHAUSTIVE}:
        assert name in ENUMERATED
        assert result.known.endswith("the longest that the network reads")
        return
    assert scopes <= {(Scope.MAX_LENGTH, longest), (Scope.EVERY_LENGTH, None)}
    assert result.known in ("equal for every length, proved", f"equal on every word up to length {longest}, proved")
