"""Fuzzed as a whole: the app, asked in this process, and the command line."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

from fuzz.mutation import TEXT_CHANGES, VALUES, changed_json
from fuzz.targets import ROOT, Broken, Stores, Target, judged, kind_of

GETS = """
    /glass /?token=12345678&x=1 /curves /api/curves?query=p%3D2&sweep=&quantity=loss /watch /api/watch/nets
    /api/watch/curves?net=a /api/watch/words?net=net:0 /landscape /api/landscape/surface?form=tied&p=0.5&q=0.8
    /api/landscape/path?form=tied&p=0.5&q=0.8&e=1.2&w=0.4 /api/landscape/recorded?form=tied&p=0.5&q=0.8
    /static/style.css /app/glass.js /claims/x.html /api/glass/examples/abba.regex //evil.example?token=12345678
"""


class Requests(Target):
    """Requests of one visitor to the app, one after the other: what pages ask, uploads, edits; in this process.

    An input is a JSON list of [method, path, query, headers, body]; $spec, $net and $job stand for the latest keys.
    """

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder)
        from vitrify.web.app import application
        from vitrify.web.pool import Pool, Refused
        from vitrify.web.site import ServerSettings

        async def answer(_: Pool, question: Any, *__: Any, **___: Any) -> Any:
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
        gets = [["GET", *line.partition("?")[::2], key, ""] for line in GETS.split()]
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
        return ("accepted: " if set(said) <= {"200"} else "") + " ".join(said)

    async def _ask(self, method: str, path: str, query: str, headers: Mapping[str, str], body: str) -> str:
        for name, key in self.keys.items():
            path, body = path.replace(f"${name}", key), body.replace(f"${name}", key)
        content = body.encode(errors="replace")
        if path == "/api/curves/stream":
            return "not listened to"  # it does not end
        sent = {"content-length": str(len(content)), "content-type": "application/json", **headers}
        scope: dict[str, Any] = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method}
        scope |= {"path": path.encode(errors="replace").decode(), "raw_path": path.encode(errors="replace")}
        scope |= {"query_string": query.encode("latin-1", "replace"), "scheme": "http", "root_path": ""}
        scope |= {"headers": [(key.encode(), value.encode("latin-1", "replace")) for key, value in sent.items()]}
        scope |= {"client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8321)}
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

    FILES = """
        abba.regex weather.arpa hierarchy.pcfg brackets.dyck door.ltl recall.task.toml zigzag.maxout.json
        weather.pfsa.json beaver.tm.toml
    """

    def seeds(self) -> list[bytes]:
        self._prepared()
        return [json.dumps(line.split()).encode() for line in self.LINES.strip().splitlines()]

    def warming(self) -> list[bytes]:
        return self.seeds()

    def _prepared(self) -> Path:
        place = self.folder / "here"
        if not place.exists():
            import vitrify as v
            from bare_commands import SWEEP

            place.mkdir()
            for name in self.FILES.split():
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
        if not words or (
            words[0] in ("serve", "check", "atlas", "diagnose", "benchmark-circuits", "plan", "train", "sweep")
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
            lines = (done.stderr + done.stdout).strip().strip("╭─╮│╰╯ ").split("\n")
            said = " ".join(line for line in lines if "rror" in line or line.startswith("│"))
            return f"{words[0]}: {kind_of(said[:300])}"
        return f"{words[0]}: {'accepted' if not done.returncode else done.returncode}"


def services() -> dict[str, Callable[[Path], Target]]:
    """Return both targets by name, as functions of the folder that they may use."""
    return {
        "app": lambda folder: Requests("app", folder),
        "commands": lambda folder: Commands("commands", folder),
    }
