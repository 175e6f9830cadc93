"""Whatever operation on the disk fails, or a process is killed at it: nothing is lost, and nothing is half-written."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import faulty_disk
from faulty_disk import FAULTS, SCENARIOS, SpecWriting, wrong
from vitrify.spec import kinds

QUICK = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a disk in memory: there is no power cut to survive here


@pytest.mark.long
@pytest.mark.parametrize("every", [23, pytest.param(1, marks=pytest.mark.slow)])
def test_a_fault_at_any_operation_loses_nothing(every: int) -> None:
    with tempfile.TemporaryDirectory(dir=QUICK) as folder:
        words = [sys.executable, "-m", "faulty_disk", str(every), folder]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert {name: each["problems"] for name, each in report.items() if each["problems"]} == {}
    assert set(report) == {scenario.__name__ for scenario in SCENARIOS}
    operations, faults = (sum(each[key] for each in report.values()) for key in ("operations", "faults"))
    assert operations > 200
    assert faults >= operations * len(FAULTS) // every


def test_a_writer_that_writes_in_place_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_place(path: Path, text: str) -> None:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(file, text.encode())
        os.close(file)

    scenario, root = SpecWriting(), tmp_path / "x"
    scenario.prepare(root)
    old = scenario.state(root)
    scenario.act(root)
    states = ({old, scenario.state(root)}, scenario.state(root))
    for at in range(4):
        assert wrong(scenario, root, at, errno.ENOSPC, states) is None
    monkeypatch.setattr(kinds, "write_text", in_place)
    assert "damaged" in str(wrong(scenario, root, 1, errno.ENOSPC, states))
    assert "damaged" in str(wrong(scenario, root, 1, "short", states))


def test_the_harness_counts_and_restores_the_operations(tmp_path: Path) -> None:
    plain = os.write
    with faulty_disk.failing(-1, None) as count:
        (tmp_path / "a").mkdir()
        assert os.write is not plain
    assert (count, os.write) == ([1], plain)
