"""The fuzzed readers: each target has inputs that are right, and a function that must answer any input.

An input is bytes. `run` returns a short description of the outcome (accepted, or the class and kind of the refusal); an
input whose description is new joins the pool from which others are made. Any exception but a `VitrifyError` is a bug.
"""

from __future__ import annotations

import json
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from random import Random
from typing import Any

from fuzz.mutation import mutated
from vitrify.errors import VitrifyError
from vitrify.limits import limited

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).parent / "corpus"
MAX_MESSAGE = 100_000  # characters
BUILD_SECONDS, BUILD_BYTES = 10.0, 1 << 30
MAX_BUILT = 3_000  # bytes of a spec that is also built


class Broken(Exception):
    """An outcome that is no exception, but must not be: an answer 5xx, a traceback, a message without end."""


class Target(ABC):
    """Something that reads what strangers wrote; `folder` is its own, empty at the start."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        folder.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def seeds(self) -> list[bytes]:
        """Return inputs that are right."""

    def warming(self) -> list[bytes]:
        """Return the inputs that are tried before memory is bounded."""
        return self.seeds()[:1]

    @abstractmethod
    def read(self, data: bytes) -> str:
        """Read an input, and return how it was accepted; refuse it by a `VitrifyError`."""

    def mutate(self, data: bytes, pool: Sequence[bytes], rng: Random) -> bytes:
        """Return an input made of one from the pool."""
        return mutated(data, pool, rng)

    def run(self, data: bytes) -> str:
        """Return what became of an input."""
        try:
            return self.read(data)
        except VitrifyError as error:
            return f"{type(error).__name__}: {kind_of(judged(str(error)))}"


def judged(message: str) -> str:
    """Return a message for a user; one that is empty or without end is broken."""
    if not message.strip():
        raise Broken("a message without a word")
    if len(message) > MAX_MESSAGE:
        raise Broken(f"a message of more than {MAX_MESSAGE:,} characters")
    return message


def kind_of(message: str) -> str:
    """Return the first line of a message without what it quotes."""
    first = message.split("\n", 1)[0]
    first = re.sub(r"^\S*/\S*:", "", first)
    return re.sub(r"'[^']*'|\"[^\"]*\"|[^\sA-Za-z,:;()]+", "…", first)[:100]


class SpecFiles(Target):
    """Files of one suffix: read, written again and read back, which must give the same spec; `built` builds a few."""

    def __init__(self, name: str, suffix: str, folder: Path, *, built: bool = False) -> None:
        super().__init__(name, folder)
        self.suffix, self.built = suffix, built

    def seeds(self) -> list[bytes]:
        from vitrify.spec.kinds import kinds

        (kind,) = [kind for kind in kinds() if self.suffix in kind.suffixes]
        found = [path.read_bytes() for path in sorted((ROOT / "examples").glob(f"*{self.suffix}"))]
        for spec in kind.spec.samples().values():
            if spec.suffix == self.suffix:
                path = self.folder / f"sample{self.suffix}"
                spec.write(path)
                found.append(path.read_bytes())
        return [data for data in found if len(data) < 30_000] or [self._other()]

    def _other(self) -> bytes:
        """Return an input for a suffix of which there is no example."""
        import gzip

        import numpy as np
        from safetensors.numpy import save

        if self.suffix == ".arpa.gz":
            return gzip.compress((ROOT / "examples" / "weather.arpa").read_bytes(), mtime=0)
        if self.suffix == ".cfg.json":
            return b'{"S": [["NP", "VP"], ["VP"]], "NP": [["x"]], "VP": [["y", "NP"], [1, 2]]}'
        shapes = ((2, 2, 1), (2, 2), (1, 1, 2), (1, 1))
        layers = {
            f"layers.{n // 2}.{'weights' if len(shape) == 3 else 'biases'}": np.ones(shape)
            for n, shape in enumerate(shapes)
        }
        return save(layers, {"radius": "2"})

    def read(self, data: bytes) -> str:
        import vitrify as v

        path = self.folder / f"x{self.suffix}"
        path.write_bytes(data)
        spec = v.read(path)
        if self.suffix.endswith(".safetensors") or len(data) > MAX_BUILT:
            return "accepted"
        again = self.folder / f"again{spec.suffix}"
        spec.write(again)
        if v.read(again).to_text() != spec.to_text():
            raise Broken("what was written reads back as another spec")
        spec.first_lines()
        if self.built:
            with limited("building", BUILD_SECONDS, BUILD_BYTES):  # as the commands do, which give it more
                v.explain(v.build(spec))
        return "accepted"


class Tree(Target):
    """A folder of several files, of which one to three are changed; an input is JSON: names and texts (latin-1)."""

    def template(self) -> Path:
        """Return the folder that is right."""
        path = self.folder / "right"
        if not path.exists():
            self.make(path)
        return path

    @abstractmethod
    def make(self, path: Path) -> None:
        """Write the folder that is right."""

    @abstractmethod
    def look(self, path: Path) -> str:
        """Read a folder."""

    @cached_property
    def right(self) -> dict[str, bytes]:
        """The files of the folder that is right, and their contents."""
        root = self.template()
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}

    def seeds(self) -> list[bytes]:
        return [json.dumps({}).encode()]

    def mutate(self, data: bytes, pool: Sequence[bytes], rng: Random) -> bytes:  # noqa: ARG002
        files = json.loads(data)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            name = rng.choice(list(self.right))
            known = files[name].encode("latin-1") if files.get(name) else self.right[name]
            others = [other for other_name, other in self.right.items() if Path(other_name).suffix == Path(name).suffix]
            match rng.randrange(20):
                case 0:
                    files[name] = None  # gone
                case 1:
                    files[name] = rng.choice(others).decode("latin-1")
                case _:
                    files[name] = mutated(known, others, rng)[: 1 << 18].decode("latin-1")
        if len(files) > 4:
            files = dict(rng.sample(list(files.items()), 3))
        return json.dumps(files).encode()

    def read(self, data: bytes) -> str:
        changes = json.loads(data)
        path = self.folder / "x"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.template(), path)
        for name, text in changes.items():
            (path / name).unlink(missing_ok=True)
            if text is not None:
                (path / name).write_bytes(text.encode("latin-1"))
        return self.look(path)


class Folders(Tree):
    """Model folders with a certificate: loaded, run, explained, or rechecked; digests are made to fit."""

    def __init__(self, name: str, folder: Path, *, certificates: bool) -> None:
        super().__init__(name, folder)
        self.certificates = certificates

    def make(self, path: Path) -> None:
        import vitrify as v
        from vitrify.certification.certificate import write_certificate

        spec = v.read(ROOT / "examples" / "abba.regex")
        net = v.build(spec, max_length=6)
        v.save(net, path, spec)
        write_certificate(path, v.certify(net, spec, max_length=3, samples=4))

    @cached_property
    def right(self) -> dict[str, bytes]:
        files = {name: data for name, data in super().right.items() if name != "README.md"}
        return {name: files[name] for name in ("certificate.json",)} if self.certificates else files

    def look(self, path: Path) -> str:
        import vitrify as v
        from tampered import resealed

        resealed(path)
        if self.certificates:
            report = v.recheck(path, seed=1)
            return kind_of(judged(str(report.problem or report.unjudged or "accepted")))
        net = v.load(path)
        v.explain(net)
        if net.architecture.reads == "tokens":
            v.run(net, list(net.architecture.inputs[1:2]) * 2)
        return "accepted"


class Stores(Tree):
    """A run store with finished runs, a failed one and a group under way: listed, drawn, opened to go on."""

    IDENTITIES: tuple[dict[str, Any], ...] = tuple(
        {"sandbox": {"name": "markov", "p": 0.2}, "model": {"name": "ngram"}, "seed": seed} for seed in range(4)
    )

    def make(self, path: Path) -> None:
        import numpy as np

        from vitrify.learn.store import RunStore

        store, arrays = RunStore(path), {"w": np.arange(6.0).reshape(2, 3)}
        opened = store.open_many(self.IDENTITIES[:2])
        (group,) = opened.groups
        group.log({"step": 1, "loss": np.array([1.0, 2.0])})
        group.save(1, arrays, {"seconds": 1.0})
        group.finish(0, {"loss": 0.5}, {"w": arrays["w"][0]})
        group.fail(1, "it diverged", 1)
        opened.close()
        opened = store.open_many(self.IDENTITIES[2:])
        (group,) = opened.groups
        group.log({"step": 1, "loss": np.array([1.0, 2.0])})
        group.save(1, arrays, {"seconds": 1.0})
        group.log({"step": 2, "loss": np.array([0.9, 1.9])})
        opened.close()
        (path / "index.sqlite").unlink(missing_ok=True)

    def look(self, path: Path) -> str:
        from vitrify.learn.store import RunStore

        store, outcomes = RunStore(path), list[str]()
        for step in (self._listed, self._opened):
            try:
                outcomes.append(step(store))
            except VitrifyError as error:
                outcomes.append(f"{type(error).__name__}: {kind_of(judged(str(error)))}")
        return "; ".join(outcomes)

    def _listed(self, store: Any) -> str:
        from vitrify.learn.records import matching, rows

        records = store.runs()
        rows(records)
        matching(records, "p=0.2")
        for record in records:
            for read in (store.curve, store.checkpoints, store.weights, store.net):
                try:
                    read(record)
                except VitrifyError as error:
                    judged(str(error))
        store.seconds()
        return f"accepted: {len(records)} runs"

    def _opened(self, store: Any) -> str:
        with store.open_many(self.IDENTITIES) as opened:
            for group in opened.groups:
                group.latest()
                group.lines()
            return f"accepted: {len(opened.groups)} groups"


class Sweeps(Target):
    """Files of sweeps: read, and divided into groups."""

    def seeds(self) -> list[bytes]:
        from bare_commands import SWEEP

        grid = '[axes]\np = [0.2, 0.4]\n"lr" = [1e-3, 3e-3]\n'
        runs = 'sandbox = "markov"\nmodel = "transformer"\nmembers = 2\n\n[[runs]]\nlayers = 1\n'
        runs += '\n[[runs]]\nseed = "0..3"\n'
        return [SWEEP.encode(), (SWEEP + grid).encode(), runs.encode()]

    def read(self, data: bytes) -> str:
        from vitrify.learn.experiment import read_sweep

        path = self.folder / "x.toml"
        path.write_bytes(data)
        groups = [group for experiment in read_sweep(path) for group in experiment.groups()]
        return f"accepted, {min(len(groups), 3)} groups"


class RecordedEvidence(Target):
    """Recorded evidence of a claim: read, put in words, and written again."""

    def seeds(self) -> list[bytes]:
        paths = sorted((ROOT / "docs" / "evidence").glob("*.json"), key=lambda path: path.stat().st_size)
        return [path.read_bytes() for path in paths[:6]]

    def read(self, data: bytes) -> str:
        from vitrify.claims.catalogue import find, read_outcome
        from vitrify.report import wording
        from vitrify.report.recorded import written

        try:
            name = json.loads(data).get("name")
            page = find(name) if isinstance(name, str) and (ROOT / "docs/evidence" / f"{name}.json").exists() else None
        except (ValueError, AttributeError, RecursionError, OSError):
            page = None
        path = self.folder / "x.json"
        path.write_bytes(data)
        outcome = read_outcome(page or find("R14"), path)
        evidence = outcome.evidence
        for words in (wording.methods, wording.links, wording.domains, wording.lines, wording.remarks):
            words(evidence)
        written(outcome.to_json())
        return "accepted"


def readers() -> dict[str, Callable[[Path], Target]]:
    """Return the targets of files and folders by name, as functions of the folder that they may use."""
    from vitrify.spec.kinds import suffixes

    made: dict[str, Callable[[Path], Target]] = {}
    for suffix in suffixes():
        made[f"spec{suffix}"] = partial(SpecFiles, f"spec{suffix}", suffix)
        if suffix not in (".arpa", ".maxout.safetensors"):
            made[f"build{suffix}"] = partial(SpecFiles, f"build{suffix}", suffix, built=True)
    made["folders"] = lambda folder: Folders("folders", folder, certificates=False)
    made["certificates"] = lambda folder: Folders("certificates", folder, certificates=True)
    made["stores"] = lambda folder: Stores("stores", folder)
    made["sweeps"] = lambda folder: Sweeps("sweeps", folder)
    made["evidence"] = lambda folder: RecordedEvidence("evidence", folder)
    return made


@contextmanager
def quiet() -> Iterator[None]:
    """Let no warning of an input end a run or fill the screen."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
