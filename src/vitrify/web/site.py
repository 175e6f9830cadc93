"""State shared by all pages of the app: settings, templates, worker processes and its folder."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fastapi.responses import HTMLResponse
from jinja2 import FileSystemLoader

from vitrify.report.frame import FOLDER, LIVE, SITE, WRITTEN, Place, around, environment
from vitrify.web.pool import Pool

HERE = Path(__file__).parent


@dataclass(frozen=True)
class ServerSettings:
    """Settings of the app: how it is served, and the limits of its work.

    `nets` are references of networks that are shown beside the runs of the `store`. `workers` processes build and
    check, `waiting` more questions may wait for one; each has so many `seconds` and bytes of `memory`. A visitor keeps
    `own` nets, all visitors together `kept`.
    """

    host: str = "127.0.0.1"
    port: int = 8321
    token: str | None = None
    atlas: Path | None = None
    store: Path | None = None
    nets: tuple[str, ...] = ()
    workers: int = 2
    tracers: int = 2
    waiting: int = 16
    seconds: float = 120.0
    memory: int = 3 << 30
    upload: int = 16 << 20
    own: int = 8
    kept: int = 64


@dataclass(eq=False)
class WebApp:
    """The running app; `folder` is the only place where it writes, and is gone when it ends."""

    settings: ServerSettings = field(default_factory=ServerSettings)

    def __post_init__(self) -> None:
        folders = [folder / "templates" for folder in (HERE, FOLDER)]
        self._templates = environment().overlay(loader=FileSystemLoader(folders))
        self._folder: Path | None = None
        self.closing: list[Callable[[], Awaitable[None]]] = []  # what is to be done before the processes end
        limits = self.settings
        self.builders = Pool(limits.workers, limits.waiting, limits.seconds, limits.memory, patient=True)
        self.tracers = [Pool(1, 4 * limits.waiting, limits.seconds / 4, limits.memory) for _ in range(limits.tracers)]

    @property
    def places(self) -> tuple[Place, ...]:
        """The places in the bar: those of the site in the folder of the atlas, if it is one, and those of the app."""
        written = self.settings.atlas and (self.settings.atlas / SITE[0].address).exists()
        return (*SITE, *LIVE[len(WRITTEN) :]) if written else LIVE

    @property
    def folder(self) -> Path:
        """Where the app keeps what it was given and what it made of it."""
        assert self._folder is not None, "the app is not running"
        return self._folder

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Hold the folder and the processes while the app runs."""
        pools = [self.builders, *self.tracers]
        with tempfile.TemporaryDirectory(prefix="vitrify-serve-") as name:
            self._folder = Path(name)
            try:
                for pool in pools:
                    await pool.warm()
                yield
            finally:
                for close in self.closing:
                    await close()
                for pool in pools:
                    await pool.close()
                self._folder = None

    def page(self, template: str, here: str, status: int = 200, **values: object) -> HTMLResponse:
        """A page in the frame of all pages; `here` is the key of its place in the bar."""
        text = self._templates.get_template(template).render(**around(here, "/", self.places), **values)
        return HTMLResponse(text, status_code=status)
