"""Programs of tasks at any length: they answer as the sandboxes do, and what they are made of is told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cases import each
from vitrify.claims import tasks_with_short_programs_generalize_in_length_but_parity_does_not as claim
from vitrify.claims.trials.lengths import Words, between, other_positions, pairs, subject
from vitrify.claims.trials.programs import TASKS, TIMES, divides, frequent, length, shortest_program, wrong
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
    known = TASKS[task].programs(TIMES * N, TIMES * N)
    for root in known:
        assert [wrong(task, N, root, at) for at in range(1, TIMES * N + 1)] == [0] * (TIMES * N)
    assert [divides(root) for root in known] == ([True, False] if task in GROWING else [False])
    sizes = [length(shortest_program(task, N, most)) for most in (N, 2 * N, 4 * N)]
    assert sizes == sorted(set(sizes)) if task in GROWING else len(set(sizes)) == 1
    assert length(TASKS[task].programs(N, TIMES * N)[0]) == length(known[0])


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
    one = subject("words", words, other_positions(words[0], 3, "alibi"), range(8))
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


def test_the_most_frequent_answer_is_found_by_length() -> None:
    shares = frequent("majority", N)
    assert len(shares) == TIMES * N
    assert all(0.5 <= share <= 0.85 for share in shares)
    assert max(frequent("sort", N)[N : 2 * N]) < 0.1


def planted(generalizes: bool) -> dict[str, Any]:
    """Accuracies of nets that are right on long words exactly for short programs, or the other way round."""
    arrays: dict[str, Any] = {}
    (own,), rng = claim.large(), np.random.default_rng(0)
    for part in ("judged", "others"):
        for name, (_, n, kind) in own.data[part].items():
            growing = name in GROWING
            right = np.ones((len(own.trials[name].seeds), 1, TIMES * n + 1))
            right -= 0.005 * rng.random(right.shape)
            if kind == "learned" and growing == generalizes:
                right[..., n + 1 :] *= 0.5
            arrays |= {f"{name}/right": right, f"{name}/lengths": np.ones(len(right), int)}
            arrays |= {f"{name}/program": np.array([9, 9 + growing]), f"{name}/mistakes": np.zeros(4)}
            arrays[f"{name}/guess"] = np.full(TIMES * n, 0.5 if len(own.trials[name].sandbox.answers) < 4 else 0.02)
    return arrays


def test_statements_hold_where_they_are_planted_and_nulls_are_rejected() -> None:
    (own,), arrays, rng = claim.large(), planted(True), np.random.default_rng(1)
    assert pairs(own) == [("majority", "parity"), ("copy different letters", "copy repeated letters")]
    assert claim.judge(own, arrays).statements == dict.fromkeys(claim.PLAN.statements, "holds")
    for key, null in claim.CLAIM.nulls.items():
        verdicts = [claim.judge(own, null(own, arrays, rng)).statements[key] for _ in range(20)]
        assert verdicts.count("holds") <= 1
    other = claim.judge(own, planted(False)).statements
    assert other == {**dict.fromkeys(other, "fails"), "apart": "reversed", "recurrent": "holds"}


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
