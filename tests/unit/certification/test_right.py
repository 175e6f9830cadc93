"""Right answers as rows are what right nets say, for every example."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitrify.certification import net_check
from vitrify.constructions.catalogue import build
from vitrify.net.inference import log_probabilities, trace
from vitrify.spec import read_spec
from vitrify.spec.automata.automaton import Automaton
from vitrify.spec.kinds import suffix_of
from vitrify.spec.languages.dyck import Dyck

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if suffix_of(path.name))
QUICK = {"adder8", "abba", "ambiguous", "awoke", "balanced", "capitals", "door", "estimate", "recall", "roof", "towns"}
QUICK |= {"weather.pfsa", "world"}  # with these, one for each oracle


def said(output: Any, logits: Any) -> Any:
    if output.kind == "lm":
        return np.exp(log_probabilities(output, logits))
    if output.kind == "values":
        return logits
    if output.kind == "next":
        return logits > 0
    return np.arange(logits.shape[1]) == logits.argmax(axis=1)[:, None]


def compare(spec: Any, shape: str | None = None, **settings: Any) -> int:
    """How many answers along an input the rows agree with; the net is known to be right."""
    weights = build(spec, shape, **settings)
    net: Any = weights.architecture
    oracle: Any = net_check(net, spec).oracle
    rng = np.random.default_rng(1)
    if net.reads == "tokens":
        word = oracle.language.draw(rng) if oracle.language else rng.integers(1, len(net.inputs), size=6).tolist()
        right = oracle.right(np.array(word, dtype=np.int64))
        logits = trace(weights, [net.inputs[i] for i in word])["hook_logits"][net.pads - 1 :]
    else:
        point = oracle.cases(rng)[0].inputs[0]
        right = np.atleast_2d(oracle.right(point))
        logits = np.asarray(net.forward(weights.prepared, point[None]))
        logits = logits[0] if net.reads == "rows" else logits.reshape(-1, logits.shape[-1])[-1:]
    assert right.shape == logits.shape
    asked = ~np.isnan(right[:, 0])
    np.testing.assert_allclose(said(net.output, logits)[asked], right[asked], rtol=0, atol=1e-3)
    return int(asked.sum())


def marked(name: str) -> Any:
    quick = QUICK & {name.split(".")[0], name[:12]}
    return name if quick else pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [*map(marked, NAMES)])
def test_right_nets_say_what_the_rows_say(name: str) -> None:
    assert compare(read_spec(EXAMPLES / name))


def test_other_outputs_of_a_spec_have_rows_too() -> None:
    assert compare(Dyck.of("( )", depth=2, length=6), "dyck-recognizer")
    assert compare(Automaton.from_regex("(a|ba*b)*"), "parity", max_length=6)


def test_outside_a_language_nothing_is_asked() -> None:
    spec = read_spec(EXAMPLES / "phrases.pcfg")
    net: Any = build(spec).architecture
    oracle: Any = net_check(net, spec).oracle
    right = oracle.right(np.array([net.input_ids[word] for word in ("the", "the")]))
    assert np.isnan(right[:, 0]).tolist() == [False, False, True]
