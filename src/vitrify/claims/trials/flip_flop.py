"""Flip-flop language modeling: trials, error rates on sparser and denser sequences, and rival explanations.

    counted                  reads and wrong reads of each net on every test set, by distance from the last write
    over_same_distances      errors on a tail over those that the same distances have in training
    some_seeds, …            null hypotheses, as measurements

Distances are numbers of instructions, in bins that begin at `EDGES`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from vitrify.arrays import Array
from vitrify.claims.catalogue import Subject
from vitrify.claims.protocol.measurements import Measured
from vitrify.claims.trials.trial import Trained, Trial, measured, trained
from vitrify.learn.evaluation import evaluate
from vitrify.learn.measure import TEST_SEED, aligned
from vitrify.learn.models.catalogue import Family
from vitrify.learn.recipe import Recipe
from vitrify.sandboxes.catalogue import examples
from vitrify.sandboxes.flip_flop import DENSE, SPARSE, WRITE, FlipFlop

P_IGNORE = 0.8  # in training
TRAINING, SPARSE_TAIL, DENSE_TAIL = (f"P(ignore) = {p:g}" for p in (P_IGNORE, SPARSE, DENSE))
TAILS = {TRAINING: P_IGNORE, SPARSE_TAIL: SPARSE, DENSE_TAIL: DENSE}
TAIL_SEEDS, TAIL_SHARE = 5, 0.2  # the first seeds also have this share of tail sequences in training
PLAIN, TAILED = "transformer", "with tail sequences"
MIN_OCCURRENCE = 1e-4  # of a distance in training, for it to count as trained on
P_WRITE = (1 - P_IGNORE) / 2
MAX_TRAINED_DISTANCE = 1 + math.floor(
    math.log(MIN_OCCURRENCE / P_WRITE) / math.log(1 - P_WRITE)
)  # the longest such distance
EDGES = (
    1,
    2,
    4,
    8,
    16,
    32,
    MAX_TRAINED_DISTANCE + 1,
)  # first distances of the bins; the last bin is beyond what is trained on
NULL_RATE = 1e-4  # wrong reads of an LSTM that errs after all
Net: TypeAlias = tuple[Family, Recipe, tuple[int, int, int], int]  # test sequences by tail; sequences at once


def flip_flop_subject(
    name: str, nets: dict[str, Net], tokens: int, seeds: Sequence[int], thresholds: Mapping[str, object]
) -> Subject:
    """Return every net on all seeds, and transformers trained with tail sequences on the first seeds."""
    sandbox, trials = FlipFlop.ffl(P_IGNORE, tokens), {}
    for net, (family, recipe, _, _) in nets.items():
        trials[net] = Trial(sandbox, family, recipe, seeds)
        if net == PLAIN:
            trials[TAILED] = Trial(sandbox, family, recipe, seeds[:TAIL_SEEDS], {"tails": (TAIL_SHARE,)})
    tests = {net: nets[PLAIN if net == TAILED else net][2:] for net in trials}
    return Subject(name, data={"tokens": tokens, "tests": tests, **thresholds}, trials=trials)


def measure(subject: Subject) -> Measured:
    """Return all curves, and for each net the numbers of reads and of wrong ones [test set, member, bin]."""
    arrays = dict(measured(subject))
    for name, nets in trained(subject).items():
        rows, piece = subject.data["tests"][name]
        counts = counted(nets, rows, piece, by_distance=name in (PLAIN, TAILED))
        arrays |= {f"{name}/reads": counts[0], f"{name}/wrong": counts[1]}
    return arrays


def counted(nets: Trained, rows: tuple[int, int, int], piece: int, by_distance: bool) -> tuple[Array, Array]:
    """Return reads and wrong reads [test set, member, bin] on fresh sequences; without distances in one bin."""
    counts = []
    for ignore, count in zip(TAILS.values(), rows, strict=True):
        sandbox = FlipFlop.ffl(ignore, nets.trial.sandbox.length)
        if by_distance:
            counts.append(_by_distance(nets, sandbox, count, min(piece, count)))
        else:
            each = evaluate(nets.trial.family, nets.runs, [sandbox], count, piece, apart=True)[0]
            counts.append(np.array([[[one[name]] for one in each] for name in ("queries", "wrong")]))
    both = np.moveaxis(np.array(counts), 1, 0)
    return both[0], both[1]


def _by_distance(nets: Trained, sandbox: FlipFlop, count: int, piece: int) -> Array:
    """Return reads and wrong reads [2, member, bin] by the number of instructions since the last write."""
    family = nets.trial.family
    net = family.architecture(sandbox)

    @jax.jit
    def counts(arrays: Mapping[str, Array], seed: Array, start: Array) -> Array:
        batch = examples(sandbox, seed, "test", start, piece)
        orders = batch.targets[:, ::2]
        index = jnp.arange(orders.shape[1])
        since = index - jax.lax.cummax(jnp.where(orders == WRITE, index, 0), axis=1)
        bins = (since[..., None] >= jnp.asarray(EDGES)).sum(axis=-1) - 1
        logits = family.logits(net, sandbox, arrays, batch)
        batch = aligned(batch, logits)
        wrong = (logits.argmax(axis=-1) != batch.targets)[:, -2 * len(index) + 1 :: 2]
        reads = batch.weight[:, -2 * len(index) + 1 :: 2]
        of_bin = jax.nn.one_hot(bins, len(EDGES)) * reads[..., None]
        return jnp.stack([of_bin.sum(axis=(0, 1)), (of_bin * wrong[..., None]).sum(axis=(0, 1))])

    starts = np.arange(0, count, piece, dtype=np.uint32)
    members = [{name: jnp.asarray(array) for name, array in run.weights.arrays.items()} for run in nets.runs]
    each = [
        np.sum([counts(arrays, np.uint32(TEST_SEED + at), start) for start in starts], axis=0, dtype=np.float64)
        for at, arrays in enumerate(members)
    ]
    return np.stack(each, axis=1)


def trained_rates(reads: Array, wrong: Array) -> Array:
    """Return error rates on the training distribution [member, bin]; one error more where there was none."""
    return np.asarray(np.maximum(wrong[0], 1) / np.maximum(reads[0], 1))


def over_same_distances(reads: Array, wrong: Array, tail: int) -> Array:
    """Return errors on a tail at distances trained on, over those of the training distribution there [member]."""
    expected = reads[tail] * trained_rates(reads, wrong)
    return np.asarray(wrong[tail, :, :-1].sum(axis=-1) / np.maximum(expected[:, :-1].sum(axis=-1), 1e-12))


# Null hypotheses


def some_seeds(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which a random half of the seeds errs on tails as rarely as in training."""
    del subject
    reads, wrong = measured[f"{PLAIN}/reads"], measured[f"{PLAIN}/wrong"].copy()
    rates = np.minimum(np.maximum(wrong[0].sum(-1), 1) / reads[0].sum(-1), 1)[:, None]
    well = rng.random(wrong.shape[1]) < 1 / 2
    wrong[1:, well] = rng.binomial(reads[1:, well].astype(int), rates[well])
    return {**measured, f"{PLAIN}/wrong": wrong}


def distance_alone(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which tails have the errors of the training distribution at distances trained on."""
    del subject
    reads, wrong = measured[f"{PLAIN}/reads"], measured[f"{PLAIN}/wrong"].copy()
    rates = np.minimum(trained_rates(reads, wrong)[:, :-1], 1)
    wrong[1:, :, :-1] = rng.binomial(reads[1:, :, :-1].astype(int), rates)
    return {**measured, f"{PLAIN}/wrong": wrong}


def rare_errors(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements in which every LSTM is wrong on one read in ten thousand."""
    del subject
    reads = measured["LSTM/reads"]
    return {**measured, "LSTM/wrong": rng.binomial(reads.astype(int), NULL_RATE)}


def halved(subject: Subject, measured: Measured, rng: np.random.Generator) -> Measured:
    """Return measurements of drawn seeds in which tail sequences in training halve the errors of the same seeds."""
    del subject
    reads, wrong = measured[f"{PLAIN}/reads"].copy(), measured[f"{PLAIN}/wrong"].copy()
    count = measured[f"{TAILED}/reads"].shape[1]
    drawn = rng.integers(reads.shape[1], size=count)
    reads[:, :count], wrong[:, :count] = reads[:, drawn], wrong[:, drawn]
    rates = wrong[:, :count] / np.maximum(reads[:, :count], 1) / 2
    tailed = {"reads": reads[:, :count], "wrong": rng.binomial(reads[:, :count].astype(int), rates)}
    null = {f"{PLAIN}/reads": reads, f"{PLAIN}/wrong": wrong}
    return {**measured, **null, **{f"{TAILED}/{name}": array for name, array in tailed.items()}}


NULLS = {"tails": some_seeds, "distances": distance_alone, "LSTM": rare_errors, "repair": halved}
