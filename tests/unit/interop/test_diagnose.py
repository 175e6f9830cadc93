"""The battery: scores of models whose answers are known, budgets, references, and what the atlas says beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vitrify.claims.catalogue import listing
from vitrify.errors import InputError
from vitrify.interop.diagnose.battery import Budget, Diagnosis, TaskScore, diagnose
from vitrify.interop.diagnose.references import CLAIMS, GLITCHES, KINDS, TABLE, agreement, law, nearest, recorded
from vitrify.interop.diagnose.tasks import KnownScores, asked_rows, battery, chosen, training_rows

EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"
TASKS = battery()


def words(task: str, tokens: Any) -> list[list[str]]:
    """Rows as the symbols that they stand for, without the one that begins them."""
    return [[TASKS[task].vocabulary[token] for token in row[1:]] for row in tokens]


def answered(task: str, tokens: Any, answer: Any) -> Any:
    """Logits that are sure of what a function of the symbols so far says, None where nothing is asked."""
    vocabulary = TASKS[task].vocabulary
    found = np.zeros((*tokens.shape, len(vocabulary)))
    for row, symbols in enumerate(words(task, tokens)):
        for place in range(1, tokens.shape[1]):
            said = answer(symbols[:place])
            if said is not None:
                found[row, place, vocabulary.index(said)] = 1.0
    return found


def recall(read: list[str]) -> str | None:
    told = {key: value for key, value in zip(read[0:32:2], read[1:32:2], strict=False) if value[0] == "v"}
    return told.get(read[-1]) if len(read) > 16 else None


def composition(read: list[str]) -> str | None:
    if not read[-1].startswith("x="):
        return None
    told = dict(entry.split("=") for entry in read[:-1])
    return told[f"f{told['g' + read[-1][2:]]}"]


def permutations(read: list[str]) -> str:
    at = 0
    for swap in read:
        one, other = map(int, swap[1:-1].split(","))
        at = other if at == one else one if at == other else at
    return str(at)


def brackets(read: list[str]) -> str | None:
    stack: list[str] = []
    for bracket in read:
        stack = [*stack, bracket[1:]] if bracket[0] == "(" else stack[:-1]
    return f"){stack[-1]}" if stack else None


def flip_flop(read: list[str]) -> str | None:
    return next((read[at + 1] for at in range(len(read) - 2, -1, -1) if read[at] == "w"), None)


def induction(read: list[str]) -> str | None:
    return next((read[at + 1] for at in range(len(read) - 2, -1, -1) if read[at] == read[-1]), None)


def copying(read: list[str]) -> str | None:
    if "|" not in read:
        return None
    end = read.index("|")
    done = len(read) - end - 1
    return read[done] if done <= end else None


def majority(read: list[str]) -> str:
    return "yes" if 2 * read.count("1") > read.count("0") + read.count("1") else "no"


ORACLES = {
    "recall": recall,
    "copying": copying,
    "induction": induction,
    "composition": composition,
    "parity": lambda read: str(read.count("1") % 2),
    "permutations": permutations,
    "brackets": brackets,
    "flip-flop": flip_flop,
    "majority": majority,
}


def asked(task: str, answer: Any, **options: Any) -> Diagnosis:
    return diagnose(
        lambda tokens: answered(task, tokens, answer), tasks=[task], budget=Budget(rows=16, batch=4), **options
    )


def check_oracle(task: str) -> None:
    found = asked(task, ORACLES[task])
    assert [cell.test for cell in found.cells] == [test.name for test in TASKS[task].tests]
    for cell in found.cells:
        assert cell.mean == 1.0 == cell.known.optimum
        assert cell.known.chance < 1.0
        assert cell.interval[0] < 1.0  # one model is no proof: the interval is over its rows


@pytest.mark.parametrize("task", ["parity", "composition"])
def test_who_knows_the_answers_has_the_optimum(task: str) -> None:
    check_oracle(task)


@pytest.mark.slow
@pytest.mark.parametrize("task", sorted({*ORACLES} - {"parity", "composition"}))
def test_who_knows_the_answers_has_the_optimum_on_every_task(task: str) -> None:
    check_oracle(task)


def test_every_task_has_an_oracle_here() -> None:
    assert set(ORACLES) == set(TASKS)


def test_who_answers_one_place_late_is_no_better_than_chance() -> None:
    found = asked("parity", lambda read: str(read[:-1].count("1") % 2))
    assert all(0.3 < cell.mean < 0.7 and cell.known.chance == 0.5 for cell in found.cells)
    assert found.solved() == {"parity": False}


def tiny(vocabulary: int, length: int, seed: int) -> Any:
    """A bag of embeddings that decays, as a pair of JAX."""
    del length
    one, two = jax.random.split(jax.random.key(seed))
    return {"in": jax.random.normal(one, (vocabulary, 8)), "out": jax.random.normal(two, (8, vocabulary))}, decaying


def decaying(parameters: Any, tokens: Any) -> Any:
    return jnp.tanh(jnp.cumsum(parameters["in"][tokens], axis=1)) @ parameters["out"]


SMALL = Budget(steps=20, batch=4, seeds=(0, 1), rates=(1e-3, 0.05), rows=16)


@pytest.fixture(scope="module")
def trained() -> Diagnosis:
    return diagnose(tiny, tasks=["parity"], budget=SMALL, kind="positive", evidence=EVIDENCE)


def test_a_pair_of_jax_is_trained_and_the_best_rate_is_chosen(trained: Diagnosis) -> None:
    assert trained.learns
    assert trained.trainings["parity"]["rate"] == 0.05
    assert trained.trainings["parity"]["steps"] == [20, 20]
    assert max(trained.trainings["parity"]["loss"]) < 0.8  # from log 3 and more
    assert "20 steps of 4 sequences" in trained.domain


def test_what_was_found_is_plain_data_and_the_same_again(trained: Diagnosis) -> None:
    found = trained.to_json()
    assert json.loads(json.dumps(found)) == found
    again = diagnose(tiny, tasks=["parity"], budget=SMALL, kind="positive")
    assert [cell.accuracy for cell in again.cells] == [cell.accuracy for cell in trained.cells]


def test_the_table_has_theorem_agreement_and_recorded_references(trained: Diagnosis) -> None:
    near, far = trained.to_json()["cells"]
    assert "theorem" not in near
    assert far["theorem"]["id"] == "R24"
    assert far["agreement"] == "as predicted"
    kept = json.loads((EVIDENCE / f"{TABLE}.json").read_text())["evidence"]["parts"]["the table"]["figure"]
    row, column = kept["architectures"].index("LSTM"), kept["tasks"].index("parity")
    assert far["references"]["LSTM"] == pytest.approx(np.median(np.array(kept["accuracy"][row][column])[:, 1]))
    assert all(one["measured"].startswith("recorded, G4: ") for one in trained.to_json()["references"])


def test_a_budget_of_seconds_ends_training_and_says_so() -> None:
    found = diagnose(
        Own, tasks=["parity"], budget=Budget(steps=10**6, batch=4, seeds=(0,), rates=(1.0,), seconds=0.3, rows=16)
    )
    (steps,) = found.trainings["parity"]["steps"]
    assert 1 <= steps < 10**6
    assert any("the budget ended training" in note for note in found.notes)


class Own:
    """A model that trains itself: biases of its own, and the rows that it saw."""

    seen: list[Any] = []  # noqa: RUF012

    def __init__(self, vocabulary: int, length: int, seed: int) -> None:
        self.bias = np.random.default_rng(seed).normal(size=vocabulary)
        self.length = length

    def logits(self, tokens: Any) -> Any:
        return np.broadcast_to(self.bias, (*tokens.shape, len(self.bias)))

    def step(self, tokens: Any, targets: Any, weights: Any) -> float:
        assert tokens.shape == targets.shape == weights.shape
        assert tokens.shape[1] <= self.length
        self.seen.append(tokens)
        np.add.at(self.bias, targets, 0.01 * weights)
        return 1.0


def test_every_model_sees_the_same_rows_which_are_those_of_the_sandbox() -> None:
    task = TASKS["parity"]
    Own.seen.clear()
    diagnose(Own, tasks=["parity"], budget=Budget(steps=18, batch=4, seeds=(5,), rates=(1.0,), rows=16))
    drawn = training_rows(task, 5, 64, 64).tokens
    assert np.array_equal(Own.seen[-1], drawn[4:8])  # the rows 68 to 71, in the eighteenth step
    asked_about = asked_rows(task, task.tests[0], 16)[0].tokens
    assert not (drawn[:, None] == asked_about).all(axis=-1).any()


def test_a_training_that_breaks_is_told_and_not_chosen() -> None:
    class Breaks(Own):
        count = 0

        def step(self, tokens: Any, targets: Any, weights: Any) -> float:
            Breaks.count += 1
            return float("nan") if Breaks.count > 5 else super().step(tokens, targets, weights)

    found = diagnose(Breaks, tasks=["parity"], budget=Budget(steps=9, batch=4, seeds=(0,), rates=(1.0,), rows=16))
    assert any("broke at step" in note for note in found.notes)


def test_laws_name_claims_of_their_rows() -> None:
    rows = {headline.name: headline.fields["id"] for headline in listing()}
    for (row, _), claim in CLAIMS.items():
        assert rows[claim] == row
    said = {(kind, task): law(kind, task) for kind in KINDS for task in TASKS}
    assert said["LSTM", "parity"] == (True, "R24", CLAIMS["R24", ""])
    assert said["positive", "parity"] == (False, "R24", CLAIMS["R24", "diagonal"])
    assert said["one layer", "composition"] == (False, "B3", "one_layer_errs_on_composition")
    assert all(rows[one.claim] == one.id for one in said.values() if one)
    assert said["positive", "majority"] is None
    words = {(one.id, one.words) for one in said.values() if one}
    assert {("B5", "takes state"), ("B8", "can't, if TC0 ≠ NC1"), ("G1", "does"), ("G3", "does not")} <= words


def test_agreement_tells_walls_from_costs_and_measurements() -> None:
    assert agreement(True, law("LSTM", "parity")) == "as predicted"
    assert agreement(False, law("LSTM", "parity")) == "allowed, not found"
    assert agreement(True, law("transformer", "parity")) == "found against a theorem"
    assert agreement(True, law("LSTM", "recall")) == "its state suffices"
    assert agreement(True, law("looped", "parity")) == "its depth suffices"
    assert agreement(True, law("transformer", "flip-flop")) == "better than was measured"
    assert agreement(True, None) == "no theorem"


def cell(task: str, test: str, *accuracy: float, **more: Any) -> TaskScore:
    judged = TASKS[task].judged == test
    return TaskScore(
        task, test, 9, judged, accuracy, accuracy, KnownScores(1.0, 0.0, 0.5), 100, TASKS[task].solved, **more
    )


def test_flip_flops_are_judged_only_where_they_were_learned() -> None:
    tail = cell("flip-flop", "dense tail", 0.97, 0.97)
    found = Diagnosis("it", "transformer", True, Budget(), (tail,))
    assert found.said(tail)["agreement"] == "as predicted"  # 0.03 of reads are wrong
    assert found.solved() == {"flip-flop": False}
    unlearnt = replace(tail, open=True)
    assert found.said(unlearnt)["agreement"] == "not learned as trained"
    assert replace(found, cells=(unlearnt,)).solved() == {}


def test_intervals_are_over_seeds_and_inside_of_what_is_possible() -> None:
    assert cell("parity", "as trained", 0.9, 1.0).interval == pytest.approx((0.315, 1.0), abs=1e-3)
    assert cell("parity", "as trained", 0.5).interval == pytest.approx((0.398, 0.602), abs=1e-3)


def test_scores_say_what_a_model_is_like() -> None:
    assert nearest({"parity": True, "permutations": True, "recall": False}) == ["LSTM", "reflections"]
    assert nearest({"parity": False, "permutations": False, "recall": True, "induction": True})[0] == "transformer"
    assert nearest({}) == []


def _put(folder: Path, kept: Mapping[str, Any]) -> None:
    for name, evidence in kept.items():
        (folder / f"{name}.json").write_text(json.dumps(evidence))


def test_recorded_references_are_those_of_the_same_size(tmp_path: Path) -> None:
    tasks = chosen(["flip-flop", "brackets"])
    (lstm,) = [one for one in recorded(EVIDENCE, tasks) if one.name == "LSTM"]
    assert "steps: 2,000, batch: 32" in lstm.measured
    assert {task for task, _ in lstm.scores} == {"brackets"}  # flip-flops are recorded with rows of 512
    kept = {name: json.loads((EVIDENCE / f"{name}.json").read_text()) for name in (TABLE, GLITCHES)}
    (flip_flops,) = kept[GLITCHES]["evidence"]["parts"].values()
    flip_flops["domains"][0]["settings"]["tokens"] = 64
    _put(tmp_path, kept)
    (lstm,) = [one for one in recorded(tmp_path, tasks) if one.name == "LSTM"]
    assert lstm.scores["flip-flop", "dense tail"] == 1.0
    flip_flops["domains"][0]["settings"]["tokens"] = 512
    kept[TABLE]["evidence"]["parts"]["the table"]["figure"]["lengths"] = [[7, 14]] * 7
    _put(tmp_path, kept)
    assert recorded(tmp_path, tasks) == []
    assert recorded(tmp_path / "nowhere", chosen(["parity"])) == []


@pytest.mark.slow
def test_references_are_trained_beside_it() -> None:
    budget = Budget(steps=60, batch=16, seeds=(0,), rates=(0.01,), rows=32)
    found = diagnose(Own, tasks=["parity"], budget=budget, references=["LSTM"])
    (one,) = found.beside
    assert one.name == "LSTM (trained now)"
    assert "60 steps of 16 sequences" in one.measured
    assert set(one.scores) == {("parity", "as trained"), ("parity", "twice as long")}


def test_a_budget_must_make_sense() -> None:
    with pytest.raises(InputError, match=r"steps must be .* of at least 1, not 0; seeds must be a list .*; rates"):
        Budget(steps=0, seeds=(), rates=(-1.0,))
