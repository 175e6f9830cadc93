"""The fuzzed readers: each target has inputs that are right, and a function that must answer any input.

An input is bytes. `run` returns a short description of the outcome (accepted, or the class and kind of the refusal); an
input whose description is new joins the pool from which others are made. Any exception but a `VitrifyError` is a bug.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from fuzz.mutation import TEXT_CHANGES, VALUES, changed_json, mutated
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

    def __init__(self, name: str, folder: Path, suffix: str, *, built: bool = False) -> None:
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

    def mutate(self, data: bytes, pool: Sequence[bytes], rng: Random) -> bytes:
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
    """Model folders with a certificate: loaded, run, explained; their certificate is rechecked, with fitting digests."""

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
            return kind_of(judged(str(report.problem or report.unjudged or "agrees")))
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
        return f"{len(records)} runs listed"

    def _opened(self, store: Any) -> str:
        with store.open_many(self.IDENTITIES) as opened:
            for group in opened.groups:
                group.latest()
                group.lines()
            return f"{len(opened.groups)} groups opened"


class Sweeps(Target):
    """Files of sweeps: read, and divided into groups."""

    def seeds(self) -> list[bytes]:
        from bare_commands import SWEEP

        grid = '[axes]\np = [0.2, 0.4]\n"lr" = [1e-3, 3e-3]\n'
        runs = 'sandbox = "markov"\nmodel = "transformer"\nmembers = 2\n\n[[runs]]\nlayers = 1\n\n[[runs]]\nseed = "0..3"\n'
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


class Requests(Target):
    """Requests of one visitor to the app, one after the other: what pages ask, uploads, edits; in this process.

    An input is a JSON list of [method, path, query, headers, body]; $spec, $net and $job stand for the latest keys.
    """

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        from vitrify.web.app import application
        from vitrify.web.pool import Pool, Refused
        from vitrify.web.site import ServerSettings

        async def answer(_: Pool, question: Any, progress: Any = None, seconds: Any = None) -> Any:
            said: list[Any] = []
            with redirect_stdout(io.StringIO()):
                question.run(said.append)
            answer = json.loads(said[-1])
            if answer.get("status") == 500:
                raise Broken(f"the worker failed at {question.do}")
            if "error" in answer:
                raise Refused(str(answer["error"]), int(answer.get("status", 422)))
            return answer

        async def warm(_: Pool) -> None:
            return

        Pool.answer, Pool.warm = answer, warm  # type: ignore[method-assign, assignment]
        store = folder / "store"
        self.app = application(ServerSettings(token="12345678", atlas=folder / "atlas", store=store, upload=1 << 16))
        self.loop = asyncio.new_event_loop()
        self.site = self.app.state.site
        self.running = self.site.running()
        self.loop.run_until_complete(self.running.__aenter__())

    def seeds(self) -> list[bytes]:
        regex, grammar = ((ROOT / "examples" / name).read_text() for name in ("abba.regex", "hierarchy.pcfg"))
        key = {"host": "localhost", "authorization": "Bearer 12345678", "cookie": f"vitrify-visitor={'a' * 32}"}
        upload = ["POST", "/api/glass/specs", "name=a.regex", key, regex]
        build = ["POST", "/api/glass/nets", "", key, '{"spec": "$spec", "options": {"max_length": 4}}']
        posts = [
            ["POST", "/api/glass/nets/$net/run", "", key, '{"words": ["a", "b"], "stop": 1, "position": 1}'],
            ["POST", "/api/glass/nets/$net/write", "", key, '{"words": ["a"], "steps": 3}'],
            [
                "POST",
                "/api/glass/nets/$net/changes",
                "",
                key,
                '{"array": "unembed.W_U", "index": [0, 0], "value": 2.0}',
            ],
            ["POST", "/api/glass/nets/$net/changes", "", key, '{"seed": 3}'],
            ["GET", "/api/glass/nets/$net/entries", "array=unembed.W_U&search=a", key, ""],
            ["GET", "/api/glass/nets/$net/suggestion", "seed=3", key, ""],
            ["DELETE", "/api/glass/nets/$net/changes", "", key, ""],
            ["GET", "/api/glass/jobs/$job", "", key, ""],
            ["DELETE", "/api/glass/jobs/$job", "", key, ""],
        ]
        gets = [
            ["GET", path, query, key, ""]
            for path, query in (
                ("/glass", ""), ("/", "token=12345678&x=1"), ("/curves", ""), ("/api/curves", "query=p%3D2&sweep=&quantity=loss"), ("/watch", ""),
                ("/api/watch/nets", ""), ("/api/watch/curves", "net=a"), ("/api/watch/words", "net=net:0"), ("/landscape", ""),
                ("/api/landscape/surface", "form=tied&p=0.5&q=0.8"), ("/api/landscape/path", "form=tied&p=0.5&q=0.8&e=1.2&w=0.4"),
                ("/api/landscape/recorded", "form=tied&p=0.5&q=0.8"), ("/static/style.css", ""), ("/app/glass.js", ""), ("/claims/x.html", ""),
                ("/api/glass/examples/abba.regex", ""), ("//evil.example", "token=12345678"),
            )
        ]  # fmt: skip
        look = ["POST", "/api/watch/look", "", key, '{"net": "net:0", "words": ["a"], "step": 1, "beside": null}']
        other = [
            ["POST", "/api/glass/specs", "name=g.pcfg", key, grammar],
            ["POST", "/api/glass/nets", "", key, '{"spec": "$spec"}'],
        ]
        return [
            json.dumps(calls).encode()
            for calls in (
                [upload, build, *posts],
                [upload, build, posts[2], posts[0]],
                other,
                gets[:6],
                gets[6:12],
                gets[12:],
                [look],
                *[[one] for one in gets],
            )
        ]

    def mutate(self, data: bytes, pool: Sequence[bytes], rng: Random) -> bytes:
        calls = json.loads(data)
        for _ in range(rng.choice((1, 1, 2, 4))):
            other = json.loads(rng.choice(pool))
            match rng.randrange(8):
                case 0 if other:
                    calls.insert(rng.randrange(len(calls) + 1), rng.choice(other))
                case 1 if len(calls) > 1:
                    calls.pop(rng.randrange(len(calls)))
                case _ if calls:
                    at = rng.randrange(len(calls))
                    calls[at] = self._changed(list(calls[at]), rng)
        return json.dumps(calls[:12]).encode()

    def _changed(self, call: list[Any], rng: Random) -> list[Any]:
        part = rng.choice((0, 1, 2, 2, 3, 4, 4, 4, 4))
        if part == 3:
            name = rng.choice(
                (
                    "host",
                    "origin",
                    "content-length",
                    "cookie",
                    "authorization",
                    "transfer-encoding",
                    "accept",
                    "content-type",
                    "range",
                    "x",
                )
            )
            call[3] = {
                **call[3],
                name: rng.choice(
                    (
                        call[3].get(name, "1"),
                        *map(str, VALUES[:30]),
                        "text/html",
                        "bytes=0-",
                        "[::1",
                        "localhost:",
                        "null",
                        "é",
                        "²",
                    )
                ),
            }
        elif part == 4 and call[4][:1] == "{" and rng.random() < 0.7:
            try:
                call[4] = json.dumps(changed_json(json.loads(call[4]), rng))
            except (ValueError, RecursionError):
                call[4] = rng.choice(TEXT_CHANGES)(call[4], call[4], rng)
        else:
            call[part] = rng.choice(TEXT_CHANGES)(call[part], call[part], rng)
        return call

    def read(self, data: bytes) -> str:
        said: list[str] = []
        self.keys = {"spec": "none", "net": "none", "job": "none"}
        for method, path, query, headers, body in json.loads(data):
            said.append(self.loop.run_until_complete(self._ask(method, path, query, headers, body)))
        return " ".join(said)

    async def _ask(self, method: str, path: str, query: str, headers: Mapping[str, str], body: str) -> str:
        for name, key in self.keys.items():
            path, body = path.replace(f"${name}", key), body.replace(f"${name}", key)
        content = body.encode(errors="replace")
        if path == "/api/curves/stream":
            return "not listened to"  # it does not end
        sent = {"content-length": str(len(content)), "content-type": "application/json", **headers}
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http", "root_path": "",
            "path": path.encode(errors="replace").decode(), "raw_path": path.encode(errors="replace"), "query_string": query.encode("latin-1", "replace"),
            "headers": [(name.encode(), value.encode("latin-1", "replace")) for name, value in sent.items()],
            "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8321),
        }  # fmt: skip
        given = iter([{"type": "http.request", "body": content, "more_body": False}])
        answer: dict[str, Any] = {"status": 0, "body": b""}

        async def receive() -> Any:
            return next(given, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            answer["status"] = message.get("status", answer["status"])
            answer["body"] += message.get("body", b"")
            location = dict(message.get("headers", ())).get(b"location", b"/")
            if not location.startswith(b"/") or location.startswith((b"//", b"/\\")):
                raise Broken(f"a redirect to {location!r}")

        await self.app(scope, receive, send)
        if answer["status"] >= 500 or answer["status"] < 200:
            raise Broken(f"status {answer['status']}: {answer['body'][:200]!r}")
        try:
            told = json.loads(answer["body"])
        except ValueError:
            told = None
        if isinstance(told, dict) and answer["status"] == 200:
            for name in ("spec", "job"):
                self.keys[name] = str(told.get(name, self.keys[name]))
            if "job" in told:
                await self._over(told["job"])
        return str(answer["status"])

    async def _over(self, key: str) -> None:
        """Wait for a job, and remember the network that it built."""
        job = next(cell for cell in self._jobs() if cell.key == key)
        if job.task is not None:
            await asyncio.wait({job.task})
            if not job.task.cancelled() and (error := job.task.exception()):
                raise error
        self.keys["net"] = str(job.events[-1][1].get("net", self.keys["net"]))

    def _jobs(self) -> Iterator[Any]:
        import gc

        from vitrify.web.pool import Jobs

        if not hasattr(self, "jobs"):
            self.jobs = [each for each in gc.get_objects() if isinstance(each, Jobs)][-1]
        yield from reversed(self.jobs._jobs.values())


class Commands(Target):
    """Command lines in a folder with a few small files; an input is a JSON list of words."""

    LINES = """
        build abba.regex -o out --max-length 4
        build abba.regex -o out --construction log-depth --max-length 4 --attention hard --json
        build weather.arpa -o out --max-length 6 --tolerance 0.1
        build small.txt --order 2 -o out
        build hierarchy.pcfg -o out --depth 3
        build brackets.dyck -o out
        build door.ltl -o out --max-length 4
        build cyclic:3 -o out --max-length 4
        build recall.task.toml -o out --seed 3 --dimension 8
        build zigzag.maxout.json -o out
        analyze abba.regex --json
        analyze weather.pfsa.json
        analyze beaver.tm.toml --steps 30
        info net
        explain net --all
        explain net --formula --json
        run net a b --all --trace
        run net a --top 2 --json
        run ngram sun --generate 3 --seed 2
        run ngram --stdin
        perplexity ngram small.txt
        score ngram small.txt --show 2 --longest 5
        score net --decode --steps 2
        certify net --max-length 2 --samples 3 --no-proof --no-write --seed 1
        certify ngram --max-length 2 --samples 3 --mutants 2 --attack 4 --no-write --json
        recheck net --seed 3
        extract net --as automaton --max-length 3 --max-states 8 --words 100 -o got.automaton.json
        extract ngram --as ngram --order 1 --max-length 2 --words 100 -o got.arpa
        export net --to onnx -o out
        bound
        bound induction pairs=4
        bound induction --parameters --json
        refute net --task induction --bits 2 --size 2 --tries 4 --seconds 0.1
        list grammar --part represent --json
        list --standing theorem --verdict holds
        show R14
        show log-depth --json
        evidence R14 --versions
        runs loss<1 p=0.2 --store store --json
        runs --store store --export table.csv
        plot --store store -o out.svg --quantity loss --seeds
        data markov p=0.2 q=0.3 length=8 --rows 2 --seed 1 --json
        data markov --parameters
        train markov transformer p=0.2 --parameters
        sweep sweep.toml --dry-run --store store
        new mine
        figure R14 --out figures
        import net -o out
    """

    FILES = "abba.regex weather.arpa hierarchy.pcfg brackets.dyck door.ltl recall.task.toml zigzag.maxout.json weather.pfsa.json beaver.tm.toml".split()

    def seeds(self) -> list[bytes]:
        self._prepared()
        return [json.dumps(line.split()).encode() for line in self.LINES.strip().splitlines()]

    def _prepared(self) -> Path:
        place = self.folder / "here"
        if not place.exists():
            import vitrify as v
            from bare_commands import SWEEP

            place.mkdir()
            for name in self.FILES:
                shutil.copy(ROOT / "examples" / name, place / name)
            (place / "small.txt").write_text("sun rain\nrain rain sun\n")
            (place / "sweep.toml").write_text(SWEEP)
            for spec, name in (("abba.regex", "net"), ("weather.arpa", "ngram")):
                v.save(v.build(v.read(place / spec), max_length=5), place / name, v.read(place / spec))
            Stores("store", self.folder / "stores").make(place / "store")
        return place

    def mutate(self, data: bytes, pool: Sequence[bytes], rng: Random) -> bytes:
        words = json.loads(data)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            other = json.loads(rng.choice(pool))
            at = rng.randrange(1, len(words)) if len(words) > 1 else 0
            match rng.randrange(9):
                case 0 if len(words) > 1:
                    words.pop(at)
                case 1 | 2:
                    piece = rng.randrange(len(other)) if other else 0
                    words[at + 1 : at + 1] = other[piece : piece + rng.choice((1, 2))]
                case 3 if len(words) > 1:
                    words[at:at] = [words[at]]
                case _ if len(words) > 1:
                    words[at] = rng.choice(TEXT_CHANGES[:-1])(words[at], rng.choice(other or ["a"]), rng)[:60_000]
        kept = [word.replace("\0", "").encode(errors="replace").decode() for word in words]
        kept = [word for word in kept if not word.startswith("/") and "../" not in word]  # it stays in its folder
        return json.dumps(kept[:40]).encode()

    def read(self, data: bytes) -> str:
        from command_line import vitrify

        words = json.loads(data)
        if (
            not words
            or words[0] in ("serve", "check", "atlas", "diagnose", "benchmark-circuits", "plan", "train", "sweep")
            and not {"--parameters", "--dry-run"} & {*words}
        ):
            return "not run"  # these work as long as they are asked to
        place = self._prepared()
        done = vitrify(*words, given="sun rain\nsun\n", cwd=place)
        for left in ("out", "got.automaton.json", "got.arpa", "table.csv", "out.svg", "mine.py", "figures"):
            path = place / left
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if done.returncode not in (0, 1, 2):
            raise Broken(f"exit code {done.returncode}")
        if "Traceback" in done.stderr or "Unable to allocate" in done.stderr or "MemoryError" in done.stderr:
            raise Broken(judged(done.stderr[-300:]))
        if done.returncode == 2:
            judged(done.stderr + done.stdout)
            last = (done.stderr + done.stdout).strip().strip("╭─╮│╰╯ ").split("\n")
            return f"{words[0]}: {kind_of(' '.join(line for line in last if 'rror' in line or line.startswith('│'))[:300])}"
        return f"{words[0]}: {done.returncode}"


def targets() -> dict[str, Callable[[Path], Target]]:
    """Return all targets by name, as functions of the folder that they may use."""
    from vitrify.spec.kinds import suffixes

    made: dict[str, Callable[[Path], Target]] = {}
    for suffix in suffixes():
        made[f"spec{suffix}"] = lambda folder, suffix=suffix: SpecFiles(f"spec{suffix}", folder, suffix)
        if suffix not in (".arpa", ".maxout.safetensors"):
            made[f"build{suffix}"] = lambda folder, suffix=suffix: SpecFiles(
                f"build{suffix}", folder, suffix, built=True
            )
    made["folders"] = lambda folder: Folders("folders", folder, certificates=False)
    made["certificates"] = lambda folder: Folders("certificates", folder, certificates=True)
    made["stores"] = lambda folder: Stores("stores", folder)
    made["sweeps"] = lambda folder: Sweeps("sweeps", folder)
    made["evidence"] = lambda folder: RecordedEvidence("evidence", folder)
    made["app"] = lambda folder: Requests("app", folder)
    made["commands"] = lambda folder: Commands("commands", folder)
    return made


@contextmanager
def quiet() -> Iterator[None]:
    """Let no warning of an input end a run or fill the screen."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
