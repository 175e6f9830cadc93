"""The atlas as it lies on the disk: what `vitrify atlas` has written so far, or a page that says how to write it."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from vitrify.report.frame import with_bar
from vitrify.web.guard import HEADERS
from vitrify.web.site import WebApp

# Figures are drawings with styles in them, which run no scripts.
POLICY = HEADERS["content-security-policy"].replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
# The theme of the docs has scripts in its pages.
DOCS = POLICY.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'")


def router(site: WebApp) -> APIRouter:
    """All addresses that nobody else answers."""
    made = APIRouter()
    folder = site.settings.atlas
    files = StaticFiles(directory=folder, check_dir=False) if folder else None

    @made.get("/")
    async def first() -> Response:
        return RedirectResponse("/index.html")

    @made.get("/{path:path}")
    async def page(path: str, request: Request) -> Response:
        try:
            if files is None:
                raise HTTPException(404)
            response = await files.get_response(path, request.scope)
        except HTTPException as error:
            if path == "index.html":
                return site.page("absent.html.j2", "atlas")
            raise HTTPException(404, f"there is no page /{path}") from error
        if isinstance(response, FileResponse) and Path(response.path).suffix == ".html":
            response = HTMLResponse(with_bar(Path(response.path).read_text(encoding="utf-8"), "/", site.places))
        response.headers["content-security-policy"] = DOCS if path.startswith("docs/") else POLICY
        return response

    return made
