"""Access control: the host, the origin of requests that change anything, the token; and the headers of all answers.

A page of another site can make a browser ask this app, by a name that it lets point here (DNS rebinding) or by a form.
So a host must be one that nobody else can have made up, and what changes anything must come from a page of the app.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vitrify.web.site import ServerSettings

COOKIE = "vitrify-token"
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
UPLOADS = ("/api/glass/specs",)
QUESTION, MAX_DIGITS = 1 << 20, 18  # bytes, and digits of their number
BODY_SECONDS = 60.0  # for a question to come to its end
SEND_SECONDS = 60.0  # for a part of an answer to be read
READING = ("GET", "HEAD", "OPTIONS")


class Guard:
    """Refuses what must not be answered, and puts the headers on what is."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self.app, self.token = app, settings.token
        self.names = {"localhost", settings.host.lower(), socket.gethostname().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        ends = asyncio.get_running_loop().time() + BODY_SECONDS
        more = True

        async def hurried() -> Message:
            nonlocal more
            if not more:  # the end of the connection may be waited for as long as it takes
                return await receive()
            try:
                async with asyncio.timeout_at(ends):
                    message = await receive()
            except TimeoutError:
                message = {"type": "http.disconnect"}
            more = bool(message.get("more_body", False))
            return message

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await send(message)
            except TimeoutError:  # nobody reads the answer
                raise OSError(f"the answer was not read within {SEND_SECONDS:g} seconds") from None

        refusal = self._refusal(scope)
        await (refusal or self.app)(scope, hurried, headed)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._known(host):
            return JSONResponse({"error": f"this app is not served as {host!r}: name it by its address"}, 421)
        if scope["method"] not in READING and not _same_origin(headers, host):
            return JSONResponse({"error": "what changes anything must come from a page of this app"}, 403)
        return _too_long(scope, headers) or (self._stranger(scope, headers) if self.token else None)

    def _known(self, host: str) -> bool:
        """Return whether a host is an IP address or a name of this machine, which no name server can redirect."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
            if name in self.names:
                return True
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _stranger(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to who does not have the token; who brings it in the address gets it as a cookie."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        for key, value in query:
            if key == "token" and self._right(value):
                rest = urlencode([pair for pair in query if pair[0] != "token"])
                own = "/" + scope["path"].lstrip("/\\")  # //host and http://host would lead elsewhere
                answer = RedirectResponse(own + (f"?{rest}" if rest else ""), 303)
                answer.set_cookie(COOKIE, value, httponly=True, samesite="strict")
                return answer
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if self._right(_cookie(headers)) or (scheme.lower() == "bearer" and self._right(token.strip())):
            return None
        message = "this app asks for its token: open the address that `vitrify serve` printed"
        return JSONResponse({"error": message}, 401, {"www-authenticate": "Bearer"})

    def _right(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), (self.token or "").encode())


def _cookie(headers: Headers) -> str:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel else ""


def _too_long(scope: Scope, headers: Headers) -> Response | None:
    """The answer to a question that is longer than any of ours; files are counted where they are read."""
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit() and len(length) <= MAX_DIGITS):
        return JSONResponse({"error": f"the length of a question is a number of bytes, not {length[:40]!r}"}, 400)
    if scope["path"] in UPLOADS:
        return None
    if "transfer-encoding" in headers:
        return JSONResponse({"error": "a question must say how long it is"}, 411)
    if int(length) > QUESTION:
        return JSONResponse({"error": f"a question may have {QUESTION:,} bytes at most"}, 413)
    return None


def _same_origin(headers: Headers, host: str) -> bool:
    """Return whether a request comes from a page of this app, or from no page at all."""
    origin = headers.get("origin")
    if origin is not None:
        return urlsplit(origin).netloc.lower() == host.lower()
    return headers.get("sec-fetch-site", "none") in ("same-origin", "none")
