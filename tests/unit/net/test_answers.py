"""Answers are typed, print what matters, and are the JSON of `vitrify run`; calling a net gives its logits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vitrify as v
from vitrify.net import answers
from vitrify.net.architecture import Output
from vitrify.net.inference import log_probabilities
from vitrify.net.transformer import Transformer
from vitrify.net.weights import Weights

EXAMPLES = Path(__file__).parents[3] / "examples"


def built(file: str) -> Weights[Any]:
    return v.build(v.read(str(EXAMPLES / file)))


CASES = {
    "weather.arpa": (["sun", "rain"], answers.NextTokenAnswer, {"next", "log_probs", "log_prob"}),
    "abba.regex": ("abba", answers.StatesAnswer, {"states", "accept"}),
    "awoke.patterns": (["Ann", "awoke"], answers.LegalNextAnswer, {"next"}),
    "towns.connectivity": (["ash-oak"], answers.ConnectedAnswer, {"connected"}),
    "zigzag.maxout.json": (["0.25"], answers.ValuesAnswer, {"values"}),
}


@pytest.mark.parametrize("file", CASES)
def test_every_kind_of_output_has_its_class_and_its_keys(file: str) -> None:
    tokens, kind, keys = CASES[file]
    answer = v.run(built(file), tokens)
    assert type(answer) is kind
    assert set(answer.to_json()) == {"tokens", "kind"} | keys
    assert json.loads(json.dumps(answer.to_json()))["tokens"] == list(tokens)
    assert repr(answer).startswith(kind.__name__)
    with pytest.raises(AttributeError, match=rf"^{kind.__name__} .* has no 'nonsense'; it has .*tokens"):
        answer.nonsense  # noqa: B018


def test_next_token_answers_at_the_last_and_at_every_position() -> None:
    net = built("weather.arpa")
    last, every = v.run(net, ["sun", "rain"]), v.run(net, ["sun", "rain"], all_positions=True)
    assert last.next == every.next == every.distributions[-1] == every.to_json()["next"][-1]
    assert len(every.distributions) == 3
    assert last.log_prob == pytest.approx(sum(last.log_probs))
    assert last.log_probs[1] == pytest.approx(np.log(every.distributions[1]["rain"]))
    assert "log_prob=" in repr(last)


@pytest.mark.parametrize("file", CASES)
def test_calling_a_net_gives_the_logits_of_its_trace(file: str) -> None:
    net, tokens = built(file), CASES[file][0]
    logits, traced = net(tokens), v.trace(net, tokens)["hook_logits"]
    assert logits.shape[1] == len(net.architecture.output.symbols)
    assert np.array_equal(logits, traced[-len(logits) :])
    one, two = net([list(tokens), list(tokens)])
    assert np.allclose(one, logits)
    assert np.allclose(two, logits)


def test_a_batch_of_sequences_of_different_lengths() -> None:
    net = built("weather.arpa")
    short, long = net([[], ["sun", "rain", "sun"]])
    assert (len(short), len(long)) == (1, 4)
    assert np.allclose(net([])[0], long[0])
    log_probs = log_probabilities(net.architecture.output, long)
    assert np.exp(log_probs[-1]).sum() == pytest.approx(1.0)


def test_a_net_without_pads_answers_after_the_first_token() -> None:
    net = Transformer(("<s>", "a", "b"), Output("lm", ("a", "b")), 4, 2, pads=0)
    arrays = {name: np.random.default_rng(0).normal(size=shape) for name, shape in net.shapes().items()}
    answer = v.run(Weights(net, arrays), "abb", all_positions=True)
    assert len(answer.distributions) == 3
    assert answer.log_probs == pytest.approx([np.log(answer.distributions[t]["b"]) for t in (0, 1)])
