"""The construction of CONTRIBUTING.md, in a package of its own: one file, and nothing else is edited.

The commands of the page (show, build, certify, recheck) are run by `tests/meta/test_documents.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contributed import run, write_files
from documents import ROOT


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package `mine` and two specs."""
    home = write_files(ROOT / "CONTRIBUTING.md", tmp_path_factory.mktemp("home"))
    (home / "last.regex").write_text("(a|b)*a\n")
    (home / "even.regex").write_text("((a|b)(a|b))*\n")
    return home


def test_its_choice_is_an_option_of_the_command_line_and_of_the_app(package: Path) -> None:
    shown = run(package, "-m", "vitrify", "build", "--help").stdout
    assert "--sharpness" in shown
    assert "Logit of the right state" in shown
    (entry,) = (
        entry
        for entry in json.loads(run(package, "-m", "vitrify", "list", "--json").stdout)["constructions"]
        if entry["construction"] == "resets"
    )
    assert [(choice["name"], choice["default"], choice["low"]) for choice in entry["choices"]] == [
        ("max_length", 128, 1),
        ("sharpness", 1.0, 1),
    ]
    code = "import json; from vitrify.web.tasks import read; print(json.dumps(read('last.regex')))"
    offered = json.loads(run(package, "-c", code).stdout)["constructions"]
    assert entry["choices"] in [one["choices"] for one in offered if one["construction"] == "resets"]


def test_wrong_choices_are_refused_all_at_once(package: Path) -> None:
    build = ("-m", "vitrify", "build", "last.regex", "-o", "net", "--construction", "resets")
    done = run(package, *build, "--sharpness", "0.5", "--max-length", "none", "--window", "3")
    assert done.returncode == 2
    text = " ".join(done.stderr.split())
    assert "the construction 'resets' has no such choice: leave --window out; it has --max-length, --sharpness" in text
    assert "--sharpness (logit of the right state) must be a number of at least 1, not 0.5" in text
    assert "--max-length (longest input, in tokens) must be a whole number of at least 1, not none" in text
    refused = run(package, "-m", "vitrify", "build", "even.regex", "-o", "net", "--construction", "resets")
    assert "every letter must lead to the same state from all states" in refused.stderr


def test_nothing_else_is_imported(package: Path) -> None:
    code = (
        "import sys, vitrify as v; v.build(v.read('last.regex'), 'resets'); "
        "print(*(m for m in sys.modules if '.constructions.' in m))"
    )
    assert set(run(package, "-c", code).stdout.split()) == {
        "vitrify.constructions.catalogue",
        "vitrify.constructions.log_depth",  # for the name of BOS
        "mine.constructions.resets",
    }
