"""`make quick` leaves JAX out: what imports it is skipped, deselected if it is marked, and fails otherwise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MIXED = """
import subprocess, sys
import pytest

def test_plain():
    pass

@pytest.mark.jax
def test_marked():
    import jax

def test_unmarked():
    import jax

def test_in_a_process_of_its_own():
    program = "import jax; jax.numpy.zeros(2) + 1"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
"""


@pytest.mark.long
def test_jax_is_skipped_deselected_or_fails(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = jax", encoding="utf-8")
    (tmp_path / "test_mixed.py").write_text(MIXED, encoding="utf-8")
    (tmp_path / "test_all_of_it.py").write_text("import jax\n\ndef test_never(): pass", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "--quick", "-rf"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert "2 failed, 1 passed, 1 skipped, 1 deselected" in done.stdout, done.stdout + done.stderr
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert ["test_unmarked" in failed[0], "test_in_a_process_of_its_own" in failed[1]] == [True, True]
    assert "mark this test with @pytest.mark.jax" in done.stdout
