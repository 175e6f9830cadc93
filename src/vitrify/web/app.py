"""The app as one value: `application(settings)`. Every page is a file of this folder with a function `router`."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from vitrify.errors import InputError, VitrifyError
from vitrify.interrupts import see_to_it
from vitrify.optional import need
from vitrify.report.frame import STATIC
from vitrify.report.live import SCRIPTS, script, styles
from vitrify.web.connections import Places, protocol
from vitrify.web.guard import Guard
from vitrify.web.site import HERE, ServerSettings, WebApp

# Files of this folder, each with router(site) -> APIRouter; the atlas comes last, as it takes all that is left.
ROUTERS = ("glass", "landscape", "curves", "watch", "atlas")


def application(settings: ServerSettings | None = None) -> FastAPI:
    """The app, ready to be served."""
    site = WebApp(settings or ServerSettings())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with site.running():
            yield

    # No pages of FastAPI's own: they load scripts from elsewhere.
    app = FastAPI(
        title="vitrify", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False
    )
    app.state.site = site
    app.add_middleware(Guard, settings=site.settings)
    for error in (HTTPException, VitrifyError):
        app.add_exception_handler(error, _refused)
    app.add_exception_handler(RequestValidationError, _misread)
    app.add_exception_handler(ClientDisconnect, _gone)
    for name, text, kind in (("live.js", script, "text/javascript"), ("live.css", styles, "text/css")):
        app.add_api_route(f"/static/{name}", partial(_text, text, kind), methods=["GET", "HEAD"])
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.mount("/live", StaticFiles(directory=SCRIPTS), name="live")
    app.mount("/app", StaticFiles(directory=HERE / "static"), name="app")
    for name in ROUTERS:
        app.include_router(import_module(f"vitrify.web.{name}").router(site))
    return app


async def _text(text: Callable[[], str], kind: str) -> Response:
    """A file that `vitrify atlas` writes beside its pages."""
    return Response(text(), media_type=kind)


async def _misread(request: Request, error: Exception) -> Response:
    """A question of the wrong form: which parts, and what is wrong with each."""
    del request
    assert isinstance(error, RequestValidationError)
    parts = [f"{'.'.join(map(str, part['loc'][1:])) or 'the question'}: {part['msg']}" for part in error.errors()[:8]]
    return JSONResponse({"error": "; ".join(parts)}, 422)


async def _gone(request: Request, error: Exception) -> Response:
    """The answer to a question whose end did not come."""
    del request, error
    return JSONResponse({"error": "the question did not come to its end in time"}, 408, {"connection": "close"})


async def _refused(request: Request, error: Exception) -> Response:
    """A refusal as a page for people and as JSON for programs."""
    error = error if isinstance(error, HTTPException) else HTTPException(422, str(error))
    if request.scope["path"].startswith("/api/") or "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)
    site: WebApp = request.app.state.site
    return site.page("refused.html.j2", "", error.status_code, message=error.detail)


def loopback(host: str) -> bool:
    """Return whether only this machine can reach a host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def guarded(settings: ServerSettings) -> ServerSettings:
    """The settings with a token where other machines can ask."""
    if settings.token is not None and len(settings.token) < 8:
        raise InputError("a token must have at least 8 characters: others could guess it")
    if settings.token is None and not loopback(settings.host):
        return replace(settings, token=secrets.token_urlsafe(24))
    return settings


def address(settings: ServerSettings) -> str:
    """Return the address to open in a browser."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}/" + (f"?token={settings.token}" if settings.token else "")


def server(settings: ServerSettings, places: Places | None = None, **options: Any) -> Any:
    """Return the server of the app, not yet started; `options` are those of uvicorn."""
    uvicorn = need("uvicorn", "web")
    usual = {"log_level": "warning", "access_log": False, "server_header": False, "timeout_graceful_shutdown": 2}
    http = protocol(places or Places())
    chosen = {"host": settings.host, "port": settings.port, "http": http, "ws": "none", **usual, **options}
    return uvicorn.Server(uvicorn.Config(application(settings), **chosen))


def serve(settings: ServerSettings) -> None:
    """Serve the app until it is interrupted."""
    running = server(settings)
    see_to_it()
    with suppress(KeyboardInterrupt):  # it has ended in order
        running.run()
    if not running.started:  # it said why
        raise InputError(f"{settings.host}:{settings.port} can't be listened on: name another --port or --host")
