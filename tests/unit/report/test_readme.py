"""The README's table of claims: one line for each, in the order of the atlas, with the verdicts that are kept."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from vitrify.claims.catalogue import listing
from vitrify.errors import InputError
from vitrify.report.readme import BEGIN, END, written

EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"
EMPTY = f"before\n{BEGIN}\n{END}\nafter\n"


def test_every_claim_has_a_line_and_nothing_else_changes() -> None:
    text = written(EMPTY, EVIDENCE)
    lines = re.findall(r"^\| ([A-Z]\d+) \| (\w+) \| (\w+) \| (.+) \|$", text, re.MULTILINE)
    known = {headline.name: headline for headline in listing()}
    assert sorted(name for _, name, _, _ in lines) == sorted(known)
    assert all(known[name].fields["row"] == row and known[name].fields["status"] == s for row, name, s, _ in lines)
    assert [row for row, *_ in lines[:2]] == ["R1", "R1"]
    assert lines[-1][0].startswith("G")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert written(text, EVIDENCE) == text


def test_the_verdict_is_the_one_that_is_kept(tmp_path: Path) -> None:
    shutil.copytree(EVIDENCE, tmp_path / "evidence")
    path = tmp_path / "evidence" / "depth_pays_on_words_of_permutations.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"verdict": "undecided", "scale": "quick"}))
    assert "| empirical | [undecided, quick](docs/evidence/depth_pays" in written(EMPTY, tmp_path / "evidence")
    path.unlink()
    with pytest.raises(InputError, match="depth_pays_on_words_of_permutations"):
        written(EMPTY, tmp_path / "evidence")


@pytest.mark.parametrize("text", ["no table", EMPTY + EMPTY, f"{END}\n{BEGIN}\n"])
def test_a_readme_without_the_two_lines_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="once each"):
        written(text, EVIDENCE)
