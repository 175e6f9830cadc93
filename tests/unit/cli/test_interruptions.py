"""Readers that go away, Ctrl-C and SIGTERM: commands end in order, and what they made or reached is there."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import vitrify
from vitrify.learn.store import RunStore

COMMAND = (sys.executable, "-m", "vitrify")
TRAINING = "markov transformer p=0.2 length=8 layers=1 heads=1 d_model=8 units=8 batch=4 test_examples=16 steps=9000000"


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("interrupted")
    (folder / "x.regex").write_text("(a|b)*abb\n")
    assert vitrify("build", folder / "x.regex", "-o", folder / "net", "--max-length", 6).returncode == 0
    return folder / "net"


def test_who_reads_the_verdict_may_go_away(net: Path) -> None:
    (net / "certificate.json").unlink(missing_ok=True)
    words = f"{sys.executable} -m vitrify certify {net} | head -1"
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("holds")
    assert "Traceback" not in done.stderr
    assert json.loads((net / "certificate.json").read_text())["evidence"]["verdict"] == "holds"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_command_in_order(net: Path, number: int, code: int) -> None:
    words = [*COMMAND, "certify", str(net), "--mutants", "10000000", "--no-write"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_until_busy(process.pid)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (code, "interrupted\n")


def wait_until_busy(pid: int) -> None:
    """Wait until a process has worked for a while, which means that its imports are behind it."""
    ticks = 0
    while ticks < 200:
        time.sleep(0.05)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])


@pytest.mark.jax
@pytest.mark.long
def test_training_saves_a_checkpoint_and_says_how_to_resume(tmp_path: Path) -> None:
    words = [*COMMAND, "train", *TRAINING.split(), "--store", str(tmp_path / "runs")]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "step " not in (line := process.stderr.readline()):
        assert process.poll() is None, line
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 143, error
    said = re.search(r"interrupted: step ([\d,]+) of 9,000,000 is saved in .*; the same command resumes", error)
    assert said, error
    (record,) = RunStore(tmp_path / "runs").runs()
    (checkpoint, *_) = sorted((tmp_path / "runs").glob("groups/*/step-*"), reverse=True)
    assert record.state == "partial"
    assert int(checkpoint.stem.removeprefix("step-")) == int(said[1].replace(",", ""))
