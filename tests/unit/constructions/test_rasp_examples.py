"""The programs in `examples/`: their nets are right by what plain Python says, and most by a proof for every word."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cases import each
from rasp_examples import EMPTY, EXAMPLES, MEANS
from vitrify.certification import certify
from vitrify.constructions.catalogue import build
from vitrify.net.answers import run
from vitrify.net.inference import batch_logits
from vitrify.spec.programs.program import Program

MAX_WORDS = 3_000  # of one length


def test_every_program_has_an_oracle() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.rasp")} == {*MEANS}


@pytest.mark.long
@each("name", MEANS)
def test_a_program_of_the_examples_is_right(name: str) -> None:
    spec = Program.read(EXAMPLES / f"{name}.rasp")
    net, domain, rng = build(spec), spec.values[spec.root], np.random.default_rng(0)
    size = len(spec.alphabet)
    for length in (1, 2, 3, 4, 5, spec.length):
        every = size**length <= MAX_WORDS
        words = np.array(list(product(range(size), repeat=length))) if every else rng.integers(0, size, (300, length))
        found = batch_logits(net, np.pad(words + 1, ((0, 0), (1, 0))))
        for word, logits in zip(words.tolist(), found, strict=True):
            read = [spec.alphabet[letter] for letter in word]
            assert [domain[index] for index in logits[1:].argmax(axis=-1)] == MEANS[name](read), read
    if name in EMPTY:
        assert run(net, [], all_positions=True).output == (str(EMPTY[name]),)


SAMPLED = {  # in part: that equal keys which share the weight have equal values; that a flag of two counts is followed
    "sort_by_frequency": ["sampled", "sampled"],
    "most_frequent": ["sampled", "sampled"],
    "kth_occurrence": ["to T", "sampled"],
}


@pytest.mark.slow
@each("name", MEANS)
def test_a_program_of_the_examples_is_certified(name: str) -> None:
    spec = Program.read(EXAMPLES / f"{name}.rasp")
    evidence = certify(build(spec), spec, max_length=4, prove=True)
    scopes = SAMPLED.get(name, ["to T", "to T"])
    assert (evidence.verdict, [link.scope.value for link in evidence.links]) == ("holds", scopes)
