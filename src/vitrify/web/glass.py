"""The glass box: build a net from a spec, look inside while it reads, break it, and see the check fail."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import zlib
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Generic, TypeVar

from fastapi import APIRouter, Cookie, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, field_validator
from starlette.exceptions import HTTPException

from vitrify.encoding import JsonObject
from vitrify.spec import unknown_suffix
from vitrify.spec.kinds import suffix_of, suffixes
from vitrify.web.examples import examples, kind_of
from vitrify.web.pool import Job, Jobs, Progress
from vitrify.web.site import WebApp
from vitrify.web.worker import WebQuestion

T = TypeVar("T")
Owned = TypeVar("Owned", bound="Thing")
VISITOR = "vitrify-visitor"
TEXT = ".txt"  # a text, of which an n-gram model is made
LONGEST = 512  # words of an input
CHANGES = 32  # to one net
LARGEST = {"seed": (1 << 31) - 1}  # numbers that a visitor may choose for a net; others to 65,536
Option = int | float | bool | Annotated[str, Field(max_length=64)] | None
Word = Annotated[str, Field(max_length=256)]
Words = Annotated[list[Word], Field(max_length=LONGEST)]


class Strict(BaseModel):
    """Data that has the declared fields and no others."""

    model_config = ConfigDict(extra="forbid", strict=True)


class BuildRequest(Strict):
    """Which spec to build, and how; options are the choices of the construction, and the depth of a grammar."""

    spec: str
    construction: Annotated[str, Field(max_length=64)] | None = None
    options: Annotated[dict[Annotated[str, Field(max_length=64)], Option], Field(max_length=32)] = {}

    @field_validator("options")
    @classmethod
    def bounded(cls, options: dict[str, Option]) -> dict[str, Option]:
        """Refuse numbers that would keep a worker busy for ever."""
        large = [key for key, n in options.items() if not isinstance(n, str | None) and n > LARGEST.get(key, 1 << 16)]
        if large:
            raise ValueError(f"{' and '.join(large)} must not be so large here")
        return options


class RunRequest(Strict):
    """A request for a trace: the tokens, and the layer and position to show."""

    words: Words
    stop: Annotated[int, Field(ge=0)] = 0
    position: Annotated[int, Field(ge=0)] | None = None


class WriteRequest(Strict):
    """A request to generate: the prompt, and the number of tokens."""

    words: Words
    steps: Annotated[int, Field(ge=1, le=64)] = 16


class ChangeRequest(Strict):
    """One entry of an array and its new value; or a seed, by which a row is broken at random."""

    array: Annotated[str, Field(max_length=128)] | None = None
    index: Annotated[list[int], Field(max_length=4)] | None = None
    value: Annotated[float, Field(allow_inf_nan=False)] | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None


def visitor(response: Response, known: Annotated[str | None, Cookie(alias=VISITOR)] = None) -> str:
    """Return the session of a client: a random name in a cookie, made at the first request."""
    if known and len(known) == 32 and known.isalnum():
        return known
    made = secrets.token_hex(16)
    response.set_cookie(VISITOR, made, httponly=True, samesite="strict")
    return made


Visitor = Annotated[str, Depends(visitor)]


class Desk:
    """Where visitors' questions are taken to the workers."""

    def __init__(self, site: WebApp) -> None:
        self.site, limits = site, site.settings
        self.jobs = Jobs(site.builders)
        self.specs: Shelf[UploadedSpec] = Shelf(limits.own, limits.kept)
        self.nets: Shelf[Net] = Shelf(limits.own, limits.kept)
        site.closing.append(self.jobs.close)

    async def of_net(self, owner: str, key: str, do: str, **arguments: object) -> JsonObject:
        """Return an answer about a visitor's net as it is now."""
        net = self.net(owner, key)
        about = {"folder": str(net.folder), "changes": net.changes} | arguments
        tracer = self.site.tracers[zlib.crc32(key.encode()) % len(self.site.tracers)]  # it keeps the net loaded
        return await tracer.ask(WebQuestion(do, about))

    def net(self, owner: str, key: str) -> Net:
        """Return a visitor's net."""
        return there(self.nets.take(owner, key), "this network is no longer here: build it again")

    def folder(self) -> Path:
        """A new folder."""
        return self.site.folder / secrets.token_hex(12)

    async def keep(self, owner: str, name: str, request: Request) -> JsonObject:
        """Keep a spec that can be read; what can't is refused in the words of the command line."""
        suffix = ".arpa" if name.endswith(TEXT) else suffix_of(name)
        if suffix is None:
            raise HTTPException(422, unknown_suffix(name))
        made = UploadedSpec(owner, self.folder(), name=name, suffix=suffix)
        made.folder.mkdir()
        self.specs.put(made)
        try:
            await receive(request, made.path, self.site.settings.upload)
            if name.endswith(TEXT):
                await self.site.builders.ask(WebQuestion("fit", {"path": str(made.path), "file_name": name}))
            question = WebQuestion("read", {"path": str(made.path), "file_name": name})
            facts = await self.site.builders.ask(question, seconds=self.site.settings.seconds / 4)
        except BaseException:
            self.specs.drop(made.key)
            raise
        return {"spec": made.key, "name": name} | facts

    def build(self, owner: str, wanted: BuildRequest) -> Job:
        """Begin to build a net."""
        spec = there(self.specs.take(owner, wanted.spec), "this spec is no longer here: give it again")
        folder = self.folder()
        files = {"path": str(spec.path), "file_name": spec.name, "folder": str(folder)}
        question = WebQuestion("build", files | {"construction": wanted.construction, "options": wanted.options})

        async def work(progress: Progress) -> JsonObject:
            facts = await self.site.builders.answer(question, progress)
            net = self.nets.put(Net(owner, folder))
            return {"net": net.key, "file_name": spec.name} | facts

        return self.jobs.start(owner, work)

    def check(self, owner: str, net: Net) -> Job:
        """Begin to check a net as it is now."""
        question = WebQuestion("check", {"folder": str(net.folder), "changes": list(net.changes)})
        return self.jobs.start(owner, lambda progress: self.site.builders.answer(question, progress))


def there(thing: T | None, refusal: str) -> T:
    """Return what was looked for; raise a refusal where it is not there."""
    if thing is None:
        raise HTTPException(404, refusal)
    return thing


async def receive(request: Request, path: Path, most: int) -> None:
    """Write what is sent to a file, piece by piece; more than `most` bytes are refused as soon as that is known."""
    refusal = HTTPException(413, f"a spec may have {most:,} bytes at most: build a larger one on the command line")
    length = request.headers.get("content-length", "0")
    if int(length) > most:  # the guard has seen that it is a number
        raise refusal
    size = 0
    with path.open("xb") as file:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise refusal
            file.write(part)


def shown_name(text: str) -> str:
    """The name of a file as it may be shown: without folders and control characters. It is never opened."""
    name = text.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(letter for letter in name if letter.isprintable())[-100:] or "nameless"


def router(site: WebApp) -> APIRouter:
    """The pages and questions of the glass box."""
    made, desk = APIRouter(), Desk(site)

    @made.get("/glass")
    async def page(who: Visitor) -> HTMLResponse:
        del who
        kinds: dict[str, list[str]] = {}
        for name in examples():
            kinds.setdefault(kind_of(name), []).append(name)
        ends = ",".join(dict.fromkeys("." + suffix.rsplit(".", 1)[1] for suffix in suffixes()))
        return site.page("glass.html.j2", "glass", kinds=kinds, suffixes=suffixes(), ends=ends)

    @made.get("/api/glass/examples/{name}")
    async def example(name: str) -> PlainTextResponse:
        if name not in examples():
            raise HTTPException(404, f"there is no example {name!r}")
        return PlainTextResponse(examples()[name].read_bytes())

    @made.post("/api/glass/specs")
    async def upload(request: Request, who: Visitor, name: Annotated[str, Field(max_length=1000)]) -> JsonObject:
        return await desk.keep(who, shown_name(name), request)

    @made.post("/api/glass/nets")
    async def build(wanted: BuildRequest, who: Visitor) -> JsonObject:
        return {"job": desk.build(who, wanted).key}

    @made.post("/api/glass/nets/{key}/check")
    async def check(key: str, who: Visitor) -> JsonObject:
        return {"job": desk.check(who, desk.net(who, key)).key}

    @made.get("/api/glass/jobs/{key}")
    async def listen(key: str, who: Visitor) -> StreamingResponse:
        job = there(desk.jobs.find(who, key), "there is no such job")
        return StreamingResponse(job.listen(), media_type="text/event-stream")

    @made.delete("/api/glass/jobs/{key}")
    async def withdraw(key: str, who: Visitor) -> JsonObject:
        there(desk.jobs.find(who, key), "there is no such job").stop()
        return {}

    @made.post("/api/glass/nets/{key}/run")
    async def run(key: str, wanted: RunRequest, who: Visitor) -> JSONResponse:
        return JSONResponse(await desk.of_net(who, key, "trace", **wanted.model_dump()))

    @made.post("/api/glass/nets/{key}/write")
    async def write(key: str, wanted: WriteRequest, who: Visitor) -> JsonObject:
        return await desk.of_net(who, key, "write", **wanted.model_dump())

    @made.get("/api/glass/nets/{key}/suggestion")
    async def suggestion(key: str, who: Visitor, seed: Annotated[int, Field(ge=0, lt=1 << 31)] = 0) -> JsonObject:
        return await desk.of_net(who, key, "suggest", seed=seed)

    @made.get("/api/glass/nets/{key}/entries")
    async def entries(
        key: str,
        who: Visitor,
        array: Annotated[str, Field(max_length=128)],
        search: Annotated[str, Field(max_length=200)] = "",
    ) -> JsonObject:
        return await desk.of_net(who, key, "listed", array=array, search=search)

    @made.post("/api/glass/nets/{key}/changes")
    async def change(key: str, wanted: ChangeRequest, who: Visitor) -> JsonObject:
        net = desk.net(who, key)
        if len(net.changes) >= CHANGES:
            raise HTTPException(422, f"this network has {CHANGES} changes already: mend it first")
        arguments = wanted.model_dump(exclude_none=True)
        if arguments.keys() not in ({"seed"}, {"array", "index", "value"}):
            raise HTTPException(422, "a change is a seed, or an array, an index and a value")
        report = await desk.of_net(who, key, "changed", changes=[*net.changes, arguments])
        net.changes.append(arguments)
        return report

    @made.delete("/api/glass/nets/{key}/changes")
    async def mend(key: str, who: Visitor) -> JsonObject:
        desk.net(who, key).changes.clear()
        return {"changes": []}

    return made


@dataclass(eq=False)
class Thing:
    """Something that belongs to a visitor, with a folder of its own."""

    owner: str
    folder: Path
    key: str = field(default_factory=lambda: secrets.token_hex(8))


@dataclass(eq=False)
class UploadedSpec(Thing):
    """A spec as it was given: the name is only shown, the file has one of ours."""

    name: str = ""
    suffix: str = ""

    @property
    def path(self) -> Path:
        return self.folder / f"spec{self.suffix}"


@dataclass(eq=False)
class Net(Thing):
    """A built net and the changes that its owner has made to it."""

    changes: list[JsonObject] = field(default_factory=list)


class Shelf(Generic[Owned]):
    """So many things of each visitor, and so many in all; using one keeps it longer."""

    def __init__(self, own: int, kept: int) -> None:
        self.own, self.kept = own, kept
        self._things: OrderedDict[str, Owned] = OrderedDict()
        self._removing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._things)

    def put(self, thing: Owned) -> Owned:
        """Keep a thing; older ones may have to go."""
        self._things[thing.key] = thing
        mine = [key for key, other in self._things.items() if other.owner == thing.owner]
        for key in [*mine[: -self.own], *list(self._things)[: max(0, len(self._things) - self.kept)]]:
            self.drop(key)
        return thing

    def take(self, owner: str, key: str) -> Owned | None:
        """A visitor's own thing, if it is still there."""
        thing = self._things.get(key)
        if thing is None or thing.owner != owner:
            return None
        self._things.move_to_end(key)
        return thing

    def drop(self, key: str) -> None:
        """Let go of a thing."""
        thing = self._things.pop(key, None)
        if thing is None:
            return
        task = asyncio.create_task(asyncio.to_thread(shutil.rmtree, thing.folder, ignore_errors=True))
        self._removing.add(task)  # a task that nobody holds may be lost
        task.add_done_callback(self._removing.discard)
