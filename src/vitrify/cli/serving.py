"""The command `vitrify serve`: a local web server for the atlas (pages of all claims) and the glass box.

The glass box shows a network's activations on an input.
"""

from __future__ import annotations

from pathlib import Path
from threading import Timer
from typing import Annotated

import typer

from vitrify.cli.options import ATLAS, Open, StoreFolder, arg, browse, opt
from vitrify.optional import need

START_SECONDS = 1.0  # until the server accepts connections


def serve(
    nets: Annotated[list[str] | None, arg("Networks to show beside the runs of the store.", "NET…")] = None,
    port: Annotated[int, opt("Port to listen on.", min=0, max=65535)] = 8321,
    host: Annotated[str, opt("Address to listen on; other machines need a token.")] = "127.0.0.1",
    atlas: Annotated[Path, opt("Folder of the site that `vitrify atlas` writes.", "--atlas", metavar="DIR")] = ATLAS,
    store: StoreFolder = None,
    token: Annotated[str | None, opt("Token of other machines. Default: a random one.")] = None,
    opens: Open = False,
) -> None:
    """Serve the atlas, the glass box and the runs of a store to a browser on this machine, until interrupted."""
    for module in ("fastapi", "jinja2", "uvicorn"):
        need(module, "web")
    from vitrify.interop.nets import load
    from vitrify.web.app import address, guarded
    from vitrify.web.app import serve as served
    from vitrify.web.site import ServerSettings

    for net in nets or ():
        load(net)  # one that can't be read is refused before anything is served
    shown = tuple(nets or ())
    settings = guarded(ServerSettings(host=host, port=port, atlas=atlas, store=store, nets=shown, token=token))
    typer.echo(f"open {address(settings)} (Ctrl+C ends)", err=True)
    if opens:
        timer = Timer(START_SECONDS, browse, [address(settings)])
        timer.daemon = True
        timer.start()
    served(settings)


COMMANDS = (serve,)
