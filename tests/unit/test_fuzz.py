"""Every input that once broke a reader is refused in words, and so are some fresh ones; `make fuzz` tries more."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from fuzz import campaign, mutation
from fuzz.campaign import Campaign, attempt
from fuzz.services import services
from fuzz.targets import CORPUS, Target, readers
from vitrify.spec.kinds import suffixes

FRESH = 25  # inputs of each target
TRAINS = ("sweeps", "commands")  # import JAX
READERS = [name for name in (*readers(), *services()) if not name.startswith("build")]


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("VITRIFY_SECONDS", "10")
    before = signal.signal(signal.SIGPROF, campaign.alarmed)
    yield
    signal.signal(signal.SIGPROF, before)


def made(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    """Return a target; the one that asks the app puts functions of its own in the place of processes."""
    if name == "app":
        from vitrify.web.pool import Pool

        for method in ("answer", "warm"):
            monkeypatch.setattr(Pool, method, getattr(Pool, method))  # put back in the end
    return (readers() | services())[name](folder)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.jax] if name in TRAINS else []) for name in READERS]
)
def test_what_strangers_write_is_accepted_or_refused_in_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = made(name, tmp_path / "work", monkeypatch)
    inputs = [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]
    if name not in TRAINS:
        inputs += islice(Campaign(target, tmp_path, seed=1).inputs(), len(target.seeds()) + len(inputs) + FRESH)
    findings = [finding for data in inputs if (finding := attempt(target, data)[1])]
    assert [(each.place, each.message, each.data[:200]) for each in findings] == []


def test_every_suffix_has_a_target_and_every_corpus_is_of_one() -> None:
    assert {f"spec{suffix}" for suffix in suffixes()} <= set(READERS)
    assert {path.name for path in CORPUS.iterdir()} <= set(READERS)


def test_a_reader_that_breaks_or_does_not_end_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fragile(Target):
        def seeds(self) -> list[bytes]:
            return [b"length: 12\nwidth: 7\n"]

        def read(self, data: bytes) -> str:
            if data == b"endless":
                while True:
                    pass
            return str(sum(int(line.partition(":")[2]) for line in data.decode().splitlines()))

    monkeypatch.setattr(campaign, "CPU_SECONDS", 0.2)
    target = Fragile("fragile", tmp_path)
    found = {}
    for data in islice(Campaign(target, tmp_path, seed=0).inputs(), 200):
        outcome, finding = attempt(target, data)
        if finding:
            found[outcome] = finding
    assert {"ValueError at outside", "UnicodeDecodeError at outside"} <= set(found)
    assert len(campaign.minimised(target, found["ValueError at outside"])) <= 12
    hang = attempt(target, b"endless")[1]
    assert hang is not None
    assert hang.place.startswith("Hang")


def test_mutations_of_one_seed_are_the_same_every_time() -> None:
    from random import Random

    one, other = (
        [mutation.mutated(b'{"a": [1, 2]}', [b"x = 3\n"], rng) for _ in range(50)] for rng in (Random(3), Random(3))
    )
    assert one == other
    assert len(set(one)) > 30
    assert max(map(len, one)) <= mutation.MAX_BYTES
    assert sys.getrecursionlimit() < 3000  # less than what is nested
