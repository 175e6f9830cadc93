"""Half-open, slow and malformed clients: they are let go, answered below 500, and keep nobody else out."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from random import Random
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from serving import Visitor, serving
from vitrify.web import connections, guard
from vitrify.web.connections import Places

HALF_OPEN = 300
LINES = (
    b"GET /glass HTTP/1.1",
    b"POST /api/glass/specs?name=a.regex HTTP/1.1",
    b"HEAD / HTTP/1.1",
    b"PUT /api/glass/nets HTTP/1.1",
)
HEADERS = (
    b"Host: localhost",
    b"Content-Length: 5",
    b"Accept: text/html",
    b"Cookie: vitrify-token=x",
    b"Range: bytes=0-9",
)
PIECES = (
    *b"\x00|\xff\xfe|\r\n|\n|\r\n\r\n| |:|-1|1e9|HTTP/9.9|%00|%ff|../..|//x.example/|http://x.example/|[::1|{".split(
        b"|"
    ),
    *b"Transfer-Encoding: chunked|Host: x.example|Host:|Expect: 100-continue|Upgrade: websocket|0\r\n\r\n".split(b"|"),
    *b"Content-Length: 18446744073709551616|Content-Length: 5, 6|Content-Length: \xb2|fffffffffffffff\r\n".split(b"|"),
    b"9" * 5000,
    b"A" * 70000,
    b"?token=" + b"a" * 9000,
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving() as address:
        yield address


def opened(address: str) -> socket.socket:
    """Return a connection to the app."""
    url = urlsplit(address)
    return socket.create_connection((url.hostname, url.port), timeout=20)


def malformed(rng: Random) -> bytes:
    """Return the bytes of a request with pieces put in, cut out and doubled."""
    data = bytearray(b"\r\n".join([rng.choice(LINES), *rng.sample(HEADERS, 3)]) + b"\r\n\r\nhello")
    for _ in range(rng.choice((1, 2, 4))):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((0, 1, 4, 12)))
        data[at:end] = rng.choice((rng.choice(PIECES), b"", bytes(data[at:end]) * 2, rng.randbytes(3)))
    return bytes(data)


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_malformed_requests_get_no_answer_of_500_or_more(address: str, count: int) -> None:
    rng, codes = Random(0), dict[str, int]()
    for _ in range(count):
        with opened(address) as client:
            client.settimeout(20)
            try:
                client.sendall(malformed(rng))
                client.shutdown(socket.SHUT_WR)
                answer = client.recv(64)
            except ConnectionError:  # it was closed while we were still speaking
                answer = b""
        code = answer[9:12].decode() if answer.startswith(b"HTTP/1.1 ") else "closed"
        codes[code] = codes.get(code, 0) + 1
    assert sum(codes.values()) == count
    assert set(codes) & {"400", "421"}, codes
    assert all(code == "closed" or code < "500" for code in codes), codes


def test_half_open_connections_keep_nobody_out(address: str) -> None:
    crowd = []
    try:
        for number in range(HALF_OPEN):
            client = opened(address)
            client.sendall(b"GET / HTTP/1.1\r\nHost: local" if number % 2 else b"")
            crowd.append(client)
        with Visitor(address) as visitor:
            assert visitor.http.get("/glass").status_code == 200
    finally:
        for client in crowd:
            client.close()


def test_who_does_not_go_on_asking_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also who sends a byte now and then, after a first answer, and who never sends the body that was announced."""
    monkeypatch.setattr(connections.protocol, "__defaults__", (0.3,))
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.3)
    with serving() as address:
        silent, slow, kept, owing = (opened(address) for _ in range(4))
        kept.sendall(b"GET /glass HTTP/1.1\r\nHost: localhost\r\n\r\n")
        owing.sendall(b"POST /api/glass/nets HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        while b"</html>" not in kept.recv(1 << 16):
            pass
        ends = time.monotonic() + 5
        gone = False
        while not gone and time.monotonic() < ends:
            try:
                slow.sendall(b"G")
                kept.sendall(b"G")
            except ConnectionError:
                gone = True
            time.sleep(0.1)
        assert gone
        assert silent.recv(1) == b""
        assert int(owing.recv(64)[9:12]) in (400, 408)
        for client in (silent, slow, kept, owing):
            client.close()


def test_places_are_taken_from_who_waits_longest() -> None:
    aborted: list[int] = []

    class Connection:
        def __init__(self, number: int, *, waits: bool) -> None:
            self.waits, self.transport = waits, SimpleNamespace(abort=lambda: aborted.append(number))

    def one(number: int, *, waits: bool = True) -> Any:
        return Connection(number, waits=waits)

    places = Places(total=4, each=2)
    assert places.take(one(0, waits=False), "a")
    assert places.take(one(1), "a")
    assert places.take(one(2, waits=False), "a")  # in the place of 1
    assert aborted == [1]
    assert not places.take(one(3), "a")  # all of this address are being answered
    assert places.take(one(4), "b")
    assert places.take(one(5), "c")
    assert places.take(one(6), "d")  # in the place of 4, which waits the longest of all
    assert aborted == [1, 4]
    assert len(places) == 4


def test_a_place_on_the_stream_of_curves_is_given_back_and_never_given_twice(tmp_path: Any) -> None:
    """100 ask at once: 32 look on, and the others are told so at once; when those have gone, others may come."""
    from vitrify.web.app import application
    from vitrify.web.curves import WATCHERS
    from vitrify.web.site import ServerSettings

    (tmp_path / "runs").mkdir()
    app = application(ServerSettings(store=tmp_path / "runs"))

    async def ask(codes: list[int], leave: asyncio.Event) -> None:
        headers = [(b"host", b"localhost")]
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "path": "/api/curves/stream",
        }
        scope |= {
            "scheme": "http",
            "root_path": "",
            "query_string": b"",
            "headers": headers,
            "client": ("127.0.0.1", 1),
        }
        asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> Any:
            told = next(asked, None)
            if told is None:
                await leave.wait()
                return {"type": "http.disconnect"}
            return told

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                codes.append(message["status"])

        await app(scope, receive, send)

    async def crowd() -> None:
        for _ in range(2):
            codes, leave = list[int](), asyncio.Event()
            visitors = [asyncio.create_task(ask(codes, leave)) for _ in range(100)]
            while len(codes) < 100:
                await asyncio.sleep(0.01)
            assert (codes.count(200), codes.count(429)) == (WATCHERS, 100 - WATCHERS)
            leave.set()
            await asyncio.gather(*visitors)

    asyncio.run(crowd())


@pytest.mark.parametrize("path", ["//x.example", "/\\x.example", "//x.example/a?b=1", "http://x.example/"])
def test_a_token_leads_to_a_page_of_the_app_only(path: str) -> None:
    from vitrify.web.app import application
    from vitrify.web.site import ServerSettings

    headers, said = [(b"host", b"localhost")], list[Any]()
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
    }
    scope |= {"path": path, "root_path": "", "query_string": b"token=12345678", "headers": headers}

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        said.append(message)

    asyncio.run(application(ServerSettings(token="12345678"))(scope, receive, send))
    location = dict(said[0]["headers"])[b"location"]
    assert said[0]["status"] == 303
    assert location.startswith(b"/")
    assert not location.startswith((b"//", b"/\\"))
