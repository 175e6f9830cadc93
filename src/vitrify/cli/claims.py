"""The commands about claims; `app.py` registers them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from vitrify.errors import InputError

AsJson = Annotated[bool, typer.Option("--json", help="machine-readable output")]
Names = Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="claims, or how their names begin")]
Kept = Annotated[Path, typer.Option("--evidence", metavar="DIR", help="where `vitrify check --keep` wrote")]
EVIDENCE = Path("docs/evidence")


class ScaleChoice(StrEnum):
    """How large the experiments of a claim are."""

    quick = "quick"
    paper = "paper"


def list_entries(as_json: AsJson = False) -> None:
    """List the claims that can be checked, and the shapes that can be built with how they are certified."""
    from vitrify.cli import render_lists
    from vitrify.registry import headlines

    render_lists.entries(list(headlines("vitrify.claims", "CLAIM")), render_lists.shapes(), as_json)


def show(
    name: Annotated[str, typer.Argument(help="a claim, or how its name begins; or a shape")], as_json: AsJson = False
) -> None:
    """Show one claim: what it says, why, how it is checked, where it comes from; or one shape, and its certificates."""
    from vitrify.claims.catalogue import find
    from vitrify.cli import render_lists

    shape = next((shape for shape in render_lists.shapes() if shape.name == name), None)
    if shape is not None:
        render_lists.shape(shape, as_json)
    else:
        render_lists.claim(find(name), as_json)


def check(
    names: Names = None,
    every: Annotated[bool, typer.Option("--all", help="all claims")] = False,
    trained: Annotated[
        bool | None, typer.Option("--trained/--untrained", help="all claims that train networks; all that do not")
    ] = None,
    scale: Annotated[
        ScaleChoice, typer.Option(help="quick: two CPU cores, a minute or so each; paper: one GPU, some minutes")
    ] = ScaleChoice.quick,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="write the evidence of each claim, NAME.json, to a folder")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="keep trainings in a folder, so that the same command goes on from there"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check claims: run each on its subjects, and its saboteur too."""
    from vitrify.claims._kept import keep as keep_outcome
    from vitrify.claims.catalogue import find, listing, run_claim
    from vitrify.cli import render, render_lists

    if every + (trained is not None) + bool(names) != 1:
        raise InputError("name the claims to check, or say --all, --trained or --untrained; 'vitrify list' shows them")
    chosen = listing() if not names else [find(name) for name in names]
    if trained is not None:
        chosen = [headline for headline in chosen if headline.fields.get("learned", False) == trained]
    outcomes = []
    with render.status("checking") as say:
        for headline in chosen:
            trainings = resume and resume / headline.name / scale.value
            outcomes.append(run_claim(headline, say, scale.value, trainings))
            if keep:
                keep_outcome(outcomes[-1], keep)
    render_lists.outcomes(outcomes, as_json)
    good = all(outcome.evidence.verdict == "holds" and outcome.saboteur_rejected for outcome in outcomes)
    raise typer.Exit(0 if good else 1)


def evidence(names: Names = None, folder: Kept = EVIDENCE, as_json: AsJson = False) -> None:
    """Show the evidence that is kept: verdicts, at which scale, on which device."""
    from vitrify.claims._kept import kept, kept_names
    from vitrify.claims.catalogue import find
    from vitrify.cli import render_lists

    chosen = [find(name) for name in names or kept_names(folder)]
    render_lists.kept([kept(headline, folder) for headline in chosen], as_json)


def figure(
    names: Names = None,
    folder: Kept = EVIDENCE,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="where to; by default, beside the evidence")
    ] = None,
    kind: Annotated[str, typer.Option(help="svg, png or pdf")] = "svg",
) -> None:
    """Draw the figures of claims from their kept evidence; without a name, of all that have one."""
    from vitrify.claims._kept import figure as drawn
    from vitrify.claims._kept import kept, kept_names
    from vitrify.claims.catalogue import find
    from vitrify.cli import render

    into = out or folder
    into.mkdir(parents=True, exist_ok=True)
    for headline in [find(name) for name in names or kept_names(folder)]:
        found = kept(headline, folder)
        if names or found.get("shown"):
            drawn(headline, found, into / f"{headline.name}.{kind}")
            render.console().print(str(into / f"{headline.name}.{kind}"))


COMMANDS = (list_entries, show, check, evidence, figure)
