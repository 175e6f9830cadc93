"""Programs of tasks at any length: they answer as the sandboxes do, and what they are made of is told apart."""

from __future__ import annotations

import numpy as np
import pytest

from cases import each
from vitrify.claims.trials.lengths import (
    TASKS,
    TIMES,
    Words,
    between,
    divides,
    length,
    other_positions,
    shortest_program,
    subject,
    wrong,
)
from vitrify.learn.models.recurrent import RecurrentFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.spec.programs import families as library
from vitrify.spec.programs.expression import aggregate, choose, evaluate, indices, select, tokens

N = 3
GROWING = {"parity", "sum modulo 3", "copy repeated letters"}


@pytest.mark.slow
@each("task", TASKS)
def test_programs_answer_as_the_task_does_at_every_length(task: str) -> None:
    for free in (False, True):
        root = shortest_program(task, N, TIMES * N, free)
        assert [wrong(task, N, root, at) for at in range(1, TIMES * N + 1)] == [0] * (TIMES * N)
        assert divides(root) == (free and task in GROWING)
    sizes = [length(shortest_program(task, N, most)) for most in (N, 2 * N, 4 * N)]
    assert sizes == sorted(set(sizes)) if task in GROWING else len(set(sizes)) == 1
    free_sizes = [length(shortest_program(task, N, most, free=True)) for most in (N, 4 * N)]
    assert free_sizes[0] == free_sizes[1]


def test_a_program_for_shorter_words_is_caught() -> None:
    for task in GROWING:
        root = shortest_program(task, N, N)
        assert wrong(task, N, root, N) == 0
        assert wrong(task, N, root, 4 * N) > 0
    assert wrong("majority", N, choose(library.more("0", "1"), "yes", "no"), 5) > 0


def test_what_looks_at_a_computed_place_divides() -> None:
    assert not divides(aggregate(select(indices, indices - 3), tokens))
    assert divides(aggregate(select(indices, library.length - indices - 1), tokens))
    assert divides(library.counted("a") // 2 == 0)


def test_a_trial_is_named_by_what_is_unusual() -> None:
    nets = [TransformerFamily(), RecurrentFamily(state=4, d_embed=4), TransformerFamily(positions="rotary")]
    words: list[Words] = [("parity", N, net, Recipe()) for net in nets]
    one = subject("words", words, other_positions(words[0], 3, "alibi"))
    assert list(one.trials) == ["parity", "parity, LSTM", "parity, rotary", "parity, alibi"]
    assert [len(trial.seeds) for trial in one.trials.values()] == [8, 8, 8, 5]
    assert one.trials["parity, alibi"].recipe.steps == 3
    assert one.data["others"] == {"parity, alibi": ("parity", N, "alibi")}
    lengths = [trial.sandbox.longest for trial in one.trials.values()]
    assert lengths == [N] * 4


def test_means_are_taken_over_lengths_of_which_there_are_words() -> None:
    shares = np.array([[1.0, 0.5, np.nan, 0.0]])
    assert between(shares, 1, 2) == [0.75]
    assert between(shares, 2, 4) == [0.25]


def test_new_programs_say_what_they_should() -> None:
    word = list("cab|abc")
    assert evaluate(library.next_sorted("abcd", "|"), word, causal=True)[3:] == list("abc|")
    assert evaluate(library.copy_different("|"), list("cab|cab"), causal=True)[3:] == list("cab|")
    for copied in (library.copy_up_to("|", 3), library.copy_after("|")):
        assert evaluate(copied, list("aab|aab"), causal=True)[3:] == list("aab|")
    assert evaluate(library.most_frequent_of("abc"), list("bbaac"), causal=True) == list("bbbaa")
    assert evaluate(library.more("a", "b"), list("abaa"), causal=True) == [True, False, True, True]
    digits = list("2210")
    assert evaluate(library.sum_modulo(list("012")), digits, causal=True) == [2, 1, 2, 2]
    assert evaluate(library.sum_modulo_up_to(list("012"), 4), digits, causal=True) == [2, 1, 2, 2]
