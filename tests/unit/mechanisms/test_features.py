"""Features and grades: true directions score 1, those of an entangled network are turned, odd results are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cases import each
from command_line import vitrify
from vitrify.errors import FolderError, InputError, VitrifyError
from vitrify.mechanisms.features import mean_difference, residuals, score_features
from vitrify.mechanisms.grade import grade
from vitrify.mechanisms.puzzle import answer_json, puzzle, question_json, write


def probes(truth: dict[str, Any]) -> dict[str, list[float]]:
    return {f"{each['name']}={each['value']}": each["vector"] for each in truth["features"]}


@each("name", ["trigram-heads", "induction", "mod3-log-depth"])
@each("seed", [None, 3])
def test_true_directions_are_perfect_probes_and_dictionaries(name: str, seed: int | None) -> None:
    truth: dict[str, Any] = answer_json(puzzle(name, seed=seed))
    right = score_features(truth, {"probes": probes(truth)})
    assert right.features == len(truth["features"]) > 5
    assert min(right.cosine, right.recall, right.precision) > 0.999
    rows: dict[str, list[list[float]]] = {}
    for feature in truth["features"]:
        rows.setdefault(feature["moment"], []).append((-2 * np.array(feature["vector"])).tolist())
    assert score_features(truth, {"dictionary": rows}).recall == 1.0
    rng = np.random.default_rng(0)
    wrong = {name: rng.standard_normal(len(vector)).tolist() for name, vector in probes(truth).items()}
    assert score_features(truth, {"probes": wrong}).cosine < 0.5
    first = dict([next(iter(probes(truth).items()))])
    part = score_features(truth, {"probes": first})
    assert part.recall == pytest.approx(1 / part.features)
    assert part.precision == 1.0


def test_the_stream_of_the_twin_has_the_same_values_along_turned_features() -> None:
    one, twin = puzzle("trigram-heads"), puzzle("trigram-heads", seed=3)
    tokens = one.judge.domain[0].tokens
    for old, new in zip(one.concepts, twin.concepts, strict=True):
        plain, other = (residuals(p.wired.weights, tokens)[old.moment] for p in (one, twin))
        np.testing.assert_allclose(
            (plain - plain[0, 0]) @ old.features.T, (other - other[0, 0]) @ new.features.T, atol=1e-8
        )


def test_concepts_are_what_a_trace_reads() -> None:
    made = puzzle("trigram-heads")
    concept = next(each for each in made.concepts if each.name == "token")
    part = made.judge.domain[0]
    names = [made.wired.weights.architecture.inputs[number] for number in part.tokens[:, -1]]
    assert [concept.values[int(label)] for label in concept.labels[0][:, -1]] == names
    question = question_json(made)
    assert "vector" not in json.dumps(question)
    simple = score_features(answer_json(made), {"probes": mean_difference(question, made.wired.weights)})
    assert 0.6 < simple.cosine < 1


@each(
    "data",
    [{}, {"probes": {}, "dictionary": {}}, {"probes": [1]}, {"probes": {"x": [1.0]}}, {"dictionary": {"m": [["a"]]}}],
)
def test_odd_results_are_one_message(data: dict[str, Any]) -> None:
    with pytest.raises(VitrifyError, match=r"must|are"):
        score_features(answer_json(puzzle("bigram")), data)


def test_unknown_concepts_are_refused_and_the_command_scores(tmp_path: Path) -> None:
    made = puzzle("bigram")
    truth: dict[str, Any] = answer_json(made)
    width = len(truth["features"][0]["vector"])
    with pytest.raises(InputError, match="no concept of the puzzle"):
        score_features(truth, {"probes": {"lion=roars": [0.0] * width}})
    with pytest.raises(FolderError, match=f"list of {width} finite numbers"):
        score_features(truth, {"probes": {"token=a": [float("nan")] * width}})
    write(made, tmp_path)
    result = tmp_path / "result.json"
    result.write_text(json.dumps({"format": "vitrify circuit result", "version": 2, "probes": probes(truth)}))
    done = vitrify("benchmark-circuits", "features", tmp_path / "answers" / "bigram.json", result, "--json")
    assert json.loads(done.stdout)["recall"] == 1.0


def test_grades_grow_with_what_they_measure() -> None:
    grades = {}
    for name in ("bigram", "hops-1-5", "hops-3-5", "memory-32-14", "memory-32-22", "once-2", "once-4"):
        made = puzzle(name)
        grades[name] = grade(made.wired, made.circuit.edges)
    assert grades["hops-1-5"].composition == 2 < grades["hops-3-5"].composition
    assert grades["once-2"].depth < grades["once-4"].depth
    assert grades["bigram"].size == 3 < grades["once-4"].size
    assert grades["memory-32-14"].superposition > grades["memory-32-22"].superposition > 1
