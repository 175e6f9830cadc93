"""Programs of tasks at any length: they answer as the sandboxes do, and what they are made of is told apart."""

from __future__ import annotations

import numpy as np
import pytest

from vitrify.claims._lengths import TASKS, TIMES, Trial, between, divides, length, wrong
from vitrify.learn.models.recurrent import RecurrentFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.spec import programs as library
from vitrify.spec.program import aggregate, choose, evaluate, indices, select, tokens

N = 3
GROWING = {"parity", "sum modulo 3", "copy repeated letters"}


def trial(task: str) -> Trial:
    return Trial(task, N, TransformerFamily(), Recipe())


@pytest.mark.parametrize("task", TASKS)
def test_programs_answer_as_the_task_does_at_every_length(task: str) -> None:
    one = trial(task)
    for free in (False, True):
        root = one.text(TIMES * N, free)
        assert [wrong(one, root, at) for at in range(1, TIMES * N + 1)] == [0] * (TIMES * N)
        assert divides(root) == (free and task in GROWING)
    sizes = [length(one.text(most)) for most in (N, 2 * N, 4 * N)]
    assert sizes == sorted(set(sizes)) if task in GROWING else len(set(sizes)) == 1
    assert length(one.text(N, free=True)) == length(one.text(4 * N, free=True))


def test_a_program_for_shorter_words_is_caught() -> None:
    for task in GROWING:
        one = trial(task)
        assert wrong(one, one.text(N), N) == 0
        assert wrong(one, one.text(N), 4 * N) > 0
    assert wrong(trial("majority"), choose(library.more("0", "1"), "yes", "no"), 5) > 0


def test_what_looks_at_a_computed_place_divides() -> None:
    assert not divides(aggregate(select(indices, indices - 3), tokens))
    assert divides(aggregate(select(indices, library.length - indices - 1), tokens))
    assert divides(library.counted("a") // 2 == 0)


def test_a_trial_is_named_by_what_is_unusual() -> None:
    lstm = Trial("parity", N, RecurrentFamily(state=4, d_embed=4), Recipe())
    rotary = Trial("parity", N, TransformerFamily(positions="rotary"), Recipe())
    assert [one.name for one in (trial("parity"), lstm, rotary)] == ["parity", "parity, LSTM", "parity, rotary"]


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
