"""Judging of learned claims about orders and depths: planted measurements hold, those of a null hypothesis do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from vitrify.claims import an_induction_head_learns_its_previous_token_head_last as induction
from vitrify.claims import deeper_transformers_learn_longer_permutation_word_problems as depth
from vitrify.claims import one_attention_layer_repairs_the_recall_of_a_recurrence as recall
from vitrify.claims import three_layers_select_the_lag_of_interleaved_chains as lags
from vitrify.claims import transformers_glitch_on_a_flip_flop_and_lstms_do_not as glitches
from vitrify.claims import two_or_three_one_head_layers_learn_markov_chains_up_to_order_three as orders
from vitrify.claims.catalogue import Claim, Subject
from vitrify.claims.trials import flip_flop
from vitrify.claims.trials.memories import among_equal, by_memory
from vitrify.claims.trials.memories import recall as all_items
from vitrify.claims.trials.trial import Trial, run_trial
from vitrify.learn.models.frozen_memories import MATCHES, OUTPUTS, PLACES, FrozenMemoriesFamily
from vitrify.learn.models.transformer import TransformerFamily
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.flip_flop import FlipFlop

Arrays = dict[str, np.ndarray[Any, Any]]
DRAWS = 40


def small(claim: Any) -> Subject:
    subject: Subject
    (subject,) = claim.subjects()
    return subject


def curves(subject: Subject, values: Mapping[str, Callable[[Any, int], Any]]) -> Arrays:
    """Return measurements "trial/name" [unit, step, …] from functions of the part of the training that is done."""
    arrays: Arrays = {}
    for name, trial in subject.trials.items():
        steps = np.array(trial.recipe.eval_steps())
        units = trial.shape[0]
        arrays[f"{name}/lengths"] = np.full(units, len(steps))
        for key, value in values.items():
            at, _, what = key.rpartition("/")
            if name.startswith(at):
                arrays[f"{name}/{what}"] = np.stack([value(steps / steps[-1], unit) for unit in range(units)])
    return arrays


def rejected(claim: Claim, subject: Subject, arrays: Arrays) -> dict[str, float]:
    """Return the share of the draws of each null that its statement rejects."""
    assert claim.judge is not None
    shares = {}
    for key, null in claim.nulls.items():
        rng = np.random.default_rng(1)
        verdicts = [claim.judge(subject, null(subject, arrays, rng)).statements[key] for _ in range(DRAWS)]
        shares[key] = float(np.mean([verdict != "holds" for verdict in verdicts]))
    return shares


def rise(at: float) -> Callable[[Any, int], Any]:
    """Return a curve from 0 to 1 around a part of the training, a little later in later units."""
    return lambda done, unit: 1 / (1 + np.exp(-60 * (done - at * (1 + 0.01 * unit))))


def constant(value: float) -> Callable[[Any, int], Any]:
    return lambda done, _: value + 0 * done


def memories(outputs: float, matches: float, positions: float, accuracy: float = 0.5) -> Arrays:
    def all_three(done: Any, unit: int) -> Any:
        return np.stack([rise(at)(done, unit) for at in (outputs, matches, positions)], axis=-1)

    def heads(done: Any, unit: int) -> Any:
        return np.stack([rise(0.4)(done, unit), rise(0.2)(done, unit)], axis=-1)

    planted = {"memories/recall": all_three, "memories/equal": all_three, "memories/accuracy": rise(accuracy)}
    planted |= {"transformer/back": heads, "transformer/match": heads, "transformer/accuracy": rise(0.5)}
    return curves(small(induction), planted)


def test_memories_in_the_published_order_hold_and_their_rivals_do_not() -> None:
    subject, arrays = small(induction), memories(0.2, 0.3, 0.7)
    assert set(induction.judge(subject, arrays).statements.values()) == {"holds"}
    assert all(share >= 0.9 for share in rejected(induction.CLAIM, subject, arrays).values())


def test_the_other_order_of_outputs_and_matches_is_reversed_and_one_position_too_early_fails() -> None:
    assert induction.judge(small(induction), memories(0.3, 0.2, 0.7)).statements["outputs"] == "reversed"
    assert induction.judge(small(induction), memories(0.2, 0.3, 0.25)).statements["positions"] == "fails"


def test_recall_among_equally_many_items_is_full_for_ideal_memories_and_chance_for_empty_ones() -> None:
    sandbox = small(induction).trials["memories"].sandbox
    family = FrozenMemoriesFamily(d_model=512)
    net = family.architecture(sandbox)
    shapes = net.shapes()
    zero = {name: jnp.zeros(shapes[name]) for name in (PLACES, MATCHES, OUTPUTS)}
    arrays = {name: jnp.asarray(array) for name, array in family.arrays(net, zero).items()}
    triggers = np.asarray(sandbox.prior > 0)
    tokens, places = arrays["embed.W_E"][1:], arrays["pos_embed.W_pos"]
    fetched = tokens @ arrays["blocks.0.attn.W_V"][0]
    read = tokens @ arrays["blocks.1.attn.W_V"][0]
    ideal = {
        OUTPUTS: (read.T @ arrays["unembed.W_U"].T)[None],
        MATCHES: (fetched[triggers].T @ tokens[triggers])[None],
        PLACES: (places[:-1].T @ places[1:])[None],
    }
    full = np.asarray(among_equal(triggers, None, {**arrays, **ideal}, None, None))  # type: ignore[arg-type]
    assert np.allclose(full, 1, atol=0.02)
    assert np.allclose(full, all_items(triggers, None, {**arrays, **ideal}, None, None), atol=0.05)  # type: ignore[arg-type]
    empty = np.asarray(among_equal(triggers, None, arrays, None, None))  # type: ignore[arg-type]
    assert np.allclose(empty, 1 / triggers.sum(), atol=0.15)


def test_the_steps_of_memories_are_those_of_their_curves() -> None:
    flat = np.array([[[0.0, 0.0, 0.0], [0.9, 0.0, 1.0], [1.0, 0.9, 1.0]]])
    when = by_memory(flat, [0, 10, 20])[1]
    assert {name: step.tolist() for name, step in when.items()} == {"outputs": [10], "matches": [20], "positions": [9]}


def lag_curves(three: float, one: float) -> Arrays:
    subject = small(lags)
    planted = {
        "3/late": lambda done, unit: 0.4 * (three + (1 - three) * np.exp(-6 * done)) + 0.002 * unit,
        "1/late": lambda done, unit: 0.4 * (one + (1 - one) * np.exp(-30 * done)) + 0.001 * unit,
    }
    return curves(subject, planted) | {f"{name}/known": np.array([0.4, 0.6]) for name in subject.trials}


def test_lags_selected_by_three_layers_hold_in_parts_of_what_averaging_costs() -> None:
    subject, arrays = small(lags), lag_curves(0.1, 0.7)
    assert set(lags.judge(subject, arrays).statements.values()) == {"holds"}
    assert all(share >= 0.9 for share in rejected(lags.CLAIM, subject, arrays).values())
    assert lags.judge(subject, lag_curves(0.5, 0.7)).statements["three"] == "fails"
    assert lags.judge(subject, lag_curves(0.1, 1.1)).statements["average"] == "fails"


def test_a_layer_that_only_needs_twice_the_steps_is_told_from_one_that_has_stopped() -> None:
    subject = small(orders)
    planted = {
        "1/excess": lambda done, unit: 0.05 + 0.001 * unit + 0.1 * np.exp(-20 * done),
        "2/excess": lambda done, unit: 0.001 * unit + 0.1 * (1 - rise(0.3)(done, unit)),
        "3/excess": lambda done, unit: 0.001 * unit + 0.1 * (1 - rise(0.3)(done, unit)),
        "/floor": constant(0.5),
        "/floor.unigram": constant(0.56),
        "/floor.uniform": constant(0.7),
    }
    arrays = curves(subject, planted)
    assert set(orders.judge(subject, arrays).statements.values()) == {"holds"}
    assert all(share >= 0.9 for share in rejected(orders.CLAIM, subject, arrays).values())


@pytest.mark.parametrize(("letters", "verdict"), [(2, "holds"), (1, "fails")])
def test_a_deeper_net_must_be_right_by_more_than_one_letter(letters: int, verdict: str) -> None:
    subject = small(depth)
    ends = {"1 layer": 3, "2 layers": 3 + letters, "4 layers": 3 + 2 * letters, "1 layer run 4 times": 3 + letters}
    arrays: Arrays = {}
    for name, trial in subject.trials.items():
        right = 0.2 + 0.8 / (1 + np.exp(2 * (np.arange(1, trial.sandbox.length + 1) - ends[name])))
        right[:2] = 1.0
        arrays[f"{name}/right"] = np.tile(right, (len(trial.seeds), 2, 1))
        arrays[f"{name}/lengths"] = np.full(len(trial.seeds), 2)
    assert set(depth.judge(subject, arrays).statements.values()) == {verdict}
    assert set(rejected(depth.CLAIM, subject, arrays).values()) == {1.0}


def test_a_recurrence_that_recalls_no_few_pairs_says_nothing_about_many() -> None:
    subject = small(recall)

    def planted(few: float) -> Arrays:
        final = {"recurrence, 3": few, "recurrence, 6": 0.4, "hybrid": 1.0, "transformer": 1.0}
        return curves(subject, {f"{name}/accuracy": constant(at) for name, at in final.items()})

    assert set(recall.judge(subject, planted(1.0)).statements.values()) == {"holds"}
    assert recall.judge(subject, planted(0.35)).statements["recurrence"] == "undecided"
    many = replace(subject, trials={name: replace(t, seeds=range(16)) for name, t in subject.trials.items()})
    assert all(
        share >= 0.9
        for share in rejected(
            recall.CLAIM, many, {name: np.repeat(array[:1], 16, axis=0) for name, array in planted(1.0).items()}
        ).values()
    )


def flips(near: float, beyond: float, tailed: float = 0.001) -> Arrays:
    """Return counts of nets that are right in training, with these error rates on the judged tail."""
    subject, bins = small(glitches), len(flip_flop.EDGES)
    arrays: Arrays = {}
    for name, trial in subject.trials.items():
        arrays[f"{name}/reads"] = np.full((3, len(trial.trained_seeds), bins), 20_000.0)
        wrong = np.zeros_like(arrays[f"{name}/reads"])
        if name == flip_flop.PLAIN:
            wrong[2, :, :-1], wrong[2, :, -1] = 20_000 * near, 20_000 * beyond
        if name == flip_flop.TAILED:
            wrong[2] = 20_000 * tailed
        arrays[f"{name}/wrong"] = wrong
    return arrays


def test_glitches_at_trained_distances_hold_and_those_of_new_distances_alone_do_not() -> None:
    subject, arrays = small(glitches), flips(0.05, 0.1)
    assert set(glitches.judge(subject, arrays).statements.values()) == {"holds"}
    assert all(share >= 0.9 for share in rejected(glitches.CLAIM, subject, arrays).values())
    assert glitches.judge(subject, flips(0.0, 0.5)).statements | {"LSTM": ""} == {
        "tails": "holds",
        "distances": "fails",
        "repair": "holds",
        "LSTM": "",
    }
    assert glitches.judge(subject, flips(0.05, 0.1, tailed=0.02)).statements["repair"] == "fails"


def test_the_longest_distance_that_counts_as_trained_on_occurs_once_in_ten_thousand_reads() -> None:
    law = flip_flop.P_WRITE * (1 - flip_flop.P_WRITE) ** (np.arange(1, 200) - 1)
    assert int((law >= flip_flop.MIN_OCCURRENCE).sum()) == flip_flop.MAX_TRAINED_DISTANCE


@pytest.mark.slow
def test_reads_by_distance_add_up_to_those_of_an_evaluation() -> None:
    family = TransformerFamily(layers=1, heads=1, d_model=8, units=8)
    trial = Trial(FlipFlop.ffl(0.8, 32), family, Recipe(steps=2, batch=2, test_examples=4), (3, 4))
    nets = run_trial(trial, None)
    each, one = (flip_flop.counted(nets, (64, 64, 64), 32, by_distance=by) for by in (True, False))
    for by_bin, total in zip(each, one, strict=True):
        assert by_bin.shape == (3, 2, len(flip_flop.EDGES))
        assert np.array_equal(by_bin.sum(axis=-1), total[..., 0])
    shares = each[0][0].sum(axis=0) / each[0][0].sum()
    assert shares[0] > shares[2] / 4 > 0
    assert shares[-1] == 0
