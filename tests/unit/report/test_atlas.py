"""An atlas as it is written: what is checked, what is not checked again, and what an interruption leaves."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from atlas_rows import DEPTH, HEADLINES, RECORDED, TABLE, outcome
from command_line import vitrify
from vitrify.claims.catalogue import Outcome
from vitrify.errors import InputError
from vitrify.files import Lock, put
from vitrify.report import atlas
from vitrify.report.atlas import ClaimCheck, Done, build, lives
from vitrify.report.evidence import AtlasEntry, EvidenceStore
from vitrify.report.figures import Drawings
from worker_tasks import Aborting

QUICK = ("the_sqrt_position_code_needs_a_cubic_temperature", "parity_takes_a_diagonal_recurrence_a_negative_eigenvalue")
LEFT_OUT = re.compile(r'<data class="seconds">[^<]*</data>|,?\s*"seconds": [\d.e-]+')  # JSON leaves out 0.0


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Checks that find something at once, one after the other in this process; the names of what was checked."""
    names: list[str] = []

    def check(store: EvidenceStore, headline: Any, scale: Any) -> Outcome:
        names.append(headline.name)
        if headline.name == "two_layers_compose_functions":
            raise ValueError("too few letters")
        found = outcome(headline.name, scale=scale)
        put(store.path(headline, scale), json.dumps(found.to_json()))
        return found

    def run(jobs: Sequence[ClaimCheck]) -> Iterator[Done]:
        for job in jobs:
            try:
                job.check()
                yield Done(job, None)
            except ValueError as error:
                yield Done(job, str(error))

    monkeypatch.setattr(EvidenceStore, "check", check)
    monkeypatch.setattr(Drawings, "draw", lambda *_: None)
    monkeypatch.setattr(atlas, "run_checks", run)
    return names


def files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_what_trains_for_long_is_taken_from_what_is_recorded(checked: list[str], tmp_path: Path) -> None:
    rows = build(tmp_path, only=[*QUICK, DEPTH, TABLE], evidence=RECORDED)
    assert [(row.name, row.origin) for row in rows] == [
        (QUICK[0], "live"),
        (QUICK[1], "live"),
        (TABLE, "recorded"),
        (DEPTH, "recorded"),
    ]
    assert sorted(checked) == sorted(QUICK)
    del checked[:]
    rows = build(tmp_path, only=[DEPTH, QUICK[0]], evidence=RECORDED, every=True)
    assert [row.origin for row in rows] == ["live", "live"]
    assert checked == [DEPTH]
    (row,) = build(tmp_path, only=[DEPTH], evidence=tmp_path)
    assert (row.origin, row.verdict) == ("absent", "not recorded here")
    assert f"is not in {tmp_path}" in (tmp_path / "claims" / f"{DEPTH}.html").read_text()


def test_a_claim_is_checked_if_that_takes_seconds() -> None:
    built, trained = HEADLINES[QUICK[0]], HEADLINES[DEPTH]
    quick, long = (outcome(DEPTH, seconds=seconds) for seconds in (9.0, 11.0))
    assert lives(built, None, every=False)
    assert lives(trained, quick, every=False)
    assert not lives(trained, long, every=False)
    assert not lives(trained, replace(quick, scale="large"), every=False)
    assert not lives(trained, None, every=False)
    assert lives(trained, long, every=True)


def test_nothing_is_checked_or_written_twice(
    checked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, only=QUICK)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*") if path.name != ".lock"}
    rows = build(tmp_path, only=QUICK)
    assert sorted(checked) == sorted(QUICK)
    assert [row.verdict for row in rows] == ["holds", "holds"]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*") if path.name != ".lock"} == before
    assert before
    monkeypatch.setattr("vitrify.report.evidence.digest", lambda name: f"another state of the code of {name}")
    build(tmp_path, only=QUICK)
    assert sorted(checked) == sorted(2 * QUICK)


def test_a_page_is_there_before_the_checks_and_fills_in(
    checked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def watched(jobs: Sequence[ClaimCheck]) -> Iterator[Done]:
        seen.append((tmp_path / "index.html").read_text())
        for job in jobs:
            job.check()
            yield Done(job, None)
            seen.append((tmp_path / "index.html").read_text())

    monkeypatch.setattr(atlas, "run_checks", watched)
    ticks: list[tuple[float, float, str]] = []
    build(tmp_path, only=QUICK, progress=lambda *tick: ticks.append(tick))
    assert [text.count('data-verdict="being checked"') for text in seen] == [2, 1, 0]
    assert [done / total for done, total, _ in ticks] == [0, 0.5, 1]
    assert {name for _, _, name in ticks[1:]} == set(QUICK) == set(checked)


def test_a_check_that_breaks_is_said_and_the_others_are_made(checked: list[str], tmp_path: Path) -> None:
    rows = build(tmp_path, only=["two_layers_compose_functions", QUICK[0]])
    assert {row.name: row.verdict for row in rows} == {
        QUICK[0]: "holds",
        "two_layers_compose_functions": "could not be checked",
    }
    assert len(checked) == 2
    assert "too few letters" in (tmp_path / "claims" / "two_layers_compose_functions.html").read_text()


def test_two_atlases_do_not_write_to_one_folder(tmp_path: Path) -> None:
    with Lock(tmp_path / ".lock", wait=False), pytest.raises(InputError, match="another atlas is being written"):
        build(tmp_path, only=QUICK)


def test_the_command_says_where_to_look_and_what_does_not_hold(checked: list[str], tmp_path: Path) -> None:
    done = vitrify("atlas", "-o", tmp_path, "--only", QUICK[0], "--only", DEPTH)
    assert (done.returncode, checked) == (0, [QUICK[0]])
    assert f"open {tmp_path / 'index.html'}" in done.stdout
    assert "2 holds; 1 checked live, 1 recorded" in done.stdout
    done = vitrify("atlas", "-o", tmp_path, "--only", "two_layers_compose", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["claims"] == [
        {"name": "two_layers_compose_functions", "id": "R19", "verdict": "could not be checked", "origin": "broken"}
    ]
    done = vitrify("atlas", "-o", tmp_path, "--only", "no_such_claim")
    assert done.returncode == 2
    assert "no claim has the name" in done.stderr


@pytest.mark.long
def test_a_worker_that_ends_is_noticed_and_replaced(tmp_path: Path) -> None:
    values: Any = (AtlasEntry(HEADLINES[QUICK[0]], "absent"), "quick", tmp_path)
    jobs = [ClaimCheck(*values), Aborting(*values), ClaimCheck(*values)]  # nothing is recorded, none to draw
    ends = [done.error for done in atlas.run_checks(jobs, workers=1)]
    assert ends == [None, atlas.LOST, None]


def site_of(out: Path) -> dict[str, str]:
    """The files of a site without its store, and without how long anything took."""
    found = {name: data for name, data in files(out).items() if not name.startswith(("store/", ".lock"))}
    return {name: LEFT_OUT.sub("", data.decode("latin-1")) for name, data in found.items()}


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_an_atlas_that_is_killed_at_any_moment_goes_on_and_gives_the_same_site(tmp_path: Path) -> None:
    """Ten trials, killed with all its workers' parent at a random moment; then it runs to its end."""
    names = [*QUICK, "soft_attention_is_exact_after_snapping", "one_layer_in_a_loop_decides_connectivity", DEPTH]
    words = [sys.executable, "-m", "vitrify", "atlas", *(word for name in names for word in ("--only", name)), "-o"]
    begun = time.monotonic()
    subprocess.run([*words, tmp_path / "whole"], check=True, capture_output=True, cwd=RECORDED.parents[1])
    took = time.monotonic() - begun
    whole = site_of(tmp_path / "whole")
    assert len([name for name in whole if name.startswith("claims/")]) == 2 * len(names)
    draw, found = random.Random(0), []
    for trial in range(10):
        out = tmp_path / f"trial {trial}"
        process = subprocess.Popen(
            [*words, out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=RECORDED.parents[1]
        )
        time.sleep(draw.uniform(0.1, 0.95) * took)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kept = {path: path.read_bytes() for path in (out / "store").glob("*.json")} if out.exists() else {}
        found.append(len(kept))
        subprocess.run([*words, out], check=True, capture_output=True, cwd=RECORDED.parents[1])
        assert site_of(out) == whole
        assert {path: path.read_bytes() for path in kept} == kept  # what was found before was not looked for again
    assert len(set(found)) > 1  # it was killed at different moments


def test_a_row_says_why_it_has_no_verdict() -> None:
    assert AtlasEntry(HEADLINES[DEPTH], "waiting").verdict == "being checked"
    assert AtlasEntry(HEADLINES[DEPTH], "live", outcome(DEPTH, saboteur_rejected=False)).verdict == "undecided"
    assert AtlasEntry(HEADLINES[DEPTH], "live", outcome(DEPTH, verdict="fails")).verdict == "fails"
