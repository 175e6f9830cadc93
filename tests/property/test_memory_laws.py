"""Laws of memories over random specs: nets recall what a dictionary says, and files read back."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from built import answers
from examples import examples
from vitrify.constructions.catalogue import build
from vitrify.errors import BuildRefused
from vitrify.net.inference import encode
from vitrify.spec.memory.associations import Associations
from vitrify.spec.memory.facts import Facts

WORDS = st.text("abc:é", min_size=1, max_size=3).filter(lambda word: word.split() == [word])


@st.composite
def some_associations(draw: st.DrawFn) -> Associations:
    words = draw(st.lists(WORDS, min_size=1, max_size=9, unique=True))
    return Associations(tuple((word, draw(WORDS)) for word in words))


@st.composite
def some_facts(draw: st.DrawFn) -> Facts:
    words = draw(st.lists(WORDS, min_size=4, max_size=9, unique=True))
    one, two = sorted(draw(st.lists(st.integers(1, len(words) - 1), min_size=2, max_size=2, unique=True)))
    pairs = [(subject, relation) for subject in words[:one] for relation in words[one:two]]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    return Facts(tuple((*pair, draw(WORDS)) for pair in chosen), tuple(words[two:]))


@given(some_associations(), st.sampled_from(["fitted", "least-squares", "hebbian", "mlp-memory"]))
@settings(max_examples=examples(60), deadline=None)
def test_words_are_recalled_as_a_dictionary_does(spec: Associations, shape: str) -> None:
    known = dict(spec.pairs)
    try:
        weights = build(spec, shape)
    except BuildRefused:
        assert shape == "hebbian"  # words that share answers
        return
    for word, found in zip(known, answers(weights, np.arange(1, len(known) + 1)[:, None]), strict=True):
        assert weights.architecture.output.symbols[int(found[1].argmax())] == known[word]


@given(some_facts(), st.sampled_from(["facts", "facts-heads"]))
@settings(max_examples=examples(60), deadline=None)
def test_facts_are_recalled_as_a_dictionary_does(spec: Facts, shape: str) -> None:
    try:
        weights = build(spec, shape)
    except BuildRefused:
        assert shape == "facts-heads"  # answers that two relations of a subject could give
        return
    filler = spec.fillers[0]
    for subject, relation, answer in spec.facts:
        for words in ([subject, filler, relation], [filler, relation, subject], [relation, subject, filler]):
            found = answers(weights, np.array([encode(weights.architecture, words)]))[0, 3]
            assert weights.architecture.output.symbols[int(found.argmax())] == answer


@given(some_associations() | some_facts())
@settings(max_examples=examples(100), deadline=None)
def test_files_read_back(spec: Associations | Facts) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"some{spec.suffix}"
        spec.write(path)
        assert type(spec).read(path) == spec
