"""The app as one value: `application(settings)`. Every page is a file of this folder with a function `router`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from vitrify.report.frame import STATIC
from vitrify.web.guard import Guard
from vitrify.web.site import HERE, Settings, Site

# Files of this folder, each with router(site) -> APIRouter; the atlas comes last, as it takes all that is left.
ROUTERS = ("glass", "landscape", "curves", "atlas")


def application(settings: Settings | None = None) -> FastAPI:
    """The app, ready to be served."""
    site = Site(settings or Settings())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with site.running():
            yield

    # No pages of FastAPI's own: they load scripts from elsewhere.
    app = FastAPI(title="vitrify", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.site = site
    app.add_middleware(Guard, settings=site.settings)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _misread)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.mount("/app", StaticFiles(directory=HERE / "static"), name="app")
    for name in ROUTERS:
        app.include_router(import_module(f"vitrify.web.{name}").router(site))
    return app


async def _misread(request: Request, error: Exception) -> Response:
    """A question of the wrong form: which parts, and what is wrong with each."""
    del request
    assert isinstance(error, RequestValidationError)
    parts = [f"{'.'.join(map(str, part['loc'][1:])) or 'the question'}: {part['msg']}" for part in error.errors()[:8]]
    return JSONResponse({"error": "; ".join(parts)}, 422)


async def _refused(request: Request, error: Exception) -> Response:
    """A refusal as a page for people and as JSON for programs."""
    assert isinstance(error, HTTPException)
    if request.url.path.startswith("/api/") or "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)
    site: Site = request.app.state.site
    return site.page("refused.html.j2", "", error.status_code, said=error.detail)
