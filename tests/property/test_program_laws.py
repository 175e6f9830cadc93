"""Laws of programs: interpreters agree, text is undone by reading, nets compute what programs say."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from programs import random_program
from vitrify.certification import certify
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.program import program_net
from vitrify.kit import assemble
from vitrify.net.inference import encode, logits
from vitrify.spec.programs.batch import Batch
from vitrify.spec.programs.expression import evaluate, parts
from vitrify.spec.programs.program import Program
from vitrify.spec.programs.text import NAMES

ATTENTIONS: list[Attention] = ["softmax", "sparsemax", "hard"]
seeds = st.integers(0, 10**6)
KNOWN = {id(node) for node in NAMES.values()}  # parts that the language names


@settings(deadline=None, max_examples=examples(50))
@given(seeds, st.booleans())
def test_the_batch_interpreter_says_what_the_plain_one_says(seed: int, every_part: bool) -> None:
    program = random_program(seed, every_part=every_part)
    domain, batch = program.values[program.root], Batch(program.root, program.values)
    for length in (1, 2, 4):
        words = list(product(range(3), repeat=length))
        for word, row in zip(words, batch(np.array(words)).tolist(), strict=True):
            letters = [program.alphabet[i] for i in word]
            assert [domain[i] for i in row] == evaluate(program.root, letters, causal=program.causal)


@settings(deadline=None, max_examples=examples(50))
@given(seeds, st.booleans())
def test_reading_undoes_writing(seed: int, every_part: bool) -> None:
    program = random_program(seed, every_part=every_part)
    again = Program.from_text(program.to_text())
    assert again.root is program.root
    assert (again.alphabet, again.length, again.causal) == (program.alphabet, program.length, program.causal)
    assert (type(again.empty), again.empty) == (type(program.empty), program.empty)
    assert again.to_text() == program.to_text()
    given = {id(node): name for node, name in program.values.names.items() if node.args and id(node) not in KNOWN}
    for node in parts(program.root):
        assert again.values.names.get(node) == given.get(id(node)) or id(node) not in given


@settings(deadline=None, max_examples=examples(50))
@given(seeds, st.sampled_from(ATTENTIONS), st.booleans())
def test_nets_compute_what_programs_say(seed: int, attention: Attention, every_part: bool) -> None:
    """By the plain interpreter, word by word: all words to length 4, and some of full length."""
    program = random_program(seed, every_part=every_part)
    weights = assemble(program_net(program, attention=attention))
    domain = program.values[program.root]
    rng = np.random.default_rng(seed)
    words = [list(word) for n in range(1, 5) for word in product(program.alphabet, repeat=n)]
    words += [[program.alphabet[i] for i in rng.integers(0, 3, size=program.length)] for _ in range(20)]
    if program.empty is not None:
        (alone,) = logits(weights, [encode(weights.architecture, [])])
        assert domain[alone[0].argmax()] == program.empty
    for word, found in zip(words, logits(weights, [encode(weights.architecture, w) for w in words]), strict=True):
        wanted = program(word)
        if program.empty is not None and program.causal:
            assert domain[found[0].argmax()] == program.empty
        if weights.architecture.output.kind == "values":
            np.testing.assert_allclose(found[1:, 0], [float(v) for v in wanted], atol=1e-9)  # type: ignore[arg-type]
        else:
            assert [domain[i] for i in found[1:].argmax(axis=-1)] == wanted


@settings(deadline=None, max_examples=examples(50))
@given(seeds)
def test_a_causal_program_does_not_look_ahead(seed: int) -> None:
    program = random_program(seed, causal=True)
    word = list("abcabc")
    assert program(word)[:3] == program(word[:3])


BELOW_ZERO_AT_BOS = 90  # the seed of a program whose `if` is -1 there


@pytest.mark.parametrize(
    "seed", [BELOW_ZERO_AT_BOS, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(200))]
)
def test_many_programs_are_certified(seed: int) -> None:
    program = random_program(seed, letters=4, length=8)
    for attention in ATTENTIONS:
        assert certify(assemble(program_net(program, attention=attention)), program).verdict == "holds"
