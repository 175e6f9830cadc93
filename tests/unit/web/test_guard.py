"""Who may ask, and the headers of what is answered."""

from __future__ import annotations

from typing import Any

import pytest

from cases import each
from loops import awaited

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")

from vitrify.errors import InputError  # noqa: E402
from vitrify.web.app import address, guarded  # noqa: E402
from vitrify.web.guard import COOKIE, Guard  # noqa: E402
from vitrify.web.site import ServerSettings  # noqa: E402

TOKEN = "open sesame!"


async def _hello(scope: Any, receive: Any, send: Any) -> None:
    from starlette.responses import PlainTextResponse

    await PlainTextResponse("hello")(scope, receive, send)


def asked(method: str = "GET", path: str = "/", token: str | None = None, **headers: str) -> Any:
    async def one() -> Any:
        transport = httpx.ASGITransport(app=Guard(_hello, ServerSettings(token=token)))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8321") as client:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.request(method, path, headers=given)

    return awaited(one())


@each("host", ["127.0.0.1:8321", "localhost", "[::1]:80", "192.168.0.7:8321"])
def test_addresses_and_this_machine_are_answered(host: str) -> None:
    assert asked(host=host).status_code == 200


@each("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::1"])
def test_a_name_that_somebody_made_point_here_is_refused(host: str) -> None:
    assert asked(host=host).status_code == 421


def test_what_changes_anything_comes_from_a_page_of_the_app() -> None:
    assert asked("POST", origin="http://127.0.0.1:8321").status_code == 200
    assert asked("POST").status_code == 200  # no browser asks like this
    for origin in ("http://evil.example", "http://127.0.0.1:9999", "null"):
        assert asked("POST", origin=origin).status_code == 403
        assert asked("DELETE", origin=origin).status_code == 403
    assert asked("POST", sec_fetch_site="cross-site").status_code == 403
    assert asked("GET", origin="http://evil.example").status_code == 200


def test_every_answer_has_the_headers_and_lets_no_inline_script_run() -> None:
    for answer in (asked(), asked(host="evil.example"), asked(token=TOKEN)):
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_a_token_is_asked_for_and_may_come_in_three_ways() -> None:
    assert asked(token=TOKEN).status_code == 401
    assert asked(path="/?token=wrong", token=TOKEN).status_code == 401
    assert asked(token=TOKEN, authorization="Bearer wrong").status_code == 401
    assert asked(token=TOKEN, cookie=f"{COOKIE}=wrong").status_code == 401
    assert asked(token=TOKEN, authorization=f"Bearer {TOKEN}").status_code == 200
    first = asked(path="/glass?token=open%20sesame!&x=1", token=TOKEN)
    assert (first.status_code, first.headers["location"]) == (303, "/glass?x=1")
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert asked(token=TOKEN, cookie=cookie.split(";")[0]).status_code == 200


def test_long_questions_are_refused_before_they_are_read() -> None:
    assert asked("POST", "/api/anything", content_length=str(2 << 20)).status_code == 413
    assert asked("POST", "/api/anything", transfer_encoding="chunked").status_code == 411
    assert asked("POST", "/api/glass/specs", content_length=str(2 << 20)).status_code == 200  # counted where it is read


def test_other_machines_need_a_token() -> None:
    assert guarded(ServerSettings()).token is None
    assert guarded(ServerSettings(host="::1")).token is None
    made = guarded(ServerSettings(host="0.0.0.0"))
    assert made.token is not None
    assert len(made.token) >= 32
    assert address(made).endswith(f"/?token={made.token}")
    assert guarded(ServerSettings(host="0.0.0.0", token=TOKEN)).token == TOKEN
    with pytest.raises(InputError, match="at least 8"):
        guarded(ServerSettings(token="short"))
