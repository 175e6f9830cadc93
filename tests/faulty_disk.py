"""A disk that fails at every operation in turn: full, broken, forbidden, writing less than asked, or with a `kill -9`.

    python -m faulty_disk 3 FOLDER     every scenario, with every third fault of each operation (1: with all)

prints JSON: for each scenario the operations, the injected faults, and what went wrong. A scenario prepares a folder,
and acts on it while one operation on files fails. Afterwards the folder must hold what it held before or what it was to
hold, whole; who acted was told by one error with a message; and acting again, on a disk that works, must succeed. A
kill (of a child of this process) happens before an operation or, if that writes, in the middle of it.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

import vitrify as v
from vitrify.certification.certificate import write_certificate
from vitrify.errors import VitrifyError
from vitrify.learn.repair import repair
from vitrify.learn.store import RunStore

CALLS = ("open", "write", "fsync", "rename", "replace", "mkdir", "unlink", "rmdir", "ftruncate", "chmod", "link")
WRITER = "serialize_file"  # of safetensors, which writes files by itself
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
FAULTS = (*ERRORS, "short", "kill")
Fault = int | str
CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
IDENTITIES: list[dict[str, Any]] = [{"name": "run", "seed": seed} for seed in range(4)]


@contextmanager
def failing(at: int, fault: Fault | None) -> Iterator[list[int]]:
    """Let operation number `at` on files fail; yields a list whose only entry is the number of operations so far."""
    count, plain = [0], {name: getattr(os, name) for name in CALLS}
    save, sync = getattr(safetensors.numpy, WRITER), os.sync

    def due() -> bool:
        count[0] += 1
        return count[0] == at + 1 and fault is not None

    def wrapped(name: str) -> Callable[..., Any]:
        def call(*words: Any, **named: Any) -> Any:
            if (name == "open" and not words[1] & CHANGING) or not due():
                return plain[name](*words, **named)
            half = words[1][: (len(words[1]) + 1) // 2] if name == "write" else b""
            if fault == "kill":
                if half:
                    plain["write"](words[0], half)
                os.kill(os.getpid(), signal.SIGKILL)
            if fault == "short":  # of a write: it is no error, and the rest must follow
                return plain["write"](words[0], half) if name == "write" else plain[name](*words, **named)
            assert isinstance(fault, int)
            raise OSError(fault, os.strerror(fault), str(words[0]))

        return call

    def saving(arrays: Any, path: Any, **named: Any) -> None:
        if not due() or fault == "short":
            save(arrays, path, **named)
            return
        save(arrays, path, **named)
        os.truncate(path, Path(path).stat().st_size // 2)
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        assert isinstance(fault, int)
        raise SafetensorError(f"I/O error: {os.strerror(fault)} (os error {fault})")

    os.sync = lambda: None  # it can't fail, and would wait for everybody else's files
    for name in CALLS:
        setattr(os, name, wrapped(name))
    setattr(safetensors.numpy, WRITER, saving)
    try:
        yield count
    finally:
        for name in CALLS:
            setattr(os, name, plain[name])
        setattr(safetensors.numpy, WRITER, save)
        os.sync = sync


class Scenario(ABC):
    """Something that writes; `state` is a text, by which what there was and what there is to be are told apart."""

    @abstractmethod
    def prepare(self, root: Path) -> None:
        """Write what there is before."""

    @abstractmethod
    def act(self, root: Path) -> None:
        """Write what there is to be."""

    @abstractmethod
    def state(self, root: Path) -> str:
        """Return what there is; anything damaged raises an error."""


class Saving(Scenario):
    """A model folder that replaces another one."""

    spec, first = v.read("cyclic:2"), 4

    @cached_property
    def nets(self) -> tuple[Any, Any]:
        return tuple(v.build(self.spec, max_length=length) for length in (4, 5))  # type: ignore[return-value]

    def prepare(self, root: Path) -> None:
        v.save(self.nets[0], root / "net", self.spec)

    def act(self, root: Path) -> None:
        v.save(self.nets[1], root / "net", self.spec)

    def state(self, root: Path) -> str:
        return str(v.load(root / "net").digest) if (root / "net").exists() else "none"


class SavingNew(Saving):
    """A model folder where none was."""

    def prepare(self, root: Path) -> None:
        root.mkdir(exist_ok=True)


class Certifying(Saving):
    """A certificate that replaces another one."""

    def prepare(self, root: Path) -> None:
        super().prepare(root)
        write_certificate(root / "net", v.certify(self.nets[0], self.spec, max_length=2, samples=2))

    def act(self, root: Path) -> None:
        write_certificate(root / "net", v.certify(self.nets[0], self.spec, max_length=3, samples=2))

    def state(self, root: Path) -> str:
        report = v.recheck(root / "net", seed=0)
        assert report.problem is None, report.problem
        return str(json.loads((root / "net" / "certificate.json").read_text())["digest"])


class Training(Scenario):
    """A group of four runs at a checkpoint; what follows logs, and saves another one."""

    def prepare(self, root: Path) -> None:
        self.steps(root, 1)

    def act(self, root: Path) -> None:
        self.steps(root, 2)

    def steps(self, root: Path, last: int) -> None:
        with RunStore(root / "runs").open_many(IDENTITIES) as opened:
            for group in opened.groups:
                self.go_on(group, last)

    def go_on(self, group: Any, last: int) -> None:
        latest = group.latest()
        for step in range(1 if latest is None else latest.step + 1, last + 1):
            group.log({"step": step, "loss": np.array([1.0 / (step + n) for n in group.numbers])})
            group.save(step, {"w": np.array([[float(step)] * 3 for _ in group.numbers])}, {"step": step})

    def state(self, root: Path) -> str:
        store, said = RunStore(root / "runs"), list[tuple[tuple[int, ...], int | str]]()
        with store.open_many(IDENTITIES) as opened:
            for group in opened.groups:
                latest = group.latest()
                step = 0 if latest is None else latest.step
                assert latest is None or (latest.arrays["w"] == step).all()
                assert [line["step"] for line in group.lines()] == list(range(1, step + 1))
                said.append((group.numbers, step))
        assert not store.unreadable
        for record in store.runs():
            if record.done:
                said.append(((IDENTITIES.index(dict(record.identity)),), "done"))
                assert [line["step"] for line in store.curve(record)] == [1, 2]
                assert (store.weights(record)["w"] == 2.0).all()
        return json.dumps(sorted((number, step) for numbers, step in said for number in numbers))


class Beginning(Training):
    """Runs that are opened for the first time."""

    def prepare(self, root: Path) -> None:
        root.mkdir(exist_ok=True)

    def act(self, root: Path) -> None:
        self.steps(root, 0)


class Finishing(Training):
    """Runs that are put on record, whose group then goes; some may be done when others are not."""

    def act(self, root: Path) -> None:
        with RunStore(root / "runs").open_many(IDENTITIES) as opened:
            for group in opened.groups:
                self.go_on(group, 2)
                done = {row: ({"n": int(number)}, {"w": np.full(3, 2.0)}) for row, number in enumerate(group.numbers)}
                group.finish_all(done)


class Dividing(Training):
    """A part of a group that goes on alone."""

    def act(self, root: Path) -> None:
        RunStore(root / "runs").open_many(IDENTITIES[1:3]).close()


class Repairing(Training):
    """Damaged runs that are moved aside."""

    def prepare(self, root: Path) -> None:
        Finishing().prepare(root)
        Finishing().act(root)
        for place in sorted((root / "runs").glob("[0-9a-f]*"))[:2]:
            (place / "weights.safetensors").write_bytes(b"")

    def act(self, root: Path) -> None:
        repair(RunStore(root / "runs"))

    def state(self, root: Path) -> str:
        kept = [path for path in (root / "runs").rglob("weights.safetensors") if path.parent.name != "runs"]
        assert len(kept) == len(IDENTITIES), "a damaged run was lost"
        repair(RunStore(root / "runs"))
        return str(len(RunStore(root / "runs").runs()))


class SpecWriting(Scenario):
    """A spec file that replaces another one."""

    def prepare(self, root: Path) -> None:
        root.mkdir(exist_ok=True)
        v.read("cyclic:2").write(root / "x.automaton.json")

    def act(self, root: Path) -> None:
        v.read("cyclic:3").write(root / "x.automaton.json")

    def state(self, root: Path) -> str:
        return v.read(root / "x.automaton.json").to_text()


SCENARIOS = (Saving, SavingNew, Certifying, Training, Beginning, Finishing, Dividing, Repairing, SpecWriting)


def acted(scenario: Scenario, root: Path, at: int, fault: Fault | None) -> tuple[int, BaseException | None]:
    """Act while one operation fails; return the number of operations, and what was raised."""
    raised: BaseException | None = None
    with failing(at, fault) as count:
        try:
            scenario.act(root)
        except BaseException as error:
            raised = error
    return count[0], raised


def killed(scenario: Scenario, root: Path, at: int) -> bool:
    """Act in a child that is killed at an operation; return whether it was."""
    child = os.fork()
    if child == 0:
        acted(scenario, root, at, "kill")
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def wrong(scenario: Scenario, root: Path, at: int, fault: Fault, right: tuple[set[str], str]) -> str | None:
    """Inject one fault, and return what went wrong."""
    states, goal = right
    scenario.prepare(root)
    error = None
    if fault == "kill":
        killed(scenario, root, at)
    else:
        _, error = acted(scenario, root, at, fault)
        if error is not None and (fault == "short" or not isinstance(error, VitrifyError | OSError) or not str(error)):
            return f"a traceback: {error!r}"
    final = [path for path in root.rglob("*") if "partial" not in str(path) and "previous" not in str(path)]
    try:
        state = scenario.state(root)
    except BaseException as damage:
        return f"damaged: {damage!r} {sorted(map(str, final))[:9]}"
    if state not in states and not isinstance(scenario, Finishing):  # there, some runs may be done before others
        return f"neither what was there nor what was to be: {state[:200]}"
    if fault != "kill" and error is None and state != goal:
        return f"no error was raised, and it is {state[:200]}"
    with suppress(BaseException):
        scenario.act(root)
        if scenario.state(root) == goal:
            return None
    return "acting again does not succeed"


def main(every: int, folder: Path) -> int:
    """Try every scenario with every fault at every operation, or a part of them; print the figures."""
    report, failures = {}, 0
    for kind in SCENARIOS:
        scenario, root = kind(), folder / kind.__name__
        states = []
        for acts in (False, True):
            scenario.prepare(root)
            operations = acted(scenario, root, -1, None)[0] if acts else 0
            states.append(scenario.state(root))
            shutil.rmtree(root)
        problems, tried = [], 0
        for number in range(operations * len(FAULTS)):
            if number % every:
                continue
            at, fault = divmod(number, len(FAULTS))
            problem = wrong(scenario, root, at, FAULTS[fault], (set(states), states[1]))
            tried += 1
            if problem:
                problems.append(f"operation {at}, {FAULTS[fault]}: {problem}")
            shutil.rmtree(root, ignore_errors=True)
        report[kind.__name__] = {"operations": operations, "faults": tried, "problems": problems[:20]}
        failures += len(problems)
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2])))
