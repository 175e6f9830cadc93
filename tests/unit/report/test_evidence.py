"""Where evidence comes from, and when a check must be made again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from atlas_rows import AUTOMATA, DEPTH, HEADLINES, MAP, RECORDED
from vitrify import files
from vitrify.claims import evidence_folder, position
from vitrify.files import keep_only, put
from vitrify.report import evidence
from vitrify.report.evidence import SOURCES, EvidenceStore, digest, recorded
from vitrify.report.recorded import written

QUICKEST = "the_sqrt_position_code_needs_a_cubic_temperature"
IMPORTING = "sums_of_others"


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the package, to change; one claim in it imports another one."""
    copy = tmp_path / "vitrify"
    for room in ("claims", "bounds", "report"):
        shutil.copytree(SOURCES / room, copy / room, ignore=shutil.ignore_patterns("*.pyc"))
    (copy / "claims" / f"{IMPORTING}.py").write_text(f"from vitrify.claims import {AUTOMATA}\n")
    names = frozenset(path.stem for path in (copy / "claims").glob("[a-z]*.py")) - {"catalogue"}
    monkeypatch.setattr(evidence, "SOURCES", copy)
    monkeypatch.setattr(evidence, "_claims", lambda: names)
    _forget()
    yield copy
    _forget()


def _forget() -> None:
    evidence._machinery.cache_clear()
    evidence._imported.cache_clear()


@pytest.mark.long
@pytest.mark.parametrize(
    ("changed", "again"),
    [
        (f"claims/{AUTOMATA}.py", {AUTOMATA, IMPORTING, MAP}),
        (f"claims/{DEPTH}.py", {DEPTH, MAP}),
        ("claims/_nets.py", {AUTOMATA, DEPTH, IMPORTING, MAP}),
        ("bounds/survey/models.py", {AUTOMATA, DEPTH, IMPORTING, MAP}),
        ("bounds/data.json", {AUTOMATA, DEPTH, IMPORTING, MAP}),
        ("report/site.py", set()),
    ],
)
def test_what_a_check_depends_on_makes_it_due_and_nothing_else(sources: Path, changed: str, again: set[str]) -> None:
    names = (AUTOMATA, DEPTH, IMPORTING, MAP)
    before = {name: digest(name) for name in names}
    with (sources / changed).open("a") as file:
        file.write("\n# changed\n")
    _forget()
    assert {name for name in names if digest(name) != before[name]} == again


def test_a_check_is_kept_and_found_again(tmp_path: Path) -> None:
    store, headline = EvidenceStore(tmp_path), HEADLINES[QUICKEST]
    assert store.find(headline, "quick") is None
    found = store.check(headline, "large")  # has no such scale
    assert store.find(headline, "quick") is None
    again = store.find(headline, "large")
    assert again is not None
    assert again == found
    assert (again.verdict, again.scale, again.name) == ("holds", "quick", QUICKEST)
    assert set(again.saboteurs) == set(again.evidence.parts)
    assert all(broken.verdict == "fails" for broken in again.saboteurs.values())
    assert store.seconds(headline, "large") == again.evidence.seconds
    store.path(headline, "large").rename(tmp_path / f"{QUICKEST}.large.0123.json")  # of other code
    assert store.find(headline, "large") is None
    assert store.seconds(headline, "large") == again.evidence.seconds


def test_what_is_kept_is_json_whatever_its_keys_are() -> None:
    assert json.loads(written({"wrong": {11: 0, "a": [1, {"b": 2}]}, "none": {}})) == {
        "wrong": {"11": 0, "a": [1, {"b": 2}]},
        "none": {},
    }


def test_recorded_evidence_comes_with_a_checkout_and_with_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert evidence_folder() == RECORDED
    (tmp_path / "docs" / "evidence").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert evidence_folder() == tmp_path / "docs" / "evidence"
    monkeypatch.chdir(tmp_path / "docs")
    assert evidence_folder() == RECORDED
    package = tmp_path / "lib" / "site" / "package"
    monkeypatch.setattr(files, "PACKAGE", package)
    assert evidence_folder() == tmp_path / "docs" / "docs" / "evidence"
    (package / "docs" / "evidence").mkdir(parents=True)
    assert evidence_folder() == package / "docs" / "evidence"
    assert recorded(HEADLINES[DEPTH], None) is None
    assert recorded(HEADLINES[DEPTH], tmp_path) is None
    (tmp_path / f"{DEPTH}.json").write_text("{half of")
    assert recorded(HEADLINES[DEPTH], tmp_path) is None
    for text in ('{"name": "another"}', f'{{"name": "{DEPTH}", "verdict": "holds"}}'):  # the last: an earlier version
        (tmp_path / f"{DEPTH}.json").write_text(text)
        assert recorded(HEADLINES[DEPTH], tmp_path) is None


def test_claims_are_in_the_order_of_parts_and_numbers() -> None:
    rows = [str(headline.fields["id"]) for headline in sorted(HEADLINES.values(), key=position)]
    assert [key for at, key in enumerate(row[0] for row in rows) if at == 0 or rows[at - 1][0] != key] == list("RBLG")
    numbers = [int(row[1:]) for row in rows if row[0] == "R"]
    assert numbers == sorted(numbers)
    assert numbers[-1] > 9


def test_a_file_is_written_whole_and_only_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.html"
    assert put(path, "once")
    before = path.stat().st_mtime_ns
    assert not put(path, b"once")
    assert path.stat().st_mtime_ns == before
    assert put(path, "twice")
    assert path.read_text() == "twice"
    (tmp_path / "deep" / ".file.html.partial").write_text("left by a process that was killed")
    (tmp_path / "deep" / "old.html").write_text("")
    keep_only(tmp_path / "deep", {"file.html"})
    assert [each.name for each in path.parent.iterdir()] == ["file.html"]
