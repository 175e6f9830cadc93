"""Verdicts in real arithmetic: right anywhere in the balls, wrong with a witness, or undecided and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cases import each
from near_ties import SLIGHT, chooser
from samples import ENTRIES, SAMPLES, SOFT_AND_ANOTHER, built
from vitrify.certification import certify
from vitrify.certification.checking import net_check
from vitrify.certification.checks.points import PointCheck
from vitrify.certification.checks.words import WordCheck
from vitrify.certification.evidence import Domain, Evidence, Method
from vitrify.certification.reals import decide
from vitrify.certification.reals.decide import Judged, StillOpen, in_reals, judged
from vitrify.certification.reals.nets import Balls, RealNet
from vitrify.constructions.catalogue import Attention, build
from vitrify.net.architecture import Output, Scores
from vitrify.net.inference import log_probabilities
from vitrify.net.transformer import Head
from vitrify.net.weights import Weights
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.automata.families import cyclic
from vitrify.spec.ngrams.families import random_ngram

Floats = np.ndarray[Any, np.dtype[np.float64]]
SOME = 12  # words or points of each net


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide, "MAX_WORDS", SOME)
    monkeypatch.setattr(decide, "MAX_POINTS", SOME)


def in_real_arithmetic(net: Weights[Any], spec: object, max_length: int | None = None) -> Evidence:
    questions = net_check(net.architecture, spec, max_length=max_length)
    assert isinstance(questions, WordCheck | PointCheck)
    return in_reals(net, questions)


@pytest.mark.long
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("shape", "attention"), SOFT_AND_ANOTHER)
def test_every_construction_is_right_in_real_arithmetic(shape: str, attention: Attention) -> None:
    entry = ENTRIES[shape]
    for spec in SAMPLES[entry.kind][:2]:
        net = built(entry, spec, attention)
        if net is None:
            continue
        found = in_real_arithmetic(net, spec)
        assert found.verdict == "holds", (spec, found.witness)
        assert found.cases > 0, (spec, found.witness)
        error = found.quantity("largest error in real arithmetic")
        assert error is not None
        assert error.met


@pytest.mark.long
def test_a_certificate_says_what_was_decided_in_real_arithmetic() -> None:
    spec = cyclic(3)
    net = build(spec, "log-depth")
    found = certify(net, spec, max_length=5, reals=True)
    assert found.verdict == "holds"
    assert found.methods == ("sampled", "sampled in reals")
    assert found.domains[-1] == Domain("words", Method.SAMPLED, 63, 0, 5, "reals")
    assert found.measured("bits that decide every answer") == 53
    plain = certify(net, spec, max_length=5)
    assert {run.arithmetic for run in plain.domains} == {"float64"}
    assert found.domains[:-1] == plain.domains
    assert found.cases == plain.cases + 63


@pytest.mark.parametrize("shape", ["heads", "single"])
def test_a_wrong_probability_is_found_with_a_witness(shape: str) -> None:
    spec = random_ngram(2, 3, seed=1)
    net = build(spec, shape)
    bias = net.arrays["unembed.b_U"].copy()
    bias[0] += 1e-6
    found = in_real_arithmetic(net.with_array("unembed.b_U", bias), spec, 2)
    assert found.verdict == "fails"
    assert "expected" in (found.witness or ())
    assert 1e-9 < found.measured("largest error in real arithmetic") < 1e-6


@pytest.mark.parametrize("array", ["unembed.W_U", "blocks.0.attn.W_V", "blocks.0.mlp.b_in"])
def test_a_wrong_state_is_found_with_a_witness(array: str) -> None:
    spec = cyclic(3)
    net = build(spec, "log-depth")
    broken = net.with_array(array, np.roll(net.arrays[array], 1, axis=-1))
    found = in_real_arithmetic(broken, spec, 4)
    assert found.verdict == "fails"
    assert found.witness is not None
    assert set(found.witness) == {"word", "expected", "actual"}


def test_an_open_question_makes_the_verdict_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    real = decide.judged

    def sometimes(net: RealNet, word: Any, *given: Any, **named: Any) -> Judged | StillOpen:
        return StillOpen("head 1 of block 2", 3392) if list(word) == [1, 2] else real(net, word, *given, **named)

    monkeypatch.setattr(decide, "judged", sometimes)
    spec = Automaton.from_regex("(ab|ba)*")
    found = certify(build(spec, "log-depth"), spec, max_length=2, samples=2, reals=True)
    assert found.verdict == "undecided"
    assert found.witness == {"word": ["a", "b"], "undecided": "head 1 of block 2"}


def says(symbol: int) -> Any:
    """An oracle that wants one symbol to lead by a millionth at the last place."""

    def errors(logits: Floats) -> Floats:
        others = np.delete(logits, symbol, axis=1).max(axis=1)
        return np.where(logits[:, symbol] - others > 1e-6, 0.0, 1.0)[-1:]

    return errors


def test_what_floating_point_says_is_wrong_where_real_arithmetic_says_otherwise() -> None:
    net = RealNet(chooser(Head("hard", ties="left"), SLIGHT))
    right, wrong = (judged(net, [1, 2], says(symbol), 0.5) for symbol in (1, 0))  # float64 says a here
    assert isinstance(right, Judged)
    assert isinstance(wrong, Judged)
    assert right.distances.tolist() == [0.0]
    assert wrong.distances.tolist() == [1.0]


def test_a_verdict_waits_for_enough_precision() -> None:
    net = RealNet(chooser(Head("hard", ties="left"), SLIGHT, soft=True))
    found = judged(net, [1, 2], says(1), 0.5)
    assert isinstance(found, Judged)
    assert found.precision == 106
    still_open = judged(RealNet(chooser(Head("hard", ties="left"), 0.0, soft=True)), [1, 2], says(0), 0.5, cap=212)
    assert still_open == StillOpen("head 0 of block 1, query 2: key 1 may or may not be tied with the best", 212)


def test_a_leader_must_lead_everywhere_in_the_balls() -> None:
    """Raising all others must not make a wrong leader look right."""
    output = Output("transducer", ("x", "y"))
    wide = Balls(np.array([[1.0, 0.9]]), np.array([[0.2, 0.2]]))
    narrow = Balls(np.array([[1.0, 0.5]]), np.array([[0.2, 0.2]]))
    assert decide._farthest(output, says(0), wide, False) == [1.0]
    assert decide._farthest(output, says(1), wide, False) == [1.0]
    assert decide._farthest(output, says(0), narrow, False) == [0.0]
    assert decide._farthest(output, says(1), narrow, False) == [1.0]


def test_a_set_of_next_symbols_must_be_the_same_everywhere() -> None:
    output = Output("next", ("x", "y"))

    def errors(logits: Floats) -> Floats:
        right = ((logits > 0) == [True, False]) & (np.abs(logits) > 1e-6)
        return np.where(right.all(axis=1), 0.0, 1.0)

    for radius, wrong in ((0.0, 0.0), (0.4, 0.0), (0.6, 1.0)):
        balls = Balls(np.array([[0.5, -0.5]]), np.full((1, 2), radius))
        assert decide._farthest(output, errors, balls, False) == [wrong]


@each("scores", ["softmax", "log", "linear"])
@each("radius", [1e-12, 1e-3, 0.1])
def test_no_probability_moves_further_than_said(scores: Scores, radius: float) -> None:
    rng = np.random.default_rng(0)
    output = Output("lm", ("x", "y", "z"), scores)
    weights = rng.dirichlet([1.0] * 3, size=500)
    mid = {"softmax": np.log(weights) + 3, "log": np.log(weights), "linear": 2 * weights}[scores]
    rad = np.full(mid.shape, radius)
    told = decide._moved(output, mid, rad)
    most = np.zeros(500)
    for corner in np.ndindex(3, 3, 3):
        moved = mid + radius * (np.array(corner) - 1)
        linear = moved / moved.sum(axis=1, keepdims=True)  # of which the logarithm may not exist
        there = linear if scores == "linear" else np.exp(log_probabilities(output, moved))
        most = np.maximum(most, np.abs(there - weights).max(axis=1))
    assert (most <= told + 1e-15).all()
    assert scores != "softmax" or most.max() > 0.9 * told.max()
    assert (told <= 1e-14 + 3 * radius).all()  # not much too far, either


def test_numbers_are_judged_at_the_far_end_of_their_balls() -> None:
    output = Output("values", ("x",))
    found = decide._farthest(
        output, lambda x: np.abs(x[:, 0] - 1.0), Balls(np.ones((1, 1)), np.full((1, 1), 0.25)), False
    )
    assert found == [0.25]


@pytest.mark.usefixtures("few")
def test_a_net_of_too_many_short_words_is_asked_about_some() -> None:
    """A net for words of one length only: there are more of them than may be tried."""
    spec = cyclic(2)
    net = built(ENTRIES["parity"], spec, "softmax")
    assert net is not None
    found = in_real_arithmetic(net, spec)
    assert found.verdict == "holds"
    assert found.domains == (Domain("first words", Method.SAMPLED, SOME, 12, 12, "reals"),)
    assert found.cases == SOME * 13
