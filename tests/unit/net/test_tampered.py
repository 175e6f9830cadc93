"""Model folders from anybody: every command gives one message and exit code 2, or a judgement; nothing crashes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from command_line import vitrify
from tampered import tampered

EXAMPLES = Path(__file__).parents[3] / "examples"
SPECS: dict[str, tuple[str, list[str], list[str]]] = {  # spec file, options of build, a word to run
    "automaton": ("abba.regex", ["--max-length", "8"], ["a", "b"]),
    "n-gram model": ("weather.arpa", ["--max-length", "8"], ["sun"]),
    "brackets": ("brackets.dyck", ["--max-length", "8"], ["("]),
    "program": ("reverse.rasp", [], ["a", "b"]),
    "recurrence": ("parity.automaton.json", ["--construction", "linear-recurrence", "--max-length", "8"], ["1"]),
    "task": ("recall.task.toml", [], []),
    "maxout": ("zigzag.maxout.json", [], ["0.5"]),
    "experts": ("world.knowledge.toml", [], []),
    "grammar": ("hierarchy.pcfg", [], []),
    "scene": ("faces.scene.toml", [], []),
}
MAX_SECONDS = 20


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder with a certificate for each kind of network."""
    folders = {}
    for name, (spec, options, _) in SPECS.items():
        folders[name] = tmp_path_factory.mktemp("nets") / "net"
        assert vitrify("build", EXAMPLES / spec, "-o", folders[name], *options).returncode == 0
        assert vitrify("certify", folders[name], *quickly(name)).returncode == 0
    return folders


def quickly(name: str) -> list[str]:
    """Options of `certify` that leave most words out."""
    return [] if name in ("maxout", "scene") else ["--samples", "20", "--max-length", "3"]


@contextmanager
def within_seconds(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"{seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "count", [pytest.param(40, marks=pytest.mark.long), pytest.param(5000, marks=pytest.mark.slow)]
)
def test_every_command_judges_or_refuses_a_tampered_folder(
    folders: dict[str, Path], tmp_path: Path, count: int
) -> None:
    rng, target = np.random.default_rng(count), tmp_path / "changed"
    refused = 0
    for number in range(count):
        name = list(SPECS)[number % len(SPECS)]
        change = tampered(folders[name], target, rng)
        commands = {
            "info": [],
            "run": SPECS[name][2],
            "explain": [],
            "certify": ["--no-write", *quickly(name)],
            "recheck": [],
        }
        for command, words in commands.items():
            with within_seconds(MAX_SECONDS):
                done = vitrify(command, target, *words)
            assert done.returncode in (0, 1, 2), (change, command)
            assert "Traceback" not in done.stderr, (change, command)
            if done.returncode == 2 and command != "recheck":  # which also ends so where it can't judge
                refused += 1
                assert done.stderr.startswith("error: ") or "Usage" in done.stderr, (change, command, done.stderr)
    assert refused > count  # of four commands each
