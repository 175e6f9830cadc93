"""The time and the memory of a command are bounded; what is left out for want of them is said."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import vitrify as v
from command_line import vitrify
from vitrify.certification import checking
from vitrify.errors import BudgetSpent, InputError, SpecError, VitrifyError
from vitrify.limits import MAX_SEED, Meter, checked_seed, limited


def test_time_is_bounded_and_a_clock_around_goes_on() -> None:
    outer = signal.getitimer(signal.ITIMER_REAL)[0]
    began = time.monotonic()
    message = r"sleeping takes more than the 0.1 seconds .* --seconds"
    with pytest.raises(BudgetSpent, match=message), limited("sleeping", 0.1):
        time.sleep(30)
    assert time.monotonic() - began < 20
    assert not outer or 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= outer


def test_who_catches_the_alarm_is_stopped_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitrify.limits.REPEAT_SECONDS", 0.05)
    caught = 0

    def stubborn() -> None:
        nonlocal caught
        with limited("catching", 0.05):
            while caught < 3:
                try:
                    time.sleep(30)
                except VitrifyError:
                    caught += 1
            time.sleep(30)

    with pytest.raises(BudgetSpent):
        stubborn()
    assert caught == 3


def test_memory_is_bounded_and_free_again() -> None:
    message = r"filling takes more than the 0.0625 GiB .* --memory"
    with pytest.raises(BudgetSpent, match=message), limited("filling", None, 1 << 26):
        np.ones(1 << 27)
    assert np.ones(1 << 24).sum() == 1 << 24


def test_another_thread_has_no_clock() -> None:
    done = []

    def work() -> None:
        with limited("work", 0.01):
            time.sleep(0.1)
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


def test_steps_are_counted() -> None:
    meter = Meter(10, lambda steps: SpecError([f"more than {steps} steps"]))
    meter.add(10)
    with pytest.raises(SpecError, match="more than 10 steps"):
        meter.add()


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1, 10**5000], ids=["negative", "33 bits", "5000 digits"])
def test_a_seed_that_not_every_generator_takes_is_refused(seed: int) -> None:
    spec = v.read("cyclic:2")
    net = v.build(spec, max_length=3)
    for asked in (checked_seed, lambda seed: v.certify(net, spec, seed=seed), lambda seed: v.extract(net, seed=seed)):
        with pytest.raises(InputError, match="a seed must be a whole number from 0 to 4,294,967,295"):
            asked(seed)


def test_certify_says_what_it_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.regex").write_text("(a|b)*abb\n")
    assert vitrify("build", tmp_path / "x.regex", "-o", tmp_path / "net", "--max-length", 3).returncode == 0

    def slow(*_: object, **__: object) -> None:
        time.sleep(60)

    monkeypatch.setattr(checking, "with_proof", slow)
    done = vitrify("certify", tmp_path / "net", "--seconds", 4, "--json")
    assert done.returncode == 0, done.stderr
    assert "left out: the proof of both links" in done.stdout
    assert "left out: the proof" in (tmp_path / "net" / "certificate.json").read_text()


@pytest.mark.parametrize("command", ["build", "analyze", "explain", "certify"])
def test_commands_end_when_their_time_is_over(tmp_path: Path, command: str) -> None:
    (tmp_path / "x.regex").write_text("(a|b)*abb\n")
    assert vitrify("build", tmp_path / "x.regex", "-o", tmp_path / "net", "--max-length", 3).returncode == 0
    place = tmp_path / ("net" if command in ("explain", "certify") else "x.regex")
    words = [command, place, "--seconds", 0, *(["-o", tmp_path / "other"] if command == "build" else [])]
    done = vitrify(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "takes more than the 0 seconds that it may take: give it more with --seconds" in done.stderr
    assert not (tmp_path / "other").exists()


def test_a_message_that_quotes_a_file_is_cut() -> None:
    message = str(SpecError(["x" * 100_000, "y"]))
    assert len(message) < 5_000
    assert "96,000 characters left out" in message
    assert message.endswith("\ny")
