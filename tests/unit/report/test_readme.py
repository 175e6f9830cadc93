"""Tables of verdicts: a line for every claim, in the order of the atlas, and sums by part in the README."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from readme_table import BEGIN, END, all_claims, by_part, written
from vitrify.claims.catalogue import listing
from vitrify.errors import InputError

EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"
EMPTY = f"before\n{BEGIN}\n{END}\nafter\n"


@pytest.mark.long
def test_every_claim_has_a_line_and_nothing_else_changes() -> None:
    text = written(EMPTY, EVIDENCE, all_claims)
    lines = re.findall(r"^\| ([A-Z]\d+) \| \[.+\]\(#(\w+)\) \| (\w+) \| (.+) \| .*\|$", text, re.MULTILINE)
    known = {headline.name: headline for headline in listing()}
    assert sorted(name for _, name, _, _ in lines) == sorted(known)
    assert all(known[name].fields["id"] == row and known[name].fields["standing"] == s for row, name, s, _ in lines)
    assert [row for row, *_ in lines[:2]] == ["R1", "R1"]
    assert lines[-1][0].startswith("G")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert written(text, EVIDENCE, all_claims) == text


@pytest.mark.long
def test_the_verdict_is_the_one_that_is_kept(tmp_path: Path) -> None:
    shutil.copytree(EVIDENCE, tmp_path / "evidence")
    path = tmp_path / "evidence" / "deeper_transformers_learn_longer_permutation_word_problems.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"scale": "quick", "evidence": data["evidence"] | {"verdict": "undecided"}}))
    text = written(EMPTY, tmp_path / "evidence", all_claims)
    assert f"| experiment | {{download}}`undecided </evidence/{path.name}>` |" in text
    assert "| version 0, criterion older than the run: no; quick scale: reduced |" in text
    path.unlink()
    assert "| experiment | not yet run |  |" in written(EMPTY, tmp_path / "evidence", all_claims)


@pytest.mark.long
def test_verdicts_by_part_add_up() -> None:
    counts = [[int(cell) for cell in line.split(" | ")[1:7]] for line in by_part(EVIDENCE).splitlines()[2:]]
    assert len(counts) == 4
    assert all(claims == sum(verdicts) for claims, *verdicts in counts)
    assert sum(claims for claims, *_ in counts) == len(listing())


@pytest.mark.parametrize("text", ["no table", EMPTY + EMPTY, f"{END}\n{BEGIN}\n"])
def test_a_readme_without_the_two_lines_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="once each"):
        written(text, EVIDENCE, all_claims)
