"""The loop on the command line: extract a spec, build it, certify the network against it; and models of others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import vitrify as v
from cases import each
from command_line import vitrify

EXAMPLES = Path(__file__).parents[3] / "examples"
PARITY = '''
import jax.numpy as jnp

def parity(tokens):
    """Yes after an even number of b; a is token 1, b is token 2."""
    odd = jnp.cumsum(jnp.asarray(tokens) == 2, axis=1) % 2
    return jnp.stack([odd, 1 - odd], axis=-1) * 4.0

class Chain:
    def __init__(self, vocabulary, length, seed):
        self.size = vocabulary

    def logits(self, tokens):
        return jnp.log(jnp.where(jnp.asarray(tokens)[..., None] == 1, jnp.array([0.75, 0.25]), jnp.array([0.5, 0.5])))

    def step(self, tokens, targets, weights):
        return 0.0
'''


@pytest.mark.long
@each("construction", ("linear-recurrence", "log-depth"))
def test_what_is_extracted_is_built_and_certifies_the_network(construction: str, tmp_path: Path) -> None:
    vitrify(
        "build", EXAMPLES / "abba.regex", "-o", "net", "--construction", construction, "--max-length", 8, cwd=tmp_path
    )
    done = vitrify("extract", "net", "-o", "read.automaton.json", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["as"], said["spec"], said["evidence"]["verdict"]) == ("automaton", "read.automaton.json", "holds")
    page = (EXAMPLES.parent / "docs" / "commands.md").read_text(encoding="utf-8")
    section = page.split("## `extract --json`\n")[1].split("\n## ")[0]
    assert {*said} <= {*re.findall(r"`(\w+)`", section)}
    report = json.loads((tmp_path / "read.extraction.json").read_text(encoding="utf-8"))
    assert {key: said[key] for key in report} == report
    assert v.read(tmp_path / "read.automaton.json") == v.read(EXAMPLES / "abba.regex")
    judged = vitrify("certify", "net", "--spec", "read.automaton.json", "--json", "--no-write", cwd=tmp_path)
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["links"] == said["evidence"]["links"]
    again = vitrify("build", "read.automaton.json", "-o", "again", "--construction", "elman", "--certify", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    shown = vitrify("extract", "again", cwd=tmp_path)
    assert shown.stdout.startswith("holds  equal for every length, proved\n     a  b\n→*0  1  2\n")


@pytest.mark.long
def test_formulas_and_ngram_models_are_written_too(tmp_path: Path) -> None:
    vitrify("build", EXAMPLES / "door.ltl", "-o", "door", "--attention", "hard", cwd=tmp_path)
    assert vitrify("extract", "door", "--as", "formula", "-o", "read.ltl", cwd=tmp_path).returncode == 0
    assert vitrify("certify", "door", "--spec", "read.ltl", "--no-write", cwd=tmp_path).returncode == 0
    assert vitrify("extract", "door", "-o", "read.automaton.json", cwd=tmp_path).returncode == 0
    assert vitrify("certify", "door", "--spec", "read.automaton.json", "--no-write", cwd=tmp_path).returncode == 0
    vitrify("build", EXAMPLES / "weather.arpa", "-o", "weather", "--max-length", 8, cwd=tmp_path)
    done = vitrify("extract", "weather", "--as", "ngram", "-o", "read.arpa", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "context of 2 symbols" in done.stdout
    assert v.read(tmp_path / "read.arpa").order == 3  # type: ignore[attr-defined]


@pytest.mark.jax
@pytest.mark.long
def test_models_of_others_are_extracted_by_their_answers(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PARITY, encoding="utf-8")
    words = ("extract", "--symbols", "a,b", "--longest", 8)
    done = vitrify(*words, "--model", "mine.py:parity", "--answers", "no,yes", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["known"] == "equal on every word up to length 8, the longest that the network reads"
    shown = vitrify(*words, "--model", "mine.py:parity", "--answers", "no,yes", cwd=tmp_path).stdout
    assert "     a  b\n→*0  0  1\n  1  1  0\n" in shown
    done = vitrify(*words, "--model", "mine.py:Chain", "--as", "ngram", "-o", "read.arpa", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "context of 1 symbol:" in done.stdout


@pytest.mark.long
def test_a_counterexample_ends_with_exit_code_1(tmp_path: Path) -> None:
    vitrify("build", EXAMPLES / "abba.regex", "-o", "net", "--max-length", 8, cwd=tmp_path)
    done = vitrify("extract", "net", "--max-states", 3, "-o", "three.automaton.json", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("fails  ")
    assert "a machine of 3 states, the most that are allowed, does not suffice" in done.stdout
    assert "words after which spec and network differ" in done.stdout


@each(
    ("words", "message"),
    [
        ((), "error: name one network: NET, or --model FILE.py:FACTORY"),
        (("net", "--model", "mine.py:f"), "error: name one network"),
        (("net", "--answers", "a,b"), "error: a network knows its answers"),
        (("net", "--symbols", "a,c"), "error: symbols must be some that the network reads, not c"),
        (("--model", "mine.py:f"), "error: say what the tokens and the logits of the model mean"),
        (("net", "--as", "ngram"), "error: an n-gram model is extracted from"),
        (
            ("net", "--as", "formula", "--resume", "x"),
            "error: only the search for an automaton or a counter can be resumed",
        ),
        (("net", "--seconds", "0"), "error: nothing was extracted: the budget of 0 seconds is spent"),
        (
            ("net", "--as", "counter", "--seconds", "0"),
            "error: nothing was extracted: the budget of 0 seconds is spent",
        ),
        (("net", "--max-length", "900"), "error: all words up to length 900 can't be run"),
        (("net", "-o", "read.txt"), "error: "),
    ],
)
def test_misuse_is_one_message_and_exit_code_2(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    vitrify("build", EXAMPLES / "abba.regex", "-o", "net", "--max-length", 8, cwd=tmp_path)
    done = vitrify("extract", *words, cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert done.stderr.startswith(message)
    assert len(done.stderr.splitlines()) == 1
