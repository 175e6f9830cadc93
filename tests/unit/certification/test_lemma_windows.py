"""Lemma "windows": estimators are proved from all windows; wrong ones are not, and bounds contain what runs show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vitrify.certification import certify
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.equivalence.catalogue import SpecCase
from vitrify.certification.equivalence.windows import Enclosed, windows
from vitrify.certification.margins.values import Undecided
from vitrify.claims.catalogue import Subject
from vitrify.claims.transformers_estimate_order_k_markov_chains_in_context import decaying
from vitrify.constructions.catalogue import build
from vitrify.net.inference import batch_logits, with_pads
from vitrify.net.sparse import dense
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights
from vitrify.spec.tasks.estimate import Estimate

pytestmark = pytest.mark.long

Net = Weights[Transformer]
Change = Callable[[Net], Net]
TASK = Estimate(2, 2, 7)


def case_of(weights: Net, task: Estimate) -> SpecCase:
    return SpecCase(weights, task, WordCheck(weights.architecture, task).oracle, None)


def proved(weights: Net, task: Estimate) -> bool:
    try:
        return windows(case_of(weights, task)).exact
    except Undecided:
        return False


@pytest.mark.parametrize(("order", "symbols"), [(1, 1), (1, 5), (2, 3), (3, 3), (5, 2), (6, 3), (10, 2)])
def test_estimators_with_norms_are_proved(order: int, symbols: int) -> None:
    task = Estimate(order, symbols, 60)
    proof = windows(case_of(build(task, "estimate-norm"), task))
    assert (proof.lemma, proof.longest, proof.exact) == ("windows", 60, True)
    assert proof.instances["windows"] == sum(symbols**letters for letters in range(order + 2))


def test_both_links_are_proved_without_margins() -> None:
    for shape in ("estimate-norm", "estimate-digits"):
        task = Estimate(2, 3, 24)
        evidence = certify(build(task, shape), task, max_length=3, work=1e5, prove=True)
        assert [(link.lemma, link.longest, link.scope.proved) for link in evidence.links] == [("windows", 24, True)] * 2
        assert evidence.proof is not None
        assert not evidence.proof["holds"]


def test_too_many_windows_are_not_compared() -> None:
    task = Estimate(8, 3, 20)
    with pytest.raises(Undecided, match="windows of 9 tokens out of 3 are too many"):
        windows(case_of(build(task, "estimate-norm"), task))


@pytest.mark.parametrize("order", [2, 3, 5])
def test_weights_that_decay_into_the_past_are_not_proved(order: int) -> None:
    task = Estimate(order, 2, 12)
    assert not proved(decaying(Subject("", task, build(task, "estimate-norm"))).weights, task)


def test_other_orders_are_not_proved() -> None:
    second, third = Estimate(2, 2, 12), Estimate(3, 2, 12)
    assert not proved(build(second, "estimate-norm"), third)
    assert not proved(build(third, "estimate-norm"), second)


def right(weights: Net, task: Estimate) -> bool:
    """Return whether the network is within its error on all words up to its length."""
    ids = weights.architecture.input_ids
    for length in range(1, task.length + 1):
        words = [*task.words(length)]
        tokens = np.array([[ids[symbol] for symbol in word] for word in words], dtype=np.int64)
        values = batch_logits(weights, with_pads(weights.architecture, tokens))[:, weights.architecture.pads :]
        expected = np.array([task.answers(word) for word in words])
        if not np.abs(values - expected).max() <= weights.architecture.output.error:
            return False
    return True


def mutant(weights: Net, rng: np.random.Generator) -> Net:
    """Return a network with one weight negated, halved, doubled or moved."""
    names = [name for name, array in weights.arrays.items() if array.shape and 0 not in array.shape]
    name = names[int(rng.integers(len(names)))]
    array = np.array(dense(weights.arrays[name]), dtype=np.float64)
    there = np.flatnonzero(array)
    if len(there) and rng.random() < 0.7:
        array.flat[int(rng.choice(there))] *= rng.choice([-1.0, 0.5, 2.0, 1 + 1e-6])
    else:
        array.flat[int(rng.integers(array.size))] += rng.choice([1.0, -1.0, 1e-3, 30.0])
    return weights.with_array(name, array)


@pytest.mark.parametrize("shape", ["estimate-norm", "estimate-digits"])
def test_no_mutant_with_a_wrong_answer_is_proved(shape: str) -> None:
    weights, rng, wrong = build(TASK, shape), np.random.default_rng(3), 0
    assert proved(weights, TASK)
    for _ in range(60):
        other = mutant(weights, rng)
        if not right(other, TASK):
            wrong += 1
            assert not proved(other, TASK)
    assert wrong > 20


def moved(name: str, at: tuple[int, ...], value: float) -> Change:
    """Return the change that adds a value to one entry of an array."""

    def change(weights: Net) -> Net:
        array = np.array(dense(weights.arrays[name]), dtype=np.float64)
        array[at] += value
        return weights.with_array(name, array)

    return change


def with_heads(block: int, **fields: Any) -> Change:
    """Return the change of fields of the head of a block."""

    def change(weights: Net) -> Net:
        blocks = list(weights.architecture.blocks)
        blocks[block] = replace(blocks[block], heads=(replace(blocks[block].heads[0], **fields),))
        return replace(weights, architecture=replace(weights.architecture, blocks=tuple(blocks)))

    return change


def without_pads(weights: Net) -> Net:
    places = np.asarray(dense(weights.arrays["pos_embed.W_pos"]))
    fewer = replace(weights.architecture, pads=weights.architecture.pads - 1)
    return replace(weights, architecture=fewer, arrays={**weights.arrays, "pos_embed.W_pos": places[1:]})


BROKEN: list[tuple[str, Change]] = [
    ("no softmax whose weights depend on distances", moved("blocks.0.attn.W_Q", (0, 0, 0), 1e-9)),
    ("no softmax whose weights depend on distances", moved("blocks.0.attn.b_Q", (0, 0), 1e-9)),
    ("no softmax whose weights depend on distances", with_heads(0, attention="sparsemax")),
    ("no softmax over all earlier positions", with_heads(1, mask="strict")),
    ("positions are read", moved("pos_embed.W_pos", (3, 0), 1e-9)),
    ("a window is not full", without_pads),
    ("BOS is not between", moved("blocks.1.attn.b_Q", (0, -1), 0.1)),
    ("BOS is not between", moved("blocks.1.attn.b_Q", (0, -1), -0.1)),
    ("all that is proved", moved("blocks.1.attn.beta", (0,), -1500.0)),
    ("all that is proved", moved("unembed.b_U", (0,), 1e-6)),
    ("all that is proved", moved("unembed.W_U", (0, 0), 1e-6)),
    ("all that is proved", moved("blocks.1.attn.b_V", (0, 0), 1e-6)),
]


@pytest.mark.parametrize(("reason", "change"), BROKEN, ids=[f"{n}: {why}" for n, (why, _) in enumerate(BROKEN)])
def test_what_an_instance_guards_against_is_refused(reason: str, change: Change) -> None:
    with pytest.raises(Undecided, match=reason):
        windows(case_of(change(build(TASK, "estimate-norm")), TASK))


def test_bounds_contain_exact_values() -> None:
    """Compare with arithmetic in longer numbers, from inputs that are off by as much as their bound."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, off = rng.normal(size=(5, 4)), 1e-9 * rng.random((5, 4))
        matrix, bias = rng.normal(size=(4, 4)), rng.normal(size=4)
        seen = Enclosed(x, off).mapped(matrix, bias).normalized(0.0)
        for sign in (1, -1, rng.choice([1, -1], size=(5, 4))):
            exact = (x.astype(np.longdouble) + sign * off) @ matrix.astype(np.longdouble) + bias
            exact = exact - exact.mean(axis=1, keepdims=True)
            exact = exact / np.sqrt((exact**2).mean(axis=1, keepdims=True))
            assert (np.abs(seen.value - exact) <= seen.error).all()
        assert seen.error.max() < 1e-6
