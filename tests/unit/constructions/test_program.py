"""Programs as transformers: the whole library, every kind of part, sizes, and what is refused."""

from __future__ import annotations

import time

import numpy as np
import pytest

from programs import usual_programs
from vitrify.certify import campaign, certify
from vitrify.certify.program_oracle import ProgramOracle
from vitrify.constructions.program import program_net
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.net.run import batch_logits
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Ledger, Weights
from vitrify.spec import programs as library
from vitrify.spec.program import Expr, aggregate, apply, everywhere, first, indices, marked, mean, select, tokens, width
from vitrify.spec.program_file import Program, program

SMALL = {p.name: p for p in usual_programs(4, 5)}
BIG = {p.name: p for p in usual_programs(32, 50)}
ATTENTIONS: list[AttentionKind] = ["softmax", "sparsemax", "hard"]


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


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("name", SMALL)
def test_the_library_is_exact_on_all_short_words(name: str, attention: AttentionKind) -> None:
    weights = assemble(program_net(SMALL[name], attention=attention))
    evidence = certify(weights, SMALL[name], max_length=5)
    assert evidence.verdict == "holds", evidence.witness


@pytest.mark.parametrize("name", BIG)
def test_the_library_is_exact_at_32_symbols_and_length_50(name: str) -> None:
    assert wrong_answers(assemble(program_net(BIG[name])), BIG[name], 30) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("letters", "length"), [(8, 10), (16, 20), (32, 50), (64, 200)])
def test_the_library_is_exact_at_every_size(letters: int, length: int) -> None:
    for spec in usual_programs(letters, length):
        attentions: list[AttentionKind] = ["softmax", "hard"] if length < 200 else ["softmax"]
        for attention in attentions:
            assert wrong_answers(assemble(program_net(spec, attention=attention)), spec, 1_000) == 0, spec.name


TRACR = {  # width and parameters of Tracr's nets at 32 symbols and length 50, as measured, and the share that we allow
    "reverse": (369, 8_180_000, 20),
    "sort": (1_769, 51_200_000, 20),
    "sort unique": (169, 155_000, 3),
    "histogram": (137, 58_700, 3),
}


@pytest.mark.parametrize("name", TRACR)
def test_nets_are_small_beside_tracrs(name: str) -> None:
    width, parameters, share = TRACR[name]
    size = Ledger.of(assemble(program_net(BIG[name])))
    assert size.d_model <= width / 2
    assert size.dense <= parameters / share


def test_three_argument_maps_merge_equal_rows() -> None:
    """Tracr: 1,020 wide and 5.5 million parameters at 8 symbols and length 10."""
    abc = tuple("abcdefgh")
    value = apply(lambda t: abc.index(t) % 3, tokens)
    back, more = (aggregate(select(indices, indices - by), value, 0) for by in (1, 2))
    spec = program(apply(lambda x, y, z: (x * y + z) % 3, value, back, more), abc, 10, causal=True)
    weights = assemble(program_net(spec))
    assert certify(weights, spec, max_length=4).verdict == "holds"
    assert Ledger.of(weights).dense <= 5_500_000 / 20


def chain(steps: int) -> Program:
    """Maps one after the other, each needing units of its own: the result is a number between 0 and 6."""
    node: Expr = width(select(tokens, tokens)) % 7
    for _ in range(steps):
        node = apply("max", (node + node) % 7, node)
    return program(node, ("a", "b"), 6)


def test_the_width_of_a_chain_does_not_grow() -> None:
    widths = [Ledger.of(assemble(program_net(chain(steps)))).d_model for steps in (4, 8, 16, 32)]
    assert widths[1] == widths[2] == widths[3]


def test_diamonds_take_linear_time() -> None:
    begin = time.perf_counter()
    assemble(program_net(chain(60)))
    assert time.perf_counter() - begin < 20  # exponential time would not end


def test_a_running_count_to_1024_is_proved_in_float32() -> None:
    spec = program(library.running_count("a"), ("a", "b", "c"), 1_024, causal=True)
    weights = assemble(program_net(spec), arithmetic="float32")
    assert Ledger.of(weights).d_model <= 3 + 24
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


def test_an_ambiguous_aggregate_is_refused_with_a_word() -> None:
    spec = program(aggregate(everywhere, tokens), ("a", "b"), 4)
    with pytest.raises(BuildRefused, match="ambiguous: on the word a b"):
        program_net(spec)


def test_a_table_that_explodes_is_refused_with_its_size() -> None:
    a, b = width(marked(tokens == "a")), width(marked(tokens == "b"))
    spec = program(apply(lambda x, y: hash((x, y, 5)) % 11, a, b), ("a", "b"), 200)
    with pytest.raises(BuildRefused, match="201 × 201 = 40,401 rows"):
        program_net(spec)


@pytest.mark.parametrize("name", ["shift", "running count", "pair balance", "histogram", "fraction of previous"])
def test_broken_nets_are_noticed(name: str) -> None:
    """Where every value that the sets allow does occur; elsewhere units for values that never come are idle."""
    (spec,) = (p for p in usual_programs(4, 12) if p.name == name)
    found = campaign(assemble(program_net(spec)), spec, count=60, seed=1, work=3e8)
    assert found.rate >= 0.95, found.survivors
