"""The command, its refusals and its report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from command_line import vitrify

pytestmark = pytest.mark.jax

OWN = """
import numpy as np

def make(vocabulary, length, seed):
    return Model(vocabulary, seed)

class Model:
    def __init__(self, vocabulary, seed):
        self.bias = np.random.default_rng(seed).normal(size=vocabulary)

    def logits(self, tokens):
        return np.broadcast_to(self.bias, (*tokens.shape, len(self.bias)))

    def step(self, tokens, targets, weights):
        self.bias = self.bias + 0.1
        self.bias[1] += 0.1
        return 1.0

def late(vocabulary, length, seed):
    return lambda tokens: np.zeros((len(tokens), vocabulary))

def evil(tokens):
    return np.zeros((*tokens.shape, 3))

globals()["<script>x</script>"] = evil
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a_model_of_mine.py"
    path.write_text(OWN)
    return path


def test_without_a_target_the_battery_is_listed() -> None:
    lines = [json.loads(line) for line in vitrify("diagnose", "--json").stdout.splitlines()]
    parity = next(line for line in lines if line["task"] == "parity")
    assert parity["vocabulary"] == ["<s>", "0", "1"]
    assert parity["tests"] == {"as trained": 33, "twice as long": 65}
    assert "S5" in vitrify("diagnose").stdout


def test_a_model_gets_a_table_json_and_a_report_in_one_file(file: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    words = ("--tasks", "parity", "--steps", "3", "--batch", "4", "--seeds", "2", "--rows", "16", "--kind", "lstm")
    done = vitrify("diagnose", f"{file}:make", *words, "--html", page)
    assert done.returncode == 0, done.stderr
    assert "allowed, not found" in done.stdout
    assert "LSTM*" in done.stdout
    assert "recorded, G4: the table: 1176 training runs" in done.stdout
    assert "seeds: 8" in done.stdout
    assert re.match(
        r"training takes about .+ s: 1 tasks × 3 trainings × 3 steps, .+ s for a step of parity", done.stderr
    )
    text = page.read_text()
    assert "http" not in text
    assert "<script" not in text
    assert "any_automaton_runs_on_one_recurrent_layer" in text
    found = json.loads(vitrify("diagnose", f"{file}:make", *words, "--json").stdout)
    assert [(cell["test"], cell["optimum"], cell["chance"]) for cell in found["cells"]] == [
        ("as trained", 1.0, 0.5),
        ("twice as long", 1.0, 0.5),
    ]
    assert found["kind"] == "LSTM"


def test_names_are_escaped_in_the_report(file: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = vitrify("diagnose", f"{file}:<script>x</script>", "--tasks", "parity", "--rows", "16", "--html", page)
    assert done.returncode == 0, done.stderr
    assert "not trained; tested on 16 sequences" in done.stdout
    assert "&lt;script&gt;" in page.read_text()
    assert "<script" not in page.read_text()


def test_a_model_of_the_wrong_shape_is_refused_with_exit_code_2(file: Path) -> None:
    done = vitrify("diagnose", f"{file}:late", "--tasks", "parity")
    assert done.returncode == 2
    assert "error: late on parity, given 32 rows of 33 tokens, must return logits of the shape" in done.stderr
    done = vitrify("diagnose", f"{file}:make", "--lr", "fast")
    assert (done.returncode, "--lr must be numbers" in done.stderr) == (2, True)
