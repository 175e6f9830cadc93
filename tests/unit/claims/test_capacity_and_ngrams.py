"""What claims about stored facts and learned n-gram models measure, against brute force."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import jax
import numpy as np
import pytest

from vitrify.claims import ngram_models_are_harder_with_order_alphabet_and_rank as claim
from vitrify.claims import trained_memories_store_facts_in_proportion_to_their_parameters as stored
from vitrify.claims.trials import ngrams
from vitrify.claims.trials.ladders import bits_of, crossing, facts_of
from vitrify.learn.models.memory import MemoryFamily
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.catalogue import examples
from vitrify.sandboxes.ngram_family import NGramFamily


def test_what_is_stored_is_where_the_accuracy_first_falls_below_99_percent() -> None:
    assert crossing([10, 20, 40], [0.5, 1.0, 0.5]) == 10
    assert crossing([10, 20, 40], [1.0, 1.0, 0.995]) == 40
    assert abs(crossing([10, 20, 40], [1.0, 0.999, 0.9]) - 20 * 2**0.5) < 1e-9  # errors 1/1000, 1/100, 1/10
    assert 20 < crossing([10, 20, 40], [1.0, 1.0, 0.5]) < 40


def test_ladders_are_of_bits_per_parameter() -> None:
    for subject in (*stored.subjects(), *stored.large()):
        ((_, trial),) = subject.trials.items()
        family, facts, loads = trial.family, subject.data["relations"], subject.data["loads"]
        assert isinstance(family, MemoryFamily)
        (points,) = trial.axes.values()
        parts = list(dict.fromkeys(part for part, _ in points))
        for part, size, rungs in zip(parts, subject.data["parameters"], subject.data["counts"], strict=True):
            own, width = replace(family, part=part), round(part * family.d_model)
            heads = int(np.asarray(own.used(own.heads)).sum())
            times = own.heads * stored.D_HEAD / own.d_model  # 0, 1 or 2
            assert abs(heads * stored.D_HEAD - times * width) <= stored.D_HEAD / 2  # whole heads
            units = int(np.asarray(own.used(own.units)).sum())
            assert units == (4 * width if own.units else 0)
            assert size == own.size() == (4 * heads * stored.D_HEAD * width + 2 * units * width or width**2)
            for count, load in zip(rungs, loads, strict=True):
                assert abs(bits_of(count, facts) - load * size) <= bits_of(count + 1, facts) - bits_of(count, facts)
            assert all(one < two for one, two in pairwise(rungs))
        shares = [share for _, share in points]
        assert max(shares) <= 1
        assert max(shares) > 0.99


def test_facts_in_proportion_hold_and_a_size_that_is_bound_by_steps_does_not() -> None:
    rng = np.random.default_rng(0)
    for subject in stored.subjects():
        sizes, counts = np.array(subject.data["parameters"]), subject.data["counts"]
        bits = 1.5 * sizes[:, None] * np.exp(0.02 * rng.normal(size=(len(sizes), 8)))
        facts = np.vectorize(lambda each, own=subject.data["relations"]: facts_of(each, own))(bits).astype(float)
        accuracy = np.ones((len(sizes), len(counts[0]), 8))
        accuracy[:, -1] = 0.5
        measured = {f"{subject.name}/accuracy": accuracy, f"{subject.name}/facts": facts}
        assert stored.judge(subject, measured).statements == {subject.name: "holds"}
        bound = stored.bound_by_steps(subject, measured, rng)
        assert stored.judge(subject, bound).statements == {subject.name: "fails"}


def test_effects_are_found_where_they_are() -> None:
    cells = [(n, used, rank) for n in (2, 4) for used in (4, 16) for rank in (1, 5)]
    rng = np.random.default_rng(0)
    noise = 0.01 * rng.normal(size=(8, 6))
    truth = np.array([0.3 * n + 0.7 * np.log(used) + 0.05 * rank for n, used, rank in cells])
    each, explained = ngrams.fitted(cells, np.exp(truth[:, None] - 3 + noise))
    np.testing.assert_allclose(each.mean(axis=0), [0.3, 0.7, 0.05], atol=0.02)
    assert explained > 0.99


def test_an_effect_is_taken_away_and_the_others_stay() -> None:
    (grid, _), rng = claim.large(), np.random.default_rng(0)
    cells, noise = grid.data["cells"], 0.05 * rng.normal(size=(24, 8))
    truth = np.array([0.5 * n + np.log(used) + 0.1 * rank for n, used, rank in cells])[:, None] + noise
    arrays = {"grid/kl": np.exp(truth - 9)[..., None], "grid/lengths": np.ones((24, 8), int)}
    arrays |= {"grid/floor.uniform": np.full((24, 8, 1), 9.0), "grid/floor": np.zeros((24, 8, 1))}
    assert set(claim.judge(grid, arrays).statements.values()) == {"holds"}
    null = ngrams.without_effect(grid, arrays, rng, name="n")
    verdicts = claim.judge(grid, null).statements
    assert verdicts == {"order": "undecided", "alphabet": "holds", "rank": "holds"}


def test_a_step_is_chosen_on_the_other_seeds() -> None:
    curves = np.array([[3.0, 1.0, 2.5], [3.0, 2.0, 1.0], [3.0, 2.0, 1.5]])
    assert ngrams.stopped(curves).tolist() == [2.5, 2.0, 2.0]


def test_equally_good_nets_are_rejected() -> None:
    (_, counts), rng = claim.large(), np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for family, ratio in (("general", 3.0), ("shared", 0.5)):
        kl = ratio * np.exp(0.1 * rng.normal(size=(8, 1))) * np.array([1.0, 1.2])
        arrays |= {f"{family}/kl": kl, f"{family}/counts": np.ones(8), f"{family}/lengths": np.full(8, 2)}
        arrays |= {f"{family}/floor.uniform": np.full((8, 2), 9.0), f"{family}/floor": np.zeros((8, 2))}
        arrays |= {f"{family}/step": np.zeros((8, 2))}
    assert claim.judge(counts, arrays).statements == {"general": "holds", "shared": "holds"}
    for family in claim.FAMILIES:
        null = ngrams.equally_good(counts, arrays, rng, family=family)
        assert np.isclose(np.log(null[f"{family}/kl"])[:, 0].mean(), 0, atol=0.2)
        assert claim.judge(counts, null).statements[family] != "holds"


@pytest.mark.slow
def test_smoothed_counts_are_those_of_the_strings() -> None:
    """Against dictionaries of tuples, with the weight that the function should have chosen."""
    box = NGramFamily(3, 3, 2, length=6, n=3, used=3, rank=2, task=1)
    recipe = Recipe(train_examples=30, test_examples=20)

    def strings(split: str, seed: int, count: int) -> list[list[int]]:
        found: list[list[int]] = np.asarray(examples(box, seed, split, 0, count).targets).tolist()  # type: ignore[arg-type]
        return found

    def places(words: list[list[int]]) -> list[tuple[tuple[int, ...], int]]:
        padded = [[3, 3, *word] for word in words]
        return [(tuple(word[t : t + 2]), word[t + 2]) for word in padded for t in range(6)]

    counts = Counter(places(strings("train", 1, 30)))

    def said(context: tuple[int, ...], weight: float) -> Any:
        own = np.array([counts[context, symbol] for symbol in range(3)]) + weight
        return np.log(own / own.sum())

    best = min(ngrams.LAMBDAS, key=lambda x: -sum(said(c, x)[s] for c, s in places(strings("probe", 1, 30))))
    test = examples(box, 0, "test", 0, 20)
    true = np.asarray(jax.vmap(box.optimal)(test), np.float64).reshape(-1, 3)
    asked = places(np.asarray(test.targets).tolist())
    wanted = np.mean([(np.exp(p) * (p - said(c, best))).sum() for p, (c, _) in zip(true, asked, strict=True)])
    found = ngrams.smoothed(box, (5, 1), recipe)  # models 5 and 1: the second is the box
    assert abs(found[1] - wanted) < 1e-6
    assert abs(found[0] - wanted) > 1e-3
