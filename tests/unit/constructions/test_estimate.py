"""Order-k estimators as transformers: the shares that counting gives, in three shapes, with the sizes they declare."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from cases import each_then_slow, in_turn
from tiny_nets import built as tiny
from vitrify.certification import certify, mutation_test
from vitrify.claims.catalogue import Subject
from vitrify.claims.transformers_estimate_order_k_markov_chains_in_context import decaying, least_gap
from vitrify.constructions.catalogue import build, chosen
from vitrify.constructions.estimate import context_gap
from vitrify.errors import BuildRefused, SpecError
from vitrify.kit.gadgets.signs import unit
from vitrify.kit.heads.average import window
from vitrify.kit.heads.match import cosine_match, cosine_sharpness
from vitrify.kit.network import Affine, Builder, Space
from vitrify.net.inference import logits
from vitrify.net.spaces import Reals
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights
from vitrify.spec.tasks.estimate import Estimate

SHAPES = ("estimate-heads", "estimate-digits", "estimate-norm")
SOFT: tuple[AttentionKind, ...] = ("softmax", "sparsemax")
COUNTED = [Estimate(1, 1, 7), Estimate(1, 4, 12), Estimate(2, 3, 30), Estimate(4, 2, 40)]


def counted(task: Estimate, word: Sequence[str]) -> list[list[float]]:
    """The same shares by a running table of what has followed which context."""
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    history, found = "", []
    for symbol in word:
        if len(history) >= task.order:
            table[history[-task.order :]][symbol] += 1
        history += symbol
        known = table[history[-task.order :]] if len(history) >= task.order else Counter[str]()
        total = sum(known.values())
        found.append([known[s] / total if total else 1 / task.symbols for s in task.alphabet])
    return found


@pytest.mark.parametrize("order", [1, 2, 3])
def test_answers_are_a_running_table(order: int) -> None:
    task, rng = Estimate(order, 3, 30), np.random.default_rng(order)
    for _ in range(50):
        word = task.draw(rng, int(rng.integers(31)))
        found, wanted = np.array(task.answers(word)), np.array(counted(task, word))
        np.testing.assert_allclose(found.reshape(-1, 3), wanted.reshape(-1, 3))


@pytest.mark.long
@each_then_slow(
    "task, shape, attention",
    *([(*case, kind) for case, kind in group] for group in in_turn(product(COUNTED, SHAPES), SOFT)),
)
def test_every_shape_counts(task: Estimate, shape: str, attention: AttentionKind) -> None:
    weights = build(task, shape, attention=attention)
    evidence = certify(weights, task, max_length=6)
    assert evidence.verdict == "holds", evidence.witness
    assert not chosen(task, shape).sizes(task, attention=attention).problems(weights.sizes)


@pytest.mark.parametrize("shape", SHAPES)
def test_long_words_against_a_table(shape: str) -> None:
    task, rng = Estimate(3, 3, 150), np.random.default_rng(0)
    weights = build(task, shape, attention="softmax")
    words = [task.draw(rng, 150) for _ in range(20)]
    ids = weights.architecture.input_ids
    for word, found in zip(words, logits(weights, [[ids[s] for s in word] for word in words]), strict=True):
        assert np.abs(found[1:] - np.array(counted(task, word))).max() <= 1e-9
    assert weights.architecture.output.error <= 1e-6


def test_hard_attention_averages_but_can_not_mix() -> None:
    task = Estimate(2, 3, 20)
    assert certify(build(task, "estimate-heads", attention="hard"), task, max_length=6).verdict == "holds"
    for shape in SHAPES[1:]:
        short = Estimate(1, 3, 20)
        assert certify(build(short, shape, attention="hard"), short, max_length=5).verdict == "holds"
        with pytest.raises(BuildRefused, match="unequal weights needs soft or sparse"):
            build(task, shape, attention="hard")


def test_orders_that_rounding_loses_are_refused() -> None:
    with pytest.raises(BuildRefused, match="digits of more than 8 symbols are lost in rounding: use estimate-norm"):
        build(Estimate(9, 4, 20), "estimate-digits")
    with pytest.raises(BuildRefused, match="contexts of 10 symbols out of 5 are too near to each other for float64"):
        build(Estimate(10, 5, 20), "estimate-norm")
    with pytest.raises(SpecError, match="order must be a whole number from 1 to 10"):
        Estimate(11, 2, 20)


@pytest.mark.parametrize(("order", "symbols"), [(10, 4), (9, 11), (8, 27), (7, 63), (5, 320)])
def test_what_is_not_refused_is_built(order: int, symbols: int) -> None:
    net = build(Estimate(order, symbols, 30), "estimate-norm").architecture
    assert net.d_model == 4 * symbols + 2
    with pytest.raises(BuildRefused, match="too near to each other"):
        build(Estimate(order, symbols + symbols // 9 + 1, 30), "estimate-norm")


def phrases(task: Estimate, seed: int) -> list[tuple[str, ...]]:
    """Return words in which a phrase of one to twelve symbols recurs, with one error in ten."""
    rng, words = np.random.default_rng(seed), []
    for period in range(1, 13):
        base = np.resize(rng.integers(task.symbols, size=period), task.length)
        errors = rng.random(task.length) < 0.1
        word = np.where(errors, rng.integers(task.symbols, size=task.length), base)
        words.append(tuple(task.alphabet[i] for i in word))
    return words


@pytest.mark.parametrize("attention", SOFT)
@pytest.mark.parametrize("symbols", [1, 2, 3, 4])
@pytest.mark.parametrize("order", range(1, 11))
def test_norms_do_for_every_order_with_the_same_sizes(order: int, symbols: int, attention: AttentionKind) -> None:
    task = Estimate(order, symbols, 150)
    weights = build(task, "estimate-norm", attention=attention)
    assert weights.sizes.heads_per_layer == (1, 1)
    assert weights.sizes.d_model == 4 * symbols + 2
    assert weights.sizes.units == max(3 * (symbols - 1), 1)
    words, ids = phrases(task, order), weights.architecture.input_ids
    for word, values in zip(words, logits(weights, [[ids[s] for s in word] for word in words]), strict=True):
        assert np.abs(values[1:] - np.array(counted(task, word))).max() <= weights.architecture.output.error


@pytest.mark.parametrize(("order", "symbols"), [(1, 2), (2, 2), (2, 5), (3, 3), (4, 3), (6, 2), (9, 2)])
def test_cosines_of_contexts_are_a_gap_apart(order: int, symbols: int) -> None:
    gap = least_gap(Estimate(order, symbols, 9))
    assert context_gap(order) <= gap <= 4 * context_gap(order)
    assert 4**order * context_gap(order) > 1 / 4


@pytest.mark.parametrize("order", [2, 3, 6])
def test_weights_that_decay_into_the_past_are_wrong(order: int) -> None:
    task = Estimate(order, 2, 40)
    subject = decaying(Subject("decaying", task, build(task, "estimate-norm")))
    assert certify(subject.weights, task, max_length=5).verdict == "fails"


def test_a_window_may_leave_its_own_position_out() -> None:
    for attention, weights in (("softmax", [0.0, 3.0, 1.0]), ("sparsemax", [0.0, 3.0, 1.0]), ("hard", [0.0, 2.0, 2.0])):
        net = Builder("mix", ("^", "a", "b"), 6, attention, pads=3)  # type: ignore[arg-type]  # kinds of attention
        value = net.embed("value", Reals(("x",), 0.0, 4.0), np.array([[4.0], [1.0], [2.0]]))
        [rows] = logits(tiny(net, window(net, value, weights, name="mix"), need=1.0), [[1, 2, 2, 1]])
        token = np.array([4.0, 4.0, 1.0, 2.0, 2.0, 1.0])
        wanted = [weights[1] * token[i - 1] + weights[2] * token[i - 2] for i in range(2, 6)]
        np.testing.assert_allclose(rows[1:, 0], wanted, rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_no_weight_knows_the_length(shape: str) -> None:
    short, long = (build(Estimate(2, 2, n), shape, attention="sparsemax") for n in (5, 50))
    different = {n for n in short.arrays if not np.array_equal(short.arrays[n], long.arrays[n])}
    assert different == {"pos_embed.W_pos"}
    assert not np.any(long.arrays["pos_embed.W_pos"])


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_broken_nets_are_noticed(shape: str) -> None:
    """But for the scale of the half of a vector that nobody reads."""
    task = Estimate(2, 2, 12)
    found = mutation_test(build(task, shape), task, count=30, seed=2)
    idle = [what for what, _ in found.survivors if ".ln1.w" in what]
    assert (found.rejected + len(idle)) / found.tried >= 0.9, found.survivors


def test_without_the_norm_long_vectors_win() -> None:
    task = Estimate(3, 2, 12)
    weights = build(task, "estimate-norm")
    arrays = {name: array for name, array in weights.arrays.items() if ".ln" not in name}
    plain = Weights(replace(weights.architecture, norm=False, groups=()), arrays)
    assert certify(plain, task, max_length=7).verdict == "fails"


def matching(
    noise: float, attention: AttentionKind, off: float, key_noise: float | None = None
) -> tuple[Weights, float]:
    """Directions that should be one of two, each off by some noise: what a head brings, and what it promises."""
    net = Builder("alike", ("^", "a", "b", "c", "d"), 6, attention)
    table = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, off], [0.0, 1.0], [off, 1.0]])
    vector = net.embed("vector", Reals(("x", "y"), 0.0, 1.0), table)
    value = net.embed("value", Reals(("v",), -1.0, 1.0), np.array([[0.5], [1.0], [-1.0], [0.25], [0.75]]))
    unit_of = unit(net, Affine.copy(vector), 1.0, name="unit")
    half = Affine.of({unit_of: np.vstack([np.eye(2), np.zeros((2, 2))]) / np.sqrt(2)})
    writes = Space("mean", Reals(("v",), -1.0, 1.0))
    sharp = cosine_sharpness(net, 0.9, 1.0, noise=noise, key_noise=key_noise or noise, leak=1e-9)
    sink = Affine.of({net.bos: [[1.0]]})
    found = cosine_match(net, half, half, Affine.copy(value), writes, sink=sink, sharp=sharp)
    weights = tiny(net, found, need=1.0)
    return weights, weights.labels.space("mean").error


@pytest.mark.parametrize("attention", SOFT)
def test_unequal_matches_stay_within_what_a_head_promises(attention: AttentionKind) -> None:
    for noise in (1e-12, 1e-6, 1e-3):
        weights, promised = matching(noise, attention, off=noise / 2)
        [rows] = logits(weights, [[1, 2, 3, 4, 1]])
        assert np.abs(rows[1:, 0] - [1.0, 0.0, 0.25, 0.5, 1 / 3]).max() <= promised
        assert promised <= 1e-8 + 1e3 * noise


def test_noise_that_is_not_promised_is_refused() -> None:
    with pytest.raises(BuildRefused, match="'unit: unit' needs '± unit' within"):
        matching(1e-17, "softmax", 0.0)
    with pytest.raises(BuildRefused, match="'unit: unit' needs '± unit' within"):
        matching(1e-3, "softmax", 0.0, key_noise=1e-17)
    with pytest.raises(BuildRefused, match=r"can't be told apart under errors of 0\.3"):
        matching(0.3, "softmax", 0.0)
