"""The landscape explorer: sliders for a chain of bits, a start to be dragged, and where gradient flow leads from it."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Response
from fastapi.responses import HTMLResponse
from starlette.background import BackgroundTask

from vitrify.errors import InputError
from vitrify.report import landscape
from vitrify.report.recorded import nearest
from vitrify.web.site import Site

START = {"form": "tied", "p": 0.5, "q": 0.8, "e": 1.2, "w": 0.4}  # what the page shows first
DIGITS = 4  # of what sliders and the mouse give: answers are kept by these numbers

Number = Annotated[float, Query(allow_inf_nan=False)]
Maybe = Annotated[float | None, Query(allow_inf_nan=False)]


def router(site: Site) -> APIRouter:
    """The page of the landscape and its questions."""
    made = APIRouter()

    @made.get("/landscape")
    @made.get("/landscape.html")
    def page() -> HTMLResponse:
        shown = site.page("landscape.html.j2", "landscape", forms=landscape.FORMS.values(), start=START)
        shown.background = BackgroundTask(_path, *START.values())  # the first answer takes the import of SciPy
        return shown

    @made.get("/api/landscape/surface")
    def surface(form: str, p: Number, q: Number, third: Maybe = None) -> Response:
        return _answer(_surface, form, *_rounded(p, q, third))

    @made.get("/api/landscape/path")
    def path(form: str, p: Number, q: Number, e: Number, w: Number, third: Maybe = None) -> Response:
        return _answer(_path, form, *_rounded(p, q, e, w, third))

    @made.get("/api/landscape/recorded")
    def recorded(form: str, p: Number, q: Number) -> Response:
        return _answer(_recorded, form, *_rounded(p, q))

    return made


@lru_cache(maxsize=128)
def _surface(*asked: Any) -> bytes:
    return _json(landscape.surface(*asked))


@lru_cache(maxsize=1024)
def _path(*asked: Any) -> bytes:
    return _json(landscape.path(*asked))


@lru_cache(maxsize=128)
def _recorded(*asked: Any) -> bytes:
    return _json(nearest(*asked))


def _json(found: dict[str, Any]) -> bytes:
    return json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _rounded(*numbers: float | None) -> list[float | None]:
    return [None if number is None else round(number, DIGITS) for number in numbers]


def _answer(make: Any, *asked: Any) -> Response:
    try:
        return Response(make(*asked), media_type="application/json")
    except InputError as error:
        raise HTTPException(422, str(error)) from None
