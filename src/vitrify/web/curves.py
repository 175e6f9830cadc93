"""Live training curves: the runs of a store, and how the losses of a sweep fall while it is trained."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Hashable

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from vitrify.encoding import line
from vitrify.errors import VitrifyError
from vitrify.learn.follow import Follower
from vitrify.learn.store import RunStore
from vitrify.report.curves import QUANTITIES, look
from vitrify.web.site import WebApp

POLL_SECONDS = 0.5  # seconds between two looks
QUIET = 10.0  # seconds after which a word shows that the app is there
WATCHERS = 32  # that may look on at once
Told = tuple[Hashable, str]  # a state of the store, and what was said about it


def router(site: WebApp) -> APIRouter:
    """The page of curves, its data once, and as a stream of server-sent events."""
    made = APIRouter()
    follower = Follower(RunStore(site.settings.store))
    watchers = asyncio.Semaphore(WATCHERS)

    @made.get("/curves")
    def page() -> HTMLResponse:
        return site.page("curves.html.j2", "curves", quantities=QUANTITIES, store=str(follower.store.path))

    def found(query: str, sweep: str, quantity: str, before: Told | None = None) -> Told:
        """Return the curves of the store, read again if it has changed."""
        stamp = follower.stamp()
        return before if before and before[0] == stamp else (stamp, line(look(follower, query, sweep, quantity)))

    @made.get("/api/curves")
    def once(query: str = Query("", max_length=500), sweep: str = "", quantity: str = "loss") -> Response:
        return Response(found(query, sweep, quantity)[1], media_type="application/json")

    @made.get("/api/curves/stream")
    async def stream(
        request: Request, query: str = Query("", max_length=500), sweep: str = "", quantity: str = "loss"
    ) -> Response:
        if watchers.locked():
            raise HTTPException(429, f"{WATCHERS} pages look on already: close one", {"retry-after": "5"})
        await watchers.acquire()  # does not wait, so nobody comes between
        try:
            first = await asyncio.to_thread(found, query, sweep, quantity)
        except BaseException:
            watchers.release()
            raise

        async def events() -> AsyncIterator[str]:
            now, spoken = first, time.monotonic()
            yield _event(now[1])
            while not await request.is_disconnected():
                await asyncio.sleep(POLL_SECONDS)
                event = now[1]
                try:
                    now = await asyncio.to_thread(found, query, sweep, quantity, now)
                except VitrifyError as error:
                    now = (None, json.dumps({"message": str(error), "sweeps": [], "chosen": None}))
                if now[1] != event:
                    spoken = time.monotonic()
                    yield _event(now[1])
                elif time.monotonic() - spoken > QUIET:
                    spoken = time.monotonic()
                    yield ": still here\n\n"

        return EventStream(events(), watchers.release)

    return made


class EventStream(StreamingResponse):
    """A stream of events; `close` is called when it ends, however it does, also before its first event."""

    def __init__(self, events: AsyncIterator[str], close: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self.close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.close()


def _event(data: str) -> str:
    return f"retry: 1000\ndata: {data}\n\n"
