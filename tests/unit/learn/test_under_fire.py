"""Workers that are killed at random moments change nothing in what a sweep leaves."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

QUICK = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a disk that need not be waited for


@pytest.mark.jax
@pytest.mark.long
@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_a_sweep_under_fire_leaves_what_one_in_peace_does(kills: int) -> None:
    with tempfile.TemporaryDirectory(dir=QUICK) as folder:
        words = [sys.executable, "-m", "under_fire", str(kills), "0", folder]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout)
    assert (figures["killed"], figures["equal"], figures["runs"]) == (kills, True, 12)
