"""Word register: the net's sets of next words against the language's, its state against the last words themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from built import mistakes
from cases import each
from vitrify.certification import certify
from vitrify.certification.mutation_test import mutation_test
from vitrify.constructions import catalogue
from vitrify.constructions.word_register import count_shifts, sizes, word_register
from vitrify.errors import BuildRefused
from vitrify.net.inference import encode, logits, trace
from vitrify.net.sparse import is_sparse
from vitrify.spec.languages.word_patterns import WordPatterns, waking_up

AWOKE = WordPatterns.read(Path(__file__).parents[3] / "examples" / "awoke.patterns")
TRANSITION = "blocks.0.rec.W_A"


def test_exact_from_the_least_window_on_and_one_sided_below() -> None:
    found = {n: mistakes(word_register(AWOKE, window=n), AWOKE) for n in range(2, 8)}
    assert found == {2: (0, 375), 3: (0, 261), 4: (0, 213), 5: (0, 0), 6: (0, 0), 7: (0, 0)}


@each("n", [2, 3, 5, 8, 14, 15, 16, 40])
def test_sizes_are_those_of_the_formulas(n: int) -> None:
    weights, classes = word_register(AWOKE, window=n), len(AWOKE.members)
    measured, promised = weights.sizes, sizes(AWOKE, window=n)
    blocks = min(n - 1, 14)
    assert not promised.problems(measured)
    assert measured.d_model == blocks * classes
    assert measured.units == len(AWOKE.contexts(n))
    assert weights.architecture.d_embed == classes
    transition = weights.arrays[TRANSITION]
    assert np.count_nonzero(transition) == count_shifts(AWOKE, n)
    assert not np.linalg.matrix_power(transition, blocks).any()
    assert np.linalg.matrix_power(transition, blocks - 1).any()


def test_the_transition_by_hand() -> None:
    """One class can stand at any distance before the end, the other only last: it is never moved."""
    weights = word_register(WordPatterns.of({"A": "a b", "B": "c"}, ["A A B"]), window=3)
    moved = np.argwhere(weights.arrays[TRANSITION])
    assert moved.tolist() == [[0, 2]]
    assert count_shifts(WordPatterns.of({"A": "a b", "B": "c"}, ["A A B"]), 3) == 1


def test_the_state_is_the_window() -> None:
    spec = waking_up(3)
    words = ["who1", "was", "too", "state0", "for", "drink1"]
    seen = trace(word_register(spec, window=4), words)
    after = {n: max(len(p) - 1 - p.index(n) for p in spec.patterns if n in p) for n in spec.members}
    for back in range(3):  # a class is carried as far as words can follow it
        held = [[n for n in spec.members if word in spec.members[n] and after[n] >= back] for word in words]
        assert seen.read(f"{back} back") == ([[]] * (back + 1) + held)[: len(words) + 1]


@pytest.mark.slow
def test_no_size_depends_on_how_many_words_a_class_has() -> None:
    small, large = (word_register(waking_up(size)) for size in (2, 1_000))
    one, two = small.sizes, large.sizes
    assert (one.units, one.d_model, one.layers) == (two.units, two.d_model, two.layers) == (21, 65, 1)
    for name in (TRANSITION, "blocks.0.mlp.W_in", "blocks.0.mlp.W_out"):
        np.testing.assert_array_equal(small.arrays[name], large.arrays[name])
    assert len(large.architecture.inputs) > 4_000
    assert certify(large, waking_up(1_000), work=1e8).verdict == "holds"


def test_words_before_the_window_and_words_in_the_same_classes_change_no_bit() -> None:
    weights = word_register(AWOKE)
    net = weights.architecture
    one, two, other = logits(
        weights,
        [
            encode(net, text.split())
            for text in (
                "Ann awoke at one o'clock and was too hungry",
                "Bob at bed two o'clock and was too happy",
                "Bob at bed two o'clock and was bed happy",
            )
        ],
    )
    assert (one[-1] == two[-1]).all()
    assert (one[-1] != other[-1]).any()


def test_large_registers_are_sparse_and_right() -> None:
    words = [f"w{number}" for number in range(220)]
    spec = WordPatterns.of({}, [" ".join(f'"{word}"' for word in words[at : at + 10]) for at in range(0, 220, 10)])
    weights = word_register(spec, window=6)
    power = transition = weights.arrays[TRANSITION]
    assert is_sparse(transition)
    assert transition.nnz == count_shifts(spec, 6)
    for left in (3, 2, 1, 0):
        power = power @ transition
        assert (power.nnz > 0) == (left > 0)
    assert certify(weights, spec, work=1e7).verdict == "holds"


def test_most_mutations_are_noticed_and_the_others_change_no_answer() -> None:
    found = mutation_test(word_register(AWOKE), AWOKE, count=300, seed=1)
    assert found.rate >= 0.95
    kinds = {what.split("[")[0] for what, _ in found.survivors}
    assert kinds <= {"blocks.0.mlp.b_in"}  # a context whose every part already says what follows


def test_a_short_window_says_so() -> None:
    weights = word_register(AWOKE, window=3)
    assert "--window 5 is exact" in weights.about["exact"]
    evidence = certify(weights, AWOKE)
    assert evidence.witness == {
        "history": ["Ann", "was", "too", "hungry"],
        "missing": [],
        "too many": ["to"],
        "undecided": [],
    }


def test_refusals() -> None:
    with pytest.raises(BuildRefused, match=r"--window .* must be a whole number of at least 2"):
        word_register(AWOKE, window=1)
    with pytest.raises(BuildRefused, match=r"'register' has no such choice: leave --(attention|positions)"):
        catalogue.build(AWOKE, "register", attention="hard")
    with pytest.raises(BuildRefused, match=r"'register' has no such choice: leave --(attention|positions)"):
        catalogue.build(AWOKE, "register", positions="sqrt")
    assert catalogue.build(AWOKE, "register", window=5).digest == word_register(AWOKE).digest
