"""Watching learning: a slider through the checkpoints of a run, beside any other network on the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from zlib import crc32

from fastapi import APIRouter, HTTPException
from fastapi.responses import HTMLResponse
from pydantic import Field

from vitrify.encoding import JsonObject
from vitrify.errors import VitrifyError
from vitrify.extraction import SpecKind
from vitrify.learn.records import Record
from vitrify.learn.store import RunStore
from vitrify.web.glass import Strict, Words
from vitrify.web.site import WebApp
from vitrify.web.worker import WebQuestion

LISTED = 200  # runs that are offered, those with checkpoints first
LABELED = ("step", "broken", "stopped")  # entries of a measurement that are no curves
Key = Annotated[str, Field(max_length=200)]


class LookRequest(Strict):
    """A request for the attention and the answers of a network on some words; of a run, at a checkpoint."""

    net: Key
    words: Words
    step: Annotated[int, Field(ge=0)] | None = None
    beside: Key | None = None  # the network whose words these are


class ExtractRequest(Strict):
    """A request for the spec of a network, over the symbols of some words or over all; of a run, at a checkpoint."""

    net: Key
    words: Words
    step: Annotated[int, Field(ge=0)] | None = None
    kind: SpecKind = "automaton"


def router(site: WebApp) -> APIRouter:
    """The page, the networks that it offers, the curves of a run, and what a network does on some words."""
    made, store = APIRouter(), RunStore(site.settings.store)

    @made.get("/watch")
    def page() -> HTMLResponse:
        return site.page("watch.html.j2", "watch", store=str(store.path))

    @made.get("/api/watch/nets")
    def nets() -> JsonObject:
        runs = [_offered(store, record) for record in _runs(store)]
        named = [
            {"key": f"net:{place}", "name": name, "steps": [], "curves": []}
            for place, name in enumerate(site.settings.nets)
        ]
        return {"nets": sorted(runs, key=lambda one: not one["steps"])[:LISTED] + named}

    @made.get("/api/watch/curves")
    def curves(net: Key) -> JsonObject:
        record = next((record for record in _runs(store) if record.id == net), None)
        if record is None:
            raise HTTPException(404, f"there is no run {net!r}")
        return {"points": store.curve(record)}

    @made.get("/api/watch/words")
    async def words(net: Key) -> JsonObject:
        return await site.tracers[0].ask(
            WebQuestion("draw_words", {"reference": _reference(store, site.settings.nets, net)})
        )

    @made.post("/api/watch/look")
    async def look(wanted: LookRequest) -> JsonObject:
        tracer = site.tracers[crc32(wanted.net.encode()) % len(site.tracers)]  # it keeps the checkpoints loaded
        named = site.settings.nets
        reference = _reference(store, named, wanted.net, wanted.step)
        beside = None if wanted.beside is None else _reference(store, named, wanted.beside)
        return await tracer.ask(WebQuestion("look", {"reference": reference, "words": wanted.words, "beside": beside}))

    @made.post("/api/watch/extract")
    async def extract(wanted: ExtractRequest) -> JsonObject:
        reference = _reference(store, site.settings.nets, wanted.net, wanted.step)
        return await site.builders.ask(
            WebQuestion("extract", {"reference": reference, "kind": wanted.kind, "words": wanted.words})
        )

    return made


def _runs(store: RunStore) -> list[Record]:
    """Return the runs that hold a network, in training those that have checkpoints; none where there is no store."""
    try:
        runs = [record for record in store.runs() if record.state != "failed"]
        return [record for record in runs if record.done or store.checkpoints(record)]
    except VitrifyError:
        return []


def _offered(store: RunStore, record: Record) -> JsonObject:
    """Return what the page needs to offer a run: its name, its checkpoints, and the curves that it logged."""
    flat, curves = record.flat, [key for key in record.values if key not in LABELED]
    name = f"{flat.get('model')} on {flat.get('sandbox')}, seed {flat.get('seed')} ({record.id})"
    return {"key": record.id, "name": name, "steps": store.checkpoints(record), "curves": curves}


def _reference(store: RunStore, named: tuple[str, ...], key: str, step: int | None = None) -> str:
    """Return the reference of a network that the page offers; any other is refused."""
    kind, _, place = key.partition(":")
    if kind == "net" and place.isdecimal() and int(place) < len(named):
        return named[int(place)]
    record = next((record for record in _runs(store) if record.id == key), None)
    if record is None:
        raise HTTPException(404, f"there is no network {key!r}")
    if step is None and not record.done:
        step = store.checkpoints(record)[-1]
    return f"{Path(store.path).absolute()}/{key}" + ("" if step is None else f"@{step}")
