"""Lists of claims, tables in a terminal of 80 columns, completion, and pages opened in a browser."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import webbrowser
from pathlib import Path

import pytest

from command_line import vitrify

ROOT = Path(__file__).parents[3]
FAILED = "multi_hop_reasoning_is_learned_in_a_sharp_transition"


def listed(*words: str) -> dict[str, dict[str, str]]:
    done = vitrify("list", *words, "--json")
    assert done.returncode == 0, done.stderr
    return {claim["name"]: claim for claim in json.loads(done.stdout)["claims"]}


def test_words_select_claims_by_id_name_and_title() -> None:
    assert list(listed("R14")) == ["any_automaton_runs_in_log_depth"]
    assert list(listed("LOG", "automaton", "depth")) == ["any_automaton_runs_in_log_depth"]
    assert {claim["id"] for claim in listed("R1").values()} == {"R1"}
    assert list(listed("R1", "sqrt", "cubic")) == ["the_sqrt_position_code_needs_a_cubic_temperature"]
    assert "nothing matches" in vitrify("list", "no-such-word").stdout


@pytest.mark.long
def test_options_select_claims_by_part_standing_and_verdict() -> None:
    every = listed()
    for option, field, values in [
        ("--standing", "standing", ("theorem", "experiment", "conjecture")),
        ("--verdict", "verdict", ("holds", "fails", "undecided", "none")),
    ]:
        parts = {value: listed(option, value) for value in values}
        assert sum(map(len, parts.values())) == len(every)
        assert all((claim[field] or "none") == value for value, part in parts.items() for claim in part.values())
    parts = {
        letter: listed("--part", name)
        for name, letter in zip(("represent", "limits", "learn", "generalize"), "RBLG", strict=True)
    }
    assert sum(map(len, parts.values())) == len(every)
    assert all(claim["id"].startswith(letter) for letter, part in parts.items() for claim in part.values())
    assert listed("--part", "learn", "--verdict", "fails")[FAILED]["standing"] == "experiment"
    assert vitrify("list", "--verdict", "wrong").returncode == 2


def test_verdicts_come_from_evidence_recorded_here_or_from_the_atlas(tmp_path: Path) -> None:
    name = "any_automaton_runs_in_log_depth"
    evidence, store = tmp_path / "docs" / "evidence", tmp_path / "build" / "atlas" / "store"
    evidence.mkdir(parents=True)
    store.mkdir(parents=True)

    def verdict() -> str | None:
        data = json.loads(vitrify("list", "R14", "--json", cwd=tmp_path).stdout)
        recorded: str | None = data["claims"][0]["verdict"]
        return recorded

    assert verdict() is None
    (store / f"{name}.quick.0123.json").write_text('{"evidence": {"verdict": "holds"}, "saboteur_rejected": false}')
    assert verdict() == "undecided"  # a check that its saboteur passes shows nothing
    (evidence / f"{name}.json").write_text("damaged")
    assert verdict() == "undecided"
    (evidence / f"{name}.json").write_text('{"evidence": {"verdict": "fails"}, "saboteur_rejected": true}')
    assert verdict() == "fails"


def test_a_claim_whose_saboteur_passes_is_undecided_in_every_table(tmp_path: Path) -> None:
    before_plans = ROOT / "docs" / "evidence" / "versions" / f"{FAILED}.v0.json"
    data = json.loads(before_plans.read_bytes())
    (tmp_path / f"{FAILED}.json").write_text(json.dumps({**data, "saboteur_rejected": False}))
    shown = vitrify("evidence", FAILED, "--evidence", str(tmp_path), columns=200).stdout
    assert "undecided" in shown
    assert "fails" not in shown


def test_a_statement_whose_null_passes_is_undecided_and_one_that_fails_stays_so(tmp_path: Path) -> None:
    data = json.loads((ROOT / "docs" / "evidence" / f"{FAILED}.json").read_bytes())
    passed = {subject: {**shares, "plateau": 0.9} for subject, shares in data["rejections"].items()}
    (tmp_path / f"{FAILED}.json").write_text(json.dumps({**data, "rejections": passed}))
    shown = " ".join(vitrify("evidence", FAILED, "--evidence", str(tmp_path), columns=300).stdout.split())
    assert "undecided: plateau; holds: transition, one layer; fails: two layers" in shown


def test_a_list_fits_80_columns_and_breaks_no_name() -> None:
    lines = vitrify("list", columns=80).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    names = set(listed())
    assert {line.split()[-1] for line in lines if re.match(r"[RBLG]\d+ ", line)} == names


@pytest.mark.long
@pytest.mark.parametrize(
    "words", [["evidence"], ["bound"], ["data"], ["check", "the_sqrt"], ["benchmark-circuits", "list"]]
)
def test_tables_fit_80_columns_and_break_no_word(words: list[str]) -> None:
    wide, narrow = (vitrify(*words, columns=columns).stdout for columns in (200, 80))
    assert max(map(len, narrow.splitlines())) <= 80
    shown = set(re.findall(r"[\w-]+", narrow))
    words_of_table = {word for word in re.findall(r"[\w-]+", wide) if not word[0].isdigit()}  # seconds may differ
    assert words_of_table - {"id", "claim"} <= shown  # paragraphs do not name their keys


def test_several_matches_are_listed_with_ids_and_exit_code_2() -> None:
    done = vitrify("check", "one", "head")
    assert done.returncode == 2
    first, *candidates = done.stderr.splitlines()
    assert re.fullmatch(r"error: \d+ claims match 'one head', name one of them:", first)
    assert 2 <= len(candidates) <= 11
    assert all(re.match(r"  [RBLG]\d+ +\w+$|  and \d+ more", line) for line in candidates)


@pytest.mark.long
def test_check_takes_the_words_of_one_claim_or_several_claims() -> None:
    together = json.loads(vitrify("check", "cubic", "temperature", "--json").stdout)
    assert [each["name"] for each in together] == ["the_sqrt_position_code_needs_a_cubic_temperature"]
    several = json.loads(vitrify("check", "the_sqrt", "cubic", "--json").stdout)
    assert [each["id"] for each in several] == ["R1"]


COMPLETE = "import sys; sys.argv = ['vitrify']; from vitrify.cli import main; main()"


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("show any_automaton_runs_in", ["any_automaton_runs_in_log_depth"]),
        ("build --construction log", ["log-depth"]),
        ("build --attention s", ["softmax", "sparsemax"]),
        ("train markov t", ["transformer", "two_attentions"]),
        ("data mark", ["markov"]),
        ("certify --mut", ["--mutants"]),
    ],
)
def test_names_and_options_are_completed(words: str, completions: list[str]) -> None:
    line = f"vitrify {words}"
    asked = {"_VITRIFY_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words.split()))}
    done = subprocess.run(
        [sys.executable, "-c", COMPLETE], env=os.environ | asked, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == completions


def test_the_completion_script_is_printed() -> None:
    code = "import sys; sys.argv = ['vitrify', '--show-completion', 'bash']; from vitrify.cli import main; main()"
    fixed = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # else that of the parent process counts
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=fixed)
    assert "_VITRIFY_COMPLETE=complete_bash" in done.stdout


@pytest.mark.long
def test_atlas_and_serve_open_what_the_other_one_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vitrify.cli import serving
    from vitrify.web import app
    from vitrify.web.site import ServerSettings

    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(serving, "START_SECONDS", 0.0)
    served: list[ServerSettings] = []
    monkeypatch.setattr(app, "serve", served.append)
    done = vitrify("atlas", "--only", "the_sqrt", "--open", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = tmp_path / "build" / "atlas" / "index.html"
    assert page.exists()
    assert opened == [page.as_uri()]
    assert vitrify("serve", "--open", "--port", 8765, cwd=tmp_path).returncode == 0
    assert served[0].atlas
    assert tmp_path / served[0].atlas == page.parent
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(10)
    assert opened[1] == "http://127.0.0.1:8765/"
