"""Programs as transformers: the whole library, every kind of part, sizes, and what is refused."""

from __future__ import annotations

import sys
import time
from itertools import product

import numpy as np
import pytest

from cases import each, each_then_slow, in_turn
from peers import FIGURES, Figure
from programs import diamonds, three_arguments, usual_programs
from vitrify.certification import certify, mutation_test
from vitrify.certification.oracles.programs import ProgramOracle
from vitrify.constructions.catalogue import Attention
from vitrify.constructions.program import program_net
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.inference import batch_logits
from vitrify.net.weights import Weights
from vitrify.spec.programs import families as library
from vitrify.spec.programs.expression import (
    aggregate,
    apply,
    choose,
    count,
    everywhere,
    first,
    indices,
    marked,
    mean,
    select,
    tokens,
    upto,
    width,
)
from vitrify.spec.programs.program import Program, program

SMALL = {p.name: p for p in usual_programs(4, 5)}
BIG = {p.name: p for p in usual_programs(32, 50)}
ATTENTIONS: list[Attention] = ["softmax", "sparsemax", "hard"]


def wrong_answers(weights: Weights, spec: Program, count: int, seed: int = 0) -> int:
    """Wrong answers on random words of many lengths, and on words of one symbol."""
    rng, net = np.random.default_rng(seed), weights.architecture
    oracle, letters, wrong = ProgramOracle(spec, net), len(spec.alphabet), 0
    for length in sorted({1, 2, 3, net.max_length // 2, net.max_length - 1, net.max_length}):
        words = rng.integers(1, letters + 1, size=(max(count // 6, 3), length))
        words[0], words[1] = 1, letters
        step = max(1, (1 << 23) // net.activations(length + 1))
        for at in range(0, len(words), step):
            asked = words[at : at + step]
            seen = np.concatenate([np.zeros((len(asked), 1), dtype=np.int64), asked], axis=1)
            wrong += int((oracle.errors(asked, batch_logits(weights, seen)) > oracle.tolerance()).sum())
    return wrong


@pytest.mark.long
@each_then_slow("name, attention", *in_turn(SMALL, ATTENTIONS))
def test_the_library_is_exact_on_all_short_words(name: str, attention: Attention) -> None:
    weights = assemble(program_net(SMALL[name], attention=attention))
    evidence = certify(weights, SMALL[name], max_length=5)
    assert evidence.verdict == "holds", evidence.witness


@each("name", BIG)
def test_the_library_is_exact_at_32_symbols_and_length_50(name: str) -> None:
    assert wrong_answers(assemble(program_net(BIG[name])), BIG[name], 30) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("letters", "length"), [(8, 10), (16, 20), (32, 50), (64, 200)])
def test_the_library_is_exact_at_every_size(letters: int, length: int) -> None:
    for spec in usual_programs(letters, length):
        attentions: list[Attention] = ["softmax", "hard"] if length < 200 else ["softmax"]
        for attention in attentions:
            assert wrong_answers(assemble(program_net(spec, attention=attention)), spec, 1_000) == 0, spec.name


@pytest.mark.long
@each("figure", FIGURES, ids=str)
def test_nets_are_small_beside_those_of_other_compilers(figure: Figure) -> None:
    size = assemble(program_net(figure.ours())).sizes
    assert size.d_model <= figure.width / 2
    assert size.dense <= figure.parameters / figure.share


def test_three_argument_maps_are_right_and_merge_equal_rows() -> None:
    spec = three_arguments(3, 4)
    weights = assemble(program_net(spec))
    assert certify(weights, spec, max_length=4).verdict == "holds"
    merged = program(apply(lambda t, i, n: (t == "a") and i % 2 == n % 2, tokens, indices, library.length), "abc", 4)
    (rows,) = (label for label in assemble(program_net(merged)).labels.units if label.name.startswith("table"))
    assert rows.stop - rows.start == 2  # the letter a, at even places of even words and at odd places of odd ones


def test_the_width_of_a_chain_does_not_grow() -> None:
    widths = [assemble(program_net(diamonds(steps))).sizes.d_model for steps in (4, 8, 16, 32)]
    assert widths[1] == widths[2] == widths[3]


def work_of(number: int) -> int:
    """How many calls of Python functions it takes to build so many diamonds."""
    calls = 0

    def note(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(note)
    try:
        assemble(program_net(diamonds(number)))
    finally:
        sys.setprofile(None)
    return calls


def test_diamonds_take_linear_work() -> None:
    assemble(program_net(diamonds(2)))  # what is imported or remembered the first time does not count
    work = {number: work_of(number) for number in (15, 30, 60)}
    assert work[60] - work[30] <= 2.02 * (work[30] - work[15])
    begin = time.perf_counter()
    assemble(program_net(diamonds(60)))
    assert time.perf_counter() - begin < 5  # it takes a twentieth of a second


def test_a_running_count_to_1024_is_proved_in_float32() -> None:
    spec = program(library.running_count("a"), ("a", "b", "c"), 1_024, causal=True)
    weights = assemble(program_net(spec), arithmetic="float32")
    assert weights.sizes.d_model <= 3 + 24
    narrow = weights.map(lambda array: np.asarray(array, dtype=np.float32))
    words = np.random.default_rng(0).integers(1, 4, size=(4, 1_024))
    words[0] = 1
    seen = np.concatenate([np.zeros((4, 1), dtype=np.int64), words], axis=1)
    found = batch_logits(narrow, seen)[:, 1:].argmax(axis=-1)
    assert (found == (words == 1).cumsum(axis=1)).all()


def test_a_default_or_nothing_where_nothing_is_selected() -> None:
    never = marked(tokens == "c")
    for node, value in ((first(never, tokens), None), (first(never, tokens, "b"), "b"), (mean(never, indices, 7), 7)):
        spec = program(node, ("a", "b", "c"), 4)
        assert spec(["a", "b"]) == [value, value]
        assert certify(assemble(program_net(spec)), spec, max_length=4).verdict == "holds"


BEFORE = aggregate(select(indices, indices - 1), tokens, "a")
PLACE = aggregate(select(indices, indices - 1), indices, 0)
COMPUTED = {  # from what heads have fetched, by units that pass errors on: flags, codes and numbers
    "table of flags": choose(BEFORE == "a", tokens != "a", tokens == "b") == True,  # noqa: E712
    "table of codes": apply(lambda old, new: old + new, BEFORE, tokens) == "ab",
    "either of two numbers": choose(BEFORE == "a", PLACE, indices) == 2,
    "larger of two numbers": apply("max", PLACE, indices - 2) == 1,
    "nested": choose(BEFORE == "a", width(marked(BEFORE == "a") & upto) == 1, tokens == "b"),
}


@pytest.mark.long
@each("name, attention", product(COMPUTED, ATTENTIONS))
def test_functions_of_what_heads_fetch_are_counted_exactly(name: str, attention: Attention) -> None:
    flag = COMPUTED[name]
    for root in (count(flag), width(marked(flag) & upto)):
        spec = program(root, ("a", "b"), 6)
        evidence = certify(assemble(program_net(spec, attention=attention)), spec)
        assert evidence.verdict == "holds", (root, evidence.witness)


def test_an_ambiguous_aggregate_is_refused_with_a_word() -> None:
    spec = program(aggregate(everywhere, tokens), ("a", "b"), 4)
    with pytest.raises(BuildRefused, match="ambiguous: on the word a b"):
        program_net(spec)


def test_a_table_that_explodes_is_refused_with_its_size() -> None:
    a, b = width(marked(tokens == "a")), width(marked(tokens == "b"))
    spec = program(apply(lambda x, y: hash((x, y, 5)) % 11, a, b), ("a", "b"), 200)
    with pytest.raises(BuildRefused, match="201 × 201 = 40,401 rows"):
        program_net(spec)


@each("name", ["shift", "running count", "pair balance", "histogram", "fraction of previous"])
def test_broken_nets_are_noticed(name: str) -> None:
    """Where every value that the sets allow does occur; elsewhere units for values that never come are idle."""
    (spec,) = (p for p in usual_programs(4, 12) if p.name == name)
    found = mutation_test(assemble(program_net(spec)), spec, count=60, seed=1, work=3e8)
    assert found.rate >= 0.95, found.survivors


@pytest.mark.parametrize(
    "body",
    [
        "return aggregate(~everywhere, tokens, 'a')",
        "return aggregate(~(everywhere | everywhere), tokens == 'b', False)",
        "return width(~everywhere)",
        "x = mean(~everywhere, indices, 3)\nreturn min(x, indices)",
        "x = aggregate(~everywhere, indices, 0)\nreturn x == indices",
        "return aggregate(~everywhere | everywhere, 2, 1)",
    ],
)
def test_a_selector_without_a_test_selects_all_positions_or_none(body: str) -> None:
    program = Program.from_text(f"alphabet: a b\nlength: 5\nsees: everything\n\n{body}\n")
    assert certify(assemble(program_net(program)), program).verdict == "holds"
