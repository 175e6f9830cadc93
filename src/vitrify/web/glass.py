"""The glass box: build a net from a spec, look inside while it reads, break it, and see the check fail."""

from __future__ import annotations

import secrets
import zlib
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Cookie, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from vitrify.spec import SUFFIXES
from vitrify.web.examples import examples, kind_of, suffix_of
from vitrify.web.jobs import Job, Jobs
from vitrify.web.pool import Admission, Full, Pool, Progress, Refused
from vitrify.web.shelf import Net, Shelf, SpecFile
from vitrify.web.site import Site

VISITOR = "vitrify-visitor"
LONGEST = 512  # words of an input
CHANGES = 32  # to one net


class Strict(BaseModel):
    """Data that has the declared fields and no others."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Options(Strict):
    """The options of `vitrify build`."""

    attention: Literal["soft", "sparse", "hard"] | None = None
    max_length: Annotated[int, Field(ge=1, le=1 << 16)] | None = None
    positions: Annotated[str, Field(max_length=32)] | None = None
    window: Annotated[int, Field(ge=1, le=64)] | None = None
    depth: Annotated[int, Field(ge=1, le=64)] | None = None
    tolerance: Annotated[float, Field(gt=0)] | None = None
    mode: Literal["bounded", "layernorm"] | None = None
    dimension: Annotated[int, Field(ge=1, le=1 << 16)] | None = None
    units: Annotated[int, Field(ge=1, le=1 << 16)] | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None


class Build(Strict):
    """Which spec to build, and how."""

    spec: str
    shape: Annotated[str, Field(max_length=64)] | None = None
    options: Options = Options()


Word = Annotated[str, Field(max_length=256)]
Words = Annotated[list[Word], Field(max_length=LONGEST)]


class Run(Strict):
    """What to read, and where to look."""

    words: Words
    stop: Annotated[int, Field(ge=0)] = 0
    place: Annotated[int, Field(ge=0)] | None = None


class Write(Strict):
    """What to read, and how much to write after it."""

    words: Words
    steps: Annotated[int, Field(ge=1, le=64)] = 16


class Change(Strict):
    """One entry of an array and its new value; or a seed, by which a row is broken at random."""

    array: Annotated[str, Field(max_length=128)] | None = None
    index: Annotated[list[int], Field(max_length=4)] | None = None
    value: Annotated[float, Field(allow_inf_nan=False)] | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None


def visitor(response: Response, known: Annotated[str | None, Cookie(alias=VISITOR)] = None) -> str:
    """Who asks: a random name in a cookie, made up at the first question."""
    if known and len(known) == 32 and known.isalnum():
        return known
    made = secrets.token_hex(16)
    response.set_cookie(VISITOR, made, httponly=True, samesite="strict")
    return made


Visitor = Annotated[str, Depends(visitor)]


class Desk:
    """Where visitors' questions are taken to the workers."""

    def __init__(self, site: Site) -> None:
        self.site, limits = site, site.settings
        self.jobs = Jobs(site.builders)
        self.specs: Shelf[SpecFile] = Shelf(limits.own, limits.kept)
        self.nets: Shelf[Net] = Shelf(limits.own, limits.kept)
        site.closing.append(self.jobs.close)

    def tracer(self, net: Net) -> Pool:
        """The process that keeps a net loaded."""
        return self.site.tracers[zlib.crc32(net.key.encode()) % len(self.site.tracers)]

    async def ask(self, pool: Pool, question: dict[str, Any], seconds: float | None = None) -> dict[str, Any]:
        """A worker's answer, or what the visitor is told instead."""
        try:
            return await pool.ask(question, seconds=seconds)
        except Full as full:
            raise too_many(full) from None
        except Refused as refused:
            raise HTTPException(refused.status, str(refused)) from None

    async def of_net(self, net: Net, task: str, **question: Any) -> dict[str, Any]:
        """An answer about a net as it is now."""
        given = {"do": task, "folder": str(net.folder), "changes": net.changes}
        return await self.ask(self.tracer(net), given | question)

    def spec(self, owner: str, key: str) -> SpecFile:
        """A visitor's spec."""
        found = self.specs.take(owner, key)
        if found is None:
            raise HTTPException(404, "this spec is no longer here: give it again")
        return found

    def net(self, owner: str, key: str) -> Net:
        """A visitor's net."""
        found = self.nets.take(owner, key)
        if found is None:
            raise HTTPException(404, "this network is no longer here: build it again")
        return found

    def folder(self) -> Path:
        """A new folder."""
        return self.site.folder / secrets.token_hex(12)

    async def keep(self, owner: str, name: str, request: Request) -> dict[str, Any]:
        """Keep a spec that can be read; what can't is refused in the words of the command line."""
        suffix = suffix_of(name)
        if suffix is None:
            kinds = ", ".join(f"{s} ({kind})" for s, (kind, _, _) in SUFFIXES.items())
            raise HTTPException(422, f"{name}: the kind of a spec is told by the end of its name, one of {kinds}")
        made = SpecFile(owner, self.folder(), name=name, suffix=suffix)
        made.folder.mkdir()
        self.specs.put(made)
        try:
            await receive(request, made.path, self.site.settings.upload)
            question = {"do": "read", "path": str(made.path), "given": name}
            made.facts = await self.ask(self.site.builders, question, self.site.settings.seconds / 4)
        except BaseException:
            self.specs.drop(made)
            raise
        return {"spec": made.key, "name": name} | made.facts

    def build(self, owner: str, wanted: Build) -> Job:
        """Begin to build a net."""
        spec, folder = self.spec(owner, wanted.spec), self.folder()

        async def work(place: Admission, progress: Progress) -> dict[str, Any]:
            question = {"do": "build", "path": str(spec.path), "given": spec.name, "folder": str(folder)}
            chosen = wanted.options.model_dump(exclude_none=True)
            facts = await place.ask(question | {"shape": wanted.shape, "options": chosen}, progress)
            net = self.nets.put(Net(owner, folder, facts=facts))
            return {"net": net.key, "given": spec.name} | facts

        return self._started(owner, work)

    def check(self, owner: str, net: Net) -> Job:
        """Begin to check a net as it is now."""
        question = {"do": "check", "folder": str(net.folder), "changes": list(net.changes)}
        return self._started(owner, lambda place, progress: place.ask(question, progress))

    def _started(self, owner: str, work: Any) -> Job:
        try:
            return self.jobs.start(owner, work)
        except Full as full:
            raise too_many(full) from None


def too_many(full: Full) -> HTTPException:
    """What is said to who comes when the queue is full."""
    return HTTPException(429, str(full), {"retry-after": str(full.seconds)})


async def receive(request: Request, path: Path, most: int) -> None:
    """Write what is sent to a file, piece by piece; more than `most` bytes are refused as soon as that is known."""
    refusal = HTTPException(413, f"a spec may have {most:,} bytes at most: build a larger one on the command line")
    said = request.headers.get("content-length", "0")
    if said.isdigit() and int(said) > most:
        raise refusal
    size = 0
    with path.open("xb") as file:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise refusal
            file.write(part)


def shown_name(given: str) -> str:
    """The name of a file as it may be shown: without folders and control characters. It is never opened."""
    name = given.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(letter for letter in name if letter.isprintable())[-100:] or "nameless"


def router(site: Site) -> APIRouter:
    """The pages and questions of the glass box."""
    made, desk = APIRouter(), Desk(site)

    @made.get("/glass")
    async def page(who: Visitor) -> HTMLResponse:
        del who
        kinds: dict[str, list[str]] = {}
        for name in examples():
            kinds.setdefault(kind_of(name), []).append(name)
        ends = ",".join(dict.fromkeys("." + suffix.rsplit(".", 1)[1] for suffix in SUFFIXES))
        return site.page("glass.html.j2", "glass", kinds=kinds, suffixes=SUFFIXES, ends=ends)

    @made.get("/api/glass/examples/{name}")
    async def example(name: str) -> PlainTextResponse:
        if name not in examples():
            raise HTTPException(404, f"there is no example {name!r}")
        return PlainTextResponse(examples()[name].read_bytes())

    @made.post("/api/glass/specs")
    async def upload(request: Request, who: Visitor, name: Annotated[str, Field(max_length=1000)]) -> dict[str, Any]:
        return await desk.keep(who, shown_name(name), request)

    @made.post("/api/glass/nets")
    async def build(wanted: Build, who: Visitor) -> dict[str, Any]:
        return {"job": desk.build(who, wanted).key}

    @made.post("/api/glass/nets/{key}/check")
    async def check(key: str, who: Visitor) -> dict[str, Any]:
        return {"job": desk.check(who, desk.net(who, key)).key}

    @made.get("/api/glass/jobs/{key}")
    async def listen(key: str, who: Visitor) -> StreamingResponse:
        job = desk.jobs.find(who, key)
        if job is None:
            raise HTTPException(404, "there is no such job")
        return StreamingResponse(job.listen(), media_type="text/event-stream")

    @made.delete("/api/glass/jobs/{key}")
    async def withdraw(key: str, who: Visitor) -> dict[str, Any]:
        job = desk.jobs.find(who, key)
        if job is None:
            raise HTTPException(404, "there is no such job")
        desk.jobs.withdraw(job)
        return {}

    @made.post("/api/glass/nets/{key}/run")
    async def run(key: str, wanted: Run, who: Visitor) -> JSONResponse:
        net = desk.net(who, key)
        return JSONResponse(await desk.of_net(net, "trace", **wanted.model_dump()))

    @made.post("/api/glass/nets/{key}/write")
    async def write(key: str, wanted: Write, who: Visitor) -> dict[str, Any]:
        return await desk.of_net(desk.net(who, key), "write", **wanted.model_dump())

    @made.get("/api/glass/nets/{key}/suggestion")
    async def suggestion(key: str, who: Visitor, seed: Annotated[int, Field(ge=0, lt=1 << 31)] = 0) -> dict[str, Any]:
        return await desk.of_net(desk.net(who, key), "suggest", seed=seed)

    @made.get("/api/glass/nets/{key}/entries")
    async def entries(
        key: str,
        who: Visitor,
        array: Annotated[str, Field(max_length=128)],
        search: Annotated[str, Field(max_length=200)] = "",
    ) -> dict[str, Any]:
        return await desk.of_net(desk.net(who, key), "entries", array=array, search=search)

    @made.post("/api/glass/nets/{key}/changes")
    async def change(key: str, wanted: Change, who: Visitor) -> dict[str, Any]:
        net = desk.net(who, key)
        if len(net.changes) >= CHANGES:
            raise HTTPException(422, f"this network has {CHANGES} changes already: mend it first")
        given = wanted.model_dump(exclude_none=True)
        if given.keys() not in ({"seed"}, {"array", "index", "value"}):
            raise HTTPException(422, "a change is a seed, or an array, an index and a value")
        question = {"do": "changed", "folder": str(net.folder), "changes": [*net.changes, given]}
        found = await desk.ask(desk.tracer(net), question)
        net.changes.append(given)
        return found

    @made.delete("/api/glass/nets/{key}/changes")
    async def mend(key: str, who: Visitor) -> dict[str, Any]:
        desk.net(who, key).changes.clear()
        return {"said": []}

    return made
