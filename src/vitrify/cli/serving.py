"""The command that serves the app."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vitrify.cli.options import StoreFolder
from vitrify.optional import need


def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="where to listen")] = 8321,
    host: Annotated[
        str, typer.Option(help="the address to listen at; one that other machines can reach requires a token")
    ] = "127.0.0.1",
    atlas: Annotated[
        Path, typer.Option("--atlas", metavar="DIR", help="the folder that `vitrify atlas` writes")
    ] = Path("atlas"),
    store: StoreFolder = None,
    token: Annotated[
        str | None, typer.Option(help="what visitors must know; made up and printed where one is needed")
    ] = None,
) -> None:
    """Serve the atlas and the glass box to a browser, on this machine."""
    for module in ("fastapi", "jinja2", "uvicorn"):
        need(module, "web")
    from vitrify.web.app import address, guarded
    from vitrify.web.app import serve as served
    from vitrify.web.site import ServerSettings

    settings = guarded(ServerSettings(host=host, port=port, atlas=atlas, store=store, token=token))
    typer.echo(f"open {address(settings)} (Ctrl+C ends)", err=True)
    served(settings)


COMMANDS = (serve,)
