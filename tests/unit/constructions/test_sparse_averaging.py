"""Nets that average over sets, against fractions; certificates from the arrays; sizes; refusals."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log
from typing import Any

import numpy as np
import pytest

from built import ATTENTIONS, answers
from cases import each
from matching import averaged
from vitrify.certification import certify
from vitrify.certification.oracles.sparse_averaging import OFF, PROVED, SetOracle, looked_at
from vitrify.constructions.catalogue import build
from vitrify.constructions.sparse_averaging import accuracy, sizes, sparse_averaging, temperature
from vitrify.errors import BuildRefused
from vitrify.kit import assemble
from vitrify.kit.set_codes import MAX_OFF_SCORE, CodeOfSets
from vitrify.net.inference import encode
from vitrify.net.sparse import dense
from vitrify.net.transformer import AttentionKind
from vitrify.net.weights import Weights
from vitrify.spec.tasks.sparse_averaging import SparseAveraging, random_sets

CODES: tuple[CodeOfSets, ...] = ("units", "signs", "superimposed", "moments", "trivial")
SMALL = SparseAveraging(20, 3, 2, random_sets(20, 3, 12, seed=0))


def worst(weights: Weights[Any], task: SparseAveraging, words: int, seed: int = 0) -> float:
    """The largest distance of an answer from the mean, in the Euclidean norm."""
    rng = np.random.default_rng(seed)
    drawn = [task.draw(rng, task.length) for _ in range(words)]
    found = answers(weights, np.array([encode(weights.architecture, word) for word in drawn]))[:, 1:]
    right = np.array([averaged(word, task.dimensions) for word in drawn], dtype=float)
    return float(np.linalg.norm(found - right, axis=-1).max())


@each("attention", ATTENTIONS)
@each("code", CODES)
def test_answers_certificates_and_sizes(code: CodeOfSets, attention: AttentionKind) -> None:
    weights = build(SMALL, f"sets-{code}", attention=attention)
    proved = weights.labels.space("mean").error
    assert worst(weights, SMALL, 20) <= proved <= weights.architecture.output.error == 0.05
    size = weights.sizes
    assert not sizes(SMALL, code=code).problems(size)
    embedded = dense(weights.arrays["embed.W_E"]).any(axis=0) | dense(weights.arrays["pos_embed.W_pos"]).any(axis=0)
    assert embedded.sum() <= 2 + 2 * size.d_head == size.d_model - 2
    assert weights.architecture.blocks[0].d_value == 2
    evidence = certify(weights, SMALL, work=1e6)
    assert evidence.verdict == "holds"
    assert float(evidence.measured(PROVED)) <= 0.05


@pytest.mark.slow
@each("q", [2, 4, 8])
@each("code", ["signs"])
def test_256_positions_are_certified(code: CodeOfSets, q: int) -> None:
    for draw in range(2):
        task = SparseAveraging(256, q, 1, random_sets(256, q, 256, seed=10 * q + draw))
        weights = assemble(sparse_averaging(task, code=code, seed=draw))
        seen = looked_at(weights, task)
        assert seen is not None
        assert seen.off <= MAX_OFF_SCORE
        assert max(abs(seen.low - 1), abs(seen.high - 1)) <= Fraction(accuracy(256, 0.05))
        assert seen.error(temperature(256, 0.05)) <= 0.05
        assert worst(weights, task, 2) <= 0.05
        if code == "signs":
            assert weights.sizes.d_model == 2 + 2 * ceil(19 * q * log(256))


@pytest.mark.slow
@pytest.mark.parametrize("q", [2, 4, 8])
@pytest.mark.parametrize("code", ["signs", "units"])
def test_256_positions_over_several_draws(code: CodeOfSets, q: int) -> None:
    first = 0
    for draw in range(8):
        task = SparseAveraging(256, q, 1, random_sets(256, q, 32 if code == "units" else 256, seed=100 * q + draw))
        try:
            weights = assemble(sparse_averaging(task, code=code, seed=draw))
            first += 1
        except BuildRefused:  # one draw proves nothing about the next
            weights = assemble(sparse_averaging(task, code=code))
        seen = looked_at(weights, task)
        assert seen is not None
        assert seen.off <= MAX_OFF_SCORE
        assert seen.error(temperature(256, 0.05)) <= 0.05
        assert worst(weights, task, 16) <= 0.05
    assert first >= 6


@pytest.mark.parametrize("q", [2, 4, 8])
def test_narrow_codes_are_refused(q: int) -> None:
    task = SparseAveraging(256, q, 1, random_sets(256, q, 256, seed=q))
    width = ceil(3.6 * q * log(256))
    for draw in range(3):
        with pytest.raises(BuildRefused, match=f"but {width} dimensions leave .* for one of 256 sets: use more dim"):
            sparse_averaging(task, code="signs", width=width, seed=draw)


def test_moments_that_float64_does_not_carry_are_refused() -> None:
    task = SparseAveraging(256, 8, 1, random_sets(256, 8, 20, seed=0))
    with pytest.raises(BuildRefused, match="too little for float64"):
        build(task, "sets-moments")
    close = SparseAveraging(64, 4, 1, ("1,2,3,4", "10,11,13,14"))
    assert worst(build(close, "sets-moments"), close, 10) <= 0.05


def test_the_next_draw_is_taken_where_one_fails() -> None:
    task = SparseAveraging(256, 2, 1, random_sets(256, 2, 256, seed=0))
    width = ceil(13 * 2 * log(256))
    fails = []
    for draw in range(4):
        try:
            sparse_averaging(task, code="signs", width=width, seed=draw)
        except BuildRefused:
            fails.append(draw)
    first = next(draw for draw in range(4) if draw not in fails)
    assert 0 < len(fails) < 4
    chosen = assemble(sparse_averaging(task, code="signs", width=width))
    assert chosen.digest == assemble(sparse_averaging(task, code="signs", width=width, seed=first)).digest


@each("tolerance", [1.0, 0.5, 1e-3, 1e-6])
def test_the_tolerance_is_kept(tolerance: float) -> None:
    for code in CODES:
        weights = build(SMALL, f"sets-{code}", tolerance=tolerance)
        assert weights.architecture.output.error == tolerance
        assert worst(weights, SMALL, 5) <= weights.labels.space("mean").error <= tolerance


@each("tolerance", [0.0, -1.0, 2.0, float("nan")])
def test_tolerances_out_of_range_are_refused(tolerance: float) -> None:
    with pytest.raises(BuildRefused, match=r"--tolerance .* must be a number above 0 and at most 1"):
        build(SMALL, tolerance=tolerance)


def test_all_sets_where_none_is_named() -> None:
    task = SparseAveraging(6, 2, 1)
    for code in CODES:
        weights = build(task, f"sets-{code}")
        assert worst(weights, task, 30) <= 0.05


def test_one_position_and_whole_words() -> None:
    for task in (SparseAveraging(1, 1, 1), SparseAveraging(3, 3, 2), SparseAveraging(4, 1, 1)):
        for code in ("superimposed", "units", "signs"):
            weights = build(task, f"sets-{code}")
            assert worst(weights, task, 10) <= 0.05


# What the certificate notices


def changed(weights: Weights[Any], name: str, change: Any) -> Weights[Any]:
    array = dense(weights.arrays[name]).copy()
    change(array)
    return weights.with_array(name, array)


def test_a_certificate_is_read_from_the_arrays() -> None:
    weights = build(SMALL, "sets-signs")
    oracle = SetOracle(SMALL, weights.architecture)
    measured, witness = oracle.check_inside(weights, 0)
    assert witness is None
    assert float(measured[OFF]) == weights.about["largest score off a set"]  # type: ignore[arg-type]
    query = list(weights.labels.space("set").dims)
    key = list(weights.labels.space("position").dims)

    def less_of_one_query(array: np.ndarray) -> None:
        array[5, query[0]] += 0.01

    def another_key(array: np.ndarray) -> None:
        array[7, key] = array[8, key]

    broken = [
        changed(weights, "embed.W_E", less_of_one_query),
        changed(weights, "pos_embed.W_pos", another_key),
        changed(weights, "blocks.0.attn.beta", lambda beta: beta.__imul__(0.25)),
    ]
    for net in broken:
        measured, witness = oracle.check_inside(net, 0)
        assert witness is not None
        assert float(measured[PROVED]) > 0.05  # type: ignore[arg-type]
        assert certify(net, SMALL, work=1e6).verdict == "fails"


def test_eight_bits_are_not_enough() -> None:
    task = SparseAveraging(256, 8, 1, random_sets(256, 8, 256, seed=1))
    weights = build(task, "sets-signs")
    query = list(weights.labels.space("set").dims)

    def coarse(array: np.ndarray) -> None:
        array[:, query] = np.round(array[:, query] * 2**13) / 2**13  # 8 bits where keys have length 1

    measured, witness = SetOracle(task, weights.architecture).check_inside(changed(weights, "embed.W_E", coarse), 0)
    assert witness is not None
    assert float(measured[OFF]) <= 0.5 < 1  # type: ignore[arg-type]


def test_nets_of_another_form_have_no_list_of_scores() -> None:
    weights = build(SMALL, "sets-units")
    key = list(weights.labels.space("position").dims)
    mixed = changed(weights, "embed.W_E", lambda array: array.__setitem__((3, key[0]), 1.0))
    assert looked_at(mixed, SMALL) is None
    assert SetOracle(SMALL, weights.architecture).check_inside(mixed, 0) == ({}, None)
    spoken = changed(weights, "pos_embed.W_pos", lambda array: array.__setitem__((0, key[0]), 1.0))
    assert looked_at(spoken, SMALL) is None


def test_float32_is_not_spoken_of_where_answers_are_numbers() -> None:
    assert not [q for q in certify(build(SMALL), SMALL, work=1e6).quantities if "float32" in q.name]


def test_settings_of_another_kind_are_refused() -> None:
    with pytest.raises(BuildRefused, match="leave --max-length out"):
        build(SMALL, max_length=5)
