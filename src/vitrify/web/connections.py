"""The connections of the app: how long one may take to ask, and how many there may be.

A connection *waits* while no request is answered on it: it was just opened, sends its headers byte by byte, or is kept
open between two requests. Waiting ends after `HEADER_SECONDS`. When all places are taken, of one address or in all, the
oldest connection that waits makes room for the next one, so half-open connections keep nobody out. Where every
connection is being answered, the next one is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from vitrify.optional import need

HEADER_SECONDS = 10.0  # for the headers of a request, from the opening of a connection or the answer before
CONNECTIONS, PER_ADDRESS = 256, 128  # at once; behind a proxy all visitors have one address


class Places:
    """The open connections, the longest open first, each with the address that it comes from."""

    def __init__(self, total: int = CONNECTIONS, each: int = PER_ADDRESS) -> None:
        self.total, self.each = total, each
        self._open: dict[Any, str] = {}

    def __len__(self) -> int:
        return len(self._open)

    def take(self, connection: Any, address: str) -> bool:
        """Return whether there is a place for a connection, if need be that of one that waits."""
        own = [one for one, other in self._open.items() if other == address]
        for crowd, most in ((own, self.each), (list(self._open), self.total)):
            if len(crowd) >= most:
                idle = next((one for one in crowd if one.waits), None)
                if idle is None:
                    return False
                self.leave(idle)
                idle.transport.abort()
        self._open[connection] = address
        return True

    def leave(self, connection: Any) -> None:
        """Give the place of a connection back."""
        self._open.pop(connection, None)


def protocol(places: Places, seconds: float = HEADER_SECONDS) -> Callable[..., asyncio.Protocol]:
    """Return the protocol of the server: HTTP/1.1 on connections that have a place and do not wait for long."""
    need("uvicorn", "web")
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Connection(H11Protocol):
        _clock: asyncio.TimerHandle | None = None

        @property
        def waits(self) -> bool:
            """True while no request is being answered."""
            return self.cycle is None or self.cycle.response_complete

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if places.take(self, self.client[0] if self.client else ""):
                self._wait()
            else:
                transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            places.leave(self)
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if not self.waits:
                self._stop()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._wait()

        def _wait(self) -> None:
            self._stop()
            if self.waits and not self.transport.is_closing():
                self._clock = self.loop.call_later(seconds, self.transport.abort)

        def _stop(self) -> None:
            if self._clock is not None:
                self._clock.cancel()
                self._clock = None

    return Connection
