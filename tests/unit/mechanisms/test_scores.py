"""Puzzles on disk, results, scores, and path patching without any library on the induction network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import vitrify
from oracles import naive_patching
from vitrify.errors import FolderError, InputError
from vitrify.mechanisms.parts import Edge
from vitrify.mechanisms.puzzle import VERSION, Puzzle, answer_json, puzzle, question_json, result_json, write
from vitrify.mechanisms.score import Agreement, Result, Score, score, score_files

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "circuit-benchmark.md"


@cache
def induction(seed: int | None = None) -> Puzzle:
    return puzzle("induction", seed=seed)


def scored(made: Puzzle, edges: Iterable[Edge]) -> Score:
    return score(answer_json(made), Result(frozenset(edges)), made.judge)


def by_patching(made: Puzzle, pairs: int) -> set[Edge]:
    """The edges that matter, by the definition and with the question only."""
    question: dict[str, Any] = json.loads(json.dumps(question_json(made)))
    part, found = question["domain"][0], set()
    groups = {node["name"]: node["units"] for node in question["nodes"] if node["kind"] == "units"}

    def answers(logits: Any) -> Any:
        return logits >= logits.max(axis=-1, keepdims=True) - question["metric"]["tolerance"]

    runs = [naive_patching.run(made.wired.weights, groups, np.array(word)) for word in part["tokens"]]
    for (word, donor), places in list(zip(part["pairs"], part["donor_positions"], strict=True))[-pairs:]:
        clean, asked = answers(runs[word][0]), np.array(part["mask"][word], dtype=bool)
        given = {node: value[places] for node, value in runs[donor][1].items()}
        for edge in map(tuple, question["edges"]):
            if edge not in found:
                cut = naive_patching.run(made.wired.weights, groups, np.array(part["tokens"][word]), [edge], given)[0]
                if (answers(cut) != clean).any(axis=-1)[asked].any():
                    found.add(edge)
    return found


@pytest.mark.long
@pytest.mark.parametrize("seed", [None, 3])
def test_path_patching_recovers_the_induction_circuit(seed: int | None) -> None:
    made = induction(seed)
    found = scored(made, by_patching(made, 12))
    one = Agreement(1.0, 1.0, 1.0)
    assert (found.edges, found.between_nodes, found.nodes, found.faithfulness) == (one, one, one, 1.0)


@pytest.mark.long
def test_right_and_wrong_circuits_of_an_entangled_twin_are_told_apart() -> None:
    made = induction(3)
    true = set(made.circuit.edges)
    right = scored(made, true)
    assert right.edges == Agreement(1.0, 1.0, 1.0)
    assert right.faithfulness == 1.0
    for edge in true:
        short = scored(made, true - {edge})
        assert short.edges is not None
        assert short.edges.f1 < 1 == short.edges.precision
        assert short.faithfulness is not None
        assert short.faithfulness < 1
    for edge in set(made.wired.edges) - true:
        long = scored(made, true | {edge})
        assert long.edges is not None
        assert long.edges.f1 < 1 == long.edges.recall
        assert long.faithfulness == 1.0
    plain = scored(made, set(induction().circuit.edges) & set(made.wired.edges))  # what the old names would say
    swapped = {(a, b.replace(".q", ".k")) for a, b in true}
    wrong = scored(made, swapped & set(made.wired.edges))
    everything = scored(made, made.wired.edges)
    for bad in (wrong, everything, scored(made, ())):
        assert bad.edges is not None
        assert bad.edges.f1 < 1
    assert everything.faithfulness == 1.0
    assert plain.faithfulness is not None


def test_precision_recall_and_f1_by_hand() -> None:
    half = Agreement.of({1, 2, 3, 4}, {3, 4, 5})
    assert (half.precision, half.recall, half.f1) == pytest.approx((0.5, 2 / 3, 4 / 7))
    assert Agreement.of(set(), {1}) == Agreement(0.0, 0.0, 0.0)
    assert Agreement.of({1}, set()) == Agreement(0.0, 1.0, 0.0)
    assert Agreement.of(set(), set()) == Agreement(1.0, 1.0, 1.0)


def test_auc_is_the_chance_that_a_true_edge_is_above_another() -> None:
    made = induction()
    answer, rng = answer_json(made), np.random.default_rng(0)
    true, edges = set(made.circuit.edges), made.wired.edges
    for _ in range(5):
        scores = {edge: float(rng.integers(4)) for edge in edges if rng.random() < 0.9}
        value = {edge: scores.get(edge, -1.0) for edge in edges}
        pairs = [(value[a], value[b]) for a in true for b in edges if b not in true]
        wanted = np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs])
        found = score(answer, Result.from_json(result_json("induction", scores=scores)))
        assert found.auc == pytest.approx(wanted)
        assert found.faithfulness is None
    best = {edge: 1.0 if edge in true else -0.5 for edge in edges}
    result = Result.from_json(result_json("induction", scores=best))
    assert set(result.edges) == true  # above 0
    assert score(answer, result).auc == 1.0
    low = Result.from_json(result_json("induction", scores=best) | {"threshold": -1})
    assert set(low.edges) == set(edges)


def test_a_result_may_name_heads_without_their_inputs() -> None:
    made = induction()
    whole = {(a, b.removesuffix(".q").removesuffix(".k").removesuffix(".v")) for a, b in made.circuit.edges}
    found = scored(made, whole)
    assert found.edges is None
    assert found.between_nodes == Agreement(1.0, 1.0, 1.0)
    assert found.faithfulness == 1.0


def test_odd_results_are_refused() -> None:
    made = induction()
    with pytest.raises(InputError, match="not edges of the network, the first being embed → tail"):
        scored(made, {("embed", "tail")})
    for data in ({}, {"edges": [["embed"]]}, {"scores": [["embed", "output", "much"]]}, {"edges": 3}):
        with pytest.raises(FolderError, match="a result"):
            Result.from_json(data)
    with pytest.raises(FolderError, match="finite"):
        Result.from_json({"scores": [["embed", "output", float("nan")]]})


def test_the_page_names_the_version_and_every_key_of_both_files() -> None:
    _, *sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (formats,) = (section for section in sections if section.startswith("File formats"))
    assert formats.startswith(f"File formats, version {VERSION}\n")
    assert re.findall(r'"vitrify circuit \w+"`, (\d+)', formats) == [str(VERSION)] * 2
    rows = re.findall(r"^\| (`.+?) \| (.+) \|$", formats, re.MULTILINE)
    columns = [name for column, _ in rows for name in re.findall(r"`([^`]+)`", column)]
    made = induction()
    question, answer = question_json(made), answer_json(induction(3))
    assert columns == [*question, *answer]
    for column, keys in (
        ("`metric`", question["metric"]),
        ("`domain`", question["domain"][0]),
        ("`nodes`", question["nodes"][0]),
        ("`about`, `entangled`", {"renamed"}),
    ):
        assert set(keys) <= set(re.findall(r"`(\w+)`", dict(rows)[column])), column


def test_files_and_commands(tmp_path: Path) -> None:
    done = vitrify("benchmark-circuits", "make", tmp_path, "bigram", "--entangle", 4, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["puzzles"] == [
        {"name": "bigram", "nodes": 7, "edges": 26, "composed": 18, "true": 3, "faithfulness": 1.0}
    ]
    answer = json.loads((tmp_path / "answers" / "bigram.json").read_text())
    question = (tmp_path / "bigram" / "question.json").read_text()
    assert set(answer["entangled"]["renamed"].values()) <= {node["name"] for node in json.loads(question)["nodes"]}
    assert "renamed" not in question
    assert not any("about" in node for node in json.loads(question)["nodes"])
    edges = [edge[:2] for edge in answer["edges"]]
    result = tmp_path / "result.json"
    result.write_text(json.dumps(result_json("bigram", edges)))
    done = vitrify("benchmark-circuits", "score", tmp_path / "answers" / "bigram.json", result, "--json")
    found = json.loads(done.stdout)
    assert found["edges"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert found["faithfulness"] == 1.0
    result.write_text(json.dumps(result_json("bigram", edges[:-1])))
    done = vitrify("benchmark-circuits", "score", tmp_path / "answers" / "bigram.json", result)
    assert "0.6667" in done.stdout
    assert "answers of the circuit alone" in done.stdout
    result.write_text("{}")
    done = vitrify("benchmark-circuits", "score", tmp_path / "answers" / "bigram.json", result)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert vitrify("benchmark-circuits", "make", tmp_path, "lion").returncode == 2
    listed = json.loads(vitrify("benchmark-circuits", "list", "--json").stdout)
    assert len(listed) >= 40


def test_another_network_is_not_what_the_answer_is_about(tmp_path: Path) -> None:
    write(induction(), tmp_path / "plain")
    write(induction(3), tmp_path / "twin")
    result = tmp_path / "result.json"
    result.write_text(json.dumps(result_json("induction", [])))
    answer = tmp_path / "plain" / "answers" / "induction.json"
    assert score_files(answer, result).faithfulness is not None
    with pytest.raises(InputError, match="is not the network"):
        score_files(answer, result, tmp_path / "twin" / "induction")
    result.write_text(json.dumps(result_json("bigram", [])))
    with pytest.raises(InputError, match="about 'bigram'"):
        score_files(answer, result)
