"""Laws of the constructions over random specs: the net is its oracle, always the same, and survives a save."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from built import ATTENTIONS, PROMISED, SHAPES, Ids, answers, expected, probabilities, walked
from examples import examples
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.commutative import commutative
from vitrify.constructions.log_depth import log_depth
from vitrify.constructions.ngram import Code, Variant, ngram
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.kit.network import Network
from vitrify.net.folder import load, save, spec_path
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.ngrams.families import random_ngram
from vitrify.spec.ngrams.model import NGramModel

EXAMPLES = settings(max_examples=examples(80), deadline=None)
attentions = st.sampled_from(ATTENTIONS)
codes: st.SearchStrategy[Code] = st.sampled_from(["auto", "onehot", "bits"])
shapes: st.SearchStrategy[Variant] = st.sampled_from(SHAPES)


@st.composite
def automata(draw: st.DrawFn) -> Automaton:
    """Any transition table of up to six states and three letters."""
    states, letters = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    state = st.integers(0, states - 1)
    table = draw(st.lists(st.lists(state, min_size=letters, max_size=letters), min_size=states, max_size=states))
    return Automaton(
        tuple(f"q{q}" for q in range(states)),
        tuple("abc"[:letters]),
        tuple(map(tuple, table)),
        draw(state),
        draw(st.frozensets(state)),
    )


@st.composite
def commuting(draw: st.DrawFn) -> Automaton:
    """Letters that are powers of one map of up to six states: they commute, and may permute the states or not."""
    states = draw(st.integers(1, 6))
    state = st.integers(0, states - 1)
    action = draw(st.lists(state, min_size=states, max_size=states) | st.permutations(range(states)))
    powers = [list(range(states))]
    for _ in range(4):
        powers.append([action[q] for q in powers[-1]])
    letters = draw(st.lists(st.sampled_from(powers), min_size=1, max_size=3))
    return Automaton(
        tuple(f"q{q}" for q in range(states)),
        tuple("abc"[: len(letters)]),
        tuple(tuple(letter[q] for letter in letters) for q in range(states)),
        draw(state),
        draw(st.frozensets(state)),
    )


@st.composite
def models(draw: st.DrawFn) -> NGramModel:
    """Back-off models of up to three words and order four, more or less of them listed."""
    return random_ngram(
        draw(st.integers(1, 3)),
        draw(st.integers(1, 4)),
        seed=draw(st.integers(0, 2**32 - 1)),
        listed=draw(st.sampled_from([0.0, 0.3, 0.7, 1.0])),
    )


@st.composite
def words(draw: st.DrawFn, letters: int, length: int) -> Ids:
    """A few words of one length, at most the longest that the net reads."""
    size = draw(st.integers(0, length))
    word = st.lists(st.integers(1, letters), min_size=size, max_size=size)
    some = draw(st.lists(word, min_size=1, max_size=4))
    return np.array(some, dtype=np.int64).reshape(len(some), size)


@EXAMPLES
@given(automata(), attentions, st.integers(1, 20), st.data())
def test_log_depth_runs_the_automaton(
    machine: Automaton, attention: Attention, length: int, data: st.DataObject
) -> None:
    weights = assemble(log_depth(machine, attention=attention, max_length=length))
    some = data.draw(words(len(machine.alphabet), length))
    np.testing.assert_array_equal(answers(weights, some).argmax(axis=-1), walked(machine, some))


@EXAMPLES
@given(commuting() | automata(), st.sampled_from(["softmax", "sparsemax"]), st.integers(1, 20), st.data())
def test_commutative_runs_the_automaton_or_says_why_not(
    machine: Automaton, attention: Attention, length: int, data: st.DataObject
) -> None:
    if not machine.reachable().is_commutative():
        with pytest.raises(BuildRefused, match="must commute"):
            commutative(machine, attention=attention, max_length=length)
        return
    weights = assemble(commutative(machine, attention=attention, max_length=length))
    some = data.draw(words(len(machine.alphabet), length))
    names = np.array([machine.states.index(state) for state in weights.architecture.output.symbols])
    np.testing.assert_array_equal(names[answers(weights, some).argmax(axis=-1)], walked(machine, some))


@EXAMPLES
@given(models(), shapes, attentions, codes, st.booleans(), st.integers(1, 20), st.data())
def test_ngram_nets_give_the_model_s_probabilities(
    model: NGramModel,
    shape: Variant,
    attention: Attention,
    code: Code,
    snap: bool,
    length: int,
    data: st.DataObject,
) -> None:
    weights = assemble(ngram(model, variant=shape, attention=attention, code=code, snap=snap, max_length=length))
    some = data.draw(words(len(model.readable), length))
    assert np.abs(probabilities(weights, some) - expected(model, some)).max() <= PROMISED[attention]


@st.composite
def built_twice(draw: st.DrawFn) -> tuple[NGramModel | Automaton, Network, Network]:
    """A spec and two networks made from it, one after the other."""
    attention, length = draw(attentions), draw(st.integers(1, 12))
    if draw(st.booleans()):
        machine = draw(automata())
        one, two = (log_depth(machine, attention=attention, max_length=length) for _ in range(2))
        return machine, one, two
    model, shape = draw(models()), draw(shapes)
    one, two = (ngram(model, variant=shape, attention=attention, max_length=length) for _ in range(2))
    return model, one, two


def spec_in(folder: Path, spec: NGramModel | Automaton) -> NGramModel | Automaton:
    """The spec that a folder holds."""
    return type(spec).read(spec_path(folder))


@EXAMPLES
@given(built_twice(), st.data())
def test_built_twice_is_the_same_and_a_saved_net_is_the_net(
    case: tuple[NGramModel | Automaton, Network, Network], data: st.DataObject
) -> None:
    spec, one, two = case
    weights, again = assemble(one), assemble(two)
    assert weights.digest == again.digest
    assert weights.labels == again.labels
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "net"
        save(weights, folder, spec)
        loaded: Weights = load(folder)
        assert spec_in(folder, spec) == spec
    assert loaded.digest == weights.digest
    assert loaded.labels == weights.labels
    some = data.draw(words(len(weights.architecture.inputs) - 1, weights.architecture.max_length))
    np.testing.assert_array_equal(answers(loaded, some), answers(weights, some))
