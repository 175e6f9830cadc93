"""Fuzz every reader of the library: `python -m fuzz.campaign --seconds 600`, or `make fuzz SECONDS=600`.

Each target runs in a process with 2 GiB of address space beyond what it has at the start, and 20 seconds of processor
time for an input. What is neither accepted nor refused by a `VitrifyError`, what takes longer, and what ends the
process is a finding: its smallest input is written to `build/fuzz/findings`, and the command exits with 1. Inputs with
an outcome that was new are kept in `build/fuzz/seeds`, and the next call begins with them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import mmap
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from fuzz.services import services
from fuzz.targets import CORPUS, Target, quiet, readers

CPU_SECONDS, STUCK_SECONDS = 20.0, 30.0  # for an input: an alarm in Python, and the parent's for what does not hear it
MEMORY_BYTES = 2 << 30
SLOT_BYTES = 2 << 20  # of the page that tells the parent which input is being read
MAX_POOL = 600
MINIMISE_SECONDS, MINIMISE_RUNS = 20.0, 300
PACKAGE = f"{os.sep}vitrify{os.sep}"


class Hang(BaseException):
    """An input took too long; no handler of the library's may catch it."""


@dataclass
class Finding:
    """A bug: where it happens, its smallest input and how often it was seen."""

    place: str
    message: str
    data: bytes
    count: int = 1


@dataclass
class Tally:
    """The figures of one target."""

    name: str
    inputs: int = 0
    accepted: int = 0
    outcomes: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    findings: list[dict[str, Any]] = field(default_factory=list)


def place_of(error: BaseException) -> str:
    """Return the class of an exception and the innermost function of ours that it went through."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if PACKAGE in each.filename]
    where = f"{frames[-1].filename.rpartition(PACKAGE)[2]}:{frames[-1].name}" if frames else "outside"
    return f"{type(error).__name__} at {where}"


def alarmed(*_: object) -> None:
    """Give an input up."""
    raise Hang(f"more than {CPU_SECONDS:g} s")


def attempt(target: Target, data: bytes) -> tuple[str, Finding | None]:
    """Return what became of an input, and the bug that it shows."""
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        with quiet():
            return target.run(data), None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        place = place_of(error)
        return place, Finding(place, f"{type(error).__name__}: {error}"[:500], data)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def minimised(target: Target, finding: Finding) -> bytes:
    """Return the smallest input with the same bug that cutting pieces out of it finds."""
    data, end, runs = finding.data, time.monotonic() + MINIMISE_SECONDS, 0
    size = max(1, len(data) // 2)
    while size and time.monotonic() < end and runs < MINIMISE_RUNS:
        start = 0
        while start < len(data) and time.monotonic() < end and runs < MINIMISE_RUNS:
            shorter, runs = data[:start] + data[start + size :], runs + 1
            with suppress(ValueError):  # of a target whose inputs are JSON
                found = attempt(target, shorter)[1]
                if found and found.place == finding.place:
                    data = shorter
                    continue
            start += size
        size //= 2
    return data


def kept_inputs(name: str, out: Path) -> list[bytes]:
    """Return the inputs of a target that are in the repository, and those that earlier calls kept."""
    return [path.read_bytes() for root in (CORPUS, out / "seeds") for path in sorted((root / name).glob("*"))]


class Campaign:
    """The inputs of one target, without end: those that are kept, and mutations of them."""

    def __init__(self, target: Target, out: Path, seed: int) -> None:
        self.target, self.rng = target, Random(f"{seed} {target.name}")
        self.pool = target.seeds()
        self.first = [*self.pool, *kept_inputs(target.name, out)]
        self.seen: Counter[str] = Counter()
        self.own = len(self.pool)

    def inputs(self) -> Iterator[bytes]:
        """Yield inputs."""
        yield from self.first
        while True:
            rng = self.rng
            data = self.pool[rng.randrange(self.own) if rng.random() < 0.5 else rng.randrange(len(self.pool))]
            yield self.target.mutate(data, self.pool, rng)

    def learn(self, data: bytes, outcome: str) -> bool:
        """Keep an input whose outcome is new; return whether it is."""
        self.seen[outcome] += 1
        fresh = self.seen[outcome] == 1 and len(data) < 1 << 16
        if fresh and len(self.pool) < MAX_POOL:
            self.pool.append(data)
        return fresh


def work(
    make: Callable[[Path], Target], name: str, folder: Path, out: Path, seed: int, seconds: float, slot: mmap.mmap
) -> None:
    """Fuzz one target in this process until the time is over; write its figures to `folder`."""
    signal.signal(signal.SIGPROF, alarmed)
    sys.setswitchinterval(1.0)
    target = make(folder / "work")
    campaign = Campaign(target, out, seed)
    for data in target.warming():  # imports, and threads that last
        attempt(target, data)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tally, findings, end = Tally(name), dict[str, Finding](), time.monotonic() + seconds
    began = time.monotonic()
    seeds = out / "seeds" / name
    for data in campaign.inputs():
        slot[:16] = tally.inputs.to_bytes(8, "little") + len(data).to_bytes(8, "little")
        slot[16 : 16 + len(data)] = data
        now = time.process_time()
        outcome, finding = attempt(target, data)
        took = time.process_time() - now
        tally.slowest = max(tally.slowest, took)
        tally.inputs += 1
        tally.accepted += "accepted" in outcome
        if campaign.learn(data, outcome) and not finding:
            seeds.mkdir(parents=True, exist_ok=True)
            (seeds / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
        if finding:
            known = findings.setdefault(finding.place, finding)
            known.count += known is not finding
            if len(data) < len(known.data):
                known.data = data
        if time.monotonic() > end:
            break
    tally.outcomes, tally.seconds = len(campaign.seen), time.monotonic() - began
    for known in findings.values():
        slot[:8] = (tally.inputs + 1).to_bytes(8, "little")
        if not known.place.startswith("Hang"):
            known.data = minimised(target, known)
        tally.findings.append(
            {"place": known.place, "message": known.message, "count": known.count, "data": known.data.hex()}
        )
    (folder / "tally.json").write_text(json.dumps(tally.__dict__))


def _processor(pid: int) -> float:
    """Return the seconds of processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fuzz(name: str, make: Callable[[Path], Target], out: Path, seed: int, seconds: float, scratch: str | None) -> Tally:
    """Fuzz one target in processes of its own; one that dies or is stuck is a finding, and another goes on."""
    total, end, lives = Tally(name), time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0 or not lives:
        with TemporaryDirectory(dir=scratch, prefix="vitrify-fuzz-") as place:
            slot = mmap.mmap(-1, SLOT_BYTES)
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    with Path(os.devnull).open("w") as nothing:
                        os.dup2(nothing.fileno(), 1)
                        work(make, name, Path(place), out, seed + 1000 * lives, left, slot)
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
            status = _watched(pid, slot)
            lives += 1
            path = Path(place) / "tally.json"
            if path.exists():
                data = json.loads(path.read_text())
                total.inputs, total.accepted = total.inputs + data["inputs"], total.accepted + data["accepted"]
                total.outcomes, total.slowest = (
                    max(total.outcomes, data["outcomes"]),
                    max(total.slowest, data["slowest"]),
                )
                total.seconds += data["seconds"]
                total.findings += data["findings"]
                break
            number, size = (int.from_bytes(slot[at : at + 8], "little") for at in (0, 8))
            total.inputs += number
            last = bytes(slot[16 : 16 + size])
            total.findings.append(
                {"place": f"process ended, {status}", "message": status, "count": 1, "data": last.hex()}
            )
            if lives > 20:
                break
    return total


def _watched(pid: int, slot: mmap.mmap) -> str:
    """Wait for a process; kill it when it spends too long on one input. Return how it ended."""
    number, since = -1, 0.0
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"code {os.WEXITSTATUS(status)}"
        now, spent = int.from_bytes(slot[:8], "little"), _processor(pid)
        if now != number:
            number, since = now, spent
        elif spent - since > STUCK_SECONDS + MINIMISE_SECONDS * 4:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def say(text: str, *, flush: bool = True) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")
    if flush:
        sys.stdout.flush()


def table(tallies: list[Tally]) -> str:
    """Return the figures as a Markdown table."""
    rows = [
        "| target | inputs | accepted | different outcomes | inputs/s | slowest input | findings |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    for each in tallies:
        rate = each.inputs / max(each.seconds, 1e-9)
        cells = (
            each.name,
            f"{each.inputs:,}",
            f"{each.accepted:,}",
            f"{each.outcomes:,}",
            f"{rate:,.0f}",
            f"{each.slowest:.2f} s",
            f"{len(each.findings)}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    inputs, accepted = sum(each.inputs for each in tallies), sum(each.accepted for each in tallies)
    found = sum(len(each.findings) for each in tallies)
    rows.append(f"| all | {inputs:,} | {accepted:,} | | | | {found} |")
    return "\n".join(rows)


def main() -> int:
    """Fuzz the targets that are named, or all, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="names or beginnings of names; without any, all")
    parser.add_argument("--seconds", type=float, default=600.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--list", action="store_true", help="print the names of the targets and end")
    words = parser.parse_args()
    known = readers() | services()
    chosen = [name for name in known if not words.targets or any(name.startswith(word) for word in words.targets)]
    if words.list:
        say("\n".join(chosen))
        return 0
    scratch = "/dev/shm" if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free > 1 << 29 else None
    tallies = []
    weights = {name: 0.3 if name.startswith("build") else 1.0 if name.startswith("spec") else 3.0 for name in chosen}
    for name in chosen:
        seconds = words.seconds * weights[name] / sum(weights.values())
        tally = fuzz(name, known[name], words.out, words.seed, seconds, scratch)
        tallies.append(tally)
        say(f"{name}: {tally.inputs:,} inputs in {tally.seconds:.0f} s, {len(tally.findings)} findings", flush=True)
        for number, each in enumerate(sorted(tally.findings, key=lambda one: -one["count"])):
            folder = words.out / "findings" / name
            folder.mkdir(parents=True, exist_ok=True)
            data = bytes.fromhex(each["data"])
            path = folder / hashlib.sha256(data).hexdigest()[:16]
            path.write_bytes(data)
            if number < 12:
                say(f"  {each['count']} × {each['place']}: {each['message'][:160]!r}: {path}", flush=True)
    say(table(tallies))
    return int(any(tally.findings for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
