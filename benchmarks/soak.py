"""Users of the app for a while: latencies by what they ask for, errors, and the memory of the server.

    python benchmarks/soak.py --seconds 180 --users 20

Starts `vitrify serve` on this machine and lets users upload specs, build, run, edit, mend, look at curves, and withdraw
builds, each in a loop of their own with a pause of up to a second. The memory is that of the server's own process; what
builds and traces runs in processes that are bounded by themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

SPECS = {
    "a.regex": "(a|b)*abb\n",
    "b.ltl": "alphabet: a b\nlength: 8\nb -> Y (a S b)\n",
    "c.pcfg": "S -> 'a' [0.5] | 'b' S [0.5]\n",
}
FULL = 429  # all workers are busy: the user comes again later
PAUSE_SECONDS, MEMORY_SECONDS = 1.0, 5.0


class Tally:
    """What all users have met."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.full: dict[str, int] = defaultdict(int)
        self.errors: list[str] = []
        self.lock = threading.Lock()

    @contextmanager
    def timed(self, name: str) -> Iterator[list[int]]:
        """Time a question; the list gets the status of its answer."""
        codes, began = list[int](), time.perf_counter()
        try:
            yield codes
        except (httpx.HTTPError, ValueError, KeyError) as error:
            codes.append(0)
            with self.lock:
                self.errors.append(f"{name}: {error!r}")
        with self.lock:
            self.seconds[name].append(time.perf_counter() - began)
            self.full[name] += FULL in codes
            self.errors += [f"{name}: status {code}" for code in codes if code >= 500]


class User(threading.Thread):
    """Somebody who asks one thing after the other until the time is over."""

    def __init__(self, address: str, seed: int, ends: float, tally: Tally) -> None:
        super().__init__()
        self.rng, self.ends, self.tally = random.Random(seed), ends, tally
        self.http = httpx.Client(base_url=address, timeout=180, trust_env=False)

    def run(self) -> None:
        with self.http:
            while time.monotonic() < self.ends:
                self.visit()

    def ask(self, name: str, method: str, path: str, **words: Any) -> Any:
        """Return the data of an answer; None where it is a refusal."""
        time.sleep(self.rng.uniform(0.0, PAUSE_SECONDS))
        with self.tally.timed(name) as codes:
            answer = self.http.request(method, path, **words)
            codes.append(answer.status_code)
            told = "json" in answer.headers.get("content-type", "")
            if answer.status_code == 200 and told:
                return answer.json()
        return None

    def visit(self) -> None:
        """Open the page, build a network, and play with it; or look at curves, or give a build up."""
        self.ask("page", "GET", "/glass")
        name = self.rng.choice(list(SPECS))
        spec = self.ask("upload", "POST", "/api/glass/specs", params={"name": name}, content=SPECS[name])
        if not spec:
            return
        began = self.ask("build asked", "POST", "/api/glass/nets", json={"spec": spec["spec"]})
        if not began:
            return
        if self.rng.random() < 0.2:
            self.ask("withdrawal", "DELETE", f"/api/glass/jobs/{began['job']}")
            return
        net = self.built(began["job"])
        if net is None:
            return
        place = f"/api/glass/nets/{net}"
        for _ in range(self.rng.randrange(1, 4)):
            words = [self.rng.choice("ab") for _ in range(self.rng.randrange(1, 6))]
            self.ask("run", "POST", f"{place}/run", json={"words": words, "stop": 1})
            self.ask("edit", "POST", f"{place}/changes", json={"seed": self.rng.randrange(1 << 20)})
        self.ask("mend", "DELETE", f"{place}/changes")
        self.ask("curves", "GET", "/api/curves")

    def built(self, job: str) -> str | None:
        """Wait for a build, and return the key of the network."""
        with self.tally.timed("build") as codes, self.http.stream("GET", f"/api/glass/jobs/{job}") as answer:
            codes.append(answer.status_code)
            event = ""
            for line in answer.iter_lines():
                event = line.removeprefix("event: ") if line.startswith("event: ") else event
                if line.startswith("data: ") and event in ("done", "failed"):
                    told: dict[str, str] = json.loads(line.removeprefix("data: "))
                    return told.get("net")
        return None


def resident(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> int:
    """Run the server and the users; print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--users", type=int, default=20)
    chosen = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "vitrify", "serve", "--port", str(port), "--store", folder, "--atlas", folder]
        server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        address, tally, memory = f"http://127.0.0.1:{port}", Tally(), list[float]()
        try:
            for _ in range(600):
                try:
                    httpx.get(f"{address}/glass", timeout=60, trust_env=False)
                    break
                except httpx.HTTPError:
                    time.sleep(0.2)
            ends = time.monotonic() + chosen.seconds
            users = [User(address, seed, ends, tally) for seed in range(chosen.users)]
            for user in users:
                user.start()
            while any(user.is_alive() for user in users):
                memory.append(resident(server.pid))
                time.sleep(MEMORY_SECONDS)
        finally:
            server.terminate()
            server.wait(30)
    lines = [
        "| asked for | times | median s | 95 % s | slowest s | queue full |",
        "| --- | --: | --: | --: | --: | --: |",
    ]
    for name, seconds in sorted(tally.seconds.items()):
        ordered = sorted(seconds)
        cells = [ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)], ordered[-1]]
        numbers = " | ".join(f"{cell:.2f}" for cell in cells)
        lines.append(f"| {name} | {len(ordered):,} | {numbers} | {tally.full[name]} |")
    quarter = max(1, len(memory) // 4)
    first, last = (sum(part) / len(part) for part in (memory[quarter : 2 * quarter] or memory, memory[-quarter:]))
    lines.append(
        f"\n{len(tally.errors)} errors; server process {first:.0f} MiB in the second quarter, {last:.0f} in the last"
    )
    sys.stdout.write("\n".join([*lines, *tally.errors[:20]]) + "\n")
    return int(bool(tally.errors))


if __name__ == "__main__":
    sys.exit(main())
