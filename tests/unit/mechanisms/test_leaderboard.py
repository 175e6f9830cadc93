"""Methods of strangers, entries of the leaderboard, the dataset folder and drawings."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from cases import each
from command_line import vitrify
from vitrify.errors import InputError, SpecError, VitrifyError
from vitrify.mechanisms.leaderboard import (
    Harder,
    LeaderboardEntry,
    Row,
    finder,
    harder,
    interval,
    measure,
    page,
    read_entry,
)
from vitrify.mechanisms.methods import METHODS
from vitrify.mechanisms.picture import circuit_picture
from vitrify.mechanisms.puzzle import Puzzle, answer_json, puzzle, write
from vitrify.mechanisms.score import Result
from vitrify.mechanisms.zoo import networks

METHOD = """
from pathlib import Path
import json

def find(folder):
    assert sorted(p.name for p in folder.iterdir()) == {files}, list(folder.iterdir())
    assert not any("answers" in str(p) for p in folder.rglob("*"))
    edges = json.loads((folder / "question.json").read_text())["edges"]
    return {{(a, b): float(b == "output") for a, b in edges}}
"""
FILES = ["README.md", "config.json", "labels.json", "model.safetensors", "question.json"]
BOARD = Path(__file__).parents[3] / "docs" / "how-to" / "circuit-leaderboard"
ROW = {"puzzle": "bigram", "rendering": "plain", "auc": 0.5, "f1": 0.5, "faithfulness": 1.0, "completeness": 1.0}
ENTRY = {"format": "vitrify circuit leaderboard entry", "version": 1, "method": "mine", "about": "?", "rows": [ROW]}


@cache
def bigram() -> Puzzle:
    return puzzle("bigram")


def test_a_strangers_method_is_scored_by_one_command_without_the_truth(tmp_path: Path) -> None:
    write(bigram(), tmp_path / "puzzles")
    file = tmp_path / "mine.py"
    file.write_text(METHOD.format(files=FILES))
    done = vitrify("benchmark-circuits", "run", file, tmp_path / "puzzles", "-o", tmp_path / "mine.json", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    assert row["puzzle"] == "bigram"
    assert 0.5 < row["auc"] < 1
    assert read_entry(tmp_path / "mine.json").rows == (Row(**row),)
    shown = vitrify("benchmark-circuits", "table", tmp_path / "mine.json", "-o", tmp_path / "board.md")
    assert "mine" in shown.stdout
    assert "| `mine` | 1 |" in (tmp_path / "board.md").read_text()


@each(
    ("text", "message"),
    [
        ("def find(folder): return 1 / 0", "fails on bigram: ZeroDivisionError"),
        ("def find(folder): return [1]", "must return a mapping"),
        ("def find(folder): return {('embed', 'tail'): 1.0}", "not edges of the network"),
        ("def find(folder): return {('embed', 'output'): 'much'}", "could not convert"),
        ("def find(folder): return {('embed', 'output'): float('nan')}", "finite"),
        ("def seek(folder): return {}", "must have a function find"),
        ("1 / 0", "can't be imported: ZeroDivisionError"),
        ("def find(", "can't be imported: SyntaxError"),
    ],
)
def test_a_faulty_method_is_one_message(text: str, message: str, tmp_path: Path) -> None:
    write(bigram(), tmp_path / "puzzles")
    (tmp_path / "mine.py").write_text(text)
    done = vitrify("benchmark-circuits", "run", tmp_path / "mine.py", tmp_path / "puzzles")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_methods_that_are_not_there_are_refused(tmp_path: Path) -> None:
    for name in ("lion", str(tmp_path / "lion.py"), str(tmp_path / "lion.py:find")):
        with pytest.raises(InputError, match=r"a method is|there is no such file"):
            finder(name)
    assert vitrify("benchmark-circuits", "run", "random", tmp_path).returncode == 2


@each(
    "change",
    [
        {"format": "other"}, {"version": 7}, {"method": 3}, {"rows": []}, {"rows": "many"}, {"rows": [1]},
        {"rows": [ROW | {"auc": 2}]}, {"rows": [ROW | {"f1": None}]}, {"rows": [ROW | {"rendering": "odd"}]},
        {"rows": [ROW, ROW]}, {"rows": [ROW | {"more": 1}]}, {"rows": [ROW | {"f1": True}]},
    ],
)  # fmt: skip
def test_malformed_entries_are_one_message(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "entry.json"
    path.write_text(json.dumps(ENTRY))
    assert read_entry(path).method == "mine"
    path.write_text(json.dumps(ENTRY | change))
    with pytest.raises(VitrifyError):
        read_entry(path)
    done = vitrify("benchmark-circuits", "table", path)
    assert done.returncode == 2
    assert done.stderr.count("error:") == 1
    assert "Traceback" not in done.stderr


def test_all_faults_of_an_entry_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "entry.json"
    path.write_text(json.dumps(ENTRY | {"about": 1, "rows": [ROW | {"f1": 3}, {}]}))
    with pytest.raises(SpecError) as caught:
        read_entry(path)
    assert len(caught.value.problems) == 3
    for text in ("no JSON", "[]"):
        path.write_text(text)
        with pytest.raises(VitrifyError):
            read_entry(path)


def test_the_four_numbers_by_hand() -> None:
    made = bigram()
    truth, true = answer_json(made), set(made.circuit.edges)
    best = {edge: float(edge in true) for edge in made.wired.edges}
    right = measure(truth, Result(frozenset(), best), made.judge)
    assert (right.auc, right.f1, right.faithfulness, right.completeness) == (1.0, 1.0, 1.0, 1.0)
    none = measure(truth, Result(frozenset()), made.judge)
    assert (none.auc, none.f1) == (None, 0.0)
    assert none.completeness == pytest.approx(none.faithfulness)
    everything = measure(truth, Result(frozenset(made.wired.edges)), made.judge)
    assert everything.faithfulness == 1.0
    assert everything.f1 == pytest.approx(2 * 3 / (13 + 3))


def test_intervals_and_differences() -> None:
    assert interval([0.5]) == (0.5, 0.5, 0.5)
    mean, low, high = interval([0.0, 1.0] * 50)
    assert (mean, low < 0.5 < high) == (0.5, True)
    assert 0.05 < high - mean < 0.15  # 1.96 standard errors are 0.098
    kinds = (("plain", 1.0), ("softened", 0.5))
    rows = [Row(f"p{number}", kind, value, 1.0, 1.0, 1.0) for number in range(4) for kind, value in kinds]
    assert harder(LeaderboardEntry("m", "", tuple(rows)), "softened") == Harder(4, 4, 0, (0.5, 0.5, 0.5))
    assert harder(LeaderboardEntry("m", "", tuple(rows)), "trained").puzzles == 0
    assert "Softened networks" in page([LeaderboardEntry("m", "", tuple(rows))])


def test_the_dataset_folder_has_all_but_the_truth(tmp_path: Path) -> None:
    out = tmp_path / "set"
    done = vitrify("benchmark-circuits", "dataset", out, "bigram", "majority", "--json")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (out / "puzzles.jsonl").read_text().splitlines()]
    assert {(row["puzzle"], row["rendering"]) for row in rows} >= {("bigram", "plain"), ("bigram", "entangled")}
    for row in rows:
        assert (out / row["model"] / "model.safetensors").is_file()
        assert json.loads((out / row["model"] / "labels.json").read_text())["spaces"] == []
        question = json.loads((out / row["question"]).read_text())
        assert not {"features", "effect", "faithfulness", "renamed"} & set(question)
        assert (tmp_path / "set-truths" / f"{row['name']}.json").is_file()
    assert not [path for path in out.rglob("*.*") if path.is_file() and b"circuit answer" in path.read_bytes()]
    assert (out / "README.md").read_text().startswith("---\nlicense: apache-2.0\n")
    loaded = subprocess.run([sys.executable, out / "load_puzzles.py"], capture_output=True, text=True, check=True)
    assert "bigram " in loaded.stdout
    done = vitrify("benchmark-circuits", "run", "random", out, "--answers", tmp_path / "set-truths", "--json")
    assert len(json.loads(done.stdout)["rows"]) == len(rows)
    inside = vitrify("benchmark-circuits", "dataset", out, "bigram", "--truths", out / "truths")
    assert inside.returncode == 2
    assert "truths must be outside the folder" in inside.stderr


def test_drawings_have_an_arrow_for_each_edge_and_show_what_is_missed(tmp_path: Path) -> None:
    made = bigram()
    true = made.circuit.edges
    wrong = next(edge for edge in made.wired.edges if edge not in true)
    for found, count, dashed in ((None, len(true), 0), ([*true[1:], wrong], 2 * len(true) + 1, 1)):
        root = ElementTree.fromstring(circuit_picture(made.wired, true, found))
        lines = [node for node in root.iter("{http://www.w3.org/2000/svg}path") if node.get("fill") == "none"]
        assert len(lines) == count
        assert sum(node.get("stroke-dasharray") is not None for node in lines) == dashed
        titles = [node.text for node in root.iter("{http://www.w3.org/2000/svg}title")]
        assert all(f"{a} → {b}" in titles for a, b in true)
        left, top, width, height = map(float, str(root.get("viewBox")).split())
        for box in root.iter("{http://www.w3.org/2000/svg}rect"):
            assert left <= float(box.get("x", -1)) <= width
            assert top <= float(box.get("y", -1)) <= height
    assert made._repr_html_().startswith("<svg")
    write(made, tmp_path)
    result = tmp_path / "result.json"
    result.write_text(json.dumps({"format": "vitrify circuit result", "version": 2, "edges": [list(true[0])]}))
    done = vitrify("benchmark-circuits", "draw", tmp_path / "answers" / "bigram.json", result, "-o", tmp_path / "c.svg")
    assert done.returncode == 0, done.stderr
    assert "1 of 3" in (tmp_path / "c.svg").read_text()


def test_the_page_is_made_from_the_recorded_entries() -> None:
    entries = [read_entry(path) for path in sorted(BOARD.glob("*.json"))]
    assert BOARD.with_suffix(".md").read_text(encoding="utf-8") == page(entries)
    assert {entry.method for entry in entries} == set(METHODS)
    assert {row.puzzle for entry in entries for row in entry.rows} <= set(networks())


def test_nothing_is_random_in_a_run() -> None:
    made = bigram()
    one, two = (measure(answer_json(made), Result(frozenset(made.circuit.edges[:1])), made.judge) for _ in range(2))
    assert one == two
    assert np.isfinite([one.f1, one.completeness]).all()
