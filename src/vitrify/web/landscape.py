"""The landscape explorer: where gradient flow of a one-layer transformer on a two-state Markov chain leads.

Sliders set the chain (`p`, `q`) and the form of the network (`vitrify.report.landscape.FORMS`). The start is a point of
the plane that the page draws: `e`, the size of the embedding, and `w`, that of the units; `third` is the number that a
form has beside these two. `/api/landscape/recorded` is the recorded training run nearest to the chain.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse
from starlette.background import BackgroundTask

from vitrify.encoding import JsonObject, line
from vitrify.report import landscape
from vitrify.report.landscape import nearest
from vitrify.web.site import WebApp

START = {"form": "tied", "p": 0.5, "q": 0.8, "e": 1.2, "w": 0.4}  # what the page shows first
DIGITS = 4  # decimals to which numbers from the page are rounded, so that answers can be cached

Number = Annotated[float, Query(allow_inf_nan=False)]
Maybe = Annotated[float | None, Query(allow_inf_nan=False)]


def router(site: WebApp) -> APIRouter:
    """The page of the landscape and its questions."""
    made = APIRouter()

    @made.get("/landscape")
    @made.get("/landscape.html")
    def page() -> HTMLResponse:
        shown = site.page("landscape.html.j2", "landscape", forms=landscape.FORMS.values(), start=START)
        # Imports SciPy before the first real request.
        shown.background = BackgroundTask(_json, landscape.path, *START.values())
        return shown

    @made.get("/api/landscape/surface")
    def surface(form: str, p: Number, q: Number, third: Maybe = None) -> Response:
        return _answer(landscape.surface, form, p, q, third)

    @made.get("/api/landscape/path")
    def path(form: str, p: Number, q: Number, e: Number, w: Number, third: Maybe = None) -> Response:
        return _answer(landscape.path, form, p, q, e, w, third)

    @made.get("/api/landscape/recorded")
    def recorded(form: str, p: Number, q: Number) -> Response:
        return _answer(nearest, form, p, q)

    return made


@lru_cache(maxsize=1024)
def _json(compute: Callable[..., JsonObject], form: str, *numbers: float | None) -> bytes:
    return line(compute(form, *numbers)).encode()


def _answer(compute: Callable[..., JsonObject], form: str, *numbers: float | None) -> Response:
    rounded = (None if number is None else round(number, DIGITS) for number in numbers)
    return Response(_json(compute, form, *rounded), media_type="application/json")
