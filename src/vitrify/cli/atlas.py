"""The command that writes the atlas; `app.py` registers it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vitrify.cli.claims import AsJson, ScaleChoice


def atlas(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="the folder of the site")] = Path("atlas"),
    scale: Annotated[
        ScaleChoice, typer.Option(help="of what is checked live; paper is for one GPU")
    ] = ScaleChoice.quick,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="a claim, or how its name begins; may be said several times"),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="also train for the claims that take longer than seconds")
    ] = False,
    evidence: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="recorded evidence; by default docs/evidence here, or of the checkout"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the claims and write a site about them, to be opened in a browser; it goes on where it was interrupted.

    The exit code is about what was checked, not about what is recorded.
    """
    from vitrify.cli import render, render_lists
    from vitrify.report.atlas import build
    from vitrify.report.evidence import recorded_in

    if not as_json:
        render.console(stderr=True).print(f"open {(out / 'index.html').resolve()}: it fills in", soft_wrap=True)
    with render.work("checking") as tick:
        rows = build(out, scale.value, only or (), every, evidence or recorded_in(), tick)
    render_lists.atlas(rows, out, as_json)
    raise typer.Exit(0 if all(row.verdict == "holds" or row.origin in ("recorded", "absent") for row in rows) else 1)


COMMANDS = (atlas,)
