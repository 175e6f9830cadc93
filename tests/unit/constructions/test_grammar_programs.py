"""Programs of bits: made smaller they say the same, and nets built from them have little that no sentence exercises."""

from __future__ import annotations

import numpy as np
import pytest

from cases import each
from vitrify.certification.mutation_test import mutation_test
from vitrify.constructions._programs import POSITIONS, WORDS, Bit, BitGroup, BitProgram, Literal
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.grammar_shapes import grammar_shapes
from vitrify.kit import assemble
from vitrify.spec.grammars.families import random_grammar, random_hierarchy
from vitrify.spec.grammars.grammar import Grammar

ANSWERS = BitGroup(99, "answers")
LONGEST = 4
LETTERS = 2


def random_program(seed: int) -> BitProgram:
    """Bits of three ranks over two letters, each row with one to three literals; answers know how much was read."""
    rng = np.random.default_rng(seed)
    program = BitProgram(LONGEST)
    below: list[Bit] = [Bit(WORDS, k, "ab"[k]) for k in range(LETTERS)]
    for rank in range(3):
        made = [Bit(BitGroup(rank, f"g{rank}{k % 2}"), k, f"b{rank}{k}") for k in range(4)]
        for bit in made:
            for number in range(int(rng.integers(1, 4))):
                row = [_literal(rng, below) for _ in range(int(rng.integers(1, 4)))]
                program.put(bit, row, f"row {number}")
        below += made
    for place in range(3):
        for number in range(3):
            t = int(rng.integers(LONGEST + 1))
            row = [(Bit(POSITIONS, t, str(t)), 0), *(_literal(rng, below) for _ in range(int(rng.integers(3))))]
            program.put(Bit(ANSWERS, place, f"answer {place}"), row, f"row {number}")
    return program


def _literal(rng: np.random.Generator, bits: list[Bit]) -> Literal:
    return bits[int(rng.integers(len(bits)))], int(rng.integers(2))


def holds(program: BitProgram, bit: Bit, words: tuple[int, ...], t: int) -> bool:
    """What a bit says after t words, by the definition alone."""
    if bit.group == POSITIONS:
        return t == bit.number
    if bit.group == WORDS:
        return t >= 1 and words[t - 1] == bit.number
    return any(
        all(t >= back and holds(program, part, words, t - back) for part, back in row)
        for row in program.rows.get(bit, ())
    )


@each("seed", range(40))
def test_a_smaller_program_gives_the_same_answers(seed: int) -> None:
    program = random_program(seed)
    smaller = program.smaller(ANSWERS)
    assert sum(map(len, smaller.rows.values())) <= sum(map(len, program.rows.values()))
    answers = [bit for bit in program.rows if bit.group == ANSWERS]
    for number in range(LETTERS**LONGEST):
        words = tuple(number // LETTERS**place % LETTERS for place in range(LONGEST))
        for t in range(LONGEST + 1):
            for bit in answers:
                assert holds(smaller, bit, words, t) == holds(program, bit, words, t)


def test_what_is_left_out() -> None:
    word, other = (Bit(WORDS, k, "ab"[k]) for k in range(2))
    here, group = (Bit(POSITIONS, 2, "2"), 0), BitGroup(1, "g")
    copy, twin, again, absurd = (Bit(group, k, f"b{k}") for k in range(4))
    program = BitProgram(LONGEST)
    program.put(copy, [(word, 1)], "a bit that is a word")
    program.put(twin, [(word, 0), (other, 1)], "first")
    program.put(twin, [(word, 0), (word, 1)], "second")
    program.put(again, [(word, 0), (word, 1)], "the same rows")
    program.put(again, [(word, 0), (other, 1)], "in another order")
    program.put(absurd, [(word, 0), (other, 0)], "two words at one place")
    answer = Bit(ANSWERS, 0, "yes")
    program.put(answer, [here, (copy, 0)], "kept")
    program.put(answer, [here, (copy, 0), (twin, 0)], "asks for more than another row")
    program.put(answer, [here, (absurd, 0)], "never")
    program.put(answer, [here, (twin, 0)], "kept too")
    program.put(answer, [here, (again, 0)], "the same")
    found = program.smaller(ANSWERS)
    assert found.rows == {
        twin: {frozenset({(word, 0), (other, 1)}): "first", frozenset({(word, 0), (word, 1)}): "second"},
        answer: {frozenset({here, (word, 1)}): "kept", frozenset({here, (twin, 0)}): "kept too"},
    }


SMALL: dict[str, tuple[Grammar, Attention]] = {
    "phrases": (
        Grammar.from_text("S -> NP VP\nNP -> 'the' N | 'alice'\nN -> 'dog' | 'cat'\nVP -> 'sleeps' | 'sees' NP"),
        "softmax",
    ),
    "hierarchy": (random_hierarchy(3, 2, 2, 2, seed=1), "sparsemax"),
    "ambiguous": (random_grammar(0, depth=2), "hard"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SMALL)
def test_mutations_are_noticed(name: str) -> None:
    grammar, attention = SMALL[name]
    found = mutation_test(assemble(grammar_shapes(grammar, attention=attention)), grammar, count=100, seed=3, work=1e8)
    assert found.rate >= 0.99, found.survivors
