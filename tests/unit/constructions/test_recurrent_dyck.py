"""Brackets on a simple recurrent net and an LSTM, against deleting pairs; sizes; named spaces; mutations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from brackets import all_texts, completions
from cases import each
from vitrify.certification import certify, mutation_test
from vitrify.constructions import lstm_dyck
from vitrify.constructions.catalogue import build
from vitrify.constructions.recurrent_dyck import dyck_elman, sizes
from vitrify.errors import BuildRefused
from vitrify.net.inference import encode, logits, trace
from vitrify.net.recurrent import Recurrent
from vitrify.net.weights import Weights
from vitrify.spec.languages.dyck import Dyck

Shape = Callable[..., Weights[Recurrent]]
SHAPES: tuple[Shape, ...] = (dyck_elman, lstm_dyck.dyck_lstm)


def said(weights: Weights[Recurrent], texts: list[str]) -> list[frozenset[str]]:
    net = weights.architecture
    rows = logits(weights, [encode(net, list(text)) for text in texts])
    return [frozenset(s for s, x in zip(net.output.symbols, found[-1], strict=True) if x > 0) for found in rows]


@pytest.mark.long
@pytest.mark.parametrize(("kinds", "depth", "longest"), [(1, 1, 8), (1, 2, 8), (2, 1, 4), (2, 3, 5), (3, 2, 4)])
@pytest.mark.parametrize("make", SHAPES)
def test_next_sets_after_all_short_beginnings(make: Shape, kinds: int, depth: int, longest: int) -> None:
    letters = "()[]{}"[: 2 * kinds]
    weights = make(Dyck.of(" ".join(letters), depth, longest))
    beginnings = [text for text in all_texts(letters, longest) if completions(text, kinds, depth)]
    assert len(beginnings) > 8
    assert said(weights, beginnings) == [completions(text, kinds, depth) for text in beginnings]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kinds", "depth", "length", "words"),
    [
        (1, 1, 9, 20),
        (8, 10, 120, 50),
        (64, 10, 60, 50),
        (3, 16, 40, 50),
        pytest.param(2, 3, 120, 1_000, marks=pytest.mark.slow),
        pytest.param(8, 10, 120, 1_000, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("make", SHAPES)
def test_long_words_and_sizes(make: Shape, kinds: int, depth: int, length: int, words: int) -> None:
    spec = Dyck.of_kinds(kinds, depth, length)
    weights = make(spec)
    evidence = certify(weights, spec, max_length=1, work=1e7, samples=words)
    assert evidence.verdict == "holds"
    size, net, bits = weights.sizes, weights.architecture, (kinds - 1).bit_length()
    if make is dyck_elman:
        assert not sizes(spec).problems(size)
        assert net.cell.state == size.d_model == (2 * depth - 1) * (bits + 1)
    else:
        assert not lstm_dyck.sizes(spec).problems(size)
        assert (net.cell.state, size.units) == (depth * (bits + 1), depth * bits + 2)
    published = (2 if make is dyck_elman else 1) * (3 * depth * bits - depth)
    assert kinds == 1 or net.cell.state <= published


def test_logits_are_halves_and_keep_their_distance() -> None:
    spec = Dyck.of_kinds(5, 4, 40)
    weights = dyck_elman(spec)
    rng = np.random.default_rng(0)
    words = [encode(weights.architecture, spec.draw(rng)[:40]) for _ in range(100)]
    found = np.concatenate(list(logits(weights, words)))
    assert (2 * found == np.round(2 * found)).all()
    assert np.abs(found).min() == 0.5


def test_the_stack_is_in_named_spaces() -> None:
    seen = trace(dyck_elman(Dyck.of("( ) [ ] { }", 3, 12)), "([]{")
    assert seen.read("slot 1 pushed") == [[], ["taken"], ["taken", "bit 0"], [], ["taken", "bit 1"]]
    assert seen.read("slot 1 popped") == [[], [], [], ["taken"], []]
    assert seen.read("slot 2 pushed") == [[], [], ["taken"], [], ["taken"]]


def test_refusals_and_settings() -> None:
    spec = Dyck.of("( )", 3, 12)
    with pytest.raises(BuildRefused, match="from 1 to the length of the language, 12, got 13"):
        build(spec, "dyck-elman", max_length=13)
    for shape in ("dyck-elman", "dyck-lstm"):
        assert build(spec, shape, max_length=5).architecture.max_length == 5


@each(("kinds", "depth"), [(1, 1), (1, 3), (2, 1), (3, 3), (4, 2)])
def test_mutations(kinds: int, depth: int) -> None:
    spec = Dyck.of_kinds(kinds, depth, 12)
    found = mutation_test(dyck_elman(spec), spec, count=80, work=3e6)
    assert (found.tried, found.survivors) == (80, ())


def test_the_cells_of_an_lstm_are_whole_however_long_the_word() -> None:
    weights = lstm_dyck.dyck_lstm(Dyck.of("( ) [ ]", 3, 400))
    seen = trace(weights, "([[]])" * 66)["blocks.0.hook_state"]
    assert set(np.unique(seen / np.tanh(1.0))) == {-1.0, 0.0, 1.0}
    assert trace(weights, "([[]]").read("top of the stack")[1:] == [
        ["taken"],
        ["taken", "bit 0"],
        ["taken", "bit 0", "full"],
        ["taken", "bit 0"],
        ["taken"],
    ]


@pytest.mark.parametrize(("kinds", "depth"), [(1, 3), (3, 3), (4, 2)])
def test_mutations_of_the_lstm(kinds: int, depth: int) -> None:
    """The bits of a free slot may be anything: those of the last slot may be written too often or forgotten."""
    spec = Dyck.of_kinds(kinds, depth, 12)
    weights = lstm_dyck.dyck_lstm(spec)
    state, last = weights.architecture.cell.state, range((depth - 1) * (kinds - 1).bit_length() + depth, 10**6)
    explained = {f"blocks.0.rec.b[{gate * state + at}] zeroed" for gate in (0, 1) for at in last[: state - last[0]]}
    found = mutation_test(weights, spec, count=80, work=3e6)
    assert found.tried == 80
    assert {what for what, _ in found.survivors} <= explained
