"""Probabilistic automata: their bigram models and files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cases import each
from vitrify.errors import InputError, SpecError
from vitrify.spec import read_spec
from vitrify.spec.automata.probabilistic import ProbabilisticAutomaton, random_pfsa

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_probabilities_of_all_strings_sum_to_one() -> None:
    for seed in range(5):
        begin, moves, end = random_pfsa(seed, 3, 2).matrices
        total, now = 0.0, begin
        for _ in range(2000):
            total += float(now @ end)
            now = now @ moves.sum(axis=0)
        assert total == pytest.approx(1.0, abs=1e-9)


@each("seed", range(4))
def test_the_bigram_model_knows_what_follows_each_state(seed: int) -> None:
    spec = random_pfsa(seed, 3, 2, density=0.5)
    chances = {(q, f"{y}/{r}"): p for q, y, r, p in spec.transitions}
    ends = dict(spec.final)
    for token in spec.tokens:
        state = token.split("/")[1]
        for word in spec.bigram.predicted:
            p = ends.get(state, 0.0) if word == "</s>" else chances.get((state, word), 0.0)
            assert np.exp(spec.bigram.log_prob([token], word)) == pytest.approx(p, abs=1e-12)


def test_states_are_erased() -> None:
    spec = random_pfsa(0, 2, 2)
    assert spec.erased(["a/q0", "b/q1", "</s>"]) == ("a", "b")
    said = spec.conclusion(["a/q0"], ["b/q1", "</s>"])
    assert said == {"string": "a b", "probability": f"{spec.probability('ab'):.6g}"}
    assert spec.conclusion([], ["b/q1"]) == {"string": "b"}
    with pytest.raises(InputError, match="letters must be among a b; unknown: 'z'"):
        spec.probability("az")


def test_files_read_back(tmp_path: Path) -> None:
    path = tmp_path / "some.pfsa.json"
    for spec in (random_pfsa(0, 1, 1), random_pfsa(3, 4, 3)):
        spec.write(path)
        assert ProbabilisticAutomaton.read(path) == spec
    example = read_spec(EXAMPLES / "weather.pfsa.json")
    assert isinstance(example, ProbabilisticAutomaton)
    assert example.probability(["dry"]) == 0.1484375


GOOD = {
    "states": ["q", "r"],
    "alphabet": ["a"],
    "initial": {"q": 1},
    "transitions": [["q", "a", "q", 0.25], ["q", "a", "r", 0.5]],
    "final": {"q": 0.25, "r": 1},
}
BAD = {
    "list": ("[]", ["must be a table with states, alphabet, initial, transitions, final"]),
    "not JSON": ("{", ["json:1: the file must be JSON"]),
    "keys": (
        json.dumps({**GOOD, "x": 1, "final": 3} | {}),
        ["x is not a parameter; there are: states", "final .state: probability. must be a table"],
    ),
    "missing": ("{}", [f"{key} is missing: " for key in GOOD]),
    "twice": (json.dumps(GOOD).replace('"q": 1}', '"q": 1, "q": 0}'), ["initial.q is given twice"]),
    "shapes": (
        json.dumps({**GOOD, "states": [1], "alphabet": "a", "transitions": [["q", "a", "q"], ["q", "a", "q", "1"]]}),
        [
            'states.0 must be a text, not 1; write "1"',
            "alphabet must be a list",
            "transitions.0 .* must be a list of 4: a text, a text, a text, a number",
            "transitions.1.3 .* must be a number",
        ],
    ),
    "transitions": (json.dumps({**GOOD, "transitions": {}}), ["transitions .* must be a list"]),
    "sums": (
        json.dumps({**GOOD, "initial": {"q": 0.5}, "final": {"r": 0.5}}),
        ["initial must sum to 1, they sum to 0.5", "leave 'q' .* sum to 0.75", "leave 'r' .* sum to 0.5"],
    ),
    "strangers": (
        json.dumps({**GOOD, "initial": {"z": 1}, "transitions": [["q", "b", "q", 0.75], ["y", "a", "r", 0.5]]}),
        ["initial names the state 'z'", "transition 1 names 'b'", "transition 2 names 'y'"],
    ),
    "ranges": (
        json.dumps({**GOOD, "transitions": [["q", "a", "q", -0.25], ["q", "a", "r", 1.0]]}),
        ["transition 1: the probability must be from 0 to 1, is -0.25"],
    ),
    "repeated": (
        json.dumps({**GOOD, "transitions": [["q", "a", "r", 0.25], ["q", "a", "r", 0.5]]}),
        ["the transition from 'q' to 'r' on 'a' is listed 2 times"],
    ),
    "names": (json.dumps({**GOOD, "alphabet": ["a", "b/c", "a"]}), ["letter 'a'", "must not contain '/'"]),
}


@each("case", BAD)
def test_mistakes_are_told_all_at_once(case: str, tmp_path: Path) -> None:
    text, messages = BAD[case]
    path = tmp_path / "bad.pfsa.json"
    path.write_text(text, encoding="utf-8")
    for message in messages:
        with pytest.raises(SpecError, match=message):
            ProbabilisticAutomaton.read(path)
    with pytest.raises(SpecError) as caught:
        ProbabilisticAutomaton.read(path)
    assert len(caught.value.problems) == len(messages)
    assert all(problem.file == str(path) for problem in caught.value.problems)
